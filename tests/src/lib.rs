//! The harness of the integration tests: real clusters, the built-in plugin and ours side by side.
//!
//! A test is a function that takes a [`Test`] and runs once for every server that the environment names (see
//! [`Server::all_from_env`]). It gets clusters from there, which it has for itself while it runs.
//!
//! - [`Cluster`] is started, stopped, crashed and asked; nothing of it survives the process.
//! - [`Differential`] runs a workload and compares what both plugins send for it.
//! - [`subscriber::Pair`] is a publisher and a subscriber, and [`Traffic`] what sessions do on the publisher.
//! - [`wire::Connection`] shows a replication stream as it comes.

pub mod cluster;
pub mod differential;
pub mod options;
pub mod process;
pub mod program;
pub mod quote;
pub mod random;
pub mod runner;
pub mod server;
pub mod stream;
pub mod subscriber;
pub mod traffic;
pub mod wire;
pub mod workdir;

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use pgoutput_protocol::Timestamp;

pub use cluster::{Cluster, Settings, Stop};
pub use differential::Differential;
pub use options::Options;
pub use runner::Test;
pub use server::Server;
pub use traffic::Traffic;

/// How long anything may take before it counts as hanging.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until something is so.
///
/// # Errors
///
/// When it can't be told or doesn't become so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    let mut pause = Duration::from_millis(1);
    while !is_so().with_context(|| format!("while waiting for {what}"))? {
        if Instant::now() > deadline {
            bail!("waited for {what} in vain");
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Ok(())
}

/// The time as PostgreSQL counts it.
pub fn postgres_now() -> Timestamp {
    const UNIX_TO_POSTGRES: i64 = 946_684_800_000_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(now.as_micros()).unwrap_or(i64::MAX) - UNIX_TO_POSTGRES)
}
