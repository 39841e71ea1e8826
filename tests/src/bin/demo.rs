//! A publisher with pgoutput_rs, an unmodified subscriber, and the proof that both have the same.
//!
//! Runs on the server of `PGOUTPUT_RS_PG18`, into which the extension is installed; `make demo` does that first.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pgoutput_tests::server::{output, plugin};
use pgoutput_tests::stream::Stream;
use pgoutput_tests::subscriber::{
    Table, Way, check_equal, check_plugin, subscribe, tables, wait_for_catch_up, wait_for_copy,
};
use pgoutput_tests::wire::Parameters;
use pgoutput_tests::{Cluster, Options, Server, Settings, program};

const DATABASE: &str = "bench";
const SCALE: &str = "2";
const CLIENTS: u32 = 2;
const TRANSACTIONS: u32 = 5000;
/// The slot that nobody reads but this program, to show some messages.
const SAMPLE: &str = "sample";
const MESSAGES: usize = 12;

/// Each subscription and the database that it fills, which have the same name.
const WAYS: [(Way, &str); 2] = [(Way::InPlace, "in_place"), (Way::ByName, "by_name")];

fn main() -> ExitCode {
    program::main("The demo", || run().map(|()| true))
}

fn run() -> Result<()> {
    let started = Instant::now();
    let server = Arc::new(Server::from_env(18)?);
    let publisher = Cluster::start(&server, &Settings::default().in_place(&server))?;
    let subscriber = Cluster::start(&server, &Settings::default())?;
    println!(
        "{server}: a publisher on port {}, a subscriber on port {}",
        publisher.port(),
        subscriber.port()
    );

    publisher.create_database_named(DATABASE)?;
    output(publisher.program("pgbench").args(["-q", "-i", "-s", SCALE, DATABASE]))?;
    let mut source = publisher.client(DATABASE)?;
    source.batch_execute("CREATE PUBLICATION bench FOR ALL TABLES")?;
    source.execute("SELECT pg_create_logical_replication_slot($1, $2::text::name)", &[&SAMPLE, &plugin()])?;

    for (way, name) in WAYS {
        subscriber.create_database_named(name)?;
        output(subscriber.program("pgbench").args(["-q", "-i", "-I", "tp", name]))?;
        introduce(way, &server);
        subscribe(way, name, (&publisher, DATABASE), &mut subscriber.client(name)?, "bench", "")?;
        let (walsender, library) = check_plugin(&publisher, name)?;
        println!("  the walsender, process {walsender}, has mapped {}", library.display());
    }

    println!(
        "\nWorkload: {} pgbench transactions by {CLIENTS} clients, while both subscriptions copy and replicate",
        with_commas(i64::from(CLIENTS * TRANSACTIONS))
    );
    let took = timed(|| pgbench(&publisher))?;
    let behind = timed(|| {
        for (_, name) in WAYS {
            wait_for_copy(&mut subscriber.client(name)?)?;
        }
        wait_for_catch_up(&publisher, DATABASE, &WAYS.map(|(_, name)| name))
    })?;
    println!("  pgbench took {took:.1?}; {behind:.1?} later both subscriptions had caught up");

    println!("\nThe first messages of a slot with plugin {}", plugin());
    show_messages(&publisher)?;

    let compared = compare(&publisher, &subscriber)?;
    println!("\nDone in {:.1?}", started.elapsed());
    println!(
        "Both sides are equal: {} rows in {} tables, replicated in place of pgoutput and by name.",
        with_commas(compared.iter().map(|table| table.rows).sum()),
        compared.len()
    );
    Ok(())
}

fn introduce(way: Way, server: &Server) {
    match way {
        Way::InPlace => {
            println!("\nIn place of pgoutput, for a subscriber that knows nothing of it");
            println!("  publisher:  dynamic_library_path = '{}'", server.in_place_path());
            println!("  subscriber: CREATE SUBSCRIPTION in_place CONNECTION '…' PUBLICATION bench");
        }
        Way::ByName => {
            println!("\nBy name, with a slot made for the subscriber");
            println!("  publisher:  SELECT pg_create_logical_replication_slot('by_name', '{}')", plugin());
            println!(
                "  subscriber: CREATE SUBSCRIPTION by_name CONNECTION '…' PUBLICATION bench WITH (create_slot = false)"
            );
        }
    }
}

fn pgbench(publisher: &Cluster) -> Result<()> {
    let mut command: Command = publisher.program("pgbench");
    command
        .args(["-c", &CLIENTS.to_string(), "-j", &CLIENTS.to_string()])
        .args(["-t", &TRANSACTIONS.to_string(), DATABASE])
        .stdout(Stdio::null());
    output(&mut command)?;
    Ok(())
}

fn show_messages(publisher: &Cluster) -> Result<()> {
    let options = Options::new(1, "bench");
    let end = publisher.flushed(DATABASE)?;
    let stream = Stream::peek(publisher, &Parameters::sql(DATABASE), SAMPLE, &options, end)?;
    if let Some(error) = stream.error {
        anyhow::bail!("{error}");
    }
    let mut decoder = options.decoder();
    for message in stream.messages().take(MESSAGES) {
        println!("  {}", decoder.decode(message)?);
    }
    let rest = stream.messages().skip(MESSAGES).count();
    ensure!(rest > 0, "the slot has too few messages");
    println!("  … and {} more", with_commas(i64::try_from(rest)?));
    Ok(())
}

/// Prints what is in each table on each side, and checks that it is the same.
fn compare(publisher: &Cluster, subscriber: &Cluster) -> Result<Vec<Table>> {
    let mut source = publisher.client(DATABASE)?;
    let published = tables(&mut source)?;
    let subscribed =
        WAYS.iter().map(|(_, name)| tables(&mut subscriber.client(name)?)).collect::<Result<Vec<_>>>()?;
    println!("\n{:26} {:>19} {:>21} {:>21}", "Rows and checksums", "publisher", WAYS[0].1, WAYS[1].1);
    for (number, table) in published.iter().enumerate() {
        print!("  {:24}", table.name);
        for side in [&published].into_iter().chain(&subscribed) {
            match side.get(number) {
                Some(Table { rows, checksum, .. }) => print!(" {:>8} {checksum}", with_commas(*rows)),
                None => print!(" {:>21}", "missing"),
            }
        }
        println!();
    }
    for (_, name) in WAYS {
        check_equal(&mut source, &mut subscriber.client(name)?)
            .with_context(|| format!("subscription {name}"))?;
    }
    Ok(published)
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

/// A number as people write it: 1,234,567.
fn with_commas(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
