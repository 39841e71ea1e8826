//! Unmodified subscribers end with what publications publish of the publisher's tables.

use std::process::ExitCode;

use anyhow::{Context, Result};
use pgoutput_tests::subscriber::{Pair, Way, wait_for_copy};
use pgoutput_tests::traffic::{PUBLISHED, SCHEMA};
use pgoutput_tests::{Test, Traffic, runner, tests};

/// For tables that are empty.
const NO_COPY: &str = ", copy_data = false";

fn main() -> ExitCode {
    runner::main(tests![
        row_filters,
        column_lists,
        partitions_via_root,
        partitions_by_themselves,
        generated_columns,
        actions_and_truncate,
        publications_change_in_mid_stream,
    ])
}

/// Rows come in and go out of the filters as they are updated.
fn row_filters(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    pair.on_both(
        "CREATE TABLE many (id int PRIMARY KEY, n int, v text, long text);
         ALTER TABLE many REPLICA IDENTITY FULL;
         CREATE TABLE keyed (id int PRIMARY KEY, v text);
         CREATE TABLE several (id int PRIMARY KEY, n int);
         ALTER TABLE several REPLICA IDENTITY FULL",
    )?;
    let mut publisher = pair.publisher()?;
    publisher.batch_execute(
        "INSERT INTO many SELECT i, i % 100, 'before', '' FROM generate_series(1, 500) i;
         CREATE PUBLICATION pub FOR TABLE many WHERE (n > 50 OR v LIKE 'keep%' AND long IS NOT NULL),
                                          keyed WHERE (id % 2 = 0), several WHERE (n > 90);
         CREATE PUBLICATION low FOR TABLE several WHERE (n < 10 AND id IS NOT NULL)",
    )?;
    pair.subscribe_in_place("pub, low", "")?;
    publisher.batch_execute(
        "INSERT INTO many SELECT i, i % 100, CASE i % 9 WHEN 0 THEN 'keep' END,
                                 (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 100) j)
                          FROM generate_series(501, 1000) i;
         INSERT INTO keyed SELECT i, 'v' FROM generate_series(1, 500) i;
         INSERT INTO several SELECT i, i % 100 FROM generate_series(1, 500) i",
    )?;
    for round in 1..=12 {
        publisher.batch_execute(&format!(
            "UPDATE many SET n = (n * 7 + id + {round}) % 100 WHERE id % 3 = {round} % 3;
             UPDATE many SET v = CASE WHEN v IS NULL THEN 'keep' END WHERE id % 13 = {round};
             UPDATE many SET n = NULL WHERE id % 29 = {round};
             UPDATE many SET id = id + 10000 WHERE id % 23 = {round} AND id < 10000;
             UPDATE keyed SET id = id + 1001 WHERE id % 7 = {round} % 7;
             UPDATE keyed SET v = v || 'w' WHERE id % 5 = {round} % 5;
             UPDATE several SET n = (n * 11 + {round}) % 100 WHERE id % 4 <> {round} % 4;
             DELETE FROM many WHERE id % 31 = {round};
             DELETE FROM keyed WHERE id % 41 = {round};
             DELETE FROM several WHERE id % 43 = {round}"
        ))?;
    }
    pair.check_rows(
        "SELECT * FROM many WHERE n > 50 OR v LIKE 'keep%' AND long IS NOT NULL",
        "SELECT * FROM many",
    )?;
    pair.check_rows("SELECT * FROM keyed WHERE id % 2 = 0", "SELECT * FROM keyed")?;
    pair.check_rows("SELECT * FROM several WHERE n > 90 OR n < 10", "SELECT * FROM several")
}

