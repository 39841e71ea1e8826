//! Measures what logical decoding costs the publisher with the built-in plugin and with ours.
//!
//! Both decode the same WAL in turn, for one client, and must send the same. Environment:
//! - `WORKLOADS`: the names of those to run, separated by spaces; all.
//! - `PAIRS`: how many times each is run with each plugin; 7.
//! - `SCALE`: what the row counts are multiplied by; 1.
//! - `CHECK`: `yes` fails when a target is missed.
//! - `PG`: the server's major; 18.

mod client;
mod report;
mod workloads;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use pgoutput_tests::program::variable;
use pgoutput_tests::server::output;
use pgoutput_tests::{Cluster, Server, Settings, program};

use client::{Connector, Job, Measure};
use report::{Environment, Outcome, Round};
use workloads::{Dataset, Load, Workload, datasets, workloads};

/// The fewest pairs whose median and range say something.
const PAIRS: usize = 7;

fn main() -> ExitCode {
    program::main("the benchmark", run)
}

fn run() -> Result<bool> {
    let pairs = variable("PAIRS")?.unwrap_or(PAIRS);
    let scale = variable("SCALE")?.unwrap_or(1.0);
    ensure!(pairs > 0, "PAIRS must be at least 1");
    let workloads = selected()?;
    let server = Arc::new(Server::from_env(variable("PG")?.unwrap_or(18))?);
    let bench = Bench::start(&server, pairs)?;
    let environment = bench.environment(pairs, scale)?;
    let mut outcomes = Vec::new();
    for dataset in datasets(scale) {
        let of_dataset: Vec<_> =
            workloads.iter().filter(|workload| workload.dataset == dataset.name).collect();
        if !of_dataset.is_empty() {
            bench.measure(&dataset, &of_dataset, &mut outcomes).with_context(|| dataset.name)?;
        }
    }
    let report = report::markdown(&environment, &outcomes);
    let directory = Path::new("target/bench");
    fs::create_dir_all(directory)?;
    fs::write(directory.join("report.md"), &report)?;
    report::chart(&directory.join("chart.svg"), &outcomes)?;
    println!("{report}");
    eprintln!("written to {}: report.md and chart.svg", directory.display());
    let missed = outcomes.iter().flat_map(Outcome::targets).filter(|target| !target.is_met()).count();
    Ok(missed == 0 || env::var("CHECK").as_deref() != Ok("yes"))
}

fn selected() -> Result<Vec<Workload>> {
    let mut all = workloads();
    let wanted = env::var("WORKLOADS").unwrap_or_default();
    let wanted: Vec<_> = wanted.split_whitespace().collect();
    for name in &wanted {
        if !all.iter().any(|workload| workload.name == *name) {
            let names: Vec<_> = all.iter().map(|workload| workload.name).collect();
            bail!("WORKLOADS names {name}, but there are only {}", names.join(", "));
        }
    }
    if !wanted.is_empty() {
        all.retain(|workload| wanted.contains(&workload.name));
    }
    Ok(all)
}

/// The two plugins.
#[derive(Clone, Copy)]
enum Plugin {
    Stock,
    Ours,
}

impl Plugin {
    fn name(self) -> &'static str {
        match self {
            Plugin::Stock => "pgoutput",
            Plugin::Ours => "pgoutput_rs",
        }
    }
}

/// Slots of both plugins that start at one place.
struct Slots {
    prefix: &'static str,
}

impl Slots {
    fn name(&self, plugin: Plugin, number: usize) -> String {
        format!("{}_{}_{number}", self.prefix, plugin.name())
    }
}

struct Bench {
    cluster: Arc<Cluster>,
    connector: Connector,
    pairs: usize,
}

