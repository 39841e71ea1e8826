//! The callback table, and one guarded entry for each callback.
//!
//! "Output Plugin Callbacks" of "Logical Decoding Output Plugins" in the PostgreSQL manual. An entry does no more
//! than wrap what the server passes and call the session: its memory is reset afterwards, and an error becomes the
//! server's ERROR.

use core::ffi::{CStr, c_char, c_int, c_void};

use pgoutput_protocol::{Lsn, Timestamp};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::Error;
use crate::server::context::Context;
use crate::server::relation::Relation;
use crate::server::transaction::{Change, Transaction};
use crate::session::Session;

/// Fills the server's table in.
pub fn register(callbacks: &mut pg_sys::OutputPluginCallbacks) {
    callbacks.startup_cb = Some(startup);
    callbacks.shutdown_cb = Some(shutdown);
    callbacks.filter_by_origin_cb = Some(filter_by_origin);

    callbacks.begin_cb = Some(begin);
    callbacks.change_cb = Some(change);
    callbacks.truncate_cb = Some(truncate);
    callbacks.message_cb = Some(message);
    callbacks.commit_cb = Some(commit);

    callbacks.begin_prepare_cb = Some(begin_prepare);
    callbacks.prepare_cb = Some(prepare);
    callbacks.commit_prepared_cb = Some(commit_prepared);
    callbacks.rollback_prepared_cb = Some(rollback_prepared);

    callbacks.stream_start_cb = Some(stream_start);
    callbacks.stream_stop_cb = Some(stream_stop);
    callbacks.stream_abort_cb = Some(stream_abort);
    callbacks.stream_commit_cb = Some(stream_commit);
    callbacks.stream_prepare_cb = Some(stream_prepare);
    callbacks.stream_change_cb = Some(change);
    callbacks.stream_message_cb = Some(message);
    callbacks.stream_truncate_cb = Some(truncate);
}

