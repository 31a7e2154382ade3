-- Adding sites, pages and tasks by SQL, and deleting them.

CREATE FUNCTION domain_is_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    address record := web_address('http://' || NEW.name || '/');
BEGIN
    IF address.host IS NULL OR address.identity <> 'http://' || address.host || '/' THEN
        RAISE EXCEPTION '% is not the name of a host', quote_nullable(NEW.name) USING ERRCODE = 'check_violation',
            HINT = 'give a name such as example.org, without scheme, port and path; names in other scripts as xn--';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(calls_lock());
    INSERT INTO hosts (id, key) SELECT nextval('host_numbers')::integer, address.host
        WHERE NOT EXISTS (SELECT 1 FROM hosts h WHERE h.key = address.host AND h.owner = -1)
        ON CONFLICT (key, owner) DO NOTHING;
    SELECT h.id, h.key INTO NEW.id, NEW.name FROM hosts h WHERE h.key = address.host AND h.owner = -1;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION domain_is_added() IS 'Adds a host, or gives the number of the one that is there';
CREATE TRIGGER domain_is_added INSTEAD OF INSERT ON domains FOR EACH ROW EXECUTE FUNCTION domain_is_added();
COMMENT ON TRIGGER domain_is_added ON domains IS 'INSERT adds a host, or gives the number of the one that is there';
CREATE TRIGGER domain_stays INSTEAD OF UPDATE OR DELETE ON domains FOR EACH ROW
    EXECUTE FUNCTION refuse('a domain stays as it is', 'insert another one');
COMMENT ON TRIGGER domain_stays ON domains IS 'Refuses UPDATE and DELETE';

CREATE FUNCTION page_is_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    domain  text := (SELECT d.name FROM domains d WHERE d.id = NEW.domain_id);
    address record := web_address('http://' || domain || NEW.path);
BEGIN
    IF domain IS NULL THEN
        RAISE EXCEPTION 'there is no domain %', coalesce(NEW.domain_id::text, 'NULL') USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF address.path IS NULL OR NEW.path !~ '^/' THEN
        RAISE EXCEPTION '% is not a path', quote_nullable(NEW.path) USING ERRCODE = 'check_violation', HINT = 'it begins with a /';
    END IF;
    IF NEW.priority_score NOT BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'priority_score is % and has to be from 0 to 1', NEW.priority_score USING ERRCODE = 'check_violation';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(calls_lock());
    INSERT INTO loose_pages AS l (id, host, path, target, priority) VALUES (nextval('entry_numbers')::integer, NEW.domain_id,
            address.path, substr(address.url, length('http://' || domain) + 1),
            CASE WHEN address.path = '/' THEN 1000 ELSE coalesce((NEW.priority_score * 1000)::integer, 0) END)
        ON CONFLICT (host, path) DO UPDATE SET priority = greatest(l.priority, excluded.priority)
        RETURNING l.id INTO NEW.id;
    SELECT p.* INTO NEW FROM pages p WHERE p.id = NEW.id;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION page_is_added() IS 'Adds a page that no job has yet. What it is inserted as is normalised, as Forager does it';
CREATE TRIGGER page_is_added INSTEAD OF INSERT ON pages FOR EACH ROW EXECUTE FUNCTION page_is_added();
COMMENT ON TRIGGER page_is_added ON pages IS 'INSERT adds a page that no job has yet';

CREATE FUNCTION page_is_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.job_id IS NOT NULL THEN
        RAISE EXCEPTION 'page % has a task', OLD.id USING ERRCODE = 'foreign_key_violation', HINT = 'delete the task';
    END IF;
    DELETE FROM loose_pages l WHERE l.id = OLD.id;
    RETURN OLD;
END $$;
COMMENT ON FUNCTION page_is_deleted() IS 'Deletes a page that has no task';
CREATE TRIGGER page_is_deleted INSTEAD OF DELETE ON pages FOR EACH ROW EXECUTE FUNCTION page_is_deleted();
COMMENT ON TRIGGER page_is_deleted ON pages IS 'DELETE takes a page away that has no task';

