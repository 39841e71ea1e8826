//! Evaluation of row filters.

use core::ffi::CStr;

use pgrx::pg_sys;
use pgrx::pg_sys::Datum;

use super::memory::MemoryContext;
use super::relation::{OwnedDescriptor, Relation};

/// What the expressions of one relation's row filters are evaluated with. A handle without ownership: it lives
/// in the memory context that it was created in.
#[derive(Clone, Copy, Debug)]
pub struct FilterState {
    executor: *mut pg_sys::EState,
    slot: *mut pg_sys::TupleTableSlot,
}

/// A row filter, ready to be evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    expression: *mut pg_sys::ExprState,
}

impl FilterState {
    /// Creates it in `memory`, for rows of `descriptor`.
    pub fn create(descriptor: &OwnedDescriptor, memory: MemoryContext) -> Self {
        let entered = memory.enter();
        // SAFETY: all of it is allocated in `memory`, where the descriptor is, too. The slot is virtual: its
        // values are filled in by `matches`, and marked as stored once and for all.
        let state = unsafe {
            let executor = pg_sys::CreateExecutorState();
            let descriptor = descriptor.get().as_ptr();
            let slot = pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual);
            pg_sys::ExecStoreVirtualTuple(slot);
            FilterState { executor, slot }
        };
        entered.leave();
        state
    }

    /// Prepares the disjunction of `filters`, each the text form of an expression over the columns of
    /// `relation`. There must be one at least.
    pub fn prepare(self, filters: &[&CStr], relation: Relation<'_>, memory: MemoryContext) -> Filter {
        let entered = memory.enter();
        // SAFETY: the texts come from pg_publication_rel, where the server put valid expressions; the relation
        // is open.
        let expression = unsafe {
            let mut disjunction: *mut pg_sys::List = core::ptr::null_mut();
            for filter in filters {
                let node = pg_sys::stringToNode(filter.as_ptr()).cast::<pg_sys::Node>();
                let node = super::expand_generated_columns(node, relation.as_ptr());
                disjunction = pg_sys::lappend(disjunction, node.cast());
            }
            pg_sys::ExecPrepareExpr(pg_sys::make_orclause(disjunction), self.executor)
        };
        entered.leave();
        Filter { expression }
    }

    /// Whether the row passes the filter. Null is false.
    pub fn matches(self, filter: Filter, values: &[Datum], nulls: &[bool]) -> bool {
        // SAFETY: the slot has as many places as its descriptor has attributes, which are those of `values` and
        // `nulls` (checked); the values outlive the evaluation. evalfunc can raise an ERROR and so is called
        // under the guard, with nothing in the frame that needs dropping.
        unsafe {
            let count = (*(*self.slot).tts_tupleDescriptor).natts as usize;
            assert!(values.len() == count && nulls.len() == count, "a row has its relation's columns");
            core::ptr::copy_nonoverlapping(values.as_ptr(), (*self.slot).tts_values, count);
            core::ptr::copy_nonoverlapping(nulls.as_ptr(), (*self.slot).tts_isnull, count);

            let mut context = (*self.executor).es_per_tuple_exprcontext;
            if context.is_null() {
                context = pg_sys::MakePerTupleExprContext(self.executor);
            }
            (*context).ecxt_scantuple = self.slot;
            let memory = MemoryContext::from_raw((*context).ecxt_per_tuple_memory);
            let entered = memory.enter();
            let mut null = false;
            let expression = filter.expression;
            let result = match (*expression).evalfunc {
                Some(evaluate) => {
                    pg_sys::ffi::pg_guard_ffi_boundary(|| evaluate(expression, context, &mut null))
                }
                None => unreachable!("a prepared expression has its function"),
            };
            entered.leave();
            memory.reset();
            !null && result.value() & 0xff != 0
        }
    }
}
