//! Options that are refused are refused with the same words.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use pgoutput_tests::server::plugin;
use pgoutput_tests::stream::{Progress, Stream, comparable};
use pgoutput_tests::wire::{Connection, Error, Parameters, Response};
use pgoutput_tests::{Cluster, Differential, Options, Test, runner, tests, wait_until};

fn main() -> ExitCode {
    runner::main(tests![bad_options, missing_values, a_session_survives_refusals])
}

/// What is there to be published.
const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text);
                     CREATE PUBLICATION p FOR TABLE t";

fn valid() -> Options {
    Options::new(1, "p")
}

fn proto_version(value: &str) -> Options {
    Options::none().with("proto_version", value).with("publication_names", "p")
}

fn publication_names(value: &str) -> Options {
    Options::none().with("proto_version", "1").with("publication_names", value)
}

/// Options that at least one of the versions refuses, if the server passes them to the plugin.
fn bad_options_sets() -> Vec<Options> {
    let mut sets = vec![
        // What is missing.
        Options::none(),
        Options::none().with("proto_version", "1"),
        Options::none().with("publication_names", "p"),
        Options::none().with("binary", "true"),
        Options::none().with("streaming", "on"),
        Options::none().with("two_phase", "on"),
        Options::none().with("proto_version", "9"),
        Options::none().with("proto_version", "1").with("streaming", "on"),
        // What isn't known.
        valid().with("unknown", "1"),
        valid().with("", ""),
        valid().flag("unknown"),
        valid().with("Binary", "true"),
        valid().with("BINARY", "true"),
        valid().with("proto_version ", "1"),
        valid().with("skip_empty_xacts", "1"),
        valid().with("include-xids", "0"),
        valid().with("publish_via_partition_root", "true"),
        valid().with("ünknown", "1"),
        Options::none().with("unknown", "1"),
        Options::none().with("unknown", "1").with("proto_version", "x"),
        // The order of checks.
        valid().with("unknown", "1").with("binary", "maybe"),
        valid().with("binary", "maybe").with("unknown", "1"),
        proto_version("99").with("unknown", "1"),
        proto_version("99").with("streaming", "maybe"),
        publication_names("a,,b").with("unknown", "1"),
        publication_names("a,,b").with("proto_version", "2"),
        Options::none().with("publication_names", "a,,b").with("proto_version", "x"),
        Options::none().with("publication_names", "a,,b").with("proto_version", "9"),
        proto_version("0").with("two_phase", "on").with("streaming", "on"),
    ];
    // Options that are given twice, the second valid, invalid or without a value.
    for (name, value) in [
        ("proto_version", "1"),
        ("publication_names", "p"),
        ("binary", "true"),
        ("messages", "true"),
        ("streaming", "on"),
        ("two_phase", "on"),
        ("origin", "any"),
    ] {
        let once = if valid().get(name).is_some() { valid() } else { valid().with(name, value) };
        sets.push(once.clone().with(name, value));
        sets.push(once.clone().with(name, "nonsense"));
        sets.push(once.flag(name));
    }
    for value in [
        "",
        " ",
        "0",
        "-1",
        "-0",
        "+1",
        "5",
        "99",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "4294967297",
        "-4294967295",
        "18446744073709551615",
        "18446744073709551616",
        "9223372036854775808",
        "-9223372036854775808",
        "99999999999999999999",
        "-99999999999999999999",
        "1x",
        "1 ",
        " 1",
        "1 x",
        "x",
        "1.0",
        "1.5",
        "1e0",
        "0x1",
        "0b1",
        "0o1",
        "01",
        "010",
        "٣",
        "1_0",
        "NaN",
        "one",
        "true",
        "'1'",
    ] {
        sets.push(proto_version(value));
    }
    for value in [
        "",
        " ",
        ",",
        "a,",
        ",a",
        "a,,b",
        "a b",
        "a b,c",
        "a;b",
        "\"",
        "\"a",
        "a\"",
        "\"a\"b",
        "a\"b\"",
        "\"\"",
        "\"\",a",
        "\"a\" \"b\"",
        "a,\"\"",
        "\"a\"\"",
        "a.b",
        "a-b",
        "1",
        "1a",
        "*",
        "'a'",
        "a,'b'",
        "(a)",
        "a)",
        "$1",
        "p , , p",
        "p,",
        "\t",
        "p\n,\n",
        "é,",
    ] {
        sets.push(publication_names(value));
    }
    for name in ["binary", "messages", "two_phase", "streaming"] {
        for value in [
            "", " ", "maybe", "2", "-1", "yes", "no", "t", "f", "truee", "tru", "o", " on", "on ", "1.0",
            "'on'", "null", "0x1", "01",
        ] {
            sets.push(proto_version("3").with(name, value));
        }
    }
    for value in ["parallel", "PARALLEL", "Parallel", "parallels", "par", "any", " parallel"] {
        sets.push(proto_version("1").with("streaming", value));
        sets.push(proto_version("3").with("streaming", value));
        sets.push(proto_version("4").with("streaming", value));
    }
    for value in ["", " ", "none ", "all", "local", "true", "anyy", "no", "None-", "any,none", "\"none\""] {
        sets.push(valid().with("origin", value));
    }
    // A protocol that is too low for what is asked.
    for (version, name) in [("1", "streaming"), ("1", "two_phase"), ("2", "two_phase")] {
        for value in ["on", "true", "TRUE", "On", "1"] {
            sets.push(proto_version(version).with(name, value));
        }
        sets.push(proto_version(version).flag(name));
        sets.push(Options::none().flag(name).with("publication_names", "p").with("proto_version", version));
    }
    sets.push(proto_version("1").with("streaming", "on").with("two_phase", "on"));
    sets.push(proto_version("2").with("streaming", "on").with("two_phase", "on"));
    sets.push(valid().flag("origin"));
    sets.push(valid().flag("binary").with("binary", "off"));
    sets
}

