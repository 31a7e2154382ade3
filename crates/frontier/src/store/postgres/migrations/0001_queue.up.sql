-- The queue. What each row means is decided by the engine; the columns that are worked out from others
-- say so, and are written anew with each change, by whoever holds the lock of the host.

CREATE TABLE catalog (
    is_only         boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version         bigint NOT NULL,
    next_collection integer NOT NULL
);
COMMENT ON TABLE catalog IS 'Counts the changes of catalog_rows, so that every process knows whether its copy is the latest';
INSERT INTO catalog (version, next_collection) VALUES (0, 0);

CREATE TABLE catalog_rows (
    kind   smallint NOT NULL,
    number integer NOT NULL,
    body   json NOT NULL,
    PRIMARY KEY (kind, number)
);
COMMENT ON TABLE catalog_rows IS 'Collections (kind 0), profiles (1) and seeds (2)';

CREATE SEQUENCE entry_numbers MINVALUE 0 MAXVALUE 2147483647;
CREATE SEQUENCE queue_numbers MINVALUE 0 MAXVALUE 2147483647;
CREATE SEQUENCE host_numbers MINVALUE 0 MAXVALUE 2147483647;
CREATE SEQUENCE tokens;

CREATE TABLE hosts (
    id    integer PRIMARY KEY,
    key   text NOT NULL,
    owner integer NOT NULL DEFAULT -1,
    state json NOT NULL DEFAULT '{}',
    UNIQUE (key, owner)
) WITH (fillfactor = 70);
COMMENT ON TABLE hosts IS 'What is asked at a polite pace. Its row is the lock of all that belongs to it';
COMMENT ON COLUMN hosts.owner IS 'The plain collection that has it for itself; -1 if it is shared';
COMMENT ON COLUMN hosts.state IS 'Delays, back-off, counters and settings';

