//! Each message against its bytes, written by hand from the manual's "Logical Replication Message Formats", and
//! against the line that it is printed as.

use pgoutput_protocol::frame::{self, Keepalive, ServerFrame, StandbyStatusUpdate, XLogData};
use pgoutput_protocol::{
    Begin, BeginPrepare, Commit, CommitPrepared, DecodeError, DecodeErrorKind, Decoder, Delete, Insert,
    LogicalMessage, Lsn, Message, MessageType, OldTuple, OldTupleKind, Options, Origin, Prepare, Relation,
    RelationColumn, ReplicaIdentity, RollbackPrepared, StreamAbort, StreamCommit, StreamPrepare, StreamStart,
    StreamStop, Timestamp, Truncate, TupleData, Type, Update, Value,
};

/// 2024-05-06 07:08:09.123456 UTC.
const TIME: Timestamp = Timestamp(768_294_489_123_456);
const TIME_BYTES: [u8; 8] = [0x00, 0x02, 0xBA, 0xC2, 0x80, 0x1B, 0x6A, 0x80];

const STREAM_START: &[u8] = b"S\0\0\x02\xE6\x01";

fn decoder(protocol_version: u8) -> Decoder {
    Decoder::new(Options { protocol_version, streaming_parallel: false })
}

/// A decoder after Stream Start.
fn in_stream() -> Decoder {
    let mut decoder = decoder(4);
    assert!(decoder.decode(STREAM_START).is_ok());
    decoder
}

/// The message is what the bytes decode to, and encodes to them.
#[track_caller]
fn check_with(mut decoder: Decoder, message: Message<'_>, parts: &[&[u8]], line: &str) {
    let bytes = parts.concat();
    let mut encoded = b"before".to_vec();
    message.encode(&mut encoded);
    assert_eq!(encoded.strip_prefix(b"before"), Some(bytes.as_slice()));
    assert_eq!(decoder.decode(&bytes).as_ref(), Ok(&message));
    assert_eq!(message.to_string(), line);
    assert_eq!(bytes.first(), Some(&message.message_type().byte()));
}

#[track_caller]
fn check(message: Message<'_>, parts: &[&[u8]], line: &str) {
    check_with(decoder(1), message, parts, line);
}

#[track_caller]
fn check_error(mut decoder: Decoder, bytes: &[u8], line: &str) -> DecodeError {
    let in_stream = decoder.in_stream();
    let error = decoder.decode(bytes).expect_err("the bytes aren't a message");
    assert_eq!(error.to_string(), line);
    assert_eq!(decoder.in_stream(), in_stream);
    error
}

#[test]
fn begin() {
    check(
        Message::Begin(Begin { final_lsn: Lsn(0x0000_0016_B374_D848), commit_time: TIME, xid: 742 }),
        &[b"B", b"\0\0\0\x16\xB3\x74\xD8\x48", &TIME_BYTES, b"\0\0\x02\xE6"],
        "Begin xid 742, final LSN 16/B374D848, committed 2024-05-06 07:08:09.123456+00",
    );
}

#[test]
fn commit() {
    check(
        Message::Commit(Commit { commit_lsn: Lsn(0x150_2A10), end_lsn: Lsn(0x150_2A40), commit_time: TIME }),
        &[b"C", b"\0", b"\0\0\0\0\x01\x50\x2A\x10", b"\0\0\0\0\x01\x50\x2A\x40", &TIME_BYTES],
        "Commit LSN 0/1502A10, end LSN 0/1502A40, committed 2024-05-06 07:08:09.123456+00",
    );
}

#[test]
fn origin() {
    check(
        Message::Origin(Origin { commit_lsn: Lsn(0x1_0000_0002), name: b"pg_16395" }),
        &[b"O", b"\0\0\0\x01\0\0\0\x02", b"pg_16395\0"],
        "Origin 'pg_16395', commit LSN 1/2",
    );
}

