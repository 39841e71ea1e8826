//! The server's lists and value nodes.

use core::ffi::{CStr, c_void};

use pgrx::pg_sys;

/// The pointers of a list of pointers; nothing for NIL.
pub fn pointers<'a>(list: *const pg_sys::List) -> impl Iterator<Item = *mut c_void> + 'a {
    // SAFETY: every cell of a pointer list holds its pointer; a list that the server handed out is valid.
    cells(list).iter().map(|cell| unsafe { cell.ptr_value })
}

/// The oids of a list of oids; nothing for NIL.
pub fn oids(list: *const pg_sys::List) -> Vec<pg_sys::Oid> {
    // SAFETY: every cell of an oid list holds its oid.
    cells(list).iter().map(|cell| unsafe { cell.oid_value }).collect()
}

fn cells<'a>(list: *const pg_sys::List) -> &'a [pg_sys::ListCell] {
    if list.is_null() {
        return &[];
    }
    // SAFETY: a list that isn't NIL has `length` cells at `elements`.
    unsafe { core::slice::from_raw_parts((*list).elements, (*list).length as usize) }
}

/// The text of a String node.
///
/// # Safety
/// `node` must be a String node that lives for `'a`.
pub unsafe fn string_node<'a>(node: *const pg_sys::Node) -> &'a CStr {
    // SAFETY: the caller's contract; the node's text is NUL-terminated.
    unsafe { CStr::from_ptr((*node.cast::<pg_sys::String>()).sval) }
}
