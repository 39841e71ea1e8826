//! Options, good and bad: what the built-in plugin says to them, ours says, in the same words.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use pgoutput_tests::server::plugin;
use pgoutput_tests::stream::{Progress, Stream, compare};
use pgoutput_tests::wire::{self, Connection, Parameters, Response};
use pgoutput_tests::{Cluster, Options, Test, runner, tests};

fn main() -> ExitCode {
    runner::main(tests![
        same_words_on_a_plain_slot,
        same_words_on_a_two_phase_slot,
        missing_value_is_an_error_where_it_crashes_the_builtin_plugin,
    ])
}

/// A name of 63 bytes, the longest there is.
const LONGEST: &str = "a23456789b23456789c23456789d23456789e23456789f23456789g23456789";

/// Fewer errors than this on any server, and the table below tests less than it pretends.
const FEWEST_ERRORS: usize = 60;

/// And so for options that are odd, yet bring messages.
const FEWEST_SUCCESSES: usize = 20;

fn setup() -> String {
    format!(
        "CREATE TABLE t (id int PRIMARY KEY, v text);
         CREATE PUBLICATION p FOR TABLE t;
         CREATE PUBLICATION \"P\" FOR TABLE t;
         CREATE PUBLICATION \"a,b\" FOR TABLE t;
         CREATE PUBLICATION \"q\"\"q\" FOR TABLE t;
         CREATE PUBLICATION \" \" FOR TABLE t;
         CREATE PUBLICATION {LONGEST} FOR TABLE t"
    )
}

const WORKLOAD: &str = "INSERT INTO t VALUES (1, 'one'), (2, 'two');
    SELECT pg_logical_emit_message(true, 'prefix', 'content');
    BEGIN;
    INSERT INTO t VALUES (3, 'three');
    PREPARE TRANSACTION 'prepared';
    COMMIT PREPARED 'prepared'";

