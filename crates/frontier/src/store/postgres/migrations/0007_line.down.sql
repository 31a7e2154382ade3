ALTER TABLE queues ADD COLUMN turn bigint NOT NULL DEFAULT 0, ADD COLUMN ready boolean NOT NULL DEFAULT false,
    ADD COLUMN claimable boolean NOT NULL DEFAULT false, ADD COLUMN at bigint;
-- The next who claims looks at all of them.
UPDATE queues q SET ready = place IS NOT NULL, at = coalesce(place >> 20, opens), wake_at = least(wake_at, place >> 20, opens),
    turn = coalesce((SELECT (t.value ->> 1)::bigint FROM hosts h CROSS JOIN LATERAL json_array_elements(h.state -> 'turns') t
        WHERE h.id = q.host AND (t.value ->> 0)::integer = q.collection), 0);
ALTER TABLE queues DROP COLUMN place, DROP COLUMN opens;
COMMENT ON COLUMN queues.turn IS 'When it was last served; those with the lowest go first';
COMMENT ON COLUMN queues.ready IS 'Worked out: whether an entry is due';
COMMENT ON COLUMN queues.claimable IS 'Worked out: whether an entry is due and the host is open';
COMMENT ON COLUMN queues.at IS 'Worked out: when it is claimable, in milliseconds after 1970; null if nothing is queued';
COMMENT ON COLUMN queues.wake_at IS 'Worked out: when what is worked out changes by itself, in milliseconds after 1970';

ALTER TABLE queues DROP CONSTRAINT queues_host_collection_key, ADD UNIQUE (collection, host);
CREATE INDEX queues_of_host ON queues (host);
CREATE INDEX queues_claimable ON queues (collection, turn, id) WHERE claimable;
CREATE INDEX queues_claimable_all ON queues (turn, id) WHERE claimable;
CREATE INDEX queues_waiting ON queues (collection, ready, at, id) WHERE NOT claimable AND at IS NOT NULL;
COMMENT ON INDEX queues_collection_host_key IS 'The queue of a collection at a host';
COMMENT ON INDEX queues_of_host IS 'The queues of a host';
COMMENT ON INDEX queues_claimable IS 'For claims: what a collection can hand out, who was served longest ago first';
COMMENT ON INDEX queues_claimable_all IS 'The same over all collections';
COMMENT ON INDEX queues_waiting IS 'When a collection has something to hand out next';
COMMENT ON INDEX queues_to_wake IS 'The queues that change by themselves, in the order of time';

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
        ready = s.ready, claimable = q.claimable AND s.ready, first_due = s.first_due,
        at = CASE WHEN s.is_any THEN least(q.at, second * 1000) END,
        wake_at = CASE WHEN s.is_any THEN least(q.wake_at, q.at, second * 1000) END
    FROM (SELECT split_part(key, ' ', 2)::integer AS id,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0) AS queued,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0) AS done,
            coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0) AS failed
        FROM jsonb_each_text(noted) GROUP BY 1) n
    CROSS JOIN LATERAL (SELECT l.ready, l.first_due, l.ready OR l.first_due IS NOT NULL AS is_any FROM (SELECT
        EXISTS (SELECT 1 FROM entries e WHERE e.queue = n.id AND e.ready) AS ready,
        (SELECT min(e.due) FROM entries e WHERE e.queue = n.id AND e.state = 0 AND NOT e.ready) AS first_due OFFSET 0) l) s
    WHERE q.id = n.id;
    INSERT INTO counters AS c
    SELECT split_part(key, ' ', 1)::integer, pg_backend_pid() % 64, coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 0'), 0), 0,
        coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 2'), 0), coalesce(sum(value::integer) FILTER (WHERE key LIKE '% 3'), 0), 0, 0, 0, 0
    FROM jsonb_each_text(noted) GROUP BY 1 ORDER BY 1
    ON CONFLICT (collection, shard) DO UPDATE SET queued = c.queued + excluded.queued,
        done = c.done + excluded.done, failed = c.failed + excluded.failed;
    PERFORM pg_notify(current_schema() || '_news', '');
END $$;
