//! Unmodified subscribers end with what the publisher has.

use std::process::{ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pgoutput_tests::server::output;
use pgoutput_tests::subscriber::{Pair, Way, wait_for_copy};
use pgoutput_tests::{Test, runner, tests, wait_until};

fn main() -> ExitCode {
    runner::main(tests![
        workload_in_place,
        workload_by_name,
        workload_binary,
        parallel_copy_of_20_tables,
        walsender_is_killed,
        publisher_crashes,
    ])
}

/// The schema of pgbench on both, its rows on the publisher, and all of that published.
fn set_pgbench_up(pair: &Pair) -> Result<()> {
    output(pair.publisher.program("pgbench").args(["-q", "-i", "-s", "2", Pair::DATABASE]))?;
    output(pair.subscriber.program("pgbench").args(["-q", "-i", "-I", "tp", Pair::DATABASE]))?;
    pair.publisher()?.batch_execute("CREATE PUBLICATION pub FOR ALL TABLES")?;
    Ok(())
}

fn pgbench(pair: &Pair, transactions: u32) -> Result<()> {
    let transactions = transactions.to_string();
    let mut pgbench = pair.publisher.program("pgbench");
    output(pgbench.args(["-n", "-c", "2", "-j", "2", "-t", &transactions, Pair::DATABASE]))?;
    Ok(())
}

fn workload_in_place(test: &Test) -> Result<()> {
    workload(test, Way::InPlace, "")
}

fn workload_by_name(test: &Test) -> Result<()> {
    workload(test, Way::ByName, "")
}

fn workload_binary(test: &Test) -> Result<()> {
    workload(test, Way::InPlace, ", binary = true")
}

/// pgbench, then changes of tables, then TRUNCATE.
fn workload(test: &Test, way: Way, options: &str) -> Result<()> {
    let pair = Pair::new(test, way)?;
    set_pgbench_up(&pair)?;
    pair.subscribe(way, options)?;
    pair.check_plugin()?;
    pgbench(&pair, 1000)?;
    pair.check_equal().context("after pgbench")?;

    pair.on_both(
        "ALTER TABLE pgbench_accounts ADD note text DEFAULT 'none', ADD at timestamptz;
         CREATE TABLE added (id int PRIMARY KEY, v numeric, w text)",
    )?;
    pair.refresh()?;
    pair.publisher()?.batch_execute(
        "UPDATE pgbench_accounts SET note = repeat('long ', 1000), at = now() WHERE aid % 100 = 0;
         INSERT INTO added SELECT i, i / 7.0, md5(i::text) FROM generate_series(1, 1000) i;
         UPDATE added SET v = v * 2 WHERE id % 2 = 0;
         UPDATE added SET id = id + 10000 WHERE id % 10 = 0;
         DELETE FROM added WHERE id % 3 = 0",
    )?;
    pgbench(&pair, 200)?;
    pair.check_equal().context("after changes of tables")?;

    pair.on_both("ALTER TABLE added DROP COLUMN v; ALTER TABLE added RENAME COLUMN w TO v")?;
    pair.publisher()?.batch_execute(
        "TRUNCATE pgbench_history, pgbench_tellers;
         ALTER TABLE added REPLICA IDENTITY FULL;
         UPDATE added SET v = v || '!';
         DELETE FROM added WHERE id < 100",
    )?;
    pgbench(&pair, 200)?;
    pair.check_equal().context("after TRUNCATE")?;
    Ok(())
}

/// The initial copy of each table has a slot and a walsender of its own, which then hands over to the first.
fn parallel_copy_of_20_tables(test: &Test) -> Result<()> {
    let pair = Pair::new(test, Way::InPlace)?;
    let tables = 1..=20;
    for number in tables.clone() {
        pair.on_both(&format!("CREATE TABLE t{number} (id serial PRIMARY KEY, v text, n int DEFAULT 0)"))?;
    }
    let mut publisher = pair.publisher()?;
    for number in tables.clone() {
        publisher.batch_execute(&format!(
            "INSERT INTO t{number} (v) SELECT 'before ' || i FROM generate_series(1, 2000) i"
        ))?;
    }
    publisher.batch_execute("CREATE PUBLICATION pub FOR ALL TABLES")?;
    let mut rounds = 0;
    thread::scope(|scope| {
        let copied = scope.spawn(|| {
            pair.subscribe(Way::InPlace, "")?;
            wait_for_copy(&mut pair.subscriber()?)
        });
        // The writes go on until all tables have been copied.
        while !copied.is_finished() || rounds < 3 {
            for number in tables.clone() {
                publisher.batch_execute(&format!(
                    "INSERT INTO t{number} (v) VALUES ('during {rounds}');
                     UPDATE t{number} SET n = n + 1 WHERE id % 50 = {rounds} % 50;
                     DELETE FROM t{number} WHERE id = 3 * {rounds}"
                ))?;
            }
            rounds += 1;
        }
        copied.join().map_err(|_| anyhow::anyhow!("the subscriber panicked"))?
    })?;
    pair.check_plugin()?;
    pair.check_equal().with_context(|| format!("after {rounds} rounds of writes"))
}

fn walsender_is_killed(test: &Test) -> Result<()> {
    const KILLS: usize = 5;
    let pair = Pair::new(test, Way::InPlace)?;
    set_pgbench_up(&pair)?;
    pair.subscribe(Way::InPlace, "")?;
    wait_for_copy(&mut pair.subscriber()?)?;
    let mut admin = pair.publisher()?;
    thread::scope(|scope| {
        let pgbench = scope.spawn(|| pgbench(&pair, 4000));
        for _ in 0..KILLS {
            thread::sleep(Duration::from_millis(150));
            let walsender = pair.publisher.walsender(Pair::SUBSCRIPTION)?.cast_signed();
            admin.execute("SELECT pg_terminate_backend($1)", &[&walsender])?;
            wait_until("another walsender", || {
                Ok(pair.publisher.walsender(Pair::SUBSCRIPTION)?.cast_signed() != walsender)
            })?;
        }
        pgbench.join().map_err(|_| anyhow::anyhow!("pgbench panicked"))?
    })?;
    pair.check_equal()
}

fn publisher_crashes(test: &Test) -> Result<()> {
    const CRASHES: usize = 3;
    let pair = Pair::new(test, Way::InPlace)?;
    set_pgbench_up(&pair)?;
    pair.subscribe(Way::InPlace, "")?;
    wait_for_copy(&mut pair.subscriber()?)?;
    for _ in 0..CRASHES {
        let mut pgbench = pair.publisher.program("pgbench");
        pgbench.args(["-n", "-c", "2", "-j", "2", "-T", "60", Pair::DATABASE]);
        let mut pgbench = pgbench.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        thread::sleep(Duration::from_millis(700));
        pair.publisher.crash()?;
        ensure!(!pgbench.wait()?.success(), "pgbench didn't notice the crash");
    }
    pgbench(&pair, 100)?;
    pair.check_equal()
}
