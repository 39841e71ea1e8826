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
use crate::server::memory::MAXIMUM_ALLOCATION;
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
    Jsonb,
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
            pg_sys::F_JSONB_OUT => NativeType::Jsonb,
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
            pg_sys::F_JSONB_SEND => NativeType::Jsonb,
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

/// What the binary form of a jsonb begins with.
const JSONB_VERSION: u8 = 1;

#[derive(Debug)]
struct Scratch([u8; format::CAPACITY]);

impl Default for Scratch {
    fn default() -> Self {
        Scratch([0; format::CAPACITY])
    }
}

/// Puts values out.
#[derive(Debug, Default)]
pub struct Formatter {
    /// For a text that the buffer at hand has no room for.
    scratch: Scratch,
    offset: TimeZoneOffset,
}

/// Timestamps that the server's functions take, infinity aside.
const TIMESTAMPS: core::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// Dates that the server's functions take, infinity aside.
const DATES: core::ops::Range<i32> = -2_451_545..2_145_031_949;

fn is_date(days: i32) -> bool {
    DATES.contains(&days) || days == i32::MIN || days == i32::MAX
}

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
        match native {
            NativeType::Bool => {
                row::text(buffer, if value.value() & 0xff != 0 { b"t" } else { b"f" });
                true
            }
            NativeType::Int2 => self.put_together(buffer, |text| format::integer(text, value.value() as i16)),
            NativeType::Int4 => self.put_together(buffer, |text| format::integer(text, value.value() as i32)),
            NativeType::Int8 => self.put_together(buffer, |text| format::integer(text, value.value() as i64)),
            NativeType::Oid => self.put_together(buffer, |text| format::integer(text, value.value() as u32)),
            NativeType::Float4 => {
                if !settings.shortest_floats {
                    return false;
                }
                let value = float4_of(value);
                if !self.try_put_together(buffer, |text| format::float4(text, value)) {
                    let mut shortest = [0; format_settings::FLOAT4_CAPACITY];
                    row::text(buffer, format_settings::float4(value, &mut shortest));
                }
                true
            }
            NativeType::Float8 => {
                if !settings.shortest_floats {
                    return false;
                }
                let value = float8_of(value);
                if !self.try_put_together(buffer, |text| format::float8(text, value)) {
                    let mut shortest = [0; format_settings::FLOAT8_CAPACITY];
                    row::text(buffer, format_settings::float8(value, &mut shortest));
                }
                true
            }
            NativeType::Text => {
                if settings.encoding.converts() {
                    return false;
                }
                // SAFETY: the caller's contract: a text is a varlena.
                unsafe { varlena::with_content(value, |content| row::text(buffer, content)) };
                true
            }
            NativeType::Bytea => {
                if !settings.hex_bytea {
                    return false;
                }
                // SAFETY: the caller's contract: a bytea is a varlena.
                unsafe { varlena::with_content(value, |content| write_hex(buffer, content)) }
            }
            NativeType::Jsonb => {
                if settings.encoding.converts() {
                    return false;
                }
                // SAFETY: the caller's contract: a jsonb is a varlena.
                unsafe {
                    varlena::with_content(value, |stored| write_jsonb(buffer, row::begin_text, &[], stored))
                }
            }
            NativeType::Uuid => {
                // SAFETY: the caller's contract.
                let value = unsafe { uuid_of(value) };
                self.put_together(buffer, |text| format::uuid(text, value))
            }
            NativeType::Date => {
                let days = value.value() as i32;
                settings.iso_dates
                    && is_date(days)
                    && self.put_together(buffer, |text| format::date(text, days))
            }
            NativeType::Time => self.put_together(buffer, |text| format::time(text, value.value() as i64)),
            NativeType::Timestamp => {
                let microseconds = value.value() as i64;
                settings.iso_dates
                    && is_timestamp(microseconds)
                    && self.put_together(buffer, |text| format::timestamp(text, microseconds, None))
            }
            NativeType::TimestampTz => {
                let microseconds = value.value() as i64;
                if !settings.iso_dates || !is_timestamp(microseconds) {
                    return false;
                }
                let Some(offset) = self.offset.at(microseconds) else { return false };
                self.put_together(buffer, |text| format::timestamp(text, microseconds, Some(offset)))
            }
            // SAFETY: the caller's contract: a numeric is a varlena.
            NativeType::Numeric => unsafe {
                varlena::with_content(value, |stored| {
                    self.try_put_together(buffer, |text| {
                        Numeric::read(stored).is_some_and(|value| format::numeric(text, value))
                    })
                })
            },
        }
    }

    /// Writes a value's text that `put` puts together, as [`try_put_together`](Self::try_put_together) does, and always.
    #[inline]
    fn put_together(&mut self, buffer: &mut StringInfoBuffer<'_>, put: impl FnOnce(&mut Text)) -> bool {
        self.try_put_together(buffer, |text| {
            put(text);
            true
        })
    }

    /// Writes a value's text that `put` puts together, where it is to be if the buffer has room for it. Returns what
    /// `put` returns; if that is `false`, nothing is written.
    #[inline]
    fn try_put_together(
        &mut self,
        buffer: &mut StringInfoBuffer<'_>,
        put: impl FnOnce(&mut Text) -> bool,
    ) -> bool {
        let spare = buffer.spare(row::VALUE_HEADER);
        let in_place = spare.is_some();
        let text = &mut Text::new(spare.unwrap_or(&mut self.scratch.0));
        if !put(text) {
            return false;
        }
        let length = text.length();
        if in_place {
            // SAFETY: the text was put together in `spare`, and nothing has been put meanwhile.
            unsafe { buffer.take_in(row::text_header(length), length) };
        } else {
            row::text(buffer, &self.scratch.0[..length]);
        }
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
            NativeType::Jsonb => {
                if settings.encoding.converts() {
                    return false;
                }
                // SAFETY: the caller's contract: a jsonb is a varlena.
                return unsafe {
                    varlena::with_content(value, |stored| {
                        write_jsonb(buffer, row::begin_binary, &[JSONB_VERSION], stored)
                    })
                };
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

/// Writes a bytea in hex. One that is too long for that is left to `byteaout`, for its error.
fn write_hex(buffer: &mut StringInfoBuffer<'_>, content: &[u8]) -> bool {
    const CHUNK: usize = 128;
    /// With a prefix of two and a final NUL, what the server can allocate.
    const LONGEST: usize = (MAXIMUM_ALLOCATION - 3) / 2;
    if content.len() > LONGEST {
        return false;
    }
    let start = row::begin_text(buffer);
    buffer.reserve(2 + 2 * content.len());
    buffer.put(b"\\x");
    let mut digits = [0; 2 * CHUNK];
    for chunk in content.chunks(CHUNK) {
        format::hex(chunk, &mut digits);
        buffer.put(&digits[..2 * chunk.len()]);
    }
    row::end_value(buffer, start);
    true
}

/// Writes a jsonb as a value that `begin` begins, its text after `prefix`.
fn write_jsonb<'a>(
    buffer: &mut StringInfoBuffer<'a>,
    begin: impl FnOnce(&mut StringInfoBuffer<'a>) -> row::ValueStart,
    prefix: &[u8],
    stored: &[u8],
) -> bool {
    struct Content<'a, 'b>(&'a mut StringInfoBuffer<'b>);

    impl format::Sink for Content<'_, '_> {
        #[inline]
        fn put(&mut self, bytes: &[u8]) {
            self.0.put_bytes(bytes);
        }

        #[inline]
        fn put_between<const BEFORE: usize, const BEHIND: usize>(
            &mut self,
            before: &[u8; BEFORE],
            bytes: &[u8],
            behind: &[u8; BEHIND],
        ) {
            self.0.put_between(before, bytes, behind);
        }
    }

    // One that may be too long is left to the server, for its error.
    let before = buffer.length();
    if before + format::JSONB_GROWTH * stored.len() > MAXIMUM_ALLOCATION {
        return false;
    }
    let start = begin(buffer);
    buffer.put(prefix);
    let written = format::jsonb(&mut Content(buffer), stored);
    if written {
        row::end_value(buffer, start);
    } else {
        buffer.take_back(before);
    }
    written
}

/// Writes a finite numeric as `numeric_send` does: the number of its digits, weight, sign, scale and the digits.
fn write_numeric(buffer: &mut StringInfoBuffer<'_>, stored: &[u8]) -> bool {
    const NEGATIVE: u16 = 0x4000;
    let Some(Numeric::Finite { negative, weight, display_scale, digits }) = Numeric::read(stored) else {
        return false;
    };
    let start = row::begin_binary(buffer);
    buffer.reserve(8 + digits.len());
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

#[cfg(any(test, feature = "pg_test"))]
#[pgrx::pg_schema]
mod tests {
    use core::ffi::CStr;
    use std::ffi::CString;

    use pgrx::prelude::*;
    use pgrx::{AnyNumeric, IntoDatum};

    use super::*;

    /// Random words, the same in every run.
    struct Words(u64);

    impl Iterator for Words {
        type Item = u64;

        fn next(&mut self) -> Option<u64> {
            // xorshift64*
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            Some(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D))
        }
    }

    /// What the formatter writes of a value: the kind byte and the content, or nothing if it leaves the value to
    /// the server.
    fn native(
        formatter: &mut Formatter,
        native: NativeType,
        value: Datum,
        binary: bool,
    ) -> Option<(u8, Vec<u8>)> {
        // SAFETY: a new StringInfo of our own; the callers pass values of the type.
        unsafe {
            let raw = pg_sys::makeStringInfo();
            let mut buffer = StringInfoBuffer::new(raw);
            let settings = FormatSettings::current();
            let written = if binary {
                formatter.write_binary(&mut buffer, native, value, settings)
            } else {
                formatter.write_text(&mut buffer, native, value, settings)
            };
            let bytes = core::slice::from_raw_parts((*raw).data.cast::<u8>(), (*raw).len as usize);
            if !written {
                assert!(bytes.is_empty(), "nothing is written of what is left to the server");
                return None;
            }
            let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
            assert_eq!(length as usize, bytes.len() - 5, "the length is that of the value");
            Some((bytes[0], bytes[5..].to_vec()))
        }
    }

    /// Compares both forms of a value with what the server's functions give. Returns whether the text was written
    /// natively.
    fn compare(formatter: &mut Formatter, output: u32, send: u32, value: Datum) -> bool {
        let (output, send) = (Oid::from(output), Oid::from(send));
        let native_type = NativeType::of_output_function(output).expect("a type that is put out natively");
        assert_eq!(NativeType::of_send_function(send), Some(native_type));
        // SAFETY: the functions are those of the value's type.
        let (text, bytes) = unsafe {
            let text = CStr::from_ptr(pg_sys::OidOutputFunctionCall(output, value)).to_bytes().to_vec();
            let bytes = pg_sys::OidSendFunctionCall(send, value);
            (text, pgrx::varlena::varlena_to_byte_slice(bytes).to_vec())
        };
        if let Some(ours) = native(formatter, native_type, value, true) {
            assert_eq!(ours, (b'b', bytes), "binary form of {native_type:?}");
        }
        match native(formatter, native_type, value, false) {
            Some((kind, ours)) => {
                assert_eq!(
                    (kind, String::from_utf8_lossy(&ours)),
                    (b't', String::from_utf8_lossy(&text)),
                    "text form of {native_type:?}"
                );
                true
            }
            None => false,
        }
    }

    #[pg_test]
    fn integers_are_as_the_server_has_them() {
        let formatter = &mut Formatter::default();
        let edges = [0, 1, u64::MAX, i64::MIN as u64, i64::MAX as u64, 0x7FFF_FFFF, 0x8000_0000, 0x8000];
        for word in edges.into_iter().chain(Words(1).take(2000)) {
            let shifted = (word as i64) >> (word % 61);
            assert!(compare(formatter, pg_sys::F_INT2OUT, pg_sys::F_INT2SEND, Datum::from(shifted as i16)));
            assert!(compare(formatter, pg_sys::F_INT4OUT, pg_sys::F_INT4SEND, Datum::from(shifted as i32)));
            assert!(compare(formatter, pg_sys::F_INT8OUT, pg_sys::F_INT8SEND, Datum::from(shifted)));
            assert!(compare(formatter, pg_sys::F_OIDOUT, pg_sys::F_OIDSEND, Datum::from(shifted as u32)));
            assert!(compare(formatter, pg_sys::F_BOOLOUT, pg_sys::F_BOOLSEND, Datum::from(word % 2 == 0)));
        }
    }

    #[pg_test]
    fn floats_are_as_the_server_has_them() {
        let formatter = &mut Formatter::default();
        let edges =
            [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e15, 999_999_999_999_999.0, 1e-4];
        let decimals = Words(2).take(20_000).map(|word| {
            let digits = ((word as i64) >> (word % 50)) as f64;
            digits / 10f64.powi((word >> 50) as i32 % 12)
        });
        let any = Words(3).take(20_000).map(f64::from_bits);
        for value in edges.into_iter().chain(decimals).chain(any) {
            let bits = Datum::from(value.to_bits() as i64);
            assert!(compare(formatter, pg_sys::F_FLOAT8OUT, pg_sys::F_FLOAT8SEND, bits));
            let bits = Datum::from((value as f32).to_bits() as i32);
            assert!(compare(formatter, pg_sys::F_FLOAT4OUT, pg_sys::F_FLOAT4SEND, bits));
            let bits = Datum::from(value.to_bits() as i32);
            assert!(compare(formatter, pg_sys::F_FLOAT4OUT, pg_sys::F_FLOAT4SEND, bits));
        }
        Spi::run("SET extra_float_digits = 0").expect("a setting");
        let third = Datum::from((1.0f64 / 3.0).to_bits() as i64);
        assert!(!compare(formatter, pg_sys::F_FLOAT8OUT, pg_sys::F_FLOAT8SEND, third));
    }

    #[pg_test]
    fn dates_and_times_are_as_the_server_has_them() {
        let formatter = &mut Formatter::default();
        const DAY: i64 = 86_400_000_000;
        let edges = [
            0,
            -1,
            TIMESTAMPS.start,
            TIMESTAMPS.end - 1,
            i64::MIN,
            i64::MAX,
            DAY,
            -DAY,
            // Around changes to and from summer time in 2026, and the first and last that zones know of.
            26 * 365 * DAY + 88 * DAY,
            26 * 365 * DAY + 298 * DAY,
            -116 * 365 * DAY,
            38 * 365 * DAY,
        ];
        let zones = [
            "UTC",
            "Europe/Berlin",
            "America/St_Johns",
            "Asia/Kathmandu",
            "Pacific/Apia",
            "<+03:04>-03:04",
            "<-167>167",
        ];
        for zone in zones {
            Spi::run(&format!("SET TimeZone = '{zone}'")).expect("a setting");
            let random = Words(4).take(5000).map(|word| (word as i64) >> (word % 24));
            let recent = (0..500).map(|step| 26 * 365 * DAY + step * 3 * 3_600_000_001);
            let descending = (0..500).map(|step| 27 * 365 * DAY - step * 7 * 3_600_000_001);
            for value in edges.into_iter().chain(random).chain(recent).chain(descending) {
                if !is_timestamp(value) {
                    continue;
                }
                let datum = Datum::from(value);
                assert!(compare(formatter, pg_sys::F_TIMESTAMPTZ_OUT, pg_sys::F_TIMESTAMPTZ_SEND, datum));
                assert!(compare(formatter, pg_sys::F_TIMESTAMP_OUT, pg_sys::F_TIMESTAMP_SEND, datum));
                let time = Datum::from(value.rem_euclid(DAY + 1));
                assert!(compare(formatter, pg_sys::F_TIME_OUT, pg_sys::F_TIME_SEND, time));
                let days = (value / DAY) as i32;
                if is_date(days) {
                    assert!(compare(formatter, pg_sys::F_DATE_OUT, pg_sys::F_DATE_SEND, Datum::from(days)));
                }
            }
        }
        for days in [i32::MIN, i32::MAX, -2_451_545, 2_145_031_948] {
            assert!(compare(formatter, pg_sys::F_DATE_OUT, pg_sys::F_DATE_SEND, Datum::from(days)));
        }
        Spi::run("SET DateStyle = 'German'").expect("a setting");
        assert!(!compare(formatter, pg_sys::F_TIMESTAMP_OUT, pg_sys::F_TIMESTAMP_SEND, Datum::from(0i64)));
        assert!(!compare(formatter, pg_sys::F_DATE_OUT, pg_sys::F_DATE_SEND, Datum::from(0i32)));
    }

    #[pg_test]
    fn numerics_are_as_the_server_has_them() {
        let formatter = &mut Formatter::default();
        let edges =
            ["0", "0.00", "-0.5", "NaN", "Infinity", "-Infinity", "1e130", "1e-130", "1e200", "1e-300"];
        let random = Words(5).take(20_000).map(|word| {
            let digits = (word as i64) >> (word % 62);
            format!("{digits}e{}", (word >> 40) as i32 % 60 - 40)
        });
        for number in edges.into_iter().map(String::from).chain(random) {
            let value = AnyNumeric::try_from(number.as_str()).expect("a number");
            let datum = value.into_datum().expect("not null");
            compare(formatter, pg_sys::F_NUMERIC_OUT, pg_sys::F_NUMERIC_SEND, datum);
        }
        let ordinary = AnyNumeric::try_from("12345.6700").expect("a number").into_datum().expect("not null");
        assert!(compare(formatter, pg_sys::F_NUMERIC_OUT, pg_sys::F_NUMERIC_SEND, ordinary));
    }

    #[pg_test]
    fn jsonb_is_as_the_server_has_it() {
        let formatter = &mut Formatter::default();
        let mut compare_text = |text: &str| {
            let text = CString::new(text).expect("no NUL");
            // SAFETY: the input function of jsonb gets a NUL-terminated string.
            let value = unsafe {
                pg_sys::OidInputFunctionCall(
                    Oid::from(pg_sys::F_JSONB_IN),
                    text.as_ptr().cast_mut(),
                    Oid::INVALID,
                    -1,
                )
            };
            compare(formatter, pg_sys::F_JSONB_OUT, pg_sys::F_JSONB_SEND, value)
        };
        for text in [
            "null",
            "true",
            "\"a \\u0001\\b\\f\\n\\r\\t\\\"\\\\/\\u007f\\u00e9\"",
            "-12.50e3",
            "{}",
            "[]",
            "[[], {}, [null]]",
            "{\"\": \"\", \"b\": [1, 2.50, true, false, null], \"aa\": {\"c\": {\"d\": \"e\"}}}",
        ] {
            assert!(compare_text(text), "{text}");
        }
        let element = |word: u64| match word % 7 {
            0 => "null".to_owned(),
            1 => word.is_multiple_of(3).to_string(),
            2 => format!("{}e{}", word as i64 >> (word % 60), word % 40),
            3 => format!(
                "{{\"k{word}\": [{}, \"x\"], \"l\": \"{}\"}}",
                word % 1000,
                "é\\n".repeat(word as usize % 9)
            ),
            4 => format!("[{}]", word % 10),
            _ => format!("\"{}\"", "value ".repeat(word as usize % 40)),
        };
        // Every 32nd element is stored in another way.
        for count in [0, 1, 31, 32, 33, 64, 65, 200] {
            let elements: Vec<_> = Words(8 + count as u64).take(count).map(element).collect();
            assert!(compare_text(&format!("[{}]", elements.join(","))));
            let pairs: Vec<_> = elements
                .iter()
                .enumerate()
                .map(|(index, element)| format!("\"{index}\": {element}"))
                .collect();
            assert!(compare_text(&format!("{{{}}}", pairs.join(","))));
        }
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(compare_text(&deep(60)));
        assert!(!compare_text(&deep(70)), "too deep");
        assert!(!compare_text("[1, {\"a\": 1e300}]"), "too long");
        Spi::run("SET client_encoding = 'LATIN1'").expect("a setting");
        assert!(!compare_text("\"é\""));
    }

    #[pg_test]
    fn bytes_are_as_the_server_has_them() {
        let formatter = &mut Formatter::default();
        for length in [0, 1, 63, 64, 65, 126, 127, 128, 129, 1000, 20_000] {
            let text = "é".repeat(length).into_datum().expect("not null");
            assert!(compare(formatter, pg_sys::F_TEXTOUT, pg_sys::F_TEXTSEND, text));
            let bytes: Vec<u8> = Words(6).take(length).map(|word| word as u8).collect();
            let bytes = bytes.into_datum().expect("not null");
            assert!(compare(formatter, pg_sys::F_BYTEAOUT, pg_sys::F_BYTEASEND, bytes));
        }
        for word in Words(7).take(100) {
            let value = [word.to_ne_bytes(), (!word).to_ne_bytes()].concat();
            let datum = Datum::from(value.as_ptr());
            assert!(compare(formatter, pg_sys::F_UUID_OUT, pg_sys::F_UUID_SEND, datum));
        }
        Spi::run("SET bytea_output = 'escape'").expect("a setting");
        let bytes = vec![0u8, 1, 255].into_datum().expect("not null");
        assert!(!compare(formatter, pg_sys::F_BYTEAOUT, pg_sys::F_BYTEASEND, bytes));
        Spi::run("SET client_encoding = 'LATIN1'").expect("a setting");
        let text = "é".into_datum().expect("not null");
        assert!(!compare(formatter, pg_sys::F_TEXTOUT, pg_sys::F_TEXTSEND, text));
    }
}
