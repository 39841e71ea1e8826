//! Resolved output and send functions.

use core::ffi::{CStr, c_void};

use pgrx::pg_sys;
use pgrx::pg_sys::{Datum, Oid};

use super::memory::MemoryContext;

/// A function that is looked up once and called often.
#[derive(Debug)]
pub struct Function {
    resolved: pg_sys::FmgrInfo,
}

/// Values from this size on are freed at once; smaller ones when the callback's memory is reset.
const LARGE: usize = 8192;

impl Function {
    /// Looks the function up. What it caches across calls lives in `memory`.
    pub fn resolve(oid: Oid, memory: MemoryContext) -> Self {
        let mut resolved = pg_sys::FmgrInfo::default();
        // SAFETY: fills the structure; the context outlives it (see the type cache, which owns both).
        unsafe { pg_sys::fmgr_info_cxt(oid, &mut resolved, memory.as_ptr()) };
        Function { resolved }
    }

    /// Calls it as a type's output function and hands the text, in the database's encoding, to `f`.
    ///
    /// # Safety
    /// The function must be the output function of the value's type.
    pub unsafe fn output<R>(&mut self, value: Datum, f: impl FnOnce(&CStr) -> R) -> R {
        // SAFETY: the caller's contract; an output function returns a palloc'd, NUL-terminated string.
        unsafe {
            let text = pg_sys::OutputFunctionCall(&mut self.resolved, value);
            let text_ref = CStr::from_ptr(text);
            let large = text_ref.count_bytes() >= LARGE;
            let result = f(text_ref);
            free_if(large, text.cast());
            result
        }
    }

    /// Calls it as a type's send function and hands the bytes to `f`.
    ///
    /// # Safety
    /// The function must be the send function of the value's type.
    pub unsafe fn send<R>(&mut self, value: Datum, f: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: the caller's contract; the result is palloc'd and never toasted.
        unsafe {
            let bytes = pg_sys::SendFunctionCall(&mut self.resolved, value);
            let slice = pgrx::varlena::varlena_to_byte_slice(bytes);
            let large = slice.len() >= LARGE;
            let result = f(slice);
            free_if(large, bytes.cast());
            result
        }
    }
}

/// # Safety
/// `pointer` must be palloc'd and unused from now on.
unsafe fn free_if(large: bool, pointer: *mut c_void) {
    if large {
        // SAFETY: the caller's contract.
        unsafe { pg_sys::pfree(pointer) }
    }
}
