//! What is published, and how: publications, row filters, column lists, ancestors.
//!
//! "Publication" and its pages on row filters, column lists and generated columns in the PostgreSQL manual's
//! chapter "Logical Replication".

mod column_list;
mod relation_cache;
mod row_filter;

pub use column_list::PublishedColumns;
pub use relation_cache::{EntryIndex, RelationCache};
pub use row_filter::{RowFilters, Verdict};

use std::ffi::CString;

use pgrx::pg_sys::errcodes::PgSqlErrorCode;

use crate::server::BEHAVIOUR;
use crate::server::catalog::{self, Publication};
use crate::server::invalidation::Watch;
use crate::server::report::{Argument, Format, Report};

/// The publications that the client asked for.
#[derive(Debug)]
pub struct Publications {
    names: Vec<CString>,
    loaded: Vec<Publication>,
}

impl Publications {
    /// Publications by name; nothing is loaded yet.
    pub fn new(names: Vec<CString>) -> Self {
        Publications { names, loaded: Vec::new() }
    }

    /// The publications, read again if a publication has changed.
    ///
    /// One that doesn't exist is an ERROR or is left out with a WARNING, as the server's version has it.
    fn current(&mut self, watch: &Watch) -> &[Publication] {
        if !watch.publications_valid.get() {
            self.loaded.clear();
            for name in &self.names {
                match catalog::publication_by_name(name, BEHAVIOUR.skips_missing_publications) {
                    Some(publication) => self.loaded.push(publication),
                    None => Report {
                        sqlstate: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                        message: Format {
                            format: c"skipped loading publication \"%s\"",
                            arguments: &[Argument::Text(name)],
                        },
                        detail: Some(Format {
                            format: c"The publication does not exist at this point in the WAL.",
                            arguments: &[],
                        }),
                        hint: Some(Format {
                            format: c"Create the publication if it does not exist.",
                            arguments: &[],
                        }),
                    }
                    .warning(),
                }
            }
            // What arrives while catalogs are read doesn't count, as with the built-in plugin.
            watch.publications_valid.set(true);
        }
        &self.loaded
    }
}
