CREATE OR REPLACE FUNCTION find_page(collection integer, seed_url text, address text) RETURNS integer
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
CREATE OR REPLACE FUNCTION task_is_queued() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE OR REPLACE FUNCTION job_is_steered() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
DROP FUNCTION be_alone(), job_seed_at(text, text, text), first_page(integer, text, text[]);
