//! What was seen, and what has to be.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use pgoutput_protocol::{Lsn, Message, MessageType, OldTupleKind, ReplicaIdentity, TupleData, Value};

use super::case::{SlotKind, StreamSpec, Via, is_on};
use crate::stream::{Item, Place, Stream};
use crate::wire::Response;

/// A change as a plugin tells of it that knows of no publications.
#[derive(Debug)]
struct TrueChange {
    is_update: bool,
    has_old_row: bool,
    has_unchanged_toast: bool,
    table: String,
}

/// All changes of committed transactions, whether they are published or not, by their locations.
#[derive(Debug, Default)]
pub struct Truth(HashMap<Lsn, TrueChange>);

impl Truth {
    /// Reads what `test_decoding` gives.
    pub fn read<'a>(rows: impl Iterator<Item = (&'a str, String)>) -> Truth {
        let mut changes = HashMap::new();
        for (lsn, text) in rows {
            let Some(text) = text.strip_prefix("table ") else { continue };
            let found = [": INSERT:", ": UPDATE:", ": DELETE:"]
                .iter()
                .filter_map(|action| Some((text.find(action)?, *action)))
                .min();
            if let (Some((at, action)), Ok(lsn)) = (found, lsn.parse()) {
                let change = TrueChange {
                    is_update: action == ": UPDATE:",
                    has_old_row: text[at + action.len()..].starts_with(" old-key:"),
                    has_unchanged_toast: text.contains("unchanged-toast-datum"),
                    table: text[..at].replace('"', ""),
                };
                changes.insert(lsn, change);
            }
        }
        Truth(changes)
    }
}

/// Counts of what was seen.
#[derive(Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<(&'static str, String), u64>,
    combinations: BTreeSet<String>,
    /// The statements that failed, by SQLSTATE, with the last of each.
    failed: BTreeMap<String, (u64, String)>,
    statements: u64,
}

const STATEMENTS: &str = "statements";
const MESSAGES: &str = "messages";
const OPTIONS: &str = "options";
const FILTERS: &str = "row filters";
const ENDS: &str = "errors and warnings";

impl Coverage {
    fn count(&mut self, group: &'static str, name: impl Into<String>) {
        *self.counts.entry((group, name.into())).or_default() += 1;
    }

