//! What other sessions change while both plugins stream reaches both at the same point.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use pgoutput_tests::wire::Parameters;
use pgoutput_tests::{Differential, Options, Test, runner, tests, wait_until};

fn main() -> ExitCode {
    runner::main(tests![
        missing_publication,
        missing_publication_that_appears,
        reloaded_settings,
        reloaded_client_encoding,
        settings_of_database_and_role,
        transactions_side_by_side,
        hundred_megabytes,
    ])
}

/// Runs the statements one after the other, both streams up to date before and after each.
fn step_by_step(differential: &Differential<'_>, statements: &[&str], kinds: &str) -> Result<()> {
    let seen = differential.run_live(|client, live| {
        statements.iter().try_for_each(|statement| {
            client.batch_execute(statement)?;
            live.catch_up()
        })
    })?;
    seen.expect(kinds)
}

/// 15 raises an error at the first change, 18 warns and goes on without.
fn missing_publication(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id serial PRIMARY KEY, v int);
         CREATE TABLE unpublished (id int);
         CREATE UNLOGGED TABLE unlogged (id int);
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    for names in ["missing", "p, missing", "missing, p", "missing, \"Missing\", p, missing"] {
        for options in [Options::new(1, names), Options::new(1, names).binary().messages()] {
            differential = differential.options(options);
        }
    }
    let seen = differential.run_script(
        "INSERT INTO unlogged VALUES (1);
         SELECT pg_logical_emit_message(true, 'p', 'x');
         SELECT pg_logical_emit_message(false, 'p', 'x');
         INSERT INTO unpublished VALUES (1);
         INSERT INTO t (v) VALUES (1);
         TRUNCATE t;
         ALTER PUBLICATION p SET (publish = 'insert');
         INSERT INTO t (v) VALUES (2)",
    )?;
    if test.server().major < 18 {
        return seen.expect_error("42704");
    }
    ensure!(
        seen.notices().iter().any(|notice| notice.severity == "WARNING" && notice.code == "55000"),
        "no warning: {:?}",
        seen.notices()
    );
    seen.expect("BMRITC")
}

fn missing_publication_that_appears(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id serial PRIMARY KEY, v int);
         CREATE PUBLICATION p FOR TABLE t",
    )?
    .options(Options::new(1, "p, q"));
    let statements = [
        "CREATE PUBLICATION q FOR TABLE t",
        "INSERT INTO t (v) VALUES (1)",
        "ALTER PUBLICATION q RENAME TO other",
        "INSERT INTO t (v) VALUES (2)",
        "ALTER PUBLICATION other RENAME TO q",
        "INSERT INTO t (v) VALUES (3)",
        "DROP PUBLICATION q",
        "INSERT INTO t (v) VALUES (4)",
        "BEGIN; CREATE PUBLICATION q FOR ALL TABLES WITH (publish = 'delete'); INSERT INTO t (v) VALUES (5); COMMIT",
        "DELETE FROM t WHERE id = 1",
    ];
    if test.server().major >= 18 {
        return step_by_step(&differential, &statements, "BRIDC");
    }
    // The stream ends at the error: nobody can catch up with the rest.
    let seen = differential.run_live(|client, live| {
        for statement in statements {
            client.batch_execute(statement)?;
        }
        live.catch_up()
    })?;
    seen.expect_error("42704")
}

/// The walsenders read the configuration again, and values look different from then on.
fn reloaded_settings(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id serial PRIMARY KEY, d date DEFAULT '2026-03-01', z timestamptz DEFAULT '2026-03-01 12:00+00',
                         i interval DEFAULT '1 year -2 days 3:04', b bytea DEFAULT '\\x00ff', f float8 DEFAULT 0.1::float4,
                         r tstzrange DEFAULT '[2026-03-01 12:00+00,)', a date[] DEFAULT '{2026-03-01}');
         CREATE PUBLICATION p FOR TABLE t",
    )?
    .options(Options::new(1, "p"));
    let seen = differential.run_live(|client, live| {
        let mut step = |statement: &str| {
            client.batch_execute(statement)?;
            client.batch_execute("SELECT pg_reload_conf(), pg_sleep(0.2)")?;
            // Settings are read between two transactions: one passes by.
            client.batch_execute("INSERT INTO t DEFAULT VALUES")?;
            live.catch_up()?;
            client.batch_execute("INSERT INTO t DEFAULT VALUES")?;
            live.catch_up()
        };
        step("ALTER SYSTEM SET DateStyle = 'German, DMY'")?;
        step("ALTER SYSTEM SET TimeZone = 'Asia/Kathmandu'")?;
        step("ALTER SYSTEM SET IntervalStyle = 'sql_standard'")?;
        step("ALTER SYSTEM SET bytea_output = 'escape'")?;
        step("ALTER SYSTEM SET extra_float_digits = 0")?;
        step("ALTER SYSTEM RESET ALL")
    })?;
    seen.expect("BRIC")
}

