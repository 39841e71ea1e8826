//! Messages made from random bytes.

use pgoutput_protocol::{
    Begin, BeginPrepare, Commit, CommitPrepared, Delete, Insert, LogicalMessage, Lsn, Message, MessageType,
    OldTuple, OldTupleKind, Origin, Prepare, Relation, RelationColumn, ReplicaIdentity, RollbackPrepared,
    StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop, Timestamp, Truncate, TupleData, Type,
    Update, Value, Xid,
};

/// Random bytes that fields are taken from, so that messages can borrow from them. When the bytes run out,
/// fields are 0 and empty.
pub struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Source { rest: bytes }
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    pub fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn bool(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    fn u64(&mut self) -> u64 {
        self.take(8).iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    fn u32(&mut self) -> u32 {
        self.take(4).iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
    }

    fn lsn(&mut self) -> Lsn {
        Lsn(self.u64())
    }

    fn timestamp(&mut self) -> Timestamp {
        Timestamp(self.u64() as i64)
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = self.u8() % 100;
        self.take(length.into())
    }

    fn string(&mut self) -> &'a [u8] {
        self.bytes().split(|byte| *byte == 0).next().unwrap_or(b"")
    }

    fn stream_xid(&mut self, in_stream: bool) -> Option<Xid> {
        in_stream.then(|| self.u32())
    }

    fn value(&mut self) -> Value<'a> {
        match self.u8() % 4 {
            0 => Value::Null,
            1 => Value::UnchangedToast,
            2 => Value::Text(self.bytes()),
            _ => Value::Binary(self.bytes()),
        }
    }

    pub fn tuple(&mut self) -> TupleData<'a> {
        let ncolumns = self.u8() % 20;
        TupleData { columns: (0..ncolumns).map(|_| self.value()).collect() }
    }

    fn old_tuple(&mut self) -> OldTuple<'a> {
        let kind = if self.bool() { OldTupleKind::Key } else { OldTupleKind::Full };
        OldTuple { kind, tuple: self.tuple() }
    }

    fn column(&mut self) -> RelationColumn<'a> {
        RelationColumn {
            is_key: self.bool(),
            name: self.string(),
            type_oid: self.u32(),
            type_modifier: self.u32() as i32,
        }
    }

    fn replica_identity(&mut self) -> ReplicaIdentity {
        match self.u8() % 4 {
            0 => ReplicaIdentity::Default,
            1 => ReplicaIdentity::Nothing,
            2 => ReplicaIdentity::Full,
            _ => ReplicaIdentity::Index,
        }
    }

    /// A message of a type, as it is inside or outside of a stream block, with or without `streaming
    /// 'parallel'`.
    pub fn message(&mut self, message_type: MessageType, in_stream: bool, parallel: bool) -> Message<'a> {
        match message_type {
            MessageType::Begin => Message::Begin(Begin {
                final_lsn: self.lsn(),
                commit_time: self.timestamp(),
                xid: self.u32(),
            }),
            MessageType::Commit => Message::Commit(Commit {
                commit_lsn: self.lsn(),
                end_lsn: self.lsn(),
                commit_time: self.timestamp(),
            }),
            MessageType::Origin => Message::Origin(Origin { commit_lsn: self.lsn(), name: self.string() }),
            MessageType::Relation => Message::Relation(Relation {
                xid: self.stream_xid(in_stream),
                oid: self.u32(),
                namespace: self.string(),
                name: self.string(),
                replica_identity: self.replica_identity(),
                columns: (0..self.u8() % 20).map(|_| self.column()).collect(),
            }),
            MessageType::Type => Message::Type(Type {
                xid: self.stream_xid(in_stream),
                oid: self.u32(),
                namespace: self.string(),
                name: self.string(),
            }),
            MessageType::Insert => Message::Insert(Insert {
                xid: self.stream_xid(in_stream),
                relation: self.u32(),
                new: self.tuple(),
            }),
            MessageType::Update => Message::Update(Update {
                xid: self.stream_xid(in_stream),
                relation: self.u32(),
                old: self.bool().then(|| self.old_tuple()),
                new: self.tuple(),
            }),
            MessageType::Delete => Message::Delete(Delete {
                xid: self.stream_xid(in_stream),
                relation: self.u32(),
                old: self.old_tuple(),
            }),
            MessageType::Truncate => Message::Truncate(Truncate {
                xid: self.stream_xid(in_stream),
                cascade: self.bool(),
                restart_identity: self.bool(),
                relations: (0..self.u8() % 20).map(|_| self.u32()).collect(),
            }),
            MessageType::Message => Message::Message(LogicalMessage {
                xid: self.stream_xid(in_stream),
                transactional: self.bool(),
                lsn: self.lsn(),
                prefix: self.string(),
                content: self.bytes(),
            }),
            MessageType::StreamStart => {
                Message::StreamStart(StreamStart { xid: self.u32(), first: self.bool() })
            }
            MessageType::StreamStop => Message::StreamStop(StreamStop),
            MessageType::StreamCommit => Message::StreamCommit(StreamCommit {
                xid: self.u32(),
                commit_lsn: self.lsn(),
                end_lsn: self.lsn(),
                commit_time: self.timestamp(),
            }),
            MessageType::StreamAbort => Message::StreamAbort(StreamAbort {
                xid: self.u32(),
                subxid: self.u32(),
                abort: parallel.then(|| (self.lsn(), self.timestamp())),
            }),
            MessageType::BeginPrepare => Message::BeginPrepare(BeginPrepare {
                prepare_lsn: self.lsn(),
                end_lsn: self.lsn(),
                prepare_time: self.timestamp(),
                xid: self.u32(),
                gid: self.string(),
            }),
            MessageType::Prepare => Message::Prepare(Prepare {
                prepare_lsn: self.lsn(),
                end_lsn: self.lsn(),
                prepare_time: self.timestamp(),
                xid: self.u32(),
                gid: self.string(),
            }),
            MessageType::CommitPrepared => Message::CommitPrepared(CommitPrepared {
                commit_lsn: self.lsn(),
                end_lsn: self.lsn(),
                commit_time: self.timestamp(),
                xid: self.u32(),
                gid: self.string(),
            }),
            MessageType::RollbackPrepared => Message::RollbackPrepared(RollbackPrepared {
                prepare_end_lsn: self.lsn(),
                rollback_end_lsn: self.lsn(),
                prepare_time: self.timestamp(),
                rollback_time: self.timestamp(),
                xid: self.u32(),
                gid: self.string(),
            }),
            MessageType::StreamPrepare => Message::StreamPrepare(StreamPrepare {
                prepare_lsn: self.lsn(),
                end_lsn: self.lsn(),
                prepare_time: self.timestamp(),
                xid: self.u32(),
                gid: self.string(),
            }),
        }
    }
}

/// Whether a message of the type can come with a protocol version, inside or outside of a stream block.
pub fn can_come(message_type: MessageType, protocol_version: u8, in_stream: bool) -> bool {
    let byte = message_type.byte();
    if in_stream {
        protocol_version >= 2 && b"ORYIUDTME".contains(&byte)
    } else {
        byte != b'E' && (protocol_version >= 2 || !b"ScA".contains(&byte))
    }
}

pub fn encode(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}
