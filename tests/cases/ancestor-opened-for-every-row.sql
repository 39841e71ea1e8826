-- The ancestor that rows go out as is opened for every row: if DDL has invalidated it, that reads the catalogs, which
-- notices that the transaction has been rolled back.
-- setup
CREATE TABLE root (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF root FOR VALUES FROM (MINVALUE) TO (3);
CREATE TABLE part2 PARTITION OF root FOR VALUES FROM (3) TO (MAXVALUE);
CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true);
-- session 0
INSERT INTO root VALUES (37, 'a');
BEGIN;
ALTER TABLE root DETACH PARTITION part1;
INSERT INTO root VALUES (48, 'b');
COMMIT;
BEGIN;
INSERT INTO root VALUES (54, 'c');
UPDATE root SET v = 'd' WHERE id = 37;
DELETE FROM root WHERE id = 48;
PREPARE TRANSACTION 'gid';
ROLLBACK PREPARED 'gid';
-- stream sql: ("proto_version" '3', "publication_names" 'p', "two_phase" 'on')
-- stream replication: ("proto_version" '3', "publication_names" 'p', "two_phase" 'on')
