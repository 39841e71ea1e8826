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
mod jsonb;
mod numeric;

pub use datetime::{date, time, timestamp};
pub use float::{float4, float8};
/// What [`with_integer`] takes.
pub use itoa::Integer;
pub use jsonb::{JSONB_GROWTH, Sink, jsonb};
pub use numeric::{Numeric, numeric};

/// The longest text that a [`Text`] can hold, in bytes.
pub const CAPACITY: usize = 256;

/// A short text that is being put together, in memory of the caller's: where it is to be in the end, if that can be.
#[derive(Debug)]
pub struct Text<'a> {
    bytes: &'a mut [u8; CAPACITY],
    length: usize,
}

impl<'a> Text<'a> {
    /// An empty text, whatever the memory holds.
    #[inline]
    pub fn new(bytes: &'a mut [u8; CAPACITY]) -> Self {
        Text { bytes, length: 0 }
    }

    /// How many bytes of the memory are text.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The text.
    fn as_bytes(&self) -> &[u8] {
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

    /// Appends a point and the six digits of a number below 1,000,000, without zeros at the end. The number is not 0.
    #[inline]
    fn push_fraction(&mut self, number: u32) {
        let [a, b] = *two_digits(number / 10_000);
        let [c, d, e, f] = four_digits(number % 10_000);
        let digits = [b'.', a, b, c, d, e, f];
        self.push(&digits);
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        self.length = self.length.saturating_sub(zeros);
    }
}

/// The two digits of a number below 100.
#[inline]
fn two_digits(number: u32) -> &'static [u8; 2] {
    // A power of 2 long, so that a mask, and no division, keeps the index within it.
    const DIGITS: [[u8; 2]; 128] = {
        let mut digits = [[0; 2]; 128];
        let mut number = 0;
        while number < digits.len() {
            digits[number] = [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8];
            number += 1;
        }
        digits
    };
    debug_assert!(number < 100, "the number has two digits");
    &DIGITS[number as usize % DIGITS.len()]
}

/// The four digits of a number below 10,000.
#[inline]
fn four_digits(number: u32) -> [u8; 4] {
    let [a, b] = *two_digits(number / 100);
    let [c, d] = *two_digits(number % 100);
    [a, b, c, d]
}

/// Hands an integer, as `int2out`, `int4out`, `int8out` and `oidout` give it, to `f`.
#[inline]
pub fn with_integer<R>(value: impl Integer, f: impl FnOnce(&[u8]) -> R) -> R {
    f(itoa::Buffer::new().format(value).as_bytes())
}

/// Appends an integer.
#[inline]
fn integer(text: &mut Text, value: impl Integer) {
    with_integer(value, |digits| text.push(digits));
}

/// A uuid, as `uuid_out` gives it.
#[inline]
pub fn uuid(text: &mut Text, value: &[u8; 16]) {
    // A table here: digits that arithmetic has put into a large register would have to be taken apart again.
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
    // Where the digits of each byte begin: a hyphen is before bytes 4, 6, 8 and 10.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut digits = [b'-'; 36];
    for (place, byte) in PLACES.into_iter().zip(value) {
        [digits[place], digits[place + 1]] = DIGITS[usize::from(*byte)];
    }
    text.push(&digits);
}

/// Writes the hexadecimal digits of bytes, as `byteaout` gives them, to the beginning of `digits`, which has room for
/// two for each byte.
#[inline]
pub fn hex(bytes: &[u8], digits: &mut [u8]) {
    // No table: arithmetic is what the compiler turns into instructions that take many bytes at once.
    const LETTERS: u8 = b'a' - b'9' - 1;
    let digit = |value: u8| value + b'0' + if value > 9 { LETTERS } else { 0 };
    for (byte, digits) in bytes.iter().zip(digits.as_chunks_mut::<2>().0) {
        *digits = [digit(byte >> 4), digit(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Text)) -> String {
        let mut bytes = [0; CAPACITY];
        let mut text = Text::new(&mut bytes);
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
    fn bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..=bytes.len() {
            let mut digits = vec![b'-'; 2 * length + 1];
            hex(&bytes[..length], &mut digits);
            let expected: String = bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digits, (expected + "-").into_bytes());
        }
    }

    #[test]
    fn uuids() {
        let value = *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xfc\xfd\xfe\xff";
        assert_eq!(text(|text| uuid(text, &value)), "00010203-0405-0607-0809-0a0bfcfdfeff");
    }
}
