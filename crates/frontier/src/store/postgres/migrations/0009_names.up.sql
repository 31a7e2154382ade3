-- Names that are written as xn-- stand for others in other scripts, and not every such text does. Which do is a table of its own, which SQL does
-- not have: it takes those that the queue knows, for Forager has judged them.

ALTER FUNCTION web_address(text) RENAME TO plain_address;
COMMENT ON FUNCTION plain_address(text) IS 'As web_address, for every name that is written as xn--, also where there can be none';

CREATE FUNCTION web_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    plain record := plain_address(address);
BEGIN
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
    IF address.host IS NULL OR address.identity <> 'http://' || address.host || '/' THEN
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
