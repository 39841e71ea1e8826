//! The logical replication messages of PostgreSQL, encoded and decoded.
//!
//! This is the format that the output plugin `pgoutput` sends to subscribers, protocol versions 1 to 4, as the
//! pages "Logical Streaming Replication Protocol" and "Logical Replication Message Formats" of the PostgreSQL
//! manual describe it. The crate knows bytes and nothing of a server: it does no I/O, has no dependencies and no
//! unsafe code.
//!
//! A client decodes what a walsender sends:
//!
//! ```
//! use pgoutput_protocol::frame::ServerFrame;
//! use pgoutput_protocol::{Decoder, Message, Options, Value};
//!
//! let mut decoder = Decoder::new(Options { protocol_version: 1, streaming_parallel: false });
//!
//! let copy_data = b"w\0\0\0\0\x01\x50\x2A\x10\0\0\0\0\x01\x50\x2A\x10\0\x02\xEA\x0C\x3D\x14\x07\x80\
//!                   I\0\0\x40\x01N\0\x02t\0\0\0\x0242n";
//! if let ServerFrame::XLogData(data) = ServerFrame::decode(copy_data)? {
//!     match decoder.decode(data.payload)? {
//!         Message::Insert(insert) => {
//!             assert_eq!(insert.relation, 16385);
//!             assert_eq!(insert.new.columns, [Value::Text(b"42"), Value::Null]);
//!         }
//!         message => println!("{message}"),
//!     }
//! }
//! # Ok::<(), pgoutput_protocol::DecodeError>(())
//! ```
//!
//! A publisher encodes message types into a [`Buffer`]; rows can be written piece by piece without building a
//! message first, with the functions of [`row`].

#![forbid(unsafe_code)]

mod buffer;
mod change;
mod decoder;
mod display;
mod error;
pub mod frame;
mod message;
mod prepared;
mod reader;
mod relation;
pub mod row;
mod stream;
mod transaction;
mod tuple;
mod types;

pub use buffer::Buffer;
pub use change::{Delete, Insert, LogicalMessage, Truncate, Update, truncate};
pub use decoder::{Decoder, Options};
pub use error::{DecodeError, DecodeErrorKind};
pub use message::{Message, MessageType};
pub use prepared::{BeginPrepare, CommitPrepared, Prepare, RollbackPrepared, StreamPrepare};
pub use relation::{Relation, RelationColumn, ReplicaIdentity, Type, relation_column, relation_header};
pub use row::OldTupleKind;
pub use stream::{StreamAbort, StreamCommit, StreamStart, StreamStop};
pub use transaction::{Begin, Commit, Origin};
pub use tuple::{OldTuple, TupleData, Value};
pub use types::{Lsn, Oid, ParseLsnError, Timestamp, Xid};
