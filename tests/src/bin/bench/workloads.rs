//! What is measured: the data sets, whose WAL is made once, and the workloads that read it.

use pgoutput_tests::Options;
use pgoutput_tests::wire::Parameters;

/// Tables, and what is done to them while the slots are there.
pub struct Dataset {
    /// Its name, which is its database's.
    pub name: &'static str,
    /// How many rows [`Dataset::load`] changes.
    pub rows: u64,
    /// Makes the tables and the publications.
    pub setup: String,
    /// What an old session has decoded before [`Dataset::load`].
    pub before: Option<String>,
    /// What is decoded.
    pub load: Load,
}

/// How the WAL is made.
pub enum Load {
    /// By psql.
    Script(String),
    /// By pgbench's TPC-B: so many transactions.
    Pgbench(u64),
}

/// What the client connects through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// TCP to 127.0.0.1.
    Tcp,
    /// TCP to 127.0.0.1, encrypted.
    Tls,
    /// A socket in the file system.
    Unix,
}

/// What ours shall reach; every workload shall, besides, be no slower than the built-in plugin.
#[derive(Clone, Copy, Default)]
pub struct Target {
    /// How many times faster, wall clock and CPU time.
    pub faster: Option<f64>,
    /// What it adds to the floor, as a part of what the built-in plugin adds.
    pub added: Option<f64>,
}

/// A way to read a data set.
pub struct Workload {
    /// What it is selected by.
    pub name: &'static str,
    /// What it is, for the report.
    pub about: &'static str,
    /// The data set's name.
    pub dataset: &'static str,
    /// The publication.
    pub publication: &'static str,
    /// `binary 'true'`.
    pub binary: bool,
    /// `streaming 'on'`, with a `logical_decoding_work_mem` that makes it happen.
    pub streaming: bool,
    /// What it is sent through.
    pub network: Network,
    /// How many slots are read at once.
    pub slots: usize,
    /// `pgoutput_rs.flush_bytes`, where it isn't the default.
    pub flush_bytes: Option<&'static str>,
    /// Only the data set's load counts, in a session that has decoded [`Dataset::before`], compared with one that hasn't.
    pub old_session: bool,
    /// What shall be reached.
    pub target: Target,
}

impl Workload {
    fn new(name: &'static str, about: &'static str, dataset: &'static str) -> Self {
        Workload {
            name,
            about,
            dataset,
            publication: "everything",
            binary: false,
            streaming: false,
            network: Network::Tcp,
            slots: 1,
            flush_bytes: None,
            old_session: false,
            target: Target { faster: None, added: Some(1.0 / 3.0) },
        }
    }

    fn target(self, faster: Option<f64>, added: Option<f64>) -> Self {
        Workload { target: Target { faster, added }, ..self }
    }

    /// The options of START_REPLICATION with a publication.
    pub fn options(&self, publication: &str) -> Options {
        let mut options = Options::new(4, publication);
        if self.binary {
            options = options.binary();
        }
        if self.streaming {
            options = options.with("streaming", "on");
        }
        options
    }

    /// What the sessions are started with.
    pub fn parameters(&self, database: &str, ours: bool) -> Parameters {
        let mut parameters = Parameters::replication(database);
        if self.streaming {
            parameters = parameters.with("logical_decoding_work_mem", "64kB");
        }
        match self.flush_bytes {
            Some(flush_bytes) if ours => parameters.with("pgoutput_rs.flush_bytes", flush_bytes),
            _ => parameters,
        }
    }
}

