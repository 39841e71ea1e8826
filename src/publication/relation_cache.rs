//! What is known of each relation that changes: whether and how it is published, and whether the client has seen
//! its schema.

use std::rc::Rc;

use pgoutput_protocol::{OldTupleKind, Xid};
use pgrx::pg_sys::Oid;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{CatalogObject, Error};
use crate::server::BEHAVIOUR;
use crate::server::catalog::{self, Actions, Ancestors, Publication};
use crate::server::invalidation::{RelationState, Watch};
use crate::server::memory::{ContextSize, MemoryContext};
use crate::server::relation::{OwnedDescriptor, Relation};
use crate::tuple::{AttributeMap, Columns};

use super::{Publications, PublishedColumns, RowFilters};

/// The entries of a decoding session, by the relation that changes: for a partition its own, whatever its rows go
/// out as. None is ever removed.
#[derive(Debug)]
pub struct RelationCache {
    entries: Vec<Entry>,
    indexes: FxHashMap<Oid, EntryIndex>,
    /// The relation of the latest change: changes of a relation come in runs, which take one look-up.
    latest: Option<(Oid, EntryIndex)>,
    memory: MemoryContext,
    watch: Rc<Watch>,
    /// For each top-level transaction that is being streamed, the relations whose schema its stream has.
    streamed: FxHashMap<Xid, FxHashSet<EntryIndex>>,
}

/// An entry's place in the cache, good for as long as the cache lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryIndex(usize);

/// How a relation is published.
#[derive(Debug)]
pub struct Entry {
    state: Rc<RelationState>,
    /// What the plan keeps in the server's memory. Set before the plan is built, so that an ERROR in between
    /// leaves it to the next attempt.
    memory: Option<MemoryContext>,
    schema_sent: bool,
    /// What is published, by any requested publication.
    pub actions: Actions,
    /// The relation that changes go out as: the relation itself or an ancestor.
    pub publish_as: Oid,
    /// The columns of the relation that changes go out as.
    pub columns: PublishedColumns,
    /// How rows go out. Only there if some change of a row is published.
    pub rows: Option<RowPlan>,
}

/// How rows of a relation go out.
#[derive(Debug)]
pub struct RowPlan {
    /// The descriptor of the relation's own tuples.
    pub descriptor: OwnedDescriptor,
    /// The descriptor of the rows that go out.
    pub target_descriptor: OwnedDescriptor,
    /// How the relation's own tuples become rows that go out, where the two differ.
    pub map: Option<AttributeMap>,
    /// Row filters, if there are any.
    pub filters: Option<RowFilters>,
    /// The published columns.
    pub columns: Columns,
    ancestor: Option<Ancestor>,
}

/// What is cached of the ancestor that rows go out as.
#[derive(Debug)]
struct Ancestor {
    oid: Oid,
    state: Rc<RelationState>,
    /// How many changes of the ancestor `old_tuple_kind` has seen.
    changes: u64,
    old_tuple_kind: OldTupleKind,
}

fn old_tuple_kind(relation: Relation<'_>) -> OldTupleKind {
    if relation.is_replica_identity_full() { OldTupleKind::Full } else { OldTupleKind::Key }
}

