//! What happens to tables and publications: both plugins send the same bytes for it.

use std::process::ExitCode;

use anyhow::Result;
use pgoutput_tests::{Differential, Options, Settings, Test, runner, tests};

fn main() -> ExitCode {
    runner::main(tests![
        replica_identities,
        toasted_values,
        columns_come_and_go,
        columns_up_to_the_limit,
        truncates,
        publications,
        catalog_changes_between_rows,
        client_encodings,
        character_without_equivalent,
        messages,
        origins,
        subtransactions,
        unpublishable_tables,
        partitions,
        odd_names,
        large_value,
        streamed,
        prepared,
        subtransaction_of_an_aborted_transaction,
    ])
}

/// Runs a workload for protocol 1 as text and as binary, and wants messages of these kinds.
fn compare(test: &Test, setup: &str, workload: &str, kinds: &str) -> Result<()> {
    let cluster = test.cluster()?;
    Differential::with_setup(&cluster, setup)?
        .options_and_binary(Options::new(1, "p"))
        .run_script(workload)?
        .expect(kinds)
}

fn replica_identities(test: &Test) -> Result<()> {
    let mut setup = String::new();
    let mut workload = String::new();
    for (table, identity) in
        [("a", "DEFAULT"), ("b", "FULL"), ("c", "USING INDEX c_index"), ("d", "NOTHING"), ("e", "DEFAULT")]
    {
        let key = if table == "e" { "int" } else { "int PRIMARY KEY" };
        setup += &format!(
            "CREATE TABLE {table} (v text, id {key}, x int NOT NULL, y text NOT NULL);
             CREATE UNIQUE INDEX {table}_index ON {table} (y, x);
             ALTER TABLE {table} REPLICA IDENTITY {identity};"
        );
        // Without an identity, updates and deletes are refused when they are published.
        workload += &format!(
            "BEGIN; INSERT INTO {table} SELECT 'v', i, i, 'y' || i FROM generate_series(1, 6) i; COMMIT;
             DO $$ BEGIN
                 UPDATE {table} SET v = 'w' WHERE id < 3;
                 UPDATE {table} SET v = NULL, id = id + 10 WHERE id = 3;
                 UPDATE {table} SET x = x + 10 WHERE id = 4;
                 UPDATE {table} SET y = 'changed', id = 50 WHERE id = 5;
                 UPDATE {table} SET y = y, id = id;
                 DELETE FROM {table} WHERE id <> 1;
             EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END $$;"
        );
    }
    setup += "CREATE PUBLICATION p FOR ALL TABLES";
    compare(test, &setup, &workload, "BRIUDC")
}

fn toasted_values(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE FUNCTION noise(n int) RETURNS text LANGUAGE sql AS
             $$ SELECT string_agg(md5(n::text || i), '') FROM generate_series(1, n) i $$;
         CREATE TABLE t (id int PRIMARY KEY, a text, b text, c bytea, v int);
         ALTER TABLE t ALTER a SET STORAGE EXTERNAL;
         CREATE TABLE f (LIKE t INCLUDING ALL);
         ALTER TABLE f REPLICA IDENTITY FULL;
         CREATE TABLE k (a text PRIMARY KEY, v int);
         ALTER TABLE k ALTER a SET STORAGE EXTERNAL;
         CREATE PUBLICATION p FOR ALL TABLES",
        "INSERT INTO t VALUES (1, repeat('x', 5000), repeat('compressed inline ', 200), '\\x00', 1),
                              (2, noise(300), noise(400), convert_to(noise(500), 'UTF8'), 1), (3, 'x', 'y', 'z', 1);
         INSERT INTO f SELECT * FROM t;
         INSERT INTO k VALUES (repeat('k', 2100), 1);
         UPDATE t SET v = 2;
         UPDATE f SET v = 2;
         UPDATE k SET v = 2;
         UPDATE t SET a = noise(301), v = 3;
         UPDATE f SET b = noise(301), v = 3;
         UPDATE k SET a = repeat('l', 2100);
         UPDATE t SET id = id + 10;
         UPDATE f SET id = id + 10, c = NULL;
         UPDATE t SET b = b || '+';
         DELETE FROM t;
         DELETE FROM f;
         DELETE FROM k",
        "BRIUDC",
    )
}

