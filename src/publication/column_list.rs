//! Column lists and generated columns.

use pgrx::pg_sys::Oid;

use crate::error::Error;
use crate::server::catalog::{self, Publication};
use crate::server::relation::{Attribute, AttributeSet, Generated, Relation, TupleDescriptor};
use crate::server::{BEHAVIOUR, WholeList};

/// Which columns of a relation are published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedColumns {
    /// The column list, if there is one.
    list: Option<AttributeSet>,
    /// Without a list: whether stored generated columns are published.
    stored_generated: bool,
    /// Whether a publication has a list, be it one that counts as none.
    named: bool,
}

/// A column list as a publication has it.
struct ColumnList {
    columns: AttributeSet,
    /// Whether it counts as no list.
    whole: bool,
}

impl PublishedColumns {
    /// Whether a publication has a column list, be it one that counts as none.
    pub fn are_named(&self) -> bool {
        self.named
    }

    /// What these publications, all at the same level, publish of `relation`, the one that rows go out as.
    ///
    /// An ERROR 0A000 if they disagree.
    pub fn of(relation: Relation<'_>, publications: &[&Publication]) -> Result<Self, Error> {
        let lists: Vec<_> = publications
            .iter()
            .map(|publication| (*publication, column_list(publication, relation)))
            .collect();
        let named = lists.iter().any(|(_, list)| list.is_some());
        let lists: Vec<_> = lists
            .into_iter()
            .map(|(publication, list)| {
                (publication, list.filter(|list| !list.whole).map(|list| list.columns))
            })
            .collect();
        let stored_generated = stored_generated(relation, &lists)?;
        let whole = Self { list: None, stored_generated, named };

        let mut agreed: Option<Option<AttributeSet>> = None;
        for (_, list) in &lists {
            // Where lists are never taken for whole ones, a publication without a list stands for the columns
            // that it would publish.
            let effective = match list {
                None if BEHAVIOUR.whole_list == WholeList::Never && lists.len() > 1 => Some(
                    relation
                        .descriptor()
                        .attributes()
                        .filter(|a| whole.contains(*a))
                        .map(Attribute::number)
                        .collect(),
                ),
                list => list.clone(),
            };
            match &agreed {
                None => agreed = Some(effective),
                Some(agreed) if *agreed == effective => {}
                Some(_) => {
                    return Err(Error::DifferentColumnLists {
                        namespace: namespace_name(relation),
                        relation: relation.name().to_owned(),
                    });
                }
            }
        }
        let list = if lists.iter().any(|(_, list)| list.is_some()) { agreed.flatten() } else { None };
        Ok(Self { list, stored_generated, named })
    }

    /// Whether the column is published.
    pub fn contains(&self, attribute: Attribute<'_>) -> bool {
        if attribute.is_dropped() {
            return false;
        }
        let generated = attribute.generated();
        if generated != Generated::No && !BEHAVIOUR.generated_columns {
            return false;
        }
        match &self.list {
            Some(list) => list.contains(attribute.number()),
            None => match generated {
                Generated::No => true,
                Generated::Stored => self.stored_generated,
                Generated::Virtual => false,
            },
        }
    }

    /// The published columns of a descriptor, in order.
    pub fn select<'a>(&self, descriptor: TupleDescriptor<'a>) -> impl Iterator<Item = Attribute<'a>> {
        descriptor.attributes().filter(|attribute| self.contains(*attribute))
    }
}

/// The name of a relation's schema, empty if the catalog has lost it.
fn namespace_name(relation: Relation<'_>) -> std::ffi::CString {
    catalog::namespace_name(relation.namespace()).unwrap_or_default()
}

/// The column list of a publication for the relation.
fn column_list(publication: &Publication, relation: Relation<'_>) -> Option<ColumnList> {
    if publication.all_tables {
        return None;
    }
    let oid: Oid = relation.oid();
    let list = catalog::publication_relation(publication.oid, oid)?.columns?;
    let whole = match BEHAVIOUR.whole_list {
        WholeList::AllAttributes => list.count() == relation.descriptor().len(),
        WholeList::PublishableAttributes => {
            let publishable =
                |attribute: &Attribute<'_>| !attribute.is_dropped() && attribute.generated() == Generated::No;
            list.count() == relation.descriptor().attributes().filter(publishable).count()
        }
        WholeList::Never => false,
    };
    Some(ColumnList { columns: list, whole })
}

/// Whether stored generated columns are published without being listed: what the publications without a list
/// agree on.
fn stored_generated(
    relation: Relation<'_>,
    lists: &[(&Publication, Option<AttributeSet>)],
) -> Result<bool, Error> {
    let is_generated = |attribute: Attribute<'_>| attribute.generated() != Generated::No;
    if !BEHAVIOUR.generated_columns || !relation.descriptor().attributes().any(is_generated) {
        return Ok(false);
    }
    let mut agreed = None;
    for (publication, list) in lists {
        if list.is_some() {
            continue;
        }
        let setting = publication.stored_generated_columns;
        if *agreed.get_or_insert(setting) != setting {
            return Err(Error::DifferentGeneratedColumns {
                namespace: namespace_name(relation),
                relation: relation.name().to_owned(),
            });
        }
    }
    Ok(agreed.unwrap_or(false))
}
