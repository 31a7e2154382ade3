DROP TABLE receipts, notes, fetches, events, counters, entries, queues, hosts, catalog_rows, catalog;
DROP SEQUENCE tokens, host_numbers, queue_numbers, entry_numbers;
