//! One decoding session, from startup to shutdown.
//!
//! When each message is sent is told in "Logical Streaming Replication Protocol" of the PostgreSQL manual.

use core::cell::Cell;
use core::ffi::CStr;
use std::rc::Rc;

use pgoutput_protocol::{
    Begin, BeginPrepare, Commit, CommitPrepared, LogicalMessage, Lsn, OldTupleKind, Origin, Prepare,
    RollbackPrepared, StreamAbort, StreamCommit, StreamPrepare, StreamStart, StreamStop, Timestamp, Xid,
    relation_column, relation_header, row, truncate,
};

use crate::error::{CatalogObject, Error};
use crate::options::{Options, Streaming};
use crate::output::{Delivery, FrameLsn, Output};
use crate::publication::{EntryIndex, Publications, PublishedColumns, RelationCache, Verdict};
use crate::server::catalog;
use crate::server::context::Context;
use crate::server::encoding::ClientEncoding;
use crate::server::format_settings::FormatSettings;
use crate::server::invalidation::{self, Watch};
use crate::server::memory::{ContextSize, MemoryContext};
use crate::server::relation::{AttributeSet, Relation};
use crate::server::report::{self, Argument, Format};
use crate::server::transaction::{Action, BeginState, Change, Transaction};
use crate::server::{self, BEHAVIOUR};
use crate::tuple::{Row, TypeCache};

/// Types from this oid on are not built in: the client learns their names from Type messages.
const FIRST_UNPINNED_TYPE: u32 = 10000;

/// Everything that a decoding session owns.
///
/// What it keeps in the server's memory are handles without ownership: the session can be dropped when that memory
/// is gone already.
#[derive(Debug)]
pub struct Session {
    options: Options,
    watch: Rc<Watch>,
    /// For what is allocated during a callback.
    callback_memory: MemoryContext,
    publications: Publications,
    relations: RelationCache,
    types: TypeCache,
    rows: Rows,
    output: Output,
    /// Whether this is inside a stream block, where messages carry an xid.
    in_stream: bool,
}

/// Who made a change inside a stream block.
#[derive(Clone, Copy, Debug)]
struct StreamChange {
    /// The (sub)transaction, which messages carry.
    xid: Xid,
    /// Its top-level transaction, whose stream it is.
    top_level: Xid,
}

/// A change of a row as it goes out.
#[derive(Clone, Copy, Debug)]
enum Outgoing {
    Insert,
    Update { old: Option<OldTupleKind> },
    Delete { old: OldTupleKind },
}

/// The rows of the change at hand. Kept so that their memory is allocated once.
#[derive(Debug, Default)]
struct Rows {
    /// The tuple as the relation itself has it, where rows go out in another layout.
    own: Row,
    old: Row,
    new: Row,
    /// The new row completed by values that only the old one has.
    completed: Row,
}

impl Drop for Session {
    fn drop(&mut self) {
        invalidation::detach(&self.watch);
    }
}

impl Session {
    /// A session that creates a slot: nothing will be decoded with it.
    pub fn initialize(context: &mut Context<'_>) -> Self {
        context.set_streaming(false);
        context.set_two_phase(false);
        Session::new(context, Options::default())
    }

    /// A session that decodes.
    pub fn start(context: &mut Context<'_>) -> Result<Self, Error> {
        let memory = context.memory();
        let options = Options::read(context, |text| catalog::split_identifiers(text, memory))?;
        let session = Session::new(context, options);
        invalidation::attach(&session.watch);
        Ok(session)
    }

    fn new(context: &Context<'_>, options: Options) -> Self {
        let memory = context.memory();
        let watch = Rc::new(Watch::default());
        let types = memory.create_child(c"pgoutput_rs type functions", ContextSize::Small);
        let entries = memory.create_child(c"pgoutput_rs relation cache", ContextSize::Small);
        Session {
            callback_memory: memory.create_child(c"pgoutput_rs callback", ContextSize::Default),
            publications: Publications::new(options.publication_names.clone()),
            relations: RelationCache::new(entries, Rc::clone(&watch)),
            types: TypeCache::new(options.binary, types),
            rows: Rows::default(),
            output: Output::new(context),
            in_stream: false,
            watch,
            options,
        }
    }