fn open<R>(oid: Oid, f: impl FnOnce(Relation<'_>) -> R) -> Result<R, Error> {
    Relation::with(oid, f)
        .ok_or(Error::CacheLookupFailed { what: CatalogObject::Relation, oid: oid.to_u32() })
}

impl RowPlan {
    /// What an old tuple is marked as. This is a matter of the relation that rows go out as, and of what it is
    /// now: a change of an ancestor alone doesn't invalidate the entry.
    pub fn old_tuple_kind(&mut self, relation: Relation<'_>) -> Result<OldTupleKind, Error> {
        let Some(ancestor) = &mut self.ancestor else { return Ok(old_tuple_kind(relation)) };
        let changes = ancestor.state.changes.get();
        if ancestor.changes != changes {
            ancestor.old_tuple_kind = open(ancestor.oid, old_tuple_kind)?;
            ancestor.changes = changes;
        }
        Ok(ancestor.old_tuple_kind)
    }
}

impl RelationCache {
    /// An empty cache. What entries keep in the server's memory is in children of `memory`.
    pub fn new(memory: MemoryContext, watch: Rc<Watch>) -> Self {
        RelationCache {
            entries: Vec::new(),
            indexes: FxHashMap::default(),
            latest: None,
            memory,
            watch,
            streamed: FxHashMap::default(),
        }
    }

    /// Where the entry of a relation is, which is built if there is no valid one; `None` if the relation can't be
    /// published.
    pub fn entry(
        &mut self,
        relation: Relation<'_>,
        publications: &mut Publications,
    ) -> Result<Option<EntryIndex>, Error> {
        let oid = relation.oid();
        let index = match self.latest {
            Some((latest, index)) if latest == oid => Some(index),
            _ => self.indexes.get(&oid).copied(),
        };
        if let Some(index) = index
            && self.entries[index.0].state.entry_valid.get()
        {
            self.latest = Some((oid, index));
            return Ok(Some(index));
        }
        if !relation.is_publishable() {
            return Ok(None);
        }
        let index = index.unwrap_or_else(|| {
            let index = EntryIndex(self.entries.len());
            self.entries.push(Entry::new(self.watch.relation(oid), oid));
            self.indexes.insert(oid, index);
            index
        });
        self.rebuild(index, relation, publications)?;
        Ok(Some(index))
    }

    /// An entry as it is, valid or not.
    pub fn get(&self, index: EntryIndex) -> &Entry {
        &self.entries[index.0]
    }

    /// An entry as it is, valid or not.
    pub fn get_mut(&mut self, index: EntryIndex) -> &mut Entry {
        &mut self.entries[index.0]
    }

    fn rebuild(
        &mut self,
        index: EntryIndex,
        relation: Relation<'_>,
        publications: &mut Publications,
    ) -> Result<(), Error> {
        let oid = relation.oid();
        let membership = Membership::of(oid);
        let publications = publications.current(&self.watch);
        let entry = &mut self.entries[index.0];
        entry.clear(oid);
        for relations in self.streamed.values_mut() {
            relations.remove(&index);
        }
        entry.build(relation, &membership, publications, self.memory, &self.watch)?;
        // An invalidation that arrived meanwhile doesn't count, as with the built-in plugin: what it tells of, the
        // snapshot of the change at hand doesn't see.
        entry.state.entry_valid.set(true);
        Ok(())
    }

    /// Whether the client has the relation's schema: in the stream of `top_level`, or, outside of streams, at all.
    #[inline]
    pub fn is_schema_sent(&self, index: EntryIndex, top_level: Option<Xid>) -> bool {
        match top_level {
            Some(xid) => self.streamed.get(&xid).is_some_and(|relations| relations.contains(&index)),
            None => self.entries[index.0].schema_sent,
        }
    }

    /// Remembers that the client has the relation's schema.
    pub fn set_schema_sent(&mut self, index: EntryIndex, top_level: Option<Xid>) {
        match top_level {
            Some(xid) => {
                self.streamed.entry(xid).or_default().insert(index);
            }
            None => self.entries[index.0].schema_sent = true,
        }
    }

    /// A streamed transaction has been committed: what its stream had is now the client's for good.
    pub fn stream_committed(&mut self, top_level: Xid) {
        for index in self.streamed.remove(&top_level).unwrap_or_default() {
            self.set_schema_sent(index, None);
        }
    }

    /// A streamed transaction, or a subtransaction of it, has been aborted: the client may have lost what the
    /// stream had.
    pub fn stream_aborted(&mut self, top_level: Xid) {
        self.streamed.remove(&top_level);
    }
}

/// What the catalogs say of a relation's publications. Looked up before the publications are read, as the built-in plugin
/// does: what reads catalogs first is what notices a transaction that was aborted while it is decoded.
struct Membership {
    by_name: Vec<Oid>,
    by_schema: Vec<Oid>,
    is_partition: bool,
}

impl Membership {
    fn of(relation: Oid) -> Self {
        let namespace = catalog::relation_namespace(relation);
        Membership {
            by_name: catalog::relation_publications(relation),
            by_schema: catalog::schema_publications(namespace),
            is_partition: catalog::is_partition(relation),
        }
    }
}

/// The publications that decide how a relation is published: those at the topmost level.
struct Topmost<'a> {
    publish_as: Oid,
    level: i32,
    publications: Vec<&'a Publication>,
}

