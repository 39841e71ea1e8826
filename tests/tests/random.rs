//! Random cases through both plugins, and cases that once showed a difference.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use pgoutput_tests::random::case::StreamSpec;
use pgoutput_tests::random::{Case, Coverage, Runner, generate};
use pgoutput_tests::{Test, runner, tests};

/// The seed of the rounds that every run of the tests makes.
const SEED: u64 = 11;
/// At least so many rounds, and then on until they have seen all that they have to see, but for the rarest kinds.
const ROUNDS: u64 = 130;
const MAXIMUM_ROUNDS: u64 = 300;

/// The rarest kinds, which so few rounds may miss: what single statements do, and these. `make differential` runs enough
/// rounds to ask for all.
const RARE: &[&str] = &[
    "statements: ",
    "row filters: update becomes insert, with toasted values of the old row",
    "row filters: update becomes delete",
];

fn main() -> ExitCode {
    runner::main(tests![random_rounds, kept_cases, another_option_is_a_difference])
}

/// Random rounds with a fixed seed show no difference, and see what matters.
fn random_rounds(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut runner = Runner::new(&cluster);
    let mut coverage = Coverage::default();
    let major = test.server().major;
    let missing = |coverage: &Coverage| {
        let mut missing = coverage.missing(major);
        missing.retain(|kind| !RARE.iter().any(|rare| kind.starts_with(rare)));
        missing
    };
    for round in 0..MAXIMUM_ROUNDS {
        if round >= ROUNDS && missing(&coverage).is_empty() {
            break;
        }
        let differences = runner
            .run(&generate::case(SEED, round, major), Some(&mut coverage))
            .with_context(|| format!("in round {round}"))?;
        if let Some(difference) = differences.first() {
            anyhow::bail!(
                "{}\nTo see it smaller: make differential PG={major} SEED={SEED} ROUND={round}",
                difference.text
            );
        }
    }
    let missing = missing(&coverage);
    ensure!(
        missing.is_empty(),
        "{MAXIMUM_ROUNDS} rounds with seed {SEED} never saw:\n{}",
        missing.join("\n")
    );
    Ok(())
}

/// Cases that showed a difference in former times don't any more.
fn kept_cases(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut runner = Runner::new(&cluster);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut scripts = fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    scripts.sort();
    for script in scripts {
        let case = Case::parse(&fs::read_to_string(&script)?)
            .and_then(|case| {
                ensure!(!case.streams.is_empty(), "it reads nothing");
                Ok(case)
            })
            .with_context(|| script.display().to_string())?;
        if case.since.is_some_and(|major| test.server().major < major) {
            continue;
        }
        let differences = runner.run(&case, None).with_context(|| script.display().to_string())?;
        if let Some(difference) = differences.first() {
            anyhow::bail!("{}:\n{}", script.display(), difference.text);
        }
    }
    Ok(())
}

/// The comparison can fail: it does when our plugin gets another option than the built-in one.
fn another_option_is_a_difference(test: &Test) -> Result<()> {
    let cluster = test.cluster()?;
    let mut runner = Runner::new(&cluster).sabotaged(|spec| StreamSpec {
        options: spec.options.clone().with("binary", "true"),
        ..spec.clone()
    });
    let case = Case::parse(
        "-- setup
CREATE TABLE t (id int PRIMARY KEY);
CREATE PUBLICATION p FOR TABLE t;
-- session 0
INSERT INTO t VALUES (1);
-- advance
-- stream sql: (\"proto_version\" '1', \"publication_names\" 'p')
-- stream walsender-sql: (\"proto_version\" '1', \"publication_names\" 'p')
-- stream replication: (\"proto_version\" '1', \"publication_names\" 'p')
-- stream advance: (\"proto_version\" '1', \"publication_names\" 'p')
",
    )?;
    let differences = runner.run(&case, None)?;
    let streams: Vec<_> = differences.iter().map(|difference| difference.stream).collect();
    ensure!(streams == [3, 0, 1, 2], "streams that differ: {streams:?}");
    ensure!(
        differences.iter().all(|difference| difference.signature == "I I"),
        "not the differences that were made: {differences:?}"
    );
    Ok(())
}