    /// The memory that is reset after every callback.
    pub fn callback_memory(&self) -> MemoryContext {
        self.callback_memory
    }

    /// A callback ends.
    pub fn end_callback(&mut self) {
        self.output.end_callback();
        self.callback_memory.reset();
    }

    /// Decoding is over: invalidations don't concern the session any more.
    pub fn shutdown(&mut self) {
        invalidation::detach(&self.watch);
    }

    /// Whether what carries this origin is left out.
    pub fn filters_origin(&self, origin: u16) -> bool {
        self.options.only_local_origin && origin != 0
    }

    /// A transaction begins. Its Begin is held back until something is sent: a transaction without anything to
    /// send shall not cost the client a message.
    pub fn begin(&mut self, _context: &mut Context<'_>, transaction: Transaction<'_>) -> Result<(), Error> {
        transaction.set_begin_state(BeginState::HeldBack);
        Ok(())
    }

    /// A transaction ends.
    pub fn commit(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        commit_lsn: Lsn,
    ) -> Result<(), Error> {
        let sent = transaction.begin_state() == BeginState::Sent;
        transaction.set_begin_state(BeginState::None);
        update_progress(context, !sent);
        if !sent {
            report::debug(Format {
                format: c"skipped replication of an empty transaction with XID: %u",
                arguments: &[Argument::Unsigned(transaction.xid())],
            });
            return Ok(());
        }
        let commit = Commit { commit_lsn, end_lsn: transaction.end_lsn(), commit_time: transaction.time() };
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            commit.encode(buffer);
            Ok(())
        })
    }

    /// A prepared transaction begins. It is never held back: after a restart between PREPARE and COMMIT PREPARED
    /// nobody would know whether the client has it.
    pub fn begin_prepare(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
    ) -> Result<(), Error> {
        let encoding = ClientEncoding::current();
        self.output.message(context, first_frame_lsn(transaction), Delivery::Gathered, |buffer| {
            BeginPrepare {
                prepare_lsn: transaction.final_lsn(),
                end_lsn: transaction.end_lsn(),
                prepare_time: transaction.time(),
                xid: transaction.xid(),
                gid: encoding.convert(transaction.gid()),
            }
            .encode(buffer);
            Ok(())
        })?;
        send_origin(&mut self.output, context, transaction, transaction.origin_lsn())
    }

    /// PREPARE TRANSACTION.
    pub fn prepare(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        prepare_lsn: Lsn,
    ) -> Result<(), Error> {
        update_progress(context, false);
        let encoding = ClientEncoding::current();
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            Prepare {
                prepare_lsn,
                end_lsn: transaction.end_lsn(),
                prepare_time: transaction.time(),
                xid: transaction.xid(),
                gid: encoding.convert(transaction.gid()),
            }
            .encode(buffer);
            Ok(())
        })
    }

    /// COMMIT PREPARED.
    pub fn commit_prepared(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        commit_lsn: Lsn,
    ) -> Result<(), Error> {
        update_progress(context, false);
        let encoding = ClientEncoding::current();
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            CommitPrepared {
                commit_lsn,
                end_lsn: transaction.end_lsn(),
                commit_time: transaction.time(),
                xid: transaction.xid(),
                gid: encoding.convert(transaction.gid()),
            }
            .encode(buffer);
            Ok(())
        })
    }

    /// ROLLBACK PREPARED.
    pub fn rollback_prepared(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        prepare_end_lsn: Lsn,
        prepare_time: Timestamp,
    ) -> Result<(), Error> {
        update_progress(context, false);
        let encoding = ClientEncoding::current();
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            RollbackPrepared {
                prepare_end_lsn,
                rollback_end_lsn: transaction.end_lsn(),
                prepare_time,
                rollback_time: transaction.time(),
                xid: transaction.xid(),
                gid: encoding.convert(transaction.gid()),
            }
            .encode(buffer);
            Ok(())
        })
    }

    /// A stream block begins.
    pub fn stream_start(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
    ) -> Result<(), Error> {
        let first = !transaction.is_streamed();
        let lsn = if first { first_frame_lsn(transaction) } else { FrameLsn::WriteLocation };
        self.output.message(context, lsn, Delivery::Gathered, |buffer| {
            StreamStart { xid: transaction.xid(), first }.encode(buffer);
            Ok(())
        })?;
        if first {
            // The origin's commit LSN isn't known before the commit.
            send_origin(&mut self.output, context, transaction, Lsn(0))?;
        }
        self.in_stream = true;
        Ok(())
    }

    /// A stream block ends.
    pub fn stream_stop(
        &mut self,
        context: &mut Context<'_>,
        _transaction: Transaction<'_>,
    ) -> Result<(), Error> {
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            StreamStop.encode(buffer);
            Ok(())
        })?;
        self.in_stream = false;
        Ok(())
    }

    /// A streamed transaction, or a subtransaction of one, is aborted.
    pub fn stream_abort(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        abort_lsn: Lsn,
    ) -> Result<(), Error> {
        let top_level = transaction.top_level().xid();
        let abort = (self.options.streaming == Streaming::Parallel).then(|| (abort_lsn, transaction.time()));
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            StreamAbort { xid: top_level, subxid: transaction.xid(), abort }.encode(buffer);
            Ok(())
        })?;
        self.relations.stream_aborted(top_level);
        Ok(())
    }

    /// A streamed transaction is committed.
    pub fn stream_commit(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        commit_lsn: Lsn,
    ) -> Result<(), Error> {
        update_progress(context, false);
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            StreamCommit {
                xid: transaction.xid(),
                commit_lsn,
                end_lsn: transaction.end_lsn(),
                commit_time: transaction.time(),
            }
            .encode(buffer);
            Ok(())
        })?;
        self.relations.stream_committed(transaction.xid());
        Ok(())
    }

    /// PREPARE TRANSACTION of a streamed transaction.
    pub fn stream_prepare(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        prepare_lsn: Lsn,
    ) -> Result<(), Error> {
        update_progress(context, false);
        let encoding = ClientEncoding::current();
        self.output.message(context, FrameLsn::WriteLocation, Delivery::AtOnce, |buffer| {
            StreamPrepare {
                prepare_lsn,
                end_lsn: transaction.end_lsn(),
                prepare_time: transaction.time(),
                xid: transaction.xid(),
                gid: encoding.convert(transaction.gid()),
            }
            .encode(buffer);
            Ok(())
        })?;
        if server::has_changes_of_15_20() {
            self.relations.stream_committed(transaction.xid());
        }
        Ok(())
    }

    /// Who made a change, which matters inside a stream block only.
    fn stream_change(&self, change: Change<'_>) -> Option<StreamChange> {
        let transaction = change.transaction().filter(|_| self.in_stream)?;
        Some(StreamChange { xid: transaction.xid(), top_level: transaction.top_level().xid() })
    }

    /// A row has changed.
    pub fn change(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        relation: Relation<'_>,
        change: Change<'_>,
    ) -> Result<(), Error> {
        count_change(context);
        let Some(action) = change.action() else { return Ok(()) };
        let stream = self.stream_change(change);
        let Session { publications, relations, types, rows, output, watch, .. } = self;
        let Some(index) = relations.entry(relation, publications)? else { return Ok(()) };
        let entry = relations.get_mut(index);
        let published = match action {
            Action::Insert => entry.actions.insert,
            Action::Update => entry.actions.update,
            Action::Delete => entry.actions.delete,
        };
        let Some(plan) = entry.rows.as_mut().filter(|_| published) else { return Ok(()) };
        let (old, new) = (change.old_tuple(), change.new_tuple());
        if action == Action::Delete && old.is_none() {
            report::debug(Format {
                format: c"didn't send DELETE change because of missing oldtuple",
                arguments: &[],
            });
            return Ok(());
        }

        // Asked for an Insert, too: it may read catalogs, which is what notices that the transaction has been aborted
        // meanwhile, and the built-in plugin looks at the relation that a row goes out as for every row.
        let old_tuple_kind = plan.old_tuple_kind(relation)?;
        for (tuple, row) in [(old, &mut rows.old), (new, &mut rows.new)] {
            let Some(tuple) = tuple else { continue };
            match &plan.map {
                None => row.deform(tuple, plan.descriptor.get()),
                Some(map) => {
                    rows.own.deform(tuple, plan.descriptor.get());
                    row.map(&rows.own, map);
                }
            }
        }

        let mut action = action;
        let mut completed = false;
        if let Some(filters) = &plan.filters
            && let Some(filter) = filters.for_action(action)
        {
            if old.is_some() && new.is_some() {
                let descriptor = plan.target_descriptor.get();
                completed = rows.completed.complete(&rows.new, &rows.old, descriptor);
                let new = if completed { &rows.completed } else { &rows.new };
                match filters.judge_update(filter, &rows.old, new) {
                    Verdict::Drop => return Ok(()),
                    Verdict::Send(as_action) => action = as_action,
                }
            } else {
                let row = if new.is_some() { &rows.new } else { &rows.old };
                if !filters.matches(filter, row) {
                    return Ok(());
                }
            }
        }
        // An Update goes out as it was logged; only the Insert that it may have become needs the whole row.
        let new_row = if completed && action == Action::Insert { &rows.completed } else { &rows.new };
        let old_row = &rows.old;

        let outgoing = match action {
            Action::Insert => Outgoing::Insert,
            Action::Update => Outgoing::Update { old: old.map(|_| old_tuple_kind) },
            Action::Delete => Outgoing::Delete { old: old_tuple_kind },
        };
        let target = entry.publish_as.to_u32();

        send_held_back_begin(output, context, transaction)?;
        send_schema_once(output, context, relations, index, relation, stream)?;

        let Some(plan) = &mut relations.get_mut(index).rows else { return Ok(()) };
        types.follow(watch);
        let xid = stream.map(|stream| stream.xid);
        let settings = FormatSettings::current();
        let columns = &mut plan.columns;
        output.message(context, FrameLsn::WriteLocation, Delivery::Gathered, |buffer| match outgoing {
            Outgoing::Insert => {
                row::begin_insert(buffer, xid, target);
                columns.write(buffer, new_row, types, settings)
            }
            Outgoing::Update { old } => {
                row::begin_update(buffer, xid, target);
                if let Some(kind) = old {
                    row::old_tuple(buffer, kind);
                    columns.write(buffer, old_row, types, settings)?;
                }
                row::new_tuple(buffer);
                columns.write(buffer, new_row, types, settings)
            }
            Outgoing::Delete { old } => {
                row::begin_delete(buffer, xid, target, old);
                columns.write(buffer, old_row, types, settings)
            }
        })
    }

    /// Relations have been truncated.
    pub fn truncate<'a>(
        &mut self,
        context: &mut Context<'_>,
        transaction: Transaction<'_>,
        relations: impl Iterator<Item = Relation<'a>>,
        change: Change<'_>,
    ) -> Result<(), Error> {
        count_change(context);
        let stream = self.stream_change(change);
        let mut published = Vec::new();
        for relation in relations {
            let Some(index) = self.relations.entry(relation, &mut self.publications)? else { continue };
            let entry = self.relations.get(index);
            // What goes out as an ancestor is truncated by the ancestor's own truncate.
            let goes_out_as_ancestor = relation.is_partition() && entry.publish_as != relation.oid();
            if !entry.actions.truncate || goes_out_as_ancestor {
                continue;
            }
            published.push(relation.oid().to_u32());
            send_held_back_begin(&mut self.output, context, transaction)?;
            send_schema_once(&mut self.output, context, &mut self.relations, index, relation, stream)?;
        }
        if published.is_empty() {
            return Ok(());
        }
        let xid = stream.map(|stream| stream.xid);
        let (cascade, restart_identity) = change.truncate_options();
        self.output.message(context, FrameLsn::WriteLocation, Delivery::Gathered, |buffer| {
            truncate(buffer, xid, cascade, restart_identity, published);
            Ok(())
        })
    }

    /// A logical message has been emitted. One that isn't transactional has no transaction to begin.
    pub fn logical_message(
        &mut self,
        context: &mut Context<'_>,
        transaction: Option<Transaction<'_>>,
        lsn: Lsn,
        transactional: bool,
        prefix: &CStr,
        content: &[u8],
    ) -> Result<(), Error> {
        count_change(context);
        if !self.options.messages {
            return Ok(());
        }
        let xid = if self.in_stream { transaction.map(|transaction| transaction.xid()) } else { None };
        if let Some(transaction) = transaction.filter(|_| transactional) {
            send_held_back_begin(&mut self.output, context, transaction)?;
        }
        let delivery = if transactional { Delivery::Gathered } else { Delivery::AtOnce };
        let encoding = ClientEncoding::current();
        self.output.message(context, FrameLsn::WriteLocation, delivery, |buffer| {
            let prefix = encoding.convert(prefix);
            LogicalMessage { xid, transactional, lsn, prefix, content }.encode(buffer);
            Ok(())
        })
    }
}

