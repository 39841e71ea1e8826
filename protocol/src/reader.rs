//! Reading fields, with errors that name them.

use crate::{DecodeError, DecodeErrorKind, Lsn, Timestamp, Xid};

/// A position in the bytes of one message.
pub(crate) struct Reader<'a> {
    message: &'static str,
    rest: &'a [u8],
    offset: usize,
    in_stream: bool,
}

impl<'a> Reader<'a> {
    /// Begins to read a message whose name isn't known yet.
    pub(crate) fn new(bytes: &'a [u8], in_stream: bool) -> Self {
        Reader { message: "unknown", rest: bytes, offset: 0, in_stream }
    }

    /// Names the message in all errors from here on.
    pub(crate) fn name(&mut self, message: &'static str) {
        self.message = message;
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// An error about the field that begins at the current position.
    pub(crate) fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        self.error_at(field, self.offset, kind)
    }

    /// An error about a field that has been read.
    pub(crate) fn error_at(&self, field: &'static str, offset: usize, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { message: self.message, field, offset, kind }
    }

    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((array, rest)) = self.rest.split_first_chunk() else {
            return Err(
                self.error(field, DecodeErrorKind::TooShort { needed: N, remaining: self.rest.len() })
            );
        };
        self.rest = rest;
        self.offset += N;
        Ok(*array)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        let [byte] = self.array(field)?;
        Ok(byte)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.array(field).map(i32::from_be_bytes)
    }

    pub(crate) fn lsn(&mut self, field: &'static str) -> Result<Lsn, DecodeError> {
        self.array(field).map(u64::from_be_bytes).map(Lsn)
    }

    pub(crate) fn timestamp(&mut self, field: &'static str) -> Result<Timestamp, DecodeError> {
        self.array(field).map(i64::from_be_bytes).map(Timestamp)
    }

    /// The xid that a message has only inside a stream block.
    pub(crate) fn stream_xid(&mut self) -> Result<Option<Xid>, DecodeError> {
        if self.in_stream { self.u32("transaction ID").map(Some) } else { Ok(None) }
    }

    /// A byte that `recognize` gives a meaning to.
    pub(crate) fn recognized<T>(
        &mut self,
        field: &'static str,
        recognize: impl FnOnce(u8) -> Option<T>,
    ) -> Result<T, DecodeError> {
        let offset = self.offset;
        let byte = self.u8(field)?;
        recognize(byte).ok_or_else(|| self.error_at(field, offset, DecodeErrorKind::Unrecognized(byte)))
    }

    /// A byte that is 1 for true and 0 for false.
    pub(crate) fn boolean(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.recognized(field, |byte| match byte {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }

    /// A flags field none of whose bits has a meaning yet.
    pub(crate) fn no_flags(&mut self) -> Result<(), DecodeError> {
        self.recognized("flags", |byte| (byte == 0).then_some(()))
    }

    /// An Int16 count of items that take at least `item_size` bytes each.
    pub(crate) fn count16(&mut self, field: &'static str, item_size: usize) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let count = self.array(field).map(u16::from_be_bytes)?;
        self.fits(field, offset, count.into(), item_size)
    }

    /// An Int32 count of items that take at least `item_size` bytes each.
    pub(crate) fn count32(&mut self, field: &'static str, item_size: usize) -> Result<usize, DecodeError> {
        let offset = self.offset;
        let count = self.u32(field)?;
        self.fits(field, offset, count, item_size)
    }

    /// Checks a count against what remains, so that nobody allocates for items that can't be there. A negative
    /// Int32 becomes a count that never fits.
    pub(crate) fn fits(
        &self,
        field: &'static str,
        offset: usize,
        count: u32,
        item_size: usize,
    ) -> Result<usize, DecodeError> {
        let remaining = self.rest.len();
        match usize::try_from(count) {
            Ok(items) if count <= i32::MAX as u32 && items <= remaining / item_size => Ok(items),
            _ => Err(self.error_at(field, offset, DecodeErrorKind::TooMany { count, remaining })),
        }
    }

    /// A String, without its NUL.
    pub(crate) fn string(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some(end) = self.rest.iter().position(|&byte| byte == 0) else {
            return Err(self.error(field, DecodeErrorKind::Unterminated));
        };
        let (string, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        self.offset += end + 1;
        Ok(string)
    }

    /// An Int32 length and as many bytes.
    pub(crate) fn counted_bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.count32(field, 1)?;
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.offset += length;
        Ok(bytes)
    }

    /// All that remains.
    pub(crate) fn remainder(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.rest);
        self.offset += rest.len();
        rest
    }

    /// Ends the message: nothing may remain.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            remaining => Err(self.error("end", DecodeErrorKind::Trailing { remaining })),
        }
    }
}
