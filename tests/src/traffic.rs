//! Changes that several sessions make at once, while something happens to the servers.
//!
//! Each session has keys of its own, so that no two of them wait for each other for long; only rows of `counter` are
//! changed by all. What a session does is drawn from the seed; how the sessions mix is not determined.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Cluster, TIMEOUT, quote, wait_until};

/// The tables, for both sides.
///
/// `history` has no key and gets each row once: a transaction that is applied twice, or not at all, shows there.
pub const SCHEMA: &str = "
    CREATE TABLE item (id bigint PRIMARY KEY, n int, v text, d numeric, at timestamptz, a int[]);
    CREATE TABLE history (session int, number bigint, v text);
    CREATE TABLE unkeyed (session int, n int, v text);
    ALTER TABLE unkeyed REPLICA IDENTITY FULL;
    CREATE TABLE counter (id int PRIMARY KEY, n bigint);
    CREATE TABLE emptied (id bigint PRIMARY KEY, v text);
    CREATE TABLE unpublished (session int, v text);
";

/// The tables to publish. `unpublished` is empty after the traffic, and on a subscriber always.
pub const PUBLISHED: &str = "item, history, unkeyed, counter, emptied";

/// Rows of `counter`.
const COUNTERS: i32 = 10;
/// A session's keys are so many from `session * KEYS` on; an update of keys moves them from the first half to the second.
const KEYS: i64 = 10_000_000;

/// Which transactions have subtransactions.
///
/// When an 18 finds that a transaction it decodes is aborted already, it takes the subtransactions for streamed, even
/// if nothing was, and has the plugin send Stream Abort for them. A subscriber that has not streamed anything before
/// crashes at that, whatever the plugin: tests that aren't about this keep clear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subtransactions {
    Anywhere,
    InCommitted,
    Nowhere,
}

/// Sessions on a cluster, and what they do.
#[derive(Clone, Copy, Debug)]
pub struct Traffic<'a> {
    cluster: &'a Cluster,
    database: &'a str,
    seed: u64,
    first: i32,
    sessions: i32,
    big: f64,
    prepared: bool,
    replays: bool,
    subtransactions: Subtransactions,
}

impl<'a> Traffic<'a> {
    /// Three sessions in a database with [`SCHEMA`]. What the first does has a replication origin.
    pub fn new(cluster: &'a Cluster, database: &'a str, seed: u64) -> Self {
        let subtransactions = if cluster.server().major < 18 {
            Subtransactions::Anywhere
        } else {
            Subtransactions::InCommitted
        };
        Traffic {
            cluster,
            database,
            seed,
            first: 0,
            sessions: 3,
            big: 0.1,
            prepared: false,
            replays: true,
            subtransactions,
        }
    }

    /// Other keys than those of traffic without this, for the other side of a pair in both directions.
    pub fn other_keys(self) -> Self {
        Traffic { first: 100, ..self }
    }

    /// The publisher may be stopped at any time, which aborts transactions.
    pub fn stopped(self) -> Self {
        match self.subtransactions {
            Subtransactions::InCommitted => Traffic { subtransactions: Subtransactions::Nowhere, ..self },
            _ => self,
        }
    }

    /// No session has a replication origin.
    pub fn without_origin(self) -> Self {
        Traffic { replays: false, ..self }
    }

    /// The share of transactions with hundreds of rows.
    pub fn big(self, share: f64) -> Self {
        Traffic { big: share, ..self }
    }

    /// Some transactions are prepared first.
    pub fn prepared(self) -> Self {
        Traffic { prepared: true, ..self }
    }

