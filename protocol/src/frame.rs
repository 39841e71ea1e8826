//! The frames of the walsender that carry the messages.
//!
//! "Streaming Replication Protocol" in the PostgreSQL manual: after START_REPLICATION each CopyData message from
//! the server is an [`XLogData`] or a [`Keepalive`], and the client answers with [`StandbyStatusUpdate`]s. The
//! bytes here are the content of the CopyData message, without its own type and length.

use crate::buffer::Buffer;
use crate::reader::Reader;
use crate::{DecodeError, Lsn, Timestamp};

const XLOG_DATA: u8 = b'w';
const KEEPALIVE: u8 = b'k';
const STANDBY_STATUS_UPDATE: u8 = b'r';

/// Where the send time is in an [`XLogData`], in bytes from its `w`.
pub const SEND_TIME_OFFSET: usize = 1 + 8 + 8;

/// Where the payload begins in an [`XLogData`], in bytes from its `w`.
pub const PAYLOAD_OFFSET: usize = SEND_TIME_OFFSET + 8;

/// `w`: a piece of the stream; in logical replication, one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XLogData<'a> {
    /// Where the data begins in the WAL; 0 for messages that have no place of their own in it.
    pub start: Lsn,
    /// The end of the WAL on the server. Logical replication sends the same as `start`.
    pub end: Lsn,
    /// When the server sent the frame, by its clock.
    pub send_time: Timestamp,
    /// The message, for [`Decoder::decode`](crate::Decoder::decode).
    pub payload: &'a [u8],
}

/// Begins an [`XLogData`]: the payload must follow.
#[inline]
pub fn xlog_data_header(buffer: &mut impl Buffer, start: Lsn, end: Lsn, send_time: Timestamp) {
    buffer.put_u8(XLOG_DATA);
    buffer.put_lsn(start);
    buffer.put_lsn(end);
    buffer.put_timestamp(send_time);
}

impl<'a> XLogData<'a> {
    /// Appends the frame.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        xlog_data_header(buffer, self.start, self.end, self.send_time);
        buffer.put(self.payload);
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(XLogData {
            start: reader.lsn("start LSN")?,
            end: reader.lsn("end LSN")?,
            send_time: reader.timestamp("send time")?,
            payload: reader.remainder(),
        })
    }
}

/// `k`: a sign of life from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How far the server has sent, or skipped.
    pub end: Lsn,
    /// When the server sent the frame, by its clock.
    pub send_time: Timestamp,
    /// Whether the server ends the connection unless the client answers soon.
    pub reply_requested: bool,
}

impl Keepalive {
    /// Appends the frame.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(KEEPALIVE);
        buffer.put_lsn(self.end);
        buffer.put_timestamp(self.send_time);
        buffer.put_u8(self.reply_requested.into());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Keepalive {
            end: reader.lsn("end LSN")?,
            send_time: reader.timestamp("send time")?,
            reply_requested: reader.boolean("reply requested")?,
        })
    }
}

/// What the server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// A piece of the stream.
    XLogData(XLogData<'a>),
    /// A sign of life.
    Keepalive(Keepalive),
}

impl<'a> ServerFrame<'a> {
    /// Appends the frame.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        match self {
            ServerFrame::XLogData(frame) => frame.encode(buffer),
            ServerFrame::Keepalive(frame) => frame.encode(buffer),
        }
    }

    /// Decodes the content of a CopyData message from the server.
    ///
    /// # Errors
    ///
    /// When the bytes aren't a frame that a walsender sends.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, false);
        let frame_type =
            reader.recognized("frame type", |byte| matches!(byte, XLOG_DATA | KEEPALIVE).then_some(byte))?;
        let frame = if frame_type == XLOG_DATA {
            reader.name("XLogData");
            ServerFrame::XLogData(XLogData::decode(&mut reader)?)
        } else {
            reader.name("Primary keepalive");
            ServerFrame::Keepalive(Keepalive::decode(&mut reader)?)
        };
        reader.finish()?;
        Ok(frame)
    }
}

/// `r`: how far the client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandbyStatusUpdate {
    /// Up to where the client has received and written, plus one byte.
    pub written: Lsn,
    /// Up to where the client has flushed, plus one byte: the server may forget what is before.
    pub flushed: Lsn,
    /// Up to where the client has applied, plus one byte.
    pub applied: Lsn,
    /// When the client sent it, by its clock.
    pub send_time: Timestamp,
    /// Whether the server shall answer at once.
    pub reply_requested: bool,
}

impl StandbyStatusUpdate {
    /// Appends the frame.
    #[inline]
    pub fn encode(&self, buffer: &mut impl Buffer) {
        buffer.put_u8(STANDBY_STATUS_UPDATE);
        buffer.put_lsn(self.written);
        buffer.put_lsn(self.flushed);
        buffer.put_lsn(self.applied);
        buffer.put_timestamp(self.send_time);
        buffer.put_u8(self.reply_requested.into());
    }

    /// Decodes the content of a CopyData message from the client.
    ///
    /// # Errors
    ///
    /// When the bytes aren't a standby status update.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, false);
        reader.recognized("frame type", |byte| (byte == STANDBY_STATUS_UPDATE).then_some(()))?;
        reader.name("Standby status update");
        let update = StandbyStatusUpdate {
            written: reader.lsn("written LSN")?,
            flushed: reader.lsn("flushed LSN")?,
            applied: reader.lsn("applied LSN")?,
            send_time: reader.timestamp("send time")?,
            reply_requested: reader.boolean("reply requested")?,
        };
        reader.finish()?;
        Ok(update)
    }
}
