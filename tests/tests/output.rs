//! How what is sent reaches the client: when, at what cost for the server, and what is left of it when something ends
//! the stream. In what the client gets, only the send times may tell the plugins apart.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use pgoutput_protocol::frame::ServerFrame;
use pgoutput_tests::process::{self, ProcessMemory, SlowedDown};
use pgoutput_tests::server::plugin;
use pgoutput_tests::stream::{Item, Place, Progress, Stream, compare};
use pgoutput_tests::wire::{Connection, Error, Event, Parameters};
use pgoutput_tests::{Cluster, Options, Stop, Test, runner, tests, wait_until};

fn main() -> ExitCode {
    let costly = tests![huge_rows];
    let tests = tests![
        memory_over_many_tables,
        client_that_stops_reading,
        client_that_ends_the_stream_halfway,
        rest_that_a_full_socket_leaves,
        gathered_rows_do_not_wait_for_filtered_ones,
        nothing_to_send_for_long,
        terminated_while_the_client_reads,
        terminated_while_the_client_does_not_read,
        shut_down_while_the_client_reads,
        shut_down_while_the_client_does_not_read,
        sql_functions_in_a_walsender,
        streams_after_errors,
        settings_reloaded_while_sending,
    ];
    runner::main_with_costly(tests, costly)
}

/// The slot of the built-in plugin and that of ours, at the same point.
const SLOTS: [&str; 2] = ["stock", "ours"];

/// A database with a slot for each plugin.
struct Publisher<'a> {
    cluster: &'a Cluster,
    database: String,
}

impl<'a> Publisher<'a> {
    fn new(cluster: &'a Cluster, setup: &str) -> Result<Self> {
        let database = cluster.create_database()?;
        let mut client = cluster.client(&database)?;
        client.batch_execute(setup).context("in the setup")?;
        let [stock, ours] = SLOTS;
        client.execute("SELECT pg_create_logical_replication_slot($1::text::name, 'pgoutput')", &[&stock])?;
        client.execute(
            "SELECT pg_copy_logical_replication_slot($1::text::name, $2::text::name, false, $3::text::name)",
            &[&stock, &ours, &plugin()],
        )?;
        Ok(Publisher { cluster, database })
    }

    /// One with a transaction of 6 MB or so, which no socket takes whole.
    fn with_bulk(cluster: &'a Cluster) -> Result<Self> {
        let publisher = Self::new(
            cluster,
            "CREATE TABLE t (id int, v text);
             CREATE PUBLICATION p FOR TABLE t",
        )?;
        publisher
            .execute("INSERT INTO t SELECT i, repeat('0123456789', 15) FROM generate_series(1, 30000) i")?;
        Ok(publisher)
    }

    fn execute(&self, statements: &str) -> Result<()> {
        Ok(self.cluster.client(&self.database)?.batch_execute(statements)?)
    }

    /// A walsender that sends what is in a slot.
    fn attach(&self, slot: &str, session: &[(&str, &str)]) -> Result<Reader> {
        let parameters =
            session.iter().fold(Parameters::replication(&self.database), |parameters, (name, value)| {
                parameters.with(name, value)
            });
        let mut connection = self.cluster.connect(&parameters)?;
        connection.start_replication(slot, Lsn(0), &Options::new(1, "p"))?;
        Ok(Reader::new(connection))
    }

    /// The same, when its client has read a part and the walsender waits for it to read on.
    fn attach_until_blocked(&self, slot: &str, session: &[(&str, &str)]) -> Result<Reader> {
        let mut reader = self.attach(slot, session)?;
        reader.read_items(1000)?;
        self.wait_until_blocked(reader.pid())?;
        Ok(reader)
    }

    /// All that is in a slot, read without a pause.
    fn read(&self, slot: &str) -> Result<Stream> {
        Stream::replicate(
            self.cluster,
            &Parameters::replication(&self.database),
            slot,
            &Options::new(1, "p"),
            &Progress::until(self.cluster.flushed(&self.database)?),
        )
    }

