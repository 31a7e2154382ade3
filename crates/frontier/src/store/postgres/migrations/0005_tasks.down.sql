DROP TRIGGER domain_is_added ON domains;
DROP TRIGGER domain_stays ON domains;
DROP TRIGGER page_is_added ON pages;
DROP TRIGGER page_is_deleted ON pages;
DROP TRIGGER tasks_are_counted ON tasks;
DROP TRIGGER task_is_queued ON tasks;
DROP TRIGGER trigger_task_priority_update ON tasks;
DROP TRIGGER what_is_stored ON tasks;
DROP TRIGGER task_is_deleted ON tasks;
DROP TRIGGER task_stays ON tasks;
DROP FUNCTION task_is_deleted(), tasks_are_counted(), what_is_stored(), task_created_update_priority(), task_is_queued(), page_is_deleted(),
    page_is_added(), domain_is_added(), note_task(integer, integer, integer, integer), count_noted(), find_page(integer, text, text), job_of_sql(text);
