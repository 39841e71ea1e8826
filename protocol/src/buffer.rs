//! Where encoded bytes go.

use crate::row::VALUE_HEADER;
use crate::{Lsn, Timestamp, Xid};

/// A growing sequence of bytes that messages are encoded into.
///
/// Implemented for `Vec<u8>`; the output plugin implements it over the server's own buffer. Integers are
/// written in network byte order, as every integer of the protocol is.
///
/// The provided methods hand [`put`](Buffer::put) arrays of a constant length, so that an implementation
/// marked `#[inline]` compiles to plain stores behind one capacity check.
pub trait Buffer {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);

    /// The number of bytes up to the end. Only differences between positions have a meaning to the encoder: a
    /// buffer may already hold something when a message begins.
    fn position(&self) -> usize;

    /// Overwrites the bytes from position `at`, which have been written before.
    fn patch(&mut self, at: usize, bytes: &[u8]);

    /// Appends a value: its header, and bytes whose number isn't known when this is compiled. An implementation may
    /// have another way for them than for the constant lengths of [`put`](Buffer::put).
    #[inline]
    fn put_value(&mut self, header: [u8; VALUE_HEADER], bytes: &[u8]) {
        self.put(&header);
        self.put(bytes);
    }

    /// Appends an unsigned byte, or a tag.
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends an Int8.
    #[inline]
    fn put_i8(&mut self, value: i8) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an Int16 that is read as unsigned.
    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an Int16.
    #[inline]
    fn put_i16(&mut self, value: i16) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an Int32 that is read as unsigned, such as an oid.
    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an Int32.
    #[inline]
    fn put_i32(&mut self, value: i32) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an Int64 that is read as unsigned.
    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    /// Appends an Int64.
    #[inline]
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_be_bytes());
    }

    /// Appends a WAL location.
    #[inline]
    fn put_lsn(&mut self, value: Lsn) {
        self.put_u64(value.0);
    }

    /// Appends a time.
    #[inline]
    fn put_timestamp(&mut self, value: Timestamp) {
        self.put_i64(value.0);
    }

    /// Appends a String: its bytes and a NUL.
    ///
    /// `value` has no NUL in it; a debug build asserts that, a release build writes the bytes as they are and
    /// the reader sees the string end at the first one. No name of the server can have one.
    #[inline]
    fn put_string(&mut self, value: &[u8]) {
        debug_assert!(!value.contains(&0), "a String of the protocol ends at its first NUL");
        self.put(value);
        self.put(&[0]);
    }

    /// Appends the xid that messages carry inside a stream block, nothing outside.
    #[inline]
    fn put_stream_xid(&mut self, xid: Option<Xid>) {
        if let Some(xid) = xid {
            self.put_u32(xid);
        }
    }
}

impl Buffer for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn position(&self) -> usize {
        self.len()
    }

    /// Bytes at or past the end are not written; a debug build asserts that there are none.
    #[inline]
    fn patch(&mut self, at: usize, bytes: &[u8]) {
        let written = self.get_mut(at..).and_then(|rest| rest.get_mut(..bytes.len()));
        debug_assert!(written.is_some(), "only what is written can be patched");
        if let Some(written) = written {
            written.copy_from_slice(bytes);
        }
    }
}
