//! Bytes to messages.

use crate::change::{Delete, Insert, LogicalMessage, Truncate, Update};
use crate::message::{Message, MessageType};
use crate::prepared::{BeginPrepare, CommitPrepared, Prepare, RollbackPrepared, StreamPrepare};
use crate::reader::Reader;
use crate::relation::{Relation, Type};
use crate::stream::{StreamAbort, StreamCommit, StreamStart, StreamStop};
use crate::transaction::{Begin, Commit, Origin};
use crate::{DecodeError, DecodeErrorKind};

/// What was agreed on when replication started, as far as the format of messages depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The option `proto_version`: 1 to 4. A higher number is read as 4, 0 as 1.
    pub protocol_version: u8,
    /// Whether the option `streaming` was `parallel`. Protocol 4 only: ignored below.
    pub streaming_parallel: bool,
}

/// Decodes the messages of one replication stream, in their order.
///
/// It follows "Logical Streaming Replication Protocol" and "Logical Replication Message Formats" in the
/// PostgreSQL manual: between Stream Start and Stream Stop messages carry an xid that they don't have outside, so
/// that the decoder has to see all messages.
///
/// Decoding is strict. Flags and kinds without a meaning, bytes after the last field and messages that can't
/// come at a point are errors, so that a message that is decoded is encoded to the same bytes again. A
/// message of a newer protocol version than the one agreed on is an error too; only the messages of two-phase
/// commit are accepted with every version, since a server sends them to a client of protocol 1 when the
/// replication slot has two-phase commit on.
///
/// No bytes make it panic. Memory is taken only for columns and relations that the bytes left of the message
/// can hold: at most 24 bytes for each byte of input.
#[derive(Clone, Debug)]
pub struct Decoder {
    protocol_version: u8,
    streaming_parallel: bool,
    in_stream: bool,
}

impl Decoder {
    /// A decoder at the beginning of a replication stream.
    pub fn new(options: Options) -> Self {
        let protocol_version = options.protocol_version.clamp(1, 4);
        Decoder {
            protocol_version,
            streaming_parallel: options.streaming_parallel && protocol_version >= 4,
            in_stream: false,
        }
    }

    /// Whether the last message was between Stream Start and Stream Stop, or was Stream Start.
    pub fn in_stream(&self) -> bool {
        self.in_stream
    }

    /// Decodes one whole message, without the frame that it came in.
    ///
    /// # Errors
    ///
    /// When the bytes aren't a message or not one that may come here. The decoder is then as it was before.
    pub fn decode<'a>(&mut self, bytes: &'a [u8]) -> Result<Message<'a>, DecodeError> {
        let mut reader = Reader::new(bytes, self.in_stream);
        let message_type = reader.recognized("message type", MessageType::from_byte)?;
        reader.name(message_type.name());
        if let Err(kind) = self.check(message_type) {
            return Err(reader.error_at("message type", 0, kind));
        }
        let message = self.body(message_type, &mut reader)?;
        reader.finish()?;
        match message_type {
            MessageType::StreamStart => self.in_stream = true,
            MessageType::StreamStop => self.in_stream = false,
            _ => {}
        }
        Ok(message)
    }

    /// Whether a message may come now.
    fn check(&self, message_type: MessageType) -> Result<(), DecodeErrorKind> {
        let since = match message_type {
            MessageType::StreamStart
            | MessageType::StreamStop
            | MessageType::StreamCommit
            | MessageType::StreamAbort => 2,
            // Those of two-phase commit depend on the slot, whatever the version.
            _ => 1,
        };
        if self.protocol_version < since {
            return Err(DecodeErrorKind::NewerProtocol { since, agreed: self.protocol_version });
        }
        match message_type {
            MessageType::Origin
            | MessageType::Relation
            | MessageType::Type
            | MessageType::Insert
            | MessageType::Update
            | MessageType::Delete
            | MessageType::Truncate
            | MessageType::Message => Ok(()),
            MessageType::StreamStop if !self.in_stream => Err(DecodeErrorKind::NotInStream),
            MessageType::StreamStop => Ok(()),
            _ if self.in_stream => Err(DecodeErrorKind::InStream),
            _ => Ok(()),
        }
    }

    fn body<'a>(
        &self,
        message_type: MessageType,
        reader: &mut Reader<'a>,
    ) -> Result<Message<'a>, DecodeError> {
        Ok(match message_type {
            MessageType::Begin => Message::Begin(Begin::decode(reader)?),
            MessageType::Commit => Message::Commit(Commit::decode(reader)?),
            MessageType::Origin => Message::Origin(Origin::decode(reader)?),
            MessageType::Relation => Message::Relation(Relation::decode(reader)?),
            MessageType::Type => Message::Type(Type::decode(reader)?),
            MessageType::Insert => Message::Insert(Insert::decode(reader)?),
            MessageType::Update => Message::Update(Update::decode(reader)?),
            MessageType::Delete => Message::Delete(Delete::decode(reader)?),
            MessageType::Truncate => Message::Truncate(Truncate::decode(reader)?),
            MessageType::Message => Message::Message(LogicalMessage::decode(reader)?),
            MessageType::StreamStart => Message::StreamStart(StreamStart::decode(reader)?),
            MessageType::StreamStop => Message::StreamStop(StreamStop),
            MessageType::StreamCommit => Message::StreamCommit(StreamCommit::decode(reader)?),
            MessageType::StreamAbort => {
                Message::StreamAbort(StreamAbort::decode(reader, self.streaming_parallel)?)
            }
            MessageType::BeginPrepare => Message::BeginPrepare(BeginPrepare::decode(reader)?),
            MessageType::Prepare => Message::Prepare(Prepare::decode(reader)?),
            MessageType::CommitPrepared => Message::CommitPrepared(CommitPrepared::decode(reader)?),
            MessageType::RollbackPrepared => Message::RollbackPrepared(RollbackPrepared::decode(reader)?),
            MessageType::StreamPrepare => Message::StreamPrepare(StreamPrepare::decode(reader)?),
        })
    }
}