/// A session that doesn't say in which encoding it wants its text has that of the configuration, which can change.
fn reloaded_client_encoding(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE té (id serial PRIMARY KEY, ü text);
         CREATE PUBLICATION p FOR TABLE té",
    )?
    .options(Options::new(1, "p"));
    let seen = differential.run_live(|client, live| {
        for (encoding, identity) in [("LATIN1", "FULL"), ("UTF8", "DEFAULT"), ("LATIN9", "FULL")] {
            client.batch_execute(&format!("ALTER SYSTEM SET client_encoding = {encoding}"))?;
            client.batch_execute("SELECT pg_reload_conf()")?;
            wait_until("the encoding to be reloaded", || {
                // A session that begins with it: before, the postmaster has told the walsenders.
                let mut session = cluster.connect(&Parameters::sql("postgres"))?;
                Ok(session.query("SHOW client_encoding")? == [[Some(encoding.into())]])
            })?;
            // Settings are read between two transactions: one passes by.
            client.batch_execute("INSERT INTO té (ü) VALUES ('vorher')")?;
            live.catch_up()?;
            client.batch_execute("INSERT INTO té (ü) VALUES ('hinüber')")?;
            live.catch_up()?;
            client.batch_execute(&format!("ALTER TABLE té REPLICA IDENTITY {identity}"))?;
            live.catch_up()?;
            client.batch_execute("INSERT INTO té (ü) VALUES ('straße')")?;
            live.catch_up()?;
        }
        client.batch_execute("ALTER SYSTEM RESET ALL")?;
        client.batch_execute("SELECT pg_reload_conf()")?;
        Ok(())
    })?;
    ensure!(seen.count('R') > 3, "Relation came only {} times", seen.count('R'));
    seen.expect("BRIC")
}

/// Settings that a session has from its database and role, as a walsender has them too.
fn settings_of_database_and_role(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let setup = "CREATE TABLE t (d date, i interval, b bytea, m money);
                 CREATE PUBLICATION p FOR TABLE t";
    let mut seen = Vec::new();
    for settings in ["DateStyle = 'SQL, DMY'", "IntervalStyle = 'iso_8601'", "bytea_output = 'escape'"] {
        let differential =
            Differential::with_setup(&cluster, setup)?.options_and_binary(Options::new(1, "p"));
        let database = differential.database();
        differential.client()?.batch_execute(&format!(
            "ALTER DATABASE {database} SET {settings};
             ALTER ROLE postgres IN DATABASE {database} SET extra_float_digits = 0"
        ))?;
        seen.push(
            differential
                .run_script("INSERT INTO t VALUES ('2026-12-24', '1 day 2:03', '\\x00ff', 1234.5)")?,
        );
    }
    seen.iter().try_for_each(|seen| seen.expect("BRIC"))
}

/// Several sessions at once, with the streams at their heels.
fn transactions_side_by_side(test: &Test) -> Result<()> {
    const SESSIONS: i32 = 4;
    let cluster = test.cluster()?;
    let differential = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id serial PRIMARY KEY, session int, v text);
         CREATE TABLE unpublished (v int);
         CREATE PUBLICATION p FOR TABLE t",
    )?
    .options(Options::new(1, "p"));
    let seen = differential.run_live(|_, _| {
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..SESSIONS)
                .map(|session| {
                    let differential = &differential;
                    scope.spawn(move || {
                        let mut client = differential.client()?;
                        for round in 0..50 {
                            let mut transaction = client.transaction()?;
                            for _ in 0..=round % 5 {
                                transaction.execute(
                                    "INSERT INTO t (session, v) VALUES ($1, repeat('v', $2))",
                                    &[&session, &(round * 37)],
                                )?;
                                transaction.execute("INSERT INTO unpublished VALUES ($1)", &[&round])?;
                            }
                            transaction.execute(
                                "UPDATE t SET v = 'w' WHERE session = $1 AND id % 3 = 0",
                                &[&session],
                            )?;
                            if round % 7 == 0 {
                                transaction.rollback()?;
                            } else {
                                transaction.commit()?;
                            }
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            for session in sessions {
                session.join().map_err(|_| anyhow::anyhow!("a session panicked"))??;
            }
            anyhow::Ok(())
        })
    })?;
    seen.expect("BRIUC")
}

/// A row of which a single value has 100 MB.
fn hundred_megabytes(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let seen = Differential::with_setup(
        &cluster,
        "CREATE TABLE t (id int PRIMARY KEY, v text);
         ALTER TABLE t REPLICA IDENTITY FULL;
         CREATE PUBLICATION p FOR TABLE t",
    )?
    .options(Options::new(1, "p"))
    .run_live(|client, _| {
        client.batch_execute(
            "INSERT INTO t VALUES (1, 'before');
             INSERT INTO t VALUES (2, repeat('0123456789', 10000000));
             INSERT INTO t VALUES (3, 'after')",
        )?;
        Ok(())
    })?;
    seen.expect("BRIC")
}