/// A replication slot knows no other error than those of its plugin, so that the words can be compared.
fn bad_options(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let sets = bad_options_sets();
    let total = sets.len();
    let mut differential = Differential::with_setup(&cluster, SETUP)?;
    for set in sets {
        differential = differential.options(set);
    }
    let seen = differential.run_script("INSERT INTO t VALUES (1, 'one')")?;
    // In both ways, but those without a value.
    let refused = seen.errors().len();
    ensure!(refused >= 250, "of {total} sets, each tried in two ways, only {refused} tries were refused");
    for code in ["0A000", "22023", "42601", "42602", "XX000"] {
        ensure!(seen.errors().iter().any(|error| error.code == code), "no set was refused with {code}");
    }
    Ok(())
}

/// A slot of a plugin, with something to send.
struct Slot<'a> {
    cluster: &'a Cluster,
    database: String,
    name: &'static str,
}

impl<'a> Slot<'a> {
    fn new(cluster: &'a Cluster, name: &'static str, plugin: &str) -> Result<Self> {
        let database = cluster.create_database()?;
        let mut client = cluster.client(&database)?;
        client.batch_execute(SETUP)?;
        client.execute(
            "SELECT pg_create_logical_replication_slot($1::text::name, $2::text::name)",
            &[&name, &plugin],
        )?;
        client.batch_execute("INSERT INTO t VALUES (1, 'one')")?;
        Ok(Slot { cluster, database, name })
    }

    fn connect(&self) -> Result<Connection> {
        Ok(self.cluster.connect(&Parameters::replication(&self.database))?)
    }

    /// What the server says to options that it refuses; nothing when the process crashes.
    fn refusal(&self, connection: &mut Connection, options: &Options) -> Result<Option<Response>> {
        match connection.start_replication(self.name, Lsn(0), options) {
            Ok(()) => bail!("{options} is accepted"),
            Err(Error::Server(response)) => Ok(Some(*response)),
            Err(Error::Io(_)) => Ok(None),
        }
    }

    fn read(&self, options: &Options) -> Result<Stream> {
        let progress = Progress::until(self.cluster.flushed(&self.database)?);
        Stream::replicate(
            self.cluster,
            &Parameters::replication(&self.database),
            self.name,
            options,
            &progress,
        )
    }
}