#[test]
fn relation() {
    let columns = vec![
        RelationColumn { is_key: true, name: b"id", type_oid: 23, type_modifier: -1 },
        RelationColumn { is_key: false, name: b"Name \xE9", type_oid: 1043, type_modifier: 24 },
    ];
    let body: &[&[u8]] = &[
        b"\0\0\x40\0",
        b"public\0",
        b"t\0",
        b"d",
        b"\0\x02",
        b"\x01",
        b"id\0",
        b"\0\0\0\x17",
        b"\xFF\xFF\xFF\xFF",
        b"\0",
        b"Name \xE9\0",
        b"\0\0\x04\x13",
        b"\0\0\0\x18",
    ];
    let relation = Relation {
        xid: None,
        oid: 16384,
        namespace: b"public",
        name: b"t",
        replica_identity: ReplicaIdentity::Default,
        columns,
    };
    let fields = "16384 public.t, replica identity default, \
                  columns (id type 23 key, \"Name \\xe9\" type 1043 modifier 24)";
    check(Message::Relation(relation.clone()), &[b"R", &body.concat()], &format!("Relation {fields}"));
    check_with(
        in_stream(),
        Message::Relation(Relation { xid: Some(743), ..relation }),
        &[b"R", b"\0\0\x02\xE7", &body.concat()],
        &format!("Relation [xid 743] {fields}"),
    );
}

#[test]
fn relation_without_columns_in_pg_catalog() {
    for (replica_identity, byte, word) in [
        (ReplicaIdentity::Default, b"d", "default"),
        (ReplicaIdentity::Nothing, b"n", "nothing"),
        (ReplicaIdentity::Full, b"f", "full"),
        (ReplicaIdentity::Index, b"i", "index"),
    ] {
        check(
            Message::Relation(Relation {
                xid: None,
                oid: u32::MAX,
                namespace: b"",
                name: b"",
                replica_identity,
                columns: vec![],
            }),
            &[b"R", b"\xFF\xFF\xFF\xFF", b"\0", b"\0", byte, b"\0\0"],
            &format!("Relation 4294967295 pg_catalog.\"\", replica identity {word}, columns ()"),
        );
    }
}

#[test]
fn type_() {
    let message = Type { xid: None, oid: 16400, namespace: b"", name: b"int4" };
    check(Message::Type(message), &[b"Y", b"\0\0\x40\x10", b"\0", b"int4\0"], "Type 16400 pg_catalog.int4");
    check_with(
        in_stream(),
        Message::Type(Type { xid: Some(743), namespace: b"app", name: b"mood", ..message }),
        &[b"Y", b"\0\0\x02\xE7", b"\0\0\x40\x10", b"app\0", b"mood\0"],
        "Type [xid 743] 16400 app.mood",
    );
}

#[test]
fn insert() {
    let new = TupleData {
        columns: vec![
            Value::Null,
            Value::UnchangedToast,
            Value::Text(b"it's"),
            Value::Text(b""),
            Value::Binary(b"\x00\x0f"),
            Value::Binary(b""),
        ],
    };
    let tuple = b"\0\x06nut\0\0\0\x04it'st\0\0\0\0b\0\0\0\x02\x00\x0fb\0\0\0\0";
    let line = r"(null, unchanged toast, 'it\'s', '', 0x000f, 0x)";
    let insert = Insert { xid: None, relation: 16384, new };
    check(
        Message::Insert(insert.clone()),
        &[b"I", b"\0\0\x40\0", b"N", tuple],
        &format!("Insert into 16384 {line}"),
    );
    check_with(
        in_stream(),
        Message::Insert(Insert { xid: Some(743), ..insert }),
        &[b"I", b"\0\0\x02\xE7", b"\0\0\x40\0", b"N", tuple],
        &format!("Insert [xid 743] into 16384 {line}"),
    );
}

