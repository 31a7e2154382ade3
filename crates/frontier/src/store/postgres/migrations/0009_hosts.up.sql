-- A dot behind the name of a host only says that the name is whole: the host is the same, and is known without it. Pages stay as they
-- are written.

ALTER FUNCTION web_address(text) RENAME TO written_address;
COMMENT ON FUNCTION written_address(text) IS 'The same as web_address, with the host as it is written';

CREATE FUNCTION web_address(address text, OUT url text, OUT identity text, OUT authority text, OUT host text, OUT path text)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    SELECT w.url, w.identity, w.authority, regexp_replace(w.host, '\.$', ''), w.path INTO url, identity, authority, host, path
    FROM written_address(address) w;
END $$;
COMMENT ON FUNCTION web_address(text) IS 'What a URL is requested as, what it is known by, its host with and without its port, and its path with its query; nothing where it is none, or not one that SQL can read';
