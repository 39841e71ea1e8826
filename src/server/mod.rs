//! The server, through small safe wrappers.
//!
//! This is the only place that knows how server versions differ: everything marked with a feature of one is in
//! this module or below it.

pub mod catalog;
pub mod connection;
pub mod context;
pub mod encoding;
pub mod executor;
pub mod format_settings;
pub mod function;
pub mod invalidation;
pub mod list;
pub mod memory;
pub mod relation;
pub mod report;
pub mod string_info;
pub mod transaction;
pub mod unguarded;
pub mod varlena;

use core::ffi::CStr;

use pgrx::pg_sys;
use pgrx::pg_sys::{Datum, Oid};

use invalidation::{Effect, watch_catalog};

/// How this version's built-in plugin differs from that of others, where it isn't a matter of bindings.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// The highest protocol version.
    pub maximum_protocol_version: u32,
    /// `streaming` takes `parallel`, and Stream Abort then carries an LSN and a time.
    pub parallel_streaming: bool,
    /// There is an option `origin`.
    pub origin_option: bool,
    /// Required options are checked where options are parsed, before the protocol version is.
    pub checks_required_options: bool,
    /// A publication that doesn't exist is skipped with a WARNING, instead of being an ERROR.
    pub skips_missing_publications: bool,
    /// The plugin itself reports progress every so many changes; later servers do it for the plugin.
    pub reports_progress_of_changes: bool,
    /// The relation that rows go out as stays open when an entry is built, in any case; other versions leave it open only
    /// where they find row filters or column lists, or an action that no publication gives without a filter.
    pub keeps_relations_open: bool,
    /// When a column list stands for no list.
    pub whole_list: WholeList,
    /// Several publications of a relation must agree on `publish_generated_columns`, and stored generated
    /// columns can be published.
    pub generated_columns: bool,
}

/// When a column list that names every column counts as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each version has one of them")]
pub enum WholeList {
    /// When it is as long as pg_class.relnatts: dropped and generated columns count.
    AllAttributes,
    /// When it is as long as the number of columns that are neither dropped nor generated.
    PublishableAttributes,
    /// Never.
    Never,
}

/// The behaviour of the version that this library is built for.
pub const BEHAVIOUR: Behaviour = Behaviour {
    maximum_protocol_version: if cfg!(feature = "pg15") { 3 } else { 4 },
    parallel_streaming: cfg!(not(feature = "pg15")),
    origin_option: cfg!(not(feature = "pg15")),
    checks_required_options: cfg!(not(feature = "pg15")),
    skips_missing_publications: cfg!(any(feature = "pg18", feature = "pg19")),
    reports_progress_of_changes: cfg!(feature = "pg15"),
    keeps_relations_open: cfg!(any(feature = "pg18", feature = "pg19")),
    whole_list: if cfg!(feature = "pg15") {
        WholeList::AllAttributes
    } else if cfg!(any(feature = "pg16", feature = "pg17")) {
        WholeList::PublishableAttributes
    } else {
        WholeList::Never
    },
    generated_columns: cfg!(any(feature = "pg18", feature = "pg19")),
};

/// Whether the running server's built-in plugin has what 15.20 changed. This came with a minor release, so the running
/// server is asked, not the one that was built for; of the other majors no release with the changes has been seen.
///
/// - It refuses an empty `proto_version`, and misses the value of one before it minds that it is the second.
/// - Stream Prepare makes the schemas that the stream had count as sent, as Stream Commit does.
pub fn has_changes_of_15_20() -> bool {
    const FIRST: u32 = 150_020;
    if !cfg!(feature = "pg15") {
        return false;
    }
    // SAFETY: the setting exists in every server; its value is a NUL-terminated string of the server's.
    let version = unsafe {
        let value = pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false);
        CStr::from_ptr(value)
    };
    version
        .to_str()
        .ok()
        .and_then(|version| version.parse().ok())
        .is_some_and(|version: u32| version >= FIRST)
}

/// The message for a protocol version above the highest.
pub const PROTOCOL_VERSION_TOO_HIGH: &CStr = if cfg!(feature = "pg15") {
    c"client sent proto_version=%d but we only support protocol %d or lower"
} else {
    c"client sent proto_version=%d but server only supports protocol %d or lower"
};

/// The message for a protocol version below the lowest.
pub const PROTOCOL_VERSION_TOO_LOW: &CStr = if cfg!(feature = "pg15") {
    c"client sent proto_version=%d but we only support protocol %d or higher"
} else {
    c"client sent proto_version=%d but server only supports protocol %d or higher"
};

/// The type of a system cache's id in callbacks and look-ups.
#[cfg(not(feature = "pg19"))]
type CacheId = core::ffi::c_int;
#[cfg(feature = "pg19")]
type CacheId = pg_sys::SysCacheIdentifier::Type;

/// The system caches that are read or watched.
#[derive(Clone, Copy, Debug)]
enum SystemCache {
    Namespace,
    Procedure,
    Publication,
    PublicationNamespaceMap,
    PublicationRelMap,
    TypeOid,
}

impl SystemCache {
    fn id(self) -> CacheId {
        use pg_sys::SysCacheIdentifier as Id;
        (match self {
            SystemCache::Namespace => Id::NAMESPACEOID,
            SystemCache::Procedure => Id::PROCOID,
            SystemCache::Publication => Id::PUBLICATIONOID,
            SystemCache::PublicationNamespaceMap => Id::PUBLICATIONNAMESPACEMAP,
            SystemCache::PublicationRelMap => Id::PUBLICATIONRELMAP,
            SystemCache::TypeOid => Id::TYPEOID,
        }) as CacheId
    }
}

