//! The server's cache invalidations, as far as they concern a decoding session.
//!
//! Invalidation callbacks can't be unregistered and know no session, so this is the one place with process-wide
//! state: the view that callbacks have of the live session. They come at any time that a catalog is read, in the
//! middle of our own callbacks too, and so only ever set flags: nothing is freed or rebuilt before the next
//! look-up.

use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use std::rc::Rc;

use pgrx::pg_sys::{Datum, Oid};
use pgrx::prelude::*;
use rustc_hash::FxHashMap;

use super::{CacheId, SystemCache};

/// What the session has cached and callbacks can invalidate.
#[derive(Debug, Default)]
pub struct Watch {
    /// The list of publications is up to date.
    pub publications_valid: Cell<bool>,
    /// The output functions of types are up to date.
    pub types_valid: Cell<bool>,
    relations: RefCell<FxHashMap<Oid, Rc<RelationState>>>,
}

/// What the session has cached of one relation.
#[derive(Debug, Default)]
pub struct RelationState {
    /// The relation's entry is up to date.
    pub entry_valid: Cell<bool>,
    /// How often the relation has changed, for those that have cached something of it without owning its entry:
    /// partitions that go out as it.
    pub changes: Cell<u64>,
}

impl RelationState {
    fn invalidate(&self) {
        self.entry_valid.set(false);
        self.changes.set(self.changes.get().wrapping_add(1));
    }
}

impl Watch {
    /// The state of a relation, from now on kept up to date.
    pub fn relation(&self, oid: Oid) -> Rc<RelationState> {
        Rc::clone(self.relations.borrow_mut().entry(oid).or_default())
    }

    fn invalidate_relation(&self, oid: Oid) {
        if oid == Oid::INVALID {
            self.invalidate_relations();
        } else if let Some(state) = self.relations.borrow().get(&oid) {
            state.invalidate();
        }
    }

    fn invalidate_relations(&self) {
        for state in self.relations.borrow().values() {
            state.invalidate();
        }
    }
}

thread_local! {
    /// The live session's view, if there is a live session. A backend has one thread.
    static LIVE: RefCell<Option<Rc<Watch>>> = const { RefCell::new(None) };
    /// Whether the callbacks have been registered: once in a process, since there are few slots for them.
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Makes `watch` the live session's view and registers the callbacks if this process hasn't yet.
pub fn attach(watch: &Rc<Watch>) {
    LIVE.with(|live| *live.borrow_mut() = Some(Rc::clone(watch)));
    if !REGISTERED.get() {
        super::register_invalidation_callbacks();
        REGISTERED.set(true);
    }
}

/// Ends what [`attach`] began. If another session has been attached since, it stays.
pub fn detach(watch: &Rc<Watch>) {
    // The thread's storage may be gone when a process exits; then there is nothing to detach.
    let _ = LIVE.try_with(|live| {
        if let Ok(mut live) = live.try_borrow_mut()
            && live.as_ref().is_some_and(|current| Rc::ptr_eq(current, watch))
        {
            *live = None;
        }
    });
}

fn with_live(f: impl FnOnce(&Watch)) {
    let _ = LIVE.try_with(|live| {
        if let Ok(live) = live.try_borrow()
            && let Some(watch) = live.as_deref()
        {
            f(watch);
        }
    });
}

/// For relcache and relation-sync invalidations.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn relation_changed(_argument: Datum, relation: Oid) {
    with_live(|watch| watch.invalidate_relation(relation));
}

/// For system caches: the argument tells what is to be invalidated.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn catalog_changed(argument: Datum, _cache: CacheId, _hash: u32) {
    with_live(|watch| match Effect::from_datum(argument) {
        Effect::Publications => watch.publications_valid.set(false),
        Effect::Relations => watch.invalidate_relations(),
        Effect::PublicationsAndRelations => {
            watch.publications_valid.set(false);
            watch.invalidate_relations();
        }
        Effect::Types => watch.types_valid.set(false),
    });
}

/// What a change of a catalog invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "no version has them all")]
pub(super) enum Effect {
    /// The list of publications.
    Publications,
    /// Every relation entry.
    Relations,
    /// Both.
    PublicationsAndRelations,
    /// The output functions of types.
    Types,
}

impl Effect {
    fn from_datum(datum: Datum) -> Self {
        const PUBLICATIONS: usize = Effect::Publications as usize;
        const RELATIONS: usize = Effect::Relations as usize;
        const TYPES: usize = Effect::Types as usize;
        match datum.value() {
            PUBLICATIONS => Effect::Publications,
            RELATIONS => Effect::Relations,
            TYPES => Effect::Types,
            _ => Effect::PublicationsAndRelations,
        }
    }
}

/// Registers the callback of a system cache.
pub(super) fn watch_catalog(cache: SystemCache, effect: Effect) {
    // SAFETY: the callback has the signature that the server asks for and stays loaded with the library.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(
            cache.id() as c_int as CacheId,
            Some(catalog_changed),
            Datum::from(effect as usize),
        );
    }
}
