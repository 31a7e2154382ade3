DROP VIEW prioritized_pending_tasks, tasks, pages, jobs, domains;
DROP FUNCTION job_is_over(integer, json), job_domain(integer, text), job_mode(text), job_seed(text), job_profile(text), job_queues(), all_pages();
DROP TABLE loose_pages;