    /// Waits until a walsender can send no more because its client doesn't read.
    fn wait_until_blocked(&self, pid: u32) -> Result<()> {
        let mut client = self.cluster.client("postgres")?;
        wait_until("the walsender to wait for its client", || {
            let row = client.query_opt(
                "SELECT coalesce(wait_event, '') FROM pg_stat_activity WHERE pid = $1",
                &[&pid.cast_signed()],
            )?;
            let row = row.context("the walsender has ended")?;
            Ok(matches!(row.get(0), "WalSenderWriteData" | "ClientWrite"))
        })
    }
}

/// A client that takes one thing after the other.
struct Reader {
    connection: Connection,
    stream: Stream,
    /// When each of the stream's items came.
    arrivals: Vec<Instant>,
    /// After how many items each keepalive that asked for a reply came.
    pings: Vec<usize>,
    /// What the client tells the server that it has: nothing, so that the slot can be read again, or everything.
    confirms: bool,
}

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// A message, by its first byte, or a notice.
    Item(char),
    /// A keepalive, which says that everything up to there has been sent.
    Keepalive(Lsn),
    /// The end of the stream.
    End,
}

impl Reader {
    fn new(connection: Connection) -> Self {
        Reader {
            connection,
            stream: Stream::default(),
            arrivals: Vec::new(),
            pings: Vec::new(),
            confirms: false,
        }
    }

    fn pid(&self) -> u32 {
        self.connection.backend_pid()
    }

    fn next(&mut self) -> Result<Came, Error> {
        let (item, came) = match self.connection.event()? {
            Event::Frame(ServerFrame::XLogData(frame)) => {
                let kind = frame.payload.first().copied().map_or('?', char::from);
                (
                    Item::Message(Place::Frame(frame.start, frame.end), frame.payload.to_vec()),
                    Came::Item(kind),
                )
            }
            Event::Frame(ServerFrame::Keepalive(keepalive)) => {
                if keepalive.reply_requested {
                    self.pings.push(self.stream.items.len());
                }
                if keepalive.reply_requested || self.confirms {
                    let confirmed = if self.confirms { keepalive.end } else { Lsn(0) };
                    self.connection.status_update(confirmed, false)?;
                }
                return Ok(Came::Keepalive(keepalive.end));
            }
            Event::Notice(notice) => (Item::Notice(notice), Came::Item('n')),
            Event::End => return Ok(Came::End),
        };
        self.stream.items.push(item);
        self.arrivals.push(Instant::now());
        Ok(came)
    }

    /// Reads until a message of a kind has come, and returns how many items came up to it.
    fn read_until(&mut self, kind: char) -> Result<usize> {
        loop {
            match self.next()? {
                Came::Item(came) if came == kind => return Ok(self.stream.items.len()),
                Came::End => bail!("the stream ended before a message {kind}"),
                _ => {}
            }
        }
    }

    fn read_items(&mut self, count: usize) -> Result<()> {
        let wanted = self.stream.items.len() + count;
        while self.stream.items.len() < wanted {
            ensure!(self.next()? != Came::End, "the stream ended");
        }
        Ok(())
    }

    /// Reads until everything has been sent.
    fn catch_up(&mut self, end: Lsn) -> Result<()> {
        loop {
            match self.next()? {
                Came::Keepalive(sent) if sent >= end => return Ok(()),
                Came::End => bail!("the stream ended before {end}"),
                _ => {}
            }
        }
    }

    /// Reads to the error or the broken connection that the stream ends with.
    fn read_to_end(&mut self) -> Result<()> {
        loop {
            match self.next() {
                Ok(_) => {}
                Err(Error::Server(response)) => {
                    self.stream.error = Some(*response);
                    return Ok(());
                }
                Err(Error::Io(error)) if is_end(&error) => return Ok(()),
                Err(Error::Io(error)) => return Err(error.into()),
            }
        }
    }
}

