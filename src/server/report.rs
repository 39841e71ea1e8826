//! ERRORs and WARNINGs in the server's own words.
//!
//! The format strings are those of the built-in plugin and go through the server's `errmsg`, so that a message
//! comes out in the language of `lc_messages` and names come out in the database's encoding, whatever it is.

use core::ffi::{CStr, c_char, c_int};

use pgrx::pg_sys;
use pgrx::pg_sys::elog::PgLogLevel;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;

unsafe extern "C-unwind" {
    fn errstart(elevel: c_int, domain: *const c_char) -> bool;
    fn errfinish(filename: *const c_char, lineno: c_int, funcname: *const c_char);
    fn errcode(sqlerrcode: c_int) -> c_int;
    fn errmsg(format: *const c_char, ...) -> c_int;
    fn errdetail(format: *const c_char, ...) -> c_int;
    fn errhint(format: *const c_char, ...) -> c_int;
}

/// An argument of a message's format: exactly one that the format asks for.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// For `%d`.
    Integer(i32),
    /// For `%u`.
    Unsigned(u32),
    /// For `%s`, in the database's encoding.
    Text(&'a CStr),
}

/// A message with up to two arguments.
#[derive(Clone, Copy, Debug)]
pub struct Format<'a> {
    /// The format string, as the message catalogs know it.
    pub format: &'static CStr,
    /// Its arguments.
    pub arguments: &'a [Argument<'a>],
}

impl Format<'_> {
    /// Hands the message to one of the server's variadic functions.
    ///
    /// # Safety
    /// Between errstart and errfinish only, and the arguments must be what the format asks for.
    unsafe fn apply(&self, function: unsafe extern "C-unwind" fn(*const c_char, ...) -> c_int) {
        use Argument::{Integer, Text, Unsigned};
        let format = self.format.as_ptr();
        // SAFETY: the caller's contract; every Text is NUL-terminated.
        unsafe {
            match *self.arguments {
                [] => function(format),
                [Integer(a)] => function(format, a),
                [Unsigned(a)] => function(format, a),
                [Text(a)] => function(format, a.as_ptr()),
                [Integer(a), Integer(b)] => function(format, a, b),
                [Text(a), Text(b)] => function(format, a.as_ptr(), b.as_ptr()),
                // No message of ours has such arguments; what arrives is at least legible.
                _ => function(c"%s".as_ptr(), format),
            };
        }
    }
}

/// What is reported beside the level.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The SQLSTATE.
    pub sqlstate: PgSqlErrorCode,
    /// The primary message.
    pub message: Format<'a>,
    /// DETAIL.
    pub detail: Option<Format<'a>>,
    /// HINT.
    pub hint: Option<Format<'a>>,
}

impl Report<'_> {
    fn emit(&self, level: c_int) {
        let body = || {
            // SAFETY: this is the order in which the server's ereport calls them; the strings live for the
            // calls; nothing with a destructor is alive in this frame when errfinish jumps.
            unsafe {
                if errstart(level, core::ptr::null()) {
                    errcode(self.sqlstate as c_int);
                    self.message.apply(errmsg);
                    if let Some(detail) = &self.detail {
                        detail.apply(errdetail);
                    }
                    if let Some(hint) = &self.hint {
                        hint.apply(errhint);
                    }
                    errfinish(c"pgoutput_rs".as_ptr(), 0, c"report".as_ptr());
                }
            }
        };
        // SAFETY: called on the backend's only thread, and the closure owns nothing that needs dropping.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(body) }
    }

    /// Raises it as an ERROR. Unwinds to the callback's boundary, where the server takes over.
    pub fn error(&self) -> ! {
        self.emit(PgLogLevel::ERROR as c_int);
        unreachable!("an ERROR doesn't return")
    }

    /// Raises it as a WARNING and returns.
    pub fn warning(&self) {
        self.emit(PgLogLevel::WARNING as c_int);
    }
}

/// Logs at DEBUG1.
pub fn debug(message: Format<'_>) {
    if !is_interesting(PgLogLevel::DEBUG1 as c_int) {
        return;
    }
    Report { sqlstate: PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, detail: None, hint: None }
        .emit(PgLogLevel::DEBUG1 as c_int);
}

fn is_interesting(level: c_int) -> bool {
    // SAFETY: only reads the level settings.
    unsafe { pg_sys::message_level_is_interesting(level) }
}
