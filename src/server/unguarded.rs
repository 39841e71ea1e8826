//! Functions of the server that every row needs, without pgrx's guard.
//!
//! The guard turns an ERROR into an unwinding that runs destructors, and costs more than these functions do. Without it an
//! ERROR jumps to the server's handler at once: between a callback's entry and such a call, no frame may hold anything
//! that has to be dropped.

use pgrx::pg_sys;
use pgrx::pg_sys::Datum;

unsafe extern "C-unwind" {
    /// Takes a tuple apart, into arrays that have room for each attribute of the descriptor.
    pub fn heap_deform_tuple(
        tuple: pg_sys::HeapTuple,
        descriptor: pg_sys::TupleDesc,
        values: *mut Datum,
        nulls: *mut bool,
    );
}
