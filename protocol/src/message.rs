//! The nineteen messages together.

use crate::buffer::Buffer;
use crate::change::{Delete, Insert, LogicalMessage, Truncate, Update};
use crate::prepared::{BeginPrepare, CommitPrepared, Prepare, RollbackPrepared, StreamPrepare};
use crate::relation::{Relation, Type};
use crate::stream::{StreamAbort, StreamCommit, StreamStart, StreamStop};
use crate::transaction::{Begin, Commit, Origin};

/// A logical replication message.
///
/// The messages of "Logical Replication Message Formats" in the PostgreSQL manual. [`Decoder`](crate::Decoder)
/// makes them from bytes, [`encode`](Message::encode) turns them into the same bytes again. Strings and values
/// borrow from the bytes that were decoded; they are in the client's encoding, which need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the message of its name")]
pub enum Message<'a> {
    Begin(Begin),
    Commit(Commit),
    Origin(Origin<'a>),
    Relation(Relation<'a>),
    Type(Type<'a>),
    Insert(Insert<'a>),
    Update(Update<'a>),
    Delete(Delete<'a>),
    Truncate(Truncate),
    Message(LogicalMessage<'a>),
    StreamStart(StreamStart),
    StreamStop(StreamStop),
    StreamCommit(StreamCommit),
    StreamAbort(StreamAbort),
    BeginPrepare(BeginPrepare<'a>),
    Prepare(Prepare<'a>),
    CommitPrepared(CommitPrepared<'a>),
    RollbackPrepared(RollbackPrepared<'a>),
    StreamPrepare(StreamPrepare<'a>),
}

impl Message<'_> {
    /// Appends the message.
    pub fn encode(&self, buffer: &mut impl Buffer) {
        match self {
            Message::Begin(message) => message.encode(buffer),
            Message::Commit(message) => message.encode(buffer),
            Message::Origin(message) => message.encode(buffer),
            Message::Relation(message) => message.encode(buffer),
            Message::Type(message) => message.encode(buffer),
            Message::Insert(message) => message.encode(buffer),
            Message::Update(message) => message.encode(buffer),
            Message::Delete(message) => message.encode(buffer),
            Message::Truncate(message) => message.encode(buffer),
            Message::Message(message) => message.encode(buffer),
            Message::StreamStart(message) => message.encode(buffer),
            Message::StreamStop(message) => message.encode(buffer),
            Message::StreamCommit(message) => message.encode(buffer),
            Message::StreamAbort(message) => message.encode(buffer),
            Message::BeginPrepare(message) => message.encode(buffer),
            Message::Prepare(message) => message.encode(buffer),
            Message::CommitPrepared(message) => message.encode(buffer),
            Message::RollbackPrepared(message) => message.encode(buffer),
            Message::StreamPrepare(message) => message.encode(buffer),
        }
    }

    /// Which of the messages it is.
    pub fn message_type(&self) -> MessageType {
        match self {
            Message::Begin(_) => MessageType::Begin,
            Message::Commit(_) => MessageType::Commit,
            Message::Origin(_) => MessageType::Origin,
            Message::Relation(_) => MessageType::Relation,
            Message::Type(_) => MessageType::Type,
            Message::Insert(_) => MessageType::Insert,
            Message::Update(_) => MessageType::Update,
            Message::Delete(_) => MessageType::Delete,
            Message::Truncate(_) => MessageType::Truncate,
            Message::Message(_) => MessageType::Message,
            Message::StreamStart(_) => MessageType::StreamStart,
            Message::StreamStop(_) => MessageType::StreamStop,
            Message::StreamCommit(_) => MessageType::StreamCommit,
            Message::StreamAbort(_) => MessageType::StreamAbort,
            Message::BeginPrepare(_) => MessageType::BeginPrepare,
            Message::Prepare(_) => MessageType::Prepare,
            Message::CommitPrepared(_) => MessageType::CommitPrepared,
            Message::RollbackPrepared(_) => MessageType::RollbackPrepared,
            Message::StreamPrepare(_) => MessageType::StreamPrepare,
        }
    }
}

/// The kinds of message, by the byte that each begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the message of its name")]
#[repr(u8)]
pub enum MessageType {
    Begin = b'B',
    Commit = b'C',
    Origin = b'O',
    Relation = b'R',
    Type = b'Y',
    Insert = b'I',
    Update = b'U',
    Delete = b'D',
    Truncate = b'T',
    Message = b'M',
    StreamStart = b'S',
    StreamStop = b'E',
    StreamCommit = b'c',
    StreamAbort = b'A',
    BeginPrepare = b'b',
    Prepare = b'P',
    CommitPrepared = b'K',
    RollbackPrepared = b'r',
    StreamPrepare = b'p',
}

impl MessageType {
    /// The types, in the order of the protocol versions that brought them.
    pub const ALL: [MessageType; 19] = [
        MessageType::Begin,
        MessageType::Commit,
        MessageType::Origin,
        MessageType::Relation,
        MessageType::Type,
        MessageType::Insert,
        MessageType::Update,
        MessageType::Delete,
        MessageType::Truncate,
        MessageType::Message,
        MessageType::StreamStart,
        MessageType::StreamStop,
        MessageType::StreamCommit,
        MessageType::StreamAbort,
        MessageType::BeginPrepare,
        MessageType::Prepare,
        MessageType::CommitPrepared,
        MessageType::RollbackPrepared,
        MessageType::StreamPrepare,
    ];

    /// The byte that the message begins with.
    #[inline]
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The type that begins with `byte`, if there is one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|message_type| message_type.byte() == byte)
    }

    /// The message's name in the PostgreSQL manual.
    pub const fn name(self) -> &'static str {
        match self {
            MessageType::Begin => "Begin",
            MessageType::Commit => "Commit",
            MessageType::Origin => "Origin",
            MessageType::Relation => "Relation",
            MessageType::Type => "Type",
            MessageType::Insert => "Insert",
            MessageType::Update => "Update",
            MessageType::Delete => "Delete",
            MessageType::Truncate => "Truncate",
            MessageType::Message => "Message",
            MessageType::StreamStart => "Stream Start",
            MessageType::StreamStop => "Stream Stop",
            MessageType::StreamCommit => "Stream Commit",
            MessageType::StreamAbort => "Stream Abort",
            MessageType::BeginPrepare => "Begin Prepare",
            MessageType::Prepare => "Prepare",
            MessageType::CommitPrepared => "Commit Prepared",
            MessageType::RollbackPrepared => "Rollback Prepared",
            MessageType::StreamPrepare => "Stream Prepare",
        }
    }
}
