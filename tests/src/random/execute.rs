//! Runs cases, one after the other, on one cluster.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Error, Result};
use pgoutput_protocol::Lsn;
use postgres::Client;

use super::case::{Action, Case, SESSIONS, SlotKind, StreamSpec, Via, is_copy};
use super::coverage::{Coverage, Truth};
use crate::server::plugin;
use crate::stream::{Item, Progress, Stream, compare, same_item};
use crate::wire::{self, Connection, Parameters};
use crate::{Cluster, quote, wait_until};

/// After so many cases, a new database: the catalogs of the old one have grown.
const CASES_PER_DATABASE: u32 = 20;

/// How long a statement waits for a lock. Whoever has it does nothing in the meantime.
const LOCK_TIMEOUT: &str = "20ms";

/// Runs cases.
#[derive(Debug)]
pub struct Runner<'a> {
    cluster: &'a Cluster,
    database: Option<Database>,
    /// Changes the options that our plugin gets, so that there is a difference.
    sabotage: Option<Sabotage>,
}

/// What is changed in the options of one of the two plugins.
pub type Sabotage = fn(&StreamSpec) -> StreamSpec;

struct Control(Client);

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("control session")
    }
}

/// A database and the sessions in it.
#[derive(Debug)]
struct Database {
    name: String,
    cases: u32,
    /// For what isn't a statement of a case.
    control: Control,
    sessions: Vec<Connection>,
    /// Sessions that read slots of the built-in plugin and of ours.
    readers: [Reader; 2],
}

#[derive(Debug)]
struct Reader {
    sql: Connection,
    walsender: Connection,
}

/// A difference that a case shows.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The stream of the case that differs.
    pub stream: usize,
    /// What kind of difference it is: the same for cases that show the same.
    pub signature: String,
    /// The first differing message, decoded.
    pub text: String,
}

impl<'a> Runner<'a> {
    /// On a cluster that nobody else uses.
    pub fn new(cluster: &'a Cluster) -> Self {
        Runner { cluster, database: None, sabotage: None }
    }

    /// Gives our plugin other options.
    pub fn sabotaged(self, sabotage: Sabotage) -> Self {
        Runner { sabotage: Some(sabotage), ..self }
    }

    /// Runs a case. The differences are the first of each stream that has one.
    ///
    /// # Errors
    ///
    /// When it can't be run. Statements of the case may fail, and a server that crashes is a difference.
    pub fn run(&mut self, case: &Case, coverage: Option<&mut Coverage>) -> Result<Vec<Difference>> {
        let log = self.cluster.log_length();
        let outcome = self.try_run(case, coverage);
        let log = self.cluster.log_since(log);
        let crash = log.lines().find(|line| line.contains("was terminated by signal"));
        if let Some(crash) = crash {
            self.database = None;
            wait_until("the server to recover", || Ok(self.cluster.client("postgres").is_ok()))?;
            let stream = match &outcome {
                Err(error) => error.downcast_ref::<InStream>().map_or(0, |stream| stream.0),
                Ok(_) => 0,
            };
            // The slots of the crashed case are there still.
            self.cluster.clean()?;
            let text = format!("the server crashed: {crash}\n");
            return Ok(vec![Difference { stream, signature: "crash".to_owned(), text }]);
        }
        if outcome.is_err() {
            self.database = None;
        }
        outcome
    }

    fn try_run(&mut self, case: &Case, coverage: Option<&mut Coverage>) -> Result<Vec<Difference>> {
        let mut database = match self.database.take() {
            Some(database) if database.cases < CASES_PER_DATABASE => database,
            Some(database) => {
                let name = database.name.clone();
                drop(database);
                self.cluster
                    .client("postgres")?
                    .batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))?;
                Database::new(self.cluster)?
            }
            None => {
                self.cluster.clean()?;
                Database::new(self.cluster)?
            }
        };
        database.cases += 1;
        let mut run = Run {
            cluster: self.cluster,
            database: &mut database,
            case,
            sabotage: self.sabotage,
            slots: BTreeMap::new(),
            coverage,
            differences: Vec::new(),
        };
        run.run()?;
        let differences = run.differences;
        database.clean().context("after the case")?;
        self.database = Some(database);
        Ok(differences)
    }
}

/// The stream in which an error came.
#[derive(Debug)]
struct InStream(usize);

impl fmt::Display for InStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in stream {}", self.0)
    }
}

impl Database {
    fn new(cluster: &Cluster) -> Result<Database> {
        let name = cluster.create_database()?;
        let control = Control(cluster.client(&name)?);
        let sessions = (0..SESSIONS)
            .map(|_| {
                let parameters = Parameters::sql(&name).with("lock_timeout", LOCK_TIMEOUT);
                Ok(cluster.connect(&parameters)?)
            })
            .collect::<Result<_>>()?;
        let reader = || -> Result<Reader> {
            Ok(Reader {
                sql: cluster.connect(&patient(Parameters::sql(&name)))?,
                walsender: cluster.connect(&patient(Parameters::replication(&name)))?,
            })
        };
        let readers = [reader()?, reader()?];
        Ok(Database { name, cases: 0, control, sessions, readers })
    }

