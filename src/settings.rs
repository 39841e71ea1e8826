//! The plugin's settings.

use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

/// 64 kB: from there on, a larger buffer saves nothing that can be measured.
const DEFAULT_FLUSH_BYTES: i32 = 64 * 1024;
/// 16 MB: gathering more only makes the client wait.
const MAXIMUM_FLUSH_BYTES: i32 = 16 * 1024 * 1024;

static FLUSH_BYTES: GucSetting<i32> = GucSetting::<i32>::new(DEFAULT_FLUSH_BYTES);

/// Defines the settings; once in a process, when the library is loaded.
pub fn define() {
    GucRegistry::define_int_guc(
        c"pgoutput_rs.flush_bytes",
        c"Sets how many bytes of messages a walsender gathers before it sends them.",
        c"The end of a transaction or stream block sends what has been gathered in any case. 0 sends every message by itself.",
        &FLUSH_BYTES,
        0,
        MAXIMUM_FLUSH_BYTES,
        GucContext::Userset,
        GucFlags::UNIT_BYTE,
    );
    // SAFETY: called while the library is loaded; the prefix is NUL-terminated.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"pgoutput_rs".as_ptr()) }
}

/// `pgoutput_rs.flush_bytes`, in bytes; 0 turns gathering off.
#[inline]
pub fn flush_bytes() -> usize {
    FLUSH_BYTES.get() as usize
}
