-- The ancestors of a partition are looked for when a publication makes them matter, and not before: it reads a catalog,
-- which notices that the transaction has been rolled back. A publication of all tables asks for them only if rows go
-- out as the root.
-- setup
CREATE TABLE root (id int) PARTITION BY LIST (id);
CREATE TABLE part PARTITION OF root FOR VALUES IN (1, 2);
CREATE PUBLICATION p FOR ALL TABLES;
CREATE PUBLICATION via_root FOR ALL TABLES WITH (publish_via_partition_root = true);
CREATE PUBLICATION of_table FOR TABLE root;
CREATE PUBLICATION other;
-- session 0
INSERT INTO root VALUES (1);
ALTER PUBLICATION other SET (publish = 'insert');
CREATE SCHEMA invalidates_every_entry;
BEGIN;
INSERT INTO root VALUES (2);
PREPARE TRANSACTION 'gid';
ROLLBACK PREPARED 'gid';
-- stream sql: ("proto_version" '3', "publication_names" 'p', "two_phase" 'on')
-- stream sql: ("proto_version" '3', "publication_names" 'via_root', "two_phase" 'on')
-- stream sql: ("proto_version" '3', "publication_names" 'of_table', "two_phase" 'on')
-- stream sql: ("proto_version" '3', "publication_names" 'p,of_table', "two_phase" 'on')
-- stream replication: ("proto_version" '3', "publication_names" 'p', "two_phase" 'on')