#[test]
fn update() {
    let key = TupleData { columns: vec![Value::Text(b"1"), Value::Null] };
    let new = TupleData { columns: vec![Value::Text(b"2"), Value::UnchangedToast] };
    let key_bytes = b"\0\x02t\0\0\0\x011n";
    let new_bytes = b"\0\x02t\0\0\0\x012u";
    let update = Update { xid: None, relation: 16384, old: None, new };
    check(
        Message::Update(update.clone()),
        &[b"U", b"\0\0\x40\0", b"N", new_bytes],
        "Update of 16384 ('2', unchanged toast)",
    );
    for (kind, byte, word) in [(OldTupleKind::Key, b"K", "key"), (OldTupleKind::Full, b"O", "old")] {
        let old = Some(OldTuple { kind, tuple: key.clone() });
        check(
            Message::Update(Update { old: old.clone(), ..update.clone() }),
            &[b"U", b"\0\0\x40\0", byte, key_bytes, b"N", new_bytes],
            &format!("Update of 16384 {word} ('1', null) to ('2', unchanged toast)"),
        );
        check_with(
            in_stream(),
            Message::Update(Update { xid: Some(743), old, ..update.clone() }),
            &[b"U", b"\0\0\x02\xE7", b"\0\0\x40\0", byte, key_bytes, b"N", new_bytes],
            &format!("Update [xid 743] of 16384 {word} ('1', null) to ('2', unchanged toast)"),
        );
    }
}

#[test]
fn delete() {
    let tuple = TupleData { columns: vec![Value::Text(b"1"), Value::Null] };
    for (kind, byte, word) in [(OldTupleKind::Key, b"K", "key"), (OldTupleKind::Full, b"O", "old")] {
        let delete = Delete { xid: None, relation: 16384, old: OldTuple { kind, tuple: tuple.clone() } };
        check(
            Message::Delete(delete.clone()),
            &[b"D", b"\0\0\x40\0", byte, b"\0\x02t\0\0\0\x011n"],
            &format!("Delete from 16384 {word} ('1', null)"),
        );
        check_with(
            in_stream(),
            Message::Delete(Delete { xid: Some(743), ..delete }),
            &[b"D", b"\0\0\x02\xE7", b"\0\0\x40\0", byte, b"\0\x02t\0\0\0\x011n"],
            &format!("Delete [xid 743] from 16384 {word} ('1', null)"),
        );
    }
}

#[test]
fn truncate() {
    for (cascade, restart_identity, byte, words) in [
        (false, false, b"\0", ""),
        (true, false, b"\x01", " cascade"),
        (false, true, b"\x02", " restart identity"),
        (true, true, b"\x03", " cascade restart identity"),
    ] {
        let truncate = Truncate { xid: None, cascade, restart_identity, relations: vec![16384, 16390] };
        check(
            Message::Truncate(truncate.clone()),
            &[b"T", b"\0\0\0\x02", byte, b"\0\0\x40\0", b"\0\0\x40\x06"],
            &format!("Truncate (16384, 16390){words}"),
        );
        check_with(
            in_stream(),
            Message::Truncate(Truncate { xid: Some(743), ..truncate }),
            &[b"T", b"\0\0\x02\xE7", b"\0\0\0\x02", byte, b"\0\0\x40\0", b"\0\0\x40\x06"],
            &format!("Truncate [xid 743] (16384, 16390){words}"),
        );
    }
}

