//! Messages in a line for people to read.

use std::fmt::{self, Display, Formatter, Write};

use crate::change::{Delete, Insert, LogicalMessage, Truncate, Update};
use crate::frame::{Keepalive, ServerFrame, XLogData};
use crate::message::Message;
use crate::prepared::{BeginPrepare, CommitPrepared, Prepare, RollbackPrepared, StreamPrepare};
use crate::relation::{Relation, RelationColumn, ReplicaIdentity, Type};
use crate::row::OldTupleKind;
use crate::stream::{StreamAbort, StreamCommit, StreamStart, StreamStop};
use crate::transaction::{Begin, Commit, Origin};
use crate::tuple::{OldTuple, TupleData, Value};
use crate::{Oid, Xid};

/// How much of a value is shown, in bytes, unless the alternate form (`{:#}`) is asked for.
const SHOWN: usize = 64;

/// The part of `bytes` that is shown: all in the alternate form.
fn shown<'a>(f: &Formatter<'_>, bytes: &'a [u8]) -> &'a [u8] {
    if f.alternate() || bytes.len() <= SHOWN {
        return bytes;
    }
    // A UTF-8 character isn't cut: at most three of its bytes are continuations.
    let is_continuation = |end: &usize| bytes.get(*end).is_some_and(|byte| byte & 0xC0 == 0x80);
    let end = (SHOWN - 3..=SHOWN).rev().find(|end| !is_continuation(end)).unwrap_or(SHOWN);
    bytes.get(..end).unwrap_or(bytes)
}

/// Says of a value that is not shown in full how long it is.
fn cut(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    if shown(f, bytes).len() < bytes.len() { write!(f, "… ({} bytes)", bytes.len()) } else { Ok(()) }
}

/// Text between `quote`s, with bytes that aren't UTF-8 and characters that can't be seen escaped.
fn quoted(f: &mut Formatter<'_>, text: &[u8], quote: char) -> fmt::Result {
    f.write_char(quote)?;
    for chunk in shown(f, text).utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == quote || character == '\\' || character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02x}")?;
        }
    }
    f.write_char(quote)?;
    cut(f, text)
}

fn hexadecimal(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    for byte in shown(f, bytes) {
        write!(f, "{byte:02x}")?;
    }
    cut(f, bytes)
}

/// A name as SQL would have it: quoted unless it is a plain identifier.
fn name(f: &mut Formatter<'_>, name: &[u8]) -> fmt::Result {
    let plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    match std::str::from_utf8(name) {
        Ok(text) if !name.is_empty() && name.len() <= SHOWN && name.iter().all(plain) => f.write_str(text),
        _ => quoted(f, name, '"'),
    }
}

/// A name with its schema; an empty one stands for `pg_catalog`.
fn qualified(f: &mut Formatter<'_>, namespace: &[u8], object: &[u8]) -> fmt::Result {
    name(f, if namespace.is_empty() { b"pg_catalog" } else { namespace })?;
    f.write_char('.')?;
    name(f, object)
}

/// The xid of a message inside a stream block.
fn stream_xid(f: &mut Formatter<'_>, xid: Option<Xid>) -> fmt::Result {
    match xid {
        Some(xid) => write!(f, " [xid {xid}]"),
        None => Ok(()),
    }
}

fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    item: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_char('(')?;
    for (index, each) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        item(f, each)?;
    }
    f.write_char(')')
}

