//! Draws a case from a seed.

mod ddl;
mod dml;
mod publications;
mod streams;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::case::{Case, SESSIONS, Step};
use super::schema::{Holder, Publication, Table};
use super::values::TYPE_SETUP;
use crate::quote::literal;

/// The case of a round: the same for the same arguments, whatever ran before.
pub fn case(seed: u64, round: u64, major: u32) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(round);
    let mut generator = Generator {
        rng,
        major,
        tables: Vec::new(),
        publications: Vec::new(),
        schemas: Vec::new(),
        origins: Vec::new(),
        sessions: Default::default(),
        prepared: Vec::new(),
        crossed: None,
        session: None,
        names: 0,
        case: Case::default(),
    };
    generator.setup();
    generator.workload();
    generator.streams();
    generator.case
}

struct Generator {
    rng: ChaCha8Rng,
    major: u32,
    tables: Vec<Table>,
    publications: Vec<Publication>,
    /// Quoted.
    schemas: Vec<String>,
    /// With whether each exists.
    origins: Vec<(String, bool)>,
    sessions: [Session; SESSIONS],
    prepared: Vec<Prepared>,
    /// The table with a publication whose row filter its updates cross.
    crossed: Option<usize>,
    /// Whose statement is drawn; nobody's during the setup.
    session: Option<usize>,
    /// How many names have been made.
    names: usize,
    case: Case,
}

/// What a session is doing.
#[derive(Default)]
struct Session {
    /// The open transaction: its own level, then those of its savepoints.
    levels: Vec<Level>,
    /// How many statements it will still run.
    statements_left: u32,
    /// The replication origin.
    origin: Option<usize>,
    /// Whether it has used what can't be prepared.
    unpreparable: bool,
}

/// A (sub)transaction.
#[derive(Default)]
struct Level {
    savepoint: String,
    /// What its end by a rollback brings back, latest last.
    undo: Vec<Undo>,
}

enum Undo {
    Table(usize, Box<Table>),
    Publication(usize, Publication),
}

/// A prepared transaction that is neither committed nor rolled back.
struct Prepared {
    number: usize,
    gid: String,
    undo: Vec<Undo>,
}

impl Generator {
    fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    /// A number for a name that nothing else has.
    fn number(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Draws one of the choices by their weights.
    fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut at = self.rng.random_range(0..total);
        for (weight, choice) in choices {
            if at < *weight {
                return *choice;
            }
            at -= weight;
        }
        unreachable!("the weights add up to the total")
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        choices.choose(&mut self.rng).cloned()
    }

    fn emit(&mut self, sql: impl Into<String>, covers: impl Into<Option<&'static str>>) {
        let step =
            Step { covers: covers.into().into_iter().collect(), ..Step::sql(self.session.unwrap_or(0), sql) };
        if self.session.is_some() { self.case.steps.push(step) } else { self.case.setup.push(step) }
    }

    /// Whether the statement is one of a transaction block.
    fn in_transaction(&self) -> bool {
        self.session.is_some_and(|session| !self.sessions[session].levels.is_empty())
    }

    /// Whether a prepared or another session's transaction is open.
    fn others_are_open(&self) -> bool {
        !self.prepared.is_empty()
            || self
                .sessions
                .iter()
                .enumerate()
                .any(|(number, session)| Some(number) != self.session && !session.levels.is_empty())
    }

    /// The tables that the session may use.
    fn usable(&self, wanted: impl Fn(&Table) -> bool) -> Vec<usize> {
        let holder = self.session.map(Holder::Session);
        let free = |table: &Table| table.holder.is_none() || table.holder == holder;
        let mut usable = Vec::new();
        for (index, table) in self.tables.iter().enumerate() {
            if table.exists && free(table) && wanted(table) {
                usable.push(index);
            }
        }
        usable
    }

    /// The table, its ancestors and its partitions.
    fn family(&self, index: usize) -> Vec<usize> {
        let root = self.root(index);
        (0..self.tables.len()).filter(|table| self.root(*table) == root).collect()
    }

    fn root(&self, mut index: usize) -> usize {
        while let Some((parent, _)) = self.tables[index].parent {
            index = parent;
        }
        index
    }

