-- The queue. What each row means is decided by the engine; the columns that are worked out from others
-- say so, and are written anew with each change, by whoever holds the lock of the host.

CREATE TABLE catalog (
    is_only         boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version         bigint NOT NULL,
    next_collection integer NOT NULL
);
COMMENT ON TABLE catalog IS 'Counts the changes of catalog_rows, so that every process knows whether its copy is the latest';
COMMENT ON COLUMN catalog.is_only IS 'Always true: there is one row';
COMMENT ON COLUMN catalog.version IS 'Goes up with each change';
COMMENT ON COLUMN catalog.next_collection IS 'The number of the next collection';
COMMENT ON INDEX catalog_pkey IS 'Keeps it at one row';
INSERT INTO catalog (version, next_collection) VALUES (0, 0);

CREATE TABLE catalog_rows (
    kind   smallint NOT NULL,
    number integer NOT NULL,
    body   json NOT NULL,
    PRIMARY KEY (kind, number)
);
COMMENT ON TABLE catalog_rows IS 'Collections (kind 0), profiles (1) and seeds (2)';
COMMENT ON COLUMN catalog_rows.kind IS '0 collection, 1 profile, 2 seed';
COMMENT ON COLUMN catalog_rows.number IS 'Its number among those of its kind';
COMMENT ON COLUMN catalog_rows.body IS 'How it was written, and what Forager keeps beside';
COMMENT ON INDEX catalog_rows_pkey IS 'A row by its kind and number';

CREATE SEQUENCE entry_numbers MINVALUE 0 MAXVALUE 2147483647;
CREATE SEQUENCE queue_numbers MINVALUE 0 MAXVALUE 2147483647;
CREATE SEQUENCE host_numbers MINVALUE 0 MAXVALUE 2147483647;
CREATE SEQUENCE tokens;
COMMENT ON SEQUENCE entry_numbers IS 'Numbers of entries, and of pages that have no task';
COMMENT ON SEQUENCE queue_numbers IS 'Numbers of queues';
COMMENT ON SEQUENCE host_numbers IS 'Numbers of hosts';
COMMENT ON SEQUENCE tokens IS 'Numbers of leases: none is ever given twice';