/// The table: option sets, most of them wrong somewhere.
fn option_sets() -> Vec<Options> {
    let none = Options::none;
    let publications = || none().with("publication_names", "p");
    let version = |value: &str| none().with("proto_version", value).with("publication_names", "p");
    let names = |value: &str| Options::new(1, value);
    let new = |version| Options::new(version, "p");

    let mut sets = vec![
        // Missing.
        none(),
        publications(),
        none().with("proto_version", "1"),
        none().with("proto_version", "5"),
        none().with("proto_version", "0"),
        none().with("binary", "true"),
        none().with("binary", "nonsense"),
        // Unknown, and what looks like one that is known.
        new(1).with("unknown", "1"),
        new(1).flag("unknown"),
        new(1).with("", "1"),
        new(1).with("Binary", "true"),
        new(1).with("proto_version ", "1"),
        new(1).with("include-xids", "0"),
        new(1).with("ünbekannt", "ä"),
        none().with("unknown", "1"),
        none().with("unknown", "1").with("proto_version", "x"),
        new(1).with("unknown \"name\" with 100%s", "%d"),
        // Given twice.
        new(1).with("proto_version", "1"),
        new(1).with("publication_names", "p"),
        new(1).with("origin", "any").with("origin", "any"),
        new(1).with("origin", "none").with("origin", "any"),
        // The first complaint counts: the duplicate before its bad value, the bad value before what is missing.
        new(1).with("proto_version", "x"),
        new(1).with("publication_names", ","),
        new(1).flag("proto_version"),
        new(1).flag("publication_names"),
        none().with("proto_version", "x").with("binary", "x"),
        none().with("binary", "x").with("proto_version", "x"),
        none().with("proto_version", "7").with("publication_names", ","),
        none().with("proto_version", "7").with("publication_names", ""),
        none().with("proto_version", "0").with("publication_names", ""),
        new(7).with("streaming", "x"),
        new(1).with("streaming", "on").with("two_phase", "on"),
        new(1).with("two_phase", "on").with("streaming", "on"),
        new(2).with("two_phase", "on").with("streaming", "on"),
        new(1).with("streaming", "on").with("unknown", "1"),
        // Origin.
        new(1).with("origin", "any"),
        new(1).with("origin", "none"),
        new(1).with("origin", "NoNe"),
        new(1).with("origin", "foo"),
        new(1).with("origin", ""),
        new(1).with("origin", " any"),
        new(1).flag("origin"),
        // Options that may stand in any order.
        publications().with("binary", "on").with("proto_version", "1"),
        new(1).binary().messages().with("streaming", "off").with("two_phase", "off"),
    ];
    for value in [
        "",
        " ",
        "0",
        "1",
        "01",
        " 1",
        "\t\n1",
        "1 ",
        "+1",
        "+",
        "-",
        "-0",
        "+-1",
        "- 1",
        "-1",
        "1x",
        "x1",
        "0x1",
        "1.0",
        "1e0",
        "2",
        "3",
        "4",
        "5",
        "4294967295",
        "4294967296",
        "4294967297",
        "2147483648",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "-18446744073709551615",
        "-18446744073709551616",
        "-99999999999999999999",
        "'1'",
        "١",
    ] {
        sets.push(version(value));
    }
    let too_long = format!("{LONGEST}h, {LONGEST}ä");
    let quoted_too_long = format!("\"{LONGEST}h\"");
    for value in [
        // Nothing, and lists that are none.
        "",
        " ",
        ",",
        "p,",
        ",p",
        "p,,p",
        "p p",
        "\"",
        "\"p",
        "p\"",
        "\"p\"x",
        "\"\"",
        "p;p",
        // Lists that are.
        "p,p",
        " p ,\tp\n",
        "P",
        "\"P\"",
        "\"p\"",
        "p,\"P\"",
        "\"a,b\"",
        "a,b",
        "\"q\"\"q\"",
        "\" \"",
        "'p'",
        "p.p",
        &too_long,
        &quoted_too_long,
        // Publications that don't exist.
        "missing",
        "p,missing",
        "missing,p",
        "\"MISSING\"",
        "Ä",
        "\"it's 100%s\"",
    ] {
        sets.push(names(value));
    }
    // Values that look like booleans.
    for name in ["binary", "messages", "streaming", "two_phase"] {
        for value in [
            "true", "false", "on", "off", "TRUE", "On", "oFF", "t", "f", "yes", "no", "1", "0", "", " true",
            "true ", "parallel", "PARALLEL", "tru",
        ] {
            sets.push(new(3).with(name, value));
        }
        sets.push(new(3).flag(name));
        sets.push(new(3).flag(name).flag(name));
        sets.push(new(3).with(name, "off").with(name, "on"));
    }
    for version in 0..=5 {
        for value in ["on", "off", "parallel"] {
            sets.push(new(version).with("streaming", value));
        }
        sets.push(new(version).with("two_phase", "on"));
        sets.push(new(version).with("two_phase", "off"));
    }
    sets
}

fn same_words_on_a_plain_slot(test: &Test) -> Result<()> {
    compare_all(test, false)
}

fn same_words_on_a_two_phase_slot(test: &Test) -> Result<()> {
    compare_all(test, true)
}

fn compare_all(test: &Test, two_phase: bool) -> Result<()> {
    let cluster = test.cluster()?;
    let database = cluster.create_database()?;
    let mut client = cluster.client(&database)?;
    client.batch_execute(&setup())?;
    let slots = ["stock", "ours"];
    for (slot, plugin) in slots.into_iter().zip(["pgoutput", &plugin()]) {
        client.execute(
            "SELECT pg_create_logical_replication_slot($1, $2::text::name, false, $3)",
            &[&slot, &plugin, &two_phase],
        )?;
    }
    for statement in WORKLOAD.split(';') {
        client.batch_execute(statement)?;
    }
    let end = cluster.flushed(&database)?;

    let mut tally = Tally::default();
    for options in option_sets() {
        // `two_phase` turns a slot into one for good. Both see that at the same time.
        let parameters = Parameters::replication(&database);
        let [stock, ours] =
            slots.map(|slot| Stream::replicate(&cluster, &parameters, slot, &options, &Progress::until(end)));
        tally.add("over a replication connection", stock?, ours?, &options);
        if options.fit_sql() {
            let parameters = Parameters::sql(&database);
            let [stock, ours] = slots.map(|slot| Stream::peek(&cluster, &parameters, slot, &options, end));
            tally.add("through the SQL functions", stock?, ours?, &options);
        }
    }
    tally.check()
}

/// What came of all comparisons. All differences are collected, as one seldom comes alone.
#[derive(Default)]
struct Tally {
    errors: usize,
    successes: usize,
    differences: Vec<String>,
}

