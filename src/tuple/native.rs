//! Values of common types, put out without the server's functions.
//!
//! The text and the binary form are those of the types' output and send functions; where a setting or a value makes
//! the text something else than what is known here, the function is asked after all.

use pgoutput_format as format;
use pgoutput_format::{Numeric, Text};
use pgoutput_protocol::{Buffer, row};
use pgrx::pg_sys;
use pgrx::pg_sys::{Datum, Oid};

use crate::server::format_settings::{self, FormatSettings, TimeZoneOffset};
use crate::server::string_info::StringInfoBuffer;
use crate::server::varlena;

/// A type whose values can be put out here, known by its output or send function: so a domain is its base type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeType {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    /// text, varchar, char(n) and json: all are their bytes.
    Text,
    Bytea,
    Uuid,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Numeric,
}

impl NativeType {
    /// The type that an output function is for.
    pub fn of_output_function(function: Oid) -> Option<Self> {
        Some(match function.to_u32() {
            pg_sys::F_BOOLOUT => NativeType::Bool,
            pg_sys::F_INT2OUT => NativeType::Int2,
            pg_sys::F_INT4OUT => NativeType::Int4,
            pg_sys::F_INT8OUT => NativeType::Int8,
            pg_sys::F_OIDOUT => NativeType::Oid,
            pg_sys::F_FLOAT4OUT => NativeType::Float4,
            pg_sys::F_FLOAT8OUT => NativeType::Float8,
            pg_sys::F_TEXTOUT | pg_sys::F_VARCHAROUT | pg_sys::F_BPCHAROUT | pg_sys::F_JSON_OUT => {
                NativeType::Text
            }
            pg_sys::F_BYTEAOUT => NativeType::Bytea,
            pg_sys::F_UUID_OUT => NativeType::Uuid,
            pg_sys::F_DATE_OUT => NativeType::Date,
            pg_sys::F_TIME_OUT => NativeType::Time,
            pg_sys::F_TIMESTAMP_OUT => NativeType::Timestamp,
            pg_sys::F_TIMESTAMPTZ_OUT => NativeType::TimestampTz,
            pg_sys::F_NUMERIC_OUT => NativeType::Numeric,
            _ => return None,
        })
    }

    /// The type that a send function is for.
    pub fn of_send_function(function: Oid) -> Option<Self> {
        Some(match function.to_u32() {
            pg_sys::F_BOOLSEND => NativeType::Bool,
            pg_sys::F_INT2SEND => NativeType::Int2,
            pg_sys::F_INT4SEND => NativeType::Int4,
            pg_sys::F_INT8SEND => NativeType::Int8,
            pg_sys::F_OIDSEND => NativeType::Oid,
            pg_sys::F_FLOAT4SEND => NativeType::Float4,
            pg_sys::F_FLOAT8SEND => NativeType::Float8,
            pg_sys::F_TEXTSEND | pg_sys::F_VARCHARSEND | pg_sys::F_BPCHARSEND | pg_sys::F_JSON_SEND => {
                NativeType::Text
            }
            pg_sys::F_BYTEASEND => NativeType::Bytea,
            pg_sys::F_UUID_SEND => NativeType::Uuid,
            pg_sys::F_DATE_SEND => NativeType::Date,
            pg_sys::F_TIME_SEND => NativeType::Time,
            pg_sys::F_TIMESTAMP_SEND => NativeType::Timestamp,
            pg_sys::F_TIMESTAMPTZ_SEND => NativeType::TimestampTz,
            pg_sys::F_NUMERIC_SEND => NativeType::Numeric,
            _ => return None,
        })
    }
}

/// Puts values out.
#[derive(Debug, Default)]
pub struct Formatter {
    text: Text,
    offset: TimeZoneOffset,
}

/// Timestamps that the server's functions take, infinity aside.
const TIMESTAMPS: core::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

fn is_timestamp(microseconds: i64) -> bool {
    TIMESTAMPS.contains(&microseconds) || microseconds == i64::MIN || microseconds == i64::MAX
}

fn float4_of(value: Datum) -> f32 {
    f32::from_bits(value.value() as u32)
}

fn float8_of(value: Datum) -> f64 {
    f64::from_bits(value.value() as u64)
}

/// # Safety
/// `value` must be a uuid.
unsafe fn uuid_of<'a>(value: Datum) -> &'a [u8; 16] {
    // SAFETY: the caller's contract: a uuid is passed by reference, and is 16 bytes.
    unsafe { &*value.cast_mut_ptr::<[u8; 16]>() }
}

