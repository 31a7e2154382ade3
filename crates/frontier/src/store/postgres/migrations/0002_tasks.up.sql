-- Sites, pages, jobs and tasks under the names that SQL users know them by: views over the queue, through which it can
-- be read and added to. Nothing is kept twice. A page of a job and its task are one entry, and have one number.

CREATE TABLE loose_pages (
    id       integer PRIMARY KEY,
    host     integer NOT NULL,
    path     text NOT NULL,
    target   text NOT NULL,
    priority integer NOT NULL,
    UNIQUE (host, path)
);
COMMENT ON TABLE loose_pages IS 'Pages that were inserted by SQL and have no task yet. The first task makes an entry of one, with its number';
COMMENT ON COLUMN loose_pages.path IS 'By what it is known';
COMMENT ON COLUMN loose_pages.target IS 'What is requested';

-- Addresses -----------------------------------------------------------------------------------------------------------

CREATE FUNCTION escaped(value text, may_stand text, normalises boolean) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    bytes bytea;
    place integer := 0;
    byte  integer;
    answer text := '';
BEGIN
    IF value ~ ('^[' || may_stand || ']*$') THEN
        RETURN value;
    END IF;
    bytes := convert_to(value, 'UTF8');
    WHILE place < length(bytes) LOOP
        byte := get_byte(bytes, place);
        place := place + 1;
        IF normalises AND byte = 37 THEN
            IF convert_from(substr(bytes, place + 1, 2), 'LATIN1') ~ '^[0-9A-Fa-f]{2}$' THEN
                byte := get_byte(decode(convert_from(substr(bytes, place + 1, 2), 'LATIN1'), 'hex'), 0);
                place := place + 2;
                IF byte BETWEEN 1 AND 127 AND chr(byte) ~ '[A-Za-z0-9._~-]' THEN
                    answer := answer || chr(byte);
                    CONTINUE;
                END IF;
            END IF;
        ELSIF byte < 128 AND chr(byte) ~ ('[' || may_stand || ']') THEN
            answer := answer || chr(byte);
            CONTINUE;
        END IF;
        answer := answer || '%' || upper(lpad(to_hex(byte), 2, '0'));
    END LOOP;
    RETURN answer;
END $$;
COMMENT ON FUNCTION escaped(text, text, boolean) IS 'A text in which only certain characters stand plain. To normalise is to undo escapes that are not needed';

CREATE FUNCTION web_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    scheme  text := 'http';
    rest    text;
    before  text;
    port    text;
    query   text;
    segment text;
    dots    text;
    parts   text[];
    kept    text[] := '{}';
