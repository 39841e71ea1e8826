//! What the catalogs say of publications, schemas, types and replication origins.
//!
//! Everything is read with the snapshot of the change being decoded.

use core::ffi::{CStr, c_char};
use std::ffi::CString;

use pgrx::pg_sys;
use pgrx::pg_sys::Oid;

use super::list;
use super::relation::AttributeSet;
use super::{SystemCache, memory::MemoryContext};

/// A row of pg_publication.
#[derive(Clone, Debug)]
pub struct Publication {
    /// Its oid.
    pub oid: Oid,
    /// FOR ALL TABLES.
    pub all_tables: bool,
    /// `publish_via_partition_root`.
    pub via_root: bool,
    /// `publish_generated_columns`: whether stored generated columns are published without being listed.
    pub stored_generated_columns: bool,
    /// `publish`.
    pub actions: Actions,
}

/// What a publication publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// INSERT.
    pub insert: bool,
    /// UPDATE.
    pub update: bool,
    /// DELETE.
    pub delete: bool,
    /// TRUNCATE.
    pub truncate: bool,
}

impl Actions {
    /// Whether any change of a row is published.
    pub fn any_row(self) -> bool {
        self.insert || self.update || self.delete
    }

    /// What either publishes.
    pub fn union(self, other: Actions) -> Actions {
        Actions {
            insert: self.insert | other.insert,
            update: self.update | other.update,
            delete: self.delete | other.delete,
            truncate: self.truncate | other.truncate,
        }
    }
}

/// The publication of that name.
///
/// If there is none: `None` where `missing_ok`, else the server's ERROR 42704.
pub fn publication_by_name(name: &CStr, missing_ok: bool) -> Option<Publication> {
    // SAFETY: the name is NUL-terminated; the result is palloc'd in the current memory context.
    let raw = unsafe { pg_sys::GetPublicationByName(name.as_ptr(), missing_ok).as_ref() }?;
    Some(Publication {
        oid: raw.oid,
        all_tables: raw.alltables,
        via_root: raw.pubviaroot,
        stored_generated_columns: super::publishes_stored_generated_columns(raw),
        actions: Actions {
            insert: raw.pubactions.pubinsert,
            update: raw.pubactions.pubupdate,
            delete: raw.pubactions.pubdelete,
            truncate: raw.pubactions.pubtruncate,
        },
    })
}

/// The publications that name the relation.
pub fn relation_publications(relation: Oid) -> Vec<Oid> {
    // SAFETY: a catalog look-up.
    list::oids(unsafe { super::relation_publications(relation) })
}

/// The publications that name the schema.
pub fn schema_publications(schema: Oid) -> Vec<Oid> {
    // SAFETY: a catalog look-up.
    list::oids(unsafe { pg_sys::GetSchemaPublications(schema) })
}

/// The ancestors of a partition, its parent first and the root of the tree last.
#[derive(Debug)]
pub struct Ancestors {
    list: *mut pg_sys::List,
    oids: Vec<Oid>,
}

impl Ancestors {
    /// Looks them up.
    pub fn of(partition: Oid) -> Self {
        // SAFETY: a catalog look-up; the list lives in the current memory context.
        let list = unsafe { pg_sys::get_partition_ancestors(partition) };
        Ancestors { list, oids: list::oids(list) }
    }

    /// The root of the tree and its level above the partition.
    pub fn root(&self) -> Option<(Oid, i32)> {
        self.oids.last().map(|root| (*root, self.oids.len() as i32))
    }

    /// The topmost ancestor that the publication names, itself or by its schema, and its level.
    pub fn topmost_in(&self, publication: Oid) -> Option<(Oid, i32)> {
        let mut level = 0;
        // SAFETY: the list is valid in this callback.
        let ancestor = unsafe { pg_sys::GetTopMostAncestorInPublication(publication, self.list, &mut level) };
        (ancestor != Oid::INVALID).then_some((ancestor, level))
    }
}

/// Whether the relation is a partition.
pub fn is_partition(relation: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_relispartition(relation) }
}

/// The schema of a relation.
pub fn relation_namespace(relation: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_namespace(relation) }
}

/// The name of a schema, in the database's encoding; `None` if it doesn't exist.
pub fn namespace_name(namespace: Oid) -> Option<CString> {
    // SAFETY: a catalog look-up; the name is palloc'd and copied at once.
    unsafe { copy_string(pg_sys::get_namespace_name(namespace)) }
}

/// The schema pg_catalog, which messages name by an empty string.
pub const PG_CATALOG_NAMESPACE: Oid = Oid::from_u32(11);

/// The name of a replication origin; `None` if it has been dropped.
pub fn origin_name(origin: u16) -> Option<CString> {
    let mut name: *mut c_char = core::ptr::null_mut();
    // SAFETY: a catalog look-up that fills `name` if it returns true.
    unsafe {
        if !pg_sys::replorigin_by_oid(origin, true, &mut name) {
            return None;
        }
        copy_string(name)
    }
}