/// Options without a value where one is needed: in some minors the built-in plugin follows a null pointer there.
fn missing_values(test: &Test) -> Result<()> {
    // Two, for one of them crashes.
    let (cluster, fragile) = (test.cluster()?, test.cluster()?);
    let slot = Slot::new(&cluster, "ours", &plugin())?;
    let stock = Slot::new(&fragile, "stock", "pgoutput")?;
    let is_tested_itself = plugin() == "pgoutput";
    let before = server_start(&cluster)?;
    for options in [
        Options::none().flag("proto_version"),
        Options::none().flag("publication_names"),
        Options::none().flag("proto_version").flag("publication_names"),
        Options::none().flag("proto_version").with("publication_names", "p"),
        Options::none().with("publication_names", "p").flag("proto_version"),
        Options::none().with("proto_version", "1").flag("publication_names"),
        Options::none().flag("publication_names").with("proto_version", "1"),
        valid().flag("proto_version"),
        valid().flag("publication_names"),
        valid().flag("origin"),
        valid().flag("origin").flag("origin"),
        Options::none().flag("binary").flag("messages").flag("proto_version"),
    ] {
        let start = server_start(&fragile)?;
        let Some(wanted) = stock.refusal(&mut stock.connect()?, &options)? else {
            wait_until("the server with the built-in plugin to recover", || {
                Ok(server_start(&fragile).is_ok_and(|now| now != start))
            })?;
            if !is_tested_itself {
                check_refusal(&slot, &options, None)?;
            }
            continue;
        };
        check_refusal(&slot, &options, Some(&wanted))?;
    }
    ensure!(server_start(&cluster)? == before, "the server was restarted");
    ensure!(!cluster.log().contains("terminated by signal"), "a server process crashed");
    let stream = slot.read(&valid())?;
    ensure!(stream.error.is_none() && stream.messages().count() > 0, "the slot can't be read afterwards");
    Ok(())
}

/// Checks that options are refused twice in one session: the first refusal must leave it whole.
fn check_refusal(slot: &Slot<'_>, options: &Options, wanted: Option<&Response>) -> Result<()> {
    let mut connection = slot.connect()?;
    for _ in 0..2 {
        let response = slot
            .refusal(&mut connection, options)?
            .with_context(|| format!("the server process crashed with {options}"))?;
        match wanted {
            Some(wanted) => ensure!(
                comparable(&response) == comparable(wanted),
                "{options} is refused with {response}\nand by the built-in plugin with {wanted}"
            ),
            None => ensure!(
                response.severity == "ERROR"
                    && !response.message.is_empty()
                    && !response.code.starts_with("XX"),
                "{options} is refused with {response}"
            ),
        }
    }
    connection.query("IDENTIFY_SYSTEM")?;
    Ok(())
}

/// When the server's processes were started, which a crash makes later.
fn server_start(cluster: &Cluster) -> Result<String> {
    let row = cluster.client("postgres")?.query_one(
        "SELECT backend_start::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
        &[],
    )?;
    Ok(row.get(0))
}

/// A walsender that has refused many options streams as if nothing had been.
fn a_session_survives_refusals(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let slot = Slot::new(&cluster, "ours", &plugin())?;
    let expected = slot.read(&valid())?;
    ensure!(expected.messages().count() == 4, "Begin, Relation, Insert, Commit: {expected:?}");
    let mut connection = slot.connect()?;
    let mut refused = 0;
    for options in bad_options_sets().into_iter().filter(|options| options.get("unknown").is_some()) {
        ensure!(slot.refusal(&mut connection, &options)?.is_some(), "the session broke off with {options}");
        refused += 1;
    }
    ensure!(refused > 5);
    let mut stream = Stream::default();
    let progress = Progress::until(cluster.flushed(&slot.database)?);
    stream.read(&mut connection, slot.name, &valid(), &progress)?;
    ensure!(stream.items[..4] == expected.items[..4], "{stream:?} instead of {expected:?}");
    Ok(())
}
