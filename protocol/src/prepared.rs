//! Begin Prepare, Prepare, Commit Prepared, Rollback Prepared and Stream Prepare: two-phase commit.

use crate::buffer::Buffer;
use crate::message::MessageType;
use crate::reader::Reader;
use crate::{DecodeError, Lsn, Timestamp, Xid};

/// The first message of a transaction that is sent when it is prepared.
///
/// "Begin Prepare" of "Logical Replication Message Formats" in the PostgreSQL manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginPrepare<'a> {
    /// Where the prepare record begins.
    pub prepare_lsn: Lsn,
    /// Where the prepare record ends.
    pub end_lsn: Lsn,
    /// When the transaction was prepared.
    pub prepare_time: Timestamp,
    /// The transaction.
    pub xid: Xid,
    /// The identifier given to PREPARE TRANSACTION, in the client's encoding.
    pub gid: &'a [u8],
}

impl<'a> BeginPrepare<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::BeginPrepare.byte());
        buffer.put_lsn(self.prepare_lsn);
        buffer.put_lsn(self.end_lsn);
        buffer.put_timestamp(self.prepare_time);
        buffer.put_u32(self.xid);
        buffer.put_string(self.gid);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(BeginPrepare {
            prepare_lsn: reader.lsn("prepare LSN")?,
            end_lsn: reader.lsn("end LSN")?,
            prepare_time: reader.timestamp("prepare time")?,
            xid: reader.u32("transaction ID")?,
            gid: reader.string("GID")?,
        })
    }
}

/// The last message of a transaction that [`BeginPrepare`] began.
///
/// "Prepare" of "Logical Replication Message Formats" in the PostgreSQL manual. Its flags have no meaning yet
/// and are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// Where the prepare record begins.
    pub prepare_lsn: Lsn,
    /// Where the prepare record ends.
    pub end_lsn: Lsn,
    /// When the transaction was prepared.
    pub prepare_time: Timestamp,
    /// The transaction.
    pub xid: Xid,
    /// The identifier given to PREPARE TRANSACTION, in the client's encoding.
    pub gid: &'a [u8],
}

impl<'a> Prepare<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::Prepare.byte());
        buffer.put_u8(0);
        buffer.put_lsn(self.prepare_lsn);
        buffer.put_lsn(self.end_lsn);
        buffer.put_timestamp(self.prepare_time);
        buffer.put_u32(self.xid);
        buffer.put_string(self.gid);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.no_flags()?;
        Ok(Prepare {
            prepare_lsn: reader.lsn("prepare LSN")?,
            end_lsn: reader.lsn("end LSN")?,
            prepare_time: reader.timestamp("prepare time")?,
            xid: reader.u32("transaction ID")?,
            gid: reader.string("GID")?,
        })
    }
}

/// The commit of a transaction that has been prepared.
///
/// "Commit Prepared" of "Logical Replication Message Formats" in the PostgreSQL manual. Its flags have no
/// meaning yet and are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPrepared<'a> {
    /// Where the commit record begins.
    pub commit_lsn: Lsn,
    /// Where the commit record ends.
    pub end_lsn: Lsn,
    /// When the transaction committed.
    pub commit_time: Timestamp,
    /// The transaction.
    pub xid: Xid,
    /// The identifier given to PREPARE TRANSACTION, in the client's encoding.
    pub gid: &'a [u8],
}

impl<'a> CommitPrepared<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::CommitPrepared.byte());
        buffer.put_u8(0);
        buffer.put_lsn(self.commit_lsn);
        buffer.put_lsn(self.end_lsn);
        buffer.put_timestamp(self.commit_time);
        buffer.put_u32(self.xid);
        buffer.put_string(self.gid);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.no_flags()?;
        Ok(CommitPrepared {
            commit_lsn: reader.lsn("commit LSN")?,
            end_lsn: reader.lsn("end LSN")?,
            commit_time: reader.timestamp("commit time")?,
            xid: reader.u32("transaction ID")?,
            gid: reader.string("GID")?,
        })
    }
}

/// The rollback of a transaction that has been prepared.
///
/// "Rollback Prepared" of "Logical Replication Message Formats" in the PostgreSQL manual. Its flags have no
/// meaning yet and are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollbackPrepared<'a> {
    /// Where the prepare record ends.
    pub prepare_end_lsn: Lsn,
    /// Where the rollback record ends.
    pub rollback_end_lsn: Lsn,
    /// When the transaction was prepared.
    pub prepare_time: Timestamp,
    /// When the transaction was rolled back.
    pub rollback_time: Timestamp,
    /// The transaction.
    pub xid: Xid,
    /// The identifier given to PREPARE TRANSACTION, in the client's encoding.
    pub gid: &'a [u8],
}

impl<'a> RollbackPrepared<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::RollbackPrepared.byte());
        buffer.put_u8(0);
        buffer.put_lsn(self.prepare_end_lsn);
        buffer.put_lsn(self.rollback_end_lsn);
        buffer.put_timestamp(self.prepare_time);
        buffer.put_timestamp(self.rollback_time);
        buffer.put_u32(self.xid);
        buffer.put_string(self.gid);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.no_flags()?;
        Ok(RollbackPrepared {
            prepare_end_lsn: reader.lsn("prepare end LSN")?,
            rollback_end_lsn: reader.lsn("rollback end LSN")?,
            prepare_time: reader.timestamp("prepare time")?,
            rollback_time: reader.timestamp("rollback time")?,
            xid: reader.u32("transaction ID")?,
            gid: reader.string("GID")?,
        })
    }
}

/// The end of a streamed transaction that was prepared.
///
/// "Stream Prepare" of "Logical Replication Message Formats" in the PostgreSQL manual. Its flags have no
/// meaning yet and are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPrepare<'a> {
    /// Where the prepare record begins.
    pub prepare_lsn: Lsn,
    /// Where the prepare record ends.
    pub end_lsn: Lsn,
    /// When the transaction was prepared.
    pub prepare_time: Timestamp,
    /// The top-level transaction.
    pub xid: Xid,
    /// The identifier given to PREPARE TRANSACTION, in the client's encoding.
    pub gid: &'a [u8],
}

impl<'a> StreamPrepare<'a> {
    /// Appends the message.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(MessageType::StreamPrepare.byte());
        buffer.put_u8(0);
        buffer.put_lsn(self.prepare_lsn);
        buffer.put_lsn(self.end_lsn);
        buffer.put_timestamp(self.prepare_time);
        buffer.put_u32(self.xid);
        buffer.put_string(self.gid);
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.no_flags()?;
        Ok(StreamPrepare {
            prepare_lsn: reader.lsn("prepare LSN")?,
            end_lsn: reader.lsn("end LSN")?,
            prepare_time: reader.timestamp("prepare time")?,
            xid: reader.u32("transaction ID")?,
            gid: reader.string("GID")?,
        })
    }
}
