-- Raising the priorities of pages by SQL.

-- Locks: the same, and in the same order, as Forager takes them ----------------------------------------------------------

CREATE FUNCTION calls_lock() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN ('x' || encode(substr(sha256(convert_to('forager ' || current_schema() || ' calls', 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
END $$;
COMMENT ON FUNCTION calls_lock() IS 'The number of the lock that all share who change entries, and that one has alone who changes a job';

CREATE FUNCTION hold_host(host integer) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(calls_lock());
    PERFORM 1 FROM hosts h WHERE h.id = hold_host.host FOR UPDATE;
END $$;
COMMENT ON FUNCTION hold_host(integer) IS 'Keeps others from changing what belongs to a host, to the end of the transaction';

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING HINT = TG_ARGV[1], ERRCODE = 'feature_not_supported';
END $$;
COMMENT ON FUNCTION refuse() IS 'Says what cannot be changed by SQL, and what to do instead';

-- Raising priorities ----------------------------------------------------------------------------------------------------

CREATE FUNCTION new_record(created bigint, how integer, source integer, length integer) RETURNS jsonb
LANGUAGE sql STABLE
RETURN jsonb_build_object(
    'origin', jsonb_build_object(
        'created', to_char(to_timestamp(created) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'how', (ARRAY['seed', 'link', 'sitemap', 'redirect', 'other', 'listing'])[how + 1],
        'source', source),
    'length', length, 'abandoned', 0, 'errors', 0, 'notFound', 0, 'velocity', 0.5, 'scans', 0,
    'history', '[]'::jsonb, 'linkedFrom', '[]'::jsonb);
COMMENT ON FUNCTION new_record(bigint, integer, integer, integer) IS 'What is known of an entry that was just found';

CREATE FUNCTION raise_entry(entry integer, mode text, worth integer, source_page text) RETURNS void
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
COMMENT ON FUNCTION raise_entry(integer, text, integer, text) IS 'Raises an entry whose host is held, as far as the mode of its job lets a sighting raise it';

CREATE FUNCTION page_is_raised() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (NEW.id, NEW.domain_id, NEW.path, NEW.job_id, NEW.rank) IS DISTINCT FROM (OLD.id, OLD.domain_id, OLD.path, OLD.job_id, OLD.rank) THEN
        RAISE EXCEPTION 'of a page only priority_score can be set' USING ERRCODE = 'feature_not_supported',
            HINT = 'insert another page';
    END IF;
    IF NEW.priority_score NOT BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'priority_score is % and has to be from 0 to 1', NEW.priority_score USING ERRCODE = 'check_violation';
    END IF;
    IF job_mode(OLD.job_id) NOT IN ('hierarchy', 'fifo', 'linked') AND OLD.job_id IS NOT NULL THEN
        RAISE EXCEPTION 'job % orders its pages by %, which takes more than SQL knows', quote_literal(OLD.job_id), job_mode(OLD.job_id)
            USING ERRCODE = 'feature_not_supported', HINT = 'its profile says what comes first';
    END IF;
    IF NEW.priority_score > OLD.priority_score THEN
        PERFORM hold_host(OLD.domain_id);
        IF OLD.job_id IS NULL THEN
            UPDATE loose_pages l SET priority = greatest(l.priority, (NEW.priority_score * 1000)::integer) WHERE l.id = OLD.id;
        ELSE
            PERFORM raise_entry(OLD.id, job_mode(OLD.job_id), (NEW.priority_score * 1000)::integer, NULL);
        END IF;
    END IF;
    SELECT p.* INTO NEW FROM pages p WHERE p.id = OLD.id;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION page_is_raised() IS 'Sets the priority of a page, if that raises it';
CREATE TRIGGER page_is_raised INSTEAD OF UPDATE ON pages FOR EACH ROW EXECUTE FUNCTION page_is_raised();
COMMENT ON TRIGGER page_is_raised ON pages IS 'UPDATE of priority_score raises a page';

CREATE FUNCTION look_up(page integer, OUT host integer, OUT name text, OUT path text, OUT target text, OUT priority integer,
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
COMMENT ON FUNCTION look_up(integer) IS 'A page, and what it hands on to those it links to';

CREATE FUNCTION see_page(page integer, source_type text, source integer, source_page text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    target record := look_up(page);
    origin record;
    worth  integer;
BEGIN
    IF target.host IS NULL OR target.status = 'cancelled' OR (target.job IS NULL AND NOT EXISTS
            (SELECT 1 FROM jobs j WHERE j.status <> 'cancelled' AND j.domain_id = target.host)) THEN
        RETURN;
    END IF;
    PERFORM hold_host(target.host);
    origin := look_up(source);
    worth := found_priority(target.path = '/', source_type,
        CASE WHEN domain_of(origin.name) = domain_of(target.name) THEN origin.priority END, origin.path = '/');
    IF target.job IS NULL THEN
        UPDATE loose_pages l SET priority = greatest(l.priority, worth) WHERE l.id = page;
    ELSE
        PERFORM raise_entry(page, target.mode, worth, CASE WHEN source_type IN ('link', 'header') THEN source_page END);
    END IF;
END $$;
COMMENT ON FUNCTION see_page(integer, text, integer, text) IS 'Takes in that a page was found, on a page that may be known or not';

CREATE FUNCTION update_page_priority(p_page_id INTEGER, p_source_type TEXT, p_source_page_id INTEGER DEFAULT NULL)
RETURNS VOID LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM see_page(p_page_id, p_source_type, p_source_page_id, (look_up(p_source_page_id)).address);
END $$;
COMMENT ON FUNCTION update_page_priority(integer, text, integer) IS 'Raises a page that was found as a link, in a header, in a sitemap or otherwise, by the priority of the page it was found on. Does nothing while its job is cancelled';

CREATE FUNCTION update_job_page_priorities(p_job_id TEXT) RETURNS VOID
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
COMMENT ON FUNCTION update_job_page_priorities(text) IS 'Raises the homepage of a job to 1.000 and the pages of its sitemaps to 0.500, where they are lower. Does nothing while it is cancelled';
