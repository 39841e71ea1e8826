-- Whether a relation is sent again after a stream that had it was prepared depends on the server's minor version.
-- setup
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE PUBLICATION p FOR TABLE t;
-- session 0
BEGIN;
INSERT INTO t SELECT i, repeat('x', 1900) FROM generate_series(1, 60) i;
PREPARE TRANSACTION 'gid';
INSERT INTO t VALUES (100);
COMMIT PREPARED 'gid';
INSERT INTO t VALUES (101);
-- stream sql, logical_decoding_work_mem=64kB: ("proto_version" '3', "publication_names" 'p', "streaming" 'true', "two_phase" 'true')
-- stream replication, two-phase slot, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'true')
