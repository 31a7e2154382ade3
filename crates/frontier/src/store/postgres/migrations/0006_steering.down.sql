DROP TRIGGER job_is_steered ON jobs;
DROP TRIGGER job_is_made_elsewhere ON jobs;
DROP TRIGGER job_is_removed_elsewhere ON jobs;
DROP FUNCTION job_is_steered();