impl Tally {
    fn add(&mut self, way: &str, stock: Stream, ours: Stream, options: &Options) {
        if let Err(difference) = compare(&stock, &ours, options) {
            self.differences.push(format!("{way}: {difference}"));
        }
        if stock.error.is_some() {
            self.errors += 1;
        } else if stock.messages().next().is_some() {
            self.successes += 1;
        }
    }

    fn check(self) -> Result<()> {
        let Tally { errors, successes, differences } = self;
        if !differences.is_empty() {
            bail!("{} differences:\n{}", differences.len(), differences.join("\n"));
        }
        ensure!(errors >= 2 * FEWEST_ERRORS, "only {errors} comparisons were about an error");
        ensure!(successes >= 2 * FEWEST_SUCCESSES, "only {successes} comparisons were about messages");
        Ok(())
    }
}

/// The built-in plugin follows a null pointer there, so that only ours is asked.
fn missing_value_is_an_error_where_it_crashes_the_builtin_plugin(test: &Test) -> Result<()> {
    if plugin() == "pgoutput" {
        return Ok(());
    }
    let cluster = test.cluster()?;
    let database = cluster.create_database()?;
    let mut bystander = cluster.client(&database)?;
    bystander.batch_execute(&setup())?;
    bystander.execute("SELECT pg_create_logical_replication_slot('ours', $1::text::name)", &[&plugin()])?;
    bystander.batch_execute("INSERT INTO t VALUES (1, 'one')")?;
    let end = cluster.flushed(&database)?;
    let started: String = bystander.query_one("SELECT pg_postmaster_start_time()::text", &[])?.get(0);

    let mut connection = cluster.connect(&Parameters::replication(&database))?;
    for (options, name) in [
        (Options::none().flag("proto_version"), "proto_version"),
        (Options::none().flag("publication_names"), "publication_names"),
        (Options::none().flag("proto_version").with("publication_names", "p"), "proto_version"),
        (Options::none().with("proto_version", "1").flag("publication_names"), "publication_names"),
        (Options::none().flag("publication_names").flag("proto_version"), "publication_names"),
    ] {
        let error = refused(&mut connection, &options).with_context(|| format!("with {options}"))?;
        ensure!(error.code == "42601" && error.severity == "ERROR", "{options} brings {error}");
        ensure!(error.message.contains(name), "{options} brings {error}, which doesn't say what is missing");
        usable(&mut connection).with_context(|| format!("after {options}"))?;
    }
    // The backend that refused five times streams.
    connection.start_replication("ours", Lsn(0), &Options::new(1, "p"))?;
    connection.end_replication()?;
    while !matches!(connection.event()?, wire::Event::End) {}
    drop(connection);
    read_insert(&cluster, &database, end)?;

    // A crash of any backend would have ended this session.
    let now: String = bystander.query_one("SELECT pg_postmaster_start_time()::text", &[])?.get(0);
    ensure!(started == now, "the server was restarted");
    Ok(())
}

/// The error that a stream's start brings.
fn refused(connection: &mut Connection, options: &Options) -> Result<Response> {
    match connection.start_replication("ours", Lsn(0), options) {
        Ok(()) => bail!("the stream started"),
        Err(wire::Error::Server(error)) => Ok(*error),
        Err(error) => Err(error.into()),
    }
}

/// Checks that the backend still answers, and is the one that it was.
fn usable(connection: &mut Connection) -> Result<()> {
    let rows = connection.query("SELECT pg_backend_pid()")?;
    let pid = connection.backend_pid().to_string();
    ensure!(rows == [vec![Some(pid.into_bytes())]], "another backend answers: {rows:?}");
    Ok(())
}

fn read_insert(cluster: &Cluster, database: &str, end: Lsn) -> Result<()> {
    cluster.wait_for_slot("ours")?;
    let stream = Stream::peek(cluster, &Parameters::sql(database), "ours", &Options::new(1, "p"), end)?;
    if let Some(error) = stream.error {
        bail!("the slot can't be read any more: {error}");
    }
    let kinds: Vec<_> = stream.messages().filter_map(|message| message.first().copied()).collect();
    ensure!(kinds == *b"BRIC", "the slot brings {kinds:?}");
    Ok(())
}
