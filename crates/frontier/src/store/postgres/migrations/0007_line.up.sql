-- Queues stand in line: an index in that order has those that can be claimed before those whose hosts are closed, so that time
-- alone opens a host and nobody has to write that down.

ALTER TABLE queues ADD COLUMN place bigint, ADD COLUMN opens bigint;
-- Collections that wait for the same host go in the order of their turns.
UPDATE queues q SET opens = CASE WHEN NOT ready THEN at END, place = CASE WHEN ready THEN greatest(turn, (at << 20)
    + CASE WHEN turn = 0 THEN 0 ELSE least(1023, 1 + (SELECT count(*) FROM queues o WHERE o.host = q.host AND o.turn > 0 AND o.turn < q.turn)) END) END;
-- With the indexes that have one of them.
ALTER TABLE queues DROP COLUMN turn, DROP COLUMN ready, DROP COLUMN claimable, DROP COLUMN at;
COMMENT ON COLUMN queues.place IS 'Worked out: its place in line, if an entry is due: the milliseconds after 1970 since when it can be claimed, or will be, times 2^20, and what tells turns of one millisecond apart. The lowest go first';
COMMENT ON COLUMN queues.opens IS 'Worked out: when it can be claimed, in milliseconds after 1970, if no entry is due by now and one will be';
COMMENT ON COLUMN queues.wake_at IS 'Worked out: when its entries are to be looked at, for one is due or its score steps, in milliseconds after 1970';

CREATE INDEX queues_in_line ON queues (collection, place, id) WHERE place IS NOT NULL;
CREATE INDEX queues_in_line_all ON queues (place, id) WHERE place IS NOT NULL;
CREATE INDEX queues_waiting ON queues (collection, opens, id) WHERE opens IS NOT NULL;
COMMENT ON INDEX queues_in_line IS 'For claims: what a collection can hand out, who is open longest first, and after them who opens next';
COMMENT ON INDEX queues_in_line_all IS 'The same over all collections';
COMMENT ON INDEX queues_waiting IS 'When a collection with nothing due has something to hand out';
COMMENT ON INDEX queues_to_wake IS 'The queues whose entries are to be looked at, in the order of time';

-- One index for what took two.
ALTER TABLE queues DROP CONSTRAINT queues_collection_host_key, ADD UNIQUE (host, collection);
DROP INDEX queues_of_host;
COMMENT ON INDEX queues_host_collection_key IS 'The queues of a host, and the one of a collection there';

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