/// The subscriber has columns of its own, in another order, and the list changes.
fn column_lists(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    pair.publisher()?.batch_execute(
        "CREATE TABLE t (gone int, a text, id int PRIMARY KEY, secret text, b numeric, c int[]);
         ALTER TABLE t DROP COLUMN gone;
         CREATE PUBLICATION pub FOR TABLE t (id, a, c)",
    )?;
    pair.subscriber()?.batch_execute(
        "CREATE TABLE t (own int DEFAULT 7, c int[], id int PRIMARY KEY, a text, b numeric)",
    )?;
    let mut publisher = pair.publisher()?;
    publisher.batch_execute(
        "INSERT INTO t (id, a, secret, c) SELECT i, 'a', 's', '{1}' FROM generate_series(1, 50) i",
    )?;
    pair.subscribe_in_place("pub", "")?;
    let change = |publisher: &mut postgres::Client, first: i32| {
        publisher.batch_execute(&format!(
            "INSERT INTO t (id, a, secret, b, c)
                SELECT i, repeat('a', i % 3000), repeat('s', 5000), i / 3.0, ARRAY[i]
                FROM generate_series({first}, {first} + 200) i;
             UPDATE t SET secret = 'other' WHERE id % 3 = 0;
             UPDATE t SET a = a || 'x', b = -1 WHERE id % 4 = 0;
             UPDATE t SET id = id + 10000 WHERE id % 11 = 0 AND id < 10000;
             DELETE FROM t WHERE id % 7 = 0"
        ))
    };
    change(&mut publisher, 1000)?;
    pair.check_rows("SELECT id, a, c, 7, NULL FROM t", "SELECT id, a, c, own, b FROM t")?;

    publisher.batch_execute("ALTER PUBLICATION pub SET TABLE t (b, id)")?;
    publisher.batch_execute("UPDATE t SET a = 'unpublished'; UPDATE t SET b = id / 7.0")?;
    pair.check_rows("SELECT id, b, true FROM t", "SELECT id, b, a <> 'unpublished' FROM t")?;
    publisher.batch_execute("ALTER PUBLICATION pub SET TABLE t (b, id, a, c)")?;
    change(&mut publisher, 2000)?;
    publisher.batch_execute("UPDATE t SET a = a || 'y'")?;
    pair.check_rows("SELECT id, a, b, c, 7 FROM t", "SELECT id, a, b, c, own FROM t")
}