CREATE FUNCTION job_of_sql(job text, OUT number integer, OUT harvest integer, OUT mode text, OUT profile json, OUT seed integer, OUT seed_url text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    body json;
BEGIN
    SELECT c.number, c.body INTO number, body FROM catalog_rows c
    WHERE c.kind = 0 AND c.body -> 'spec' ->> 'id' = job AND c.body #>> '{spec,job}' IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no job %', quote_nullable(job) USING ERRCODE = 'foreign_key_violation',
            HINT = 'make it with `forager job create`';
    END IF;
    IF body #>> '{spec,job,steering}' = 'cancelled' THEN
        RAISE EXCEPTION 'job % is cancelled', quote_literal(job) USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'start another one with `forager job create`';
    END IF;
    mode := job_mode(job);
    IF mode NOT IN ('hierarchy', 'fifo', 'linked') THEN
        RAISE EXCEPTION 'job % orders its pages by %, which takes more than SQL knows', quote_literal(job), mode
            USING ERRCODE = 'feature_not_supported', HINT = 'add the page with `forager discover`';
    END IF;
    harvest := (body ->> 'harvest')::integer;
    profile := job_profile(job);
    SELECT s.number, s.url INTO seed, seed_url FROM job_seed(job) s;
END $$;
COMMENT ON FUNCTION job_of_sql(text) IS 'A job that tasks can be added to by SQL, or an error that says why not';

CREATE FUNCTION find_page(collection integer, seed_url text, address text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    wanted  record := web_address(address);
    origin  record := web_address(seed_url);
    names   text[] := ARRAY['https://' || wanted.authority || wanted.path, 'http://' || wanted.authority || wanted.path];
BEGIN
    -- A host without its port means the one that the job is at.
    IF wanted.authority = wanted.host AND wanted.host = origin.host THEN
        names := names || ('https://' || origin.authority || wanted.path) || ('http://' || origin.authority || wanted.path);
    END IF;
    RETURN (SELECT e.id FROM unnest(names) WITH ORDINALITY n (name, place)
        JOIN hosts h ON h.key = wanted.host AND h.owner = -1
        JOIN queues q ON q.collection = find_page.collection AND q.host = h.id
        JOIN entries e ON e.queue = q.id AND e.key = page_key(n.name)
        ORDER BY n.place LIMIT 1);
END $$;
COMMENT ON FUNCTION find_page(integer, text, text) IS 'The page of a job that a text means, by host and path';

-- Row by row only what comes and goes is noted, and it is counted once for each statement: a row that all have in common,
-- written for each task, would be a thousand versions that the next who reads has to step over.
CREATE FUNCTION count_noted() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    noted jsonb := nullif(nullif(current_setting('forager.noted', true), ''), '{}');
    second bigint := floor(extract(epoch FROM now()));
BEGIN
    IF noted IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('forager.noted', '', true);
    -- What entries say is worked out at once. When the host opens hangs on settings that are not here: the next who claims
    -- looks at the queue and works that out.
    UPDATE queues q SET queued = q.queued + n.queued, done = q.done + n.done, failed = q.failed + n.failed,
        ready = s.ready, claimable = q.claimable AND s.ready, first_due = s.first_due,
        at = CASE WHEN s.is_any THEN least(q.at, second * 1000) END,
        wake_at = CASE WHEN s.is_any THEN least(q.wake_at, q.at, second * 1000) END
    FROM (SELECT split_part(key, ' ', 2)::integer AS id,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0) AS queued,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0) AS done,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0) AS failed
        FROM jsonb_each_text(noted) GROUP BY 1) n
    CROSS JOIN LATERAL (SELECT l.ready, l.first_due, l.ready OR l.first_due IS NOT NULL AS is_any FROM (SELECT
        EXISTS (SELECT 1 FROM entries e WHERE e.queue = n.id AND e.ready) AS ready,
        (SELECT min(e.due) FROM entries e WHERE e.queue = n.id AND e.state = 0 AND NOT e.ready) AS first_due OFFSET 0) l) s
    WHERE q.id = n.id;
    INSERT INTO counters AS c
    SELECT split_part(key, ' ', 1)::integer, pg_backend_pid() % 64, coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0), 0,
        coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0), coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0), 0, 0, 0, 0
    FROM jsonb_each_text(noted) GROUP BY 1 ORDER BY 1
    ON CONFLICT (collection, shard) DO UPDATE SET queued = c.queued + excluded.queued,
        done = c.done + excluded.done, failed = c.failed + excluded.failed;
    PERFORM pg_notify(current_schema() || '_news', '');
END $$;
COMMENT ON FUNCTION count_noted() IS 'Counts what was noted to come and go, works out what its queues wait for, and wakes who waits';