fn columns_come_and_go(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE TABLE t (gone int, id int PRIMARY KEY, v text, g int GENERATED ALWAYS AS (id * 2) STORED);
         INSERT INTO t VALUES (1, 1, 'before'), (1, 2, 'before');
         ALTER TABLE t DROP gone;
         ALTER TABLE t ADD d text NOT NULL DEFAULT 'missing', ADD n numeric DEFAULT 1.50;
         CREATE TABLE none ();
         CREATE PUBLICATION p FOR ALL TABLES",
        "UPDATE t SET v = 'after' WHERE id = 1;
         INSERT INTO none DEFAULT VALUES;
         INSERT INTO t VALUES (3, 'new');
         ALTER TABLE t DROP v;
         UPDATE t SET n = 2;
         ALTER TABLE t ADD e int[] DEFAULT '{1,NULL}';
         UPDATE t SET d = 'x';
         DELETE FROM t",
        "BRIUDC",
    )
}

fn columns_up_to_the_limit(test: &Test) -> Result<()> {
    let columns: Vec<_> = (2..=1600).map(|i| format!("c{i} bool")).collect();
    compare(
        test,
        &format!(
            "CREATE TABLE t (c1 int PRIMARY KEY, {}); CREATE PUBLICATION p FOR TABLE t",
            columns.join(", ")
        ),
        "INSERT INTO t VALUES (1, true, NULL, false);
         UPDATE t SET c1600 = true;
         DELETE FROM t",
        "BRIUDC",
    )
}

fn truncates(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE TABLE a (id serial PRIMARY KEY);
         CREATE TABLE b (id int REFERENCES a);
         CREATE TABLE c (id int);
         CREATE TABLE outside (id int REFERENCES a);
         CREATE PUBLICATION p FOR TABLE a, b, c;
         CREATE PUBLICATION q FOR TABLE c WITH (publish = 'insert')",
        "BEGIN; TRUNCATE c; COMMIT;
         BEGIN; TRUNCATE a CASCADE; COMMIT;
         BEGIN; TRUNCATE c, b RESTART IDENTITY; TRUNCATE a, c RESTART IDENTITY CASCADE; COMMIT;
         BEGIN; TRUNCATE outside; COMMIT;
         BEGIN; INSERT INTO c VALUES (1); TRUNCATE c, outside; COMMIT",
        "BRITC",
    )
}

fn publications(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE SCHEMA s;
         CREATE TABLE a (id int PRIMARY KEY, v int);
         CREATE TABLE s.a (id int PRIMARY KEY, v int);
         CREATE TABLE b (id int PRIMARY KEY, v int);
         CREATE PUBLICATION i FOR TABLE a WITH (publish = 'insert');
         CREATE PUBLICATION u FOR TABLE a, b WITH (publish = 'update, truncate');
         CREATE PUBLICATION d FOR ALL TABLES WITH (publish = 'delete');
         CREATE PUBLICATION s FOR TABLES IN SCHEMA s;
         CREATE PUBLICATION n FOR ALL TABLES WITH (publish = '');
         CREATE PUBLICATION \"Odd, \"\"name\" FOR TABLE b",
    )?;
    for names in ["i", "u", "d", "s", "i,u", "u, d,s", "N, i", "\"Odd, \"\"name\",n", "i,i"] {
        differential = differential.options_and_binary(Options::new(1, names));
    }
    let seen = differential.run_script(
        "BEGIN; INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO s.a VALUES (1, 1); INSERT INTO b VALUES (1, 1); COMMIT;
         BEGIN; UPDATE a SET v = 3; UPDATE s.a SET id = 4; UPDATE b SET v = 3; COMMIT;
         BEGIN; ALTER PUBLICATION i ADD TABLE b; INSERT INTO b VALUES (5, 5); COMMIT;
         BEGIN; ALTER PUBLICATION u SET (publish = 'insert'); INSERT INTO a VALUES (6, 6); COMMIT;
         BEGIN; ALTER PUBLICATION s SET TABLES IN SCHEMA public; INSERT INTO a VALUES (7, 7); INSERT INTO s.a VALUES (7, 7); COMMIT;
         BEGIN; ALTER PUBLICATION i DROP TABLE b; INSERT INTO b VALUES (8, 8); COMMIT;
         BEGIN; ALTER PUBLICATION d RENAME TO e; ALTER PUBLICATION e RENAME TO d; DELETE FROM a; COMMIT;
         BEGIN; DELETE FROM s.a; TRUNCATE a, b; COMMIT",
    )?;
    seen.expect("BRIUDTC")
}