CREATE TABLE hosts (
    id    integer PRIMARY KEY,
    key   text NOT NULL,
    owner integer NOT NULL DEFAULT -1,
    state json NOT NULL DEFAULT '{}',
    UNIQUE (key, owner)
) WITH (fillfactor = 70);
COMMENT ON TABLE hosts IS 'What is asked at a polite pace. Its row is the lock of all that belongs to it';
COMMENT ON COLUMN hosts.id IS 'Its number, from host_numbers';
COMMENT ON COLUMN hosts.key IS 'Its name; in a plain collection the key of the queue';
COMMENT ON COLUMN hosts.owner IS 'The plain collection that has it for itself; -1 if it is shared';
COMMENT ON COLUMN hosts.state IS 'Delays, back-off, counters and settings';
COMMENT ON INDEX hosts_pkey IS 'A host by its number';
COMMENT ON INDEX hosts_key_owner_key IS 'A host by its name';

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
    seen       bigint NOT NULL DEFAULT 0,
    UNIQUE (collection, host)
) WITH (fillfactor = 70);
COMMENT ON TABLE queues IS 'The entries of one collection at one host';
COMMENT ON COLUMN queues.id IS 'Its number, from queue_numbers';
COMMENT ON COLUMN queues.collection IS 'The number of the collection in catalog_rows';
COMMENT ON COLUMN queues.host IS 'The number of the host';
COMMENT ON COLUMN queues.queued IS 'How many entries wait';
COMMENT ON COLUMN queues.leased IS 'How many are being fetched';
COMMENT ON COLUMN queues.done IS 'How many are done';
COMMENT ON COLUMN queues.failed IS 'How many were given up';
COMMENT ON COLUMN queues.turn IS 'When it was last served; those with the lowest go first';
COMMENT ON COLUMN queues.ready IS 'Worked out: whether an entry is due';
COMMENT ON COLUMN queues.claimable IS 'Worked out: whether an entry is due and the host is open';
COMMENT ON COLUMN queues.at IS 'Worked out: when it is claimable, in milliseconds after 1970; null if nothing is queued';
COMMENT ON COLUMN queues.first_due IS 'Worked out: when the first entry is due that is not yet, in seconds after 1970';
COMMENT ON COLUMN queues.wake_at IS 'Worked out: when what is worked out changes by itself, in milliseconds after 1970';
COMMENT ON COLUMN queues.seen IS 'When it was last worked out, in milliseconds after 1970: for whoever comes next it is not earlier';
CREATE INDEX queues_of_host ON queues (host);
CREATE INDEX queues_claimable ON queues (collection, turn, id) WHERE claimable;
CREATE INDEX queues_claimable_all ON queues (turn, id) WHERE claimable;
CREATE INDEX queues_waiting ON queues (collection, ready, at, id) WHERE NOT claimable AND at IS NOT NULL;
CREATE INDEX queues_to_wake ON queues (wake_at) WHERE wake_at IS NOT NULL;
COMMENT ON INDEX queues_pkey IS 'A queue by its number';
COMMENT ON INDEX queues_collection_host_key IS 'The queue of a collection at a host';
COMMENT ON INDEX queues_of_host IS 'The queues of a host';
COMMENT ON INDEX queues_claimable IS 'For claims: what a collection can hand out, who was served longest ago first';
COMMENT ON INDEX queues_claimable_all IS 'The same over all collections';
COMMENT ON INDEX queues_waiting IS 'When a collection has something to hand out next';
COMMENT ON INDEX queues_to_wake IS 'The queues that change by themselves, in the order of time';

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
COMMENT ON COLUMN entries.id IS 'Its number, from entry_numbers: also that of the page and of the task';
COMMENT ON COLUMN entries.queue IS 'The number of its queue';
COMMENT ON COLUMN entries.key IS 'The first 16 bytes of the SHA-256 of its identity: the text by which it is one page';
COMMENT ON COLUMN entries.url IS 'What is requested';
COMMENT ON COLUMN entries.identity IS 'The identity, where it is not the URL';
COMMENT ON COLUMN entries.state IS '0 queued, 1 leased, 2 done, 3 failed';
COMMENT ON COLUMN entries.ready IS 'Worked out: whether it is queued and due';
COMMENT ON COLUMN entries.priority IS 'In thousandths';
COMMENT ON COLUMN entries.due IS 'In seconds after 1970';
COMMENT ON COLUMN entries.tie IS 'What decides among equal priorities: the due time, or -1 for the order of arrival';
COMMENT ON COLUMN entries.seed IS 'The number of the seed that owns it';
COMMENT ON COLUMN entries.depth IS 'How many links it is away from its seed';
COMMENT ON COLUMN entries.hops IS 'How many of these led to another domain';
COMMENT ON COLUMN entries.last_fetch IS 'When it was last fetched, in seconds after 1970';
COMMENT ON COLUMN entries.risk IS 'How urgent its changes are: 0 low, 1 medium, 2 high, 3 critical';
COMMENT ON COLUMN entries.is_hub IS 'Whether it lists other pages';
COMMENT ON COLUMN entries.harvest IS 'The harvest that last reached it: each start of a seed begins one';
COMMENT ON COLUMN entries.step IS 'When its score steps, in milliseconds after 1970';
COMMENT ON COLUMN entries.token IS 'The number of its lease';
COMMENT ON COLUMN entries.leased_from IS 'When it was leased, in milliseconds after 1970';
COMMENT ON COLUMN entries.leased_until IS 'When its lease runs out, in milliseconds after 1970';
COMMENT ON COLUMN entries.created IS 'When it was found, in seconds after 1970';
COMMENT ON COLUMN entries.how IS 'How it was found: 0 seed, 1 link, 2 sitemap, 3 redirect, 4 other, 5 listing';
COMMENT ON COLUMN entries.source IS 'The number of the entry that it was found on';
COMMENT ON COLUMN entries.length IS 'How many fetches it has left; null if that is not limited';
COMMENT ON COLUMN entries.tries IS 'Failures and lost leases in a row';
COMMENT ON COLUMN entries.record IS 'What was learned of it; null while that is only how it was found';
CREATE INDEX entries_ready ON entries (queue, priority DESC, tie, id) WHERE ready;
CREATE INDEX entries_oldest ON entries (queue, due, id) WHERE ready AND tie >= 0;
CREATE INDEX entries_waiting ON entries (queue, due) WHERE state = 0 AND NOT ready;
CREATE INDEX entries_stepping ON entries (queue, step) WHERE state = 0 AND step IS NOT NULL;
CREATE UNIQUE INDEX entries_token ON entries (token) WHERE state = 1;
CREATE INDEX entries_leased ON entries (queue) WHERE state = 1;
CREATE INDEX entries_expiring ON entries (leased_until) WHERE state = 1;
COMMENT ON INDEX entries_pkey IS 'An entry by its number';
COMMENT ON INDEX entries_queue_key_key IS 'An entry by what it is known by';
COMMENT ON INDEX entries_ready IS 'What a queue hands out, highest priority first';
COMMENT ON INDEX entries_oldest IS 'What is due longest, where that decides among equals';
COMMENT ON INDEX entries_waiting IS 'What of a queue is due next';
COMMENT ON INDEX entries_stepping IS 'Whose score steps next';
COMMENT ON INDEX entries_token IS 'An entry by its lease';
COMMENT ON INDEX entries_leased IS 'What of a queue is being fetched';
COMMENT ON INDEX entries_expiring IS 'Which lease runs out next';

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
COMMENT ON COLUMN counters.collection IS 'The number of the collection';
COMMENT ON COLUMN counters.shard IS 'One of several rows, so that many can count at once';
COMMENT ON COLUMN counters.queued IS 'Entries that wait';
COMMENT ON COLUMN counters.leased IS 'Entries that are being fetched';
COMMENT ON COLUMN counters.done IS 'Entries that are done';
COMMENT ON COLUMN counters.failed IS 'Entries that were given up';
COMMENT ON COLUMN counters.fetches IS 'Fetches that were reported';
COMMENT ON COLUMN counters.bytes IS 'Bytes that were read';
COMMENT ON COLUMN counters.changes IS 'Changes that were found';
COMMENT ON COLUMN counters.skipped IS 'Entries that were taken out of the queue unfetched, because they were out of scope';
COMMENT ON INDEX counters_pkey IS 'The rows of a collection';

