//! Row filters.

use std::ffi::CString;

use crate::server::catalog::{self, Publication};
use crate::server::executor::{Filter, FilterState};
use crate::server::memory::MemoryContext;
use crate::server::relation::{OwnedDescriptor, Relation};
use crate::server::transaction::Action;
use crate::tuple::Row;

/// The row filters of a relation, one for each action that has one.
#[derive(Debug)]
pub struct RowFilters {
    state: FilterState,
    insert: Option<Filter>,
    update: Option<Filter>,
    delete: Option<Filter>,
}

/// The row filters of a relation, and what publications say beside.
#[derive(Debug)]
pub struct CollectedFilters {
    /// The filters; `None` if no action is filtered.
    pub filters: Option<RowFilters>,
    /// Whether publications give all three actions without a filter.
    pub all_unfiltered: bool,
}

/// What becomes of an Update whose both rows were tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It isn't sent.
    Drop,
    /// It goes out as this.
    Send(Action),
}

/// The filters of one action while publications are gone through.
#[derive(Default)]
struct Collected {
    filters: Vec<CString>,
    /// A publication gives the action without a filter, which beats every filter.
    unfiltered: bool,
}

impl Collected {
    fn add(&mut self, publishes: bool, filter: Option<&CString>) {
        match filter {
            _ if !publishes => {}
            Some(filter) => self.filters.push(filter.clone()),
            None => self.unfiltered = true,
        }
    }

    fn is_filtered(&self) -> bool {
        !self.unfiltered && !self.filters.is_empty()
    }
}

impl RowFilters {
    /// The filters that these publications, all at the same level, have for `relation`, the one that rows go out
    /// as.
    ///
    /// `descriptor` is that of the rows to be tested; it and the filters live in `memory`.
    pub fn of(
        relation: Relation<'_>,
        publications: &[&Publication],
        descriptor: &OwnedDescriptor,
        memory: MemoryContext,
    ) -> CollectedFilters {
        let (mut insert, mut update, mut delete) =
            (Collected::default(), Collected::default(), Collected::default());
        let schema = catalog::relation_namespace(relation.oid());
        for publication in publications {
            // All tables, and all of a schema, mean no filter, whatever else the publication says.
            let filter = if publication.all_tables || catalog::publishes_schema(publication.oid, schema) {
                None
            } else {
                catalog::publication_relation(publication.oid, relation.oid())
                    .and_then(|relation| relation.row_filter)
            };
            insert.add(publication.actions.insert, filter.as_ref());
            update.add(publication.actions.update, filter.as_ref());
            delete.add(publication.actions.delete, filter.as_ref());
            // Nothing that follows can change this, so it isn't looked up.
            if insert.unfiltered && update.unfiltered && delete.unfiltered {
                return CollectedFilters { filters: None, all_unfiltered: true };
            }
        }
        let actions = [&insert, &update, &delete];
        if !actions.iter().any(|action| action.is_filtered()) {
            return CollectedFilters { filters: None, all_unfiltered: false };
        }
        let state = FilterState::create(descriptor, memory);
        let prepare = |action: &Collected| {
            action.is_filtered().then(|| {
                let filters: Vec<_> = action.filters.iter().map(|filter| filter.as_c_str()).collect();
                state.prepare(&filters, relation, memory)
            })
        };
        let filters = Some(RowFilters {
            state,
            insert: prepare(&insert),
            update: prepare(&update),
            delete: prepare(&delete),
        });
        CollectedFilters { filters, all_unfiltered: false }
    }

    /// The filter of an action.
    pub fn for_action(&self, action: Action) -> Option<Filter> {
        match action {
            Action::Insert => self.insert,
            Action::Update => self.update,
            Action::Delete => self.delete,
        }
    }

    /// Whether a row passes. Null is false.
    pub fn matches(&self, filter: Filter, row: &Row) -> bool {
        self.state.matches(filter, row.values(), row.nulls())
    }

    /// What becomes of an Update of which both rows are known: the subscriber has the old row only if that
    /// passed.
    pub fn judge_update(&self, filter: Filter, old: &Row, new: &Row) -> Verdict {
        match (self.matches(filter, old), self.matches(filter, new)) {
            (false, false) => Verdict::Drop,
            (false, true) => Verdict::Send(Action::Insert),
            (true, false) => Verdict::Send(Action::Delete),
            (true, true) => Verdict::Send(Action::Update),
        }
    }
}
