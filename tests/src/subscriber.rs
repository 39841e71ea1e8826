//! A subscriber and whether it has what the publisher has.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pgoutput_protocol::Lsn;
use postgres::Client;

use crate::server::plugin;
use crate::{Cluster, Settings, Test, quote, wait_until};

/// How a publisher comes to use the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The slot asks for `pgoutput`, and `dynamic_library_path` makes that ours.
    InPlace,
    /// The slot asks for `pgoutput_rs`.
    ByName,
}

impl Way {
    /// What a publisher of this kind is made with.
    pub fn settings(self, test: &Test) -> Settings {
        match self {
            Way::InPlace => Settings::default().in_place(test.server()),
            Way::ByName => Settings::default(),
        }
    }
}

/// A publisher and a subscriber, each with a database of the same name.
pub struct Pair {
    /// The publisher, which has the extension.
    pub publisher: Arc<Cluster>,
    /// The subscriber, which has nothing of ours.
    pub subscriber: Arc<Cluster>,
}

impl Pair {
    /// The database on each of them.
    pub const DATABASE: &str = "bench";
    /// The subscription of [`Pair::subscribe`].
    pub const SUBSCRIPTION: &str = "sub";

    /// Two clusters with such a database.
    ///
    /// # Errors
    ///
    /// When they can't be started.
    pub fn new(test: &Test, way: Way) -> Result<Pair> {
        // It confirms what it has flushed: the tests needn't wait for long.
        let subscriber = Settings::default().set("wal_writer_delay", "10ms");
        Pair::with_settings(test, way.settings(test), subscriber)
    }

    /// As [`Pair::new`], with settings of the publisher and of the subscriber.
    ///
    /// # Errors
    ///
    /// When they can't be started.
    pub fn with_settings(test: &Test, publisher: Settings, subscriber: Settings) -> Result<Pair> {
        let pair =
            Pair { publisher: test.cluster_with(publisher)?, subscriber: test.cluster_with(subscriber)? };
        for cluster in [&pair.publisher, &pair.subscriber] {
            cluster.create_database_named(Pair::DATABASE)?;
        }
        Ok(pair)
    }

    /// A session on the publisher.
    ///
    /// # Errors
    ///
    /// When it can't connect.
    pub fn publisher(&self) -> Result<Client> {
        self.publisher.client(Pair::DATABASE)
    }

    /// A session on the subscriber.
    ///
    /// # Errors
    ///
    /// When it can't connect.
    pub fn subscriber(&self) -> Result<Client> {
        self.subscriber.client(Pair::DATABASE)
    }

    /// Runs a script on both.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub fn on_both(&self, script: &str) -> Result<()> {
        self.subscriber()?.batch_execute(script)?;
        self.publisher()?.batch_execute(script)?;
        Ok(())
    }

    /// Subscribes to the publication `pub`.
    ///
    /// # Errors
    ///
    /// When that fails.
    pub fn subscribe(&self, way: Way, options: &str) -> Result<()> {
        let (publisher, subscriber) = ((&*self.publisher, Pair::DATABASE), &mut self.subscriber()?);
        subscribe(way, Pair::SUBSCRIPTION, publisher, subscriber, "pub", options)
    }

    /// Subscribes to publications in place of `pgoutput`, and waits until the tables have been copied.
    ///
    /// # Errors
    ///
    /// When that fails, or the walsender uses another plugin than the tested.
    pub fn subscribe_in_place(&self, publications: &str, options: &str) -> Result<()> {
        let (publisher, subscriber) = ((&*self.publisher, Pair::DATABASE), &mut self.subscriber()?);
        subscribe(Way::InPlace, Pair::SUBSCRIPTION, publisher, subscriber, publications, options)?;
        wait_for_copy(subscriber)?;
        self.check_plugin()
    }

    /// Has the subscription follow what the publication lists now.
    ///
    /// # Errors
    ///
    /// When that fails.
    pub fn refresh(&self) -> Result<()> {
        self.subscriber()?
            .batch_execute(&format!("ALTER SUBSCRIPTION {} REFRESH PUBLICATION", Pair::SUBSCRIPTION))?;
        Ok(())
    }

    /// Checks that the walsender uses the plugin that is tested.
    ///
    /// # Errors
    ///
    /// When it uses another.
    pub fn check_plugin(&self) -> Result<()> {
        check_plugin(&self.publisher, Pair::SUBSCRIPTION)?;
        Ok(())
    }

    /// Waits until the subscriber has all that is committed.
    ///
    /// # Errors
    ///
    /// When it doesn't get there.
    pub fn catch_up(&self) -> Result<()> {
        wait_for_catch_up(&self.publisher, Pair::DATABASE, &[Pair::SUBSCRIPTION])
    }

    /// Waits until the subscriber has all, and checks that it is the same.
    ///
    /// # Errors
    ///
    /// When it isn't, or there is nothing to compare.
    pub fn check_equal(&self) -> Result<()> {
        wait_for_copy(&mut self.subscriber()?)?;
        self.catch_up()?;
        let tables = check_equal(&mut self.publisher()?, &mut self.subscriber()?)?;
        ensure!(tables.iter().any(|table| table.rows > 0), "all tables are empty");
        Ok(())
    }

    /// Waits until the subscriber has all, and checks that a query there has the rows of another on the publisher.
    ///
    /// # Errors
    ///
    /// When it hasn't, or there are no rows.
    pub fn check_rows(&self, published: &str, subscribed: &str) -> Result<()> {
        self.catch_up()?;
        let (wanted, found) =
            (rows(&mut self.publisher()?, published)?, rows(&mut self.subscriber()?, subscribed)?);
        ensure!(!wanted.is_empty(), "no rows to compare: {published}");
        let difference = wanted.iter().zip(&found).find(|(wanted, found)| wanted != found);
        ensure!(
            wanted == found,
            "{subscribed}: {} rows on the subscriber, {} on the publisher; the first that differ: {difference:?}",
            found.len(),
            wanted.len()
        );
        Ok(())
    }
}

/// The rows of a query as text, in order.
fn rows(client: &mut Client, query: &str) -> Result<Vec<String>> {
    let rows = client.query(&format!("SELECT t::text FROM ({query}) t ORDER BY 1"), &[]);
    Ok(rows.with_context(|| query.to_owned())?.iter().map(|row| row.get(0)).collect())
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

/// Checks that the walsender of a slot uses the plugin that is tested, and returns the walsender and the library.
///
/// # Errors
///
/// When it uses another, or none comes.
pub fn check_plugin(cluster: &Cluster, slot: &str) -> Result<(u32, PathBuf)> {
    let mut found = Err(anyhow!("no walsender"));
    let outcome = wait_until(&format!("the walsender of slot {slot} to load a plugin"), || {
        // It may be about to load one, or end before it is looked at.
        let pid = cluster.walsender(slot)?;
        found = mapped_plugin(cluster, pid).map(|plugin| (pid, plugin));
        Ok(found.is_ok())
    });
    let (pid, mapped) = match (outcome, found) {
        (Ok(()), found) => found?,
        (Err(error), Err(last)) => return Err(last.context(error)),
        (Err(error), Ok(_)) => return Err(error),
    };
    let wanted = if plugin() == "pgoutput" {
        cluster.server().pkglibdir.join("pgoutput.so")
    } else {
        cluster.server().library()
    };
    ensure!(is_same(&mapped, &wanted), "walsender {pid} uses {}, not {}", mapped.display(), wanted.display());
    Ok((pid, mapped))
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
