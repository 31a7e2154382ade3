CREATE OR REPLACE FUNCTION task_created_update_priority() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE OR REPLACE FUNCTION see_page(page integer, source_type text, source integer, source_page text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    target record := look_up(page);
    origin record;
    worth  integer;
    is_near boolean;
BEGIN
    IF target.host IS NULL OR target.status = 'cancelled' OR (target.job IS NULL AND NOT EXISTS
            (SELECT 1 FROM jobs j WHERE j.status <> 'cancelled' AND j.domain_id = target.host)) THEN
        RETURN;
    END IF;
    PERFORM hold_host(target.host);
    origin := look_up(source);
    -- A page that no job has is at the name of its host.
    is_near := domain_of(coalesce(regexp_replace(split_part(origin.address, '/', 1), ':[0-9]*$', ''), origin.name))
        = domain_of(coalesce(regexp_replace(split_part(target.address, '/', 1), ':[0-9]*$', ''), target.name));
    worth := found_priority(target.path = '/', source_type,
        CASE WHEN is_near THEN origin.priority END, origin.path = '/');
    IF target.job IS NULL THEN
        UPDATE loose_pages l SET priority = greatest(l.priority, worth) WHERE l.id = page;
    ELSE
        PERFORM raise_entry(page, target.mode, worth, CASE WHEN source_type IN ('link', 'header') THEN source_page END);
    END IF;
END $$;
CREATE OR REPLACE FUNCTION update_job_page_priorities(p_job_id TEXT) RETURNS VOID
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    page record;
BEGIN
    -- Host after host, in the order in which all lock them.
    FOR page IN
        SELECT p.id, p.domain_id, CASE WHEN p.path = '/' THEN 1000 ELSE 500 END AS priority
        FROM pages p JOIN tasks t ON t.page_id = p.id
        WHERE p.job_id = p_job_id AND ((p.path = '/' AND p.priority_score < 1) OR (t.source_type = 'sitemap' AND p.priority_score < 0.5))
            AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = p_job_id AND j.status = 'cancelled')
        ORDER BY p.domain_id
    LOOP
        PERFORM hold_host(page.domain_id);
        PERFORM raise_entry(page.id, job_mode(p_job_id), page.priority, NULL);
    END LOOP;
END $$;
DROP FUNCTION is_full(integer, integer, bigint);
DROP FUNCTION see_again(entries, entries, integer, json, text, text);
DROP FUNCTION merge_page(entries, entries, boolean, integer, text);
DROP FUNCTION revive(entries, entries, integer);
DROP FUNCTION next_fetch(entries, text, bigint);
DROP FUNCTION takes_over(text, text, text);
DROP FUNCTION reaches(json, text, text, integer, integer);
DROP FUNCTION is_endless(integer, integer);
DROP FUNCTION worth_of(text, text, integer);
DROP FUNCTION is_same_page(text, text);
DROP FUNCTION folder_of(text);
DROP FUNCTION domain_at(text);
CREATE OR REPLACE FUNCTION plain_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.* INTO url, identity, authority, host, path
    FROM spelled_address(regexp_replace(address, '^[\x01-\x20]*(https?):[/\\]+', '\1://', 'i')) s;