/// Sends the Begin that a transaction holds back, if it does.
fn send_held_back_begin(
    output: &mut Output,
    context: &mut Context<'_>,
    transaction: Transaction<'_>,
) -> Result<(), Error> {
    if transaction.begin_state() != BeginState::HeldBack {
        return Ok(());
    }
    let begin =
        Begin { final_lsn: transaction.final_lsn(), commit_time: transaction.time(), xid: transaction.xid() };
    output.message(context, first_frame_lsn(transaction), Delivery::Gathered, |buffer| {
        begin.encode(buffer);
        Ok(())
    })?;
    transaction.set_begin_state(BeginState::Sent);
    send_origin(output, context, transaction, transaction.origin_lsn())
}

/// Sends the schema of a relation that is about to be mentioned, unless the client has it.
fn send_schema_once(
    output: &mut Output,
    context: &mut Context<'_>,
    relations: &mut RelationCache,
    index: EntryIndex,
    relation: Relation<'_>,
    stream: Option<StreamChange>,
) -> Result<(), Error> {
    let top_level = stream.map(|stream| stream.top_level);
    if relations.is_schema_sent(index, top_level) {
        return Ok(());
    }
    let entry = relations.get(index);
    let xid = stream.map(|stream| stream.xid);
    if entry.publish_as != relation.oid() {
        Relation::with(entry.publish_as, |ancestor| {
            send_schema(output, context, ancestor, xid, &entry.columns)
        })
        .unwrap_or(Err(Error::CacheLookupFailed {
            what: CatalogObject::Relation,
            oid: entry.publish_as.to_u32(),
        }))?;
    }
    send_schema(output, context, relation, xid, &entry.columns)?;
    relations.set_schema_sent(index, top_level);
    Ok(())
}