fn catalog_changes_between_rows(test: &Test) -> Result<()> {
    let changes = [
        "ALTER TABLE t ADD w int DEFAULT 5",
        "ALTER TABLE t RENAME w TO \"W w\"",
        "ALTER TABLE t ALTER \"W w\" TYPE text",
        "ALTER TABLE t DROP \"W w\"",
        "ALTER TABLE t RENAME TO t2",
        "ALTER TABLE t2 RENAME TO t",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "ANALYZE t",
        "ALTER TABLE t REPLICA IDENTITY NOTHING",
        "ALTER TABLE t REPLICA IDENTITY DEFAULT",
        "ALTER SCHEMA s RENAME TO s2",
        "ALTER SCHEMA s2 RENAME TO s",
        "CREATE INDEX ON t (v)",
        "ALTER TABLE t SET SCHEMA public",
        "ALTER TABLE public.t SET SCHEMA s",
        "ALTER TABLE t ALTER v TYPE varchar(100)",
        "CREATE PUBLICATION other FOR TABLE t",
        "DROP PUBLICATION other",
        "DROP TABLE t; CREATE TABLE s.t (v int, id text)",
        "VACUUM FULL s.t",
    ];
    // Wherever the table is just now.
    let row = "DO $$ BEGIN
            EXECUTE (SELECT format('INSERT INTO %s DEFAULT VALUES', oid::regclass) FROM pg_class
                     WHERE relname IN ('t', 't2') AND relkind = 'r');
        END $$";
    let mut scripts = vec!["SET search_path = s, s2, public".to_owned(), row.to_owned()];
    for change in changes {
        if !change.starts_with("VACUUM") {
            // In one transaction, and undone.
            scripts.push(format!("BEGIN; {row}; {change}; {row}; ROLLBACK"));
        }
        scripts.push(change.to_owned());
        scripts.push(row.to_owned());
    }
    let setup = "CREATE SCHEMA s;
         CREATE TABLE s.t (id serial PRIMARY KEY, v text);
         CREATE PUBLICATION p FOR ALL TABLES WITH (publish = 'insert')";
    let cluster = test.cluster()?;
    let after = Differential::with_setup(&cluster, setup)?.options_and_binary(Options::new(1, "p"));
    let seen = after.run(|client| scripts.iter().try_for_each(|script| Ok(client.batch_execute(script)?)))?;
    seen.expect("BRIC")?;
    // As it happens.
    let live = Differential::with_setup(&cluster, setup)?.options(Options::new(1, "p"));
    let seen = live.run_live(|client, live| {
        scripts.iter().try_for_each(|script| {
            client.batch_execute(script)?;
            live.catch_up()
        })
    })?;
    seen.expect("BRIC")
}

fn client_encodings(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE \"Tä\" (\"ä\" int PRIMARY KEY, v text, x \"char\", a text[], j jsonb);
         CREATE TYPE \"Ö\" AS ENUM ('ü');
         CREATE TABLE e (e \"Ö\");
         CREATE PUBLICATION p FOR ALL TABLES",
    )?;
    for encoding in ["LATIN1", "SQL_ASCII", "WIN1252", "UTF8"] {
        let options = Options::new(1, "p").messages();
        differential = differential
            .case(options.clone(), &[("client_encoding", encoding)])
            .case(options.binary(), &[("client_encoding", encoding)]);
    }
    let seen = differential.run_script(
        "INSERT INTO \"Tä\" VALUES (1, 'äöüß', 'x', '{ä,NULL}', '{\"ä\": \"ö\"}');
         UPDATE \"Tä\" SET v = 'Ü', \"ä\" = 2;
         INSERT INTO e VALUES ('ü');
         SELECT pg_logical_emit_message(true, 'präfix', 'inhält');
         DELETE FROM \"Tä\"",
    )?;
    seen.expect("BRYIUDMC")
}

