//! The same WAL through the built-in plugin and through ours.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use postgres::Client;

use crate::options::Options;
use crate::server::plugin;
use crate::stream::{Progress, Stream, compare};
use crate::wire::{Parameters, Response};
use crate::{Cluster, wait_until};

/// Runs a workload in a database of its own and compares what both plugins send for it.
#[derive(Debug)]
pub struct Differential<'a> {
    cluster: &'a Cluster,
    database: String,
    cases: Vec<Case>,
    two_phase: bool,
}

#[derive(Clone, Debug)]
struct Case {
    options: Options,
    session: Vec<(String, String)>,
}

/// How many differences are shown.
const SHOWN: usize = 5;

/// What came in all cases together.
#[derive(Debug, Default)]
#[must_use = "a comparison of two empty streams shows nothing"]
pub struct Seen {
    streams: usize,
    counts: BTreeMap<char, usize>,
    errors: Vec<Response>,
    notices: Vec<Response>,
}

impl<'a> Differential<'a> {
    /// In a new database.
    ///
    /// # Errors
    ///
    /// When it can't be made.
    pub fn new(cluster: &'a Cluster) -> Result<Self> {
        let database = cluster.create_database()?;
        Ok(Differential { cluster, database, cases: Vec::new(), two_phase: false })
    }

    /// In a new database, in which an SQL script has been run.
    ///
    /// # Errors
    ///
    /// When the script fails.
    pub fn with_setup(cluster: &'a Cluster, script: &str) -> Result<Self> {
        let differential = Differential::new(cluster)?;
        differential.client()?.batch_execute(script).context("in the setup")?;
        Ok(differential)
    }

    /// Compares with these options.
    pub fn options(self, options: Options) -> Self {
        self.case(options, &[])
    }

    /// Compares with these options, as text and as binary.
    pub fn options_and_binary(self, options: Options) -> Self {
        self.options(options.clone()).case(options.binary(), &[])
    }

    /// Compares with these options in a session with these settings.
    pub fn case(mut self, options: Options, session: &[(&str, &str)]) -> Self {
        let session = session.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.cases.push(Case { options, session });
        self
    }

