-- Two things for who works by SQL. A job may start at several hosts: a task that is added by SQL belongs to the seed that it would belong to in Rust, not to the first
-- one whatever its host is; and a page that the job has is found by its number, and by either scheme.
-- And whoever has to be alone waits for that in small parts, between which others go on.

CREATE FUNCTION job_seed_at(job text, host text, path text, OUT number integer, OUT url text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.number, s.body -> 'seed' ->> 'url' INTO number, url
    FROM catalog_rows s
    -- To look for a name is quicker than to read an address.
    LEFT JOIN LATERAL (SELECT w.host, regexp_replace(split_part(w.path, '?', 1), '/$', '') || '/' AS folder
        FROM web_address(s.body -> 'seed' ->> 'url') w
        WHERE strpos(lower(s.body -> 'seed' ->> 'url'), domain_of(job_seed_at.host)) > 0) a ON true
    WHERE s.kind = 2 AND (s.body -> 'seed' -> 'profiles')::jsonb ? job
    ORDER BY a.host IS NOT DISTINCT FROM job_seed_at.host DESC,
        domain_of(a.host) IS NOT DISTINCT FROM domain_of(job_seed_at.host) DESC,
        CASE WHEN starts_with(split_part(job_seed_at.path, '?', 1) || '/', a.folder) THEN length(a.folder) ELSE 0 END DESC, s.number
    LIMIT 1;
END $$;
COMMENT ON FUNCTION job_seed_at(text, text, text) IS 'The seed of a job that is nearest to a page: at its host, then on its domain, then by the longest path, then the first one';

CREATE FUNCTION first_page(collection integer, host text, names text[]) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT e.id FROM unnest(names) WITH ORDINALITY n (name, place)
        JOIN hosts h ON h.key = first_page.host AND h.owner = -1
        JOIN queues q ON q.collection = first_page.collection AND q.host = h.id
        JOIN entries e ON e.queue = q.id AND e.key = page_key(n.name)
        ORDER BY n.place LIMIT 1);
END $$;
COMMENT ON FUNCTION first_page(integer, text, text[]) IS 'The page of a job that is known by the first of these names that any is known by';

CREATE OR REPLACE FUNCTION find_page(collection integer, seed_url text, address text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    wanted record := web_address(address);
    answer integer := first_page(collection, wanted.host,
        ARRAY['https://' || wanted.authority || wanted.path, 'http://' || wanted.authority || wanted.path]);
BEGIN
    IF answer IS NOT NULL OR wanted.host IS NULL OR wanted.authority <> wanted.host THEN
        RETURN answer;
    END IF;
    -- A host without its port means those that the job is at.
    RETURN first_page(collection, wanted.host, (SELECT array_agg(w.scheme || a.authority || wanted.path ORDER BY s.number, w.scheme DESC)
        FROM catalog_rows c
        JOIN catalog_rows s ON s.kind = 2 AND (s.body -> 'seed' -> 'profiles')::jsonb ? (c.body -> 'spec' ->> 'id')
            AND strpos(lower(s.body -> 'seed' ->> 'url'), wanted.host) > 0
        JOIN LATERAL web_address(s.body -> 'seed' ->> 'url') a ON a.host = wanted.host
        CROSS JOIN (VALUES ('https://'), ('http://')) w (scheme)
        WHERE c.kind = 0 AND c.number = find_page.collection));
END $$;
COMMENT ON FUNCTION find_page(integer, text, text) IS 'The page of a job that a text means, by host and path. All seeds of the job are asked; seed_url is there for who calls it with one';

CREATE OR REPLACE FUNCTION task_is_queued() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    job     record;
    page    record;
    near    record;
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
    -- As a source that is not known it would count for less than in Rust, and nobody would be told.
    IF NEW.source_url <> '' AND (web_address(NEW.source_url)).host IS NULL THEN
        RAISE EXCEPTION '% is not an address that SQL can read', quote_literal(NEW.source_url) USING ERRCODE = 'feature_not_supported',
            HINT = 'write names in other scripts as xn-- and IPv4 addresses as four numbers, or add the page with `forager discover`';
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
    -- At the port and by the scheme of the seed at this host, if there is one.
    near := job_seed_at(NEW.job_id, page.name, page.path);
    start := web_address(near.url);
    address := web_address(substring(near.url FROM '^[^:]+') || '://'
        || CASE WHEN start.host = page.name THEN start.authority ELSE page.name END || page.target);
    is_home := page.path = '/';
    worth := greatest(found_priority(is_home, NEW.source_type, NULL, false), CASE WHEN page.job IS NULL THEN page.priority END);
    SELECT q.id INTO queue_id FROM queues q WHERE q.collection = job.number AND q.host = page.host;
    IF NOT FOUND THEN
        queue_id := nextval('queue_numbers');
        INSERT INTO queues (id, collection, host) VALUES (queue_id, job.number, page.host);
    END IF;
    -- One that the job has, by this scheme or the other, is that one.
    entry := CASE WHEN page.job = NEW.job_id THEN NEW.page_id ELSE first_page(job.number, page.name, ARRAY[address.identity,
        CASE WHEN address.identity LIKE 'https:%' THEN 'http' ELSE 'https' END || substr(address.identity, strpos(address.identity, ':'))]) END;
    IF entry IS NOT NULL THEN
        PERFORM raise_entry(entry, job.mode, worth, NULL);
    ELSE
        entry := CASE WHEN page.job IS NULL THEN NEW.page_id ELSE nextval('entry_numbers') END;
        -- What a page leads to belongs to the seed that the page belongs to.
        SELECT e.id, e.depth, e.hops, s.number AS seed, s.body -> 'seed' ->> 'url' AS seed_url INTO source
        FROM entries e LEFT JOIN catalog_rows s ON s.kind = 2 AND s.number = e.seed
        WHERE e.id = find_page(job.number, job.seed_url, NEW.source_url);
        IF source.seed IS NOT NULL THEN
            near.number := source.seed;
            start := web_address(source.seed_url);
        END IF;
        INSERT INTO entries (id, queue, key, url, identity, ready, priority, due, tie, seed, depth, hops, risk, is_hub, harvest,
            created, how, source, length, record)
        VALUES (entry, queue_id, page_key(address.identity), address.url, nullif(address.identity, address.url), false,
            CASE WHEN job.mode = 'fifo' THEN 0 WHEN job.mode = 'linked' THEN linked_priority(worth, 0) ELSE worth END, second, -1, near.number,
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

CREATE FUNCTION be_alone() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    wait integer := 100;
BEGIN
    -- Who says how long he waits for a lock is told when that is over.
    IF current_setting('lock_timeout') <> '0' THEN
        PERFORM pg_advisory_xact_lock(calls_lock());
        RETURN;
    END IF;
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', wait::text, true);
            PERFORM pg_advisory_xact_lock(calls_lock());
            PERFORM set_config('lock_timeout', '0', true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(wait / 1000.0);
            -- In the end longer than it takes the server to see that two wait for each other.
            wait := least(wait * 2, 1600);
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION be_alone() IS 'Waits until nobody else changes anything, to the end of the transaction. Others stand behind who waits, so that it is done in small parts';

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
    PERFORM be_alone();
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