    /// Removes all that a case left.
    fn clean(&mut self) -> Result<()> {
        for session in &mut self.sessions {
            session.query("ROLLBACK")?;
            // Fails for those that have none.
            let _ = session.query("SELECT pg_replication_origin_session_reset()");
            session.query("DISCARD ALL")?;
            session.take_notices();
        }
        let control = &mut self.control.0;
        for row in
            control.query("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()", &[])?
        {
            control.batch_execute(&format!("ROLLBACK PREPARED {}", quote::literal(row.get(0))))?;
        }
        control.batch_execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots;
             SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin",
        )?;
        let drops = control.query(
            "SELECT format('DROP PUBLICATION %I', pubname) FROM pg_publication
             UNION ALL
             SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace
             WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'",
            &[],
        )?;
        let drops: Vec<String> = drops.iter().map(|row| row.get(0)).collect();
        control.batch_execute("SET client_min_messages = warning")?;
        control.batch_execute(&drops.join(";"))?;
        control.batch_execute("CREATE SCHEMA public")?;
        Ok(())
    }
}

/// The slots that can be read again and again, and one for each stream that moves its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SlotGroup {
    Plain,
    /// Without two-phase commit until a stream asks for it, which a slot never forgets.
    Asked,
    TwoPhase,
    Of(usize),
}

struct Run<'a, 'c> {
    cluster: &'a Cluster,
    database: &'a mut Database,
    case: &'a Case,
    sabotage: Option<Sabotage>,
    slots: BTreeMap<SlotGroup, [String; 2]>,
    coverage: Option<&'c mut Coverage>,
    differences: Vec<Difference>,
}

