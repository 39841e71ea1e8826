-- The ancestor that rows go out as is opened for every row: if the transaction's own DDL has invalidated it, that
-- reads the catalogs, which notices that the subtransaction has been rolled back.
-- since 17
-- setup
CREATE TABLE root (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF root FOR VALUES FROM (MINVALUE) TO (3);
CREATE TABLE part2 PARTITION OF root FOR VALUES FROM (3) TO (MAXVALUE);
CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true);
-- session 1
BEGIN;
ALTER TABLE root DETACH PARTITION part1;
DO $$BEGIN FOR i IN 3..82 LOOP BEGIN INSERT INTO root VALUES (i, 'k'); IF i % 3 = 0 THEN RAISE EXCEPTION 'no'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END$$;
COMMIT;
-- stream sql, debug_logical_replication_streaming=immediate: ("proto_version" '2', "publication_names" 'p', "streaming" 'on')
