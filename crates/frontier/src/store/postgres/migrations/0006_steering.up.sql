-- Steering jobs by SQL.

CREATE FUNCTION job_is_steered() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (NEW.id, NEW.domain_id, NEW.prioritization_mode, NEW.total_pages, NEW.completed_tasks, NEW.failed_tasks, NEW.created_at, NEW.completed_at)
        IS DISTINCT FROM (OLD.id, OLD.domain_id, OLD.prioritization_mode, OLD.total_pages, OLD.completed_tasks, OLD.failed_tasks, OLD.created_at, OLD.completed_at) THEN
        RAISE EXCEPTION 'of a job only status can be set' USING ERRCODE = 'feature_not_supported', HINT = 'pages are counted as they are found';
    END IF;
    IF NEW.status IS NOT DISTINCT FROM OLD.status THEN
        RETURN OLD;
    END IF;
    IF NEW.status IS NULL OR NEW.status NOT IN ('running', 'paused', 'cancelled') THEN
        RAISE EXCEPTION 'the status of a job can be set to running, paused or cancelled, not to %', quote_nullable(NEW.status)
            USING ERRCODE = 'check_violation';
    END IF;
    -- Alone, as Forager does it: everybody else has the jobs in memory, and asks for the version.
    PERFORM pg_advisory_xact_lock(calls_lock());
    UPDATE catalog_rows c SET body = jsonb_set(c.body::jsonb, '{spec,job,steering}', to_jsonb(NEW.status))::json
    WHERE c.kind = 0 AND c.body -> 'spec' ->> 'id' = OLD.id AND c.body #>> '{spec,job,steering}' <> 'cancelled';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'job % is cancelled', quote_literal(OLD.id) USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'start another one with `forager job create`';
    END IF;
    UPDATE catalog SET version = version + 1;
    PERFORM pg_notify(current_schema() || '_news', '');
    SELECT j.* INTO NEW FROM jobs j WHERE j.id = OLD.id;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION job_is_steered() IS 'Pauses, resumes or cancels a job';
CREATE TRIGGER job_is_steered INSTEAD OF UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION job_is_steered();
COMMENT ON TRIGGER job_is_steered ON jobs IS 'UPDATE of status pauses, resumes or cancels a job';
CREATE TRIGGER job_is_made_elsewhere INSTEAD OF INSERT ON jobs FOR EACH ROW
    EXECUTE FUNCTION refuse('a job is more than a row: it has seeds, a scope and an order', 'make it with `forager job create`');
COMMENT ON TRIGGER job_is_made_elsewhere ON jobs IS 'Refuses INSERT';
CREATE TRIGGER job_is_removed_elsewhere INSTEAD OF DELETE ON jobs FOR EACH ROW
    EXECUTE FUNCTION refuse('a job goes with its seeds and its profile', 'remove it with `forager collection remove`');
COMMENT ON TRIGGER job_is_removed_elsewhere ON jobs IS 'Refuses DELETE';
