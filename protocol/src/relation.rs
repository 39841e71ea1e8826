//! Relation and Type: what a client has to know before it reads a relation's rows.

use crate::buffer::Buffer;
use crate::message::MessageType;
use crate::reader::Reader;
use crate::{DecodeError, Oid, Xid};

const KEY_COLUMN: u8 = 1;

/// A column takes at least its flags, an empty name, its type and its type modifier.
const COLUMN_SIZE: usize = 1 + 1 + 4 + 4;

/// What identifies a row of a relation in the old tuple of Update and Delete: `pg_class.relreplident`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaIdentity {
    /// `d`: the primary key, if there is one.
    Default,
    /// `n`: nothing.
    Nothing,
    /// `f`: all columns.
    Full,
    /// `i`: the columns of an index.
    Index,
}

impl ReplicaIdentity {
    /// The byte in `pg_class.relreplident` and in the message.
    #[inline]
    pub const fn byte(self) -> u8 {
        match self {
            ReplicaIdentity::Default => b'd',
            ReplicaIdentity::Nothing => b'n',
            ReplicaIdentity::Full => b'f',
            ReplicaIdentity::Index => b'i',
        }
    }

    /// The replica identity that `byte` stands for, if it stands for one.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'd' => Some(ReplicaIdentity::Default),
            b'n' => Some(ReplicaIdentity::Nothing),
            b'f' => Some(ReplicaIdentity::Full),
            b'i' => Some(ReplicaIdentity::Index),
            _ => None,
        }
    }
}

/// A relation's name and published columns, before its first row and when they may have changed.
///
/// "Relation" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation<'a> {
    /// The subtransaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// The relation, on the publisher.
    pub oid: Oid,
    /// The schema's name in the client's encoding, empty for `pg_catalog`.
    pub namespace: &'a [u8],
    /// The relation's name, in the client's encoding.
    pub name: &'a [u8],
    /// What identifies a row.
    pub replica_identity: ReplicaIdentity,
    /// The published columns, in the order of the values in a tuple; at most 65,535.
    pub columns: Vec<RelationColumn<'a>>,
}

/// A column of a [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationColumn<'a> {
    /// Whether the column is part of the key, as the replica identity has it.
    pub is_key: bool,
    /// The column's name, in the client's encoding.
    pub name: &'a [u8],
    /// The column's type, on the publisher.
    pub type_oid: Oid,
    /// The type modifier (`pg_attribute.atttypmod`), −1 for none.
    pub type_modifier: i32,
}

/// Begins a Relation message: `ncolumns` calls of [`relation_column`] must follow.
///
/// `xid` is that of the subtransaction inside a stream block, `None` outside. `replica_identity` is the byte
/// of `pg_class.relreplident`.
#[inline]
pub fn relation_header(
    buffer: &mut impl Buffer,
    xid: Option<Xid>,
    oid: Oid,
    namespace: &[u8],
    name: &[u8],
    replica_identity: u8,
    ncolumns: u16,
) {
    buffer.put_u8(MessageType::Relation.byte());
    buffer.put_stream_xid(xid);
    buffer.put_u32(oid);
    buffer.put_string(namespace);
    buffer.put_string(name);
    buffer.put_u8(replica_identity);
    buffer.put_u16(ncolumns);
}

/// Appends a column to a Relation message that [`relation_header`] began.
#[inline]
pub fn relation_column(
    buffer: &mut impl Buffer,
    is_key: bool,
    name: &[u8],
    type_oid: Oid,
    type_modifier: i32,
) {
    buffer.put_u8(if is_key { KEY_COLUMN } else { 0 });
    buffer.put_string(name);
    buffer.put_u32(type_oid);
    buffer.put_i32(type_modifier);
}

impl<'a> Relation<'a> {
    /// Appends the message.
    ///
    /// A debug build asserts that there are no more columns than fit the Int16 count; a release build writes
    /// the low 16 bits of the count and doesn't panic.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        let replica_identity = self.replica_identity.byte();
        let ncolumns = crate::tuple::column_count(self.columns.len());
        relation_header(buffer, self.xid, self.oid, self.namespace, self.name, replica_identity, ncolumns);
        for column in &self.columns {
            relation_column(buffer, column.is_key, column.name, column.type_oid, column.type_modifier);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = reader.stream_xid()?;
        let oid = reader.u32("relation OID")?;
        let namespace = reader.string("namespace")?;
        let name = reader.string("relation name")?;
        let replica_identity = reader.recognized("replica identity", ReplicaIdentity::from_byte)?;
        let ncolumns = reader.count16("column count", COLUMN_SIZE)?;
        let mut columns = Vec::with_capacity(ncolumns);
        for _ in 0..ncolumns {
            columns.push(RelationColumn::decode(reader)?);
        }
        Ok(Relation { xid, oid, namespace, name, replica_identity, columns })
    }
}

impl<'a> RelationColumn<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(RelationColumn {
            is_key: reader.boolean("column flags")?,
            name: reader.string("column name")?,
            type_oid: reader.u32("column type OID")?,
            type_modifier: reader.i32("column type modifier")?,
        })
    }
}

/// The name of a type that isn't built in, before the first [`Relation`] that has a column of it.
///
/// "Type" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type<'a> {
    /// The subtransaction, inside a stream block only.
    pub xid: Option<Xid>,
    /// The column's own type, on the publisher.
    pub oid: Oid,
    /// The schema of the ultimate base type in the client's encoding, empty for `pg_catalog`.
    pub namespace: &'a [u8],
    /// The name of the ultimate base type in the client's encoding: for a domain not the domain's own.
    pub name: &'a [u8],
}

impl<'a> Type<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::Type.byte());
        buffer.put_stream_xid(self.xid);
        buffer.put_u32(self.oid);
        buffer.put_string(self.namespace);
        buffer.put_string(self.name);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Type {
            xid: reader.stream_xid()?,
            oid: reader.u32("type OID")?,
            namespace: reader.string("namespace")?,
            name: reader.string("type name")?,
        })
    }
}
