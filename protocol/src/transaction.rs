//! Begin, Commit and Origin.

use crate::buffer::Buffer;
use crate::message::MessageType;
use crate::reader::Reader;
use crate::{DecodeError, Lsn, Timestamp, Xid};

/// The first message of a transaction that isn't streamed or prepared.
///
/// "Begin" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Where the commit record begins.
    pub final_lsn: Lsn,
    /// When the transaction committed.
    pub commit_time: Timestamp,
    /// The transaction.
    pub xid: Xid,
}

impl Begin {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::Begin.byte());
        buffer.put_lsn(self.final_lsn);
        buffer.put_timestamp(self.commit_time);
        buffer.put_u32(self.xid);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Begin {
            final_lsn: reader.lsn("final LSN")?,
            commit_time: reader.timestamp("commit time")?,
            xid: reader.u32("transaction ID")?,
        })
    }
}

/// The last message of a transaction that [`Begin`] began.
///
/// "Commit" of "Logical Replication Message Formats" in the PostgreSQL manual. Its flags have no meaning yet
/// and are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Where the commit record begins.
    pub commit_lsn: Lsn,
    /// Where the commit record ends.
    pub end_lsn: Lsn,
    /// When the transaction committed.
    pub commit_time: Timestamp,
}

impl Commit {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::Commit.byte());
        buffer.put_u8(0);
        buffer.put_lsn(self.commit_lsn);
        buffer.put_lsn(self.end_lsn);
        buffer.put_timestamp(self.commit_time);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.no_flags()?;
        Ok(Commit {
            commit_lsn: reader.lsn("commit LSN")?,
            end_lsn: reader.lsn("end LSN")?,
            commit_time: reader.timestamp("commit time")?,
        })
    }
}

/// Where a transaction was replicated from, after the message that begins it.
///
/// "Origin" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The commit's location on the server it came from; 0 inside a stream block.
    pub commit_lsn: Lsn,
    /// The origin's name, in the client's encoding.
    pub name: &'a [u8],
}

impl<'a> Origin<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::Origin.byte());
        buffer.put_lsn(self.commit_lsn);
        buffer.put_string(self.name);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Origin { commit_lsn: reader.lsn("commit LSN")?, name: reader.string("origin name")? })
    }
}