fn character_without_equivalent(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let differential =
        Differential::with_setup(&cluster, "CREATE TABLE t (v text); CREATE PUBLICATION p FOR TABLE t")?;
    let latin1 = [("client_encoding", "LATIN1")];
    let seen = differential
        .case(Options::new(1, "p"), &latin1)
        .case(Options::new(1, "p").binary(), &latin1)
        .run_script("INSERT INTO t VALUES ('before'), ('€')")?;
    seen.expect_error("22P05")
}

fn messages(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let differential =
        Differential::with_setup(&cluster, "CREATE TABLE t (v int); CREATE PUBLICATION p FOR TABLE t")?;
    let seen = differential.options(Options::new(1, "p").messages()).options(Options::new(1, "p")).run(
        |client| {
            client.batch_execute("SELECT pg_logical_emit_message(false, 'alone', 'x')")?;
            client.batch_execute("SELECT pg_logical_emit_message(true, '', '')")?;
            client.batch_execute("SELECT pg_logical_emit_message(true, 'p', '\\x00ff'::bytea)")?;
            client.batch_execute(
                "BEGIN; SELECT pg_logical_emit_message(false, 'in between', 'x'); INSERT INTO t VALUES (1);
                 SELECT pg_logical_emit_message(true, 'after', repeat('long', 10000)); COMMIT",
            )?;
            client.batch_execute("BEGIN; SELECT pg_logical_emit_message(true, 'undone', 'x'); ROLLBACK")?;
            client.batch_execute("BEGIN; SELECT pg_logical_emit_message(false, 'stays', 'x'); ROLLBACK")?;
            Ok(())
        },
    )?;
    seen.expect("BRIMC")
}

fn origins(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (v int); CREATE PUBLICATION p FOR TABLE t;
         SELECT pg_replication_origin_create('Örigin'), pg_replication_origin_create('dropped')",
    )?
    .options_and_binary(Options::new(1, "p").messages());
    if test.server().major >= 16 {
        differential = differential
            .options(Options::new(1, "p").with("origin", "none"))
            .options(Options::new(1, "p").with("origin", "any"));
    }
    let seen = differential.run(|client| {
        client.batch_execute("INSERT INTO t VALUES (0)")?;
        for origin in ["Örigin", "dropped"] {
            client.execute("SELECT pg_replication_origin_session_setup($1)", &[&origin])?;
            client.batch_execute("INSERT INTO t VALUES (1)")?;
            client.batch_execute(
                "BEGIN; SELECT pg_replication_origin_xact_setup('1/23', '2020-01-01'); INSERT INTO t VALUES (2);
                 SELECT pg_logical_emit_message(true, 'm', 'x'); COMMIT",
            )?;
            client.batch_execute("SELECT pg_replication_origin_session_reset()")?;
        }
        client.batch_execute("SELECT pg_replication_origin_drop('dropped')")?;
        client.batch_execute("INSERT INTO t VALUES (3)")?;
        Ok(())
    })?;
    seen.expect("BORIMC")
}

fn subtransactions(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE outside (v int);
         CREATE PUBLICATION p FOR TABLE t",
        "BEGIN; INSERT INTO t VALUES (1, 1); SAVEPOINT a; INSERT INTO t VALUES (2, 1); SAVEPOINT b;
             UPDATE t SET v = 2; ROLLBACK TO b; DELETE FROM t WHERE id = 1; RELEASE a; INSERT INTO t VALUES (3, 3); COMMIT;
         BEGIN; INSERT INTO t VALUES (4, 4); ROLLBACK;
         BEGIN; INSERT INTO outside VALUES (1); COMMIT;
         BEGIN; SAVEPOINT a; ALTER TABLE t ADD w int; INSERT INTO t VALUES (5, 5, 5); ROLLBACK TO a; INSERT INTO t VALUES (6, 6); COMMIT;
         DO $$ BEGIN FOR i IN 1..100 LOOP BEGIN
             INSERT INTO t VALUES (i + 100, i); IF i % 3 = 0 THEN RAISE 'undone'; END IF;
         EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$;
         BEGIN; UPDATE t SET v = 0 WHERE id = 2; COMMIT",
        "BRIUDC",
    )
}

