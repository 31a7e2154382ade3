-- A page that is found by SQL is taken in as one that is found by Forager: what it is worth by every way of finding one, and what becomes of
-- one that is there already. All of that is done by functions that are nobody else's, so that those which others may replace by
-- their own can do no harm.

CREATE OR REPLACE FUNCTION found_priority(is_homepage boolean, source_type text, source integer, source_is_homepage boolean)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN is_homepage THEN 1000
    WHEN source_type IN ('sitemap', 'listing') THEN 500
    WHEN source_type NOT IN ('link', 'header', 'redirect') OR source_type IS NULL OR source IS NULL THEN 100
    WHEN source_type = 'header' AND source_is_homepage THEN 900
    ELSE greatest(100, (source * 8 + 5) / 10)
END;

-- Where tabs or line ends stand between colon and slashes, which are left out of an address, nobody has written a scheme: a host stands there.
CREATE OR REPLACE FUNCTION plain_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.* INTO url, identity, authority, host, path
    FROM spelled_address(regexp_replace(regexp_replace(address, '^[\x01-\x20]*(https?):[/\\]+', '\1://', 'i'),
        '^(?![\x01-\x20]*https?:)([^/?#]*):(?!//)[\t\n\r]*/[\t\n\r]*/', '\1:/.//', 'i')) s;
END $$;

-- What a page is worth is kept in mode fifo too, next to the priority by which it is ordered -------------------------------

ALTER TABLE entries ADD COLUMN best integer;
COMMENT ON COLUMN entries.priority IS 'In thousandths: the higher goes first';
COMMENT ON COLUMN entries.best IS 'In thousandths: what it is worth, where arrival alone counts and its priority is 0. Null elsewhere';
COMMENT ON COLUMN pages.priority_score IS 'From 0 to 1; higher is sooner, but in mode fifo, where only the order of arrival counts. Can be set, and is only ever raised';