CREATE TABLE events (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint UNIQUE,
    body     json NOT NULL
);
COMMENT ON TABLE events IS 'What happened. Whoever reads numbers the new ones first, so that none with a lower number comes later';
CREATE INDEX events_to_number ON events (id) WHERE position IS NULL;
COMMENT ON COLUMN events.id IS 'In which order they were written';
COMMENT ON COLUMN events.position IS 'In which order they are read; null until somebody reads';
COMMENT ON COLUMN events.body IS 'The event, as `forager events` reads it';
COMMENT ON INDEX events_pkey IS 'A row by its number';
COMMENT ON INDEX events_position_key IS 'Reading on from a place';
COMMENT ON INDEX events_to_number IS 'Those that nobody has read yet';

CREATE TABLE fetches (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint UNIQUE,
    body     json NOT NULL
);
COMMENT ON TABLE fetches IS 'The fetches that were made, for the audit; numbered like events';
CREATE INDEX fetches_to_number ON fetches (id) WHERE position IS NULL;
COMMENT ON COLUMN fetches.id IS 'In which order they were written';
COMMENT ON COLUMN fetches.position IS 'In which order they are read; null until somebody reads';
COMMENT ON COLUMN fetches.body IS 'The fetch, as `forager audit` reads it';
COMMENT ON INDEX fetches_pkey IS 'A row by its number';
COMMENT ON INDEX fetches_position_key IS 'Reading on from a place';
COMMENT ON INDEX fetches_to_number IS 'Those that nobody has read yet';

CREATE TABLE notes (
    hash  bytea PRIMARY KEY,
    key   bytea NOT NULL,
    value bytea NOT NULL
);
COMMENT ON TABLE notes IS 'Values under keys: copies of robots.txt, texts of pages';
COMMENT ON COLUMN notes.hash IS 'The first 16 bytes of the SHA-256 of the key';
COMMENT ON COLUMN notes.key IS 'What it is found by';
COMMENT ON COLUMN notes.value IS 'What is kept';
COMMENT ON INDEX notes_pkey IS 'A note by the hash of its key';

CREATE TABLE receipts (
    slot    bigint PRIMARY KEY,
    call    bigint NOT NULL,
    written timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 30);
COMMENT ON TABLE receipts IS 'By which a process whose connection is lost finds out whether its last call was committed';
COMMENT ON COLUMN receipts.slot IS 'A row that one call at a time uses';
COMMENT ON COLUMN receipts.call IS 'The last call that used it and was committed';
COMMENT ON COLUMN receipts.written IS 'When that was; rows of processes that are gone are removed after a week';
COMMENT ON INDEX receipts_pkey IS 'The row of a call';

-- Rows that change all the time leave dead ones behind, which every claim has to step over: they are swept soon.
ALTER TABLE queues SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE hosts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE entries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE counters SET (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE receipts SET (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