fn unpublishable_tables(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE UNLOGGED TABLE u (v int); CREATE TABLE t (v int); CREATE MATERIALIZED VIEW m AS SELECT 1 AS x;
         CREATE SEQUENCE q;
         CREATE PUBLICATION p FOR ALL TABLES",
        "INSERT INTO u VALUES (1);
         CREATE TEMP TABLE temporary (v int); INSERT INTO temporary VALUES (1);
         REFRESH MATERIALIZED VIEW m; SELECT nextval('q'); TRUNCATE u;
         ALTER TABLE u SET LOGGED; INSERT INTO u VALUES (2);
         INSERT INTO t VALUES (1); ALTER TABLE t SET UNLOGGED; INSERT INTO t VALUES (2);
         CREATE TABLE n AS SELECT 1 AS made",
        "BRIC",
    )
}

fn partitions(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let seen = Differential::with_setup(
        &cluster,
        "CREATE TABLE root (id int PRIMARY KEY, v text, n numeric) PARTITION BY RANGE (id);
         CREATE TABLE one PARTITION OF root FOR VALUES FROM (0) TO (10);
         CREATE TABLE two (gone int, n numeric, v text, id int NOT NULL);
         ALTER TABLE two DROP gone;
         ALTER TABLE root ATTACH PARTITION two FOR VALUES FROM (10) TO (20);
         CREATE TABLE three (v text, n numeric, id int NOT NULL) PARTITION BY LIST (v);
         CREATE TABLE leaf (n numeric, id int NOT NULL, v text);
         ALTER TABLE three ATTACH PARTITION leaf DEFAULT;
         ALTER TABLE root DROP CONSTRAINT root_pkey;
         ALTER TABLE root ATTACH PARTITION three FOR VALUES FROM (20) TO (30);
         ALTER TABLE one REPLICA IDENTITY FULL;
         ALTER TABLE two REPLICA IDENTITY FULL;
         ALTER TABLE leaf REPLICA IDENTITY FULL;
         ALTER TABLE root REPLICA IDENTITY FULL;
         CREATE PUBLICATION p FOR TABLE root;
         CREATE PUBLICATION via FOR TABLE root WITH (publish_via_partition_root);
         CREATE PUBLICATION middle FOR TABLE three WITH (publish_via_partition_root);
         CREATE PUBLICATION filtered FOR TABLE root WHERE (id % 2 = 0) WITH (publish_via_partition_root)",
    )?
    .options_and_binary(Options::new(1, "p"))
    .options_and_binary(Options::new(1, "via"))
    .options_and_binary(Options::new(1, "middle"))
    .options_and_binary(Options::new(1, "p, middle"))
    .options_and_binary(Options::new(1, "filtered"))
    .options_and_binary(Options::new(1, "filtered, middle"))
    .run_script(
        "BEGIN; INSERT INTO root SELECT i, 'v' || i, i / 4.0 FROM generate_series(1, 29) i; COMMIT;
         BEGIN; UPDATE root SET v = v || '+' WHERE id % 3 = 0; COMMIT;
         BEGIN; UPDATE root SET id = id - 8 WHERE id IN (12, 23); UPDATE root SET id = id - 1 WHERE id IN (8, 17, 28); COMMIT;
         BEGIN; UPDATE leaf SET n = -1; DELETE FROM root WHERE id % 5 = 0; COMMIT;
         BEGIN; TRUNCATE two; TRUNCATE three; COMMIT;
         BEGIN; ALTER TABLE root DETACH PARTITION two; INSERT INTO two (id) VALUES (15); INSERT INTO root VALUES (25); COMMIT;
         BEGIN; TRUNCATE root, two; COMMIT",
    )?;
    seen.expect("BRIUDTC")
}