END $$;
CREATE OR REPLACE FUNCTION look_up(page integer, OUT host integer, OUT name text, OUT path text, OUT target text, OUT priority integer,
    OUT address text, OUT job text, OUT status text, OUT mode text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    record json;
BEGIN
    SELECT l.host, h.key, l.path, l.target, l.priority INTO host, name, path, target, priority
    FROM loose_pages l JOIN hosts h ON h.id = l.host WHERE l.id = page;
    IF NOT FOUND THEN
        SELECT q.host, h.key, coalesce(e.identity, e.url), substring(e.url FROM '^[^:]+://[^/]*(.*)$'), e.priority, e.record,
            c.body -> 'spec' ->> 'id', c.body #>> '{spec,job,steering}'
        INTO host, name, address, target, priority, record, job, status
        FROM entries e JOIN queues q ON q.id = e.queue JOIN hosts h ON h.id = q.host
        JOIN catalog_rows c ON c.kind = 0 AND c.number = q.collection
        WHERE e.id = page AND c.body #>> '{spec,job}' IS NOT NULL;
        address := regexp_replace(address, '^[^:]+://', '');
        path := substring(address FROM '/.*$');
        mode := job_mode(job);
        -- What further links added to a page is its own; it hands on what its best link gave it.
        IF mode = 'linked' THEN
            priority := (record ->> 'bestLink')::integer;
        END IF;
    END IF;
END $$;
CREATE OR REPLACE FUNCTION raise_entry(entry integer, mode text, worth integer, source_page text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    was    record;
    known  jsonb;
    links  jsonb;
    best   integer;
BEGIN
    IF mode = 'hierarchy' THEN
        UPDATE entries e SET priority = worth WHERE e.id = entry AND e.priority < worth;
    ELSIF mode = 'linked' THEN
        SELECT e.created, e.how, e.source, e.length, e.record INTO was FROM entries e WHERE e.id = entry;
        known := coalesce(was.record::jsonb, new_record(was.created, was.how, was.source, was.length));
        best := greatest(coalesce((known ->> 'bestLink')::integer, 0), worth);
        links := known -> 'linkedFrom';
        IF source_page IS NOT NULL AND jsonb_array_length(links) < 1000
            AND NOT links @> to_jsonb(link_hash(source_page)) THEN
            links := links || to_jsonb(link_hash(source_page));
        END IF;
        UPDATE entries e SET priority = linked_priority(best, jsonb_array_length(links)),
            record = (known || jsonb_build_object('bestLink', best, 'linkedFrom', links))::json
        WHERE e.id = entry;
    END IF;
END $$;
CREATE OR REPLACE FUNCTION all_pages() RETURNS TABLE (id integer, domain_id integer, path text, priority integer, job_id text, number integer)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT i.id, coalesce(q.host, l.host), coalesce(l.path, substring(coalesce(e.identity, e.url) FROM '^[^:]+://[^/]*(.*)$')),
        coalesce(e.priority, l.priority), c.body -> 'spec' ->> 'id', c.number
    FROM (SELECT n.id FROM entries n UNION ALL SELECT n.id FROM loose_pages n) i
    LEFT JOIN entries e ON e.id = i.id
    LEFT JOIN (queues q JOIN catalog_rows c ON c.kind = 0 AND c.number = q.collection AND c.body #>> '{spec,job}' IS NOT NULL)
        ON q.id = e.queue
    LEFT JOIN loose_pages l ON l.id = i.id
    WHERE c.number IS NOT NULL OR l.id IS NOT NULL;
END;
COMMENT ON COLUMN entries.priority IS 'In thousandths';
COMMENT ON COLUMN pages.priority_score IS 'From 0 to 1; higher is sooner. Can be set, and is only ever raised. 0 in mode fifo, where only the order of arrival counts';
UPDATE entries SET tie = -1 WHERE tie < 0;
COMMENT ON COLUMN entries.tie IS 'What decides among equal priorities: the due time, or -1 for the order of arrival';
COMMENT ON COLUMN entries.created IS 'When it was found, in seconds after 1970';
COMMENT ON COLUMN tasks.created_at IS 'When the page was found';
COMMENT ON COLUMN prioritized_pending_tasks.created_at IS 'When the page was found';
ALTER TABLE entries DROP COLUMN best;
ALTER INDEX idx_pages_priority RENAME TO entries_ready;
COMMENT ON INDEX entries_ready IS 'What a queue hands out, highest priority first';
CREATE OR REPLACE FUNCTION found_priority(is_homepage boolean, source_type text, source integer, source_is_homepage boolean)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN is_homepage THEN 1000
    WHEN source_type = 'sitemap' THEN 500
    WHEN source_type NOT IN ('link', 'header') OR source_type IS NULL OR source IS NULL THEN 100
    WHEN source_type = 'header' AND source_is_homepage THEN 900
    ELSE greatest(100, (source * 8 + 5) / 10)
END;
