//! A process that decodes again and again, with errors in the midst of it, stays as small as it was.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use pgoutput_protocol::Lsn;
use pgoutput_tests::process::ProcessMemory;
use pgoutput_tests::server::plugin;
use pgoutput_tests::stream::{Progress, Stream};
use pgoutput_tests::wire::{Connection, Error, Parameters};
use pgoutput_tests::{Cluster, Options, Test, runner, tests};

/// So often an error is raised.
const ERRORS: usize = 1000;
/// So often before memory is measured for the first time: caches fill, and the allocator takes what it keeps.
const WARM_UP: usize = 100;
/// What the process may take more after all errors: far below what a hundred bytes a round would sum up to in contexts,
/// and in the process what its allocator may need for its order.
const CONTEXT_GROWTH: u64 = 16 * 1024;
const PROCESS_GROWTH: u64 = 1024 * 1024;

const SLOT: &str = "endurance";

fn main() -> ExitCode {
    runner::main(tests![errors_in_sql_functions, errors_in_a_walsender, calls_without_errors])
}

/// A database with a slot, and changes that can be sent in UTF8, and not all of them in LATIN1.
fn set_up(cluster: &Cluster, plugin: &str) -> Result<String> {
    let database = cluster.create_database()?;
    let mut client = cluster.client(&database)?;
    client.batch_execute(
        "CREATE TYPE mood AS ENUM ('fine');
         CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, m mood, a int[]);
         CREATE TABLE filtered (id int PRIMARY KEY, n int);
         ALTER TABLE filtered REPLICA IDENTITY FULL;
         CREATE PUBLICATION p FOR TABLE t;
         CREATE PUBLICATION divided FOR TABLE t, filtered WHERE (100 / n > 0);
         CREATE PUBLICATION one_list FOR TABLE t (id, v);
         CREATE PUBLICATION another_list FOR TABLE t (id, n)",
    )?;
    client.execute(
        "SELECT pg_create_logical_replication_slot($1::text::name, $2::text::name)",
        &[&SLOT, &plugin],
    )?;
    cluster.run_script(
        &database,
        "INSERT INTO t SELECT i, 'value ' || i, i / 7.0, 'fine', '{1,2}' FROM generate_series(1, 50) i;
         INSERT INTO filtered SELECT i, 101 - i FROM generate_series(1, 100) i;
         BEGIN;
         UPDATE t SET v = v || '!';
         SAVEPOINT s;
         INSERT INTO t VALUES (1000, '€', NULL, NULL, NULL);
         UPDATE filtered SET n = n - 1;
         ROLLBACK TO s;
         INSERT INTO t VALUES (1001, '€', NULL, NULL, NULL), (1002, 'after', 1, 'fine', '{}');
         COMMIT;
         INSERT INTO filtered VALUES (1000, 0)",
    )?;
    Ok(database)
}

/// What a process takes: bytes in its memory contexts and in all, and how many contexts there are.
#[derive(Debug)]
struct Memory {
    contexts: u64,
    in_contexts: u64,
    resident: u64,
}

impl Memory {
    fn of(connection: &mut Connection) -> Result<Memory> {
        let rows = connection.query("SELECT count(*), sum(total_bytes) FROM pg_backend_memory_contexts")?;
        let number = |column: usize| {
            let text = rows.first()?.get(column)?.as_deref()?;
            std::str::from_utf8(text).ok()?.parse().ok()
        };
        Ok(Memory {
            contexts: number(0).context("no number of contexts")?,
            in_contexts: number(1).context("no size of contexts")?,
            resident: ProcessMemory::of(connection.backend_pid())?.anonymous,
        })
    }

    fn check_growth(&self, later: &Memory) -> Result<()> {
        ensure!(
            later.contexts <= self.contexts
                && later.in_contexts <= self.in_contexts + CONTEXT_GROWTH
                && later.resident <= self.resident + PROCESS_GROWTH,
            "{self:?} has become {later:?}"
        );
        Ok(())
    }
}

