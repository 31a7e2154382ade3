CREATE OR REPLACE FUNCTION first_page(collection integer, host text, names text[]) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT e.id FROM unnest(names) WITH ORDINALITY n (name, place)
        JOIN hosts h ON h.key = first_page.host AND h.owner = -1
        JOIN queues q ON q.collection = first_page.collection AND q.host = h.id
        JOIN entries e ON e.queue = q.id AND e.key = page_key(n.name)
        ORDER BY n.place LIMIT 1);
END $$;