/// # Safety
/// `string` must be null or a NUL-terminated string.
unsafe fn copy_string(string: *const c_char) -> Option<CString> {
    // SAFETY: the caller's contract.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_owned())
}

/// Whether the publication names the schema.
pub fn publishes_schema(publication: Oid, schema: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe {
        pg_sys::SearchSysCacheExists(
            SystemCache::PublicationNamespaceMap.id(),
            schema.into(),
            publication.into(),
            0.into(),
            0.into(),
        )
    }
}

/// What a publication says of a relation that it names.
#[derive(Debug)]
pub struct PublicationRelation {
    /// The row filter as the catalog stores it: an expression tree in text form.
    pub row_filter: Option<CString>,
    /// The column list.
    pub columns: Option<AttributeSet>,
}

/// The row of pg_publication_rel for the two, if there is one.
pub fn publication_relation(publication: Oid, relation: Oid) -> Option<PublicationRelation> {
    let cache = SystemCache::PublicationRelMap;
    // SAFETY: a catalog look-up, whose tuple is released below; attributes are copied out before.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache(cache.id(), relation.into(), publication.into(), 0.into(), 0.into());
        if tuple.is_null() {
            return None;
        }
        let attribute = |number: u32| {
            let mut null = true;
            let value = pg_sys::SysCacheGetAttr(cache.id(), tuple, number as i16, &mut null);
            (!null).then_some(value)
        };
        let row_filter = attribute(pg_sys::Anum_pg_publication_rel_prqual)
            .and_then(|value| copy_string(pg_sys::text_to_cstring(value.cast_mut_ptr::<pg_sys::varlena>())));
        let columns = attribute(pg_sys::Anum_pg_publication_rel_prattrs).map(|value| {
            let bitmap =
                pg_sys::pub_collist_to_bitmapset(core::ptr::null_mut(), value, core::ptr::null_mut());
            AttributeSet::from_bitmapset(bitmap, 0)
        });
        pg_sys::ReleaseSysCache(tuple);
        Some(PublicationRelation { row_filter, columns })
    }
}

/// A type's name: that of the type at the bottom of a stack of domains.
#[derive(Debug)]
pub struct TypeName {
    /// The schema.
    pub namespace: Oid,
    /// The name, in the database's encoding.
    pub name: CString,
}

/// How values of a type are put out.
#[derive(Clone, Copy, Debug)]
pub struct TypeFunctions {
    /// The output function.
    pub output: Oid,
    /// The send function, if the type has one.
    pub send: Option<Oid>,
}

/// Reads a row of pg_type; `None` if there is no such type.
fn with_type<R>(oid: Oid, f: impl FnOnce(&pg_sys::FormData_pg_type) -> R) -> Option<R> {
    // SAFETY: a catalog look-up; the row is only read until the tuple is released.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache(SystemCache::TypeOid.id(), oid.into(), 0.into(), 0.into(), 0.into());
        if tuple.is_null() {
            return None;
        }
        let row = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_type>(tuple);
        let result = f(&*row);
        pg_sys::ReleaseSysCache(tuple);
        Some(result)
    }
}

/// The name of the ultimate base type of `oid`. Gives the oid back that wasn't found if one wasn't.
pub fn base_type_name(oid: Oid) -> Result<TypeName, Oid> {
    // SAFETY: a catalog look-up.
    let base = unsafe { pg_sys::getBaseType(oid) };
    with_type(base, |row| TypeName {
        namespace: row.typnamespace,
        // SAFETY: a NameData is NUL-terminated.
        name: unsafe { CStr::from_ptr(row.typname.data.as_ptr()) }.to_owned(),
    })
    .ok_or(base)
}

/// The functions that put values of the type out; `None` if there is no such type.
pub fn type_functions(oid: Oid) -> Option<TypeFunctions> {
    with_type(oid, |row| TypeFunctions {
        output: row.typoutput,
        send: (row.typsend != Oid::INVALID).then_some(row.typsend),
    })
}

/// Splits a comma-separated list of identifiers by the rules of SQL names; `None` if its syntax is wrong.
pub fn split_identifiers(text: &CStr, memory: MemoryContext) -> Option<Vec<CString>> {
    let entered = memory.enter();
    let mut names: *mut pg_sys::List = core::ptr::null_mut();
    // SAFETY: the function scribbles on its input, which so is a copy, and the names point into it.
    let valid = unsafe {
        let copy = pg_sys::pstrdup(text.as_ptr());
        pg_sys::SplitIdentifierString(copy, b',' as c_char, &mut names)
    };
    let result = valid.then(|| {
        list::pointers(names)
            // SAFETY: each name is NUL-terminated.
            .filter_map(|name| unsafe { copy_string(name.cast::<c_char>()) })
            .collect()
    });
    entered.leave();
    result
}
