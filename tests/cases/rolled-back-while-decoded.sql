-- The same in a prepared transaction that is rolled back before it is decoded.
-- setup
CREATE DOMAIN "Text Domain" AS text;
CREATE TYPE pair AS (a int, "B" text);
CREATE TABLE t (k numeric NOT NULL, pairs pair[], v varchar(20), d "Text Domain");
CREATE PUBLICATION p FOR ALL TABLES;
-- session 0
INSERT INTO t VALUES (2, ARRAY[ROW(1, 'x'), NULL]::pair[], NULL, repeat('x', 2500)), (3, NULL, NULL, 'y');
BEGIN;
INSERT INTO t VALUES (7, ARRAY[ROW(1, 'x'), NULL]::pair[], 'z', '');
PREPARE TRANSACTION 'gid 13';
ROLLBACK PREPARED 'gid 13';
-- stream sql: ("proto_version" '3', "publication_names" 'p', "two_phase" 'true')
-- stream advance: ("proto_version" '3', "publication_names" 'p', "two_phase" 'true')
-- stream sql, two-phase slot: ("proto_version" '1', "publication_names" 'p')