/// Registers what the built-in plugin of this version watches, and the caches that our plans of output functions
/// stand on (the built-in plugin has no plans: it looks functions up for every value).
fn register_invalidation_callbacks() {
    // SAFETY: the callbacks have the signatures that the server asks for and stay loaded with the library.
    unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(invalidation::relation_changed), Datum::from(0usize));
        #[cfg(any(feature = "pg18", feature = "pg19"))]
        pg_sys::CacheRegisterRelSyncCallback(Some(invalidation::relation_changed), Datum::from(0usize));
    }
    if cfg!(any(feature = "pg18", feature = "pg19")) {
        watch_catalog(SystemCache::Publication, Effect::Publications);
    } else {
        watch_catalog(SystemCache::Publication, Effect::PublicationsAndRelations);
        watch_catalog(SystemCache::PublicationRelMap, Effect::Relations);
        watch_catalog(SystemCache::PublicationNamespaceMap, Effect::Relations);
    }
    if cfg!(not(feature = "pg15")) {
        watch_catalog(SystemCache::Namespace, Effect::Relations);
    }
    watch_catalog(SystemCache::TypeOid, Effect::Types);
    watch_catalog(SystemCache::Procedure, Effect::Types);
}

fn xid(xid: pg_sys::TransactionId) -> u32 {
    xid.into_inner()
}

fn is_subtransaction(transaction: &pg_sys::ReorderBufferTXN) -> bool {
    transaction.txn_flags & pg_sys::RBTXN_IS_SUBXACT != 0
}

/// The time of commit, prepare or abort; the three share their place.
fn transaction_time(transaction: &pg_sys::ReorderBufferTXN) -> i64 {
    // SAFETY: every member of the union is a TimestampTz.
    #[cfg(not(feature = "pg19"))]
    unsafe {
        transaction.xact_time.commit_time
    }
    // SAFETY: every member of the union is a TimestampTz.
    #[cfg(feature = "pg19")]
    unsafe {
        transaction.__bindgen_anon_1.commit_time
    }
}

/// The old and the new tuple of a change of a row, null where there is none.
fn tuples(change: &pg_sys::ReorderBufferChange) -> (pg_sys::HeapTuple, pg_sys::HeapTuple) {
    // SAFETY: only asked of changes of rows, whose member of the union this is.
    let rows = unsafe { change.data.tp };
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let tuple = |buffer: *mut pg_sys::ReorderBufferTupleBuf| {
            if buffer.is_null() {
                return core::ptr::null_mut();
            }
            // SAFETY: a buffer that isn't null holds a tuple.
            unsafe { &raw mut (*buffer).tuple }
        };
        (tuple(rows.oldtuple), tuple(rows.newtuple))
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    (rows.oldtuple, rows.newtuple)
}

/// The attribute at `index`, from 0.
///
/// # Safety
/// The descriptor must be valid and have that many attributes.
unsafe fn attribute(descriptor: pg_sys::TupleDesc, index: usize) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's contract.
    #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
    unsafe {
        (*descriptor).attrs.as_ptr().add(index)
    }
    // SAFETY: the caller's contract.
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    unsafe {
        pg_sys::TupleDescAttr(descriptor, index as core::ffi::c_int)
    }
}

fn publishes_stored_generated_columns(publication: &pg_sys::Publication) -> bool {
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    {
        publication.pubgencols_type == pg_sys::PublishGencolsType::PUBLISH_GENCOLS_STORED
    }
    #[cfg(not(any(feature = "pg18", feature = "pg19")))]
    {
        let _ = publication;
        false
    }
}

/// The publications that name the relation.
///
/// # Safety
/// Reads catalogs: inside a transaction only.
unsafe fn relation_publications(relation: Oid) -> *mut pg_sys::List {
    // SAFETY: the caller's contract.
    #[cfg(not(feature = "pg19"))]
    unsafe {
        pg_sys::GetRelationPublications(relation)
    }
    // SAFETY: the caller's contract.
    #[cfg(feature = "pg19")]
    unsafe {
        pg_sys::GetRelationIncludedPublications(relation)
    }
}

/// The map from attributes of `to` to those of `from` by name; null if the two have the same layout.
///
/// # Safety
/// Both descriptors must be valid.
unsafe fn attribute_map(from: pg_sys::TupleDesc, to: pg_sys::TupleDesc) -> *mut pg_sys::AttrMap {
    // SAFETY: the caller's contract.
    #[cfg(feature = "pg15")]
    unsafe {
        pg_sys::build_attrmap_by_name_if_req(from, to)
    }
    // SAFETY: the caller's contract.
    #[cfg(not(feature = "pg15"))]
    unsafe {
        pg_sys::build_attrmap_by_name_if_req(from, to, false)
    }
}

/// Replaces virtual generated columns by their expressions, where the version has them.
///
/// # Safety
/// `expression` must be an expression over the columns of `relation`, which must be open.
unsafe fn expand_generated_columns(
    expression: *mut pg_sys::Node,
    relation: pg_sys::Relation,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's contract; a row filter's columns have range table index 1.
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    unsafe {
        pg_sys::expand_generated_columns_in_expr(expression, relation, 1)
    }
    #[cfg(not(any(feature = "pg18", feature = "pg19")))]
    {
        let _ = relation;
        expression
    }
}
