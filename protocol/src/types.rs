//! The scalar types that messages are made of.

use std::fmt;
use std::str::FromStr;

/// An object identifier: of a relation or a type.
pub type Oid = u32;

/// A transaction ID, without its epoch.
pub type Xid = u32;

/// A location in the write-ahead log: a byte position, printed as PostgreSQL prints it (`16/B374D848`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// The text isn't a WAL location: two hexadecimal numbers of up to eight digits with a slash between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLsnError;

impl fmt::Display for ParseLsnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a WAL location is two hexadecimal numbers of up to eight digits with a slash between")
    }
}

impl std::error::Error for ParseLsnError {}

impl FromStr for Lsn {
    type Err = ParseLsnError;

    /// Reads what `pg_lsn` prints.
    fn from_str(text: &str) -> Result<Self, ParseLsnError> {
        let half = |digits: &str| {
            // from_str_radix alone would take a sign.
            if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(ParseLsnError);
            }
            u64::from_str_radix(digits, 16).map_err(|_| ParseLsnError)
        };
        let (high, low) = text.split_once('/').ok_or(ParseLsnError)?;
        Ok(Lsn(half(high)? << 32 | half(low)?))
    }
}

/// A point in time: microseconds since 2000-01-01 00:00 UTC, negative before. Printed as a `timestamp with time
/// zone` in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
        match self.0 {
            i64::MIN => return f.write_str("-infinity"),
            i64::MAX => return f.write_str("infinity"),
            _ => {}
        }
        let (year, month, day) = date(self.0.div_euclid(MICROSECONDS_PER_DAY));
        let microseconds = self.0.rem_euclid(MICROSECONDS_PER_DAY);
        let seconds = microseconds / 1_000_000;
        let fraction = microseconds % 1_000_000;
        let before_christ = year <= 0;
        let year = if before_christ { 1 - year } else { year };
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")?;
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str(if before_christ { "+00 BC" } else { "+00" })
    }
}

/// The year, month and day of a day counted from 2000-01-01 in the proleptic Gregorian calendar.
fn date(day: i64) -> (i64, i64, i64) {
    const DAYS_PER_400_YEARS: i64 = 146_097;
    // Counted from 1 March 2000, the first day after a leap day that closes 400 years: leap days then come
    // last in a year, in a century and in the whole period.
    let day = day - 60;
    let period = day.div_euclid(DAYS_PER_400_YEARS);
    let day = day.rem_euclid(DAYS_PER_400_YEARS);
    let century = (day / 36_524).min(3);
    let day = day - century * 36_524;
    let leap = day / 1_461;
    let day = day - leap * 1_461;
    let year = (day / 365).min(3);
    let day = day - year * 365;
    // Months from March on take 31 30 31 30 31 days twice and then 31 and the rest.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let year = 2000 + 400 * period + 100 * century + 4 * leap + year;
    if month < 10 { (year, month + 3, day_of_month) } else { (year + 1, month - 9, day_of_month) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lsn_is_printed_and_read_as_the_server_does() {
        for (lsn, text) in [(0, "0/0"), (0x16_B374_D848, "16/B374D848"), (u64::MAX, "FFFFFFFF/FFFFFFFF")] {
            assert_eq!(Lsn(lsn).to_string(), text);
            assert_eq!(text.parse(), Ok(Lsn(lsn)));
        }
        assert_eq!("0/00000001".parse(), Ok(Lsn(1)));
        for bad in ["", "/", "1", "1/", "/1", "+1/1", "1/000000001", "x/1", "1/1/1", " 1/1"] {
            assert_eq!(bad.parse::<Lsn>(), Err(ParseLsnError), "{bad:?}");
        }
    }

    #[test]
    fn timestamp_is_printed_as_a_date() {
        const DAY: i64 = 86_400_000_000;
        for (microseconds, text) in [
            (0, "2000-01-01 00:00:00+00"),
            (1, "2000-01-01 00:00:00.000001+00"),
            (-1, "1999-12-31 23:59:59.999999+00"),
            (59 * DAY, "2000-02-29 00:00:00+00"),
            (60 * DAY, "2000-03-01 00:00:00+00"),
            (365 * DAY, "2000-12-31 00:00:00+00"),
            (366 * DAY, "2001-01-01 00:00:00+00"),
            (36_525 * DAY, "2100-01-01 00:00:00+00"),
            (36_525 * DAY + 59 * DAY, "2100-03-01 00:00:00+00"),
            (820_454_400_500_000, "2025-12-31 00:00:00.5+00"),
            (-730_119 * DAY, "0001-01-01 00:00:00+00"),
            (-730_120 * DAY, "0001-12-31 00:00:00+00 BC"),
            (i64::MIN, "-infinity"),
            (i64::MAX, "infinity"),
        ] {
            assert_eq!(Timestamp(microseconds).to_string(), text);
        }
        for microseconds in [i64::MIN + 1, i64::MAX - 1] {
            assert!(!Timestamp(microseconds).to_string().is_empty());
        }
    }
}
