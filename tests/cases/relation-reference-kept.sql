-- The built-in plugin keeps the relation open that it has built an entry for: when the relation is then invalidated, it
-- is read again at once, which notices that the subtransaction has been rolled back.
-- setup
CREATE TABLE n (id int PRIMARY KEY, v text);
CREATE TABLE t (id int, v text);
CREATE PUBLICATION p FOR TABLE t WITH (publish = 'update, truncate');
CREATE PUBLICATION everything FOR TABLE n, t;
-- session 0
BEGIN;
INSERT INTO t VALUES (1, 'x');
SAVEPOINT s;
CREATE INDEX ON t (v);
INSERT INTO n SELECT i, repeat('x', 1750) FROM generate_series(80, 124) i;
ROLLBACK TO s;
-- stream replication, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'on')
-- stream sql, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'p', "streaming" 'on')
-- stream sql, logical_decoding_work_mem=64kB: ("proto_version" '2', "publication_names" 'everything', "streaming" 'on')
