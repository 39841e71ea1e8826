//! The random differential test.
//!
//! A *round* is a [`Case`] that [`generate::case`] draws from a seed: tables, publications, the statements of some
//! sessions in a determined order, and ways to read the slots. [`Runner`] runs it and compares what both plugins
//! send. A case that shows a difference is made small by [`shrink::shrink`] and written as a script, which the
//! tests run again ever after. [`Coverage`] counts what was seen.

pub mod case;
pub mod coverage;
pub mod execute;
pub mod generate;
pub mod schema;
pub mod shrink;
pub mod values;

pub use case::Case;
pub use coverage::Coverage;
pub use execute::{Difference, Runner};