/// Runs a callback of a session.
///
/// # Safety
/// `context` must be what the server passed to the callback, after startup.
unsafe fn run(
    context: *mut pg_sys::LogicalDecodingContext,
    f: impl FnOnce(&mut Session, &mut Context<'_>) -> Result<(), Error>,
) {
    // SAFETY: the caller's contract. The session was put into the context at startup and is dropped with the
    // context's memory; callbacks of one context don't nest, so nobody else borrows it.
    let (mut context, session) = unsafe {
        let context = Context::from_raw(context);
        let session = &mut *context.private().cast::<Session>();
        (context, session)
    };
    let entered = session.callback_memory().enter();
    let result = f(session, &mut context);
    entered.leave();
    session.end_callback();
    if let Err(error) = result {
        error.raise();
    }
}

/// Drops a session when the memory of its context goes, whether by shutdown or by an ERROR.
///
/// The context's children are gone by then, and nothing may be raised: the session owns Rust memory only.
unsafe extern "C-unwind" fn drop_session(session: *mut c_void) {
    // SAFETY: the pointer is the one that startup registered, and the server calls this once.
    drop(unsafe { Box::from_raw(session.cast::<Session>()) });
}

#[pg_guard]
unsafe extern "C-unwind" fn startup(
    context: *mut pg_sys::LogicalDecodingContext,
    options: *mut pg_sys::OutputPluginOptions,
    is_init: bool,
) {
    // SAFETY: the server passes valid pointers.
    let mut context = unsafe {
        (*options).output_type = pg_sys::OutputPluginOutputType::OUTPUT_PLUGIN_BINARY_OUTPUT;
        Context::from_raw(context)
    };
    let session = if is_init { Ok(Session::initialize(&mut context)) } else { Session::start(&mut context) };
    match session {
        Ok(session) => {
            let session = Box::into_raw(Box::new(session)).cast::<c_void>();
            context.set_private(session);
            context.memory().on_reset(drop_session, session);
        }
        Err(error) => error.raise(),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn shutdown(context: *mut pg_sys::LogicalDecodingContext) {
    // SAFETY: what the server passes to a callback.
    unsafe {
        run(context, |session, _| {
            session.shutdown();
            Ok(())
        });
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn filter_by_origin(
    context: *mut pg_sys::LogicalDecodingContext,
    origin: pg_sys::RepOriginId,
) -> bool {
    // SAFETY: as in `run`; this one is called for every record and so does without its frame.
    unsafe { (*Context::from_raw(context).private().cast::<Session>()).filters_origin(origin) }
}

/// A callback that gets the context, a transaction and perhaps an LSN.
macro_rules! transaction_callback {
    ($name:ident) => {
        #[pg_guard]
        unsafe extern "C-unwind" fn $name(
            context: *mut pg_sys::LogicalDecodingContext,
            transaction: *mut pg_sys::ReorderBufferTXN,
        ) {
            // SAFETY: what the server passes to a callback.
            unsafe {
                let transaction = Transaction::from_raw(transaction);
                run(context, |session, context| match transaction {
                    Some(transaction) => session.$name(context, transaction),
                    None => Ok(()),
                });
            }
        }
    };
    ($name:ident, lsn) => {
        #[pg_guard]
        unsafe extern "C-unwind" fn $name(
            context: *mut pg_sys::LogicalDecodingContext,
            transaction: *mut pg_sys::ReorderBufferTXN,
            lsn: pg_sys::XLogRecPtr,
        ) {
            // SAFETY: what the server passes to a callback.
            unsafe {
                let transaction = Transaction::from_raw(transaction);
                run(context, |session, context| match transaction {
                    Some(transaction) => session.$name(context, transaction, Lsn(lsn)),
                    None => Ok(()),
                });
            }
        }
    };
}

transaction_callback!(begin);
transaction_callback!(commit, lsn);
transaction_callback!(begin_prepare);
transaction_callback!(prepare, lsn);
transaction_callback!(commit_prepared, lsn);
transaction_callback!(stream_start);
transaction_callback!(stream_stop);
transaction_callback!(stream_abort, lsn);
transaction_callback!(stream_commit, lsn);
transaction_callback!(stream_prepare, lsn);

#[pg_guard]
unsafe extern "C-unwind" fn rollback_prepared(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    prepare_end_lsn: pg_sys::XLogRecPtr,
    prepare_time: pg_sys::TimestampTz,
) {
    // SAFETY: what the server passes to a callback.
    unsafe {
        let transaction = Transaction::from_raw(transaction);
        run(context, |session, context| match transaction {
            Some(transaction) => {
                session.rollback_prepared(context, transaction, Lsn(prepare_end_lsn), Timestamp(prepare_time))
            }
            None => Ok(()),
        });
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn change(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    relation: pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
) {
    // SAFETY: what the server passes to a callback; the relation is open during it.
    unsafe {
        let transaction = Transaction::from_raw(transaction);
        let (relation, change) = (Relation::from_raw(relation), Change::from_raw(change));
        run(context, |session, context| match transaction {
            Some(transaction) => session.change(context, transaction, relation, change),
            None => Ok(()),
        });
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn truncate(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    nrelations: c_int,
    relations: *mut pg_sys::Relation,
    change: *mut pg_sys::ReorderBufferChange,
) {
    // SAFETY: what the server passes to a callback; the relations are open during it.
    unsafe {
        let transaction = Transaction::from_raw(transaction);
        let relations = core::slice::from_raw_parts(relations, nrelations as usize);
        let change = Change::from_raw(change);
        run(context, |session, context| match transaction {
            Some(transaction) => {
                let relations = relations.iter().map(|relation| Relation::from_raw(*relation));
                session.truncate(context, transaction, relations, change)
            }
            None => Ok(()),
        });
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn message(
    context: *mut pg_sys::LogicalDecodingContext,
    transaction: *mut pg_sys::ReorderBufferTXN,
    lsn: pg_sys::XLogRecPtr,
    transactional: bool,
    prefix: *const c_char,
    size: pg_sys::Size,
    content: *const c_char,
) {
    // SAFETY: what the server passes to a callback: a NUL-terminated prefix and `size` bytes.
    unsafe {
        let transaction = Transaction::from_raw(transaction);
        let prefix = CStr::from_ptr(prefix);
        let content = core::slice::from_raw_parts(content.cast::<u8>(), size);
        run(context, |session, context| {
            session.logical_message(context, transaction, Lsn(lsn), transactional, prefix, content)
        });
    }
}