impl Formatter {
    /// Writes a value in its text form. Returns `false`, with nothing written, if the output function must be
    /// asked.
    ///
    /// # Safety
    /// `value` must be a value of the type.
    #[inline]
    pub unsafe fn write_text(
        &mut self,
        buffer: &mut StringInfoBuffer<'_>,
        native: NativeType,
        value: Datum,
        settings: FormatSettings,
    ) -> bool {
        let text = &mut self.text;
        text.clear();
        match native {
            NativeType::Bool => {
                row::text(buffer, if value.value() & 0xff != 0 { b"t" } else { b"f" });
                return true;
            }
            NativeType::Int2 => format::integer(text, value.value() as i16),
            NativeType::Int4 => format::integer(text, value.value() as i32),
            NativeType::Int8 => format::integer(text, value.value() as i64),
            NativeType::Oid => format::integer(text, value.value() as u32),
            NativeType::Float4 => {
                if !settings.shortest_floats {
                    return false;
                }
                let value = float4_of(value);
                if !format::float4(text, value) {
                    let mut shortest = [0; format_settings::FLOAT4_CAPACITY];
                    row::text(buffer, format_settings::float4(value, &mut shortest));
                    return true;
                }
            }
            NativeType::Float8 => {
                if !settings.shortest_floats {
                    return false;
                }
                let value = float8_of(value);
                if !format::float8(text, value) {
                    let mut shortest = [0; format_settings::FLOAT8_CAPACITY];
                    row::text(buffer, format_settings::float8(value, &mut shortest));
                    return true;
                }
            }
            NativeType::Text => {
                if settings.encoding.converts() {
                    return false;
                }
                // SAFETY: the caller's contract: a text is a varlena.
                unsafe { varlena::with_content(value, |content| row::text(buffer, content)) };
                return true;
            }
            NativeType::Bytea => {
                if !settings.hex_bytea {
                    return false;
                }
                // SAFETY: the caller's contract: a bytea is a varlena.
                unsafe { varlena::with_content(value, |content| write_hex(buffer, content)) };
                return true;
            }
            // SAFETY: the caller's contract.
            NativeType::Uuid => format::uuid(text, unsafe { uuid_of(value) }),
            NativeType::Date => {
                if !settings.iso_dates {
                    return false;
                }
                format::date(text, value.value() as i32);
            }
            NativeType::Time => format::time(text, value.value() as i64),
            NativeType::Timestamp => {
                let microseconds = value.value() as i64;
                if !settings.iso_dates || !is_timestamp(microseconds) {
                    return false;
                }
                format::timestamp(text, microseconds, None);
            }
            NativeType::TimestampTz => {
                let microseconds = value.value() as i64;
                if !settings.iso_dates || !is_timestamp(microseconds) {
                    return false;
                }
                let Some(offset) = self.offset.at(microseconds) else { return false };
                format::timestamp(text, microseconds, Some(offset));
            }
            NativeType::Numeric => {
                // SAFETY: the caller's contract: a numeric is a varlena.
                let written = unsafe {
                    varlena::with_content(value, |stored| {
                        Numeric::read(stored).is_some_and(|value| format::numeric(text, value))
                    })
                };
                if !written {
                    return false;
                }
            }
        }
        row::text(buffer, text.as_bytes());
        true
    }

    /// Writes a value in its binary form. Returns `false`, with nothing written, if the send function must be asked.
    ///
    /// # Safety
    /// `value` must be a value of the type.
    #[inline]
    pub unsafe fn write_binary(
        &mut self,
        buffer: &mut StringInfoBuffer<'_>,
        native: NativeType,
        value: Datum,
        settings: FormatSettings,
    ) -> bool {
        let word = value.value();
        match native {
            NativeType::Bool => row::binary(buffer, &[u8::from(word & 0xff != 0)]),
            NativeType::Int2 => row::binary(buffer, &(word as i16).to_be_bytes()),
            NativeType::Int4 | NativeType::Oid | NativeType::Date | NativeType::Float4 => {
                row::binary(buffer, &(word as u32).to_be_bytes());
            }
            NativeType::Int8
            | NativeType::Float8
            | NativeType::Time
            | NativeType::Timestamp
            | NativeType::TimestampTz => row::binary(buffer, &(word as u64).to_be_bytes()),
            NativeType::Text => {
                if settings.encoding.converts() {
                    return false;
                }
                // SAFETY: the caller's contract: a text is a varlena.
                unsafe { varlena::with_content(value, |content| row::binary(buffer, content)) };
            }
            NativeType::Bytea => {
                // SAFETY: the caller's contract: a bytea is a varlena.
                unsafe { varlena::with_content(value, |content| row::binary(buffer, content)) };
            }
            // SAFETY: the caller's contract.
            NativeType::Uuid => row::binary(buffer, unsafe { uuid_of(value) }),
            NativeType::Numeric => {
                // SAFETY: the caller's contract: a numeric is a varlena.
                return unsafe { varlena::with_content(value, |stored| write_numeric(buffer, stored)) };
            }
        }
        true
    }
}

/// Writes a bytea in hex.
fn write_hex(buffer: &mut StringInfoBuffer<'_>, content: &[u8]) {
    const CHUNK: usize = 128;
    let start = row::begin_text(buffer);
    buffer.put(b"\\x");
    for chunk in content.chunks(CHUNK) {
        let mut digits = [0; 2 * CHUNK];
        for (byte, digits) in chunk.iter().zip(digits.chunks_exact_mut(2)) {
            digits.copy_from_slice(format::hex(*byte));
        }
        buffer.put(&digits[..2 * chunk.len()]);
    }
    row::end_value(buffer, start);
}

/// Writes a finite numeric as `numeric_send` does: the number of its digits, weight, sign, scale and the digits.
fn write_numeric(buffer: &mut StringInfoBuffer<'_>, stored: &[u8]) -> bool {
    const NEGATIVE: u16 = 0x4000;
    let Some(Numeric::Finite { negative, weight, display_scale, digits }) = Numeric::read(stored) else {
        return false;
    };
    let start = row::begin_binary(buffer);
    buffer.put_u16((digits.len() / 2) as u16);
    buffer.put_i16(weight);
    buffer.put_u16(if negative { NEGATIVE } else { 0 });
    buffer.put_u16(display_scale);
    for digit in digits.chunks_exact(2) {
        buffer.put_u16(u16::from_ne_bytes([digit[0], digit[1]]));
    }
    row::end_value(buffer, start);
    true
}
