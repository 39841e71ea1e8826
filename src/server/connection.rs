//! A walsender's connection to its client.

use core::ffi::{c_char, c_int};
use std::time::SystemTime;

use pgoutput_protocol::frame::{SEND_TIME_OFFSET, xlog_data_header};
use pgoutput_protocol::{Lsn, Timestamp};
use pgrx::pg_sys;

use super::context::Context;
use super::string_info::StringInfoBuffer;

/// The server's table of functions of the connection, the same in all versions.
#[repr(C)]
struct CommunicationMethods {
    comm_reset: unsafe extern "C-unwind" fn(),
    flush: unsafe extern "C-unwind" fn() -> c_int,
    flush_if_writable: unsafe extern "C-unwind" fn() -> c_int,
    is_send_pending: unsafe extern "C-unwind" fn() -> bool,
    putmessage: unsafe extern "C-unwind" fn(c_char, *const c_char, usize) -> c_int,
    putmessage_noblock: unsafe extern "C-unwind" fn(c_char, *const c_char, usize),
}

unsafe extern "C" {
    static PqCommMethods: *const CommunicationMethods;
}

/// Microseconds between 1970-01-01 and 2000-01-01, where the server's times begin.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// The CopyData message.
const COPY_DATA: c_char = b'd' as c_char;

/// The connection of a session that writes to its client.
#[derive(Clone, Copy, Debug)]
pub struct Connection(());

impl Connection {
    /// The connection, if the context's writes go to a client: not in the SQL functions, which a walsender can run
    /// as well.
    pub fn of(context: &Context<'_>) -> Option<Self> {
        // SAFETY: reads a variable that is set before a backend runs anything.
        let walsender = unsafe { pg_sys::am_walsender };
        (walsender && context.reports_progress()).then_some(Connection(()))
    }

    /// Begins a frame in the context's buffer just as the server does, but for its bookkeeping.
    pub fn begin_frame(self, context: &mut Context<'_>, last_write: bool) {
        let lsn = if last_write { context.write_location() } else { Lsn(0) };
        // SAFETY: the buffer is valid during the callback, and nobody else uses it meanwhile.
        let mut buffer = unsafe { StringInfoBuffer::new(context.out()) };
        buffer.clear();
        xlog_data_header(&mut buffer, lsn, lsn, Timestamp(0));
    }

    /// Puts the frame in the context's buffer into the connection's, without sending it.
    pub fn put_frame(self, context: &mut Context<'_>, send_time: Timestamp) {
        let out = context.out();
        // SAFETY: the buffer holds a frame with a whole header. The call can raise an ERROR for lack of memory, which
        // passes over frames that hold nothing to drop (see `unguarded`).
        unsafe {
            let time = send_time.0.to_be_bytes();
            let data = (*out).data;
            core::ptr::copy_nonoverlapping(
                time.as_ptr(),
                data.cast::<u8>().add(SEND_TIME_OFFSET),
                time.len(),
            );
            ((*PqCommMethods).putmessage_noblock)(COPY_DATA, data, (*out).len as usize);
        }
    }

    /// Sends what can be sent without waiting. What goes wrong shows in the server's next write.
    pub fn flush_if_writable(self) {
        // SAFETY: the server's function, under the guard.
        unsafe {
            let flush = (*PqCommMethods).flush_if_writable;
            pg_sys::ffi::pg_guard_ffi_boundary(|| flush());
        }
    }

    /// Whether something waits to be sent.
    pub fn is_send_pending(self) -> bool {
        // SAFETY: as in put_frame; it only compares two numbers.
        unsafe { ((*PqCommMethods).is_send_pending)() }
    }

    /// Sends everything, waiting for the client if need be.
    pub fn flush(self) {
        // SAFETY: the server's function, under the guard.
        unsafe {
            let flush = (*PqCommMethods).flush;
            pg_sys::ffi::pg_guard_ffi_boundary(|| flush());
        }
    }
}

/// The time as the server counts it.
pub fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp(since_1970.map_or(0, |time| time.as_micros() as i64) - EPOCH_MICROSECONDS)
}

/// The time as the system's clock interrupt last saw it: some milliseconds behind [`now`], at a tenth of its price. A row
/// is put out in less time than `now` may take on a virtual machine.
#[cfg(target_os = "linux")]
pub fn recently() -> Timestamp {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct in; it can't fail for a clock that every Linux has.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    Timestamp(time.tv_sec * 1_000_000 + time.tv_nsec / 1000 - EPOCH_MICROSECONDS)
}

/// The time, where no cheaper clock is known.
#[cfg(not(target_os = "linux"))]
pub fn recently() -> Timestamp {
    now()
}