fn is_end(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// Checks that a stream that was broken off is how the whole one begins.
fn check_prefix(whole: &Stream, part: &Stream) -> Result<()> {
    ensure!(part.items.len() <= whole.items.len(), "{} items are too many", part.items.len());
    let begin = Stream { items: whole.items[..part.items.len()].to_vec(), error: None };
    let part = Stream { items: part.items.clone(), error: None };
    compare(&begin, &part, &Options::new(1, "p"))
}

/// A walsender holds what the other holds, and the messages that it gathers: each in the connection's buffer, which
/// has grown by the setting's value and a message at most, and in no other place.
fn memory_over_many_tables(test: &Test) -> Result<()> {
    const TABLES: usize = 1000;
    const ROWS: usize = 200;
    /// `pgoutput_rs.flush_bytes`, and what may differ in the order of the allocator's blocks.
    const GATHERED: u64 = 64 * 1024;
    const BLOCKS: u64 = 64 * 1024;
    let cluster = test.cluster()?;
    let publisher = Publisher::new(
        &cluster,
        &format!(
            "DO $$ BEGIN FOR i IN 1..{TABLES} LOOP
                EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, v text, n numeric, z timestamptz)', 't' || i);
             END LOOP; END $$;
             CREATE PUBLICATION p FOR ALL TABLES"
        ),
    )?;
    publisher.execute(&format!(
        "DO $$ BEGIN FOR i IN 1..{TABLES} LOOP
            EXECUTE format('INSERT INTO %I SELECT i, ''value '' || i, i / 7.0, now() FROM generate_series(1, {ROWS}) i', 't' || i);
            COMMIT;
         END LOOP; END $$"
    ))?;
    let end = cluster.flushed(&publisher.database)?;
    let mut measured = Vec::new();
    for slot in SLOTS {
        let mut reader = publisher.attach(slot, &[])?;
        reader.catch_up(end)?;
        let messages = reader.stream.items.len();
        ensure!(messages == TABLES * (ROWS + 3), "{slot}: {messages} messages");
        let contexts = cluster.memory_contexts(reader.pid())?;
        measured.push((contexts, ProcessMemory::of(reader.pid())?));
    }
    let [((stock, _), stock_process), ((ours, _), ours_process)] = measured[..] else {
        bail!("not two walsenders")
    };
    let text = format!("{measured:?}");
    ensure!(ours <= stock + GATHERED + BLOCKS, "in memory contexts: {text}");
    ensure!(
        ours_process.anonymous <= stock_process.anonymous + GATHERED + PROCESS_SLACK,
        "in the process: {text}"
    );
    Ok(())
}

/// What two processes that do the same may differ by in what they have taken from the system.
const PROCESS_SLACK: u64 = 1024 * 1024;

/// The walsender waits for its client as stock's does, and takes no memory for what it can't send.
fn client_that_stops_reading(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::with_bulk(&cluster)?;
    let end = cluster.flushed(&publisher.database)?;
    let whole = publisher.read(SLOTS[0])?;
    let mut measured = Vec::new();
    for slot in SLOTS {
        let mut reader = publisher.attach_until_blocked(slot, &[])?;
        // Some, then none for a while, then some, and so on.
        let blocked = ProcessMemory::of(reader.pid())?;
        thread::sleep(Duration::from_secs(1));
        let later = ProcessMemory::of(reader.pid())?;
        ensure!(later == blocked, "{slot}: {blocked:?} has become {later:?}");
        for _ in 0..10 {
            reader.read_items(2000)?;
            publisher.wait_until_blocked(reader.pid())?;
        }
        measured.push(ProcessMemory::of(reader.pid())?.anonymous);
        reader.catch_up(end)?;
        compare(&whole, &reader.stream, &Options::new(1, "p")).with_context(|| slot.to_owned())?;
    }
    ensure!(measured[1] <= measured[0] + PROCESS_SLACK, "stock and ours, in bytes: {measured:?}");
    Ok(())
}

/// A client that has enough says so in the middle of a transaction. The connection then takes other commands; another
/// stream ends at once there, whatever the plugin, for the server goes by what the first client said.
fn client_that_ends_the_stream_halfway(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::with_bulk(&cluster)?;
    let whole = publisher.read(SLOTS[0])?;
    let mut afterwards = Vec::new();
    for slot in SLOTS {
        let mut reader = publisher.attach_until_blocked(slot, &[])?;
        reader.connection.end_replication()?;
        while reader.next()? != Came::End {}
        check_prefix(&whole, &reader.stream).with_context(|| slot.to_owned())?;
        let mut again = Stream::default();
        let progress = Progress::until(cluster.flushed(&publisher.database)?);
        again.read(&mut reader.connection, slot, &Options::new(1, "p"), &progress)?;
        let rows = reader.connection.query("SELECT 'alive'")?;
        ensure!(rows == [[Some(b"alive".to_vec())]], "{slot}: {rows:?}");
        afterwards.push(again);
    }
    compare(&afterwards[0], &afterwards[1], &Options::new(1, "p")).context("the second stream")
}

