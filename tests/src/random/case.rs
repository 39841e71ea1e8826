//! What is run and compared, and its form as a script.
//!
//! A case in a file is SQL with directives in comments, one statement a line:
//!
//! ```text
//! -- since 15
//! -- setup
//! CREATE TABLE t (id int PRIMARY KEY);
//! CREATE PUBLICATION p FOR TABLE t;
//! -- session 1
//! BEGIN;
//! INSERT INTO t VALUES (1);
//! -- session 2
//! INSERT INTO t VALUES (2);
//! -- advance
//! -- session 1
//! COMMIT;
//! -- stream replication: ("proto_version" '1', "publication_names" 'p')
//! -- stream sql, two-phase slot, logical_decoding_work_mem=64kB: ("proto_version" '3', "publication_names" 'p')
//! ```
//!
//! Statements may fail: both plugins read what they left in the WAL. `COPY … FROM STDIN` is followed by its data up to
//! `\.`, as for psql. Any other comment says nothing.

use std::fmt::{self, Write as _};

use anyhow::{Context, Result, bail};

use crate::options::Options;

/// How many sessions run the statements.
pub const SESSIONS: usize = 3;

/// A thing that happens after the slots have been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A statement, in a session.
    Sql(usize, String),
    /// Streams that move their slots are read up to here.
    Advance,
}

/// An action, and what the generator wants to see done by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub action: Action,
    /// What is covered when the statement succeeds.
    pub covers: Vec<&'static str>,
}

/// How the slots are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// `pg_logical_slot_peek_binary_changes`, in a session that has done so before.
    Sql,
    /// The same, in a walsender.
    WalsenderSql,
    /// START_REPLICATION.
    Replication,
    /// `pg_logical_slot_get_binary_changes`, at every [`Action::Advance`] and in the end.
    Advance,
}

/// The slots that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Made without two-phase commit.
    Plain,
    /// Made with two-phase commit.
    TwoPhase,
}

/// A way to read what the steps left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// How it is read.
    pub via: Via,
    /// From which slots.
    pub slot: SlotKind,
    /// The settings of the session that decodes.
    pub settings: Vec<(String, String)>,
    /// The plugin's options.
    pub options: Options,
}

/// A case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The first major version that has what it needs.
    pub since: Option<u32>,
    /// Statements that run before the slots are made.
    pub setup: Vec<Step>,
    /// What happens then.
    pub steps: Vec<Step>,
    /// How it is read.
    pub streams: Vec<StreamSpec>,
}

impl Step {
    /// A statement of a session.
    pub fn sql(session: usize, sql: impl Into<String>) -> Self {
        Step { action: Action::Sql(session, sql.into()), covers: Vec::new() }
    }

    /// Streams that move their slots read up to here.
    pub fn advance() -> Self {
        Step { action: Action::Advance, covers: Vec::new() }
    }
}

impl StreamSpec {
    /// Whether the two-phase option is on.
    pub fn asks_two_phase(&self) -> bool {
        self.options.get("two_phase").is_some_and(is_on)
    }

    /// Whether the server decodes prepared transactions when they are prepared.
    pub fn decodes_two_phase(&self) -> bool {
        self.slot == SlotKind::TwoPhase || self.asks_two_phase()
    }
}

/// Whether the value of a boolean option is true.
pub fn is_on(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("on")
}

impl fmt::Display for StreamSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.via {
            Via::Sql => "sql",
            Via::WalsenderSql => "walsender-sql",
            Via::Replication => "replication",
            Via::Advance => "advance",
        })?;
        if self.slot == SlotKind::TwoPhase {
            f.write_str(", two-phase slot")?;
        }
        for (name, value) in &self.settings {
            write!(f, ", {name}={value}")?;
        }
        write!(f, ": {}", self.options)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(since) = self.since {
            writeln!(f, "-- since {since}")?;
        }
        writeln!(f, "-- setup")?;
        let mut current = None;
        for (is_setup, step) in
            self.setup.iter().map(|step| (true, step)).chain(self.steps.iter().map(|step| (false, step)))
        {
            match &step.action {
                Action::Sql(session, sql) => {
                    if !is_setup && current != Some(*session) {
                        current = Some(*session);
                        writeln!(f, "-- session {session}")?;
                    }
                    match sql.split_once('\n') {
                        None => writeln!(f, "{sql};")?,
                        Some((copy, data)) => writeln!(f, "{copy};\n{data}\n\\.")?,
                    }
                }
                Action::Advance => {
                    current = None;
                    writeln!(f, "-- advance")?;
                }
            }
        }
        for stream in &self.streams {
            writeln!(f, "-- stream {stream}")?;
        }
        Ok(())
    }
}