CREATE TABLE queues (
    id         integer PRIMARY KEY,
    collection integer NOT NULL,
    host       integer NOT NULL,
    queued     bigint NOT NULL DEFAULT 0,
    leased     bigint NOT NULL DEFAULT 0,
    done       bigint NOT NULL DEFAULT 0,
    failed     bigint NOT NULL DEFAULT 0,
    turn       bigint NOT NULL DEFAULT 0,
    ready      boolean NOT NULL DEFAULT false,
    claimable  boolean NOT NULL DEFAULT false,
    at         bigint,
    first_due  bigint,
    wake_at    bigint,
    UNIQUE (collection, host)
) WITH (fillfactor = 70);
COMMENT ON TABLE queues IS 'The entries of one collection at one host';
COMMENT ON COLUMN queues.turn IS 'When it was last served; those with the lowest go first';
COMMENT ON COLUMN queues.ready IS 'Worked out: whether an entry is due';
COMMENT ON COLUMN queues.claimable IS 'Worked out: whether an entry is due and the host is open';
COMMENT ON COLUMN queues.at IS 'Worked out: when it is claimable, in milliseconds after 1970; null if nothing is queued';
COMMENT ON COLUMN queues.first_due IS 'Worked out: when the first entry is due that is not yet, in seconds after 1970';
COMMENT ON COLUMN queues.wake_at IS 'Worked out: when what is worked out changes by itself, in milliseconds after 1970';
CREATE INDEX queues_of_host ON queues (host);
CREATE INDEX queues_claimable ON queues (collection, turn, id) WHERE claimable;
CREATE INDEX queues_claimable_all ON queues (turn, id) WHERE claimable;
CREATE INDEX queues_waiting ON queues (collection, ready, at, id) WHERE NOT claimable AND at IS NOT NULL;
CREATE INDEX queues_to_wake ON queues (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE entries (
    id           integer PRIMARY KEY,
    queue        integer NOT NULL,
    key          bytea NOT NULL,
    url          text NOT NULL,
    identity     text,
    state        smallint NOT NULL DEFAULT 0,
    ready        boolean NOT NULL,
    priority     integer NOT NULL,
    due          bigint NOT NULL,
    tie          bigint NOT NULL,
    seed         integer,
    depth        integer NOT NULL,
    hops         smallint NOT NULL,
    last_fetch   bigint,
    risk         smallint NOT NULL,
    is_hub       boolean NOT NULL,
    harvest      smallint NOT NULL,
    step         bigint,
    token        bigint,
    leased_from  bigint,
    leased_until bigint,
    created      bigint NOT NULL,
    how          smallint NOT NULL,
    source       integer,
    length       integer,
    tries        integer NOT NULL DEFAULT 0,
    record       json,
    UNIQUE (queue, key)
) WITH (fillfactor = 85);
COMMENT ON TABLE entries IS 'A URL of a collection: where it stands, and what was learned of it';
COMMENT ON COLUMN entries.key IS 'The first 16 bytes of the SHA-256 of its identity: the text by which it is one page';
COMMENT ON COLUMN entries.identity IS 'The identity, where it is not the URL';
COMMENT ON COLUMN entries.state IS '0 queued, 1 leased, 2 done, 3 failed';
COMMENT ON COLUMN entries.ready IS 'Worked out: whether it is queued and due';
COMMENT ON COLUMN entries.priority IS 'In thousandths';
COMMENT ON COLUMN entries.due IS 'In seconds after 1970';
COMMENT ON COLUMN entries.tie IS 'What decides among equal priorities: the due time, or -1 for the order of arrival';
COMMENT ON COLUMN entries.step IS 'When its score steps, in milliseconds after 1970';
COMMENT ON COLUMN entries.tries IS 'Failures and lost leases in a row';
COMMENT ON COLUMN entries.record IS 'What was learned of it; null while that is only how it was found';
CREATE INDEX entries_ready ON entries (queue, priority DESC, tie, id) WHERE ready;
CREATE INDEX entries_oldest ON entries (queue, due, id) WHERE ready AND tie >= 0;
CREATE INDEX entries_waiting ON entries (queue, due) WHERE state = 0 AND NOT ready;
CREATE INDEX entries_stepping ON entries (queue, step) WHERE state = 0 AND step IS NOT NULL;
CREATE UNIQUE INDEX entries_token ON entries (token) WHERE state = 1;
CREATE INDEX entries_leased ON entries (queue) WHERE state = 1;
CREATE INDEX entries_expiring ON entries (leased_until) WHERE state = 1;

CREATE TABLE counters (
    collection integer NOT NULL,
    shard      integer NOT NULL,
    queued     bigint NOT NULL,
    leased     bigint NOT NULL,
    done       bigint NOT NULL,
    failed     bigint NOT NULL,
    fetches    bigint NOT NULL,
    bytes      bigint NOT NULL,
    changes    bigint NOT NULL,
    skipped    bigint NOT NULL,
    PRIMARY KEY (collection, shard)
) WITH (fillfactor = 50);
COMMENT ON TABLE counters IS 'What is counted of each collection: the sum over its shards, so that nobody waits for another to count';

CREATE TABLE events (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint UNIQUE,
    body     json NOT NULL
);
COMMENT ON TABLE events IS 'What happened. Whoever reads numbers the new ones first, so that none with a lower number comes later';
CREATE INDEX events_to_number ON events (id) WHERE position IS NULL;

CREATE TABLE fetches (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint UNIQUE,
    body     json NOT NULL
);
COMMENT ON TABLE fetches IS 'The fetches that were made, for the audit; numbered like events';
CREATE INDEX fetches_to_number ON fetches (id) WHERE position IS NULL;

CREATE TABLE notes (
    hash  bytea PRIMARY KEY,
    key   bytea NOT NULL,
    value bytea NOT NULL
);
COMMENT ON TABLE notes IS 'Values under keys: copies of robots.txt, texts of pages';

-- Rows that change all the time leave dead ones behind, which every claim has to step over: they are swept soon.
ALTER TABLE queues SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE hosts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE entries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE counters SET (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