BEGIN
    IF address IS NULL OR octet_length(address) > 65536 THEN
        RETURN;
    END IF;
    rest := translate(regexp_replace(address, '^[\x01-\x20]+|[\x01-\x20]+$', '', 'g'), E'\t\n\r', '');
    IF rest ~ '^[^/?#]*://' THEN
        scheme := lower(substring(rest FROM '^[^:]*'));
        rest := regexp_replace(rest, '^[^:]*:[/\\]*', '');
    ELSE
        rest := ltrim(rest, '/');
        -- Nobody leaves out the scheme and writes a password: this is `mailto:me@example.org`.
        IF rest ~ '^[^/\\?#]*:[^/\\?#]*@' OR rest ~* '^(tel|sms|callto):' THEN
            RETURN;
        END IF;
    END IF;
    IF scheme NOT IN ('http', 'https') THEN
        RETURN;
    END IF;
    before := regexp_replace(substring(rest FROM '^[^/\\?#]*'), '^.*@', '');
    rest := regexp_replace(regexp_replace(rest, '^[^/\\?#]*', ''), '#.*$', '');
    host := lower(regexp_replace(before, ':[0-9]*$', ''));
    port := ltrim(substring(before FROM ':([0-9]*)$'), '0');
    -- Names in other scripts, IPv6 addresses and numbers that only look like a name take the parser of Forager itself.
    IF host !~ '^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$' OR length(port) > 5 OR nullif(port, '')::integer > 65535
        OR (host ~ '(^|\.)([0-9]+|0x[0-9a-f]*)\.?$'
            AND host !~ '^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.|$)){4}$(?<!\.)') THEN
        host := NULL;
        RETURN;
    END IF;
    -- Port 0 is a port like any other.
    IF before ~ ':0+$' THEN
        port := '0';
    END IF;
    authority := host || CASE WHEN port = '' OR (scheme, port) IN (('http', '80'), ('https', '443')) THEN ''
        ELSE coalesce(':' || port, '') END;
    IF strpos(rest, '?') > 0 THEN
        query := substr(rest, strpos(rest, '?') + 1);
        rest := substr(rest, 1, strpos(rest, '?') - 1);
    END IF;
    parts := string_to_array(substr(translate(rest, '\', '/'), 2), '/');
    FOR place IN 1 .. coalesce(array_length(parts, 1), 0) LOOP
        segment := parts[place];
        dots := replace(lower(segment), '%2e', '.');
        IF dots = '..' THEN
            kept := kept[1 : array_length(kept, 1) - 1];
        ELSIF dots <> '.' THEN
            kept := array_append(kept, segment);
        END IF;
        IF dots IN ('.', '..') AND place = array_length(parts, 1) THEN
            kept := array_append(kept, '');
        END IF;
    END LOOP;
    rest := escaped('/' || array_to_string(kept, '/'), '!$-;=@-_a-z|~', false);
    query := escaped(query, '!$-&(-;=?-~', false);
    url := scheme || '://' || authority || rest || coalesce('?' || query, '');
    path := escaped(rest, 'A-Za-z0-9._~/!$&''()*+,;=:@-', true)
        || coalesce('?' || escaped(query, 'A-Za-z0-9._~/!$&''()*+,;=:@?-', true), '');
    identity := scheme || '://' || authority || path;
END $$;
COMMENT ON FUNCTION web_address(text) IS 'What a URL is requested as, what it is known by, its host with and without its port, and its path with its query; nothing where it is none, or not one that SQL can read';

CREATE FUNCTION page_key(identity text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN substr(sha256(convert_to(identity, 'UTF8')), 1, 16);
COMMENT ON FUNCTION page_key(text) IS 'The key of an entry';

CREATE FUNCTION domain_of(host text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(host, '^www\.', '');
COMMENT ON FUNCTION domain_of(text) IS 'The domain of a host: without a leading www.';

-- Priorities, in thousandths: the same rules as in the crate forager-core ------------------------------------------------

CREATE FUNCTION found_priority(is_homepage boolean, source_type text, source integer, source_is_homepage boolean)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN is_homepage THEN 1000
    WHEN source_type = 'sitemap' THEN 500
    WHEN source_type NOT IN ('link', 'header') OR source_type IS NULL OR source IS NULL THEN 100
    WHEN source_type = 'header' AND source_is_homepage THEN 900
    ELSE greatest(100, (source * 8 + 5) / 10)
END;
COMMENT ON FUNCTION found_priority(boolean, text, integer, boolean) IS 'The priority of a page by how it was found. The source has none where it is unknown or on another domain';

CREATE FUNCTION linked_priority(best integer, sources integer) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN best = 1000 THEN 1000 ELSE least(999, best + greatest(sources - 1, 0)) END;
COMMENT ON FUNCTION linked_priority(integer, integer) IS 'The priority of a page in mode linked: a little more for each further page that links to it';

CREATE FUNCTION link_hash(page text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN ('x' || encode(substr(sha256(convert_to(page, 'UTF8')), 1, 4), 'hex'))::bit(32)::bigint;
COMMENT ON FUNCTION link_hash(text) IS 'By what pages that link are told apart: from their host and path';

-- Jobs ----------------------------------------------------------------------------------------------------------------

CREATE FUNCTION job_queues() RETURNS TABLE (queue integer, domain_id integer, number integer, job_id text)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT q.id, q.host, c.number, c.body -> 'spec' ->> 'id'
    FROM catalog_rows c JOIN queues q ON q.collection = c.number
    WHERE c.kind = 0 AND c.body #>> '{spec,job}' IS NOT NULL;
END;
COMMENT ON FUNCTION job_queues() IS 'The queues of jobs. A function, so that who locks a task locks its entry and nothing else';

-- In PL/pgSQL, which plans them once for each session.
CREATE FUNCTION job_profile(job text) RETURNS json LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT p.body FROM catalog_rows p WHERE p.kind = 1 AND p.body ->> 'collection' = job ORDER BY p.number LIMIT 1);
END $$;
COMMENT ON FUNCTION job_profile(text) IS 'How a job harvests';

CREATE FUNCTION job_seed(job text, OUT number integer, OUT url text) LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.number, s.body -> 'seed' ->> 'url' INTO number, url FROM catalog_rows s
    WHERE s.kind = 2 AND (s.body -> 'seed' -> 'profiles')::jsonb ? job ORDER BY s.number LIMIT 1;
END $$;
COMMENT ON FUNCTION job_seed(text) IS 'Where a job starts';

CREATE FUNCTION job_mode(job text) RETURNS text LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN coalesce(job_profile(job) ->> 'order', 'hierarchy');
END $$;
COMMENT ON FUNCTION job_mode(text) IS 'How a job orders its pages';

CREATE FUNCTION job_domain(collection integer, job text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    hosts_of_job integer[];
BEGIN
    SELECT array_agg(q.host ORDER BY q.id) INTO hosts_of_job FROM queues q WHERE q.collection = job_domain.collection;
    IF array_length(hosts_of_job, 1) > 1 THEN
        RETURN coalesce((SELECT h.id FROM hosts h WHERE h.owner = -1
            AND h.key = (web_address((job_seed(job)).url)).host), hosts_of_job[1]);
    END IF;
    RETURN hosts_of_job[1];
END $$;
COMMENT ON FUNCTION job_domain(integer, text) IS 'The host that a job starts at';

CREATE VIEW domains AS SELECT h.id, h.key AS name FROM hosts h WHERE h.owner = -1;
COMMENT ON VIEW domains IS 'The hosts that are crawled. Insert a name to add one, or to learn the number of one that is there';
COMMENT ON COLUMN domains.name IS 'The name, in small letters and without a port';

CREATE VIEW jobs AS
SELECT c.body -> 'spec' ->> 'id' AS id,
    job_domain(c.number, c.body -> 'spec' ->> 'id') AS domain_id,
    CASE
        WHEN c.body #>> '{spec,job,steering}' = 'cancelled' THEN 'cancelled'
        WHEN c.body #>> '{spec,job,finished}' IS NOT NULL THEN 'completed'
        ELSE c.body #>> '{spec,job,steering}'
    END AS status,
    job_mode(c.body -> 'spec' ->> 'id') AS prioritization_mode,
    coalesce((SELECT sum(n.queued + n.leased + n.done + n.failed) FROM counters n WHERE n.collection = c.number), 0)::integer AS total_pages,
    coalesce((SELECT sum(n.done) FROM counters n WHERE n.collection = c.number), 0)::integer AS completed_tasks,
    coalesce((SELECT sum(n.failed) FROM counters n WHERE n.collection = c.number), 0)::integer AS failed_tasks,
    (c.body #>> '{spec,job,started}')::timestamptz AS created_at,
    (c.body #>> '{spec,job,finished}')::timestamptz AS completed_at
FROM catalog_rows c
WHERE c.kind = 0 AND c.body #>> '{spec,job}' IS NOT NULL;
COMMENT ON VIEW jobs IS 'Crawls that end. They are made by `forager job create`; setting status pauses, resumes or cancels one';
COMMENT ON COLUMN jobs.domain_id IS 'The domain that it starts at';
COMMENT ON COLUMN jobs.status IS 'running, paused, cancelled, or completed if nothing is left to fetch or a limit is reached';
COMMENT ON COLUMN jobs.prioritization_mode IS 'hierarchy, fifo or linked; also the other orders of a profile';
COMMENT ON COLUMN jobs.total_pages IS 'How many pages are known, fetched or not';

-- Pages and tasks -------------------------------------------------------------------------------------------------------

-- Numbers first, so that a page is found by its number through an index, whichever kind it is of.
CREATE FUNCTION all_pages() RETURNS TABLE (id integer, domain_id integer, path text, priority integer, job_id text, number integer)
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
COMMENT ON FUNCTION all_pages() IS 'The pages of jobs, and those without a task';

CREATE VIEW pages AS
SELECT p.id,
    p.domain_id,
    p.path,
    (p.priority * 0.001)::numeric(4,3) AS priority_score,
    p.job_id,
    CASE WHEN p.number IS NOT NULL THEN div(p.priority * coalesce((SELECT sum(n.queued + n.leased + n.done + n.failed) FROM counters n
        WHERE n.collection = p.number), 0) + 500, 1000)::bigint END AS rank
FROM all_pages() p;
COMMENT ON VIEW pages IS 'The pages of jobs: each job has its own, and ranks them by itself. Insert domain and path to add one, then a task to have it crawled';
COMMENT ON COLUMN pages.path IS 'The path, and the query if there is one';
COMMENT ON COLUMN pages.priority_score IS 'From 0 to 1; higher is sooner. Can be set, and is only ever raised. 0 in mode fifo, where only the order of arrival counts';
COMMENT ON COLUMN pages.job_id IS 'The job; none if it has no task yet';
COMMENT ON COLUMN pages.rank IS 'The score for people: among 1700 pages the homepage has rank 1700';

CREATE VIEW tasks AS
SELECT e.id,
    j.job_id,
    e.id AS page_id,
    substring(coalesce(e.identity, e.url) FROM '^[^:]+://[^/]*(.*)$') AS path,
    CASE e.state
        WHEN 0 THEN CASE WHEN e.ready OR e.due <= extract(epoch FROM now()) THEN 'pending' ELSE 'waiting' END
        WHEN 1 THEN 'running'
        WHEN 2 THEN 'completed'
        ELSE 'failed'
    END AS status,
    to_timestamp(e.created) AS created_at,
    e.tries AS retry_count,
    (ARRAY['seed', 'link', 'sitemap', 'redirect', 'other', 'listing'])[e.how + 1] AS source_type,
    (SELECT s.url FROM entries s WHERE s.id = e.source) AS source_url,
    CASE WHEN e.state = 1 THEN to_timestamp(e.leased_from / 1000.0) END AS started_at,
    CASE WHEN e.state >= 2 THEN to_timestamp(e.last_fetch) END AS completed_at
FROM entries e JOIN job_queues() j ON j.queue = e.queue;
COMMENT ON VIEW tasks IS 'What jobs have to fetch. Insert job and page to have a page crawled. A worker gets its tasks from Forager, which keeps the pace at each host; here they can be read, added, and deleted while nobody has them';
COMMENT ON COLUMN tasks.status IS 'waiting until it is due, pending, running, completed or failed';
COMMENT ON COLUMN tasks.retry_count IS 'Failures and lost leases in a row';
COMMENT ON COLUMN tasks.source_type IS 'How the page was found: seed, link, sitemap, redirect, listing or other. When a task is inserted, header is a link in the header or navigation of the source page';
COMMENT ON COLUMN tasks.source_url IS 'The page that it was found on, where that is a page of the same job';

CREATE VIEW prioritized_pending_tasks AS
WITH job_config AS (
    SELECT DISTINCT
        j.id as job_id,
        j.prioritization_mode,
        j.total_pages
    FROM jobs j
)
SELECT
    t.id,
    t.job_id,
    t.page_id,
    p.path,
    t.created_at,
    t.retry_count,
    t.source_type,
    t.source_url,
    CASE
        WHEN jc.prioritization_mode = 'fifo' THEN 0
        ELSE COALESCE(p.priority_score, 0.000)
    END as effective_priority
FROM tasks t
JOIN pages p ON t.page_id = p.id
JOIN job_config jc ON t.job_id = jc.job_id
WHERE t.status = 'pending';
COMMENT ON VIEW prioritized_pending_tasks IS 'The tasks that are due, with what orders them: effective_priority descending, then created_at, then id. For reading: whoever locks through it locks every pending task of the job';
COMMENT ON COLUMN prioritized_pending_tasks.effective_priority IS 'The score of the page; 0 in mode fifo';

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
    IF NEW.priority_score > OLD.priority_score THEN
        PERFORM hold_host(OLD.domain_id);
        IF OLD.job_id IS NULL THEN
            UPDATE loose_pages l SET priority = greatest(l.priority, (NEW.priority_score * 1000)::integer) WHERE l.id = OLD.id;
        ELSE
            PERFORM raise_entry(OLD.id, job_mode(OLD.job_id), (NEW.priority_score * 1000)::integer, NULL);
        END IF;
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION page_is_raised() IS 'Sets the priority of a page, if that raises it';
CREATE TRIGGER page_is_raised INSTEAD OF UPDATE ON pages FOR EACH ROW EXECUTE FUNCTION page_is_raised();

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
        ORDER BY p.domain_id
    LOOP
        PERFORM hold_host(page.domain_id);
        PERFORM raise_entry(page.id, job_mode(p_job_id), page.priority, NULL);
    END LOOP;
END $$;
COMMENT ON FUNCTION update_job_page_priorities(text) IS 'Raises the homepage of a job to 1.000 and the pages of its sitemaps to 0.500, where they are lower';

-- Adding ----------------------------------------------------------------------------------------------------------------

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
CREATE TRIGGER domain_stays INSTEAD OF UPDATE OR DELETE ON domains FOR EACH ROW
    EXECUTE FUNCTION refuse('a domain stays as it is', 'insert another one');

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
        RETURNING l.id, l.path, (l.priority * 0.001)::numeric(4,3) INTO NEW.id, NEW.path, NEW.priority_score;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION page_is_added() IS 'Adds a page that no job has yet. What it is inserted as is normalised, as Forager does it';
CREATE TRIGGER page_is_added INSTEAD OF INSERT ON pages FOR EACH ROW EXECUTE FUNCTION page_is_added();

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
CREATE FUNCTION note_task(collection integer, queue integer, state integer, more integer) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    noted jsonb := coalesce(nullif(current_setting('forager.noted', true), ''), '{}');
    which text := concat_ws(' ', collection, queue, state);
BEGIN
    noted := noted || jsonb_build_object(which, coalesce((noted ->> which)::integer, 0) + more);
    PERFORM set_config('forager.noted', noted::text, true);
END $$;
COMMENT ON FUNCTION note_task(integer, integer, integer, integer) IS 'Notes that an entry comes or goes, until the statement is over';

CREATE FUNCTION tasks_are_counted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    noted jsonb := nullif(nullif(current_setting('forager.noted', true), ''), '{}');
    second bigint := floor(extract(epoch FROM now()));
BEGIN
    IF noted IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('forager.noted', '', true);
    -- When a queue can be claimed is worked out anew by the next who claims: that hangs on settings which are not here.
    UPDATE queues q SET queued = q.queued + n.queued, done = q.done + n.done, failed = q.failed + n.failed,
        first_due = least(q.first_due, second), at = least(q.at, second * 1000), wake_at = least(q.wake_at, second * 1000)
    FROM (SELECT split_part(key, ' ', 2)::integer AS id, sum(value::integer) FILTER (WHERE key LIKE '% 0') AS queued,
            sum(value::integer) FILTER (WHERE key LIKE '% 2') AS done, sum(value::integer) FILTER (WHERE key LIKE '% 3') AS failed
        FROM jsonb_each_text(noted) GROUP BY 1) m
    CROSS JOIN LATERAL (SELECT m.id, coalesce(m.queued, 0) AS queued, coalesce(m.done, 0) AS done, coalesce(m.failed, 0) AS failed) n
    WHERE q.id = n.id;
    INSERT INTO counters AS c
    SELECT split_part(key, ' ', 1)::integer, pg_backend_pid() % 64, coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0), 0,
        coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0), coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0), 0, 0, 0, 0
    FROM jsonb_each_text(noted) GROUP BY 1 ORDER BY 1
    ON CONFLICT (collection, shard) DO UPDATE SET queued = c.queued + excluded.queued,
        done = c.done + excluded.done, failed = c.failed + excluded.failed;
    PERFORM pg_notify(current_schema() || '_news', '');
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tasks_are_counted() IS 'Counts what a statement added and deleted, and wakes who waits';
CREATE TRIGGER tasks_are_counted AFTER INSERT OR DELETE ON tasks FOR EACH STATEMENT EXECUTE FUNCTION tasks_are_counted();

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
    SELECT e.id, e.id, page.path, (ARRAY['pending', 'running', 'completed', 'failed'])[e.state + 1], to_timestamp(e.created), e.tries
    INTO NEW.id, NEW.page_id, NEW.path, NEW.status, NEW.created_at, NEW.retry_count FROM entries e WHERE e.id = entry;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION task_is_queued() IS 'Puts a page into the queue of a job. One that is there already is raised, if this raises it, and its number is given';
-- Triggers of a view run in the order of their names: this one comes first.
CREATE TRIGGER task_is_queued INSTEAD OF INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION task_is_queued();

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
CREATE TRIGGER task_stays INSTEAD OF UPDATE ON tasks FOR EACH ROW
    EXECUTE FUNCTION refuse('a task is claimed and completed through Forager, which keeps the pace at each host', 'use `forager run`, or `forager lease` and `forager complete`; set priority_score of its page to have it sooner');

-- Steering jobs -----------------------------------------------------------------------------------------------------------

CREATE FUNCTION job_is_steered() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (NEW.id, NEW.domain_id, NEW.prioritization_mode, NEW.total_pages, NEW.completed_tasks, NEW.failed_tasks, NEW.created_at, NEW.completed_at)
        IS DISTINCT FROM (OLD.id, OLD.domain_id, OLD.prioritization_mode, OLD.total_pages, OLD.completed_tasks, OLD.failed_tasks, OLD.created_at, OLD.completed_at) THEN
        RAISE EXCEPTION 'of a job only status can be set' USING ERRCODE = 'feature_not_supported', HINT = 'pages are counted as they are found';
    END IF;
    IF NEW.status IS NOT DISTINCT FROM OLD.status THEN
        RETURN NEW;
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
    RETURN NEW;
END $$;
COMMENT ON FUNCTION job_is_steered() IS 'Pauses, resumes or cancels a job';
CREATE TRIGGER job_is_steered INSTEAD OF UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION job_is_steered();
CREATE TRIGGER job_is_made_elsewhere INSTEAD OF INSERT ON jobs FOR EACH ROW
    EXECUTE FUNCTION refuse('a job is more than a row: it has seeds, a scope and an order', 'make it with `forager job create`');
CREATE TRIGGER job_is_removed_elsewhere INSTEAD OF DELETE ON jobs FOR EACH ROW
    EXECUTE FUNCTION refuse('a job goes with its seeds and its profile', 'remove it with `forager collection remove`');