#[test]
fn logical_message() {
    let message = LogicalMessage {
        xid: None,
        transactional: true,
        lsn: Lsn(0x150_2A10),
        prefix: b"audit",
        content: b"\0caf\xC3\xA9\xFF\n",
    };
    check(
        Message::Message(message),
        &[b"M", b"\x01", b"\0\0\0\0\x01\x50\x2A\x10", b"audit\0", b"\0\0\0\x08", b"\0caf\xC3\xA9\xFF\n"],
        r"Message transactional, LSN 0/1502A10, prefix 'audit', content '\u{0}café\xff\n'",
    );
    check_with(
        in_stream(),
        Message::Message(LogicalMessage {
            xid: Some(742),
            transactional: false,
            prefix: b"",
            content: b"",
            ..message
        }),
        &[b"M", b"\0\0\x02\xE6", b"\0", b"\0\0\0\0\x01\x50\x2A\x10", b"\0", b"\0\0\0\0"],
        "Message [xid 742] non-transactional, LSN 0/1502A10, prefix '', content ''",
    );
}

#[test]
fn stream_start_and_stop() {
    check_with(
        decoder(2),
        Message::StreamStart(StreamStart { xid: 742, first: true }),
        &[STREAM_START],
        "Stream Start xid 742, first segment",
    );
    check_with(
        decoder(2),
        Message::StreamStart(StreamStart { xid: 742, first: false }),
        &[b"S", b"\0\0\x02\xE6", b"\0"],
        "Stream Start xid 742",
    );
    check_with(in_stream(), Message::StreamStop(StreamStop), &[b"E"], "Stream Stop");
}

#[test]
fn stream_commit() {
    check_with(
        decoder(2),
        Message::StreamCommit(StreamCommit {
            xid: 742,
            commit_lsn: Lsn(0x150_2A10),
            end_lsn: Lsn(0x150_2A40),
            commit_time: TIME,
        }),
        &[
            b"c",
            b"\0\0\x02\xE6",
            b"\0",
            b"\0\0\0\0\x01\x50\x2A\x10",
            b"\0\0\0\0\x01\x50\x2A\x40",
            &TIME_BYTES,
        ],
        "Stream Commit xid 742, LSN 0/1502A10, end LSN 0/1502A40, committed 2024-05-06 07:08:09.123456+00",
    );
}

#[test]
fn stream_abort() {
    let abort = StreamAbort { xid: 742, subxid: 743, abort: None };
    check_with(
        decoder(2),
        Message::StreamAbort(abort),
        &[b"A", b"\0\0\x02\xE6", b"\0\0\x02\xE7"],
        "Stream Abort xid 742, subxid 743",
    );
    check_with(
        Decoder::new(Options { protocol_version: 4, streaming_parallel: true }),
        Message::StreamAbort(StreamAbort { abort: Some((Lsn(0x150_2A10), TIME)), ..abort }),
        &[b"A", b"\0\0\x02\xE6", b"\0\0\x02\xE7", b"\0\0\0\0\x01\x50\x2A\x10", &TIME_BYTES],
        "Stream Abort xid 742, subxid 743, LSN 0/1502A10, aborted 2024-05-06 07:08:09.123456+00",
    );
}

#[test]
fn prepared() {
    let lsns_and_time: &[&[u8]] = &[b"\0\0\0\0\x01\x50\x2A\x10", b"\0\0\0\0\x01\x50\x2A\x40", &TIME_BYTES];
    let body = [&lsns_and_time.concat(), b"\0\0\x02\xE6".as_slice(), b"transfer-1\0"].concat();
    let (prepare_lsn, end_lsn) = (Lsn(0x150_2A10), Lsn(0x150_2A40));
    let (prepare_time, xid, gid) = (TIME, 742, b"transfer-1");
    let fields = "xid 742, GID 'transfer-1', LSN 0/1502A10, end LSN 0/1502A40";
    let time = "2024-05-06 07:08:09.123456+00";
    check(
        Message::BeginPrepare(BeginPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid }),
        &[b"b", &body],
        &format!("Begin Prepare {fields}, prepared {time}"),
    );
    check(
        Message::Prepare(Prepare { prepare_lsn, end_lsn, prepare_time, xid, gid }),
        &[b"P", b"\0", &body],
        &format!("Prepare {fields}, prepared {time}"),
    );
    check(
        Message::StreamPrepare(StreamPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid }),
        &[b"p", b"\0", &body],
        &format!("Stream Prepare {fields}, prepared {time}"),
    );
    check(
        Message::CommitPrepared(CommitPrepared {
            commit_lsn: prepare_lsn,
            end_lsn,
            commit_time: TIME,
            xid,
            gid,
        }),
        &[b"K", b"\0", &body],
        &format!("Commit Prepared {fields}, committed {time}"),
    );
    check(
        Message::RollbackPrepared(RollbackPrepared {
            prepare_end_lsn: prepare_lsn,
            rollback_end_lsn: end_lsn,
            prepare_time,
            rollback_time: Timestamp(0),
            xid,
            gid,
        }),
        &[b"r", b"\0", &lsns_and_time.concat(), b"\0\0\0\0\0\0\0\0", b"\0\0\x02\xE6", b"transfer-1\0"],
        &format!(
            "Rollback Prepared xid 742, GID 'transfer-1', prepare end LSN 0/1502A10, rollback end LSN 0/1502A40, \
             prepared {time}, rolled back 2000-01-01 00:00:00+00"
        ),
    );
}