/// Partitions whose columns have other places than their root's, to a table that is divided otherwise.
fn partitions_via_root(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    pair.publisher()?.batch_execute(
        "CREATE TABLE root (id int, region text, n int, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
         CREATE TABLE north PARTITION OF root FOR VALUES IN ('north');
         CREATE TABLE south (gone int, v text, region text NOT NULL, n int, id int NOT NULL);
         ALTER TABLE south DROP COLUMN gone;
         ALTER TABLE root ATTACH PARTITION south FOR VALUES IN ('south');
         CREATE TABLE east PARTITION OF root FOR VALUES IN ('east') PARTITION BY RANGE (id);
         CREATE TABLE east_low PARTITION OF east FOR VALUES FROM (MINVALUE) TO (500);
         CREATE TABLE east_high (region text NOT NULL, v text, n int, id int NOT NULL);
         ALTER TABLE east ATTACH PARTITION east_high FOR VALUES FROM (500) TO (MAXVALUE);
         CREATE TABLE west (v text, n int, id int NOT NULL, gone int, region text NOT NULL);
         ALTER TABLE root REPLICA IDENTITY FULL;
         ALTER TABLE north REPLICA IDENTITY FULL;
         ALTER TABLE south REPLICA IDENTITY FULL;
         ALTER TABLE east_low REPLICA IDENTITY FULL;
         ALTER TABLE east_high REPLICA IDENTITY FULL;
         ALTER TABLE west REPLICA IDENTITY FULL;
         INSERT INTO root SELECT i, 'north', i, 'before' FROM generate_series(1, 100) i;
         CREATE PUBLICATION pub FOR TABLE root WHERE (n % 10 <> 3) WITH (publish_via_partition_root)",
    )?;
    pair.subscriber()?.batch_execute(
        "CREATE TABLE root (v text, id int, n int, region text, PRIMARY KEY (id, region)) PARTITION BY HASH (id);
         CREATE TABLE one PARTITION OF root FOR VALUES WITH (MODULUS 3, REMAINDER 0);
         CREATE TABLE two (region text NOT NULL, n int, id int NOT NULL, v text);
         ALTER TABLE root ATTACH PARTITION two FOR VALUES WITH (MODULUS 3, REMAINDER 1);
         CREATE TABLE three PARTITION OF root FOR VALUES WITH (MODULUS 3, REMAINDER 2)",
    )?;
    pair.subscribe_in_place("pub", "")?;
    let change = |first: i32, regions: &str| {
        pair.publisher()?.batch_execute(&format!(
            "BEGIN;
             INSERT INTO root SELECT i, ({regions})[i % 3 + 1], i,
                                     (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, i % 5 * 30) j)
                              FROM generate_series({first}, {first} + 300) i;
             UPDATE root SET n = n * 7 % 100 WHERE id % 2 = 0;
             UPDATE root SET region = ({regions})[n % 3 + 1] WHERE id % 5 = 0;
             COMMIT;
             UPDATE root SET id = id + 10000 WHERE id % 13 = 0 AND id < 10000;
             UPDATE root SET v = v || 'x' WHERE id % 3 = 0;
             DELETE FROM root WHERE id % 7 = 0"
        ))?;
        pair.check_rows(
            "SELECT id, region, n, v FROM root WHERE n % 10 <> 3",
            "SELECT id, region, n, v FROM root",
        )
    };
    change(400, "ARRAY['north', 'south', 'east']")?;
    pair.publisher()?.batch_execute(
        "ALTER TABLE west DROP COLUMN gone;
         ALTER TABLE root ATTACH PARTITION west FOR VALUES IN ('west')",
    )?;
    change(1000, "ARRAY['west', 'south', 'east']").context("with another partition")?;
    // Of the rows of a partition that is detached, the subscriber is told nothing.
    pair.publisher()?.batch_execute(
        "TRUNCATE root;
         ALTER TABLE east DETACH PARTITION east_low;
         INSERT INTO east_low SELECT i, 'east', i FROM generate_series(1, 10) i",
    )?;
    change(2000, "ARRAY['west', 'north', 'east']").context("with a partition less")
}

/// Each partition goes to that of the same name, whose columns have other places.
fn partitions_by_themselves(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    pair.publisher()?.batch_execute(
        "CREATE TABLE root (id int PRIMARY KEY, n int, v text) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (1000);
         CREATE TABLE high (v text, gone int, n int, id int NOT NULL);
         ALTER TABLE high DROP COLUMN gone;
         ALTER TABLE root ATTACH PARTITION high FOR VALUES FROM (1000) TO (1000000);
         CREATE PUBLICATION pub FOR TABLE root",
    )?;
    pair.subscriber()?.batch_execute(
        "CREATE TABLE low (n int, v text, id int PRIMARY KEY);
         CREATE TABLE high (id int PRIMARY KEY, v text, n int)",
    )?;
    pair.subscribe_in_place("pub", NO_COPY)?;
    pair.publisher()?.batch_execute(
        "INSERT INTO root SELECT i, i, md5(i::text) FROM generate_series(500, 1500) i;
         UPDATE root SET id = id + 3000 WHERE id % 3 = 0;
         UPDATE root SET v = 'v' WHERE id % 4 = 0;
         DELETE FROM root WHERE id % 5 = 0",
    )?;
    let both = "SELECT id, n, v, 'low' FROM low UNION ALL SELECT id, n, v, 'high' FROM high";
    pair.check_rows(both, both)?;
    pair.publisher()?
        .batch_execute("TRUNCATE low; INSERT INTO root SELECT i, i FROM generate_series(1, 9) i")?;
    pair.check_rows(both, both)
}