/// The frame of a transaction's first message shows no LSN if the transaction has an origin: an Origin message is
/// meant to follow, even if it doesn't in the end.
fn first_frame_lsn(transaction: Transaction<'_>) -> FrameLsn {
    if transaction.origin_id() == 0 { FrameLsn::WriteLocation } else { FrameLsn::Zero }
}

/// Sends the origin of a transaction that has one whose name is known.
fn send_origin(
    output: &mut Output,
    context: &mut Context<'_>,
    transaction: Transaction<'_>,
    commit_lsn: Lsn,
) -> Result<(), Error> {
    if transaction.origin_id() == 0 {
        return Ok(());
    }
    let Some(name) = catalog::origin_name(transaction.origin_id()) else { return Ok(()) };
    let encoding = ClientEncoding::current();
    output.message(context, FrameLsn::WriteLocation, Delivery::Gathered, |buffer| {
        Origin { commit_lsn, name: encoding.convert(&name) }.encode(buffer);
        Ok(())
    })
}

/// Sends a Type for each published column whose type isn't built in, then Relation.
fn send_schema(
    output: &mut Output,
    context: &mut Context<'_>,
    relation: Relation<'_>,
    xid: Option<Xid>,
    columns: &PublishedColumns,
) -> Result<(), Error> {
    let encoding = ClientEncoding::current();
    for attribute in columns.select(relation.descriptor()) {
        let oid = attribute.type_oid().to_u32();
        if oid < FIRST_UNPINNED_TYPE {
            continue;
        }
        output.message(context, FrameLsn::Zero, Delivery::Gathered, |buffer| {
            let base = catalog::base_type_name(attribute.type_oid())
                .map_err(|base| Error::CacheLookupFailed { what: CatalogObject::Type, oid: base.to_u32() })?;
            with_namespace(base.namespace, encoding, |namespace| {
                pgoutput_protocol::Type { xid, oid, namespace, name: encoding.convert(&base.name) }
                    .encode(buffer);
            })
        })?;
    }

    output.message(context, FrameLsn::Zero, Delivery::Gathered, |buffer| {
        let identity =
            if relation.is_replica_identity_full() { None } else { Some(relation.identity_columns()) };
        let is_key = |number| identity.as_ref().is_none_or(|keys: &AttributeSet| keys.contains(number));
        let count = columns.select(relation.descriptor()).count() as u16;
        with_namespace(relation.namespace(), encoding, |namespace| {
            let name = encoding.convert(relation.name());
            relation_header(
                buffer,
                xid,
                relation.oid().to_u32(),
                namespace,
                name,
                relation.replica_identity(),
                count,
            );
            for attribute in columns.select(relation.descriptor()) {
                relation_column(
                    buffer,
                    is_key(attribute.number()),
                    encoding.convert(attribute.name()),
                    attribute.type_oid().to_u32(),
                    attribute.type_modifier(),
                );
            }
        })
    })
}