impl Entry {
    fn new(state: Rc<RelationState>, relation: Oid) -> Self {
        Entry {
            state,
            memory: None,
            schema_sent: false,
            actions: Actions::default(),
            publish_as: relation,
            columns: PublishedColumns::default(),
            rows: None,
        }
    }

    fn clear(&mut self, relation: Oid) {
        self.schema_sent = false;
        self.actions = Actions::default();
        self.publish_as = relation;
        self.columns = PublishedColumns::default();
        self.rows = None;
        if let Some(memory) = self.memory.take() {
            memory.delete();
        }
    }

    fn build(
        &mut self,
        relation: Relation<'_>,
        membership: &Membership,
        publications: &[Publication],
        parent: MemoryContext,
        watch: &Watch,
    ) -> Result<(), Error> {
        let topmost = self.find_publications(relation, membership, publications);
        self.publish_as = topmost.publish_as;
        if self.actions.any_row() {
            let memory = parent.create_child(c"pgoutput_rs relation entry", ContextSize::Small);
            self.memory = Some(memory);
            self.plan_rows(relation, &topmost.publications, memory, watch)?;
        }
        Ok(())
    }

    /// Goes through the publications: adds up what they publish of the relation, and finds those at the topmost
    /// level, which decide everything else.
    fn find_publications<'p>(
        &mut self,
        relation: Relation<'_>,
        membership: &Membership,
        publications: &'p [Publication],
    ) -> Topmost<'p> {
        let oid = relation.oid();
        // Looked up only where a publication asks for them, as the built-in plugin does: reading catalogs is what notices
        // a transaction that was aborted while it is decoded.
        let mut ancestors: Option<Ancestors> = None;
        let mut topmost = Topmost { publish_as: oid, level: 0, publications: Vec::new() };

        for publication in publications {
            let ancestor = if !membership.is_partition || (publication.all_tables && !publication.via_root) {
                None
            } else {
                let ancestors = ancestors.get_or_insert_with(|| Ancestors::of(oid));
                if publication.all_tables { ancestors.root() } else { ancestors.topmost_in(publication.oid) }
            };
            let published = publication.all_tables
                || ancestor.is_some()
                || membership.by_name.contains(&publication.oid)
                || membership.by_schema.contains(&publication.oid);
            // A partitioned table has no rows of its own; it only matters where its partitions go out as it.
            if !published || (relation.is_partitioned_table() && !publication.via_root) {
                continue;
            }
            self.actions = self.actions.union(publication.actions);

            let (publish_as, level) = ancestor.filter(|_| publication.via_root).unwrap_or((oid, 0));
            if level > topmost.level {
                topmost = Topmost { publish_as, level, publications: Vec::new() };
            }
            if level == topmost.level {
                topmost.publications.push(publication);
            }
        }
        topmost
    }

    fn plan_rows(
        &mut self,
        relation: Relation<'_>,
        publications: &[&Publication],
        memory: MemoryContext,
        watch: &Watch,
    ) -> Result<(), Error> {
        let descriptor = relation.descriptor().copy(memory);
        let plan = |target: Relation<'_>| -> Result<(PublishedColumns, RowPlan), Error> {
            let map = AttributeMap::between(relation.descriptor(), target.descriptor());
            let target_descriptor = if map.is_some() { target.descriptor().copy(memory) } else { descriptor };
            let collected = RowFilters::of(target, publications, &target_descriptor, memory);
            let keep_open = BEHAVIOUR.keeps_relations_open || !collected.all_unfiltered;
            if keep_open {
                target.keep_open();
            }
            let columns = PublishedColumns::of(target, publications)?;
            if !keep_open && columns.are_named() {
                target.keep_open();
            }
            let ancestor = (target.oid() != relation.oid()).then(|| {
                let state = watch.relation(target.oid());
                Ancestor {
                    oid: target.oid(),
                    changes: state.changes.get(),
                    state,
                    old_tuple_kind: old_tuple_kind(target),
                }
            });
            let plan = RowPlan {
                descriptor,
                target_descriptor,
                map,
                filters: collected.filters,
                columns: Columns::new(columns.select(target.descriptor())),
                ancestor,
            };
            Ok((columns, plan))
        };
        let (columns, plan) =
            if self.publish_as == relation.oid() { plan(relation)? } else { open(self.publish_as, plan)?? };
        self.columns = columns;
        self.rows = Some(plan);
        Ok(())
    }
}
