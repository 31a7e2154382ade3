-- Each question about leases has an index that no other question can go by. While all of them had one condition in common, a server that
-- believed hardly anything to be leased took any of them for any question, and went through all that was leased.
DROP INDEX entries_token, entries_expiring;
CREATE UNIQUE INDEX entries_token ON entries (token) WHERE token IS NOT NULL;
CREATE INDEX entries_expiring ON entries (leased_until) WHERE leased_until IS NOT NULL;
COMMENT ON INDEX entries_token IS 'An entry by its lease';
COMMENT ON INDEX entries_expiring IS 'Which lease runs out next';
