//! The decoding context that the server hands to every callback.

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;

use pgoutput_protocol::Lsn;
use pgrx::pg_sys;

use super::memory::MemoryContext;

/// The server's LogicalDecodingContext, for the duration of one callback.
#[derive(Debug)]
pub struct Context<'a> {
    raw: NonNull<pg_sys::LogicalDecodingContext>,
    callback: PhantomData<&'a mut pg_sys::LogicalDecodingContext>,
}

/// An option of START_REPLICATION or of the SQL functions: its name and what was given for it.
pub type PluginOption<'a> = (&'a CStr, Option<&'a CStr>);

impl<'a> Context<'a> {
    /// Wraps what the server passed to a callback.
    ///
    /// # Safety
    /// `raw` must be the context of the callback that is running, and no other Context of it may be in use.
    pub unsafe fn from_raw(raw: *mut pg_sys::LogicalDecodingContext) -> Self {
        // SAFETY: the server never passes a null context.
        Context { raw: unsafe { NonNull::new_unchecked(raw) }, callback: PhantomData }
    }

    fn get(&self) -> &pg_sys::LogicalDecodingContext {
        // SAFETY: valid for the callback (from_raw).
        unsafe { self.raw.as_ref() }
    }

    fn get_mut(&mut self) -> &mut pg_sys::LogicalDecodingContext {
        // SAFETY: valid and not otherwise borrowed for the callback (from_raw).
        unsafe { self.raw.as_mut() }
    }

    /// The server's own pointer.
    pub fn as_ptr(&self) -> *mut pg_sys::LogicalDecodingContext {
        self.raw.as_ptr()
    }

    /// The memory context that lives as long as the decoding session.
    pub fn memory(&self) -> MemoryContext {
        // SAFETY: it outlives every callback of the session.
        unsafe { MemoryContext::from_raw(self.get().context) }
    }

    /// The pointer that the plugin keeps in the context.
    pub fn private(&self) -> *mut c_void {
        self.get().output_plugin_private
    }

    /// Keeps a pointer in the context.
    pub fn set_private(&mut self, pointer: *mut c_void) {
        self.get_mut().output_plugin_private = pointer;
    }

    /// The options that the client gave, in its order.
    pub fn options(&self) -> Vec<PluginOption<'a>> {
        let mut options = Vec::new();
        for element in super::list::pointers(self.get().output_plugin_options) {
            let element = element.cast::<pg_sys::DefElem>();
            // SAFETY: the list holds DefElems whose argument is a String node or null; both live in memory of
            // the replication command, longer than the callback.
            unsafe {
                let name = CStr::from_ptr((*element).defname);
                let value = (*element).arg;
                let value = if value.is_null() { None } else { Some(super::list::string_node(value)) };
                options.push((name, value));
            }
        }
        options
    }

    /// Whether in-progress transactions will be streamed.
    pub fn streaming(&self) -> bool {
        self.get().streaming
    }

    /// Lets the server stream in-progress transactions or not.
    pub fn set_streaming(&mut self, on: bool) {
        self.get_mut().streaming = on;
    }

    /// Whether the server can decode prepared transactions at PREPARE.
    pub fn two_phase(&self) -> bool {
        self.get().twophase
    }

    /// Lets the server decode prepared transactions at PREPARE or not.
    pub fn set_two_phase(&mut self, on: bool) {
        self.get_mut().twophase = on;
    }

    /// Tells the server whether the client asked for two-phase decoding.
    pub fn set_two_phase_option_given(&mut self, given: bool) {
        self.get_mut().twophase_opt_given = given;
    }

    /// Begins a message: the server resets its buffer and writes the frame's header, which shows the write
    /// location if `last_write`, and zeroes otherwise.
    pub fn prepare_write(&mut self, last_write: bool) {
        // SAFETY: inside a callback, with the server's context.
        unsafe { pg_sys::OutputPluginPrepareWrite(self.as_ptr(), last_write) }
    }

    /// The buffer of the message that [`prepare_write`](Self::prepare_write) began.
    pub fn out(&mut self) -> *mut pg_sys::StringInfoData {
        self.get().out
    }

    /// Sends the message that [`prepare_write`](Self::prepare_write) began.
    pub fn write(&mut self, last_write: bool) {
        // SAFETY: inside a callback, with the server's context.
        unsafe { pg_sys::OutputPluginWrite(self.as_ptr(), last_write) }
    }

    /// Declares the buffer's content a message that [`prepare_write`](Self::prepare_write) began, for
    /// [`write`](Self::write) to send: a frame with the same header.
    pub fn adopt_frame(&mut self) {
        self.get_mut().prepared_write = true;
    }

    /// The location that frames show.
    pub fn write_location(&self) -> Lsn {
        Lsn(self.get().write_location)
    }

    /// Whether there is somebody to report progress to, which is so only where a walsender's client is written to.
    pub fn reports_progress(&self) -> bool {
        self.get().update_progress.is_some()
    }

    /// Reports progress; `skipped` says that the transaction sent nothing.
    pub fn update_progress(&mut self, skipped: bool) {
        // SAFETY: inside a callback, with the server's context.
        unsafe { pg_sys::OutputPluginUpdateProgress(self.as_ptr(), skipped) }
    }

    /// Whether the callback is one that ends a transaction.
    pub fn ends_transaction(&self) -> bool {
        self.get().end_xact
    }
}
