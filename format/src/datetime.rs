//! Dates and times in the ISO style.

use crate::{Text, integer, put_two_digits};

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROSECONDS_PER_DAY: i64 = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND;

/// Days from 0000-03-01, where the arithmetic below begins, to 2000-01-01, where PostgreSQL's dates begin.
const EPOCH_DAYS: i64 = 730_425;

/// A day of the proleptic Gregorian calendar. Year 0 is 1 BC.
#[derive(Clone, Copy)]
struct Day {
    year: i64,
    month: u32,
    day: u32,
}

impl Day {
    /// The day that is `days` after 2000-01-01.
    #[inline]
    fn from_days(days: i64) -> Self {
        // Years are counted from March, so that the leap day is a year's last, and in cycles of 400 years, which
        // all have the same number of days.
        const DAYS_PER_CYCLE: i64 = 146_097;
        let days = days + EPOCH_DAYS;
        let cycle = days.div_euclid(DAYS_PER_CYCLE);
        let day_of_cycle = days.rem_euclid(DAYS_PER_CYCLE) as u32;
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = cycle * 400 + i64::from(year_of_cycle) + i64::from(month <= 2);
        Day { year, month, day }
    }

    #[inline]
    fn push(self, text: &mut Text) {
        let year = if self.year > 0 { self.year } else { 1 - self.year };
        if year < 10_000 {
            text.push_with::<10>(|text| {
                put_two_digits(text, 0, year as u32 / 100);
                put_two_digits(text, 2, year as u32 % 100);
                self.put_month_and_day(text, 4);
            });
        } else {
            integer(text, year);
            text.push_with::<6>(|text| self.put_month_and_day(text, 0));
        }
    }

    #[inline]
    fn put_month_and_day<const N: usize>(self, text: &mut [u8; N], place: usize) {
        text[place] = b'-';
        put_two_digits(text, place + 1, self.month);
        text[place + 3] = b'-';
        put_two_digits(text, place + 4, self.day);
    }

    /// What follows everything else in a year before 1 AD.
    #[inline]
    fn push_era(self, text: &mut Text) {
        if self.year <= 0 {
            text.push(b" BC");
        }
    }
}

#[inline]
fn push_infinity(text: &mut Text, negative: bool) {
    text.push(if negative { b"-infinity" } else { b"infinity" });
}

/// The time of a day, in microseconds since midnight.
#[inline]
fn push_time(text: &mut Text, microseconds: i64) {
    let seconds = (microseconds / MICROSECONDS_PER_SECOND) as u32;
    let fraction = (microseconds % MICROSECONDS_PER_SECOND) as u32;
    text.push_with::<8>(|text| {
        put_two_digits(text, 0, seconds / 3600);
        text[2] = b':';
        put_two_digits(text, 3, seconds / 60 % 60);
        text[5] = b':';
        put_two_digits(text, 6, seconds % 60);
    });
    if fraction != 0 {
        text.push_fraction(fraction);
    }
}

/// A date, in days since 2000-01-01, as `date_out` gives it.
#[inline]
pub fn date(text: &mut Text, days: i32) {
    if days == i32::MIN || days == i32::MAX {
        return push_infinity(text, days < 0);
    }
    let day = Day::from_days(i64::from(days));
    day.push(text);
    day.push_era(text);
}

/// A time of a day, in microseconds since midnight, as `time_out` gives it.
#[inline]
pub fn time(text: &mut Text, microseconds: i64) {
    push_time(text, microseconds);
}

