//! Runs the random differential test for long.
//!
//! Environment:
//! - `SEED` and `ROUNDS`: what is run; 1 and 100.
//! - `ROUND`: this round alone.
//! - `CASE`: no round, but the script in this file.
//! - `PG`: this major alone, of the servers that the environment names.
//! - `DIFFERENCES`: the directory for small cases that show a difference; `target/differences`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result};
use pgoutput_tests::program::variable;
use pgoutput_tests::random::{Case, Coverage, Difference, Runner, generate, shrink};
use pgoutput_tests::{Cluster, Server, Settings, program};

/// From so many rounds on, every kind has to be seen.
const ENOUGH_ROUNDS: u64 = 300;
/// From so many rounds on, every combination of options, too.
const ENOUGH_ROUNDS_FOR_COMBINATIONS: u64 = 1000;
/// How many differences are made small.
const SHRUNK: usize = 12;

fn main() -> ExitCode {
    program::main("the test", run)
}

fn run() -> Result<bool> {
    let seed = variable("SEED")?.unwrap_or(1);
    let rounds = match variable("ROUND")? {
        Some(round) => round..round + 1,
        None => 0..variable("ROUNDS")?.unwrap_or(100),
    };
    let servers = match variable("PG")? {
        Some(major) => vec![Server::from_env(major)?],
        None => Server::all_from_env()?,
    };
    let script = variable::<PathBuf>("CASE")?;
    let mut passed = true;
    for server in servers.into_iter().map(Arc::new) {
        passed &= match &script {
            Some(script) => run_script(&server, script)?,
            None => run_on(&server, seed, rounds.clone())?,
        };
    }
    Ok(passed)
}

fn run_script(server: &Arc<Server>, path: &Path) -> Result<bool> {
    let script = fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    let case = Case::parse(&script)?;
    let cluster = Cluster::start(server, &Settings::default())?;
    let mut coverage = Coverage::default();
    let differences = Runner::new(&cluster).run(&case, Some(&mut coverage))?;
    println!("{server}:\n{coverage}");
    for difference in &differences {
        println!("{}", difference.text);
    }
    println!("{server}: {} of {} streams differ", differences.len(), case.streams.len());
    Ok(differences.is_empty())
}

fn run_on(server: &Arc<Server>, seed: u64, rounds: std::ops::Range<u64>) -> Result<bool> {
    let cluster = Cluster::start(server, &Settings::default())?;
    let mut runner = Runner::new(&cluster);
    let mut coverage = Coverage::default();
    let mut known = BTreeSet::new();
    let mut different = 0_u64;
    let started = Instant::now();
    let count = rounds.end - rounds.start;
    for round in rounds {
        let case = generate::case(seed, round, server.major);
        if count == 1 {
            println!("{case}");
        }
        let differences = runner
            .run(&case, Some(&mut coverage))
            .with_context(|| format!("{server}, SEED={seed} ROUND={round}"))?;
        if count > 1 && round % 50 == 49 {
            println!("{server}: {} rounds in {} s", round + 1, started.elapsed().as_secs());
        }
        let Some(difference) = differences.first() else { continue };
        different += 1;
        println!(
            "{server}: SEED={seed} ROUND={round} differs ({}):\n{}",
            difference.signature, difference.text
        );
        for difference in differences {
            if known.len() < SHRUNK && known.insert(difference.signature.clone()) {
                let (small, difference) = shrink::shrink(&mut runner, &case, &difference)?;
                report(server, seed, round, &small.to_string(), &difference)?;
            }
        }
    }
    println!("\n{server}, SEED={seed}: {count} rounds in {} s\n{coverage}", started.elapsed().as_secs());
    let mut missing = Vec::new();
    if count >= ENOUGH_ROUNDS {
        missing = coverage.missing(server.major);
    }
    if count >= ENOUGH_ROUNDS_FOR_COMBINATIONS {
        missing.extend(coverage.missing_combinations(server.major));
    }
    if !missing.is_empty() {
        println!("never seen:\n    {}", missing.join("\n    "));
    }
    println!("{server}, SEED={seed}: {different} of {count} rounds differ");
    Ok(different == 0 && missing.is_empty())
}

/// Prints a small case that shows a difference, and writes it to a file.
fn report(server: &Server, seed: u64, round: u64, script: &str, difference: &Difference) -> Result<()> {
    let directory =
        PathBuf::from(env::var("DIFFERENCES").unwrap_or_else(|_| "target/differences".to_owned()));
    fs::create_dir_all(&directory)?;
    let path = directory.join(format!("pg{}-seed{seed}-round{round}.sql", server.major));
    let comment: String = difference.text.lines().map(|line| format!("--   {line}\n")).collect();
    let text = format!("--  {server}, SEED={seed} ROUND={round}:\n{comment}{script}");
    println!("made small, in {}:\n{text}", path.display());
    fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
}