/// All workloads, those of a data set in a row.
pub fn workloads() -> Vec<Workload> {
    let new = Workload::new;
    vec![
        new("narrow", "INSERT of rows of 2 integers", "narrow").target(Some(4.5), Some(0.07)),
        Workload {
            flush_bytes: Some("0"),
            ..new("narrow-unbuffered", "narrow, pgoutput_rs.flush_bytes = 0", "narrow")
        }
        .target(None, None),
        new("wide", "INSERT of rows of 10 columns of mixed types", "wide").target(Some(4.5), Some(0.07)),
        Workload {
            flush_bytes: Some("0"),
            ..new("wide-unbuffered", "wide, pgoutput_rs.flush_bytes = 0", "wide")
        }
        .target(None, None),
        Workload { binary: true, ..new("binary", "wide, binary", "wide") },
        Workload { streaming: true, ..new("streaming", "wide, streamed in blocks of 64 kB", "wide") },
        Workload {
            publication: "filtered",
            ..new("row-filter", "wide, a row filter that keeps 1 row in 10", "wide")
        },
        Workload { publication: "columns", ..new("column-list", "wide, 3 of the 10 columns", "wide") },
        Workload { network: Network::Tls, ..new("tls", "wide, over TLS", "wide") }
            .target(Some(3.5), Some(1.0 / 3.0)),
        Workload { network: Network::Unix, ..new("unix", "wide, over a Unix-domain socket", "wide") }
            .target(Some(2.2), Some(1.0 / 3.0)),
        new("columns50", "INSERT of rows of 50 columns, integers and text", "columns50"),
        new("update-full", "UPDATE with REPLICA IDENTITY FULL", "update_full"),
        new("delete", "DELETE by primary key", "delete"),
        new("large", "INSERT of rows of 2 kB of text and 2 kB of jsonb", "large"),
        Workload {
            publication: "root",
            ..new("partitioned", "INSERT into a table of 8 partitions, published via the root", "partitioned")
        },
        new("pgbench", "pgbench's TPC-B, small transactions", "pgbench").target(Some(3.0), Some(1.0 / 3.0)),
        new("one-row", "transactions of 1 row", "one_row").target(Some(2.0), Some(1.0 / 3.0)),
        new("tables", "10,000 tables, 1 row each", "tables").target(None, Some(0.8)),
        new("idle-tables", "1 row into each of 100 tables, then narrow", "idle_tables"),
        Workload {
            old_session: true,
            ..new("old-session", "narrow, in a session that has decoded 1,000 tables", "old_session")
        },
        new("behind", "narrow, in 200 transactions", "behind"),
        Workload { slots: 8, ..new("slots", "narrow, 8 slots read at once", "slots") },
    ]
}

/// Statements in a loop over `i`, committed after every `per_transaction` rounds.
fn repeat(count: u64, per_transaction: u64, statement: &str) -> String {
    format!(
        "DO $$ BEGIN FOR i IN 1..{count} LOOP {statement}; IF i % {per_transaction} = 0 THEN COMMIT; END IF; \
         END LOOP; END $$;"
    )
}

const NARROW: &str = "CREATE TABLE narrow (a integer, b integer);";

fn insert_narrow(rows: u64) -> String {
    format!("INSERT INTO narrow SELECT i, i * 2 FROM generate_series(1, {rows}) i;")
}

