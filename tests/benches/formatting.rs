//! What it takes to format a value of each native type, against the server's own function, inside a server.
//!
//! `scripts/microbench` builds the library with what measures, and names it in `PGOUTPUT_RS_BENCH_LIBRARY`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result};
use criterion::Criterion;
use pgoutput_tests::{Cluster, Server, Settings, program, quote};
use postgres::Client;

/// The server version that the benchmark runs on.
const MAJOR: u32 = 18;

/// How many values each query below gives.
const VALUES: u32 = 16;

/// An expression over `i`, from 1 to [`VALUES`], for each native type; for some, a second that takes another path.
const TYPES: &[(&str, &str)] = &[
    ("bool", "i % 3 = 0"),
    ("int2", "(i * 1973 % 30000)::int2"),
    ("int4", "(i * 123456789::bigint % 1000000000)::int4"),
    ("int8", "i * 1234567890123"),
    ("oid", "(i * 123456789::bigint % 4000000000)::oid"),
    ("float4", "(i * 12.25)::float4"),
    ("float4, 8 digits", "(i / 7.0)::float4"),
    ("float8", "(i * 1234.5678)::float8"),
    ("float8, 16 digits", "(i::float8 / 7)"),
    ("text", "repeat('word ', 1 + i::int % 5)"),
    ("text, 1000 bytes", "repeat('word ', 200)"),
    ("bytea", "decode(md5(i::text), 'hex')"),
    ("bytea, 1000 bytes", "decode(repeat(md5(i::text), 63), 'hex')"),
    (
        "jsonb",
        "jsonb_build_object('id', i, 'name', 'name ' || i, 'tags', jsonb_build_array('a', null, i * 1.5, true))",
    ),
    (
        "jsonb, 2000 bytes",
        "(SELECT jsonb_object_agg('key' || k, md5(i || '-' || k)) FROM generate_series(1, 45) k)",
    ),
    ("uuid", "md5(i::text)::uuid"),
    ("date", "'2026-01-01'::date + i::int * 97"),
    ("time", "'00:00'::time + i * '1:23:45.678901'::interval"),
    ("timestamp", "'2026-05-01'::timestamp + i * '1:23:45.678901'::interval"),
    ("timestamptz", "'2026-05-01'::timestamptz + i * '1:23:45.678901'::interval"),
    ("timestamptz, all seasons", "'2016-05-01'::timestamptz + i * '97 days 1:23:45.678901'::interval"),
    ("numeric", "(i * 1234.56)::numeric(10, 2)"),
    ("numeric, 31 digits", "(i * 123456789012345.678901234567890)::numeric(31, 15)"),
];

/// The shortest time that a value took, in nanoseconds.
type Shortest = BTreeMap<(usize, bool), [f64; 2]>;

fn main() -> ExitCode {
    program::main("the benchmark", || run().map(|()| true))
}

fn run() -> Result<()> {
    let pg_config = env::var_os(format!("PGOUTPUT_RS_PG{MAJOR}")).with_context(|| {
        format!("set PGOUTPUT_RS_PG{MAJOR} to the path of the pg_config of a PostgreSQL {MAJOR}")
    })?;
    let library = env::var_os("PGOUTPUT_RS_BENCH_LIBRARY").context(
        "PGOUTPUT_RS_BENCH_LIBRARY doesn't name a library built with the feature `microbench`: run make microbench",
    )?;
    let server = Arc::new(Server::new(Path::new(&pg_config))?);
    let cluster = Cluster::start(&server, &Settings::default())?;
    // The server's user may be one who can't read the library where it was built.
    let copy = cluster.socket_directory().join("bench.so");
    fs::copy(&library, &copy).with_context(|| format!("can't copy {}", library.display()))?;
    let mut client = cluster.client("postgres")?;
    client.batch_execute(&format!(
        "CREATE FUNCTION nanoseconds_per_value(query text, \"binary\" bool, native bool, rows bigint) RETURNS float8
         STRICT LANGUAGE C AS {}, 'nanoseconds_per_value_wrapper'",
        quote::literal(&copy.to_string_lossy())
    ))?;
    // A zone that has to be looked up, as most servers have one.
    client.batch_execute("SET TimeZone = 'Europe/Berlin'")?;

    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .sample_size(20)
        .nresamples(10_000)
        .configure_from_args();
    let mut shortest = Shortest::new();
    for (index, (name, expression)) in TYPES.iter().enumerate() {
        for binary in [false, true] {
            let query = format!("SELECT {expression} FROM generate_series(1, {VALUES}::bigint) i");
            measure(&mut criterion, &mut client, (index, name), &query, binary, &mut shortest)?;
        }
    }
    criterion.final_summary();
    print(&shortest);
    Ok(())
}

/// Measures both ways to format a query's values.
fn measure(
    criterion: &mut Criterion,
    client: &mut Client,
    (index, name): (usize, &str),
    query: &str,
    binary: bool,
    shortest: &mut Shortest,
) -> Result<()> {
    let form = if binary { "binary" } else { "text" };
    let mut take = |native: bool, rows: i64| -> Result<f64> {
        let row = client
            .query_one("SELECT nanoseconds_per_value($1, $2, $3, $4)", &[&query, &binary, &native, &rows])?;
        Ok(row.get(0))
    };
    take(true, 1).with_context(|| format!("{name}, {form}"))?;
    let mut group = criterion.benchmark_group(format!("{name}, {form}"));
    let mut failure = None;
    for (way, native) in [("native", true), ("server", false)] {
        group.bench_function(way, |bencher| {
            bencher.iter_custom(|iterations| {
                let rows = (iterations / u64::from(VALUES)).max(1);
                // Of a sample that failed nothing is used: the whole benchmark fails.
                let nanoseconds = take(native, rows as i64).unwrap_or_else(|error| {
                    failure.get_or_insert(error);
                    1.0
                });
                // Less is too little to be told from what is around it.
                if rows > 1000 {
                    let shortest = shortest.entry((index, binary)).or_insert([f64::INFINITY; 2]);
                    shortest[usize::from(!native)] = shortest[usize::from(!native)].min(nanoseconds);
                }
                Duration::from_nanos((nanoseconds * iterations as f64) as u64)
            });
        });
    }
    group.finish();
    match failure {
        Some(error) => Err(error.context(format!("{name}, {form}"))),
        None => Ok(()),
    }
}

fn print(shortest: &Shortest) {
    println!("\nNanoseconds per value, the shortest of all samples:");
    println!("{:<26} {:<8} {:>8} {:>8} {:>8}", "type", "form", "native", "server", "ratio");
    for ((index, binary), [native, server]) in shortest {
        let form = if *binary { "binary" } else { "text" };
        let name = TYPES[*index].0;
        println!("{name:<26} {form:<8} {native:>8.1} {server:>8.1} {:>8.1}", server / native);
    }
}
