-- Who knows nothing of it takes what holds for all queues for a seed.
DELETE FROM catalog_rows WHERE kind = 3;
UPDATE catalog SET version = version + 1;
COMMENT ON TABLE catalog_rows IS 'Collections (kind 0), profiles (1) and seeds (2)';
COMMENT ON COLUMN catalog_rows.kind IS '0 collection, 1 profile, 2 seed';
