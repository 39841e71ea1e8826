//! Transactions and changes as the reorder buffer holds them.

use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use pgoutput_protocol::{Lsn, Timestamp, Xid};
use pgrx::pg_sys;

/// A transaction or subtransaction, for the duration of one callback.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    raw: NonNull<pg_sys::ReorderBufferTXN>,
    callback: PhantomData<&'a pg_sys::ReorderBufferTXN>,
}

/// What has become of a transaction's Begin message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginState {
    /// The transaction has none: it is prepared or streamed.
    None,
    /// It waits for the first message that is really sent.
    HeldBack,
    /// It has been sent.
    Sent,
}

/// Stand for the states in the transaction's private pointer, which nothing ever follows. The state so belongs
/// to the transaction and needs no memory.
const HELD_BACK: usize = 1;
const SENT: usize = 2;

impl<'a> Transaction<'a> {
    /// Wraps what the server passed to a callback; `None` for a null pointer, which a non-transactional message
    /// has.
    ///
    /// # Safety
    /// `raw` must be null or valid for `'a`.
    pub unsafe fn from_raw(raw: *mut pg_sys::ReorderBufferTXN) -> Option<Self> {
        NonNull::new(raw).map(|raw| Transaction { raw, callback: PhantomData })
    }

    fn get(&self) -> &'a pg_sys::ReorderBufferTXN {
        // SAFETY: valid for the callback (from_raw).
        unsafe { self.raw.as_ref() }
    }

    /// The xid.
    pub fn xid(&self) -> Xid {
        super::xid(self.get().xid)
    }

    /// The top-level transaction: itself unless it is a subtransaction.
    pub fn top_level(&self) -> Transaction<'a> {
        let toptxn = self.get().toptxn;
        let is_subtransaction = !toptxn.is_null() && super::is_subtransaction(self.get());
        match NonNull::new(toptxn) {
            Some(raw) if is_subtransaction => Transaction { raw, callback: PhantomData },
            _ => *self,
        }
    }

    /// Where the commit, prepare or abort record begins.
    pub fn final_lsn(&self) -> Lsn {
        Lsn(self.get().final_lsn)
    }

    /// Where that record ends.
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.get().end_lsn)
    }

    /// When the transaction was committed, prepared or aborted, whichever it was.
    pub fn time(&self) -> Timestamp {
        Timestamp(super::transaction_time(self.get()))
    }

    /// The gid of a prepared transaction, empty for any other.
    pub fn gid(&self) -> &'a CStr {
        let gid = self.get().gid;
        if gid.is_null() {
            return c"";
        }
        // SAFETY: the reorder buffer's NUL-terminated copy, which lives as long as the transaction.
        unsafe { CStr::from_ptr(gid) }
    }

    /// The replication origin, 0 for none.
    pub fn origin_id(&self) -> u16 {
        self.get().origin_id
    }

    /// The commit's LSN on the origin server.
    pub fn origin_lsn(&self) -> Lsn {
        Lsn(self.get().origin_lsn)
    }

    /// Whether a stream block of the transaction has been sent before.
    pub fn is_streamed(&self) -> bool {
        self.get().txn_flags & pg_sys::RBTXN_IS_STREAMED != 0
    }

    /// What has become of the Begin message.
    pub fn begin_state(&self) -> BeginState {
        match self.get().output_plugin_private.addr() {
            0 => BeginState::None,
            HELD_BACK => BeginState::HeldBack,
            _ => BeginState::Sent,
        }
    }

    /// Remembers what has become of the Begin message.
    pub fn set_begin_state(&self, state: BeginState) {
        let marker = match state {
            BeginState::None => 0,
            BeginState::HeldBack => HELD_BACK,
            BeginState::Sent => SENT,
        };
        // SAFETY: the field is the plugin's own; the server neither reads nor frees it.
        unsafe { (*self.raw.as_ptr()).output_plugin_private = ptr::without_provenance_mut(marker) }
    }
}

/// One change of a transaction, for the duration of one callback.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    raw: NonNull<pg_sys::ReorderBufferChange>,
    callback: PhantomData<&'a pg_sys::ReorderBufferChange>,
}

/// The kinds of change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new row.
    Insert,
    /// A changed row.
    Update,
    /// A deleted row.
    Delete,
}

/// A tuple of a change, for the duration of one callback.
#[derive(Clone, Copy, Debug)]
pub struct HeapTuple<'a> {
    raw: NonNull<pg_sys::HeapTupleData>,
    callback: PhantomData<&'a pg_sys::HeapTupleData>,
}

impl HeapTuple<'_> {
    /// The server's own pointer.
    pub fn as_ptr(&self) -> *mut pg_sys::HeapTupleData {
        self.raw.as_ptr()
    }
}

impl<'a> Change<'a> {
    /// Wraps what the server passed to a callback.
    ///
    /// # Safety
    /// `raw` must be valid for `'a`.
    pub unsafe fn from_raw(raw: *mut pg_sys::ReorderBufferChange) -> Self {
        // SAFETY: the server never passes a null change.
        Change { raw: unsafe { NonNull::new_unchecked(raw) }, callback: PhantomData }
    }

    fn get(&self) -> &'a pg_sys::ReorderBufferChange {
        // SAFETY: valid for the callback (from_raw).
        unsafe { self.raw.as_ref() }
    }

    /// The (sub)transaction that made the change.
    pub fn transaction(&self) -> Option<Transaction<'a>> {
        // SAFETY: it lives as long as the change.
        unsafe { Transaction::from_raw(self.get().txn) }
    }

    /// What was done to a row; `None` if the change isn't one of a row.
    pub fn action(&self) -> Option<Action> {
        use pg_sys::ReorderBufferChangeType as Type;
        match self.get().action {
            Type::REORDER_BUFFER_CHANGE_INSERT => Some(Action::Insert),
            Type::REORDER_BUFFER_CHANGE_UPDATE => Some(Action::Update),
            Type::REORDER_BUFFER_CHANGE_DELETE => Some(Action::Delete),
            _ => None,
        }
    }

    /// The old tuple of a change of a row: that of an Update or a Delete, if it was logged.
    pub fn old_tuple(&self) -> Option<HeapTuple<'a>> {
        NonNull::new(super::tuples(self.get()).0).map(|raw| HeapTuple { raw, callback: PhantomData })
    }

    /// The new tuple of a change of a row: that of an Insert or an Update.
    pub fn new_tuple(&self) -> Option<HeapTuple<'a>> {
        NonNull::new(super::tuples(self.get()).1).map(|raw| HeapTuple { raw, callback: PhantomData })
    }

    /// The CASCADE and RESTART IDENTITY of a truncate.
    pub fn truncate_options(&self) -> (bool, bool) {
        // SAFETY: only called in the truncate callback, where this is the union's member.
        let truncate = unsafe { self.get().data.truncate };
        (truncate.cascade, truncate.restart_seqs)
    }
}