/// A timestamp, in microseconds since 2000-01-01, as `timestamp_out` gives it; with the time zone's offset at that
/// time, in seconds east of Greenwich, as `timestamptz_out` does.
#[inline]
pub fn timestamp(text: &mut Text, microseconds: i64, offset: Option<i32>) {
    if microseconds == i64::MIN || microseconds == i64::MAX {
        return push_infinity(text, microseconds < 0);
    }
    // The range of timestamps is far from overflowing by an offset of some hours.
    let local = microseconds.wrapping_add(i64::from(offset.unwrap_or(0)) * MICROSECONDS_PER_SECOND);
    let day = Day::from_days(local.div_euclid(MICROSECONDS_PER_DAY));
    day.push(text);
    text.push(b" ");
    push_time(text, local.rem_euclid(MICROSECONDS_PER_DAY));
    if let Some(offset) = offset {
        push_offset(text, offset);
    }
    day.push_era(text);
}

#[inline]
fn push_offset(text: &mut Text, offset: i32) {
    let seconds = offset.unsigned_abs();
    let sign = if offset >= 0 { b'+' } else { b'-' };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours < 100 {
        text.push_with::<3>(|text| {
            text[0] = sign;
            put_two_digits(text, 1, hours);
        });
    } else {
        // A zone given as a POSIX string can be a week away.
        text.push(&[sign]);
        integer(text, hours);
    }
    let mut push_part = |part| {
        text.push_with::<3>(|text| {
            text[0] = b':';
            put_two_digits(text, 1, part);
        });
    };
    if minutes != 0 || seconds != 0 {
        push_part(minutes);
    }
    if seconds != 0 {
        push_part(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Text)) -> String {
        let mut bytes = [0; crate::CAPACITY];
        let mut text = Text::new(&mut bytes);
        f(&mut text);
        String::from_utf8(text.as_bytes().to_vec()).expect("texts of this crate are ASCII")
    }

    #[test]
    fn dates() {
        for (days, expected) in [
            (0, "2000-01-01"),
            (-1, "1999-12-31"),
            (59, "2000-02-29"),
            (60, "2000-03-01"),
            (-730_119, "0001-01-01"),
            (-730_120, "0001-12-31 BC"),
            (-2_451_545, "4714-11-24 BC"),
            (2_921_940, "10000-01-01"),
            (2_145_031_948, "5874897-12-31"),
            (i32::MAX, "infinity"),
            (i32::MIN, "-infinity"),
        ] {
            assert_eq!(text(|text| date(text, days)), expected, "{days}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(text(|text| time(text, 0)), "00:00:00");
        assert_eq!(text(|text| time(text, 86_399_999_999)), "23:59:59.999999");
        assert_eq!(text(|text| time(text, 86_400_000_000)), "24:00:00");
        assert_eq!(text(|text| time(text, 3_661_000_100)), "01:01:01.0001");
    }

    #[test]
    fn timestamps() {
        for (microseconds, offset, expected) in [
            (0, None, "2000-01-01 00:00:00"),
            (-1, None, "1999-12-31 23:59:59.999999"),
            (0, Some(0), "2000-01-01 00:00:00+00"),
            (0, Some(3600), "2000-01-01 01:00:00+01"),
            (0, Some(-12_600), "1999-12-31 20:30:00-03:30"),
            (0, Some(20_700), "2000-01-01 05:45:00+05:45"),
            (0, Some(-4 * 3600 - 56 * 60 - 2), "1999-12-31 19:03:58-04:56:02"),
            (0, Some(3605), "2000-01-01 01:00:05+01:00:05"),
            (0, Some(100 * 3600), "2000-01-05 04:00:00+100"),
            (0, Some(-167 * 3600 - 1800), "1999-12-25 00:30:00-167:30"),
            (9_223_371_331_200_000_000 - 1, None, "294276-12-31 23:59:59.999999"),
            (-211_813_488_000_000_000, None, "4714-11-24 00:00:00 BC"),
            (-211_813_488_000_000_000, Some(0), "4714-11-24 00:00:00+00 BC"),
            (i64::MAX, Some(0), "infinity"),
            (i64::MIN, None, "-infinity"),
        ] {
            assert_eq!(text(|text| timestamp(text, microseconds, offset)), expected, "{microseconds}");
        }
    }
}
