-- What publishes a relation is looked up before the publications are loaded again: in a transaction that has been rolled
-- back the first notices it, and nothing is said of the publication that is missing.
-- setup
CREATE TABLE t (id int);
CREATE TABLE u (id int);
CREATE PUBLICATION other;
CREATE PUBLICATION p FOR TABLE t;
-- session 0
INSERT INTO t VALUES (1);
ALTER PUBLICATION other ADD TABLE u;
ALTER PUBLICATION other RENAME TO another;
CREATE SCHEMA invalidates_every_entry;
BEGIN;
INSERT INTO t VALUES (2);
PREPARE TRANSACTION 'gid';
ROLLBACK PREPARED 'gid';
-- stream sql: ("proto_version" '3', "publication_names" 'missing', "two_phase" 'on')
-- stream sql: ("proto_version" '3', "publication_names" 'p,missing', "two_phase" 'on')
