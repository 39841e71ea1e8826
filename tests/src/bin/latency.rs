//! Measures how long a transaction takes to its client, with the built-in plugin and with ours, and prints Markdown.
//!
//! Both plugins get the same transactions, in blocks by turns so that what else happens on the machine meets both.
//!
//! Environment:
//! - `TRANSACTIONS`: of a single row, for each plugin; 10000.
//! - `SECONDS`: how long transactions wait for a synchronous subscriber, for each plugin; 20.
//! - `PG`: this major alone, of the servers that the environment names.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use pgoutput_protocol::frame::ServerFrame;
use pgoutput_tests::program::variable;
use pgoutput_tests::server::plugin;
use pgoutput_tests::subscriber::{Way, mapped_plugin, subscribe, wait_for_copy};
use pgoutput_tests::wire::{Connection, Error, Event, Parameters};
use pgoutput_tests::{Cluster, Options, Server, Settings, TIMEOUT, program, wait_until};
use postgres::Client;

/// By turns, so many times.
const BLOCKS: usize = 20;
/// Transactions at the beginning of a block that don't count: the walsender's caches are cold.
const WARM_UP: usize = 20;
/// Between a transaction's arrival and the next. Walsenders of 16 and later, whatever the plugin, now and then miss WAL
/// that is flushed just when they are about to wait, and then wait for seconds.
const PAUSE: Duration = Duration::from_micros(500);

fn main() -> ExitCode {
    program::main("the measurement", || run().map(|()| true))
}

fn run() -> Result<()> {
    let transactions = variable("TRANSACTIONS")?.unwrap_or(10_000_usize);
    let seconds = variable("SECONDS")?.unwrap_or(20_u32);
    let servers = match variable("PG")? {
        Some(major) => vec![Server::from_env(major)?],
        None => Server::all_from_env()?,
    };
    for server in servers.into_iter().map(Arc::new) {
        let latencies = latencies(&server, transactions)?;
        println!(
            "\n{server}: from sending a single-row INSERT to receiving its Commit message, {} transactions each, TCP\n",
            latencies[0].len()
        );
        println!("| plugin | median | 99th percentile |\n|---|---|---|");
        for (side, times) in SIDES.iter().zip(&latencies) {
            println!("| {side} | {} µs | {} µs |", percentile(times, 50), percentile(times, 99));
        }

        let time = Duration::from_secs(seconds.into()) * 2 / u32::try_from(BLOCKS)?;
        let commits = synchronous_commits(&server, time)?;
        println!(
            "\n{server}: commits of one client that waits for a synchronous subscriber, the median of {} runs of {} s each\n",
            commits[0].len(),
            time.as_secs_f64()
        );
        println!("| plugin | commits per second |\n|---|---|");
        for (side, counts) in SIDES.iter().zip(&commits) {
            println!("| {side} | {:.0} |", counts[counts.len() / 2] as f64 / time.as_secs_f64());
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Stock,
    Ours,
}

const SIDES: [Side; 2] = [Side::Stock, Side::Ours];

impl Side {
    fn slot(self) -> &'static str {
        match self {
            Side::Stock => "stock",
            Side::Ours => "ours",
        }
    }

    /// Neither is always the first after the other: stock, ours, ours, stock and so on.
    fn of_block(block: usize) -> Side {
        SIDES[usize::from(matches!(block % 4, 1 | 2))]
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Side::Stock => f.write_str("`pgoutput`"),
            Side::Ours => write!(f, "`{}`", plugin()),
        }
    }
}

/// The smallest time, in microseconds, that so many percent of sorted times don't exceed.
fn percentile(sorted: &[Duration], percent: usize) -> u128 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).map_or(0, Duration::as_micros)
}

/// How long each transaction took, sorted.
fn latencies(server: &Arc<Server>, transactions: usize) -> Result<[Vec<Duration>; 2]> {
    let cluster = Cluster::start(server, &Settings::default())?;
    let database = cluster.create_database()?;
    let mut client = cluster.client(&database)?;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, v text, z timestamptz DEFAULT now());
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    for side in SIDES {
        let plugin = if side == Side::Stock { "pgoutput".to_owned() } else { plugin() };
        client.execute(
            "SELECT pg_create_logical_replication_slot($1::text::name, $2::text::name)",
            &[&side.slot(), &plugin],
        )?;
    }
    let mut latencies = [Vec::new(), Vec::new()];
    for block in 0..2 * BLOCKS {
        let side = Side::of_block(block);
        let times = &mut latencies[side as usize];
        measure_block(&cluster, &database, &mut client, side, transactions / BLOCKS, times)?;
    }
    for times in &mut latencies {
        times.sort_unstable();
    }
    Ok(latencies)
}

