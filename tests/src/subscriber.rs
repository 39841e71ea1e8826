//! A subscriber and whether it has what the publisher has.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pgoutput_protocol::Lsn;
use postgres::Client;

use crate::server::plugin;
use crate::{Cluster, quote, wait_until};

/// How a publisher comes to use the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The slot asks for `pgoutput`, and `dynamic_library_path` makes that ours.
    InPlace,
    /// The slot asks for `pgoutput_rs`.
    ByName,
}

/// Subscribes to publications, with a slot of the subscription's name.
///
/// `options` are those of CREATE SUBSCRIPTION without what makes the slot, each after a comma: `, binary = true`.
///
/// # Errors
///
/// When that fails.
pub fn subscribe(
    way: Way,
    name: &str,
    publisher: (&Cluster, &str),
    subscriber: &mut Client,
    publications: &str,
    options: &str,
) -> Result<()> {
    let (cluster, database) = publisher;
    let create_slot = way == Way::InPlace;
    if !create_slot {
        cluster.client(database)?.execute(
            "SELECT pg_create_logical_replication_slot($1::text::name, $2::text::name)",
            &[&name, &plugin()],
        )?;
    }
    let command = format!(
        "CREATE SUBSCRIPTION {name} CONNECTION {} PUBLICATION {publications} WITH (create_slot = {create_slot}{options})",
        quote::literal(&cluster.connection_string(database))
    );
    subscriber.batch_execute(&command).with_context(|| command.clone())
}

/// Waits until the tables of all subscriptions of a database have been copied.
///
/// # Errors
///
/// When it takes too long.
pub fn wait_for_copy(subscriber: &mut Client) -> Result<()> {
    wait_until("the initial copy of the tables", || {
        let row = subscriber.query_one(
            "SELECT count(*) FILTER (WHERE srsubstate <> 'r'), count(*) FROM pg_subscription_rel",
            &[],
        )?;
        Ok(row.get::<_, i64>(0) == 0 && row.get::<_, i64>(1) > 0)
    })
}

/// Waits until subscribers have confirmed all that is committed on the publisher.
///
/// # Errors
///
/// When one doesn't.
pub fn wait_for_catch_up(publisher: &Cluster, database: &str, slots: &[&str]) -> Result<()> {
    let end = publisher.flushed(database)?;
    let mut client = publisher.client(database)?;
    for slot in slots {
        wait_until(&format!("the subscriber of slot {slot} to reach {end}"), || {
            let row = client.query_one(
                "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1",
                &[slot],
            )?;
            let confirmed: Lsn = row.get::<_, &str>(0).parse()?;
            Ok(confirmed >= end)
        })?;
    }
    Ok(())
}

/// What is in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name with that of its schema, quoted as SQL needs it.
    pub name: String,
    /// How many rows it has.
    pub rows: i64,
    /// A checksum over all rows, whatever their order.
    pub checksum: String,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} rows, checksum {}", self.name, self.rows, self.checksum)
    }
}

/// What is in each table of a database.
///
/// # Errors
///
/// When they can't be read.
pub fn tables(client: &mut Client) -> Result<Vec<Table>> {
    let names: Vec<String> = client
        .query(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
            &[],
        )?
        .iter()
        .map(|row| row.get(0))
        .collect();
    names
        .into_iter()
        .map(|name| {
            let row = client.query_one(
                &format!(
                    "SELECT count(*), left(md5(coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)::text), 12)
                     FROM {name} t"
                ),
                &[],
            )?;
            Ok(Table { name, rows: row.get(0), checksum: row.get(1) })
        })
        .collect()
}

/// Checks that both sides have the same in all tables of the publisher, and returns that.
///
/// # Errors
///
/// When not, with what differs.
pub fn check_equal(publisher: &mut Client, subscriber: &mut Client) -> Result<Vec<Table>> {
    let (published, subscribed) = (tables(publisher)?, tables(subscriber)?);
    ensure!(!published.is_empty(), "the publisher has no tables");
    let mut differences = Vec::new();
    for table in &published {
        match subscribed.iter().find(|candidate| candidate.name == table.name) {
            Some(same) if same == table => {}
            Some(other) => differences.push(format!("{table} on the publisher, {other} on the subscriber")),
            None => differences.push(format!("{} is missing on the subscriber", table.name)),
        }
    }
    if differences.is_empty() {
        return Ok(published);
    }
    bail!("publisher and subscriber differ:\n{}", differences.join("\n"))
}

/// The output plugin that a process of a cluster has mapped: the built-in one or ours, with symbolic links resolved.
///
/// # Errors
///
/// When it has none, or both.
pub fn mapped_plugin(cluster: &Cluster, pid: u32) -> Result<PathBuf> {
    let server = cluster.server();
    let candidates: Vec<PathBuf> = [
        server.pkglibdir.join("pgoutput.so"),
        server.library(),
        server.in_place_directory().join("pgoutput.so"),
    ]
    .iter()
    .filter_map(|path| path.canonicalize().ok())
    .collect();
    let mapped = cluster.libraries(pid)?;
    let mut plugins: Vec<_> = mapped.into_iter().filter(|library| candidates.contains(library)).collect();
    plugins.dedup();
    match plugins.as_slice() {
        [plugin] => Ok(plugin.clone()),
        [] => bail!("process {pid} has mapped no output plugin"),
        _ => bail!("process {pid} has mapped several output plugins: {plugins:?}"),
    }
}

/// Checks that a walsender uses the plugin that is tested.
///
/// # Errors
///
/// When it uses another.
pub fn check_plugin(cluster: &Cluster, pid: u32) -> Result<PathBuf> {
    let mapped = mapped_plugin(cluster, pid)?;
    let wanted = if plugin() == "pgoutput" {
        cluster.server().pkglibdir.join("pgoutput.so")
    } else {
        cluster.server().library()
    };
    ensure!(is_same(&mapped, &wanted), "walsender {pid} uses {}, not {}", mapped.display(), wanted.display());
    Ok(mapped)
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