/// A row filter that takes its time, unless `keep`. It uses a column: else the server would do it once.
const SLOW_FILTER_SETUP: &str = "CREATE TABLE t (id int, keep bool, v text);
     ALTER TABLE t ALTER v SET STORAGE PLAIN;
     CREATE PUBLICATION p FOR TABLE t WHERE (keep OR md5(repeat(v, 20000)) = v)
         WITH (publish = 'insert')";

/// A number of rows of [`SLOW_FILTER_SETUP`] that takes about that long to filter.
fn rows_filtered_in(publisher: &Publisher<'_>, time: Duration) -> Result<u128> {
    let mut client = publisher.cluster.client(&publisher.database)?;
    let mut rows = 50;
    loop {
        let started = Instant::now();
        client.execute(
            &format!(
                "SELECT count(*) FROM generate_series(1, {rows}) id
                 WHERE md5(repeat('filtered' || left(id::text, 0), 20000)) = 'filtered'"
            ),
            &[],
        )?;
        let elapsed = started.elapsed();
        if elapsed > Duration::from_millis(100) {
            return Ok(rows * time.as_micros() / elapsed.as_micros());
        }
        rows *= 2;
    }
}

/// What goes out leaves at once, although the transaction goes on for long with what doesn't.
fn gathered_rows_do_not_wait_for_filtered_ones(test: &Test) -> Result<()> {
    const KEPT: usize = 50;
    let cluster = test.cluster()?;
    let publisher = Publisher::new(&cluster, SLOW_FILTER_SETUP)?;
    let rows = rows_filtered_in(&publisher, Duration::from_millis(2500))?;
    publisher.execute(&format!(
        "BEGIN;
         INSERT INTO t SELECT i, true, 'kept' FROM generate_series(1, {KEPT}) i;
         INSERT INTO t SELECT i, false, 'filtered' FROM generate_series(1, {rows}) i;
         COMMIT"
    ))?;
    let mut reader = publisher.attach(SLOTS[1], &[("wal_sender_timeout", "1s")])?;
    let count = reader.read_until('C')?;
    ensure!(count == KEPT + 3, "{count} messages");
    let waited = reader.arrivals[count - 1] - reader.arrivals[count - 2];
    ensure!(waited > Duration::from_secs(1), "the last row came only {waited:?} before Commit");
    ensure!(
        reader.pings.contains(&(count - 1)),
        "no keepalive between the rows and Commit: {:?} of {count}",
        reader.pings
    );
    Ok(())
}

/// What didn't fit into the socket while the client didn't read is not forgotten when nothing follows for long.
fn rest_that_a_full_socket_leaves(test: &Test) -> Result<()> {
    const KEPT: usize = 1000;
    let cluster = test.cluster()?;
    let publisher = Publisher::new(&cluster, SLOW_FILTER_SETUP)?;
    let rows = rows_filtered_in(&publisher, Duration::from_millis(3500))?;
    publisher.execute(&format!(
        "BEGIN;
         INSERT INTO t SELECT i, true, repeat('v', 2000) FROM generate_series(1, {KEPT}) i;
         INSERT INTO t SELECT i, false, 'filtered' FROM generate_series(1, {rows}) i;
         COMMIT"
    ))?;
    // No send because of the size, which would wait for the client, but only because of the age.
    let mut reader = publisher.attach(SLOTS[1], &[("pgoutput_rs.flush_bytes", "16MB")])?;
    // The walsender is past the rows, or waits for the client: that is well too, if it is because it was slow.
    thread::sleep(Duration::from_millis(500));
    let count = reader.read_until('C')?;
    ensure!(count == KEPT + 3, "{count} messages");
    let waited = reader.arrivals[count - 1] - reader.arrivals[count - 2];
    ensure!(waited > Duration::from_secs(1), "the last row came only {waited:?} before Commit");
    Ok(())
}