fn measure_block(
    cluster: &Cluster,
    database: &str,
    client: &mut Client,
    side: Side,
    transactions: usize,
    times: &mut Vec<Duration>,
) -> Result<()> {
    let insert = client.prepare("INSERT INTO t (v) VALUES ('a value of some length')")?;
    // What the other side's block has left is read before, and not again.
    let end = cluster.flushed(database)?;
    let mut connection = cluster.connect_tcp(&Parameters::replication(database))?;
    connection.start_replication(side.slot(), Lsn(0), &Options::new(1, "p"))?;
    catch_up(&mut connection, end)?;
    let (sender, commits) = mpsc::channel();
    thread::scope(|scope| {
        let count = WARM_UP + transactions;
        let reader = scope.spawn(move || -> Result<(), Error> {
            let mut received = 0;
            while received < count {
                match connection.event()? {
                    Event::Frame(ServerFrame::XLogData(frame)) if frame.payload.first() == Some(&b'C') => {
                        // Nobody waits any more when the other thread has failed.
                        if sender.send(Instant::now()).is_err() {
                            return Ok(());
                        }
                        received += 1;
                    }
                    Event::Frame(ServerFrame::Keepalive(keepalive)) if keepalive.reply_requested => {
                        connection.status_update(Lsn(0), false)?;
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        let measured = (0..count).try_for_each(|number| -> Result<()> {
            let sent = Instant::now();
            client.execute(&insert, &[])?;
            let received = receive(&commits)?;
            if number >= WARM_UP {
                times.push(received - sent);
            }
            thread::sleep(PAUSE);
            Ok(())
        });
        drop(commits);
        let read = reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))?;
        read?;
        measured
    })?;
    cluster.wait_for_slot(side.slot())
}

fn receive(commits: &Receiver<Instant>) -> Result<Instant> {
    commits.recv_timeout(TIMEOUT).context("no Commit came")
}

/// Reads what there is, and has the slot go on from there the next time.
fn catch_up(connection: &mut Connection, end: Lsn) -> Result<()> {
    loop {
        match connection.event()? {
            Event::Frame(ServerFrame::Keepalive(keepalive)) => {
                let end_of_keepalive = keepalive.end;
                connection.status_update(end_of_keepalive, false)?;
                if end_of_keepalive >= end {
                    return Ok(());
                }
            }
            Event::End => bail!("the stream ended"),
            _ => {}
        }
    }
}

/// How many transactions a client commits in that time, each of which waits for the subscriber: for each block, sorted.
fn synchronous_commits(server: &Arc<Server>, time: Duration) -> Result<[Vec<usize>; 2]> {
    const SUBSCRIPTION: &str = "subscription";
    let publisher = Cluster::start(server, &Settings::default())?;
    let subscriber = Cluster::start(server, &Settings::default())?;
    let setup = "CREATE TABLE account (id int PRIMARY KEY, balance int);
                 CREATE TABLE history (id bigserial PRIMARY KEY, account int, delta int, z timestamptz DEFAULT now())";
    let (database, copy) = (publisher.create_database()?, subscriber.create_database()?);
    let mut client = publisher.client(&database)?;
    client.batch_execute(setup)?;
    client.batch_execute(
        "INSERT INTO account SELECT i, 0 FROM generate_series(1, 1000) i; CREATE PUBLICATION p FOR ALL TABLES",
    )?;
    let mut subscriber_client = subscriber.client(&copy)?;
    subscriber_client.batch_execute(setup)?;
    // Else it would confirm only when its WAL writer comes by.
    let options = ", synchronous_commit = 'on'";
    subscribe(Way::InPlace, SUBSCRIPTION, (&publisher, &database), &mut subscriber_client, "p", options)?;
    wait_for_copy(&mut subscriber_client)?;
    let mut commits = [Vec::new(), Vec::new()];
    for block in 0..BLOCKS {
        let side = Side::of_block(block);
        use_plugin(&publisher, side, SUBSCRIPTION)?;
        client.batch_execute(&format!("ALTER SYSTEM SET synchronous_standby_names = '{SUBSCRIPTION}'"))?;
        client.batch_execute("SELECT pg_reload_conf()")?;
        wait_until("the subscriber to be synchronous", || {
            let row = client.query_one(
                "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'",
                &[],
            )?;
            Ok(row.get::<_, i64>(0) == 1)
        })?;
        for _ in 0..WARM_UP {
            transfer(&mut client, block)?;
        }
        let (started, mut count) = (Instant::now(), 0);
        while started.elapsed() < time {
            transfer(&mut client, count)?;
            count += 1;
        }
        commits[side as usize].push(count);
        client.batch_execute("ALTER SYSTEM RESET synchronous_standby_names")?;
        client.batch_execute("SELECT pg_reload_conf()")?;
    }
    for counts in &mut commits {
        counts.sort_unstable();
    }
    Ok(commits)
}

fn transfer(client: &mut Client, number: usize) -> Result<()> {
    let account = number % 1000 + 1;
    Ok(client.batch_execute(&format!(
        "BEGIN;
         UPDATE account SET balance = balance + 1 WHERE id = {account};
         INSERT INTO history (account, delta) VALUES ({account}, 1);
         COMMIT"
    ))?)
}

/// Has the subscription's walsender start again with a plugin, and waits until it has.
fn use_plugin(publisher: &Cluster, side: Side, slot: &str) -> Result<()> {
    let server = publisher.server();
    let path = match side {
        Side::Stock => "$libdir".to_owned(),
        Side::Ours => server.in_place_path(),
    };
    let mut client = publisher.client("postgres")?;
    client.batch_execute(&format!("ALTER SYSTEM SET dynamic_library_path = '{path}'"))?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until("the library path to be reloaded", || {
        let row = publisher.client("postgres")?.query_one("SHOW dynamic_library_path", &[])?;
        Ok(row.get::<_, &str>(0) == path)
    })?;
    let before = publisher.walsender(slot)?;
    client.execute("SELECT pg_terminate_backend($1)", &[&before.cast_signed()])?;
    let wanted = match side {
        Side::Stock => server.pkglibdir.join("pgoutput.so"),
        Side::Ours if plugin() == "pgoutput" => server.pkglibdir.join("pgoutput.so"),
        Side::Ours => server.library(),
    };
    let mut pid = before;
    wait_until("another walsender", || {
        pid = publisher.walsender(slot)?;
        Ok(pid != before && mapped_plugin(publisher, pid).is_ok())
    })?;
    let mapped = mapped_plugin(publisher, pid)?;
    ensure!(mapped == wanted.canonicalize()?, "walsender {pid} uses {}", mapped.display());
    Ok(())
}