impl Case {
    /// Reads what `Display` writes.
    ///
    /// # Errors
    ///
    /// When it isn't such a script.
    pub fn parse(text: &str) -> Result<Case> {
        let mut case = Case::default();
        let mut session = None;
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let outcome = match line.strip_prefix("-- ") {
                Some(directive) => case.directive(directive, &mut session),
                None if line.starts_with("--") || line.trim().is_empty() => Ok(()),
                None => {
                    let mut sql = line.trim_end().strip_suffix(';').unwrap_or(line).to_owned();
                    if is_copy(&sql) {
                        for (_, data) in lines.by_ref().take_while(|(_, line)| *line != "\\.") {
                            let _ = write!(sql, "\n{data}");
                        }
                    }
                    match session {
                        Some(session) => case.steps.push(Step::sql(session, sql)),
                        None => case.setup.push(Step::sql(0, sql)),
                    }
                    Ok(())
                }
            };
            outcome.with_context(|| format!("in line {}: {line}", number + 1))?;
        }
        Ok(case)
    }

    fn directive(&mut self, directive: &str, session: &mut Option<usize>) -> Result<()> {
        if directive == "setup" {
            *session = None;
        } else if let Some(number) = directive.strip_prefix("session ") {
            let number = number.parse().context("not a session")?;
            if number >= SESSIONS {
                bail!("there are {SESSIONS} sessions, from 0 on");
            }
            *session = Some(number);
        } else if let Some(major) = directive.strip_prefix("since ").and_then(|major| major.parse().ok()) {
            self.since = Some(major);
        } else if directive == "advance" {
            self.steps.push(Step::advance());
        } else if let Some(stream) = directive.strip_prefix("stream ") {
            self.streams.push(parse_stream(stream)?);
        }
        Ok(())
    }
}

/// Whether a statement is followed by data.
pub fn is_copy(sql: &str) -> bool {
    sql.starts_with("COPY ") && sql.contains(" FROM STDIN")
}

fn parse_stream(text: &str) -> Result<StreamSpec> {
    let (words, options) = text.split_once(": ").context("options are missing")?;
    let mut words = words.split(", ");
    let via = match words.next() {
        Some("sql") => Via::Sql,
        Some("walsender-sql") => Via::WalsenderSql,
        Some("replication") => Via::Replication,
        Some("advance") => Via::Advance,
        _ => bail!("not a way to read a slot"),
    };
    let mut stream = StreamSpec {
        via,
        slot: SlotKind::Plain,
        settings: Vec::new(),
        options: Options::parse(options).context("not a list of options")?,
    };
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => stream.settings.push((name.to_owned(), value.to_owned())),
            None if word == "two-phase slot" => stream.slot = SlotKind::TwoPhase,
            None => bail!("what is {word}?"),
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        let case = Case {
            since: Some(18),
            setup: vec![Step::sql(0, "CREATE TABLE \"a;b\" (id int)")],
            steps: vec![
                Step::sql(1, "BEGIN"),
                Step::sql(1, "COPY t FROM STDIN\n1\ta\n2\t\\N"),
                Step::advance(),
                Step::sql(2, "SELECT '--'"),
            ],
            streams: vec![StreamSpec {
                via: Via::Replication,
                slot: SlotKind::TwoPhase,
                settings: vec![("DateStyle".to_owned(), "SQL".to_owned())],
                options: Options::new(3, "a,\"it's, ()\"").flag("binary"),
            }],
        };
        assert_eq!(Case::parse(&case.to_string()).expect("a script"), case);
    }
}
