//! Insert, Update, Delete, Truncate and Message.

use crate::buffer::Buffer;
use crate::message::MessageType;
use crate::reader::Reader;
use crate::row::{self, OldTupleKind};
use crate::tuple::{OldTuple, TupleData};
use crate::{DecodeError, Lsn, Oid, Xid};

const CASCADE: u8 = 1;
const RESTART_IDENTITY: u8 = 2;

const TRANSACTIONAL: u8 = 1;

/// A new row.
///
/// "Insert" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// The subtransaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// The relation, as its [`Relation`](crate::Relation) message has it.
    pub relation: Oid,
    /// The new row.
    pub new: TupleData<'a>,
}

impl<'a> Insert<'a> {
    /// Appends the message.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        row::begin_insert(buffer, self.xid, self.relation);
        self.new.encode(buffer);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = reader.stream_xid()?;
        let relation = reader.u32("relation OID")?;
        reader.recognized("tuple kind", |byte| (byte == row::NEW_TUPLE).then_some(()))?;
        Ok(Insert { xid, relation, new: TupleData::decode(reader)? })
    }
}

/// A changed row.
///
/// "Update" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The subtransaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// The relation, as its [`Relation`](crate::Relation) message has it.
    pub relation: Oid,
    /// The row before: its key if that changed or was toasted, or all of it with REPLICA IDENTITY FULL.
    pub old: Option<OldTuple<'a>>,
    /// The row after.
    pub new: TupleData<'a>,
}

impl<'a> Update<'a> {
    /// Appends the message.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        row::begin_update(buffer, self.xid, self.relation);
        if let Some(old) = &self.old {
            old.encode(buffer);
        }
        row::new_tuple(buffer);
        self.new.encode(buffer);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = reader.stream_xid()?;
        let relation = reader.u32("relation OID")?;
        let old_kind = reader.recognized("tuple kind", |byte| match byte {
            row::NEW_TUPLE => Some(None),
            _ => OldTupleKind::from_byte(byte).map(Some),
        })?;
        let old = match old_kind {
            None => None,
            Some(kind) => {
                let tuple = TupleData::decode(reader)?;
                reader.recognized("tuple kind", |byte| (byte == row::NEW_TUPLE).then_some(()))?;
                Some(OldTuple { kind, tuple })
            }
        };
        Ok(Update { xid, relation, old, new: TupleData::decode(reader)? })
    }
}

/// A row that is gone.
///
/// "Delete" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The subtransaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// The relation, as its [`Relation`](crate::Relation) message has it.
    pub relation: Oid,
    /// The row that was deleted, or its key.
    pub old: OldTuple<'a>,
}

impl<'a> Delete<'a> {
    /// Appends the message.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        row::begin_delete(buffer, self.xid, self.relation, self.old.kind);
        self.old.tuple.encode(buffer);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = reader.stream_xid()?;
        let relation = reader.u32("relation OID")?;
        let kind = reader.recognized("tuple kind", OldTupleKind::from_byte)?;
        Ok(Delete { xid, relation, old: OldTuple { kind, tuple: TupleData::decode(reader)? } })
    }
}

/// Relations that were emptied together.
///
/// "Truncate" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    /// The subtransaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// TRUNCATE … CASCADE.
    pub cascade: bool,
    /// TRUNCATE … RESTART IDENTITY.
    pub restart_identity: bool,
    /// The relations, as their [`Relation`](crate::Relation) messages have them.
    pub relations: Vec<Oid>,
}

/// Writes a whole Truncate message, see [`Truncate`] for the parts.
#[inline]
pub fn truncate(
    buffer: &mut impl Buffer,
    xid: Option<Xid>,
    cascade: bool,
    restart_identity: bool,
    relations: impl IntoIterator<Item = Oid>,
) {
    buffer.put_u8(MessageType::Truncate.byte());
    buffer.put_stream_xid(xid);
    let count_position = buffer.position();
    buffer.put_u32(0);
    let cascade = if cascade { CASCADE } else { 0 };
    let restart_identity = if restart_identity { RESTART_IDENTITY } else { 0 };
    buffer.put_u8(cascade | restart_identity);
    let mut count = 0;
    for relation in relations {
        buffer.put_u32(relation);
        count += 1;
    }
    buffer.patch(count_position, &row::length(count).to_be_bytes());
}

impl Truncate {
    /// Appends the message.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        let relations = self.relations.iter().copied();
        truncate(buffer, self.xid, self.cascade, self.restart_identity, relations);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let xid = reader.stream_xid()?;
        let count_offset = reader.offset();
        let count = reader.u32("relation count")?;
        let options = reader
            .recognized("options", |byte| (byte & !(CASCADE | RESTART_IDENTITY) == 0).then_some(byte))?;
        let nrelations = reader.fits("relation count", count_offset, count, size_of::<Oid>())?;
        let mut relations = Vec::with_capacity(nrelations);
        for _ in 0..nrelations {
            relations.push(reader.u32("relation OID")?);
        }
        Ok(Truncate {
            xid,
            cascade: options & CASCADE != 0,
            restart_identity: options & RESTART_IDENTITY != 0,
            relations,
        })
    }
}

/// A logical decoding message, as `pg_logical_emit_message` writes them.
///
/// "Message" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalMessage<'a> {
    /// The top-level transaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// Whether the message belongs to a transaction, or came at once.
    pub transactional: bool,
    /// Where the message is in the WAL.
    pub lsn: Lsn,
    /// What kind of message it is, in the client's encoding.
    pub prefix: &'a [u8],
    /// The content: any bytes.
    pub content: &'a [u8],
}

impl<'a> LogicalMessage<'a> {
    /// Appends the message.
    ///
    /// The content has a length of Int32: what [`row`](crate::row) says of values is true of it, too.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::Message.byte());
        buffer.put_stream_xid(self.xid);
        buffer.put_u8(if self.transactional { TRANSACTIONAL } else { 0 });
        buffer.put_lsn(self.lsn);
        buffer.put_string(self.prefix);
        buffer.put_u32(row::length(self.content.len()));
        buffer.put(self.content);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(LogicalMessage {
            xid: reader.stream_xid()?,
            transactional: reader.boolean("flags")?,
            lsn: reader.lsn("LSN")?,
            prefix: reader.string("prefix")?,
            content: reader.counted_bytes("content")?,
        })
    }
}