    /// Runs `portion` transactions of all sessions together, calls `interrupt` while they go on, and so on: so many
    /// times, and a last portion.
    ///
    /// `interrupt` may end sessions and crash the server. It gets the number of the call.
    ///
    /// # Errors
    ///
    /// When a statement fails for another reason than a lost connection, or `interrupt` fails.
    pub fn run(
        &self,
        portion: u32,
        interruptions: u32,
        mut interrupt: impl FnMut(u32) -> Result<()>,
    ) -> Result<()> {
        ensure!(i64::from(portion) > i64::from(self.sessions), "the sessions would wait for each other");
        self.set_up()?;
        let gate = Gate::default();
        thread::scope(|scope| {
            let sessions: Vec<_> = (self.first..self.first + self.sessions)
                .map(|number| {
                    let gate = &gate;
                    scope.spawn(move || {
                        let outcome = Session::new(*self, number).run(gate);
                        if outcome.is_err() {
                            gate.close();
                        }
                        outcome.with_context(|| format!("in session {number} of the traffic"))
                    })
                })
                .collect();
            let interrupted = (0..interruptions).try_for_each(|call| {
                gate.open((call + 2) * portion);
                gate.wait_for((call + 1) * portion)?;
                interrupt(call).with_context(|| format!("in interruption {call}"))
            });
            match interrupted {
                Ok(()) => gate.end_at((interruptions + 1) * portion),
                Err(_) => gate.close(),
            }
            for session in sessions {
                session.join().map_err(|_| anyhow::anyhow!("a session of the traffic panicked"))??;
            }
            interrupted
        })?;
        self.cluster.client(self.database)?.batch_execute("DELETE FROM unpublished")?;
        Ok(())
    }

    fn set_up(&self) -> Result<()> {
        let mut client = self.cluster.client(self.database)?;
        let first = self.first * COUNTERS;
        client.batch_execute(&format!(
            "INSERT INTO counter SELECT i, 0 FROM generate_series({first}, {first} + {COUNTERS} - 1) i
             ON CONFLICT DO NOTHING"
        ))?;
        client.execute(
            "SELECT pg_replication_origin_create($1) WHERE NOT EXISTS
                (SELECT 1 FROM pg_replication_origin WHERE roname = $1)",
            &[&self.origin()],
        )?;
        Ok(())
    }

    /// The replication origin that the first session replays from.
    fn origin(&self) -> String {
        format!("traffic {}", self.first)
    }
}

/// How far the sessions may go.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    begun: u32,
    done: u32,
    limit: u32,
    is_last: bool,
    closed: bool,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another transaction may begin. When none may any more, tells so.
    ///
    /// A session that waits may keep others waiting in the server, by what it has prepared.
    fn enter(&self) -> bool {
        let is_full = |state: &mut State| state.begun >= state.limit;
        let mut state = self
            .changed
            .wait_while(self.state(), |state| is_full(state) && !state.closed && !state.is_last)
            .unwrap_or_else(PoisonError::into_inner);
        if state.closed || is_full(&mut state) {
            return false;
        }
        state.begun += 1;
        true
    }

    fn leave(&self) {
        self.state().done += 1;
        self.changed.notify_all();
    }

    fn open(&self, limit: u32) {
        self.state().limit = limit;
        self.changed.notify_all();
    }

    fn end_at(&self, limit: u32) {
        let mut state = self.state();
        (state.limit, state.is_last) = (limit, true);
        self.changed.notify_all();
    }

    fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    fn wait_for(&self, done: u32) -> Result<()> {
        let (state, timeout) = self
            .changed
            .wait_timeout_while(self.state(), TIMEOUT, |state| !state.closed && state.done < done)
            .unwrap_or_else(PoisonError::into_inner);
        ensure!(!timeout.timed_out(), "only {} of {done} transactions came to an end", state.done);
        ensure!(!state.closed, "a session failed");
        Ok(())
    }
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
    Prepare,
}

struct Session<'a> {
    traffic: Traffic<'a>,
    number: i32,
    rng: ChaCha8Rng,
    client: Option<Client>,
    /// The number of the next key, row of `history` or prepared transaction.
    next: i64,
    /// A transaction that has been prepared, whose rows this session must not touch.
    prepared: Option<String>,
}

impl<'a> Session<'a> {
    fn new(traffic: Traffic<'a>, number: i32) -> Self {
        let seed = traffic.seed.wrapping_mul(1000).wrapping_add(number.unsigned_abs().into());
        Session {
            traffic,
            number,
            rng: ChaCha8Rng::seed_from_u64(seed),
            client: None,
            next: 1,
            prepared: None,
        }
    }