/// Calls `f` with the name of a schema as messages have it: empty for pg_catalog.
fn with_namespace(
    namespace: pgrx::pg_sys::Oid,
    encoding: ClientEncoding,
    f: impl FnOnce(&[u8]),
) -> Result<(), Error> {
    if namespace == catalog::PG_CATALOG_NAMESPACE {
        f(b"");
        return Ok(());
    }
    let name = catalog::namespace_name(namespace)
        .ok_or(Error::CacheLookupFailed { what: CatalogObject::Namespace, oid: namespace.to_u32() })?;
    f(encoding.convert(&name));
    Ok(())
}

/// After so many changes without a report the plugin reports progress itself, on servers that leave it to the
/// plugin: a long transaction that is filtered away would let the client time out.
const CHANGES_PER_REPORT: u32 = 100;

thread_local! {
    /// The changes since the last report. The built-in plugin counts them for the process, not for the session.
    static CHANGES: Cell<u32> = const { Cell::new(0) };
}

fn count_change(context: &mut Context<'_>) {
    if !BEHAVIOUR.reports_progress_of_changes {
        return;
    }
    let changes = CHANGES.get() + 1;
    if changes >= CHANGES_PER_REPORT || context.ends_transaction() {
        update_progress(context, false);
    } else {
        CHANGES.set(changes);
    }
}

/// Reports progress; `skipped` says that the transaction sent nothing.
fn update_progress(context: &mut Context<'_>, skipped: bool) {
    context.update_progress(skipped);
    CHANGES.set(0);
}
