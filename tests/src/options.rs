//! The options of a replication stream, passed as they are written.

use std::fmt;

use pgoutput_protocol as protocol;

use crate::quote;

/// Options of the plugin, in their order. Nothing is checked: the plugin shall do that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(String, Option<String>)>);

impl Options {
    /// No options at all.
    pub fn none() -> Self {
        Options::default()
    }

    /// What every subscriber passes. `publications` is written as in the option: a list of identifiers.
    pub fn new(proto_version: u32, publications: &str) -> Self {
        Options::none()
            .with("proto_version", &proto_version.to_string())
            .with("publication_names", publications)
    }

    /// Adds an option, also one that is there already.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Adds an option without a value.
    pub fn flag(mut self, name: &str) -> Self {
        self.0.push((name.to_owned(), None));
        self
    }

    /// Adds `binary 'true'`.
    pub fn binary(self) -> Self {
        self.with("binary", "true")
    }

    /// Adds `messages 'true'`.
    pub fn messages(self) -> Self {
        self.with("messages", "true")
    }

    /// The last value of an option.
    pub fn get(&self, wanted: &str) -> Option<&str> {
        let mut found = self.0.iter().rev().filter(|(name, _)| name == wanted);
        found.next().and_then(|(_, value)| value.as_deref())
    }

    /// The options, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Reads what `Display` writes; `None` when it isn't that.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = match text.trim() {
            "" => return Some(Options::none()),
            text => text.strip_prefix('(')?.strip_suffix(')')?,
        };
        let mut options = Options::none();
        loop {
            let (name, after) = quoted(rest, '"')?;
            rest = after.trim_start();
            let mut value = None;
            if rest.starts_with('\'') {
                let (text, after) = quoted(rest, '\'')?;
                value = Some(text);
                rest = after.trim_start();
            }
            options.0.push((name, value));
            if rest.is_empty() {
                return Some(options);
            }
            rest = rest.strip_prefix(',')?.trim_start();
        }
    }

    /// Whether the SQL functions can be given these: they know no option without a value.
    pub fn fit_sql(&self) -> bool {
        self.0.iter().all(|(_, value)| value.is_some())
    }

    /// As START_REPLICATION takes them.
    pub(crate) fn replication(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let options: Vec<_> = self
            .0
            .iter()
            .map(|(name, value)| match value {
                Some(value) => format!("{} {}", quote::identifier(name), quote::literal(value)),
                None => quote::identifier(name),
            })
            .collect();
        format!(" ({})", options.join(", "))
    }

    /// As the SQL functions take them after their first three arguments.
    pub(crate) fn sql(&self) -> String {
        self.0
            .iter()
            .map(|(name, value)| {
                format!(
                    ", {}, {}",
                    quote::literal(name),
                    value.as_deref().map_or("NULL".to_owned(), quote::literal)
                )
            })
            .collect()
    }

    /// A decoder for what these options bring.
    pub fn decoder(&self) -> protocol::Decoder {
        protocol::Decoder::new(protocol::Options {
            protocol_version: self.get("proto_version").and_then(|value| value.parse().ok()).unwrap_or(1),
            streaming_parallel: self
                .get("streaming")
                .is_some_and(|value| value.eq_ignore_ascii_case("parallel")),
        })
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.replication().trim_start())
    }
}

/// What `text` begins with between two quotes, which are doubled inside, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix(quote)?;
    let mut inside = String::new();
    loop {
        let (part, after) = rest.split_once(quote)?;
        inside.push_str(part);
        match after.strip_prefix(quote) {
            Some(more) => {
                inside.push(quote);
                rest = more;
            }
            None => return Some((inside, after)),
        }
    }
}