impl Bench {
    fn start(server: &Arc<Server>, pairs: usize) -> Result<Self> {
        let settings = Settings::default()
            .set("shared_buffers", "512MB")
            .set("synchronous_commit", "off")
            .set("jit", "off")
            .set("checkpoint_timeout", "1h")
            .set("max_wal_size", "16GB")
            .set("max_locks_per_transaction", "512")
            // Transactions are decoded in memory, but for the workload that streams.
            .set("logical_decoding_work_mem", "4GB");
        let cluster = Arc::new(Cluster::start(server, &settings)?);
        let connector = Connector::new(Arc::clone(&cluster))?;
        Ok(Bench { cluster, connector, pairs })
    }

    fn environment(&self, pairs: usize, scale: f64) -> Result<Environment> {
        let mut client = self.cluster.client("postgres")?;
        client.batch_execute("LOAD 'pgoutput_rs'")?;
        let row = client.query_one(
            "SELECT version(), current_date::text, current_setting('pgoutput_rs.flush_bytes')",
            &[],
        )?;
        let processor = fs::read_to_string("/proc/cpuinfo")?
            .lines()
            .find_map(|line| {
                line.strip_prefix("model name")
                    .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
            })
            .unwrap_or_default();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        Ok(Environment {
            server: row.get(0),
            date: row.get(1),
            flush_bytes: row.get(2),
            processor,
            processors: std::thread::available_parallelism()?.get(),
            kernel: release.split('.').take(2).collect::<Vec<_>>().join("."),
            pairs,
            scale,
        })
    }

    /// Makes a data set's WAL and runs the workloads that read it.
    fn measure<'a>(
        &self,
        dataset: &Dataset,
        workloads: &[&'a Workload],
        outcomes: &mut Vec<Outcome<'a>>,
    ) -> Result<()> {
        eprintln!("{}: making the WAL of {} rows", dataset.name, dataset.rows);
        let database = dataset.name;
        self.cluster.create_database_named(database)?;
        if let Load::Pgbench(_) = dataset.load {
            output(self.cluster.program("pgbench").args(["-i", "-q", "-s", "10", database]))?;
        }
        self.cluster.run_script(database, &dataset.setup)?;
        self.cluster.run_script(
            database,
            "CREATE PUBLICATION everything FOR ALL TABLES; CREATE PUBLICATION nothing; CHECKPOINT;",
        )?;
        let slots = workloads.iter().map(|workload| workload.slots).max().unwrap_or(1);
        let old = self.create_slots(database, "bench", slots)?;
        let mut fresh = None;
        if let Some(before) = &dataset.before {
            self.cluster.run_script(database, before)?;
            let from = self.cluster.flushed(database)?;
            fresh = Some((self.create_slots(database, "fresh", 1)?, from));
        }
        match &dataset.load {
            Load::Script(script) => self.cluster.run_script(database, script)?,
            Load::Pgbench(transactions) => {
                const CLIENTS: u64 = 4;
                let per_client = (transactions / CLIENTS).to_string();
                let clients = CLIENTS.to_string();
                let mut pgbench = self.cluster.program("pgbench");
                pgbench.args(["-n", "-c", &clients, "-j", "2", "-t", &per_client, database]);
                output(&mut pgbench)?;
            }
        }
        let until = self.cluster.flushed(database)?;
        for workload in workloads {
            let reading = Reading { bench: self, workload, database, until };
            let outcome = match &fresh {
                Some((fresh, from)) if workload.old_session => {
                    reading.old_session(dataset.rows, &old, fresh, *from)
                }
                _ => reading.rounds(dataset.rows, &old),
            };
            let outcome = outcome.with_context(|| workload.name)?;
            eprintln!("  {outcome}");
            outcomes.push(outcome);
        }
        let mut client = self.cluster.client("postgres")?;
        client.batch_execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")?;
        client.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)"))?;
        client.batch_execute("CHECKPOINT")?;
        Ok(())
    }

    fn create_slots(&self, database: &str, prefix: &'static str, count: usize) -> Result<Slots> {
        let slots = Slots { prefix };
        let mut client = self.cluster.client(database)?;
        let first = slots.name(Plugin::Stock, 0);
        client.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", &[&first])?;
        for plugin in [Plugin::Stock, Plugin::Ours] {
            for number in 0..count {
                let name = slots.name(plugin, number);
                if name != first {
                    client.query(
                        "SELECT pg_copy_logical_replication_slot($1, $2, false, $3)",
                        &[&first, &name, &plugin.name()],
                    )?;
                }
            }
        }
        Ok(slots)
    }
}