/// Stored generated columns are published since 18, if asked for. The subscriber has plain ones, or generates them too.
fn generated_columns(test: &Test) -> Result<()> {
    let publishes = test.server().major >= 18;
    let pair = Pair::new(test, Way::InPlace)?;
    let table = |name: &str| {
        format!(
            "CREATE TABLE {name} (id int PRIMARY KEY, double int GENERATED ALWAYS AS (id * 2) STORED, v text,
                                  upper text GENERATED ALWAYS AS (upper(v)) STORED)"
        )
    };
    pair.publisher()?.batch_execute(&format!("{}; {}", table("generated"), table("received")))?;
    pair.subscriber()?.batch_execute(&format!(
        "{}; CREATE TABLE received (upper text, id int PRIMARY KEY, v text, double int)",
        table("generated")
    ))?;
    let mut publisher = pair.publisher()?;
    let (first, second) = if publishes {
        (" WITH (publish_generated_columns = none)", " WITH (publish_generated_columns = stored)")
    } else {
        ("", "")
    };
    publisher.batch_execute(&format!(
        "CREATE PUBLICATION generates FOR TABLE generated{first};
         CREATE PUBLICATION stored FOR TABLE received{second}"
    ))?;
    pair.subscribe_in_place("generates, stored", NO_COPY)?;
    for name in ["generated", "received"] {
        publisher.batch_execute(&format!(
            "INSERT INTO {name} (id, v) SELECT i, md5(i::text) FROM generate_series(1, 200) i;
             UPDATE {name} SET v = 'new' WHERE id % 3 = 0;
             UPDATE {name} SET id = id + 1000 WHERE id % 5 = 0;
             DELETE FROM {name} WHERE id % 7 = 0"
        ))?;
    }
    pair.check_rows("SELECT * FROM generated", "SELECT * FROM generated")?;
    let published = if publishes {
        "SELECT id, v, double, upper FROM received"
    } else {
        "SELECT id, v, NULL::int, NULL::text FROM received"
    };
    pair.check_rows(published, "SELECT id, v, double, upper FROM received")
}

/// What isn't published doesn't happen on the subscriber.
fn actions_and_truncate(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    let tables = ["everything", "no_truncate", "inserts", "no_deletes", "referring"];
    for table in tables {
        pair.on_both(&format!("CREATE TABLE {table} (id serial PRIMARY KEY, v int)"))?;
    }
    let mut publisher = pair.publisher()?;
    publisher.batch_execute(
        "ALTER TABLE referring ADD FOREIGN KEY (v) REFERENCES everything;
         CREATE PUBLICATION pub FOR TABLE everything, referring;
         CREATE PUBLICATION rows FOR TABLE no_truncate WITH (publish = 'insert, update, delete');
         CREATE PUBLICATION inserts FOR TABLE inserts WITH (publish = 'insert');
         CREATE PUBLICATION truncates FOR TABLE no_deletes WITH (publish = 'insert, update, truncate')",
    )?;
    pair.subscribe_in_place("pub, rows, inserts, truncates", NO_COPY)?;
    let fill = |publisher: &mut postgres::Client, first: i32| -> Result<()> {
        for table in tables {
            publisher.batch_execute(&format!(
                "INSERT INTO {table} SELECT i, i FROM generate_series({first}, {first} + 9) i"
            ))?;
        }
        Ok(())
    };
    fill(&mut publisher, 1)?;
    publisher.batch_execute(
        "UPDATE referring SET v = 1; DELETE FROM everything WHERE id = 2;
         UPDATE no_truncate SET v = 0; DELETE FROM no_truncate WHERE id = 2;
         UPDATE inserts SET v = 0; DELETE FROM inserts WHERE id = 2;
         UPDATE no_deletes SET v = 0; DELETE FROM no_deletes WHERE id = 2",
    )?;
    for same in ["everything", "no_truncate", "referring"] {
        pair.check_rows(&format!("TABLE {same}"), &format!("TABLE {same}"))?;
    }
    let ten = "generate_series(1, 10) i";
    pair.check_rows(&format!("SELECT i, i FROM {ten}"), "TABLE inserts")?;
    pair.check_rows(&format!("SELECT i, 0 FROM {ten}"), "TABLE no_deletes")?;

    publisher.batch_execute("TRUNCATE no_truncate, no_deletes, inserts RESTART IDENTITY")?;
    publisher.batch_execute("TRUNCATE everything RESTART IDENTITY CASCADE")?;
    fill(&mut publisher, 101)?;
    for same in ["everything", "no_deletes", "referring"] {
        pair.check_rows(&format!("TABLE {same}"), &format!("TABLE {same}"))?;
    }
    let twenty = format!("SELECT i, i FROM {ten} UNION ALL SELECT i + 100, i + 100 FROM {ten}");
    pair.check_rows(&twenty, "TABLE inserts")?;
    let rest = format!("SELECT i, 0 FROM {ten} WHERE i <> 2 UNION ALL SELECT i + 100, i + 100 FROM {ten}");
    pair.check_rows(&rest, "TABLE no_truncate")
}

