-- A dot behind the name of a host only says that the name is whole: the host is the same, and is known without it. Pages stay as they are written,
-- and are told apart by that: where a source is looked for, and where it is asked whether it is on the same domain.
-- What follows http: may be any number of slashes, or backslashes.
-- Names that are written as xn-- stand for others in other scripts, and not every such text does. Which do is a table of its own, which SQL does
-- not have: it takes those that the queue knows, for Forager has judged them.
-- And a queue whose ready pages are deleted waits no longer than the first of the others is due.

ALTER FUNCTION web_address(text) RENAME TO spelled_address;
COMMENT ON FUNCTION spelled_address(text) IS 'As plain_address, with two slashes behind the scheme';

CREATE FUNCTION plain_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT s.* INTO url, identity, authority, host, path
    FROM spelled_address(regexp_replace(address, '^[\x01-\x20]*(https?):[/\\]+', '\1://', 'i')) s;
END $$;
COMMENT ON FUNCTION plain_address(text) IS 'As web_address, for every name that is written as xn--, also where there can be none, and with the host as it is written';

CREATE FUNCTION web_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    plain record := plain_address(address);
BEGIN
    plain.host := regexp_replace(plain.host, '\.$', '');
    IF plain.host !~ '(^|\.)xn--' OR EXISTS (SELECT 1 FROM hosts h WHERE h.key = plain.host AND h.owner = -1) THEN
        url := plain.url;
        identity := plain.identity;
        authority := plain.authority;
        host := plain.host;
        path := plain.path;
    END IF;
END $$;
COMMENT ON FUNCTION web_address(text) IS 'What a URL is requested as, what it is known by, its host with and without its port, and its path with its query; nothing where it is none, or not one that SQL can read. A name that is written as xn-- has to be known to the queue';

CREATE OR REPLACE FUNCTION domain_is_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    address record := web_address('http://' || NEW.name || '/');
BEGIN
    IF address.host IS NULL OR address.identity NOT IN ('http://' || address.host || '/', 'http://' || address.host || './') THEN
        RAISE EXCEPTION '% is not the name of a host that SQL can read', quote_nullable(NEW.name) USING ERRCODE = 'check_violation',
            HINT = 'give a name such as example.org, without scheme, port and path; the first page at a name in another script, or at an IPv6 address, is added with `forager discover`';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(calls_lock());
    INSERT INTO hosts (id, key) SELECT nextval('host_numbers')::integer, address.host
        WHERE NOT EXISTS (SELECT 1 FROM hosts h WHERE h.key = address.host AND h.owner = -1)
        ON CONFLICT (key, owner) DO NOTHING;
    SELECT h.id, h.key INTO NEW.id, NEW.name FROM hosts h WHERE h.key = address.host AND h.owner = -1;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION page_is_added() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    domain  text := (SELECT d.name FROM domains d WHERE d.id = NEW.domain_id);
    address record := web_address('http://' || domain || NEW.path);
BEGIN
    IF domain IS NULL THEN
        RAISE EXCEPTION 'there is no domain %', coalesce(NEW.domain_id::text, 'NULL') USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF (web_address('http://' || domain || '/')).host IS NULL THEN
        RAISE EXCEPTION '% is not a host that SQL can read', quote_literal(domain) USING ERRCODE = 'feature_not_supported',
            HINT = 'add its pages with `forager discover`';
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

CREATE OR REPLACE FUNCTION find_page(collection integer, seed_url text, address text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    wanted record := web_address(address);
    written text := (plain_address(address)).host;
    answer integer := first_page(collection, wanted.host,
        ARRAY['https://' || wanted.authority || wanted.path, 'http://' || wanted.authority || wanted.path]);
BEGIN
    IF answer IS NOT NULL OR wanted.host IS NULL OR wanted.authority <> written THEN
        RETURN answer;
    END IF;
    -- A host without its port means those that the job is at. With and without a dot behind its name, these are two pages.
    RETURN first_page(collection, wanted.host, (SELECT array_agg(w.scheme || a.authority || wanted.path ORDER BY s.number, w.scheme DESC)
        FROM catalog_rows c
        JOIN catalog_rows s ON s.kind = 2 AND (s.body -> 'seed' -> 'profiles')::jsonb ? (c.body -> 'spec' ->> 'id')
            AND strpos(lower(s.body -> 'seed' ->> 'url'), wanted.host) > 0
        JOIN LATERAL plain_address(s.body -> 'seed' ->> 'url') a ON a.host = written
        CROSS JOIN (VALUES ('https://'), ('http://')) w (scheme)
        WHERE c.kind = 0 AND c.number = find_page.collection));
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
    -- looks at the queue and works that out. It is never later than that: what is left may have been due for long.
    UPDATE queues q SET queued = q.queued + n.queued, done = q.done + n.done, failed = q.failed + n.failed,
        place = CASE WHEN s.ready THEN coalesce(q.place, second * 1000 << 20) END, first_due = s.first_due,
        opens = CASE WHEN NOT s.ready AND s.first_due IS NOT NULL THEN least(q.opens, s.first_due * 1000, second * 1000) END,
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