/// One line; values, names and the like are cut after 64 bytes and their length told, but shown in full by the
/// alternate form (`{:#}`).
impl Display for Message<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.message_type().name())?;
        match self {
            Message::Begin(Begin { final_lsn, commit_time, xid }) => {
                write!(f, " xid {xid}, final LSN {final_lsn}, committed {commit_time}")
            }
            Message::Commit(Commit { commit_lsn, end_lsn, commit_time }) => {
                write!(f, " LSN {commit_lsn}, end LSN {end_lsn}, committed {commit_time}")
            }
            Message::Origin(Origin { commit_lsn, name }) => {
                f.write_char(' ')?;
                quoted(f, name, '\'')?;
                write!(f, ", commit LSN {commit_lsn}")
            }
            Message::Relation(relation) => relation.fmt_fields(f),
            Message::Type(Type { xid, oid, namespace, name }) => {
                stream_xid(f, *xid)?;
                write!(f, " {oid} ")?;
                qualified(f, namespace, name)
            }
            Message::Insert(Insert { xid, relation, new }) => {
                stream_xid(f, *xid)?;
                write!(f, " into {relation} ")?;
                new.fmt(f)
            }
            Message::Update(Update { xid, relation, old, new }) => {
                stream_xid(f, *xid)?;
                write!(f, " of {relation} ")?;
                if let Some(old) = old {
                    old.fmt(f)?;
                    f.write_str(" to ")?;
                }
                new.fmt(f)
            }
            Message::Delete(Delete { xid, relation, old }) => {
                stream_xid(f, *xid)?;
                write!(f, " from {relation} ")?;
                old.fmt(f)
            }
            Message::Truncate(Truncate { xid, cascade, restart_identity, relations }) => {
                stream_xid(f, *xid)?;
                f.write_char(' ')?;
                list(f, relations, |f, relation: &Oid| write!(f, "{relation}"))?;
                f.write_str(if *cascade { " cascade" } else { "" })?;
                f.write_str(if *restart_identity { " restart identity" } else { "" })
            }
            Message::Message(LogicalMessage { xid, transactional, lsn, prefix, content }) => {
                stream_xid(f, *xid)?;
                let transactional = if *transactional { "transactional" } else { "non-transactional" };
                write!(f, " {transactional}, LSN {lsn}, prefix ")?;
                quoted(f, prefix, '\'')?;
                f.write_str(", content ")?;
                quoted(f, content, '\'')
            }
            Message::StreamStart(StreamStart { xid, first }) => {
                write!(f, " xid {xid}{}", if *first { ", first segment" } else { "" })
            }
            Message::StreamStop(StreamStop) => Ok(()),
            Message::StreamCommit(StreamCommit { xid, commit_lsn, end_lsn, commit_time }) => {
                write!(f, " xid {xid}, LSN {commit_lsn}, end LSN {end_lsn}, committed {commit_time}")
            }
            Message::StreamAbort(StreamAbort { xid, subxid, abort }) => {
                write!(f, " xid {xid}, subxid {subxid}")?;
                match abort {
                    Some((lsn, time)) => write!(f, ", LSN {lsn}, aborted {time}"),
                    None => Ok(()),
                }
            }
            Message::BeginPrepare(BeginPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid })
            | Message::Prepare(Prepare { prepare_lsn, end_lsn, prepare_time, xid, gid })
            | Message::StreamPrepare(StreamPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid }) => {
                transaction(f, *xid, gid)?;
                write!(f, ", LSN {prepare_lsn}, end LSN {end_lsn}, prepared {prepare_time}")
            }
            Message::CommitPrepared(CommitPrepared { commit_lsn, end_lsn, commit_time, xid, gid }) => {
                transaction(f, *xid, gid)?;
                write!(f, ", LSN {commit_lsn}, end LSN {end_lsn}, committed {commit_time}")
            }
            Message::RollbackPrepared(message) => {
                let RollbackPrepared { prepare_end_lsn, rollback_end_lsn, .. } = message;
                let RollbackPrepared { prepare_time, rollback_time, xid, gid, .. } = message;
                transaction(f, *xid, gid)?;
                write!(f, ", prepare end LSN {prepare_end_lsn}, rollback end LSN {rollback_end_lsn}")?;
                write!(f, ", prepared {prepare_time}, rolled back {rollback_time}")
            }
        }
    }
}

/// A prepared transaction.
fn transaction(f: &mut Formatter<'_>, xid: Xid, gid: &[u8]) -> fmt::Result {
    write!(f, " xid {xid}, GID ")?;
    quoted(f, gid, '\'')
}

impl Relation<'_> {
    fn fmt_fields(&self, f: &mut Formatter<'_>) -> fmt::Result {
        stream_xid(f, self.xid)?;
        write!(f, " {} ", self.oid)?;
        qualified(f, self.namespace, self.name)?;
        write!(f, ", replica identity {}, columns ", self.replica_identity)?;
        list(f, &self.columns, |f, column: &RelationColumn<'_>| {
            name(f, column.name)?;
            write!(f, " type {}", column.type_oid)?;
            if column.type_modifier != -1 {
                write!(f, " modifier {}", column.type_modifier)?;
            }
            f.write_str(if column.is_key { " key" } else { "" })
        })
    }
}

/// As in ALTER TABLE … REPLICA IDENTITY, but in lower case.
impl Display for ReplicaIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplicaIdentity::Default => "default",
            ReplicaIdentity::Nothing => "nothing",
            ReplicaIdentity::Full => "full",
            ReplicaIdentity::Index => "index",
        })
    }
}

/// The values in parentheses, cut as those of a [`Message`] are.
impl Display for TupleData<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        list(f, &self.columns, |f, value: &Value<'_>| value.fmt(f))
    }
}

/// Text between single quotes, binary values in hexadecimal, cut as in a [`Message`].
impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::UnchangedToast => f.write_str("unchanged toast"),
            Value::Text(value) => quoted(f, value, '\''),
            Value::Binary(value) => hexadecimal(f, value),
        }
    }
}

impl Display for OldTuple<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            OldTupleKind::Key => "key ",
            OldTupleKind::Full => "old ",
        })?;
        self.tuple.fmt(f)
    }
}

/// One line, without the message that the frame carries.
impl Display for ServerFrame<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ServerFrame::XLogData(XLogData { start, end, send_time, payload }) => {
                let length = payload.len();
                write!(f, "XLogData start LSN {start}, end LSN {end}, sent {send_time}, {length} bytes")
            }
            ServerFrame::Keepalive(Keepalive { end, send_time, reply_requested }) => {
                let reply_requested = if *reply_requested { ", reply requested" } else { "" };
                write!(f, "Primary keepalive end LSN {end}, sent {send_time}{reply_requested}")
            }
        }
    }
}