    /// A statement has been run.
    pub fn statement(&mut self, covers: &[&'static str], sql: &str, error: Option<&Response>) {
        self.statements += 1;
        match error {
            None => covers.iter().for_each(|covers| self.count(STATEMENTS, *covers)),
            Some(error) => {
                let failed = self.failed.entry(error.code.clone()).or_default();
                failed.0 += 1;
                failed.1 = format!("{}: {sql:.160}", error.message);
            }
        }
    }

    /// A slot has been read.
    pub fn stream(&mut self, spec: &StreamSpec, stream: &Stream, truth: &Truth) {
        self.options(spec, stream);
        for notice in stream.notices() {
            self.count(ENDS, format!("{} {}", notice.severity, notice.code));
        }
        if let Some(error) = &stream.error {
            self.count(ENDS, format!("{} {}", error.severity, error.code));
        }
        let mut decoder = spec.options.decoder();
        let mut sent = HashMap::new();
        let mut names = HashMap::new();
        for item in &stream.items {
            let Item::Message(place, payload) = item else { continue };
            let in_stream = decoder.in_stream();
            let Ok(message) = decoder.decode(payload) else { continue };
            self.message(&message, in_stream);
            let (Place::Frame(lsn, _) | Place::Row(lsn, _)) = *place;
            let changed = match &message {
                Message::Relation(relation) => {
                    let name = [relation.namespace, b".", relation.name].concat();
                    names.insert(relation.oid, String::from_utf8_lossy(&name).replace('"', ""));
                    None
                }
                Message::Insert(insert) => Some((insert.relation, unchanged(&insert.new))),
                Message::Update(update) => Some((update.relation, unchanged(&update.new))),
                Message::Delete(delete) => Some((delete.relation, 0)),
                _ => None,
            };
            if let Some((relation, unchanged)) = changed {
                if let (Some(change), Some(name)) = (truth.0.get(&lsn), names.get(&relation))
                    && change.table != *name
                {
                    self.count(MESSAGES, "row under the name of an ancestor");
                }
                sent.insert(lsn, (message.message_type(), unchanged));
            }
        }
        if stream.error.is_none() {
            self.filters(truth, &sent);
        }
    }

    /// Updates that a row filter turned into something else, or dropped.
    fn filters(&mut self, truth: &Truth, sent: &HashMap<Lsn, (MessageType, usize)>) {
        let updates = || truth.0.iter().filter(|(_, change)| change.is_update);
        let published: HashSet<_> = updates()
            .filter(|(lsn, _)| sent.contains_key(lsn))
            .map(|(_, change)| change.table.as_str())
            .collect();
        let mut verdicts = Vec::new();
        let mut filtered = HashSet::new();
        for (lsn, change) in updates().filter(|(_, change)| published.contains(change.table.as_str())) {
            let verdict = match (sent.get(lsn), change.has_old_row) {
                (None, true) => "update of two rows dropped",
                (None, false) => "update of a new row only dropped",
                (Some((MessageType::Insert, unchanged)), _) => {
                    if change.has_unchanged_toast && *unchanged == 0 {
                        self.count(FILTERS, "update becomes insert, with toasted values of the old row");
                    }
                    "update becomes insert"
                }
                (Some((MessageType::Delete, _)), _) => "update becomes delete",
                (Some(_), true) => "update of two rows passes",
                (Some(_), false) => "update of a new row only passes",
            };
            if !verdict.ends_with("passes") {
                filtered.insert(change.table.as_str());
            }
            verdicts.push((change.table.as_str(), verdict));
        }
        // Passing says something where others don't.
        for (_, verdict) in verdicts.iter().filter(|(table, _)| filtered.contains(table)) {
            self.count(FILTERS, *verdict);
        }
    }

    fn options(&mut self, spec: &StreamSpec, stream: &Stream) {
        self.count(
            OPTIONS,
            match spec.via {
                Via::Sql => "read through SQL",
                Via::WalsenderSql => "read through SQL in a walsender",
                Via::Replication => "read through replication",
                Via::Advance => "read and moved through SQL",
            },
        );
        if spec.slot == SlotKind::TwoPhase {
            self.count(
                OPTIONS,
                if spec.asks_two_phase() { "two-phase slot and option" } else { "two-phase slot alone" },
            );
        }
        for (name, value) in &spec.settings {
            let value = if name.starts_with("debug") || name.ends_with("mode") { value } else { "set" };
            self.count(OPTIONS, format!("{name} {value}"));
        }
        for (name, value) in spec.options.iter().filter(|(name, _)| *name != "publication_names") {
            self.count(OPTIONS, format!("{name} {}", value.unwrap_or_default().to_lowercase()));
        }
        if !stream.items.is_empty() {
            self.combinations.insert(combination(spec));
        }
    }

    fn message(&mut self, message: &Message<'_>, in_stream: bool) {
        let kind = message.message_type();
        let name = format!("{} {}", char::from(kind.byte()), kind.name());
        if in_stream && kind != MessageType::StreamStop {
            self.count(MESSAGES, format!("{name}, in a stream"));
        }
        self.count(MESSAGES, name);
        let mut count = |name: &str| self.count(MESSAGES, name);
        match message {
            Message::Relation(relation) => count(match relation.replica_identity {
                ReplicaIdentity::Default => "R with identity default",
                ReplicaIdentity::Nothing => "R with identity nothing",
                ReplicaIdentity::Full => "R with identity full",
                ReplicaIdentity::Index => "R with identity index",
            }),
            Message::Insert(insert) => self.values(&insert.new),
            Message::Update(update) => {
                count(match update.old.as_ref().map(|old| old.kind) {
                    None => "U without an old row",
                    Some(OldTupleKind::Key) => "U with K",
                    Some(OldTupleKind::Full) => "U with O",
                });
                self.values(&update.new);
            }
            Message::Delete(delete) => count(match delete.old.kind {
                OldTupleKind::Key => "D with K",
                OldTupleKind::Full => "D with O",
            }),
            Message::Truncate(truncate) => {
                if truncate.cascade {
                    count("T with CASCADE");
                }
                if truncate.restart_identity {
                    count("T with RESTART IDENTITY");
                }
                if truncate.relations.len() > 1 {
                    count("T of several relations");
                }
            }
            Message::Message(message) => {
                count(if message.transactional { "M of a transaction" } else { "M without a transaction" });
            }
            Message::StreamStart(start) => {
                count(if start.first { "S of a first block" } else { "S of a later block" });
            }
            Message::StreamAbort(abort) => {
                count(if abort.xid == abort.subxid { "A of a transaction" } else { "A of a subtransaction" });
                count(if abort.abort.is_some() { "A with location and time" } else { "A without location" });
            }
            _ => {}
        }
    }

    fn values(&mut self, tuple: &TupleData<'_>) {
        let mut seen = [("null", 0), ("unchanged", 0), ("text", 0), ("binary", 0)];
        for value in &tuple.columns {
            let at = match value {
                Value::Null => 0,
                Value::UnchangedToast => 1,
                Value::Text(_) => 2,
                Value::Binary(_) => 3,
            };
            seen[at].1 += 1;
        }
        for (name, count) in seen {
            if count > 0 {
                self.count(MESSAGES, format!("value: {name}"));
            }
        }
        if seen[2].1 > 0 && seen[3].1 > 0 {
            self.count(MESSAGES, "values as text and binary in a row");
        }
    }

    /// What should have been seen and wasn't, in a run that is long enough to see everything.
    pub fn missing(&self, major: u32) -> Vec<String> {
        let seen = |group: &'static str, name: &str| self.counts.contains_key(&(group, name.to_owned()));
        let mut missing = Vec::new();
        for (group, names) in expected(major) {
            missing.extend(
                names.iter().filter(|name| !seen(group, name)).map(|name| format!("{group}: {name}")),
            );
        }
        missing
    }

    /// The legal combinations of options that were not seen with a message.
    pub fn missing_combinations(&self, major: u32) -> Vec<String> {
        combinations(major)
            .into_iter()
            .filter(|combination| !self.combinations.contains(combination))
            .collect()
    }
}

/// The options that change what is sent, in one line.
fn combination(spec: &StreamSpec) -> String {
    let on = |name| spec.options.get(name).is_some_and(is_on);
    let streaming = match spec.options.get("streaming") {
        Some("parallel") => "parallel",
        Some(value) if is_on(value) => "on",
        _ => "off",
    };
    let two_phase = match (spec.slot, spec.asks_two_phase()) {
        (SlotKind::Plain, false) => "off",
        (SlotKind::Plain, true) => "option",
        (SlotKind::TwoPhase, false) => "slot",
        (SlotKind::TwoPhase, true) => "both",
    };
    let origin = spec.options.get("origin").is_some_and(|value| value.eq_ignore_ascii_case("none"));
    line(
        spec.options.get("proto_version").unwrap_or_default(),
        streaming,
        on("binary"),
        on("messages"),
        two_phase,
        origin,
    )
}

fn line(
    version: &str,
    streaming: &str,
    binary: bool,
    messages: bool,
    two_phase: &str,
    origin_none: bool,
) -> String {
    format!(
        "protocol {version}, streaming {streaming}, binary {binary}, messages {messages}, two-phase {two_phase}, \
         origin none {origin_none}"
    )
}

/// All that the version allows.
fn combinations(major: u32) -> Vec<String> {
    let mut all = Vec::new();
    let highest = if major >= 16 { 4 } else { 3 };
    for version in 1..=highest {
        for (streaming, since) in [("off", 1), ("on", 2), ("parallel", 4)] {
            for (two_phase, since_too) in [("off", 1), ("slot", 1), ("option", 3), ("both", 3)] {
                if version < since || version < since_too {
                    continue;
                }
                for bits in 0..8 {
                    let origin_none = bits & 4 != 0;
                    if origin_none && major < 16 {
                        continue;
                    }
                    let (binary, messages) = (bits & 1 != 0, bits & 2 != 0);
                    all.push(line(&version.to_string(), streaming, binary, messages, two_phase, origin_none));
                }
            }
        }
    }
    all
}

fn unchanged(tuple: &TupleData<'_>) -> usize {
    tuple.columns.iter().filter(|value| **value == Value::UnchangedToast).count()
}

/// What a long run has to see.
fn expected(major: u32) -> Vec<(&'static str, Vec<String>)> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut messages = owned(EXPECTED_MESSAGES);
    for kind in MessageType::ALL {
        messages.push(format!("{} {}", char::from(kind.byte()), kind.name()));
    }
    for kind in [
        MessageType::Origin,
        MessageType::Relation,
        MessageType::Type,
        MessageType::Insert,
        MessageType::Update,
        MessageType::Delete,
        MessageType::Truncate,
        MessageType::Message,
    ] {
        messages.push(format!("{} {}, in a stream", char::from(kind.byte()), kind.name()));
    }
    let mut options = owned(EXPECTED_OPTIONS);
    let mut statements = owned(EXPECTED_STATEMENTS);
    let mut ends = owned(&["ERROR 0A000"]);
    if major >= 16 {
        messages.extend(owned(&["A with location and time"]));
        options.extend(owned(&["proto_version 4", "streaming parallel", "origin any", "origin none"]));
    }
    match major {
        16 => options.extend(owned(&["logical_decoding_mode immediate"])),
        17.. => options.extend(owned(&["debug_logical_replication_streaming immediate"])),
        _ => {}
    }
    if major >= 18 {
        statements.extend(owned(&[
            "virtual generated column",
            "generated columns: none",
            "generated columns: stored",
            "generated columns changed",
        ]));
        ends.extend(owned(&["WARNING 55000"]));
    } else {
        ends.extend(owned(&["ERROR 42704"]));
    }
    vec![
        (MESSAGES, messages),
        (OPTIONS, options),
        (FILTERS, owned(EXPECTED_FILTERS)),
        (STATEMENTS, statements),
        (ENDS, ends),
    ]
}

const EXPECTED_MESSAGES: &[&str] = &[
    "R with identity default",
    "R with identity nothing",
    "R with identity full",
    "R with identity index",
    "U without an old row",
    "U with K",
    "U with O",
    "D with K",
    "D with O",
    "T with CASCADE",
    "T with RESTART IDENTITY",
    "T of several relations",
    "M of a transaction",
    "M without a transaction",
    "S of a first block",
    "S of a later block",
    "A of a transaction",
    "A of a subtransaction",
    "A without location",
    "value: null",
    "value: unchanged",
    "value: text",
    "value: binary",
    "values as text and binary in a row",
    "row under the name of an ancestor",
];

const EXPECTED_OPTIONS: &[&str] = &[
    "proto_version 1",
    "proto_version 2",
    "proto_version 3",
    "streaming on",
    "streaming off",
    "two_phase on",
    "two_phase off",
    "binary on",
    "binary off",
    "messages on",
    "messages off",
    "two-phase slot alone",
    "two-phase slot and option",
    "logical_decoding_work_mem set",
    "read through SQL",
    "read through SQL in a walsender",
    "read through replication",
    "read and moved through SQL",
    "DateStyle set",
    "IntervalStyle set",
    "TimeZone set",
    "extra_float_digits set",
    "bytea_output set",
    "client_encoding set",
];

const EXPECTED_FILTERS: &[&str] = &[
    "update of two rows dropped",
    "update of a new row only dropped",
    "update becomes insert",
    "update becomes insert, with toasted values of the old row",
    "update becomes delete",
    "update of two rows passes",
    "update of a new row only passes",
];

const EXPECTED_STATEMENTS: &[&str] = &[
    "actions of a publication changed",
    "analyze",
    "column added",
    "column added with a default",
    "column dropped",
    "column of a built-in type",
    "column of a composite type",
    "column of a domain",
    "column of a domain over a domain",
    "column of a range type",
    "column of an array of a user's type",
    "column of an enum",
    "column renamed",
    "commit prepared",
    "copy",
    "delete",
    "foreign key",
    "identity changed in mid-stream",
    "identity default",
    "identity default without primary key",
    "identity full",
    "identity index",
    "identity nothing",
    "insert",
    "insert of several rows",
    "insert on conflict do nothing",
    "insert on conflict do update",
    "large transaction",
    "many subtransactions",
    "merge",
    "message without transaction",
    "message without transaction, inside one",
    "nested subtransaction",
    "origin dropped",
    "partition",
    "partition attached again",
    "partition detached",
    "partition of a partition",
    "partition with another layout attached",
    "partitioned by hash",
    "partitioned by list",
    "partitioned by range",
    "prepare",
    "prepare with the longest gid",
    "publication changed in mid-stream",
    "publication dropped",
    "publication made again",
    "publication of a schema",
    "publication of a schema and a table",
    "publication of all tables",
    "publication of nothing",
    "publication of some actions",
    "publication of tables",
    "publication renamed",
    "publication via root",
    "publication with a column list",
    "publication with a row filter",
    "rollback",
    "rollback prepared",
    "schema added to a publication",
    "schema dropped from a publication",
    "schema renamed",
    "session with an origin",
    "slot moved in mid-stream",
    "storage extended",
    "storage external",
    "storage main",
    "stored generated column",
    "subtransaction",
    "subtransaction released",
    "subtransaction rolled back",
    "subtransaction with DDL rolled back",
    "table",
    "table added to a publication",
    "table dropped",
    "table dropped from a publication",
    "table made from a query",
    "table moved to another schema",
    "table renamed",
    "table with dropped columns",
    "tables of a publication replaced",
    "temporary table",
    "toastable key column",
    "transaction with an origin",
    "transactional message",
    "truncate",
    "truncate cascade",
    "truncate restart identity",
    "truncate restart identity cascade",
    "type of a column changed",
    "type renamed",
    "type without send function",
    "unlogged table",
    "update",
    "update of a detached partition",
    "update of a key",
    "update of a partition key",
    "update of a toasted key",
    "vacuum full",
    "via root changed",
];

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = "";
        for ((of, name), count) in &self.counts {
            if group != *of {
                group = of;
                writeln!(f, "{group}:")?;
            }
            writeln!(f, "{count:>12}  {name}")?;
        }
        let failed: u64 = self.failed.values().map(|(count, _)| count).sum();
        writeln!(f, "statements run: {}, of which {failed} failed:", self.statements)?;
        for (code, (count, last)) in &self.failed {
            writeln!(f, "{count:>12}  {code}, last {last}")?;
        }
        writeln!(f, "combinations of options: {}", self.combinations.len())
    }
}
