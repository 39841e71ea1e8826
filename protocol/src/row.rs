//! The bytes of Insert, Update and Delete, piece by piece.
//!
//! An output plugin writes a row with these functions straight into its buffer, without building a
//! [`TupleData`](crate::TupleData) first; the encoders of the message types use them too. An Update of a
//! relation with two columns, for instance, is
//!
//! ```
//! use pgoutput_protocol::row;
//!
//! let mut buffer = Vec::new();
//! row::begin_update(&mut buffer, None, 16384);
//! row::new_tuple(&mut buffer);
//! row::tuple_columns(&mut buffer, 2);
//! row::null(&mut buffer);
//! let start = row::begin_text(&mut buffer);
//! buffer.extend_from_slice(b"forty-two");
//! row::end_value(&mut buffer, start);
//! assert_eq!(buffer, b"U\0\0\x40\0N\0\x02nt\0\0\0\x09forty-two");
//! ```
//!
//! The formats are on the page "Logical Replication Message Formats" of the PostgreSQL manual, TupleData among
//! them.
//!
//! Lengths are Int32 in the protocol: a value is at most 2³¹ − 1 bytes long. The server has none longer than
//! 1 GB. A debug build asserts it; a release build writes the low 32 bits of the length and doesn't panic.

use crate::buffer::Buffer;
use crate::message::MessageType;
use crate::{Oid, Xid};

pub(crate) const NEW_TUPLE: u8 = b'N';

pub(crate) const NULL: u8 = b'n';
pub(crate) const UNCHANGED_TOAST: u8 = b'u';
pub(crate) const TEXT: u8 = b't';
pub(crate) const BINARY: u8 = b'b';

/// What the old tuple of an Update or a Delete holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OldTupleKind {
    /// `K`: the columns of the replica identity; all others are null.
    Key,
    /// `O`: every published column, from a relation with REPLICA IDENTITY FULL.
    Full,
}

impl OldTupleKind {
    /// The byte in front of the tuple.
    #[inline]
    pub const fn byte(self) -> u8 {
        match self {
            OldTupleKind::Key => b'K',
            OldTupleKind::Full => b'O',
        }
    }

    /// The kind that `byte` stands for, if it stands for one.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'K' => Some(OldTupleKind::Key),
            b'O' => Some(OldTupleKind::Full),
            _ => None,
        }
    }
}

/// Begins an Insert: all up to the new tuple, for which [`tuple_columns`] and the values follow.
///
/// `xid` is that of the subtransaction inside a stream block, `None` outside.
#[inline]
pub fn begin_insert(buffer: &mut impl Buffer, xid: Option<Xid>, relation: Oid) {
    begin(buffer, MessageType::Insert, xid, relation);
    new_tuple(buffer);
}

/// Begins an Update: [`old_tuple`] with its columns may follow, then [`new_tuple`] with its columns must.
///
/// `xid` is that of the subtransaction inside a stream block, `None` outside.
#[inline]
pub fn begin_update(buffer: &mut impl Buffer, xid: Option<Xid>, relation: Oid) {
    begin(buffer, MessageType::Update, xid, relation);
}

/// Begins a Delete: all up to the old tuple, for which [`tuple_columns`] and the values follow.
///
/// `xid` is that of the subtransaction inside a stream block, `None` outside.
#[inline]
pub fn begin_delete(buffer: &mut impl Buffer, xid: Option<Xid>, relation: Oid, kind: OldTupleKind) {
    begin(buffer, MessageType::Delete, xid, relation);
    old_tuple(buffer, kind);
}

#[inline]
fn begin(buffer: &mut impl Buffer, message: MessageType, xid: Option<Xid>, relation: Oid) {
    let [r0, r1, r2, r3] = relation.to_be_bytes();
    match xid {
        None => buffer.put(&[message.byte(), r0, r1, r2, r3]),
        Some(xid) => {
            let [x0, x1, x2, x3] = xid.to_be_bytes();
            buffer.put(&[message.byte(), x0, x1, x2, x3, r0, r1, r2, r3]);
        }
    }
}

/// Marks the tuple that follows as the old one.
#[inline]
pub fn old_tuple(buffer: &mut impl Buffer, kind: OldTupleKind) {
    buffer.put_u8(kind.byte());
}

/// Marks the tuple that follows as the new one.
#[inline]
pub fn new_tuple(buffer: &mut impl Buffer) {
    buffer.put_u8(NEW_TUPLE);
}

/// Begins a TupleData: as many values must follow.
#[inline]
pub fn tuple_columns(buffer: &mut impl Buffer, count: u16) {
    buffer.put_u16(count);
}

/// Writes a null.
#[inline]
pub fn null(buffer: &mut impl Buffer) {
    buffer.put_u8(NULL);
}

/// Writes the mark of a toasted value that hasn't changed and isn't sent.
#[inline]
pub fn unchanged_toast(buffer: &mut impl Buffer) {
    buffer.put_u8(UNCHANGED_TOAST);
}

/// Writes a value in its text form, in the client's encoding.
#[inline]
pub fn text(buffer: &mut impl Buffer, value: &[u8]) {
    whole_value(buffer, TEXT, value);
}

/// Writes a value in its type's binary form.
#[inline]
pub fn binary(buffer: &mut impl Buffer, value: &[u8]) {
    whole_value(buffer, BINARY, value);
}

#[inline]
fn whole_value(buffer: &mut impl Buffer, tag: u8, value: &[u8]) {
    buffer.put_value(value_header(tag, value.len()), value);
}

/// What is in front of a value's bytes: a tag and the length.
pub const VALUE_HEADER: usize = 1 + LENGTH_SIZE;

/// What is in front of a value in its text form, for those that have put the value behind it already.
#[inline]
pub fn text_header(value_length: usize) -> [u8; VALUE_HEADER] {
    value_header(TEXT, value_length)
}

#[inline]
fn value_header(tag: u8, value_length: usize) -> [u8; VALUE_HEADER] {
    let [l0, l1, l2, l3] = length(value_length).to_be_bytes();
    [tag, l0, l1, l2, l3]
}

/// A value that has been begun, and whose length [`end_value`] fills in.
#[derive(Debug)]
#[must_use = "the value has no length until end_value"]
pub struct ValueStart {
    /// The position of the first byte after the length.
    content: usize,
}

/// Begins a value in its text form: what is put into the buffer up to [`end_value`] is the value.
#[inline]
pub fn begin_text(buffer: &mut impl Buffer) -> ValueStart {
    begin_value(buffer, TEXT)
}

/// Begins a value in its type's binary form: what is put into the buffer up to [`end_value`] is the value.
#[inline]
pub fn begin_binary(buffer: &mut impl Buffer) -> ValueStart {
    begin_value(buffer, BINARY)
}

#[inline]
fn begin_value(buffer: &mut impl Buffer, tag: u8) -> ValueStart {
    buffer.put(&value_header(tag, 0));
    ValueStart { content: buffer.position() }
}

/// Ends a value that [`begin_text`] or [`begin_binary`] began in the same buffer.
#[inline]
pub fn end_value(buffer: &mut impl Buffer, start: ValueStart) {
    let length = length(buffer.position().wrapping_sub(start.content));
    buffer.patch(start.content.wrapping_sub(LENGTH_SIZE), &length.to_be_bytes());
}

const LENGTH_SIZE: usize = size_of::<u32>();

/// A length as it is written, see the module's documentation for those that don't fit.
#[inline]
pub(crate) fn length(length: usize) -> u32 {
    debug_assert!(i32::try_from(length).is_ok(), "a length of the protocol is an Int32");
    length as u32
}