    fn run(mut self, gate: &Gate) -> Result<()> {
        self.connect()?;
        // A run before may have left keys.
        let (first, number) = (i64::from(self.number) * KEYS, self.number);
        let row = self.client()?.query_one(
            "SELECT greatest((SELECT max(id % $1) FROM item WHERE id BETWEEN $2 AND $2 + 2 * $1 - 1),
                             (SELECT max(number % $1) FROM history WHERE session = $3), 0) + 1",
            &[&(KEYS / 2), &first, &number],
        )?;
        self.next = row.get(0);
        while gate.enter() {
            for script in self.transaction() {
                let Err(error) = self.client()?.batch_execute(&script) else { continue };
                if !self.has_lost_connection(&error) {
                    return Err(error).context(script);
                }
                self.connect()?;
                break;
            }
            gate.leave();
        }
        self.finish_prepared()
    }

    fn replays(&self) -> bool {
        self.traffic.replays && self.number == self.traffic.first
    }

    fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().context("no connection")
    }

    fn has_lost_connection(&self, error: &postgres::Error) -> bool {
        self.client.as_ref().is_none_or(Client::is_closed)
            || error.is_closed()
            || error.code().is_some_and(|code| code.code().starts_with("57P"))
    }

    /// Connects, when the server runs again, and settles what the connection before left prepared.
    fn connect(&mut self) -> Result<()> {
        self.client = None;
        let (cluster, database) = (self.traffic.cluster, self.traffic.database);
        let origin = self.traffic.origin();
        let replays = self.replays();
        let mut connected = None;
        let mut last = None;
        let outcome = wait_until("a connection", || {
            let attempt = || -> Result<Client> {
                let mut client = cluster.client(database)?;
                if replays {
                    // Fails as long as the session before has it.
                    client.execute("SELECT pg_replication_origin_session_setup($1)", &[&origin])?;
                }
                Ok(client)
            };
            match attempt() {
                Ok(client) => connected = Some(client),
                Err(error) => last = Some(error),
            }
            Ok(connected.is_some())
        });
        if let (Err(error), Some(last)) = (outcome, last) {
            return Err(last.context(error));
        }
        self.client = connected;
        self.finish_prepared()
    }

    /// Commits or rolls back what this session has prepared.
    fn finish_prepared(&mut self) -> Result<()> {
        self.prepared = None;
        let prefix = self.gid_prefix();
        let gids: Vec<String> = self
            .client()?
            .query("SELECT gid FROM pg_prepared_xacts WHERE gid ^@ $1", &[&prefix])?
            .iter()
            .map(|row| row.get(0))
            .collect();
        for gid in gids {
            let how = if self.rng.random_bool(0.7) { "COMMIT" } else { "ROLLBACK" };
            self.client()?.batch_execute(&format!("{how} PREPARED {}", quote::literal(&gid)))?;
        }
        Ok(())
    }

    fn gid_prefix(&self) -> String {
        format!("traffic of session {}: ", self.number)
    }

    /// A transaction, or what else a session does at a time, as scripts.
    fn transaction(&mut self) -> Vec<String> {
        if let Some(gid) = self.prepared.take() {
            // The locks of the prepared transaction leave inserts only.
            let between = self.insert();
            let how = if self.rng.random_bool(0.7) { "COMMIT" } else { "ROLLBACK" };
            return vec![between, format!("{how} PREPARED {}", quote::literal(&gid))];
        }
        if self.rng.random_bool(0.1) {
            return vec![self.statement()];
        }
        let end = match self.rng.random_range(0..10) {
            0 => End::Rollback,
            1..4 if self.traffic.prepared => End::Prepare,
            _ => End::Commit,
        };
        let nested = match self.traffic.subtransactions {
            Subtransactions::Anywhere => true,
            Subtransactions::InCommitted => end == End::Commit,
            Subtransactions::Nowhere => false,
        };
        let mut script = "BEGIN".to_owned();
        if self.replays() && self.rng.random_bool(0.5) {
            let lsn = self.rng.random_range(1..100_000);
            script.push_str(&format!("; SELECT pg_replication_origin_xact_setup('0/{lsn}', now())"));
        }
        let big = self.rng.random_bool(self.traffic.big);
        self.statements(&mut script, big);
        if nested && self.rng.random_bool(0.4) {
            script.push_str("; SAVEPOINT outer_one");
            self.statements(&mut script, big);
            if self.rng.random_bool(0.5) {
                script.push_str("; SAVEPOINT inner_one");
                self.statements(&mut script, false);
                script.push_str(if self.rng.random_bool(0.5) {
                    "; ROLLBACK TO inner_one"
                } else {
                    "; RELEASE inner_one"
                });
                self.statements(&mut script, false);
            }
            script.push_str(if self.rng.random_bool(0.5) {
                "; ROLLBACK TO outer_one"
            } else {
                "; RELEASE outer_one"
            });
            self.statements(&mut script, false);
        }
        if self.rng.random_bool(0.2) {
            let id = self.traffic.first * COUNTERS + self.rng.random_range(0..COUNTERS);
            script.push_str(&format!("; UPDATE counter SET n = n + 1 WHERE id = {id}"));
        }
        match end {
            End::Rollback => script.push_str("; ROLLBACK"),
            End::Commit => script.push_str("; COMMIT"),
            End::Prepare => {
                let gid = format!("{}{}", self.gid_prefix(), self.take(1));
                script.push_str(&format!("; PREPARE TRANSACTION {}", quote::literal(&gid)));
                self.prepared = Some(gid);
            }
        }
        vec![script]
    }

    fn statements(&mut self, script: &mut String, big: bool) {
        for _ in 0..self.rng.random_range(1..5) {
            script.push_str("; ");
            script.push_str(&self.statement());
        }
        if big {
            let rows = self.rng.random_range(300..1000);
            let (first, all) = (self.take(rows), self.all());
            let last = first + rows - 1;
            script.push_str(&format!(
                "; INSERT INTO item SELECT i, i % 100, md5(i::text), i / 7.0, now(), ARRAY[i % 10]
                   FROM generate_series({first}, {last}) i
                 ; UPDATE item SET n = n + 1 WHERE {all} AND n % 3 = 0
                 ; DELETE FROM item WHERE id BETWEEN {first} AND {last} AND id % 4 <> 0"
            ));
        }
    }

    /// Takes keys, and gives the first.
    fn take(&mut self, keys: i64) -> i64 {
        let first = self.next;
        self.next += keys;
        i64::from(self.number) * KEYS + first
    }

    /// The condition of this session's rows.
    fn all(&self) -> String {
        let first = i64::from(self.number) * KEYS;
        format!("id BETWEEN {first} AND {}", first + KEYS - 1)
    }

    fn insert(&mut self) -> String {
        let rows = self.rng.random_range(1..8);
        let (first, number) = (self.take(rows), self.number);
        let last = first + rows - 1;
        match self.rng.random_range(0..5) {
            0 => format!(
                "INSERT INTO history SELECT {number}, i, md5(i::text) FROM generate_series({first}, {last}) i"
            ),
            1 => format!(
                "INSERT INTO unkeyed SELECT {number}, i % 3, 'v' FROM generate_series({first}, {last}) i"
            ),
            // Some values too long for a page, and not to be compressed.
            _ => format!(
                "INSERT INTO item SELECT i, i % 100, (SELECT string_agg(md5((i::bigint * j)::text), '')
                                                      FROM generate_series(1, (i % 5 * 30)::int) j),
                                         i / 3.0, now(), NULL FROM generate_series({first}, {last}) i"
            ),
        }
    }

    fn statement(&mut self) -> String {
        let (all, number) = (self.all(), self.number);
        let (divisor, remainder) = (self.rng.random_range(5..30), self.rng.random_range(0..5));
        let some = format!("{all} AND id % {divisor} = {remainder}");
        let first = i64::from(number) * KEYS;
        match self.rng.random_range(0..100) {
            0..35 => self.insert(),
            35..50 => format!("UPDATE item SET n = n + 1, d = d * 2 % 1000003 WHERE {some}"),
            50..58 => format!("UPDATE item SET v = left(v, 40) || n, at = now() WHERE {some}"),
            58..64 => {
                let half = KEYS / 2;
                format!("UPDATE item SET id = id + {half} WHERE {some} AND id < {first} + {half}")
            }
            64..76 => format!("DELETE FROM item WHERE {some}"),
            76..80 => format!("UPDATE unkeyed SET n = n + 1 WHERE session = {number} AND n % 4 = 0"),
            80..84 => format!("DELETE FROM unkeyed WHERE session = {number} AND n % 4 <> 1"),
            84..90 => {
                format!("INSERT INTO unpublished SELECT {number}, md5(i::text) FROM generate_series(1, 20) i")
            }
            90..95 => {
                let transactional = self.rng.random_bool(0.5);
                format!("SELECT pg_logical_emit_message({transactional}, 'traffic', repeat('m', {divisor}))")
            }
            // One session only: the others would wait for the lock, and another side would empty what this one fills.
            _ if number == 1 => {
                let first = self.take(5);
                format!(
                    "TRUNCATE emptied; INSERT INTO emptied SELECT i, 'v' FROM generate_series({first}, {first} + 4) i"
                )
            }
            _ => self.insert(),
        }
    }
}
