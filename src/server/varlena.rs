//! Values with a varlena header.

use pgrx::pg_sys;
use pgrx::pg_sys::Datum;

/// Whether the value is a pointer to a value toasted on disk.
///
/// # Safety
/// `datum` must be a value of a varlena type.
#[inline]
pub unsafe fn is_external_on_disk(datum: Datum) -> bool {
    let pointer = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: the caller's contract: a varlena has at least its header, and an external one its tag.
    unsafe {
        pgrx::varlena::varatt_is_1b_e(pointer)
            && pgrx::varlena::vartag_1b_e(pointer) == pg_sys::vartag_external::VARTAG_ONDISK as u8
    }
}
