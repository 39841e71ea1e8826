//! TupleData: the values of a row.

use crate::buffer::Buffer;
use crate::reader::Reader;
use crate::row::{self, OldTupleKind};
use crate::{DecodeError, DecodeErrorKind};

/// A row, one value per column of the [`Relation`](crate::Relation) message before it.
///
/// "TupleData" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleData<'a> {
    /// The values; at most 65,535.
    pub columns: Vec<Value<'a>>,
}

/// A value of a [`TupleData`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `n`: null.
    Null,
    /// `u`: a toasted value that hasn't changed, and isn't sent.
    UnchangedToast,
    /// `t`: the text form, in the client's encoding.
    Text(&'a [u8]),
    /// `b`: the type's binary form.
    Binary(&'a [u8]),
}

/// A row as it was before an Update or Delete, or its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldTuple<'a> {
    /// Whether the tuple holds all columns or only those of the key.
    pub kind: OldTupleKind,
    /// The values; those of columns that aren't held are null.
    pub tuple: TupleData<'a>,
}

/// A count of columns as it is written. The server has at most 1,664 in a row.
#[inline]
pub(crate) fn column_count(count: usize) -> u16 {
    debug_assert!(u16::try_from(count).is_ok(), "a column count of the protocol is an Int16");
    count as u16
}

impl<'a> TupleData<'a> {
    /// Appends the tuple.
    ///
    /// A debug build asserts that there are no more columns than fit the Int16 count; a release build writes
    /// the low 16 bits of the count and doesn't panic.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        row::tuple_columns(buffer, column_count(self.columns.len()));
        for value in &self.columns {
            value.encode(buffer);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let ncolumns = reader.count16("column count", 1)?;
        let mut columns = Vec::with_capacity(ncolumns);
        for _ in 0..ncolumns {
            columns.push(Value::decode(reader)?);
        }
        Ok(TupleData { columns })
    }
}

impl<'a> Value<'a> {
    /// Appends the value.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        match self {
            Value::Null => row::null(buffer),
            Value::UnchangedToast => row::unchanged_toast(buffer),
            Value::Text(value) => row::text(buffer, value),
            Value::Binary(value) => row::binary(buffer, value),
        }
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        match reader.u8("value kind")? {
            row::NULL => Ok(Value::Null),
            row::UNCHANGED_TOAST => Ok(Value::UnchangedToast),
            row::TEXT => reader.counted_bytes("text value").map(Value::Text),
            row::BINARY => reader.counted_bytes("binary value").map(Value::Binary),
            kind => Err(reader.error_at("value kind", offset, DecodeErrorKind::Unrecognized(kind))),
        }
    }
}

impl OldTuple<'_> {
    /// Appends the kind and the tuple.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        row::old_tuple(buffer, self.kind);
        self.tuple.encode(buffer);
    }
}
