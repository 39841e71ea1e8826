//! The text form of values of common PostgreSQL types, as the types' output functions give it.
//!
//! The formats are those of the chapter "Data Types" in the PostgreSQL manual: dates and times in the ISO style
//! (`DateStyle`), floating-point numbers in their shortest form (`extra_float_digits` above 0), bytea in hex
//! (`bytea_output`). The crate knows numbers and bytes and nothing of a server.
//!
//! A function that can't tell what the output function would give says so, and the caller asks that.

#![forbid(unsafe_code)]

mod datetime;
mod float;
mod numeric;

pub use datetime::{date, time, timestamp};
pub use float::{float4, float8};
pub use numeric::{Numeric, numeric};

/// The longest text that a [`Text`] can hold, in bytes.
pub const CAPACITY: usize = 256;

/// A short text that is being put together.
#[derive(Clone, Debug)]
pub struct Text {
    bytes: [u8; CAPACITY],
    length: usize,
}

impl Default for Text {
    fn default() -> Self {
        Text { bytes: [0; CAPACITY], length: 0 }
    }
}

impl Text {
    /// Empties it.
    #[inline]
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// The text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends bytes. What doesn't fit is a mistake of this crate, and is left out.
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        debug_assert!(end <= CAPACITY, "a text of this crate fits");
        if let Some(free) = self.bytes.get_mut(self.length..end) {
            free.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// Appends a number below 100 in two digits.
    #[inline]
    fn push_two_digits(&mut self, number: u32) {
        self.push(two_digits(number));
    }

    /// Appends a number below 10,000 in four digits.
    #[inline]
    fn push_four_digits(&mut self, number: u32) {
        self.push_two_digits(number / 100);
        self.push_two_digits(number % 100);
    }
}

/// The two digits of a number below 100.
#[inline]
fn two_digits(number: u32) -> &'static [u8; 2] {
    const DIGITS: [[u8; 2]; 100] = {
        let mut digits = [[0; 2]; 100];
        let mut number = 0;
        while number < 100 {
            digits[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
            number += 1;
        }
        digits
    };
    &DIGITS[(number % 100) as usize]
}

/// An integer, as `int2out`, `int4out`, `int8out` and `oidout` give it.
#[inline]
pub fn integer(text: &mut Text, value: impl itoa::Integer) {
    text.push(itoa::Buffer::new().format(value).as_bytes());
}

/// A uuid, as `uuid_out` gives it.
#[inline]
pub fn uuid(text: &mut Text, value: &[u8; 16]) {
    for (index, byte) in value.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push(b"-");
        }
        text.push(hex(*byte));
    }
}

/// The two hexadecimal digits of a byte, as `byteaout` gives them.
#[inline]
pub fn hex(byte: u8) -> &'static [u8; 2] {
    const DIGITS: [[u8; 2]; 256] = {
        let hexadecimal = b"0123456789abcdef";
        let mut digits = [[0; 2]; 256];
        let mut byte = 0;
        while byte < 256 {
            digits[byte] = [hexadecimal[byte >> 4], hexadecimal[byte & 15]];
            byte += 1;
        }
        digits
    };
    &DIGITS[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::default();
        f(&mut text);
        String::from_utf8(text.as_bytes().to_vec()).expect("texts of this crate are ASCII")
    }

    #[test]
    fn integers() {
        assert_eq!(text(|text| integer(text, i16::MIN)), "-32768");
        assert_eq!(text(|text| integer(text, 0i32)), "0");
        assert_eq!(text(|text| integer(text, i64::MIN)), "-9223372036854775808");
        assert_eq!(text(|text| integer(text, u32::MAX)), "4294967295");
    }

    #[test]
    fn uuids() {
        let value = *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xfc\xfd\xfe\xff";
        assert_eq!(text(|text| uuid(text, &value)), "00010203-0405-0607-0809-0a0bfcfdfeff");
    }
}