#[test]
fn every_byte_is_one_type_or_none() {
    let bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| MessageType::from_byte(*byte).is_some()).collect();
    assert_eq!(bytes, b"ABCDEIKMOPRSTUYbcpr");
    for message_type in MessageType::ALL {
        assert_eq!(MessageType::from_byte(message_type.byte()), Some(message_type));
    }
}

#[test]
fn long_values_are_cut() {
    let long = "ä".repeat(50);
    let cut = "ä".repeat(32);
    assert_eq!(Value::Text(long.as_bytes()).to_string(), format!("'{cut}'… (100 bytes)"));
    assert_eq!(format!("{:#}", Value::Text(long.as_bytes())), format!("'{long}'"));
    // Where byte 64 is in the middle of a character, that is left out.
    let shifted = format!("x{long}");
    let cut = "ä".repeat(31);
    assert_eq!(Value::Text(shifted.as_bytes()).to_string(), format!("'x{cut}'… (101 bytes)"));
    let binary = [0xAB; 65];
    assert_eq!(Value::Binary(&binary).to_string(), format!("0x{}… (65 bytes)", "ab".repeat(64)));
    assert_eq!(format!("{:#}", Value::Binary(&binary)), format!("0x{}", "ab".repeat(65)));
    assert_eq!(Value::Binary(&binary[1..]).to_string(), format!("0x{}", "ab".repeat(64)));
    // Not UTF-8 at all.
    let continuations = [0x80; 65];
    assert_eq!(Value::Text(&continuations).to_string(), format!("'{}'… (65 bytes)", "\\x80".repeat(64)));
    let insert = Message::Insert(Insert {
        xid: None,
        relation: 1,
        new: TupleData { columns: vec![Value::Binary(&binary)] },
    });
    assert_eq!(format!("{insert:#}"), format!("Insert into 1 (0x{})", "ab".repeat(65)));
}

