//! What a plugin sends, collected and compared.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use pgoutput_protocol::frame::ServerFrame;
use pgoutput_protocol::{Decoder, Lsn};

use crate::Cluster;
use crate::options::Options;
use crate::quote;
use crate::server::plugin;
use crate::wire::{Connection, Error, Event, Parameters, Response};

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A frame of a replication stream, with the two locations in its header.
    Frame(Lsn, Lsn),
    /// A row of an SQL function, with its columns `lsn` and `xid`.
    Row(Lsn, u32),
}

/// One thing that came from the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Place, Vec<u8>),
    /// A NOTICE or WARNING.
    Notice(Response),
}

/// All that came from the plugin, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// What came.
    pub items: Vec<Item>,
    /// The error that ended it.
    pub error: Option<Response>,
}

/// How far a stream is read, and how far it is.
#[derive(Debug)]
pub struct Progress {
    until: AtomicU64,
    reached: AtomicU64,
}

impl Progress {
    /// Read until a location has been passed.
    pub fn until(lsn: Lsn) -> Self {
        Progress { until: AtomicU64::new(lsn.0), reached: AtomicU64::new(0) }
    }

    /// Read until [`Progress::end_at`] is called, too.
    pub fn endless() -> Self {
        Progress::until(Lsn(u64::MAX))
    }

    /// Read until a location has been passed, then end.
    pub fn end_at(&self, lsn: Lsn) {
        self.until.store(lsn.0, Ordering::SeqCst);
    }

    /// Up to where everything has been received; the highest possible when the stream has ended.
    pub fn reached(&self) -> Lsn {
        Lsn(self.reached.load(Ordering::SeqCst))
    }

    fn reach(&self, lsn: Lsn) -> bool {
        self.reached.fetch_max(lsn.0, Ordering::SeqCst);
        lsn.0 >= self.until.load(Ordering::SeqCst)
    }
}

impl Stream {
    /// Reads a slot over a replication connection, without moving it, so that it can be read again.
    ///
    /// # Errors
    ///
    /// When the connection breaks. An error that the server raises belongs to the stream.
    pub fn replicate(
        cluster: &Cluster,
        parameters: &Parameters,
        slot: &str,
        options: &Options,
        progress: &Progress,
    ) -> Result<Stream> {
        let mut connection = cluster.connect(parameters)?;
        let mut stream = Stream::default();
        let outcome = stream.read(&mut connection, slot, options, progress);
        progress.reach(Lsn(u64::MAX));
        match outcome {
            Ok(()) => {}
            Err(Error::Server(response)) => stream.error = Some(*response),
            Err(Error::Io(error)) => {
                return Err(error).with_context(|| {
                    format!(
                        "the walsender of slot {slot} broke off after {} messages, with {options}",
                        stream.items.len()
                    )
                });
            }
        }
        drop(connection);
        cluster.wait_for_slot(slot)?;
        Ok(stream)
    }

    /// Reads a slot in a session that may be used again afterwards; see [`Stream::replicate`].
    ///
    /// # Errors
    ///
    /// When the connection breaks or the server raises an error. What came before is in the stream.
    pub fn read(
        &mut self,
        connection: &mut Connection,
        slot: &str,
        options: &Options,
        progress: &Progress,
    ) -> Result<(), Error> {
        connection.take_notices();
        let started = connection.start_replication(slot, Lsn(0), options);
        self.items.extend(connection.take_notices().into_iter().map(Item::Notice));
        started?;
        let mut ending = false;
        // A keepalive comes, without being asked for, whenever the server has sent everything and the client
        // has confirmed less. This one never confirms anything.
        loop {
            let reply = match connection.event()? {
                Event::Frame(ServerFrame::XLogData(frame)) => {
                    self.items
                        .push(Item::Message(Place::Frame(frame.start, frame.end), frame.payload.to_vec()));
                    continue;
                }
                Event::Frame(ServerFrame::Keepalive(keepalive)) => {
                    if progress.reach(keepalive.end) && !ending {
                        ending = true;
                        connection.end_replication()?;
                        continue;
                    }
                    keepalive.reply_requested
                }
                Event::Notice(notice) => {
                    self.items.push(Item::Notice(notice));
                    continue;
                }
                Event::End => return Ok(()),
            };
            if reply && !ending {
                connection.status_update(Lsn(0), false)?;
            }
        }
    }

    /// Reads a slot through `pg_logical_slot_peek_binary_changes`.
    ///
    /// # Errors
    ///
    /// When the connection breaks. An error that the server raises belongs to the stream.
    pub fn peek(
        cluster: &Cluster,
        parameters: &Parameters,
        slot: &str,
        options: &Options,
        until: Lsn,
    ) -> Result<Stream> {
        let mut connection = cluster.connect(parameters)?;
        Stream::call(&mut connection, "pg_logical_slot_peek_binary_changes", slot, options, until)
    }