/// A transaction that is filtered away keeps the connection alive, however long it takes.
fn nothing_to_send_for_long(test: &Test) -> Result<()> {
    const TIMEOUT_OF_SERVER: Duration = Duration::from_secs(2);
    let session = [("wal_sender_timeout", "2s")];
    let cluster = test.cluster()?;

    let filtered = Publisher::new(&cluster, SLOW_FILTER_SETUP)?;
    let rows = rows_filtered_in(&filtered, TIMEOUT_OF_SERVER * 2)?;
    filtered
        .execute(&format!("INSERT INTO t SELECT i, false, 'filtered' FROM generate_series(1, {rows}) i"))?;
    let end = cluster.flushed(&filtered.database)?;
    let mut reader = filtered.attach(SLOTS[1], &session)?;
    let started = Instant::now();
    reader.catch_up(end)?;
    ensure!(started.elapsed() > TIMEOUT_OF_SERVER, "{rows} rows took only {:?}", started.elapsed());
    ensure!(reader.stream.items.is_empty(), "{:?}", reader.stream.items);
    drop(reader);
    cluster.clean()?;

    let nothing = Publisher::new(
        &cluster,
        "CREATE TABLE t (id int);
         CREATE PUBLICATION p FOR TABLE t WITH (publish = '')",
    )?;
    // Faster than any filter: the process is slowed down.
    let mut rows = 100_000;
    loop {
        nothing.execute(&format!("INSERT INTO t SELECT generate_series(1, {rows})"))?;
        let end = cluster.flushed(&nothing.database)?;
        let mut reader = nothing.attach(SLOTS[1], &session)?;
        let started = Instant::now();
        let slowed = SlowedDown::new(reader.pid(), Duration::from_millis(5));
        reader.catch_up(end)?;
        drop(slowed);
        ensure!(reader.stream.items.is_empty(), "{:?}", reader.stream.items);
        if started.elapsed() > TIMEOUT_OF_SERVER {
            return Ok(());
        }
        drop(reader);
        cluster.wait_for_slot(SLOTS[1])?;
        rows *= 4;
    }
}

fn terminate(cluster: &Cluster, pid: u32) -> Result<()> {
    let row =
        cluster.client("postgres")?.query_one("SELECT pg_terminate_backend($1)", &[&pid.cast_signed()])?;
    ensure!(row.get::<_, bool>(0), "process {pid} can't be terminated");
    Ok(())
}

fn terminated_while_the_client_reads(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::with_bulk(&cluster)?;
    let whole = publisher.read(SLOTS[0])?;
    for slot in SLOTS {
        let mut reader = publisher.attach(slot, &[])?;
        reader.read_items(1000)?;
        terminate(&cluster, reader.pid())?;
        reader.read_to_end()?;
        check_prefix(&whole, &reader.stream).with_context(|| slot.to_owned())?;
        ensure!(
            reader.stream.error.as_ref().is_some_and(|error| error.code == "57P01"),
            "{slot}: {:?} after {} messages",
            reader.stream.error,
            reader.stream.items.len()
        );
    }
    Ok(())
}

fn terminated_while_the_client_does_not_read(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::with_bulk(&cluster)?;
    let whole = publisher.read(SLOTS[0])?;
    for slot in SLOTS {
        let mut reader = publisher.attach_until_blocked(slot, &[])?;
        terminate(&cluster, reader.pid())?;
        // It ends when the client reads or is gone: before, it waits to tell the client why.
        reader.read_to_end()?;
        wait_until("the walsender to end", || Ok(!process::exists(reader.pid())))?;
        check_prefix(&whole, &reader.stream).with_context(|| slot.to_owned())?;
    }
    Ok(())
}

fn shut_down_while_the_client_reads(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::with_bulk(&cluster)?;
    let whole = publisher.read(SLOTS[0])?;
    let mut took = Vec::new();
    for slot in SLOTS {
        let mut reader = publisher.attach(slot, &[])?;
        reader.confirms = true;
        reader.read_items(1000)?;
        let started = Instant::now();
        thread::scope(|scope| {
            let stopping = scope.spawn(|| cluster.stop(Stop::Fast));
            let read = reader.read_to_end();
            let stopped = stopping.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?;
            read.and(stopped)
        })?;
        took.push(started.elapsed());
        // All of it: a walsender goes on until its client has everything.
        compare(&whole, &reader.stream, &Options::new(1, "p")).with_context(|| slot.to_owned())?;
        cluster.start_again()?;
    }
    check_stopping(&took)
}