CREATE FUNCTION note_task(collection integer, queue integer, state integer, more integer) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    noted jsonb := coalesce(nullif(current_setting('forager.noted', true), ''), '{}');
    which text := concat_ws(' ', collection, queue, state);
BEGIN
    noted := noted || jsonb_build_object(which, coalesce((noted ->> which)::integer, 0) + more);
    PERFORM set_config('forager.noted', noted::text, true);
    -- Each note is written with all before it: many queues are counted in parts.
    IF length(noted::text) > 4000 THEN
        PERFORM count_noted();
    END IF;
END $$;
COMMENT ON FUNCTION note_task(integer, integer, integer, integer) IS 'Notes that an entry comes or goes, until the statement is over or there is much to count';

CREATE FUNCTION tasks_are_counted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM count_noted();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tasks_are_counted() IS 'Counts what a statement added and deleted';
CREATE TRIGGER tasks_are_counted AFTER INSERT OR DELETE ON tasks FOR EACH STATEMENT EXECUTE FUNCTION tasks_are_counted();
COMMENT ON TRIGGER tasks_are_counted ON tasks IS 'Runs once for each statement, when all its rows are through';

CREATE FUNCTION task_is_queued() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    job     record;
    page    record;
    address record;
    start   record;
    source  record;
    queue_id integer;
    entry   integer;
    is_home boolean;
    worth   integer;
    how     integer := CASE NEW.source_type WHEN 'seed' THEN 0 WHEN 'link' THEN 1 WHEN 'header' THEN 1
        WHEN 'sitemap' THEN 2 WHEN 'redirect' THEN 3 WHEN 'listing' THEN 5 ELSE 4 END;
    second  bigint := floor(extract(epoch FROM now()));
