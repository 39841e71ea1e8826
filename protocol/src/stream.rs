//! Stream Start, Stop, Commit and Abort: transactions that are sent before they end.

use crate::buffer::Buffer;
use crate::message::MessageType;
use crate::reader::Reader;
use crate::{DecodeError, Lsn, Timestamp, Xid};

/// Begins a block of a streamed transaction's changes, which [`StreamStop`] ends.
///
/// "Stream Start" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// The top-level transaction.
    pub xid: Xid,
    /// Whether this is the transaction's first block.
    pub first: bool,
}

impl StreamStart {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::StreamStart.byte());
        buffer.put_u32(self.xid);
        buffer.put_u8(self.first.into());
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(StreamStart { xid: reader.u32("transaction ID")?, first: reader.boolean("first segment")? })
    }
}

/// Ends a block that [`StreamStart`] began.
///
/// "Stream Stop" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStop;

impl StreamStop {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::StreamStop.byte());
    }
}

/// The end of a streamed transaction that committed.
///
/// "Stream Commit" of "Logical Replication Message Formats" in the PostgreSQL manual. Its flags have no
/// meaning yet and are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCommit {
    /// The top-level transaction.
    pub xid: Xid,
    /// Where the commit record begins.
    pub commit_lsn: Lsn,
    /// Where the commit record ends.
    pub end_lsn: Lsn,
    /// When the transaction committed.
    pub commit_time: Timestamp,
}

impl StreamCommit {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::StreamCommit.byte());
        buffer.put_u32(self.xid);
        buffer.put_u8(0);
        buffer.put_lsn(self.commit_lsn);
        buffer.put_lsn(self.end_lsn);
        buffer.put_timestamp(self.commit_time);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let xid = reader.u32("transaction ID")?;
        reader.no_flags()?;
        Ok(StreamCommit {
            xid,
            commit_lsn: reader.lsn("commit LSN")?,
            end_lsn: reader.lsn("end LSN")?,
            commit_time: reader.timestamp("commit time")?,
        })
    }
}

/// The abort of a streamed transaction, or of a subtransaction of it.
///
/// "Stream Abort" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAbort {
    /// The top-level transaction.
    pub xid: Xid,
    /// The transaction that aborted: the same as `xid` when all of it did.
    pub subxid: Xid,
    /// Where the abort record is and when the transaction aborted, with `streaming 'parallel'` only.
    pub abort: Option<(Lsn, Timestamp)>,
}

impl StreamAbort {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::StreamAbort.byte());
        buffer.put_u32(self.xid);
        buffer.put_u32(self.subxid);
        if let Some((lsn, time)) = self.abort {
            buffer.put_lsn(lsn);
            buffer.put_timestamp(time);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>, streaming_parallel: bool) -> Result<Self, DecodeError> {
        Ok(StreamAbort {
            xid: reader.u32("transaction ID")?,
            subxid: reader.u32("subtransaction ID")?,
            abort: if streaming_parallel {
                Some((reader.lsn("abort LSN")?, reader.timestamp("abort time")?))
            } else {
                None
            },
        })
    }
}
