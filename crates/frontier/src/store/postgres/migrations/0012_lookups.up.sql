-- A page is looked up by its queue and its key at once. While the queue was joined, a server that knew nothing of the tables yet went through all
-- pages of the queue for each that was added.
CREATE OR REPLACE FUNCTION first_page(collection integer, host text, names text[]) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_seqscan TO off AS $$
DECLARE
    its_queue integer := (SELECT q.id FROM queues q WHERE q.collection = first_page.collection
        AND q.host = (SELECT h.id FROM hosts h WHERE h.key = first_page.host AND h.owner = -1));
    its_key bytea;
    written text;
    answer  integer;
BEGIN
    FOREACH written IN ARRAY coalesce(names, '{}') LOOP
        its_key := page_key(written);
        SELECT e.id INTO answer FROM entries e WHERE e.queue = its_queue AND e.key = its_key;
        IF FOUND THEN
            RETURN answer;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
