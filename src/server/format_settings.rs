//! The settings that the text form of values depends on, and the session's time zone.

use core::ffi::{c_int, c_long};

use pgrx::pg_sys;

use super::encoding::ClientEncoding;

/// The settings as they are now.
///
/// They can change whenever the server reloads its configuration, which it does inside a write: read them anew for
/// every row. Doing so costs a few loads.
#[derive(Clone, Copy, Debug)]
pub struct FormatSettings {
    /// `DateStyle` has the ISO style.
    pub iso_dates: bool,
    /// `bytea_output` is hex.
    pub hex_bytea: bool,
    /// `extra_float_digits` asks for the shortest form.
    pub shortest_floats: bool,
    /// The client's encoding.
    pub encoding: ClientEncoding,
}

/// `hex` of `bytea_output`.
const BYTEA_OUTPUT_HEX: c_int = 1;

unsafe extern "C" {
    static bytea_output: c_int;
}

impl FormatSettings {
    /// Reads them.
    #[inline]
    pub fn current() -> Self {
        // SAFETY: variables of the server, written by this thread only.
        unsafe {
            FormatSettings {
                iso_dates: pg_sys::DateStyle == pg_sys::USE_ISO_DATES as c_int,
                hex_bytea: bytea_output == BYTEA_OUTPUT_HEX,
                shortest_floats: pg_sys::extra_float_digits > 0,
                encoding: ClientEncoding::current(),
            }
        }
    }
}

/// Seconds between 1970-01-01, where the time zone's functions begin, and 2000-01-01.
const EPOCH_SECONDS: i64 = 946_684_800;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// The offset of the session's time zone, remembered for the span of time in which it doesn't change.
#[derive(Debug)]
pub struct TimeZoneOffset {
    zone: *const pg_sys::pg_tz,
    /// The span, in seconds since 1970: from a time that was asked for up to the zone's next change of offset.
    from: i64,
    to: i64,
    offset: i32,
}

impl Default for TimeZoneOffset {
    fn default() -> Self {
        TimeZoneOffset { zone: core::ptr::null(), from: 0, to: 0, offset: 0 }
    }
}

impl TimeZoneOffset {
    /// The offset, in seconds east of Greenwich, at a time in microseconds since 2000-01-01; `None` if the zone
    /// doesn't tell.
    #[inline]
    pub fn at(&mut self, microseconds: i64) -> Option<i32> {
        let seconds = microseconds.div_euclid(MICROSECONDS_PER_SECOND) + EPOCH_SECONDS;
        // SAFETY: a variable of the server. Zones are never freed, so that one pointer is one zone.
        let zone: *const pg_sys::pg_tz = unsafe { pg_sys::session_timezone };
        if zone != self.zone || !(self.from..self.to).contains(&seconds) {
            self.look_up(zone, seconds)?;
        }
        Some(self.offset)
    }

    #[cold]
    fn look_up(&mut self, zone: *const pg_sys::pg_tz, seconds: i64) -> Option<()> {
        let (mut offset, mut offset_after): (c_long, c_long) = (0, 0);
        let (mut summer_time, mut summer_time_after): (c_int, c_int) = (0, 0);
        let mut boundary: pg_sys::pg_time_t = 0;
        // SAFETY: the zone is valid, and the rest is filled in.
        let found = unsafe {
            pg_sys::pg_next_dst_boundary(
                &seconds,
                &mut offset,
                &mut summer_time,
                &mut boundary,
                &mut offset_after,
                &mut summer_time_after,
                zone,
            )
        };
        let to = match found {
            0 => i64::MAX,
            1 => boundary,
            _ => return None,
        };
        // A time just before the span that is in the same one must not start over for ever: rows often come in
        // descending order of time.
        let from = if zone == self.zone && to == self.to { seconds.min(self.from) } else { seconds };
        *self = TimeZoneOffset { zone, from, to, offset: i32::try_from(offset).ok()? };
        Some(())
    }
}

/// A float in the server's shortest form.
pub fn float4(value: f32, buffer: &mut [u8; FLOAT4_CAPACITY]) -> &[u8] {
    unsafe extern "C" {
        fn float_to_shortest_decimal_bufn(value: f32, result: *mut u8) -> c_int;
    }
    // SAFETY: the buffer has the size that the function asks for; it raises no ERROR.
    let length = unsafe { float_to_shortest_decimal_bufn(value, buffer.as_mut_ptr()) };
    &buffer[..length as usize]
}

/// A double in the server's shortest form.
pub fn float8(value: f64, buffer: &mut [u8; FLOAT8_CAPACITY]) -> &[u8] {
    unsafe extern "C" {
        fn double_to_shortest_decimal_bufn(value: f64, result: *mut u8) -> c_int;
    }
    // SAFETY: the buffer has the size that the function asks for; it raises no ERROR.
    let length = unsafe { double_to_shortest_decimal_bufn(value, buffer.as_mut_ptr()) };
    &buffer[..length as usize]
}

/// What the server's function for floats may write.
pub const FLOAT4_CAPACITY: usize = 16;
/// What the server's function for doubles may write.
pub const FLOAT8_CAPACITY: usize = 25;
