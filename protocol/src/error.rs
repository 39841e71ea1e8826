//! Why bytes could not be decoded.

use std::error::Error;
use std::fmt;

/// Bytes that aren't a message, or not one that may come at this point.
///
/// Printed as `Relation message: column count at offset 17: …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The message's name in the PostgreSQL manual, or `unknown` when the first byte doesn't tell.
    pub message: &'static str,
    /// The field that could not be read.
    pub field: &'static str,
    /// Where the field begins, in bytes from the beginning of the message (its type byte is at 0).
    pub offset: usize,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The message ends before the field does.
    TooShort {
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that remain of the message.
        remaining: usize,
    },
    /// A String without the NUL at its end.
    Unterminated,
    /// A count or length of more than the rest of the message can hold.
    TooMany {
        /// The count or length that was read.
        count: u32,
        /// Bytes that remain of the message.
        remaining: usize,
    },
    /// A byte, or flags, that the protocol has no meaning for.
    Unrecognized(u8),
    /// The message goes on after its last field.
    Trailing {
        /// Bytes after the last field.
        remaining: usize,
    },
    /// The message is of a newer protocol version than the one agreed on.
    NewerProtocol {
        /// The version that brought the message.
        since: u8,
        /// The version that was agreed on.
        agreed: u8,
    },
    /// The message can't come between Stream Start and Stream Stop.
    InStream,
    /// The message can't come outside of Stream Start and Stream Stop.
    NotInStream,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} message: {} at offset {}: {}", self.message, self.field, self.offset, self.kind)
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { needed, remaining } => {
                write!(f, "takes {needed} bytes but {remaining} remain")
            }
            Self::Unterminated => f.write_str("a string without a NUL at its end"),
            Self::TooMany { count, remaining } => {
                write!(f, "{count} is more than the {remaining} bytes that remain can hold")
            }
            Self::Unrecognized(byte) => write!(f, "unrecognized value 0x{byte:02X}"),
            Self::Trailing { remaining } => write!(f, "{remaining} bytes after the last field"),
            Self::NewerProtocol { since, agreed } => {
                write!(f, "needs protocol version {since} but the version is {agreed}")
            }
            Self::InStream => f.write_str("not allowed between Stream Start and Stream Stop"),
            Self::NotInStream => f.write_str("allowed only between Stream Start and Stream Stop"),
        }
    }
}

impl Error for DecodeError {}
