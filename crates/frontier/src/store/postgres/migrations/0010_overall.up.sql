-- What clients set for all queues (SetActive, SetDelay without a key) is a row of the catalog, so that every call knows it.
COMMENT ON TABLE catalog_rows IS 'Collections (kind 0), profiles (1), seeds (2), and what holds for all queues (3)';
COMMENT ON COLUMN catalog_rows.kind IS '0 collection, 1 profile, 2 seed, 3 what holds for all queues';
