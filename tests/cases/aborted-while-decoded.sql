-- The first value of a type in an aborted transaction: looking the type up notices the abort before the row is sent.
-- setup
CREATE TABLE t (k numeric PRIMARY KEY, v text);
CREATE PUBLICATION p FOR ALL TABLES;
-- session 0
INSERT INTO t (k) VALUES (2);
BEGIN;
INSERT INTO t (k, v) SELECT i, repeat('x', 60) FROM generate_series(433, 732) i;
ROLLBACK;
BEGIN;
INSERT INTO t (k, v) SELECT i, repeat('x', 1900) FROM generate_series(433, 532) i;
ROLLBACK;
-- stream sql, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'true')
-- stream replication, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'true')