    /// Makes the slots with two-phase commit on.
    pub fn two_phase_slots(mut self) -> Self {
        self.two_phase = true;
        self
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// A session in the database.
    ///
    /// # Errors
    ///
    /// When it can't connect.
    pub fn client(&self) -> Result<Client> {
        self.cluster.client(&self.database)
    }

    /// Runs the workload, then decodes it with both plugins in every case, over a replication connection and
    /// through the SQL functions. Both see the catalogs' caches as they are after the workload.
    ///
    /// # Errors
    ///
    /// When anything differs: the error shows the first difference, decoded.
    pub fn run(&self, workload: impl FnOnce(&mut Client) -> Result<()>) -> Result<Seen> {
        let slots = self.create_slots()?;
        workload(&mut self.client()?).context("in the workload")?;
        let end = self.cluster.flushed(&self.database)?;
        let mut seen = Seen::default();
        let mut differences = Vec::new();
        for case in &self.cases {
            differences.extend(self.compare_replication(case, &slots, end, &mut seen)?);
            if case.options.fit_sql() {
                differences.extend(self.compare_peek(case, &slots, end, &mut seen)?);
            }
        }
        self.drop_slots(&slots)?;
        if differences.is_empty() {
            return Ok(seen);
        }
        let total = differences.len();
        differences.truncate(SHOWN);
        let shown: String = differences.iter().map(|difference| format!("\n\n{difference}")).collect();
        bail!("{total} of {} comparisons show a difference:{shown}", seen.streams)
    }

    /// Runs a script as psql does, as the workload of [`Differential::run`].
    ///
    /// # Errors
    ///
    /// As there, or when the script fails.
    pub fn run_script(&self, script: &str) -> Result<Seen> {
        self.run(|_| self.cluster.run_script(&self.database, script))
    }

    /// Streams both slots with the options of the first case while the workload runs, so that the plugins see
    /// changes of the catalogs when other sessions make them. When exactly is a matter of luck, unless
    /// the workload waits with [`Live::catch_up`] before and after.
    ///
    /// # Errors
    ///
    /// When anything differs: the error shows the first difference, decoded.
    pub fn run_live(&self, workload: impl FnOnce(&mut Client, &Live<'_>) -> Result<()>) -> Result<Seen> {
        let case = self.cases.first().context("a case is missing")?;
        let slots = self.create_slots()?;
        let parameters = Parameters::replication(&self.database).with_all(&case.session);
        let progress = [Progress::endless(), Progress::endless()];
        let [stock, ours] = thread::scope(|scope| {
            let [stock, ours] = [0, 1].map(|side| {
                let (slot, progress, parameters) = (&slots[side], &progress[side], &parameters);
                scope
                    .spawn(move || Stream::replicate(self.cluster, parameters, slot, &case.options, progress))
            });
            let live = Live { differential: self, progress: &progress };
            let outcome = self.client().and_then(|mut client| workload(&mut client, &live));
            let end = self.cluster.flushed(&self.database);
            for progress in &progress {
                progress.end_at(*end.as_ref().unwrap_or(&Lsn(0)));
            }
            // The keepalive that says so may have come before: WAL without anything to send brings another.
            if let Ok(mut client) = self.client() {
                let _ = client.batch_execute("SELECT txid_current()");
            }
            let streams = [stock, ours].map(|thread| thread.join());
            outcome.context("in the workload")?;
            end?;
            let [stock, ours] =
                streams.map(|stream| stream.map_err(|_| anyhow::anyhow!("a reader panicked")));
            anyhow::Ok([stock??, ours??])
        })?;
        compare(&stock, &ours, &case.options).context("over live replication connections")?;
        let mut seen = Seen::default();
        seen.add(stock);
        self.drop_slots(&slots)?;
        Ok(seen)
    }

    fn compare_replication(
        &self,
        case: &Case,
        slots: &[String; 2],
        end: Lsn,
        seen: &mut Seen,
    ) -> Result<Option<String>> {
        let parameters = Parameters::replication(&self.database).with_all(&case.session);
        let read = |slot: &str| {
            Stream::replicate(self.cluster, &parameters, slot, &case.options, &Progress::until(end))
        };
        let [stock, ours] = slots;
        let (stock, ours) = (read(stock)?, read(ours)?);
        let difference = compare(&stock, &ours, &case.options).err();
        seen.add(stock);
        Ok(difference
            .map(|difference| format!("over a replication connection{}:\n{difference}", case.session_text())))
    }

    fn compare_peek(
        &self,
        case: &Case,
        slots: &[String; 2],
        end: Lsn,
        seen: &mut Seen,
    ) -> Result<Option<String>> {
        let parameters = Parameters::sql(&self.database).with_all(&case.session);
        let read = |slot: &str| Stream::peek(self.cluster, &parameters, slot, &case.options, end);
        let [stock, ours] = slots;
        let (stock, ours) = (read(stock)?, read(ours)?);
        let difference = compare(&stock, &ours, &case.options).err();
        seen.add(stock);
        Ok(difference
            .map(|difference| format!("through the SQL functions{}:\n{difference}", case.session_text())))
    }

    /// Two slots at the same point: the first with the built-in plugin, the second with ours.
    fn create_slots(&self) -> Result<[String; 2]> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let [stock, ours] = [format!("stock_{number}"), format!("ours_{number}")];
        let mut client = self.client()?;
        client.execute(
            "SELECT pg_create_logical_replication_slot($1, 'pgoutput', false, $2)",
            &[&stock, &self.two_phase],
        )?;
        if self.two_phase {
            // A copy is without it. Nothing happens between the two.
            client.execute(
                "SELECT pg_create_logical_replication_slot($1, $2::text::name, false, true)",
                &[&ours, &plugin()],
            )?;
        } else {
            client.execute(
                "SELECT pg_copy_logical_replication_slot($1::text::name, $2::text::name, false, $3::text::name)",
                &[&stock, &ours, &plugin()],
            )?;
        }
        Ok([stock, ours])
    }

    fn drop_slots(&self, slots: &[String; 2]) -> Result<()> {
        let mut client = self.client()?;
        for slot in slots {
            client.execute("SELECT pg_drop_replication_slot($1::text::name)", &[slot])?;
        }
        Ok(())
    }
}

impl Case {
    fn session_text(&self) -> String {
        self.session.iter().map(|(name, value)| format!(", {name} = {value}")).collect()
    }
}

/// The two streams that run beside a workload.
#[derive(Debug)]
pub struct Live<'a> {
    differential: &'a Differential<'a>,
    progress: &'a [Progress; 2],
}

impl Live<'_> {
    /// Waits until both plugins have sent all that has been committed.
    ///
    /// # Errors
    ///
    /// When one doesn't.
    pub fn catch_up(&self) -> Result<()> {
        let end = self.differential.cluster.flushed(&self.differential.database)?;
        wait_until("both streams to catch up", || {
            Ok(self.progress.iter().all(|progress| progress.reached() >= end))
        })
    }
}

impl Seen {
    fn add(&mut self, stream: Stream) {
        self.streams += 1;
        for message in stream.messages() {
            *self.counts.entry(message.first().copied().map_or('?', char::from)).or_default() += 1;
        }
        self.notices.extend(stream.notices().cloned());
        self.errors.extend(stream.error);
    }

    /// How many messages of a kind came, by their first byte.
    pub fn count(&self, kind: char) -> usize {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// The errors that ended streams.
    pub fn errors(&self) -> &[Response] {
        &self.errors
    }

    /// The notices.
    pub fn notices(&self) -> &[Response] {
        &self.notices
    }

    /// Checks that every one of these kinds came, by the first byte of the messages, and no error.
    ///
    /// # Errors
    ///
    /// When not: then the comparison says less than the test wants.
    pub fn expect(&self, kinds: &str) -> Result<()> {
        if let Some(error) = self.errors.first() {
            bail!("both plugins raise an error, which the test doesn't want: {error}");
        }
        let missing: String = kinds.chars().filter(|kind| self.count(*kind) == 0).collect();
        ensure!(missing.is_empty(), "the test wants messages {missing}, which never came: {:?}", self.counts);
        Ok(())
    }

    /// Checks that every stream ended with this SQLSTATE.
    ///
    /// # Errors
    ///
    /// When not: then the comparison says something else than the test wants.
    pub fn expect_error(&self, code: &str) -> Result<()> {
        ensure!(
            !self.errors.is_empty() && self.errors.iter().all(|error| error.code == code),
            "the test wants errors {code}, but there were: {:?}",
            self.errors
        );
        Ok(())
    }
}
