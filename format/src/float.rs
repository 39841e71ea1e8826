//! Floating-point numbers that are short decimal fractions.
//!
//! A decimal of up to 15 significant digits is the only one of that length that a double can stand for, and of up
//! to 6 digits the only one that a float can: if a number reads back from such a decimal, then that decimal, without
//! zeros at the end, is its shortest form. Most numbers that people store are of this kind, and they are found with
//! a multiplication and a division. For all others the general algorithm is needed, which the server has.

use crate::{Text, integer};

/// Numbers below this are shown with an exponent.
const SMALLEST_FIXED: f64 = 1e-4;

/// A double whose shortest form has at most 15 digits, at most 6 of them after the point, as `float8out` gives it.
/// Returns `false` for any other, with nothing appended.
#[inline]
pub fn float8(text: &mut Text, value: f64) -> bool {
    const SCALE: f64 = 1e6;
    const DIGITS: f64 = 1e15;
    let magnitude = value.abs();
    // Conversions to an integer, where the range allows them, take less than the functions that round.
    if magnitude < DIGITS && (magnitude as i64) as f64 == magnitude {
        push_sign(text, value.is_sign_negative());
        integer(text, magnitude as i64);
        return true;
    }
    let scaled = magnitude * SCALE;
    // Not a number and infinity fail these comparisons, too.
    if !(magnitude >= SMALLEST_FIXED && scaled < DIGITS - 1.0) {
        return false;
    }
    // If this rounds to the wrong neighbour, the comparison fails, and another way gives the text.
    let digits = (scaled + 0.5) as i64;
    if digits as f64 / SCALE != magnitude {
        return false;
    }
    push_sign(text, value.is_sign_negative());
    integer(text, digits / 1_000_000);
    text.push_fraction((digits % 1_000_000) as u32);
    true
}

/// A float whose shortest form has at most 6 digits, at most 3 of them after the point, as `float4out` gives it.
/// Returns `false` for any other, with nothing appended.
#[inline]
pub fn float4(text: &mut Text, value: f32) -> bool {
    const SCALE: f32 = 1e3;
    const DIGITS: f32 = 1e6;
    let magnitude = value.abs();
    if magnitude < DIGITS && (magnitude as i32) as f32 == magnitude {
        push_sign(text, value.is_sign_negative());
        integer(text, magnitude as i32);
        return true;
    }
    let scaled = magnitude * SCALE;
    if !(f64::from(magnitude) >= SMALLEST_FIXED && scaled < DIGITS - 1.0) {
        return false;
    }
    let digits = (scaled + 0.5) as i32;
    if digits as f32 / SCALE != magnitude {
        return false;
    }
    push_sign(text, value.is_sign_negative());
    integer(text, digits / 1000);
    text.push_fraction((digits % 1000) as u32 * 1000);
    true
}

#[inline]
fn push_sign(text: &mut Text, negative: bool) {
    if negative {
        text.push(b"-");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double(value: f64) -> Option<String> {
        let mut bytes = [0; crate::CAPACITY];
        let mut text = Text::new(&mut bytes);
        float8(&mut text, value).then(|| String::from_utf8_lossy(text.as_bytes()).into_owned())
    }

    fn float(value: f32) -> Option<String> {
        let mut bytes = [0; crate::CAPACITY];
        let mut text = Text::new(&mut bytes);
        float4(&mut text, value).then(|| String::from_utf8_lossy(text.as_bytes()).into_owned())
    }

    #[test]
    fn doubles() {
        for (value, expected) in [
            (0.0, Some("0")),
            (-0.0, Some("-0")),
            (1.0, Some("1")),
            (-2.5, Some("-2.5")),
            (0.1, Some("0.1")),
            (0.0001, Some("0.0001")),
            (0.00001, None),
            (3.3, Some("3.3")),
            (1.1 * 3.0, None),
            (123_456_789.123_456, Some("123456789.123456")),
            (999_999_999_999_999.0, Some("999999999999999")),
            (1e15, None),
            (100.05, Some("100.05")),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (f64::NEG_INFINITY, None),
            (f64::MIN_POSITIVE, None),
            (f64::MAX, None),
        ] {
            assert_eq!(double(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn floats() {
        for (value, expected) in [
            (0.0, Some("0")),
            (-0.0, Some("-0")),
            (0.1, Some("0.1")),
            (0.001, Some("0.001")),
            (0.0001, None),
            (999_999.0, Some("999999")),
            (1e6, None),
            (123.456, Some("123.456")),
            (1234.567, None),
            (f32::NAN, None),
            (f32::INFINITY, None),
        ] {
            assert_eq!(float(value).as_deref(), expected, "{value}");
        }
    }

    proptest! {
        // Rust's own shortest form is the reference where no exponent is due.
        #[test]
        fn doubles_are_shortest(digits in 0i64..1_000_000_000_000_000, scale in 0i32..9) {
            let value = digits as f64 / 10f64.powi(scale);
            if let Some(text) = double(value) {
                prop_assert_eq!(text, format!("{value}"));
            }
        }

        #[test]
        fn any_double_is_shortest(value: f64) {
            if let Some(text) = double(value) {
                prop_assert_eq!(text, format!("{value}"));
            }
        }

        #[test]
        fn floats_are_shortest(digits in 0i32..1_000_000, scale in 0i32..6) {
            let value = digits as f32 / 10f32.powi(scale);
            if let Some(text) = float(value) {
                prop_assert_eq!(text, format!("{value}"));
            }
        }
    }
}
