-- How addresses are read and pages are ranked: the same rules as in Rust, for who works by SQL.

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