    /// The table and everything below it.
    fn descendants(&self, index: usize) -> Vec<usize> {
        let mut found = vec![index];
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(
                (0..self.tables.len())
                    .filter(|table| self.tables[*table].parent.is_some_and(|(above, _)| above == parent)),
            );
            at += 1;
        }
        found
    }

    /// Notes that the transaction changes a table, if one is open.
    fn touch(&mut self, index: usize) {
        let Some(session) = self.session else { return };
        let saved = Box::new(self.tables[index].clone());
        if let Some(level) = self.sessions[session].levels.last_mut() {
            level.undo.push(Undo::Table(index, saved));
            self.tables[index].holder = Some(Holder::Session(session));
        }
    }

    fn touch_family(&mut self, index: usize) {
        for table in self.family(index) {
            self.touch(table);
        }
    }

    fn touch_publication(&mut self, index: usize) {
        let Some(session) = self.session else { return };
        let saved = self.publications[index].clone();
        if let Some(level) = self.sessions[session].levels.last_mut() {
            level.undo.push(Undo::Publication(index, saved));
        }
    }

    fn undo(&mut self, undo: Vec<Undo>) {
        for undo in undo.into_iter().rev() {
            match undo {
                Undo::Table(index, saved) => {
                    let next_id = self.tables[index].next_id;
                    let holder = self.tables[index].holder;
                    self.tables[index] = Table { next_id, holder, ..*saved };
                }
                Undo::Publication(index, saved) => self.publications[index] = saved,
            }
        }
    }

    fn pass(&mut self, from: Holder, to: Option<Holder>) {
        for table in self.tables.iter_mut().filter(|table| table.holder == Some(from)) {
            table.holder = to;
        }
    }

    fn setup(&mut self) {
        for statement in TYPE_SETUP {
            self.emit(*statement, None);
        }
        self.schemas.push("public".to_owned());
        for _ in 0..self.rng.random_range(0..3) {
            let number = self.number();
            let schema = super::schema::name(&mut self.rng, "s", number);
            self.emit(format!("CREATE SCHEMA {schema}"), None);
            self.schemas.push(schema);
        }
        for _ in 0..self.rng.random_range(1..5) {
            self.create_table();
        }
        if self.chance(0.45) {
            self.create_partitioned_table();
        }
        if self.chance(0.25) {
            self.create_referencing_table();
        }
        if self.chance(0.3) {
            self.create_crossed_table();
        }
        for _ in 0..self.rng.random_range(1..5) {
            self.create_publication();
        }
        // Rows that are there before the slots, for updates and deletes to find.
        for table in self.usable(|table| table.parent.is_none()) {
            if self.chance(0.8) {
                self.insert_into(table);
            }
        }
        if self.chance(0.35) {
            for _ in 0..self.rng.random_range(1..3) {
                self.create_origin();
            }
        }
    }

    fn workload(&mut self) {
        let sessions = self.weighted(&[(5, 1), (3, 2), (2, SESSIONS)]);
        for _ in 0..self.rng.random_range(25..90) {
            let session = self.rng.random_range(0..sessions);
            self.session = Some(session);
            if self.sessions[session].levels.is_empty() {
                self.outside_transaction();
            } else if self.sessions[session].statements_left == 0 {
                self.finish_transaction();
            } else {
                self.sessions[session].statements_left -= 1;
                self.inside_transaction();
            }
            if self.chance(0.03) {
                self.case.steps.push(Step { covers: vec!["slot moved in mid-stream"], ..Step::advance() });
            }
        }
        for session in 0..sessions {
            self.session = Some(session);
            if self.in_transaction() {
                self.finish_transaction();
            }
        }
        // Some stay prepared.
        while !self.prepared.is_empty() && self.chance(0.8) {
            self.resolve_prepared();
        }
    }

    fn outside_transaction(&mut self) {
        type Choice = fn(&mut Generator);
        let whole = self.weight_of_whole_tables();
        let mut choices: Vec<(u32, Choice)> = vec![
            (50, Generator::begin),
            (22, Generator::change_rows),
            (4 * whole, Generator::truncate),
            (14 * whole, Generator::change_schema),
            (5, Generator::change_publications),
            (4, Generator::logical_message),
            (3 * whole, Generator::maintain),
            (2, Generator::rename_schema),
        ];
        if !self.prepared.is_empty() {
            choices.push((25, Generator::resolve_prepared));
        }
        if !self.origins.is_empty() {
            choices.push((12, Generator::change_origin));
        }
        if self.crossed.is_some() {
            choices.push((12, Generator::cross));
        }
        self.weighted(&choices)(self);
    }

    fn inside_transaction(&mut self) {
        type Choice = fn(&mut Generator);
        let whole = self.weight_of_whole_tables();
        let mut choices: Vec<(u32, Choice)> = vec![
            (50, Generator::change_rows),
            (12, Generator::savepoint),
            (6, Generator::bulk),
            (2, Generator::many_subtransactions),
            (4 * whole, Generator::truncate),
            (7 * whole, Generator::change_schema),
            (2, Generator::change_publications),
            (5, Generator::logical_message),
            (1, Generator::fail),
        ];
        let session = &self.sessions[self.session.unwrap_or(0)];
        if session.levels.len() > 1 {
            choices.push((10, Generator::roll_back_to));
            choices.push((7, Generator::release));
        }
        if session.origin.is_some() {
            choices.push((15, Generator::set_origin_of_transaction));
        }
        if self.crossed.is_some() {
            choices.push((12, Generator::cross));
        }
        self.weighted(&choices)(self);
    }

    /// What takes a whole table waits for others in vain, mostly.
    fn weight_of_whole_tables(&mut self) -> u32 {
        if self.others_are_open() && self.chance(0.7) { 0 } else { 1 }
    }

    fn begin(&mut self) {
        let Some(session) = self.session else { return };
        let isolation = self.weighted(&[
            (8, "BEGIN"),
            (1, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
            (1, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
        ]);
        self.emit(isolation, None);
        let statements_left = self.weighted(&[(2, 0), (20, 2), (20, 4), (10, 8), (3, 15)]);
        let session = &mut self.sessions[session];
        session.levels.push(Level::default());
        session.statements_left = statements_left;
        session.unpreparable = false;
        if statements_left > 0 && self.chance(0.2) {
            self.bulk();
        }
    }

    fn finish_transaction(&mut self) {
        let Some(session) = self.session else { return };
        let prepare = if self.sessions[session].unpreparable { 0 } else { 28 };
        let undo: Vec<Undo> = std::mem::take(&mut self.sessions[session].levels)
            .into_iter()
            .flat_map(|level| level.undo)
            .collect();
        match self.weighted(&[(60, "COMMIT"), (12, "ROLLBACK"), (prepare, "PREPARE")]) {
            "COMMIT" => {
                self.emit("COMMIT", "commit");
                self.pass(Holder::Session(session), None);
            }
            "ROLLBACK" => {
                self.emit("ROLLBACK", "rollback");
                self.undo(undo);
                self.pass(Holder::Session(session), None);
            }
            _ => {
                let number = self.number();
                let gid = match self.rng.random_range(0..6) {
                    0 => format!("{number:0199}"),
                    1 => format!("it's odd, \"é\" {number}"),
                    _ => format!("gid {number}"),
                };
                let covers = if gid.len() == 199 { "prepare with the longest gid" } else { "prepare" };
                self.emit(format!("PREPARE TRANSACTION {}", literal(&gid)), covers);
                self.pass(Holder::Session(session), Some(Holder::Prepared(number)));
                self.prepared.push(Prepared { number, gid, undo });
            }
        }
    }

    fn resolve_prepared(&mut self) {
        let at = self.rng.random_range(0..self.prepared.len());
        let Prepared { number, gid, undo } = self.prepared.swap_remove(at);
        if self.chance(0.7) {
            self.emit(format!("COMMIT PREPARED {}", literal(&gid)), "commit prepared");
        } else {
            self.emit(format!("ROLLBACK PREPARED {}", literal(&gid)), "rollback prepared");
            self.undo(undo);
        }
        self.pass(Holder::Prepared(number), None);
    }

    fn savepoint(&mut self) {
        let Some(session) = self.session else { return };
        let savepoint = format!("s{}", self.number());
        let depth = self.sessions[session].levels.len();
        let covers = if depth > 1 { "nested subtransaction" } else { "subtransaction" };
        self.emit(format!("SAVEPOINT {savepoint}"), covers);
        self.sessions[session].levels.push(Level { savepoint, undo: Vec::new() });
        self.change_rows();
    }

    fn roll_back_to(&mut self) {
        let Some(session) = self.session else { return };
        let depth = self.sessions[session].levels.len();
        let at = self.rng.random_range(1..depth);
        let levels = self.sessions[session].levels.split_off(at);
        let savepoint = levels[0].savepoint.clone();
        let has_ddl = levels.iter().any(|level| !level.undo.is_empty());
        let covers =
            if has_ddl { "subtransaction with DDL rolled back" } else { "subtransaction rolled back" };
        self.undo(levels.into_iter().flat_map(|level| level.undo).collect());
        self.emit(format!("ROLLBACK TO {savepoint}"), covers);
        // The savepoint is there still.
        self.sessions[session].levels.push(Level { savepoint, undo: Vec::new() });
    }

    fn release(&mut self) {
        let Some(session) = self.session else { return };
        let levels = &mut self.sessions[session].levels;
        let Some(Level { savepoint, undo }) = levels.pop() else { return };
        if let Some(outer) = levels.last_mut() {
            outer.undo.extend(undo);
        }
        self.emit(format!("RELEASE {savepoint}"), "subtransaction released");
    }

    /// A statement that fails, and with it the (sub)transaction.
    fn fail(&mut self) {
        let Some(session) = self.session else { return };
        if self.sessions[session].levels.len() > 1 {
            self.emit("SELECT 1 / 0", None);
            self.roll_back_to();
        }
    }

    fn logical_message(&mut self) {
        let transactional = self.chance(0.6);
        let prefix = self.one_of(&["'prefix'", "''", "'naïve'", "'a b'"]).unwrap_or_default();
        let content =
            self.one_of(&["'content'", "''", "'\\x00ff'::bytea", "repeat('m', 5000)"]).unwrap_or_default();
        let covers = match (transactional, self.in_transaction()) {
            (true, _) => "transactional message",
            (false, true) => "message without transaction, inside one",
            (false, false) => "message without transaction",
        };
        self.emit(format!("SELECT pg_logical_emit_message({transactional}, {prefix}, {content})"), covers);
    }

    fn create_origin(&mut self) {
        let name = format!("origin {} é", self.number());
        self.emit(format!("SELECT pg_replication_origin_create({})", literal(&name)), None);
        self.origins.push((name, true));
    }

    /// Outside a transaction.
    fn change_origin(&mut self) {
        let Some(session) = self.session else { return };
        if let Some(origin) = self.sessions[session].origin {
            self.emit("SELECT pg_replication_origin_session_reset()", None);
            self.sessions[session].origin = None;
            if self.chance(0.4) {
                let name = literal(&self.origins[origin].0);
                self.emit(format!("SELECT pg_replication_origin_drop({name})"), "origin dropped");
                self.origins[origin].1 = false;
            }
            return;
        }
        let taken: Vec<_> = self.sessions.iter().filter_map(|session| session.origin).collect();
        let free: Vec<_> = (0..self.origins.len())
            .filter(|origin| self.origins[*origin].1 && !taken.contains(origin))
            .collect();
        let Some(origin) = self.one_of(&free) else { return self.create_origin() };
        let name = literal(&self.origins[origin].0);
        self.emit(format!("SELECT pg_replication_origin_session_setup({name})"), "session with an origin");
        self.sessions[session].origin = Some(origin);
    }

    fn set_origin_of_transaction(&mut self) {
        let lsn = self.rng.random_range(1..100_000);
        self.emit(
            format!("SELECT pg_replication_origin_xact_setup('0/{lsn:X}', '2024-02-29 12:00+00')"),
            "transaction with an origin",
        );
    }
}