#[test]
fn errors_name_the_message_the_field_and_the_offset() {
    let plain = || decoder(1);
    check_error(plain(), b"", "unknown message: message type at offset 0: takes 1 bytes but 0 remain");
    check_error(plain(), b"x", "unknown message: message type at offset 0: unrecognized value 0x78");
    check_error(
        plain(),
        b"B\0\0\0\0\0\0\0\0\0",
        "Begin message: commit time at offset 9: takes 8 bytes but 1 remain",
    );
    check_error(plain(), b"C\x01", "Commit message: flags at offset 1: unrecognized value 0x01");
    check_error(
        plain(),
        b"O\0\0\0\0\0\0\0\0name",
        "Origin message: origin name at offset 9: a string without a NUL at its end",
    );
    check_error(
        plain(),
        b"R\0\0\x40\0public\0t\0x\0\0",
        "Relation message: replica identity at offset 14: unrecognized value 0x78",
    );
    let error = check_error(
        plain(),
        b"R\0\0\x40\0public\0t\0d\x02\x01\x01id\0",
        "Relation message: column count at offset 15: 513 is more than the 4 bytes that remain can hold",
    );
    assert_eq!(
        error,
        DecodeError {
            message: "Relation",
            field: "column count",
            offset: 15,
            kind: DecodeErrorKind::TooMany { count: 513, remaining: 4 },
        }
    );
    check_error(
        plain(),
        b"R\0\0\x40\0public\0t\0d\0\x01\x02id\0\0\0\0\0\0\0\0\0",
        "Relation message: column flags at offset 17: unrecognized value 0x02",
    );
    check_error(plain(), b"I\0\0\x40\0O", "Insert message: tuple kind at offset 5: unrecognized value 0x4F");
    check_error(
        plain(),
        b"I\0\0\x40\0N\0\x02nx",
        "Insert message: value kind at offset 9: unrecognized value 0x78",
    );
    check_error(
        plain(),
        b"I\0\0\x40\0N\0\x01t\xFF\xFF\xFF\xFFabc",
        "Insert message: text value at offset 9: 4294967295 is more than the 3 bytes that remain can hold",
    );
    check_error(
        plain(),
        b"U\0\0\x40\0K\0\x01nO\0\x01n",
        "Update message: tuple kind at offset 9: unrecognized value 0x4F",
    );
    check_error(plain(), b"D\0\0\x40\0N", "Delete message: tuple kind at offset 5: unrecognized value 0x4E");
    check_error(
        plain(),
        b"T\0\0\0\x02\x04\0\0\x40\0",
        "Truncate message: options at offset 5: unrecognized value 0x04",
    );
    check_error(
        plain(),
        b"T\0\0\0\x02\0\0\0\x40\0",
        "Truncate message: relation count at offset 1: 2 is more than the 4 bytes that remain can hold",
    );
    check_error(plain(), b"M\x02", "Message message: flags at offset 1: unrecognized value 0x02");
    check_error(
        plain(),
        b"D\0\0\x40\0K\0\0zz",
        "Delete message: end at offset 8: 2 bytes after the last field",
    );
    check_error(
        in_stream(),
        b"I\0",
        "Insert message: transaction ID at offset 1: takes 4 bytes but 1 remain",
    );
}