/// How much longer than with the built-in plugin the server may take to stop: far more than the machine may make of it,
/// far less than it is when nobody wakes a walsender up.
const STOPPING_SLACK: Duration = Duration::from_secs(10);

fn check_stopping(took: &[Duration]) -> Result<()> {
    ensure!(took[1] <= took[0] + STOPPING_SLACK, "the server with stock and ours took {took:?} to stop");
    Ok(())
}

fn shut_down_while_the_client_does_not_read(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::with_bulk(&cluster)?;
    let whole = publisher.read(SLOTS[0])?;
    let mut took = Vec::new();
    for slot in SLOTS {
        let mut reader = publisher.attach_until_blocked(slot, &[("wal_sender_timeout", "2s")])?;
        let started = Instant::now();
        cluster.stop(Stop::Fast)?;
        took.push(started.elapsed());
        reader.read_to_end()?;
        check_prefix(&whole, &reader.stream).with_context(|| slot.to_owned())?;
        cluster.start_again()?;
    }
    check_stopping(&took)
}

/// The SQL functions give rows, not frames, also where the process is a walsender.
fn sql_functions_in_a_walsender(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::new(
        &cluster,
        "CREATE TABLE t (id int PRIMARY KEY, v text);
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    cluster.run_script(
        &publisher.database,
        "INSERT INTO t SELECT i, repeat('v', i) FROM generate_series(1, 1000) i;
         UPDATE t SET v = 'w' WHERE id < 10",
    )?;
    let middle = cluster.flushed(&publisher.database)?;
    cluster.run_script(&publisher.database, "DELETE FROM t; INSERT INTO t VALUES (1, 'after')")?;
    let end = cluster.flushed(&publisher.database)?;
    let options = Options::new(1, "p");
    let mut seen = Vec::new();
    for slot in SLOTS {
        let mut connection = cluster.connect(&Parameters::replication(&publisher.database))?;
        let mut call = |function, until| Stream::call(&mut connection, function, slot, &options, until);
        let peeked = call("pg_logical_slot_peek_binary_changes", end)?;
        let taken = call("pg_logical_slot_get_binary_changes", middle)?;
        let peeked_again = call("pg_logical_slot_peek_binary_changes", end)?;
        let mut streamed = Stream::default();
        streamed.read(&mut connection, slot, &options, &Progress::until(end))?;
        let after = Stream::call(&mut connection, "pg_logical_slot_get_binary_changes", slot, &options, end)?;
        for (stream, least) in [(&peeked, 2000), (&taken, 1000), (&peeked_again, 1000), (&streamed, 1000)] {
            ensure!(stream.error.is_none(), "{slot}: {:?}", stream.error);
            ensure!(stream.items.len() > least, "{slot}: {} messages", stream.items.len());
        }
        seen.push([peeked, taken, peeked_again, streamed, after]);
    }
    for (stock, ours) in seen[0].iter().zip(&seen[1]) {
        compare(stock, ours, &options)?;
    }
    Ok(())
}

/// What came before an ERROR has been delivered, and the connection takes another stream.
fn streams_after_errors(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::new(
        &cluster,
        "CREATE TABLE t (id int PRIMARY KEY, v text, d int);
         CREATE PUBLICATION p FOR TABLE t;
         CREATE PUBLICATION divided FOR TABLE t WHERE (100 / id > -1) WITH (publish = 'insert')",
    )?;
    cluster.run_script(
        &publisher.database,
        "INSERT INTO t SELECT i, 'value ' || i FROM generate_series(1, 3000) i;
         BEGIN;
         INSERT INTO t SELECT i, 'value ' || i FROM generate_series(3001, 3100) i;
         INSERT INTO t VALUES (0, 'none', 0);
         INSERT INTO t SELECT i, 'value ' || i FROM generate_series(4001, 4100) i;
         INSERT INTO t VALUES (5000, '€', 0);
         COMMIT",
    )?;
    let end = cluster.flushed(&publisher.database)?;
    let mut seen = Vec::new();
    for slot in SLOTS {
        let parameters = Parameters::replication(&publisher.database).with("client_encoding", "LATIN1");
        let mut connection = cluster.connect(&parameters)?;
        let mut streams = Vec::new();
        // Twice each, and one after the other, all in one process.
        for options in [
            Options::new(1, "p"),
            Options::new(1, "divided"),
            Options::new(1, "p, missing"),
            Options::new(1, "divided").binary(),
            Options::new(2, "divided").with("streaming", "on"),
            Options::new(1, "p").with("unknown", "x"),
            Options::new(1, "p"),
        ] {
            let mut stream = Stream::default();
            match stream.read(&mut connection, slot, &options, &Progress::until(end)) {
                Ok(()) => {}
                Err(Error::Server(response)) => stream.error = Some(*response),
                Err(Error::Io(error)) => return Err(error).with_context(|| format!("{slot}, {options}")),
            }
            streams.push((options, stream));
        }
        connection.query("SET client_encoding = UTF8")?;
        let mut whole = Stream::default();
        let options = Options::new(1, "p");
        whole.read(&mut connection, slot, &options, &Progress::until(end))?;
        streams.push((options, whole));
        seen.push(streams);
    }
    let mut codes = Vec::new();
    for ((options, stock), (_, ours)) in seen[0].iter().zip(&seen[1]) {
        compare(stock, ours, options)?;
        codes.push(stock.error.as_ref().map_or("", |error| error.code.as_str()));
        if ["22P05", "22012"].contains(codes.last().unwrap_or(&"")) {
            ensure!(stock.messages().count() > 3000, "nothing came before the error");
        }
    }
    for code in ["22P05", "22012", "XX000", ""] {
        ensure!(codes.contains(&code), "no stream ended with {code:?}: {codes:?}");
    }
    Ok(())
}

/// Settings that change while messages are gathered and the client doesn't read: rows look as before, then as
/// afterwards, and none is lost. Where exactly they change is a matter of when the server looks.
fn settings_reloaded_while_sending(test: &Test) -> Result<()> {
    const ROWS: usize = 30_000;
    /// How values are shown before and after each of the three settings that matter to them.
    const LOOKS: [[&str; 2]; 3] = [
        ["2026-12-24", "24.12.2026"],
        [r"\\x00ff", r"\\000\\377"],
        ["0.10000000149011612", "0.100000001490116"],
    ];
    let cluster = test.cluster()?;
    let publisher = Publisher::new(
        &cluster,
        "CREATE TABLE t (id int, d date, b bytea, f float8, v text);
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    publisher.execute(&format!(
        "INSERT INTO t SELECT i, '2026-12-24', '\\x00ff', 0.1::float4, repeat('v', 100) FROM generate_series(1, {ROWS}) i"
    ))?;
    for slot in SLOTS {
        let mut reader = publisher.attach(slot, &[])?;
        for (name, value) in [
            ("pgoutput_rs.flush_bytes", "0"),
            ("DateStyle", "German, DMY"),
            ("pgoutput_rs.flush_bytes", "1MB"),
            ("bytea_output", "escape"),
            ("extra_float_digits", "0"),
        ] {
            reader.read_items(1000)?;
            publisher.wait_until_blocked(reader.pid())?;
            set_in_configuration(&cluster, name, value)?;
        }
        reader.read_until('C')?;
        check_rows_change_looks(&reader.stream, ROWS, &LOOKS).with_context(|| slot.to_owned())?;
        drop(reader);
        cluster.wait_for_slot(slot)?;
        reset_configuration(&cluster)?;
    }
    Ok(())
}

/// Changes a setting of the configuration and waits until every process has been told.
fn set_in_configuration(cluster: &Cluster, name: &str, value: &str) -> Result<()> {
    let mut client = cluster.client("postgres")?;
    if name.starts_with("pgoutput_rs.") {
        if plugin() == "pgoutput" {
            return Ok(());
        }
        // Without the library 15 doesn't know the setting here.
        client.batch_execute("LOAD 'pgoutput_rs'")?;
    }
    client.batch_execute(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until(&format!("{name} to be reloaded"), || {
        // A session that begins with it: before, the postmaster has told those that there were.
        let row = cluster.client("postgres")?.query_one("SELECT current_setting($1)", &[&name])?;
        Ok(row.get::<_, &str>(0) == value)
    })
}

fn reset_configuration(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.client("postgres")?;
    client.batch_execute("ALTER SYSTEM RESET ALL")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until("the configuration to be reloaded", || {
        let row = cluster.client("postgres")?.query_one("SHOW extra_float_digits", &[])?;
        Ok(row.get::<_, &str>(0) == "1")
    })
}

/// Checks that there are all rows, in their order, and that each look changes once, in the order given.
fn check_rows_change_looks(stream: &Stream, rows: usize, looks: &[[&str; 2]]) -> Result<()> {
    let mut decoder = Options::new(1, "p").decoder();
    let mut changed = 0;
    let mut seen = 0;
    for message in stream.messages() {
        let text = decoder.decode(message)?.to_string();
        if message.first() != Some(&b'I') {
            continue;
        }
        seen += 1;
        let expected = |changed: usize| {
            let value = |at: usize| looks[at][usize::from(at < changed)];
            format!("('{seen}', '{}', '{}', '{}', '", value(0), value(1), value(2))
        };
        while !text.contains(&expected(changed)) {
            changed += 1;
            ensure!(changed <= looks.len(), "row {seen} is {text}");
        }
    }
    ensure!(seen == rows, "{seen} rows");
    ensure!(changed == looks.len(), "only {changed} settings took effect");
    Ok(())
}

/// Rows at the limits of what the server can send. What came before them is delivered, whatever they end in, and the
/// connection can be used on.
fn huge_rows(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let publisher = Publisher::new(
        &cluster,
        "CREATE TABLE t (id int, v text, b bytea);
         CREATE PUBLICATION p FOR TABLE t",
    )?;
    let mut client = cluster.client(&publisher.database)?;
    const MEGABYTE: u32 = 1 << 20;
    // Bytes of text, and of bytea, which has two digits for each; in which encoding, and the SQLSTATE that it ends in.
    for (text, bytea, encoding, code) in [
        (300 * MEGABYTE, 0, "LATIN1", None),
        (530 * MEGABYTE, 0, "UTF8", None),
        // A message that the connection's buffer can hold, but not together with others.
        (24 * MEGABYTE - 800, 500 * MEGABYTE, "UTF8", None),
        // More than a message can have, and more than a value.
        (30 * MEGABYTE, 500 * MEGABYTE, "UTF8", Some("54000")),
        (0, 520 * MEGABYTE, "UTF8", Some("XX000")),
    ] {
        let case = format!("{text} bytes of text, {bytea} of bytea, {encoding}");
        client.batch_execute(&format!(
            "BEGIN;
             INSERT INTO t SELECT i, 'before', '' FROM generate_series(1, 200) i;
             INSERT INTO t VALUES (0, repeat('01234567', {text} / 8), decode(repeat('01234567', {bytea} / 8), 'escape'));
             INSERT INTO t VALUES (1, 'after', '');
             COMMIT"
        ))?;
        let end = cluster.flushed(&publisher.database)?;
        let mut streams = Vec::new();
        for slot in SLOTS {
            let parameters = Parameters::replication(&publisher.database).with("client_encoding", encoding);
            let mut connection = cluster.connect(&parameters)?;
            let mut stream = Stream::default();
            match stream.read(&mut connection, slot, &Options::new(1, "p"), &Progress::until(end)) {
                Ok(()) => {}
                Err(Error::Server(response)) => stream.error = Some(*response),
                Err(error) => return Err(error).with_context(|| format!("{slot}, {case}")),
            }
            connection.query("SELECT 1")?;
            streams.push(stream);
        }
        compare(&streams[0], &streams[1], &Options::new(1, "p")).with_context(|| case.clone())?;
        ensure!(streams[0].messages().count() >= 202, "{case}: {} messages", streams[0].messages().count());
        let error = streams[0].error.as_ref();
        ensure!(error.map(|error| error.code.as_str()) == code, "{case}: {error:?}");
        for slot in SLOTS {
            cluster.wait_for_slot(slot)?;
            client.execute(
                "SELECT pg_replication_slot_advance($1::text::name, pg_current_wal_flush_lsn())",
                &[&slot],
            )?;
        }
    }
    Ok(())
}