impl Run<'_, '_> {
    fn run(&mut self) -> Result<()> {
        let case = self.case;
        for step in &case.setup {
            if let Action::Sql(_, sql) = &step.action {
                let outcome = execute(&mut self.database.sessions[0], sql);
                self.note(&step.covers, sql, outcome)?;
            }
        }
        self.make_slots()?;
        for step in &case.steps {
            match &step.action {
                Action::Sql(session, sql) => {
                    let outcome = execute(&mut self.database.sessions[*session], sql);
                    self.note(&step.covers, sql, outcome)?;
                }
                Action::Advance => {
                    self.note(&step.covers, "", Ok(()))?;
                    self.advance()?;
                }
            }
        }
        self.advance()?;
        let end = self.end()?;
        let truth = match &self.coverage {
            Some(_) => self.truth(end)?,
            None => Truth::default(),
        };
        for (number, spec) in case.streams.iter().enumerate().filter(|(_, spec)| spec.via != Via::Advance) {
            self.compare(number, spec, end, &truth).context(InStream(number))?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        let case = self.case;
        let end = self.end()?;
        for (number, spec) in case.streams.iter().enumerate().filter(|(_, spec)| spec.via == Via::Advance) {
            self.compare(number, spec, end, &Truth::default()).context(InStream(number))?;
        }
        Ok(())
    }

    fn note(&mut self, covers: &[&'static str], sql: &str, outcome: Result<(), wire::Error>) -> Result<()> {
        let error = match outcome {
            Ok(()) => None,
            Err(wire::Error::Server(error)) if error.severity == "ERROR" => Some(error),
            Err(error) => return Err(error).with_context(|| format!("the connection broke in {sql}")),
        };
        if let Some(coverage) = &mut self.coverage {
            coverage.statement(covers, sql, error.as_deref());
        }
        Ok(())
    }

    /// The end of the WAL that has been written so far.
    fn end(&mut self) -> Result<Lsn> {
        let client = &mut self.database.control.0;
        // This commit brings to disk what was aborted or not yet committed before.
        client.batch_execute("SELECT pg_logical_emit_message(true, '', '')")?;
        let row = client.query_one("SELECT pg_current_wal_flush_lsn()::text", &[])?;
        let lsn: &str = row.get(0);
        lsn.parse().map_err(|_| Error::msg(format!("not an LSN: {lsn}")))
    }

    fn group(number: usize, spec: &StreamSpec) -> SlotGroup {
        match spec.slot {
            _ if spec.via == Via::Advance => SlotGroup::Of(number),
            SlotKind::TwoPhase => SlotGroup::TwoPhase,
            SlotKind::Plain if spec.asks_two_phase() => SlotGroup::Asked,
            SlotKind::Plain => SlotGroup::Plain,
        }
    }

    /// Nothing happens between the first and the last.
    fn make_slots(&mut self) -> Result<()> {
        let client = &mut self.database.control.0;
        client.execute("SELECT pg_create_logical_replication_slot('truth', 'test_decoding')", &[])?;
        for (number, spec) in self.case.streams.iter().enumerate() {
            let group = Self::group(number, spec);
            if self.slots.contains_key(&group) {
                continue;
            }
            let names = ["stock", "ours"].map(|side| format!("{side}_{number}"));
            for (name, plugin) in names.iter().zip(["pgoutput", plugin().as_str()]) {
                // A copy is always without two-phase commit.
                let sql = match spec.slot {
                    SlotKind::Plain => {
                        "SELECT pg_copy_logical_replication_slot('truth', $1::text::name, false, $2::text::name)"
                    }
                    SlotKind::TwoPhase => {
                        "SELECT pg_create_logical_replication_slot($1::text::name, $2::text::name, false, true)"
                    }
                };
                client.execute(sql, &[name, &plugin])?;
            }
            self.slots.insert(group, names);
        }
        Ok(())
    }

    /// What another plugin tells of the changes.
    fn truth(&mut self, end: Lsn) -> Result<Truth> {
        let client = &mut self.database.control.0;
        let sql = format!(
            "SELECT lsn::text, convert_to(data, 'SQL_ASCII') FROM pg_logical_slot_peek_changes('truth', '{end}', NULL, 'skip-empty-xacts', '1')"
        );
        match client.query(&sql, &[]) {
            Ok(rows) => Ok(Truth::read(
                rows.iter().map(|row| (row.get(0), String::from_utf8_lossy(row.get(1)).into_owned())),
            )),
            Err(error) if error.as_db_error().is_some() => Ok(Truth::default()),
            Err(error) => Err(error.into()),
        }
    }

    fn compare(&mut self, number: usize, spec: &StreamSpec, end: Lsn, truth: &Truth) -> Result<()> {
        if self.differences.iter().any(|difference| difference.stream == number) {
            return Ok(());
        }
        let names = self.slots[&Self::group(number, spec)].clone();
        let ours = self.sabotage.map_or_else(|| spec.clone(), |sabotage| sabotage(spec));
        let stock = self.read(0, &names[0], spec, end)?;
        let ours = self.read(1, &names[1], &ours, end)?;
        if let Err(text) = compare(&stock, &ours, &spec.options) {
            let signature = signature(&stock, &ours);
            self.differences.push(Difference {
                stream: number,
                signature,
                text: format!("{text}\nread as {spec}\n"),
            });
        }
        if let Some(coverage) = &mut self.coverage {
            coverage.stream(spec, &stock, truth);
        }
        Ok(())
    }

    fn read(&mut self, side: usize, slot: &str, spec: &StreamSpec, end: Lsn) -> Result<Stream> {
        let reader = &mut self.database.readers[side];
        let (connection, function) = match spec.via {
            Via::Replication => {
                let parameters =
                    patient(Parameters::replication(&self.database.name)).with_all(&spec.settings);
                return Stream::replicate(
                    self.cluster,
                    &parameters,
                    slot,
                    &spec.options,
                    &Progress::until(end),
                );
            }
            Via::Sql => (&mut reader.sql, "pg_logical_slot_peek_binary_changes"),
            Via::WalsenderSql => (&mut reader.walsender, "pg_logical_slot_peek_binary_changes"),
            Via::Advance => (&mut reader.sql, "pg_logical_slot_get_binary_changes"),
        };
        for (name, value) in &spec.settings {
            connection.query(&format!("SET {name} = {}", quote::literal(value)))?;
        }
        let stream = Stream::call(connection, function, slot, &spec.options, end)?;
        connection.query("RESET ALL")?;
        connection.take_notices();
        Ok(stream)
    }
}

/// Decoding waits for locks too: `record_send` locks a composite type that an open transaction has renamed. Nothing
/// ends that transaction meanwhile, so both plugins have to fail, at the same point.
fn patient(parameters: Parameters) -> Parameters {
    parameters.with("lock_timeout", "500ms")
}

/// What differs first: the kinds of the messages, or what ends the streams.
fn signature(stock: &Stream, ours: &Stream) -> String {
    let same = stock.items.iter().zip(&ours.items).take_while(|(stock, ours)| same_item(stock, ours)).count();
    let kind = |stream: &Stream| match (stream.items.get(same), &stream.error) {
        (Some(Item::Message(_, message)), _) => {
            message.first().map_or("nothing".to_owned(), |byte| char::from(*byte).to_string())
        }
        (Some(Item::Notice(notice)), _) => notice.code.clone(),
        (None, Some(error)) => error.code.clone(),
        (None, None) => "end".to_owned(),
    };
    format!("{} {}", kind(stock), kind(ours))
}

/// Runs a statement, with its data if it is a COPY.
fn execute(session: &mut Connection, sql: &str) -> Result<(), wire::Error> {
    match sql.split_once('\n').filter(|_| is_copy(sql)) {
        Some((copy, data)) => session.query_with_data(copy, format!("{data}\n").as_bytes())?,
        None => session.query(sql)?,
    };
    Ok(())
}