/// A workload that is run again and again.
struct Reading<'a, 'w> {
    bench: &'a Bench,
    workload: &'w Workload,
    database: &'a str,
    until: Lsn,
}

impl<'w> Reading<'_, 'w> {
    fn read(&self, slots: &Slots, plugin: Plugin, publication: &str, from: Option<Lsn>) -> Result<Measure> {
        let workload = self.workload;
        let jobs: Vec<_> = (0..workload.slots)
            .map(|number| Job {
                parameters: workload.parameters(self.database, matches!(plugin, Plugin::Ours)),
                network: workload.network,
                slot: slots.name(plugin, number),
                options: workload.options(publication),
                from,
                until: self.until,
            })
            .collect();
        self.bench.connector.read(&jobs).with_context(|| plugin.name())
    }

    /// Both plugins, which must send the same, in turn.
    fn pair(&self, slots: &Slots, from: Option<Lsn>) -> Result<(Measure, Measure)> {
        let stock = self.read(slots, Plugin::Stock, self.workload.publication, from)?;
        let ours = self.read(slots, Plugin::Ours, self.workload.publication, from)?;
        ensure!(
            stock.content == ours.content,
            "the plugins don't send the same: {:?} and {:?}",
            stock.content,
            ours.content
        );
        ensure!(stock.content.messages > 0, "nothing was sent");
        Ok((stock, ours))
    }

    fn nothing(&self, slots: &Slots, plugin: Plugin) -> Result<Measure> {
        let floor = self.read(slots, plugin, "nothing", None)?;
        // The beginning and the end of a stream block are sent in any case.
        ensure!(floor.content.messages == 0 || self.workload.streaming, "the floor isn't empty");
        Ok(floor)
    }

    fn rounds(&self, rows: u64, slots: &Slots) -> Result<Outcome<'w>> {
        // The first reads what isn't in the caches.
        let (first, _) = self.pair(slots, None)?;
        let mut rounds = Vec::new();
        for _ in 0..self.bench.pairs {
            let (stock, ours) = self.pair(slots, None)?;
            ensure!(stock.content == first.content, "the same WAL brings another stream than before");
            let floor = Some([self.nothing(slots, Plugin::Stock)?, self.nothing(slots, Plugin::Ours)?]);
            rounds.push(Round { stock, ours, floor, fresh: None });
        }
        Ok(Outcome::new(self.workload, rows, &rounds))
    }

    fn old_session(&self, rows: u64, old: &Slots, fresh: &Slots, from: Lsn) -> Result<Outcome<'w>> {
        let publication = self.workload.publication;
        self.pair(old, Some(from))?;
        let mut rounds = Vec::new();
        for _ in 0..self.bench.pairs {
            // The two of a plugin one after the other: so little is compared that a busy minute would show.
            let both = |plugin| -> Result<[Measure; 2]> {
                let old = self.read(old, plugin, publication, Some(from))?;
                Ok([old, self.read(fresh, plugin, publication, Some(from))?])
            };
            let ([stock, stock_fresh], [ours, ours_fresh]) = (both(Plugin::Stock)?, both(Plugin::Ours)?);
            for other in [ours, stock_fresh, ours_fresh] {
                ensure!(
                    stock.content == other.content,
                    "not all plugins and sessions send the same: {:?} and {:?}",
                    stock.content,
                    other.content
                );
            }
            rounds.push(Round { stock, ours, floor: None, fresh: Some([stock_fresh, ours_fresh]) });
        }
        Ok(Outcome::new(self.workload, rows, &rounds))
    }
}