fn errors_in_sql_functions(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let database = set_up(&cluster, &plugin())?;
    let end = cluster.flushed(&database)?;
    let mut connection = cluster.connect(&Parameters::sql(&database))?;
    // In what encoding, with which options, and the error that it ends in.
    let calls = [
        ("LATIN1", Options::new(1, "p"), "22P05"),
        ("UTF8", Options::new(1, "divided").binary(), "22012"),
        ("LATIN1", Options::new(2, "divided").with("streaming", "on").messages(), "22P05"),
        ("UTF8", Options::new(1, "p").with("unknown", "x"), "XX000"),
        ("UTF8", Options::new(1, "one_list, another_list"), "0A000"),
    ];
    let mut before = None;
    for round in 0..WARM_UP + ERRORS {
        if round == WARM_UP {
            before = Some(Memory::of(&mut connection)?);
        }
        let (encoding, options, code) = &calls[round % calls.len()];
        connection.query(&format!("SET client_encoding = {encoding}"))?;
        let function = "pg_logical_slot_get_binary_changes";
        let failed = Stream::call(&mut connection, function, SLOT, options, end)?;
        ensure!(
            failed.error.as_ref().is_some_and(|error| error.code == *code),
            "round {round}: {:?} instead of {code}",
            failed.error
        );
        connection.query("SET client_encoding = UTF8")?;
        let function = "pg_logical_slot_peek_binary_changes";
        let whole = Stream::call(&mut connection, function, SLOT, &Options::new(1, "p"), end)?;
        ensure!(whole.error.is_none(), "round {round}: {:?}", whole.error);
        // Two transactions, the first of 50 changes, with Type and Relation; the second of 52.
        ensure!(
            whole.messages().count() == 2 + 2 + 50 + 2 + 52,
            "round {round}: {}",
            whole.messages().count()
        );
    }
    before.context("no warm-up")?.check_growth(&Memory::of(&mut connection)?)
}

/// A walsender of 15 keeps something of each error itself, whatever the plugin.
fn errors_in_a_walsender(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let stock = errors_in_a_walsender_of(&cluster, "pgoutput")?;
    cluster.clean()?;
    let ours = errors_in_a_walsender_of(&cluster, &plugin())?;
    stock.check_growth(&ours).context("compared with the built-in plugin")
}

/// By how much it grows.
fn errors_in_a_walsender_of(cluster: &Cluster, plugin: &str) -> Result<Memory> {
    let database = set_up(cluster, plugin)?;
    let parameters = Parameters::replication(&database).with("client_encoding", "LATIN1");
    let mut connection = cluster.connect(&parameters)?;
    let mut before = None;
    for round in 0..WARM_UP + ERRORS {
        if round == WARM_UP {
            before = Some(Memory::of(&mut connection)?);
        }
        let mut stream = Stream::default();
        let outcome =
            stream.read(&mut connection, SLOT, &Options::new(1, "p"), &Progress::until(Lsn(u64::MAX)));
        ensure!(
            matches!(&outcome, Err(Error::Server(error)) if error.code == "22P05"),
            "round {round}: {outcome:?}"
        );
        // All that comes before the character that LATIN1 doesn't have has been sent.
        let messages = stream.messages().count();
        ensure!(messages == 2 + 2 + 50 + 1 + 50, "round {round}: {messages} messages");
    }
    let (before, after) = (before.context("no warm-up")?, Memory::of(&mut connection)?);
    Ok(Memory {
        contexts: after.contexts.saturating_sub(before.contexts),
        in_contexts: after.in_contexts.saturating_sub(before.in_contexts),
        resident: after.resident.saturating_sub(before.resident),
    })
}

fn calls_without_errors(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let database = set_up(&cluster, &plugin())?;
    let end = cluster.flushed(&database)?;
    let mut connection = cluster.connect(&Parameters::sql(&database))?;
    let mut before = None;
    for round in 0..WARM_UP + ERRORS {
        if round == WARM_UP {
            before = Some(Memory::of(&mut connection)?);
        }
        let options = if round % 2 == 0 { Options::new(1, "p") } else { Options::new(1, "p").binary() };
        let stream =
            Stream::call(&mut connection, "pg_logical_slot_peek_binary_changes", SLOT, &options, end)?;
        ensure!(stream.error.is_none(), "round {round}: {:?}", stream.error);
    }
    before.context("no warm-up")?.check_growth(&Memory::of(&mut connection)?)
}
