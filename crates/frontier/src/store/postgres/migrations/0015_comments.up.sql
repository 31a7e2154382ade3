-- What has no comment of its own yet: the sequences of columns that number themselves.

COMMENT ON SEQUENCE events_id_seq IS 'Numbers of events, in the order in which they were written';
COMMENT ON SEQUENCE fetches_id_seq IS 'Numbers of fetches, in the order in which they were written';
