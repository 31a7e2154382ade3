-- A page on which something was found is the one by the scheme that is written, if there is one, and else the one by the other.

CREATE OR REPLACE FUNCTION find_page(collection integer, seed_url text, address text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    wanted record := web_address(address);
    written text := (plain_address(address)).host;
    answer integer := first_page(collection, wanted.host, ARRAY[wanted.identity,
        CASE WHEN wanted.identity LIKE 'https:%' THEN 'http' ELSE 'https' END || substr(wanted.identity, strpos(wanted.identity, ':'))]);
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