CREATE OR REPLACE FUNCTION all_pages() RETURNS TABLE (id integer, domain_id integer, path text, priority integer, job_id text, number integer)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT i.id, coalesce(q.host, l.host), coalesce(l.path, substring(coalesce(e.identity, e.url) FROM '^[^:]+://[^/]*(.*)$')),
        coalesce(e.best, e.priority, l.priority), c.body -> 'spec' ->> 'id', c.number
    FROM (SELECT n.id FROM entries n UNION ALL SELECT n.id FROM loose_pages n) i
    LEFT JOIN entries e ON e.id = i.id
    LEFT JOIN (queues q JOIN catalog_rows c ON c.kind = 0 AND c.number = q.collection AND c.body #>> '{spec,job}' IS NOT NULL)
        ON q.id = e.queue
    LEFT JOIN loose_pages l ON l.id = i.id
    WHERE c.number IS NOT NULL OR l.id IS NOT NULL;
END;

CREATE OR REPLACE FUNCTION raise_entry(entry integer, mode text, worth integer, source_page text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    was    record;
    known  jsonb;
    links  jsonb;
    score  integer;
BEGIN
    IF mode = 'hierarchy' THEN
        UPDATE entries e SET priority = greatest(e.priority, e.best, worth), best = NULL
        WHERE e.id = entry AND (e.priority < worth OR e.best IS NOT NULL);
    ELSIF mode = 'fifo' THEN
        UPDATE entries e SET priority = 0, best = greatest(e.priority, e.best, worth)
        WHERE e.id = entry AND (e.best < worth OR e.best IS NULL);
    ELSIF mode = 'linked' THEN
        SELECT e.created, e.how, e.source, e.length, e.record INTO was FROM entries e WHERE e.id = entry;
        known := coalesce(was.record::jsonb, new_record(was.created, was.how, was.source, was.length));
        score := greatest(coalesce((known ->> 'bestLink')::integer, 0), worth);
        links := known -> 'linkedFrom';
        IF source_page IS NOT NULL AND jsonb_array_length(links) < 1000
            AND NOT links @> to_jsonb(link_hash(source_page)) THEN
            links := links || to_jsonb(link_hash(source_page));
        END IF;
        UPDATE entries e SET priority = linked_priority(score, jsonb_array_length(links)), best = NULL,
            record = (known || jsonb_build_object('bestLink', score, 'linkedFrom', links))::json
        WHERE e.id = entry;
    END IF;
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
        SELECT q.host, h.key, coalesce(e.identity, e.url), substring(e.url FROM '^[^:]+://[^/]*(.*)$'), coalesce(e.best, e.priority), e.record,
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

-- Among pages of one priority, who came first goes first, whoever found it. Numbers do not tell: each process has set some aside, and a page
-- that is added by SQL may have had its number for long. Less 2^40, so that they come before those that go by their due time.
UPDATE entries SET tie = created - 1099511627776 WHERE tie = -1;
COMMENT ON COLUMN entries.tie IS 'What decides among equal priorities: the due time, or the time of arrival less 2^40';
COMMENT ON COLUMN entries.created IS 'When it came into this queue, in seconds after 1970. When it was found before that, its record says';
COMMENT ON COLUMN tasks.created_at IS 'When the page was found, or imported';
COMMENT ON COLUMN prioritized_pending_tasks.created_at IS 'When the page was found, or imported';

-- The name by which those know it who look for what orders pages.
ALTER INDEX entries_ready RENAME TO idx_pages_priority;
COMMENT ON INDEX idx_pages_priority IS 'What a queue hands out: the pages of a job at a host that are due, highest priority first';

-- Pages as texts: authority and path, as `look_up` and `web_address` have them -------------------------------------------

CREATE FUNCTION domain_at(page text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN domain_of(regexp_replace(split_part(page, '/', 1), ':[0-9]*$', ''));
COMMENT ON FUNCTION domain_at(text) IS 'The domain of a page that is given by its authority and path';

CREATE FUNCTION folder_of(page text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(split_part(page, '?', 1), '/$', '') || '/';
COMMENT ON FUNCTION folder_of(text) IS 'What the pages below a page begin with, and itself: a slash at the end, and a query, do not count';

CREATE FUNCTION is_same_page(one text, other text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN folder_of(one) = folder_of(other) AND substring(one FROM '\?.*$') IS NOT DISTINCT FROM substring(other FROM '\?.*$');
COMMENT ON FUNCTION is_same_page(text, text) IS 'Whether two pages are one as seeds are compared: a slash at the end does not count';

-- What a page is worth ---------------------------------------------------------------------------------------------------

CREATE FUNCTION worth_of(page text, source_type text, source integer) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    origin  record;
    is_home boolean := substring(page FROM '/.*$') = '/';
BEGIN
    IF source IS NULL THEN
        RETURN found_priority(is_home, source_type, NULL, false);
    END IF;
    origin := look_up(source);
    -- A page that no job has is at the name of its host.
    RETURN found_priority(is_home, source_type,
        CASE WHEN domain_at(coalesce(origin.address, origin.name)) = domain_at(page) THEN origin.priority END, origin.path = '/');
END $$;
COMMENT ON FUNCTION worth_of(text, text, integer) IS 'The priority of a page that was found in this way on a page with this number, if any';

CREATE OR REPLACE FUNCTION see_page(page integer, source_type text, source integer, source_page text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    target record := look_up(page);
    worth  integer;
BEGIN
    IF target.host IS NULL OR target.status = 'cancelled' OR (target.job IS NULL AND NOT EXISTS
            (SELECT 1 FROM jobs j WHERE j.status <> 'cancelled' AND j.domain_id = target.host)) THEN
        RETURN;
    END IF;
    PERFORM hold_host(target.host);
    worth := worth_of(coalesce(target.address, target.name || target.path), source_type, source);
    IF target.job IS NULL THEN
        UPDATE loose_pages l SET priority = greatest(l.priority, worth) WHERE l.id = page;
    ELSE
        PERFORM raise_entry(page, target.mode, worth, CASE WHEN source_type IN ('link', 'header') THEN source_page END);
    END IF;
END $$;

-- Host after host, in the order in which all lock them.
CREATE OR REPLACE FUNCTION update_job_page_priorities(p_job_id TEXT) RETURNS VOID
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    page record;
BEGIN
    FOR page IN
        SELECT p.id, p.domain_id, CASE WHEN p.path = '/' THEN 1000 ELSE 500 END AS priority
        FROM pages p JOIN tasks t ON t.page_id = p.id
        WHERE p.job_id = p_job_id AND ((p.path = '/' AND p.priority_score < 1)
                OR (t.source_type IN ('sitemap', 'listing') AND p.priority_score < 0.5))
            AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = p_job_id AND j.status = 'cancelled')
        ORDER BY p.domain_id
    LOOP
        PERFORM hold_host(page.domain_id);
        PERFORM raise_entry(page.id, job_mode(p_job_id), page.priority, NULL);
    END LOOP;
END $$;

-- What becomes of a page that is there already -------------------------------------------------------------------------------

CREATE FUNCTION is_endless(how integer, source integer) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    FOR hop IN 0..10 LOOP
        IF how IS NULL OR how NOT IN (3, 5) OR source IS NULL THEN
            RETURN false;
        END IF;
        SELECT e.how, e.source INTO how, source FROM entries e WHERE e.id = is_endless.source;
    END LOOP;
    RETURN true;
END $$;
COMMENT ON FUNCTION is_endless(integer, integer) IS 'Whether a hop that leads no farther from the seed, a redirect or a list of lists, is one of too many in a row';

CREATE FUNCTION reaches(profile json, seed text, page text, depth integer, hops integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(depth <= (profile ->> 'depth')::integer, true) AND (CASE profile ->> 'scope'
        WHEN 'any' THEN true
        WHEN 'host' THEN split_part(seed, '/', 1) = split_part(page, '/', 1)
        WHEN 'prefix' THEN starts_with(folder_of(page), folder_of(seed))
        WHEN 'page' THEN is_same_page(seed, page)
        ELSE domain_at(seed) = domain_at(page) END
    OR (domain_at(seed) <> domain_at(page) AND hops <= (profile ->> 'hops_off_domain')::integer));
COMMENT ON FUNCTION reaches(json, text, text, integer, integer) IS 'Whether a profile has a page in scope that is so far from a seed. A page that is known has passed its other rules';

CREATE FUNCTION takes_over(seed text, holder text, page text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN holder IS NULL OR is_same_page(page, seed) THEN true
    WHEN is_same_page(page, holder) THEN false
    WHEN domain_at(seed) = domain_at(page) AND domain_at(holder) = domain_at(page) THEN nullif(
        starts_with(folder_of(page), folder_of(seed))::integer * length(folder_of(seed))
        - starts_with(folder_of(page), folder_of(holder))::integer * length(folder_of(holder)), 0) > 0
END;
COMMENT ON FUNCTION takes_over(text, text, text) IS 'Whether a page belongs to the seed it was found for, and not to the one that holds it. Null where that hangs on which has it fetched first';

CREATE FUNCTION next_fetch(known entries, every text, second bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN known.last_fetch IS NULL THEN second
    WHEN every IS NULL THEN known.due
    -- Only the second of the last fetch is kept. What is finer than microseconds in an interval, the database has no word for.
    ELSE greatest(second, ceil(known.last_fetch + 0.999 + extract(epoch FROM coalesce(
        nullif(trim(regexp_replace(every, '[0-9]+ ?(µs|us|ns)', '', 'g')), ''), '0')::interval))::bigint)
END;
COMMENT ON FUNCTION next_fetch(entries, text, bigint) IS 'When a page that is found again in this second would be fetched: not before its time, if it was fetched before';

CREATE FUNCTION revive(known entries, seen entries, collection integer) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE entries e SET state = 0, ready = false, due = seen.due, seed = seen.seed, depth = seen.depth,
        hops = seen.hops, harvest = seen.harvest, length = seen.length, tries = 0,
        record = (e.record::jsonb || jsonb_build_object('length', seen.length, 'errors', 0, 'abandoned', 0))::json
    WHERE e.id = known.id;
    PERFORM note_task(collection, known.queue, known.state, -1);
    PERFORM note_task(collection, known.queue, 0, 1);
END $$;
COMMENT ON FUNCTION revive(entries, entries, integer) IS 'Queues a page once more that an earlier harvest is through with. Its history stays';

CREATE FUNCTION merge_page(known entries, seen entries, wins boolean, collection integer, every text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    is_own boolean := known.seed = seen.seed;
    merged entries := known;
BEGIN
    seen.due := next_fetch(known, every, seen.due);
    wins := coalesce(wins, seen.due < known.due);
    IF (is_own AND (seen.depth, seen.hops) < (known.depth, known.hops)) OR (NOT is_own AND wins) THEN
        merged.seed := seen.seed;
        merged.depth := seen.depth;
        merged.hops := seen.hops;
    END IF;
    IF known.state = 0 THEN
        merged.due := least(known.due, seen.due);
    END IF;
    IF ((seen.harvest - known.harvest) & 255) BETWEEN 1 AND 127 THEN
        merged.harvest := seen.harvest;
    END IF;
    IF (merged.seed, merged.depth, merged.hops, merged.due, merged.harvest)
        IS DISTINCT FROM (known.seed, known.depth, known.hops, known.due, known.harvest) THEN
        UPDATE entries e SET seed = merged.seed, depth = merged.depth, hops = merged.hops, due = merged.due, harvest = merged.harvest
        WHERE e.id = known.id;
    END IF;
    IF merged.due <> known.due THEN
        -- None more: what its queue waits for has changed.
        PERFORM note_task(collection, known.queue, 0, 0);
    END IF;
END $$;
COMMENT ON FUNCTION merge_page(entries, entries, boolean, integer, text) IS 'Gives a page that is queued or under way the nearest place, the earliest time and the owner that a sighting finds for it';

CREATE FUNCTION see_again(known entries, seen entries, job_number integer, profile json, seed text, page text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    holder text := (SELECT a.authority || a.path FROM catalog_rows s CROSS JOIN LATERAL web_address(s.body -> 'seed' ->> 'url') a
        WHERE s.kind = 2 AND s.number = known.seed);
BEGIN
    IF is_endless(seen.how, seen.source) OR NOT (seen.how = 5 OR reaches(profile, seed, page, seen.depth, seen.hops)) THEN
        RETURN false;
    ELSIF known.state >= 2 THEN
        IF ((seen.harvest - known.harvest) & 255) NOT BETWEEN 1 AND 127 THEN
            RETURN false;
        END IF;
        PERFORM revive(known, seen, job_number);
    ELSIF known.seed <> seen.seed AND known.state = 1 THEN
        RETURN false;
    ELSE
        PERFORM merge_page(known, seen, takes_over(seed, holder, page), job_number, profile ->> 'every');
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION see_again(entries, entries, integer, json, text, text) IS 'Takes in that a page was found which is there already. Says whether that counts, so that it may raise the page too';

CREATE FUNCTION is_full(collection integer, queue integer, most bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    -- What this statement has added, and not counted yet.
    noted jsonb := coalesce(nullif(current_setting('forager.noted', true), ''), '{}');
    total bigint := (SELECT q.queued + q.leased + q.done + q.failed FROM queues q WHERE q.id = is_full.queue);
BEGIN
    FOR state IN 0..3 LOOP
        total := total + coalesce((noted ->> concat_ws(' ', collection, queue, state))::bigint, 0);
    END LOOP;
    RETURN most > 0 AND coalesce(total >= most, false);
END $$;
COMMENT ON FUNCTION is_full(integer, integer, bigint) IS 'Whether a queue has as many pages as one host may have; 0 if any number';

-- Adding tasks ---------------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION task_is_queued() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    job     record;
    page    record;
    near    record;
    address record;
    start   record;
    source  record;
    seen   entries;
    known   entries;
    its_key text;
    its_seed text;
    source_page text;
    worth   integer;
    most    bigint;
    against text;
    links   jsonb := '[]';
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
    its_key := address.authority || address.path;
    -- What a page leads to belongs to the seed that the page belongs to.
    SELECT e.id, e.depth, e.hops, e.harvest, s.number AS seed, s.body -> 'seed' ->> 'url' AS seed_url INTO source
    FROM entries e LEFT JOIN catalog_rows s ON s.kind = 2 AND s.number = e.seed
    WHERE e.id = find_page(job.number, job.seed_url, NEW.source_url);
    IF source.seed IS NOT NULL THEN
        near.number := source.seed;
        start := web_address(source.seed_url);
    END IF;
    its_seed := start.authority || start.path;
    seen.how := CASE NEW.source_type WHEN 'seed' THEN 0 WHEN 'link' THEN 1 WHEN 'header' THEN 1
        WHEN 'sitemap' THEN 2 WHEN 'redirect' THEN 3 WHEN 'listing' THEN 5 ELSE 4 END;
    seen.source := source.id;
    seen.seed := near.number;
    -- A page that has moved is no farther away, nor is what lists pages.
    seen.depth := least(coalesce(source.depth, 0) + CASE WHEN seen.how IN (3, 5) THEN 0 ELSE 1 END, 65535);
    seen.hops := CASE WHEN domain_at(its_key) = domain_at(its_seed) THEN 0 ELSE least(coalesce(source.hops, 0) + 1, 255) END;
    seen.due := second;
    seen.tie := second - 1099511627776;
    seen.harvest := coalesce(source.harvest, job.harvest);
    seen.length := (job.profile ->> 'length')::integer;
    worth := greatest(worth_of(its_key, NEW.source_type, source.id), CASE WHEN page.job IS NULL THEN page.priority END);
    -- A page that is not known counts as one that links, all the same.
    source_page := CASE WHEN seen.how = 1 THEN coalesce((SELECT l.address FROM look_up(source.id) l),
        (SELECT a.authority || a.path FROM web_address(NEW.source_url) a)) END;
    -- One that the job has, by this scheme or the other, is that one.
    SELECT e.* INTO known FROM entries e
    WHERE e.id = CASE WHEN page.job = NEW.job_id THEN NEW.page_id ELSE first_page(job.number, page.name, ARRAY[address.identity,
        CASE WHEN address.identity LIKE 'https:%' THEN 'http' ELSE 'https' END || substr(address.identity, strpos(address.identity, ':'))]) END;
    IF known.id IS NOT NULL THEN
        IF see_again(known, seen, job.number, job.profile, its_seed, its_key) THEN
            PERFORM raise_entry(known.id, job.mode, worth, source_page);
        ELSE
            -- Nothing came of it, so that there is nothing to raise either.
            NEW.source_url := NULL;
        END IF;
        seen.id := known.id;
    ELSE
        SELECT q.id INTO seen.queue FROM queues q WHERE q.collection = job.number AND q.host = page.host;
        most := coalesce((job.profile #>> '{traps,max_per_host}')::bigint, 100000);
        against := CASE
            WHEN is_endless(seen.how, seen.source) THEN 'redirected too often'
            WHEN is_full(job.number, seen.queue, most) THEN format('trap: more than %s URLs of one host', most) END;
        IF against IS NOT NULL THEN
            RAISE NOTICE '% is passed over: %', address.url, against;
            RETURN NULL;
        END IF;
        IF seen.queue IS NULL THEN
            seen.queue := nextval('queue_numbers');
            INSERT INTO queues (id, collection, host) VALUES (seen.queue, job.number, page.host);
        END IF;
        IF source_page IS NOT NULL THEN
            links := jsonb_build_array(link_hash(source_page));
        END IF;
        seen.id := CASE WHEN page.job IS NULL THEN NEW.page_id ELSE nextval('entry_numbers') END;
        INSERT INTO entries (id, queue, key, url, identity, ready, priority, best, due, tie, seed, depth, hops, risk, is_hub, harvest,
            created, how, source, length, record)
        VALUES (seen.id, seen.queue, page_key(address.identity), address.url, nullif(address.identity, address.url), false,
            CASE job.mode WHEN 'fifo' THEN 0 WHEN 'linked' THEN linked_priority(worth, jsonb_array_length(links)) ELSE worth END,
            CASE WHEN job.mode = 'fifo' THEN worth END,
            seen.due, seen.tie, seen.seed, seen.depth, seen.hops, 1, false, seen.harvest, second, seen.how, seen.source, seen.length,
            CASE WHEN job.mode = 'linked' THEN (new_record(second, seen.how, seen.source, seen.length)
                || jsonb_build_object('bestLink', worth, 'linkedFrom', links))::json END);
        PERFORM note_task(job.number, seen.queue, 0, 1);
    END IF;
    DELETE FROM loose_pages l WHERE l.id = NEW.page_id;
    -- What was given about the source stays, for the trigger that comes next.
    NEW.id := seen.id;
    NEW.page_id := seen.id;
    RETURN NEW;
END $$;

-- Whoever replaces this, or `update_page_priority`, can raise pages further, and no more: what a page is worth by our rules it has by now.
CREATE OR REPLACE FUNCTION task_created_update_priority() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_source integer;
BEGIN
    IF NEW.source_type IN ('link', 'header', 'redirect') AND NEW.source_url IS NOT NULL THEN
        SELECT find_page(c.number, (job_seed(NEW.job_id)).url, NEW.source_url) INTO v_source
        FROM catalog_rows c WHERE c.kind = 0 AND c.body -> 'spec' ->> 'id' = NEW.job_id;
        IF v_source IS NOT NULL THEN
            PERFORM update_page_priority(NEW.page_id, NEW.source_type, v_source);
        END IF;
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION task_created_update_priority() IS 'Calls update_page_priority for a new task that was found on a known page. A place for rules of your own: by those of Forager the page is raised before';
