//! Memory contexts, as far as a session needs them.

use core::ffi::{CStr, c_void};

use pgrx::pg_sys;

/// The most that the server allocates at once, in bytes: its MaxAllocSize.
pub const MAXIMUM_ALLOCATION: usize = 0x3fff_ffff;

/// A memory context of the server that belongs to a decoding session.
///
/// It is a handle without ownership: its parent deletes it at the latest, and a session that ends by an ERROR
/// must not touch it any more (the parent's children are gone before the parent's reset callbacks run).
#[derive(Clone, Copy, Debug)]
pub struct MemoryContext(pg_sys::MemoryContext);

impl MemoryContext {
    /// Wraps a context of the server.
    ///
    /// # Safety
    /// `context` must be valid for as long as the handle and its copies are used.
    pub unsafe fn from_raw(context: pg_sys::MemoryContext) -> Self {
        MemoryContext(context)
    }

    /// Creates a child. `name` shows in `pg_backend_memory_contexts`.
    pub fn create_child(self, name: &'static CStr, size: ContextSize) -> Self {
        let (minimum, initial, maximum) = match size {
            ContextSize::Small => (
                pg_sys::ALLOCSET_SMALL_MINSIZE,
                pg_sys::ALLOCSET_SMALL_INITSIZE,
                pg_sys::ALLOCSET_SMALL_MAXSIZE,
            ),
            ContextSize::Default => (
                pg_sys::ALLOCSET_DEFAULT_MINSIZE,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE,
            ),
        };
        // SAFETY: the parent is valid (from_raw) and the name lives as long as the program.
        MemoryContext(unsafe {
            pg_sys::AllocSetContextCreateInternal(
                self.0,
                name.as_ptr(),
                minimum as usize,
                initial as usize,
                maximum as usize,
            )
        })
    }

    /// Makes this the current context until the returned guard's [`leave`](Entered::leave).
    ///
    /// An ERROR needs no restoring: the server switches contexts itself when it handles one.
    pub fn enter(self) -> Entered {
        // SAFETY: the context is valid (from_raw), and CurrentMemoryContext is ours to switch in a backend's
        // only thread.
        unsafe {
            let previous = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = self.0;
            Entered { previous }
        }
    }

    /// Frees all that was allocated in it, its children included.
    pub fn reset(self) {
        // SAFETY: the context is valid (from_raw); what it held is not used any more by the caller's contract.
        unsafe {
            // The server would find out the same, but behind a guarded call, which a row can do without.
            if (*self.0).isReset && (*self.0).firstchild.is_null() {
                return;
            }
            pg_sys::MemoryContextReset(self.0);
        }
    }

    /// Deletes it. The handle and its copies must not be used afterwards.
    pub fn delete(self) {
        // SAFETY: as in reset.
        unsafe { pg_sys::MemoryContextDelete(self.0) }
    }

    /// Calls `function` with `argument` when the context is reset or deleted.
    pub fn on_reset(self, function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) {
        // SAFETY: the callback's record is allocated in the context itself and so lives until the callback.
        unsafe {
            let callback = pg_sys::MemoryContextAllocZero(self.0, size_of::<pg_sys::MemoryContextCallback>())
                .cast::<pg_sys::MemoryContextCallback>();
            (*callback).func = Some(function);
            (*callback).arg = argument;
            pg_sys::MemoryContextRegisterResetCallback(self.0, callback);
        }
    }

    /// The server's own pointer.
    pub fn as_ptr(self) -> pg_sys::MemoryContext {
        self.0
    }
}

/// The block sizes of a new context.
#[derive(Clone, Copy, Debug)]
pub enum ContextSize {
    /// For a context that stays small and of which there are many.
    Small,
    /// The server's default.
    Default,
}

/// A memory context has been entered; see [`MemoryContext::enter`].
#[must_use = "the context stays current until leave"]
pub struct Entered {
    previous: pg_sys::MemoryContext,
}

impl Entered {
    /// Makes the context current that was current before.
    pub fn leave(self) {
        // SAFETY: the caller of enter ran in this context and it outlives the callback.
        unsafe { pg_sys::CurrentMemoryContext = self.previous }
    }
}
