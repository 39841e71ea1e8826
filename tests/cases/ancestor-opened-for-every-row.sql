-- The ancestor that rows go out as is opened for every row: if the transaction's own DDL has invalidated it, that
-- reads the catalogs, which notices that the subtransaction has been rolled back.
-- setup
CREATE TABLE root (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF root FOR VALUES FROM (MINVALUE) TO (3);
CREATE TABLE part2 PARTITION OF root FOR VALUES FROM (3) TO (MAXVALUE);
CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true);
-- session 1
BEGIN;
INSERT INTO root SELECT i, repeat('k', 1900) FROM generate_series(3, 60) i;
SAVEPOINT s;
ALTER TABLE root DETACH PARTITION part1;
INSERT INTO root SELECT i, repeat('k', 1900) FROM generate_series(200, 260) i;
ROLLBACK TO s;
COMMIT;
-- stream sql, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'on')
-- stream replication, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'on')
