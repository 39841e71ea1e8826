//! How the slots of a case are read.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::Generator;
use crate::options::Options;
use crate::quote::identifier;
use crate::random::case::{SlotKind, StreamSpec, Via};

/// The settings that change what values look like.
const FORMATS: &[(&str, &[&str])] = &[
    ("DateStyle", &["SQL,DMY", "German", "Postgres,MDY", "ISO,DMY"]),
    ("IntervalStyle", &["sql_standard", "iso_8601", "postgres_verbose"]),
    ("TimeZone", &["America/New_York", "Asia/Kolkata", "<+0330>-3:30"]),
    ("extra_float_digits", &["0", "-5", "3"]),
    ("bytea_output", &["escape", "hex"]),
    ("client_encoding", &["LATIN1", "UTF8", "SQL_ASCII"]),
];

impl Generator {
    pub(super) fn streams(&mut self) {
        for number in 0..8 {
            let via = match number {
                0 | 1 => Via::Replication,
                2 => Via::Advance,
                _ => self.weighted(&[(60, Via::Sql), (25, Via::Replication), (15, Via::WalsenderSql)]),
            };
            let stream = self.stream(via);
            self.case.streams.push(stream);
        }
    }

    fn stream(&mut self, via: Via) -> StreamSpec {
        let highest = if self.major >= 16 { 4 } else { 3 };
        let version = self.weighted(&[(2, 1), (2, 2), (3, 3), (if highest >= 4 { 4 } else { 0 }, 4)]);
        let slot = if self.chance(0.25) { SlotKind::TwoPhase } else { SlotKind::Plain };
        let mut options =
            vec![("proto_version", version.to_string()), ("publication_names", self.publication_names())];
        // Now and then a version that is too low for what is asked.
        let careless = self.chance(0.01);
        if version >= 2 || careless {
            let parallel = if version >= 4 || careless { 4 } else { 0 };
            match self.weighted(&[(1, ""), (2, "off"), (5, "on"), (parallel, "parallel")]) {
                "" => {}
                "parallel" => options.push(("streaming", "parallel".to_owned())),
                value => options.push(("streaming", self.boolean(value == "on"))),
            }
        }
        if version >= 3 || careless {
            match self.rng.random_range(0..4) {
                0 => {}
                1 => options.push(("two_phase", self.boolean(false))),
                _ => options.push(("two_phase", self.boolean(true))),
            }
        }
        for option in ["binary", "messages"] {
            match self.rng.random_range(0..5) {
                0 | 1 => {}
                2 => options.push((option, self.boolean(false))),
                _ => options.push((option, self.boolean(true))),
            }
        }
        if self.major >= 16 {
            match self.rng.random_range(0..4) {
                0 | 1 => {}
                2 => options.push(("origin", "any".to_owned())),
                _ => options.push(("origin", self.one_of(&["none", "NONE"]).unwrap_or_default().to_owned())),
            }
        }
        if self.chance(0.3) {
            options.shuffle(&mut self.rng);
        }
        let options =
            options.into_iter().fold(Options::none(), |options, (name, value)| options.with(name, &value));
        StreamSpec { via, slot, settings: self.settings(), options }
    }

    fn boolean(&mut self, value: bool) -> String {
        let words = if value { ["true", "on", "True"] } else { ["false", "off", "FALSE"] };
        self.one_of(&words).unwrap_or_default().to_owned()
    }

    fn publication_names(&mut self) -> String {
        let mut names: Vec<_> =
            self.publications.iter().map(|publication| identifier(&publication.name)).collect();
        names.shuffle(&mut self.rng);
        if let Some(crossed) = names.iter().position(|name| name.starts_with("\"crossed"))
            && self.chance(0.4)
        {
            names.swap(0, crossed);
        }
        names.truncate(self.weighted(&[(4, 1), (4, 2), (2, 3), (1, 9)]));
        if self.chance(0.03) {
            names.push("missing".to_owned());
        }
        if self.chance(0.05)
            && let Some(first) = names.first().cloned()
        {
            names.push(first);
        }
        if self.chance(0.01) {
            names.clear();
        }
        names.join(if self.chance(0.3) { " , " } else { "," })
    }

    fn settings(&mut self) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let mut set = |name: &str, value: &str| settings.push((name.to_owned(), value.to_owned()));
        if self.chance(0.75) {
            set("logical_decoding_work_mem", "64kB");
        }
        if self.chance(0.25) {
            match self.major {
                16 => set("logical_decoding_mode", "immediate"),
                17.. => set("debug_logical_replication_streaming", "immediate"),
                _ => {}
            }
        }
        for (name, values) in FORMATS {
            if self.chance(0.08)
                && let Some(value) = self.one_of(values)
            {
                set(name, value);
            }
        }
        if self.chance(0.2)
            && let Some(value) = self.one_of(&["0", "100", "8192"])
        {
            set("pgoutput_rs.flush_bytes", value);
        }
        settings
    }
}
