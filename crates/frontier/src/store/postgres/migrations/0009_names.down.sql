DROP FUNCTION web_address(text);
ALTER FUNCTION plain_address(text) RENAME TO web_address;
COMMENT ON FUNCTION web_address(text) IS 'What a URL is requested as, what it is known by, its host with and without its port, and its path with its query; nothing where it is none, or not one that SQL can read';
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