/// The data sets, their sizes multiplied by `scale`.
pub fn datasets(scale: f64) -> Vec<Dataset> {
    let scaled = |count: u64| ((count as f64 * scale) as u64).max(200);
    let simple = |name, rows, setup: String, load: String| Dataset {
        name,
        rows,
        setup,
        before: None,
        load: Load::Script(load),
    };
    let mut datasets = Vec::new();

    let rows = scaled(500_000);
    datasets.push(simple("narrow", rows, NARROW.to_owned(), insert_narrow(rows)));

    let rows = scaled(300_000);
    datasets.push(simple(
        "wide",
        rows,
        "CREATE TABLE wide (a int4, b int8, c text, d timestamptz, e numeric, f bool, g float8, h uuid, i date,
                            j varchar(40));
         CREATE PUBLICATION filtered FOR TABLE wide WHERE (a % 10 = 0) WITH (publish = 'insert');
         CREATE PUBLICATION columns FOR TABLE wide (a, c, e) WITH (publish = 'insert');"
            .to_owned(),
        format!(
            "INSERT INTO wide
             SELECT n, n * 7919::int8, 'the text of row ' || n, '2024-01-01 00:00+00'::timestamptz + n * interval '1.5 s',
                    n * 1.37, n % 2 = 0, n / 7.0::float8, md5(n::text)::uuid, date '2020-01-01' + n % 3000,
                    'varchar ' || n % 1000
             FROM generate_series(1, {rows}) n;"
        ),
    ));

    let rows = scaled(60_000);
    let columns: Vec<_> =
        (1..=50).map(|n| format!("c{n} {}", if n % 2 == 0 { "text" } else { "integer" })).collect();
    let values: Vec<_> = (1..=50)
        .map(|n| if n % 2 == 0 { format!("'value ' || i + {n}") } else { format!("i + {n}") })
        .collect();
    datasets.push(simple(
        "columns50",
        rows,
        format!("CREATE TABLE columns50 ({});", columns.join(", ")),
        format!("INSERT INTO columns50 SELECT {} FROM generate_series(1, {rows}) i;", values.join(", ")),
    ));

    let rows = scaled(200_000);
    datasets.push(simple(
        "update_full",
        rows,
        format!(
            "CREATE TABLE updated (a integer PRIMARY KEY, b integer, c text, d timestamptz, e numeric);
             ALTER TABLE updated REPLICA IDENTITY FULL;
             INSERT INTO updated
             SELECT i, i, 'the text of row ' || i, '2024-01-01 00:00+00'::timestamptz + i * interval '1 s', i * 1.37
             FROM generate_series(1, {rows}) i;"
        ),
        "UPDATE updated SET b = b + 1, c = c || '.';".to_owned(),
    ));

    let rows = scaled(500_000);
    datasets.push(simple(
        "delete",
        rows,
        format!(
            "CREATE TABLE deleted (a integer PRIMARY KEY, b integer);
             INSERT INTO deleted SELECT i, i FROM generate_series(1, {rows}) i;"
        ),
        "DELETE FROM deleted;".to_owned(),
    ));

    let rows = scaled(40_000);
    datasets.push(simple(
        "large",
        rows,
        "CREATE TABLE large (a integer, b text, c jsonb);".to_owned(),
        format!(
            "INSERT INTO large
             SELECT i, (SELECT string_agg(md5(i || '.' || k), '') FROM generate_series(1, 64) k),
                    (SELECT jsonb_object_agg('key' || k, md5(i || '-' || k)) FROM generate_series(1, 45) k)
             FROM generate_series(1, {rows}) i;"
        ),
    ));

    let rows = scaled(400_000);
    let partitions = repeat(
        8,
        8,
        "EXECUTE format('CREATE TABLE partitioned_%s PARTITION OF partitioned \
         FOR VALUES WITH (MODULUS 8, REMAINDER %s)', i, i - 1)",
    );
    datasets.push(simple(
        "partitioned",
        rows,
        format!(
            "CREATE TABLE partitioned (a integer, b text) PARTITION BY HASH (a);
             {partitions}
             CREATE PUBLICATION root FOR TABLE partitioned WITH (publish_via_partition_root = true);"
        ),
        format!("INSERT INTO partitioned SELECT i, 'row ' || i FROM generate_series(1, {rows}) i;"),
    ));

    let transactions = scaled(30_000);
    datasets.push(Dataset {
        name: "pgbench",
        rows: 4 * transactions,
        setup: String::new(),
        before: None,
        load: Load::Pgbench(transactions),
    });

    let rows = scaled(100_000);
    datasets.push(simple(
        "one_row",
        rows,
        NARROW.to_owned(),
        repeat(rows, 1, "INSERT INTO narrow VALUES (i, i * 2)"),
    ));

    let touch = "EXECUTE format('INSERT INTO t%s VALUES (%s, ''some text'')', i, i)";
    let create = "EXECUTE format('CREATE TABLE t%s (a integer PRIMARY KEY, b text)', i)";
    let tables = scaled(10_000);
    datasets.push(simple(
        "tables",
        tables,
        repeat(tables, 500, create),
        repeat(tables, tables.div_ceil(10), touch),
    ));

    let rows = scaled(500_000);
    datasets.push(simple(
        "idle_tables",
        rows + 100,
        NARROW.to_owned() + &repeat(100, 100, create),
        repeat(100, 100, touch) + &insert_narrow(rows),
    ));
    datasets.push(Dataset {
        name: "old_session",
        rows,
        setup: NARROW.to_owned() + &repeat(1000, 500, create),
        before: Some(repeat(1000, 1000, touch)),
        load: Load::Script(insert_narrow(rows)),
    });
    datasets.push(simple(
        "behind",
        rows,
        NARROW.to_owned(),
        repeat(rows, rows.div_ceil(200), "INSERT INTO narrow VALUES (i, i * 2)"),
    ));
    let rows = scaled(100_000);
    datasets.push(simple("slots", rows, NARROW.to_owned(), insert_narrow(rows)));
    datasets
}
