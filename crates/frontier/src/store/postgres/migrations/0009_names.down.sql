DROP FUNCTION web_address(text);
DROP FUNCTION plain_address(text);
ALTER FUNCTION spelled_address(text) RENAME TO web_address;
COMMENT ON FUNCTION web_address(text) IS 'What a URL is requested as, what it is known by, its host with and without its port, and its path with its query; nothing where it is none, or not one that SQL can read';
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
CREATE OR REPLACE FUNCTION page_is_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE OR REPLACE FUNCTION see_page(page integer, source_type text, source integer, source_page text) RETURNS void
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
CREATE OR REPLACE FUNCTION domain_is_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
CREATE OR REPLACE FUNCTION count_noted() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
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
        place = CASE WHEN s.ready THEN coalesce(q.place, second * 1000 << 20) END, first_due = s.first_due,
        opens = CASE WHEN NOT s.ready AND s.first_due IS NOT NULL THEN least(q.opens, second * 1000) END,
        wake_at = CASE WHEN s.ready OR s.first_due IS NOT NULL THEN least(q.wake_at, second * 1000) END
    FROM (SELECT split_part(key, ' ', 2)::integer AS id,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0) AS queued,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0) AS done,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0) AS failed
        FROM jsonb_each_text(noted) GROUP BY 1) n
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT 1 FROM entries e WHERE e.queue = n.id AND e.ready) AS ready,
        (SELECT min(e.due) FROM entries e WHERE e.queue = n.id AND e.state = 0 AND NOT e.ready) AS first_due OFFSET 0) s
    WHERE q.id = n.id;
    INSERT INTO counters AS c
    SELECT split_part(key, ' ', 1)::integer, pg_backend_pid() % 64, coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0), 0,
        coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0), coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0), 0, 0, 0, 0
    FROM jsonb_each_text(noted) GROUP BY 1 ORDER BY 1
    ON CONFLICT (collection, shard) DO UPDATE SET queued = c.queued + excluded.queued,
        done = c.done + excluded.done, failed = c.failed + excluded.failed;
    PERFORM pg_notify(current_schema() || '_news', '');
END $$;