    /// Reads a slot through one of the SQL functions that give binary changes, in a session that may be used again.
    ///
    /// # Errors
    ///
    /// When the connection breaks. An error that the server raises belongs to the stream.
    pub fn call(
        connection: &mut Connection,
        function: &str,
        slot: &str,
        options: &Options,
        until: Lsn,
    ) -> Result<Stream> {
        connection.take_notices();
        // Hexadecimal, whatever bytea_output is.
        let rows = connection.query(&format!(
            "SELECT lsn, xid, encode(data, 'hex') FROM {function}({}, '{until}', NULL{})",
            quote::literal(slot),
            options.sql()
        ));
        let mut stream = Stream::default();
        stream.items.extend(connection.take_notices().into_iter().map(Item::Notice));
        let rows = match rows {
            Ok(rows) => rows,
            Err(Error::Server(response)) if response.severity == "ERROR" => {
                stream.error = Some(*response);
                Vec::new()
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("the backend that peeked into slot {slot} broke off, with {options}")
                });
            }
        };
        for row in rows {
            stream.items.push(row_item(&row).context("a row that is no change")?);
        }
        Ok(stream)
    }

    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.items.iter().filter_map(|item| match item {
            Item::Message(_, payload) => Some(payload.as_slice()),
            Item::Notice(_) => None,
        })
    }

    /// The notices.
    pub fn notices(&self) -> impl Iterator<Item = &Response> {
        self.items.iter().filter_map(|item| match item {
            Item::Message(..) => None,
            Item::Notice(notice) => Some(notice),
        })
    }
}

fn row_item(row: &[Option<Vec<u8>>]) -> Option<Item> {
    let [Some(lsn), Some(xid), Some(data)] = row else { return None };
    let lsn = std::str::from_utf8(lsn).ok()?.parse().ok()?;
    let xid = std::str::from_utf8(xid).ok()?.parse().ok()?;
    Some(Item::Message(Place::Row(lsn, xid), unhex(data)?))
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}

/// Compares what the built-in plugin sent with what ours did.
///
/// # Errors
///
/// When they differ: the error shows the first difference, decoded.
pub fn compare(stock: &Stream, ours: &Stream, options: &Options) -> Result<()> {
    let same = stock.items.iter().zip(&ours.items).take_while(|(stock, ours)| same_item(stock, ours)).count();
    let items_equal = same == stock.items.len() && same == ours.items.len();
    let error = |stream: &Stream| stream.error.as_ref().map(comparable);
    if items_equal && error(stock) == error(ours) {
        return Ok(());
    }
    bail!("{}", Difference { stock, ours, options, same })
}

/// Whether two items are the same, but for the names of slot and plugin.
pub fn same_item(stock: &Item, ours: &Item) -> bool {
    match (stock, ours) {
        (Item::Notice(stock), Item::Notice(ours)) => comparable(stock) == comparable(ours),
        _ => stock == ours,
    }
}

/// An error or notice without the names of slot and plugin, which are in its context.
pub fn comparable(error: &Response) -> Response {
    let mut error = error.clone();
    if let Some((_, rest)) = error.context.split_once("output plugin \"") {
        let rest = rest.split_once('"').map_or("", |(_, rest)| rest);
        error.context = format!("slot, output plugin{rest}");
    }
    error
}

/// How many messages are shown before the first that differs, and from there on.
const BEFORE: usize = 6;
const AFTER: usize = 3;

struct Difference<'a> {
    stock: &'a Stream,
    ours: &'a Stream,
    options: &'a Options,
    /// How many items at the beginning are the same.
    same: usize,
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pgoutput and {} differ at message {}", plugin(), self.same + 1)?;
        writeln!(f, "options {}", self.options)?;
        let mut decoder = self.options.decoder();
        let mut before = Vec::new();
        for item in &self.stock.items[..self.same] {
            before.push(describe(item, &mut decoder));
        }
        writeln!(f, "before, both the same:")?;
        for line in &before[self.same.saturating_sub(BEFORE)..] {
            writeln!(f, "    {line}")?;
        }
        for (name, stream) in [("pgoutput", self.stock), (plugin().as_str(), self.ours)] {
            let name =
                if std::ptr::eq(stream, self.ours) { format!("{name} (ours)") } else { name.to_owned() };
            writeln!(f, "{name}:")?;
            let mut decoder = decoder.clone();
            for item in stream.items.iter().skip(self.same).take(AFTER) {
                writeln!(f, "    {}", describe(item, &mut decoder))?;
            }
            match (&stream.error, stream.items.len().saturating_sub(self.same + AFTER)) {
                (None, 0) => writeln!(f, "    the end")?,
                (None, more) => writeln!(f, "    {more} more")?,
                (Some(error), more) => writeln!(f, "    {more} more, then {error}")?,
            }
        }
        if let (Some(Item::Message(_, stock)), Some(Item::Message(_, ours))) =
            (self.stock.items.get(self.same), self.ours.items.get(self.same))
        {
            f.write_str(&hex_difference(stock, ours))?;
        }
        Ok(())
    }
}

fn describe(item: &Item, decoder: &mut Decoder) -> String {
    match item {
        Item::Message(place, payload) => {
            let place = match place {
                Place::Frame(start, end) if start == end => format!("{start}"),
                Place::Frame(start, end) => format!("{start} {end}"),
                Place::Row(lsn, xid) => format!("{lsn} {xid}"),
            };
            match decoder.decode(payload) {
                Ok(message) => format!("[{place}] {message}"),
                Err(error) => format!("[{place}] {error}: {}", hex(&payload[..payload.len().min(64)])),
            }
        }
        Item::Notice(notice) => notice.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

/// The bytes around the first that differs.
fn hex_difference(stock: &[u8], ours: &[u8]) -> String {
    let mut text = String::new();
    let at = stock.iter().zip(ours).take_while(|(stock, ours)| stock == ours).count();
    if at == stock.len() && at == ours.len() {
        return text;
    }
    let start = at.saturating_sub(8);
    let _ = writeln!(
        text,
        "{} bytes and {}; from byte {start}, the first that differs is {at}:",
        stock.len(),
        ours.len()
    );
    for payload in [stock, ours] {
        let shown = &payload[start.min(payload.len())..(at + 24).min(payload.len())];
        let ascii: String =
            shown.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
        let _ = writeln!(text, "    {:96} {ascii}", hex(shown));
    }
    text
}
