//! Every message goes round: what is encoded decodes to the same message.

mod common;

use common::{Source, can_come, encode};
use pgoutput_protocol::{
    Decoder, Message, MessageType, OldTupleKind, Options, RelationColumn, Value, relation_column,
    relation_header, row,
};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    /// Each type of message, with each protocol version, inside and outside of a stream block.
    #[test]
    fn each_message(bytes in vec(any::<u8>(), 0..600)) {
        for message_type in MessageType::ALL {
            for protocol_version in 1..=4 {
                for (in_stream, streaming_parallel) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    if !can_come(message_type, protocol_version, in_stream) {
                        continue;
                    }
                    let parallel = streaming_parallel && protocol_version == 4;
                    let message = Source::new(&bytes).message(message_type, in_stream, parallel);
                    let mut decoder = Decoder::new(Options { protocol_version, streaming_parallel });
                    if in_stream {
                        prop_assert!(decoder.decode(b"S\0\0\0\x01\x01").is_ok());
                    }
                    let encoded = encode(&message);
                    prop_assert_eq!(decoder.decode(&encoded), Ok(message));
                }
            }
        }
    }

    /// A long stream of messages, in whatever order the protocol allows.
    #[test]
    fn many_messages(
        bytes in vec(any::<u8>(), 0..4000),
        types in vec(0..MessageType::ALL.len(), 0..100),
        protocol_version in 1..=4u8,
        streaming_parallel: bool,
    ) {
        let mut source = Source::new(&bytes);
        let mut decoder = Decoder::new(Options { protocol_version, streaming_parallel });
        let parallel = streaming_parallel && protocol_version == 4;
        let mut in_stream = false;
        for message_type in types.into_iter().map(|index| MessageType::ALL[index]) {
            let message = source.message(message_type, in_stream, parallel);
            let encoded = encode(&message);
            let decoded = decoder.decode(&encoded);
            if can_come(message_type, protocol_version, in_stream) {
                prop_assert_eq!(decoded, Ok(message));
                match message_type {
                    MessageType::StreamStart => in_stream = true,
                    MessageType::StreamStop => in_stream = false,
                    _ => {}
                }
            } else {
                prop_assert!(decoded.is_err());
            }
            prop_assert_eq!(decoder.in_stream(), in_stream);
        }
    }

    /// Rows written piece by piece are those of the message types.
    #[test]
    fn row_pieces(bytes in vec(any::<u8>(), 0..600), in_stream: bool, length_first: bool) {
        for message_type in [MessageType::Insert, MessageType::Update, MessageType::Delete] {
            let message = Source::new(&bytes).message(message_type, in_stream, false);
            let mut pieces = b"before".to_vec();
            match &message {
                Message::Insert(insert) => {
                    row::begin_insert(&mut pieces, insert.xid, insert.relation);
                    tuple_pieces(&mut pieces, &insert.new.columns, length_first);
                }
                Message::Update(update) => {
                    row::begin_update(&mut pieces, update.xid, update.relation);
                    if let Some(old) = &update.old {
                        row::old_tuple(&mut pieces, old.kind);
                        tuple_pieces(&mut pieces, &old.tuple.columns, length_first);
                    }
                    row::new_tuple(&mut pieces);
                    tuple_pieces(&mut pieces, &update.new.columns, length_first);
                }
                Message::Delete(delete) => {
                    let kind: OldTupleKind = delete.old.kind;
                    row::begin_delete(&mut pieces, delete.xid, delete.relation, kind);
                    tuple_pieces(&mut pieces, &delete.old.tuple.columns, length_first);
                }
                _ => {}
            }
            let encoded = encode(&message);
            prop_assert_eq!(pieces.strip_prefix(b"before"), Some(encoded.as_slice()));
        }
    }

    /// A Relation written piece by piece is that of the message type.
    #[test]
    fn relation_pieces(bytes in vec(any::<u8>(), 0..600), in_stream: bool) {
        let message = Source::new(&bytes).message(MessageType::Relation, in_stream, false);
        let mut pieces = Vec::new();
        if let Message::Relation(relation) = &message {
            let replica_identity = relation.replica_identity.byte();
            let ncolumns = relation.columns.len() as u16;
            relation_header(
                &mut pieces,
                relation.xid,
                relation.oid,
                relation.namespace,
                relation.name,
                replica_identity,
                ncolumns,
            );
            for RelationColumn { is_key, name, type_oid, type_modifier } in &relation.columns {
                relation_column(&mut pieces, *is_key, name, *type_oid, *type_modifier);
            }
        }
        prop_assert_eq!(pieces, encode(&message));
    }
}

/// Writes a tuple's values, each with its length first or with the length filled in afterwards.
fn tuple_pieces(buffer: &mut Vec<u8>, values: &[Value<'_>], length_first: bool) {
    row::tuple_columns(buffer, values.len() as u16);
    for value in values {
        match value {
            Value::Null => row::null(buffer),
            Value::UnchangedToast => row::unchanged_toast(buffer),
            Value::Text(value) if length_first => row::text(buffer, value),
            Value::Binary(value) if length_first => row::binary(buffer, value),
            Value::Text(value) => {
                let start = row::begin_text(buffer);
                buffer.extend_from_slice(value);
                row::end_value(buffer, start);
            }
            Value::Binary(value) => {
                let start = row::begin_binary(buffer);
                buffer.extend_from_slice(value);
                row::end_value(buffer, start);
            }
        }
    }
}
