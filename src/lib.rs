//! A logical decoding output plugin that stands in for PostgreSQL's built-in `pgoutput`.
//!
//! The messages are byte for byte those of `pgoutput` of the same server version. See the README for how to use
//! it, and DEVELOPMENT.md for how the modules divide the work.

#![deny(unsafe_op_in_unsafe_fn)]

mod callbacks;
mod error;
mod options;
mod output;
mod publication;
mod server;
mod session;
mod settings;
mod tuple;

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

/// Prepares the library when the server loads it.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    settings::define();
}

/// Gives the server the plugin's callbacks; it calls this when a slot with the plugin is used.
///
/// "Initialization Function" of "Logical Decoding Output Plugins" in the PostgreSQL manual.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn _PG_output_plugin_init(callbacks: *mut pg_sys::OutputPluginCallbacks) {
    // SAFETY: the server passes a table for the plugin to fill in.
    callbacks::register(unsafe { &mut *callbacks });
}

/// What `cargo pgrx test` asks for to run the `#[pg_test]`s.
#[cfg(test)]
pub mod pg_test {
    /// Called once before the tests.
    pub fn setup(_options: Vec<&str>) {}

    /// Settings that the tests' server needs.
    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![]
    }
}
