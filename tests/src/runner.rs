//! Runs tests on every server, and hands them clusters.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Error, Result};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::workdir;

/// A test: it runs once for each server.
pub type TestFunction = fn(&Test) -> Result<()>;

/// A name for each function, which is the function's.
#[macro_export]
macro_rules! tests {
    ($($function:path),+ $(,)?) => {
        &[$((stringify!($function), $function as $crate::runner::TestFunction)),+]
    };
}

/// Clusters that were used by a test that passed, and wait for the next.
type Pool = Mutex<HashMap<(u32, Settings), Vec<Cluster>>>;

/// A test that runs: the server it runs on, and its clusters.
pub struct Test {
    server: Arc<Server>,
    pool: Arc<Pool>,
    clusters: RefCell<Vec<Lent>>,
}

struct Lent {
    cluster: Arc<Cluster>,
    settings: Settings,
    /// How long the log was.
    log: u64,
}

impl Test {
    /// The server to test on.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// A cluster that nobody else uses, with default settings.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn cluster(&self) -> Result<Arc<Cluster>> {
        self.cluster_with(Settings::default())
    }

    /// A cluster that nobody else uses. One that an earlier test has used is cleaned and taken, if there is one.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn cluster_with(&self, settings: Settings) -> Result<Arc<Cluster>> {
        let key = (self.server.major, settings);
        let used = self.pool.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&key).and_then(Vec::pop);
        let (_, settings) = key;
        let cluster = match used {
            Some(cluster) => cluster,
            None => Cluster::start(&self.server, &settings)?,
        };
        let cluster = Arc::new(cluster);
        self.clusters.borrow_mut().push(Lent {
            log: cluster.log_length(),
            cluster: Arc::clone(&cluster),
            settings,
        });
        Ok(cluster)
    }

    /// Gives the clusters back after the test has passed.
    fn give_back(self) {
        let clusters = self.clusters.into_inner();
        for Lent { cluster, .. } in &clusters {
            // A subscriber that still connects keeps its publisher from being cleaned. If this fails, so does cleaning.
            let _ = cluster.drop_subscriptions();
        }
        for Lent { cluster, settings, .. } in clusters {
            // One that can't be cleaned is stopped by being dropped.
            if let Some(cluster) = Arc::into_inner(cluster).filter(|cluster| cluster.clean().is_ok()) {
                let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
                pool.entry((self.server.major, settings)).or_default().push(cluster);
            }
        }
    }

    /// What the servers logged, for a test that has failed.
    fn logs(&self) -> String {
        const SHOWN: usize = 60;
        let mut text = String::new();
        for (number, Lent { cluster, log, .. }) in self.clusters.borrow().iter().enumerate() {
            let log = cluster.log_since(*log);
            let lines: Vec<_> = log.lines().collect();
            let _ = writeln!(text, "\nLog of cluster {}, {}:", number + 1, self.server);
            for line in &lines[lines.len().saturating_sub(SHOWN)..] {
                let _ = writeln!(text, "    {line:.2000}");
            }
        }
        text
    }
}

/// The `main` of a test binary: runs the tests that the command line asks for on every server.
pub fn main(tests: &[(&'static str, TestFunction)]) -> ExitCode {
    main_with_costly(tests, &[])
}

/// The same, with tests that take so much time or memory that they are run only when the command line says `--ignored`
/// or `--include-ignored`.
pub fn main_with_costly(
    tests: &[(&'static str, TestFunction)],
    costly: &[(&'static str, TestFunction)],
) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(2);
    let servers = match Server::all_from_env() {
        Ok(servers) => servers.into_iter().map(Arc::new).collect::<Vec<_>>(),
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let pool = Arc::new(Pool::default());
    // Test after test, not server after server, so that both threads meet different servers.
    let (shared, servers) = (&pool, &servers);
    let all = tests.iter().map(|test| (test, false)).chain(costly.iter().map(|test| (test, true)));
    let trials = all
        .flat_map(|((name, function), is_costly)| {
            servers.iter().map(move |server| {
                let (server, pool, function) = (Arc::clone(server), Arc::clone(shared), *function);
                let name = format!("{name}::pg{}", server.major);
                Trial::test(name, move || run(function, server, pool)).with_ignored_flag(is_costly)
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(pool);
    workdir::remove();
    conclusion.exit_code()
}

fn run(function: TestFunction, server: Arc<Server>, pool: Arc<Pool>) -> Result<(), Failed> {
    let test = Test { server, pool, clusters: RefCell::default() };
    let outcome = catch_unwind(AssertUnwindSafe(|| function(&test)));
    let message = match outcome {
        Ok(Ok(())) => {
            test.give_back();
            return Ok(());
        }
        Ok(Err(error)) => explain(&error),
        // The message has been printed by the panic hook.
        Err(_) => "the test panicked".to_owned(),
    };
    Err(format!("{message}\n{}", test.logs()).into())
}

/// An error with its causes, and the lines of the test that it went through when RUST_BACKTRACE is set.
fn explain(error: &Error) -> String {
    let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
    let mut text = causes.join("\nbecause: ");
    let backtrace = error.backtrace().to_string();
    for line in backtrace.lines().filter(|line| line.contains("/tests/tests/")) {
        let _ = write!(text, "\n{line}");
    }
    text
}
