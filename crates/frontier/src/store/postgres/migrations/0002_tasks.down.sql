DROP VIEW prioritized_pending_tasks, tasks, pages, jobs, domains;
DROP FUNCTION job_is_steered(), task_is_deleted(), tasks_are_counted(), task_created_update_priority(), task_is_queued(), page_is_deleted(),
    page_is_added(), domain_is_added(), page_is_raised(), refuse();
DROP FUNCTION update_job_page_priorities(text), update_page_priority(integer, text, integer),
    see_page(integer, text, integer, text), look_up(integer), raise_entry(integer, text, integer, text),
    new_record(bigint, integer, integer, integer), note_task(integer, integer, integer, integer),
    find_page(integer, text, text), job_of_sql(text), hold_host(integer), calls_lock();
DROP FUNCTION job_domain(integer, text), job_mode(text), job_seed(text), job_profile(text), job_queues(), all_pages();
DROP FUNCTION link_hash(text), linked_priority(integer, integer), found_priority(boolean, text, integer, boolean),
    domain_of(text), page_key(text), web_address(text), escaped(text, text, boolean);
DROP TABLE loose_pages;
