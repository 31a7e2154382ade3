DROP INDEX entries_token, entries_expiring;
CREATE UNIQUE INDEX entries_token ON entries (token) WHERE state = 1;
CREATE INDEX entries_expiring ON entries (leased_until) WHERE state = 1;
COMMENT ON INDEX entries_token IS 'An entry by its lease';
COMMENT ON INDEX entries_expiring IS 'Which lease runs out next';
