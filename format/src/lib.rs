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

    /// Appends `N` bytes, which `write` writes: straight to where they are to be, for bytes that are written one by one
    /// and then copied together make the processor wait.
    #[inline]
    fn push_with<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N])) {
        let free = self.bytes.get_mut(self.length..).and_then(<[u8]>::first_chunk_mut);
        debug_assert!(free.is_some(), "a text of this crate fits");
        if let Some(free) = free {
            write(free);
            self.length += N;
        }
    }

    /// Appends a number in as many digits as it has, each straight to its place as in [`push_with`](Self::push_with).
    #[inline]
    fn push_digits(&mut self, number: u64) {
        let count = number.checked_ilog10().map_or(1, |last| last as usize + 1);
        let end = self.length + count;
        debug_assert!(end <= CAPACITY, "a text of this crate fits");
        let Some(free) = self.bytes.get_mut(self.length..end) else { return };
        let (first, pairs) = free.as_rchunks_mut::<2>();
        let mut rest = number;
        for pair in pairs.iter_mut().rev() {
            *pair = *two_digits((rest % 100) as u32);
            rest /= 100;
        }
        if let [first] = first {
            *first = b'0' + rest as u8;
        }
        self.length = end;
    }

    /// Appends a point and the six digits of a number below 1,000,000, without zeros at the end. The number is not 0.
    #[inline]
    fn push_fraction(&mut self, number: u32) {
        let pairs = [number / 10_000, number / 100 % 100, number % 100];
        self.push_with::<7>(|text| {
            text[0] = b'.';
            for (place, pair) in [1, 3, 5].into_iter().zip(pairs) {
                put_two_digits(text, place, pair);
            }
        });
        let zeros = match pairs {
            [first, 0, 0] => 4 + usize::from(first % 10 == 0),
            [_, second, 0] => 2 + usize::from(second % 10 == 0),
            [_, _, third] => usize::from(third % 10 == 0),
        };
        self.length = self.length.saturating_sub(zeros);
    }
}

/// Writes the two digits of a number below 100 to that place.
#[inline]
fn put_two_digits<const N: usize>(text: &mut [u8; N], place: usize, number: u32) {
    text[place..place + 2].copy_from_slice(two_digits(number));
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

/// An integer, as `int2out`, `int4out`, `int8out` and `oidout` give it.
#[inline]
pub fn integer(text: &mut Text, value: impl Into<i64>) {
    let value = value.into();
    if value < 0 {
        text.push(b"-");
    }
    text.push_digits(value.unsigned_abs());
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
    text.push_with::<36>(|text| {
        for (place, byte) in PLACES.into_iter().zip(value) {
            text[place..place + 2].copy_from_slice(&DIGITS[usize::from(*byte)]);
        }
        for place in [8, 13, 18, 23] {
            text[place] = b'-';
        }
    });
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
