//! Numerics.

use crate::{CAPACITY, Text, put_two_digits};

/// A numeric in the form in which it is stored, without its varlena header.
#[derive(Clone, Copy, Debug)]
pub enum Numeric<'a> {
    /// A number.
    Finite {
        /// Whether it is below 0.
        negative: bool,
        /// The power of 10,000 that the first digit counts.
        weight: i16,
        /// How many decimal digits are shown after the point.
        display_scale: u16,
        /// Digits of base 10,000, each an Int16 in the machine's byte order.
        digits: &'a [u8],
    },
    /// Not a number.
    NaN,
    /// Infinity.
    Infinity,
    /// Minus infinity.
    NegativeInfinity,
}

const SIGN_MASK: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;

impl<'a> Numeric<'a> {
    /// Reads a stored numeric; `None` if that is none.
    #[inline]
    pub fn read(stored: &'a [u8]) -> Option<Self> {
        let (header, rest) = stored.split_first_chunk::<2>()?;
        let header = u16::from_ne_bytes(*header);
        match header & SIGN_MASK {
            SPECIAL => match header {
                0xC000 => Some(Numeric::NaN),
                0xD000 => Some(Numeric::Infinity),
                0xF000 => Some(Numeric::NegativeInfinity),
                _ => None,
            },
            SHORT => {
                // Seven bits of weight, the highest of which is its sign.
                let weight = (header & 0x3F) as i16 - if header & 0x40 != 0 { 0x40 } else { 0 };
                Some(Numeric::Finite {
                    negative: header & 0x2000 != 0,
                    weight,
                    display_scale: (header & 0x1F80) >> 7,
                    digits: rest,
                })
            }
            sign => {
                let (weight, digits) = rest.split_first_chunk::<2>()?;
                Some(Numeric::Finite {
                    negative: sign == NEGATIVE,
                    weight: i16::from_ne_bytes(*weight),
                    display_scale: header & 0x3FFF,
                    digits,
                })
            }
        }
    }
}

/// Appends the four digits of a number below 10,000.
#[inline]
fn push_digit(text: &mut Text, number: u32) {
    text.push_with::<4>(|text| {
        put_two_digits(text, 0, number / 100);
        put_two_digits(text, 2, number % 100);
    });
}

/// A numeric, as `numeric_out` gives it. Returns `false` if its text is too long for a [`Text`], with nothing
/// appended.
#[inline]
pub fn numeric(text: &mut Text, value: Numeric<'_>) -> bool {
    let (negative, weight, display_scale, digits) = match value {
        Numeric::Finite { negative, weight, display_scale, digits } => {
            (negative, i32::from(weight), usize::from(display_scale), digits)
        }
        Numeric::NaN => {
            text.push(b"NaN");
            return true;
        }
        Numeric::Infinity => {
            text.push(b"Infinity");
            return true;
        }
        Numeric::NegativeInfinity => {
            text.push(b"-Infinity");
            return true;
        }
    };
    // Sign, point, and a last group of four digits that may be cut to the scale.
    let longest = (weight.max(0) as usize + 1) * 4 + display_scale + 6;
    if text.length + longest > CAPACITY {
        return false;
    }

    if negative {
        text.push(b"-");
    }
    // In a value that is damaged a digit can be anything.
    let digit = |bytes: &[u8]| u32::from(u16::from_ne_bytes([bytes[0], bytes[1]])).min(9999);
    let mut digits = digits.chunks_exact(2).map(digit);
    // Zeros at the end aren't stored.
    let mut next = || digits.next().unwrap_or(0);
    if weight < 0 {
        text.push(b"0");
    } else {
        text.push_digits(u64::from(next()));
        for _ in 0..weight {
            push_digit(text, next());
        }
    }
    if display_scale > 0 {
        text.push(b".");
        let end = text.length + display_scale;
        // Nor are those between the point and the first digit.
        let mut zeros = -1 - weight;
        while text.length < end {
            let digit = if zeros > 0 { 0 } else { next() };
            zeros -= 1;
            push_digit(text, digit);
        }
        text.length = end;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(negative: bool, weight: i16, display_scale: u16, digits: &[u16]) -> Option<String> {
        let digits: Vec<u8> = digits.iter().flat_map(|digit| digit.to_ne_bytes()).collect();
        let value = Numeric::Finite { negative, weight, display_scale, digits: &digits };
        let mut bytes = [0; CAPACITY];
        let mut text = Text::new(&mut bytes);
        numeric(&mut text, value).then(|| String::from_utf8_lossy(text.as_bytes()).into_owned())
    }

    #[test]
    fn texts() {
        for (negative, weight, scale, digits, expected) in [
            (false, 0, 0, &[][..], "0"),
            (false, 0, 2, &[][..], "0.00"),
            (false, 0, 0, &[42][..], "42"),
            (true, 0, 2, &[42, 500][..], "-42.05"),
            (false, 1, 0, &[1][..], "10000"),
            (false, 2, 0, &[1, 0, 7][..], "100000007"),
            (false, -1, 4, &[1][..], "0.0001"),
            (false, -2, 8, &[1][..], "0.00000001"),
            (false, -1, 2, &[100][..], "0.01"),
            (false, 0, 5, &[9999, 9999, 9000][..], "9999.99999"),
            (false, 1, 6, &[12, 3456, 7890][..], "123456.789000"),
        ] {
            assert_eq!(text(negative, weight, scale, digits).as_deref(), Some(expected));
        }
        assert_eq!(text(false, 100, 0, &[1]), None, "too long");
        assert_eq!(text(false, 0, 1000, &[1]), None, "too long");
    }

    #[test]
    fn stored_forms() {
        let read = |words: &[u16]| -> Option<String> {
            let stored: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let mut bytes = [0; CAPACITY];
            let mut text = Text::new(&mut bytes);
            let value = Numeric::read(&stored)?;
            numeric(&mut text, value).then(|| String::from_utf8_lossy(text.as_bytes()).into_owned())
        };
        // Short: sign, six bits of scale, seven of weight.
        assert_eq!(read(&[0x8000 | 2 << 7, 42, 500]).as_deref(), Some("42.05"));
        assert_eq!(read(&[0x8000 | 0x2000 | 4 << 7 | 0x7F, 1]).as_deref(), Some("-0.0001"));
        // Long: sign and scale, then the weight.
        assert_eq!(read(&[2, 0, 42, 500]).as_deref(), Some("42.05"));
        assert_eq!(read(&[0x4000 | 2, 0, 42, 500]).as_deref(), Some("-42.05"));
        assert_eq!(read(&[0xC000]).as_deref(), Some("NaN"));
        assert_eq!(read(&[0xD000]).as_deref(), Some("Infinity"));
        assert_eq!(read(&[0xF000]).as_deref(), Some("-Infinity"));
        assert!(read(&[]).is_none());
        // Not a digit.
        assert_eq!(read(&[0x8000 | 2 << 7, 0xFFFF, 500]).as_deref(), Some("9999.05"));
    }
}