fn odd_names(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE SCHEMA \"S \"\"ä\";
         CREATE TABLE \"S \"\"ä\".\"select\" (\"a\"\"b\" int PRIMARY KEY, \"table\" int, \" \" text,
             \"012345678901234567890123456789012345678901234567890123456789abc\" int);
         CREATE PUBLICATION p FOR ALL TABLES",
        "INSERT INTO \"S \"\"ä\".\"select\" VALUES (1, 2, '3', 4);
         UPDATE \"S \"\"ä\".\"select\" SET \"a\"\"b\" = 2;
         DELETE FROM \"S \"\"ä\".\"select\"",
        "BRIUDC",
    )
}

fn large_value(test: &Test) -> Result<()> {
    compare(
        test,
        "CREATE TABLE t (id int PRIMARY KEY, v text, b bytea); CREATE PUBLICATION p FOR TABLE t",
        "INSERT INTO t VALUES (1, repeat('0123456789', 2000000), convert_to(repeat('x', 1000000), 'UTF8'));
         UPDATE t SET id = 2",
        "BRIUC",
    )
}

fn streamed(test: &Test) -> Result<()> {
    let cluster = test.cluster_with(Settings::default().set("logical_decoding_work_mem", "64kB"))?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE TABLE t (id int PRIMARY KEY, v text, m mood);
         CREATE PUBLICATION p FOR TABLE t",
    )?
    .options_and_binary(Options::new(2, "p").with("streaming", "on").messages());
    if test.server().major >= 16 {
        differential = differential.options(Options::new(4, "p").with("streaming", "parallel").messages());
    }
    let many = "INSERT INTO t SELECT i, repeat('v', 100), 'ok' FROM generate_series";
    let seen = differential.run_script(&format!(
        "BEGIN; {many}(1, 2000) i; SELECT pg_logical_emit_message(true, 'p', 'x'); UPDATE t SET v = 'w'; COMMIT;
         BEGIN; {many}(3001, 4000) i; SAVEPOINT a; {many}(4001, 6000) i; ROLLBACK TO a; {many}(4001, 5000) i; COMMIT;
         BEGIN; {many}(6001, 8000) i; ROLLBACK;
         BEGIN; DELETE FROM t; ALTER TABLE t ADD w int; {many}(1, 2000) i; TRUNCATE t; COMMIT"
    ))?;
    seen.expect("SEcARYIUDTM")
}

fn prepared(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let seen = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION p FOR TABLE t",
    )?
    .two_phase_slots()
    .options_and_binary(Options::new(3, "p").with("two_phase", "on"))
    .options(Options::new(1, "p"))
    .run(|client| {
        for script in [
            "BEGIN; INSERT INTO t VALUES (1, 'a'); PREPARE TRANSACTION 'one'",
            "COMMIT PREPARED 'one'",
            "BEGIN; INSERT INTO t VALUES (2, 'a'); UPDATE t SET v = 'b'; PREPARE TRANSACTION 'Zwei ''ä'",
            "ROLLBACK PREPARED 'Zwei ''ä'",
            "INSERT INTO t VALUES (3, 'c')",
        ] {
            client.batch_execute(script)?;
        }
        Ok(())
    })?;
    seen.expect("bPKrBCRIU")
}

/// From 18 on the server has Stream Abort sent for it although nothing was streamed; before, the whole is streamed.
fn subtransaction_of_an_aborted_transaction(test: &Test) -> Result<()> {
    let cluster = test.cluster_with(Settings::default().set("logical_decoding_work_mem", "64kB"))?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id int, v text); CREATE PUBLICATION p FOR TABLE t",
    )?
    .options_and_binary(Options::new(2, "p").with("streaming", "on"));
    if test.server().major >= 16 {
        differential = differential.options(Options::new(4, "p").with("streaming", "parallel"));
    }
    let seen = differential.run_script(
        "BEGIN; SAVEPOINT a; INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i; RELEASE a; ROLLBACK;
         BEGIN; INSERT INTO t VALUES (1, 'one');
         SAVEPOINT a; INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i; ROLLBACK TO a;
         SAVEPOINT b; INSERT INTO t VALUES (2, 'two'); RELEASE b; ROLLBACK;
         INSERT INTO t VALUES (3, 'three')",
    )?;
    seen.expect("ABRIC")
}