BEGIN
    IF NEW.status NOT IN ('pending', 'waiting') THEN
        RAISE EXCEPTION 'a new task is pending, not %', NEW.status USING ERRCODE = 'check_violation';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(calls_lock());
    job := job_of_sql(NEW.job_id);
    page := look_up(NEW.page_id);
    IF page.host IS NULL THEN
        RAISE EXCEPTION 'there is no page %', coalesce(NEW.page_id::text, 'NULL') USING ERRCODE = 'foreign_key_violation';
    END IF;
    PERFORM hold_host(page.host);
    -- Whoever held the host until now may have given the page to a job.
    page := look_up(NEW.page_id);
    IF page.path LIKE '%?%' AND ((job.profile ->> 'sort_query')::boolean OR job.profile #>> '{strip_params,0}' IS NOT NULL) THEN
        RAISE EXCEPTION 'job % does not take queries as they are', quote_literal(NEW.job_id)
            USING ERRCODE = 'feature_not_supported', HINT = 'add the page with `forager discover`';
    END IF;
    -- At the port and by the scheme of the job, where it is at this host.
    start := web_address(job.seed_url);
    address := web_address(substring(job.seed_url FROM '^[^:]+') || '://'
        || CASE WHEN start.host = page.name THEN start.authority ELSE page.name END || page.target);
    is_home := page.path = '/';
    worth := greatest(found_priority(is_home, NEW.source_type, NULL, false), CASE WHEN page.job IS NULL THEN page.priority END);
    SELECT q.id INTO queue_id FROM queues q WHERE q.collection = job.number AND q.host = page.host;
    IF NOT FOUND THEN
        queue_id := nextval('queue_numbers');
        INSERT INTO queues (id, collection, host) VALUES (queue_id, job.number, page.host);
    END IF;
    SELECT e.id INTO entry FROM entries e WHERE e.queue = queue_id AND e.key = page_key(address.identity);
    IF FOUND THEN
        PERFORM raise_entry(entry, job.mode, worth, NULL);
    ELSE
        entry := CASE WHEN page.job IS NULL THEN NEW.page_id ELSE nextval('entry_numbers') END;
        SELECT e.id, e.depth, e.hops INTO source FROM entries e WHERE e.id = find_page(job.number, job.seed_url, NEW.source_url);
        INSERT INTO entries (id, queue, key, url, identity, ready, priority, due, tie, seed, depth, hops, risk, is_hub, harvest,
            created, how, source, length, record)
        VALUES (entry, queue_id, page_key(address.identity), address.url, nullif(address.identity, address.url), false,
            CASE WHEN job.mode = 'fifo' THEN 0 WHEN job.mode = 'linked' THEN linked_priority(worth, 0) ELSE worth END, second, -1, job.seed,
            least(coalesce(source.depth, 0) + 1, 65535),
            CASE WHEN domain_of(page.name) = domain_of(start.host) THEN 0 ELSE least(coalesce(source.hops, 0) + 1, 255) END,
            1, false, job.harvest, second, how, source.id, (job.profile ->> 'length')::integer,
            CASE WHEN job.mode = 'linked' THEN (new_record(second, how, source.id, (job.profile ->> 'length')::integer)
                || jsonb_build_object('bestLink', worth))::json END);
        PERFORM note_task(job.number, queue_id, 0, 1);
    END IF;
    DELETE FROM loose_pages l WHERE l.id = NEW.page_id;
    -- What was given about the source stays, for the trigger that comes next.
    NEW.id := entry;
    NEW.page_id := entry;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION task_is_queued() IS 'Puts a page into the queue of a job. One that is there already is raised, if this raises it, and its number is given';
CREATE TRIGGER task_is_queued INSTEAD OF INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION task_is_queued();
COMMENT ON TRIGGER task_is_queued ON tasks IS 'INSERT puts a page into the queue of a job. Comes first, by the order of their names';

CREATE FUNCTION task_created_update_priority() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_source integer;
    v_name   text;
BEGIN
    IF NEW.source_type IN ('link', 'header') AND NEW.source_url IS NOT NULL THEN
        SELECT find_page(c.number, (job_seed(NEW.job_id)).url, NEW.source_url) INTO v_source
        FROM catalog_rows c WHERE c.kind = 0 AND c.body -> 'spec' ->> 'id' = NEW.job_id;
        -- A page that is not known counts as one that links, all the same.
        v_name := coalesce((look_up(v_source)).address, (SELECT a.authority || a.path FROM web_address(NEW.source_url) a));
        PERFORM see_page(NEW.page_id, NEW.source_type, v_source, v_name);
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION task_created_update_priority() IS 'Raises the page of a new task by the page that it was found on, which is matched by host and path';
CREATE TRIGGER trigger_task_priority_update INSTEAD OF INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION task_created_update_priority();
COMMENT ON TRIGGER trigger_task_priority_update ON tasks IS 'Comes after task_is_queued, by the order of their names';

CREATE FUNCTION what_is_stored() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    SELECT t.* INTO NEW FROM tasks t WHERE t.id = NEW.id;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION what_is_stored() IS 'Has RETURNING give a new task as it is stored, whatever was inserted';
CREATE TRIGGER what_is_stored INSTEAD OF INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION what_is_stored();
COMMENT ON TRIGGER what_is_stored ON tasks IS 'Comes last, by the order of their names: RETURNING gives the task as it is stored';

CREATE FUNCTION task_is_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    entry record;
BEGIN
    SELECT j.domain_id, j.number, j.queue INTO entry FROM entries e JOIN job_queues() j ON j.queue = e.queue WHERE e.id = OLD.id;
    PERFORM hold_host(entry.domain_id);
    IF EXISTS (SELECT 1 FROM entries e WHERE e.id = OLD.id AND e.state = 1) THEN
        RAISE EXCEPTION 'task % is being fetched', OLD.id USING ERRCODE = 'object_in_use', HINT = 'try again when that is over';
    END IF;
    PERFORM note_task(entry.number, entry.queue, e.state, -1) FROM entries e WHERE e.id = OLD.id;
    DELETE FROM entries e WHERE e.id = OLD.id;
    RETURN OLD;
END $$;
COMMENT ON FUNCTION task_is_deleted() IS 'Deletes a task, and with it the page of its job';
CREATE TRIGGER task_is_deleted INSTEAD OF DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION task_is_deleted();
COMMENT ON TRIGGER task_is_deleted ON tasks IS 'DELETE takes a task away that nobody has';
CREATE TRIGGER task_stays INSTEAD OF UPDATE ON tasks FOR EACH ROW
    EXECUTE FUNCTION refuse('a task is claimed and completed through Forager, which keeps the pace at each host', 'use `forager run`, or `forager lease` and `forager complete`; set priority_score of its page to have it sooner');
COMMENT ON TRIGGER task_stays ON tasks IS 'Refuses UPDATE';
