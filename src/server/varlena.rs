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

/// From this size on, what was detoasted is freed at once; below, when the callback's memory is reset.
const LARGE: usize = 8192;

/// Hands the content of the value, without its header, to `f`. A compressed or toasted value is detoasted for it.
///
/// # Safety
/// `datum` must be a value of a varlena type.
#[inline]
pub unsafe fn with_content<R>(datum: Datum, f: impl FnOnce(&[u8]) -> R) -> R {
    let pointer = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: the caller's contract; what detoasting gives is palloc'd and ours.
    unsafe {
        let pointer = followed(pointer);
        if is_plain(pointer) {
            return f(pgrx::varlena::varlena_to_byte_slice(pointer));
        }
        let detoasted = pg_sys::detoast_attr(pointer);
        let content = pgrx::varlena::varlena_to_byte_slice(detoasted);
        let large = content.len() >= LARGE;
        let result = f(content);
        if large {
            pg_sys::pfree(detoasted.cast());
        }
        result
    }
}

/// Where the value itself is: a value whose toasted chunks are in the WAL has been put together by the server, and a
/// pointer in the tuple leads to it. Detoasting it would copy it.
///
/// # Safety
/// `pointer` must point to a varlena.
#[inline]
unsafe fn followed(pointer: *mut pg_sys::varlena) -> *mut pg_sys::varlena {
    // SAFETY: the caller's contract; the pointer lies unaligned behind the tag, and leads to no other of its kind.
    unsafe {
        if pgrx::varlena::varatt_is_1b_e(pointer)
            && pgrx::varlena::vartag_1b_e(pointer) == pg_sys::vartag_external::VARTAG_INDIRECT as u8
        {
            let content = (&raw const (*pointer.cast::<pg_sys::varattrib_1b_e>()).va_data);
            content.cast::<pg_sys::varatt_indirect>().read_unaligned().pointer
        } else {
            pointer
        }
    }
}

/// Whether the content lies behind the header as it is.
///
/// # Safety
/// `pointer` must point to a varlena.
#[inline]
unsafe fn is_plain(pointer: *const pg_sys::varlena) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        if pgrx::varlena::varatt_is_1b(pointer) {
            !pgrx::varlena::varatt_is_1b_e(pointer)
        } else {
            pgrx::varlena::varatt_is_4b_u(pointer)
        }
    }
}