/// Publications get and lose tables, schemas and options, while several sessions write.
fn publications_change_in_mid_stream(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    pair.on_both(SCHEMA)?;
    pair.on_both(
        "CREATE TABLE added (id serial PRIMARY KEY, v text);
         CREATE TABLE leaves (id serial PRIMARY KEY, v text);
         CREATE SCHEMA whole;
         CREATE TABLE whole.first (id serial PRIMARY KEY, v text)",
    )?;
    let mut publisher = pair.publisher()?;
    publisher.batch_execute(&format!(
        "CREATE PUBLICATION pub FOR TABLE {PUBLISHED}, leaves;
         CREATE PUBLICATION of_schema FOR TABLES IN SCHEMA whole"
    ))?;
    pair.subscribe_in_place("pub, of_schema", "")?;
    let fill = |table: &str| {
        pair.publisher()?
            .batch_execute(&format!(
                "INSERT INTO {table} (v) SELECT md5(i::text) FROM generate_series(1, 50) i;
             UPDATE {table} SET v = v || '!' WHERE id % 3 = 0; DELETE FROM {table} WHERE id % 5 = 0"
            ))
            .with_context(|| table.to_owned())
    };
    Traffic::new(&pair.publisher, Pair::DATABASE, 7).run(60, 6, |call| {
        match call {
            0 => {
                fill("added")?;
                publisher.batch_execute("ALTER PUBLICATION pub ADD TABLE added")?;
                fill("added")?;
                pair.refresh()?;
            }
            1 => publisher
                .batch_execute("ALTER PUBLICATION pub SET (publish = 'insert, update, delete, truncate')")?,
            2 => {
                pair.on_both("CREATE TABLE whole.second (id serial PRIMARY KEY, v text)")?;
                fill("whole.second")?;
                pair.refresh()?;
                wait_for_copy(&mut pair.subscriber()?)?;
            }
            3 => {
                publisher.batch_execute("ALTER TABLE whole.first REPLICA IDENTITY FULL")?;
                pair.on_both("ALTER TABLE item ADD extra int DEFAULT 5")?;
                publisher
                    .batch_execute("CREATE PUBLICATION unrelated FOR ALL TABLES WITH (publish = 'insert')")?;
            }
            4 => {
                fill("leaves")?;
                pair.catch_up()?;
                publisher.batch_execute(
                    "CREATE TABLE kept AS TABLE leaves; ALTER PUBLICATION pub DROP TABLE leaves",
                )?;
                fill("leaves")?;
            }
            _ => publisher.batch_execute("DROP PUBLICATION unrelated")?,
        }
        fill("whole.first")?;
        fill("added")
    })?;
    wait_for_copy(&mut pair.subscriber()?)?;
    pair.check_rows("SELECT * FROM kept", "SELECT * FROM leaves")?;
    publisher.batch_execute("DROP TABLE kept, leaves")?;
    pair.check_equal()?;
    pair.check_plugin()
}