#[test]
fn messages_of_a_newer_protocol_are_errors() {
    for (bytes, name) in [
        (STREAM_START, "Stream Start"),
        (b"E", "Stream Stop"),
        (b"c\0\0\x02\xE6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "Stream Commit"),
        (b"A\0\0\x02\xE6\0\0\x02\xE7", "Stream Abort"),
    ] {
        check_error(
            decoder(1),
            bytes,
            &format!(
                "{name} message: message type at offset 0: needs protocol version 2 but the version is 1"
            ),
        );
    }
    // Out of the range of versions: 0 is as 1, all above as 4.
    assert!(decoder(0).decode(STREAM_START).is_err());
    assert!(decoder(u8::MAX).decode(STREAM_START).is_ok());
}

#[test]
fn abort_lsn_and_time_need_parallel_streaming_and_protocol_4() {
    let short = b"A\0\0\x02\xE6\0\0\x02\xE7";
    let long = b"A\0\0\x02\xE6\0\0\x02\xE7\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02";
    for protocol_version in 2..=4 {
        for streaming_parallel in [false, true] {
            let mut decoder = Decoder::new(Options { protocol_version, streaming_parallel });
            let is_long = protocol_version == 4 && streaming_parallel;
            assert_eq!(decoder.decode(long).is_ok(), is_long);
            assert_eq!(decoder.decode(short).is_ok(), !is_long);
        }
    }
}

#[test]
fn stream_state_follows_start_and_stop() {
    let mut decoder = decoder(2);
    let stray = decoder.decode(b"E").map_err(|error| error.kind);
    assert_eq!(stray, Err(DecodeErrorKind::NotInStream));
    // A Stream Start that is cut short doesn't begin a block.
    assert!(decoder.decode(b"S\0\0\x02\xE6").is_err());
    assert!(!decoder.in_stream());
    assert!(decoder.decode(STREAM_START).is_ok());
    assert!(decoder.in_stream());
    let nested = decoder.decode(STREAM_START).map_err(|error| error.kind);
    assert_eq!(nested, Err(DecodeErrorKind::InStream));
    for message_type in MessageType::ALL {
        let allowed = b"ORYIUDTME".contains(&message_type.byte());
        let kind = decoder.clone().decode(&[message_type.byte()]).map_err(|error| error.kind).err();
        assert_eq!(kind != Some(DecodeErrorKind::InStream), allowed, "{}", message_type.name());
    }
    // Nor does a Stream Stop with something after it end one.
    assert!(decoder.decode(b"E\0").is_err());
    assert!(decoder.in_stream());
    assert!(decoder.decode(b"E").is_ok());
    assert!(!decoder.in_stream());
}

#[test]
fn frames() {
    let data = XLogData { start: Lsn(1), end: Lsn(2), send_time: TIME, payload: b"E" };
    let bytes = [b"w\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02".as_slice(), &TIME_BYTES, b"E"].concat();
    check_frame(
        ServerFrame::XLogData(data),
        &bytes,
        "XLogData start LSN 0/1, end LSN 0/2, sent 2024-05-06 07:08:09.123456+00, 1 bytes",
    );
    assert_eq!(bytes.get(frame::SEND_TIME_OFFSET..frame::PAYLOAD_OFFSET), Some(TIME_BYTES.as_slice()));
    assert_eq!(bytes.get(frame::PAYLOAD_OFFSET..), Some(b"E".as_slice()));

    let keepalive = Keepalive { end: Lsn(3), send_time: TIME, reply_requested: true };
    check_frame(
        ServerFrame::Keepalive(keepalive),
        &[b"k\0\0\0\0\0\0\0\x03".as_slice(), &TIME_BYTES, b"\x01"].concat(),
        "Primary keepalive end LSN 0/3, sent 2024-05-06 07:08:09.123456+00, reply requested",
    );

    let update = StandbyStatusUpdate {
        written: Lsn(1),
        flushed: Lsn(2),
        applied: Lsn(3),
        send_time: TIME,
        reply_requested: false,
    };
    let bytes =
        [b"r\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03".as_slice(), &TIME_BYTES, b"\0"].concat();
    let mut encoded = Vec::new();
    update.encode(&mut encoded);
    assert_eq!(encoded, bytes);
    assert_eq!(StandbyStatusUpdate::decode(&bytes), Ok(update));

    for (bytes, line) in [
        (b"z".as_slice(), "unknown message: frame type at offset 0: unrecognized value 0x7A"),
        (b"w\0", "XLogData message: start LSN at offset 1: takes 8 bytes but 1 remain"),
        (
            b"k\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02",
            "Primary keepalive message: reply requested at offset 17: unrecognized value 0x02",
        ),
    ] {
        assert_eq!(ServerFrame::decode(bytes).map_err(|error| error.to_string()), Err(line.into()));
    }
    assert_eq!(
        StandbyStatusUpdate::decode(b"r").map_err(|error| error.to_string()),
        Err("Standby status update message: written LSN at offset 1: takes 8 bytes but 0 remain".into())
    );
}

#[track_caller]
fn check_frame(frame: ServerFrame<'_>, bytes: &[u8], line: &str) {
    let mut encoded = Vec::new();
    frame.encode(&mut encoded);
    assert_eq!(encoded, bytes);
    assert_eq!(ServerFrame::decode(bytes), Ok(frame));
    assert_eq!(frame.to_string(), line);
}
