//! What it takes to encode and decode each message, and rows of several widths.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgoutput_protocol::{
    Begin, BeginPrepare, Commit, CommitPrepared, Decoder, Delete, Insert, LogicalMessage, Lsn, Message,
    OldTuple, OldTupleKind, Options, Origin, Prepare, Relation, RelationColumn, ReplicaIdentity,
    RollbackPrepared, StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop, Timestamp, Truncate,
    TupleData, Type, Update, Value,
};

const LSN: Lsn = Lsn(0x16_B374_D848);
const END_LSN: Lsn = Lsn(0x16_B374_D880);
const TIME: Timestamp = Timestamp(768_294_489_123_456);
const XID: u32 = 742;
const RELATION: u32 = 16_385;
const GID: &[u8] = b"payment-2024-05-06-0815";

/// A row of two integers.
const INTEGERS: &[Value<'static>] = &[Value::Text(b"4711"), Value::Text(b"1234567890")];

/// A row of an ordinary table.
const MIXED: &[Value<'static>] = &[
    Value::Text(b"4711"),
    Value::Text(b"1234567890"),
    Value::Text(b"t"),
    Value::Text(b"Jane Doe"),
    Value::Text(b"jane.doe@example.com"),
    Value::Text(b"1234.50"),
    Value::Text(b"2024-05-06 07:08:09.123456+02"),
    Value::Text(b"0f8fad5b-d9cb-469f-a165-70867728950e"),
    Value::Null,
    Value::Text(b"A note of several words that somebody has left, and that is of an ordinary length."),
];

fn row(values: &[Value<'static>], columns: usize) -> TupleData<'static> {
    TupleData { columns: values.iter().copied().cycle().take(columns).collect() }
}

fn insert(values: &[Value<'static>], columns: usize) -> Message<'static> {
    Message::Insert(Insert { xid: None, relation: RELATION, new: row(values, columns) })
}

fn relation() -> Message<'static> {
    let column = |name, type_oid| RelationColumn { is_key: false, name, type_oid, type_modifier: -1 };
    Message::Relation(Relation {
        xid: None,
        oid: RELATION,
        namespace: b"public",
        name: b"customers",
        replica_identity: ReplicaIdentity::Default,
        columns: vec![
            RelationColumn { is_key: true, ..column(b"id", 23) },
            column(b"number", 20),
            column(b"active", 16),
            column(b"name", 25),
            column(b"email", 25),
            column(b"balance", 1700),
            column(b"created_at", 1184),
            column(b"token", 2950),
            column(b"parent", 23),
            column(b"note", 25),
        ],
    })
}

/// The messages by name, each with the row widths that matter to it.
fn messages() -> Vec<(&'static str, Message<'static>)> {
    let key = || OldTuple { kind: OldTupleKind::Key, tuple: row(&[Value::Text(b"4711"), Value::Null], 2) };
    let (commit_lsn, end_lsn, commit_time) = (LSN, END_LSN, TIME);
    let (prepare_lsn, prepare_time, xid, gid) = (LSN, TIME, XID, GID);
    vec![
        ("Begin", Message::Begin(Begin { final_lsn: LSN, commit_time, xid })),
        ("Commit", Message::Commit(Commit { commit_lsn, end_lsn, commit_time })),
        ("Origin", Message::Origin(Origin { commit_lsn, name: b"pg_16395" })),
        ("Relation, 10 columns", relation()),
        ("Type", Message::Type(Type { xid: None, oid: 16_400, namespace: b"public", name: b"mood" })),
        ("Insert, 2 integers", insert(INTEGERS, 2)),
        ("Insert, 10 mixed columns", insert(MIXED, 10)),
        ("Insert, 50 mixed columns", insert(MIXED, 50)),
        (
            "Update, 10 mixed columns",
            Message::Update(Update { xid: None, relation: RELATION, old: None, new: row(MIXED, 10) }),
        ),
        (
            "Update with key, 2 integers",
            Message::Update(Update {
                xid: None,
                relation: RELATION,
                old: Some(key()),
                new: row(INTEGERS, 2),
            }),
        ),
        ("Delete", Message::Delete(Delete { xid: None, relation: RELATION, old: key() })),
        (
            "Truncate, 3 relations",
            Message::Truncate(Truncate {
                xid: None,
                cascade: true,
                restart_identity: false,
                relations: vec![RELATION, RELATION + 5, RELATION + 10],
            }),
        ),
        (
            "Message",
            Message::Message(LogicalMessage {
                xid: None,
                transactional: true,
                lsn: LSN,
                prefix: b"outbox",
                content: br#"{"kind": "order", "id": 4711, "state": "paid"}"#,
            }),
        ),
        ("Stream Start", Message::StreamStart(StreamStart { xid, first: true })),
        ("Stream Stop", Message::StreamStop(StreamStop)),
        ("Stream Commit", Message::StreamCommit(StreamCommit { xid, commit_lsn, end_lsn, commit_time })),
        (
            "Stream Abort",
            Message::StreamAbort(StreamAbort { xid, subxid: xid + 1, abort: Some((LSN, TIME)) }),
        ),
        (
            "Begin Prepare",
            Message::BeginPrepare(BeginPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid }),
        ),
        ("Prepare", Message::Prepare(Prepare { prepare_lsn, end_lsn, prepare_time, xid, gid })),
        (
            "Commit Prepared",
            Message::CommitPrepared(CommitPrepared { commit_lsn, end_lsn, commit_time, xid, gid }),
        ),
        (
            "Rollback Prepared",
            Message::RollbackPrepared(RollbackPrepared {
                prepare_end_lsn: LSN,
                rollback_end_lsn: END_LSN,
                prepare_time,
                rollback_time: TIME,
                xid,
                gid,
            }),
        ),
        (
            "Stream Prepare",
            Message::StreamPrepare(StreamPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid }),
        ),
    ]
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for (name, message) in messages() {
        let mut buffer = encoded(&message);
        group.throughput(Throughput::Bytes(buffer.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                buffer.clear();
                black_box(&message).encode(&mut buffer);
                black_box(&buffer);
            });
        });
    }
    group.finish();
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for (name, message) in messages() {
        let bytes = encoded(&message);
        let mut decoder = Decoder::new(Options { protocol_version: 4, streaming_parallel: true });
        if matches!(message, Message::StreamStop(_)) {
            let start = Message::StreamStart(StreamStart { xid: XID, first: true });
            assert_eq!(decoder.decode(&encoded(&start)), Ok(start.clone()));
        }
        assert_eq!(decoder.clone().decode(&bytes).as_ref(), Ok(&message));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            // Each time the same decoder, for a message can change what may follow it.
            bencher.iter(|| decoder.clone().decode(black_box(&bytes)).is_ok());
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30)
        .nresamples(10_000);
    targets = encode, decode
}
criterion_main!(benches);
