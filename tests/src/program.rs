//! What the programs have in common.

use std::env;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Error, Result};

use crate::workdir;

/// Runs a program and cleans up after it. It fails when `run` says `false`, or with an error, which is printed as what
/// became of `name`.
pub fn main(name: &str, run: impl FnOnce() -> Result<bool>) -> ExitCode {
    let outcome = run();
    workdir::remove();
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\n{name} failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A variable of the environment; `None` if it isn't set or is empty.
///
/// # Errors
///
/// When it can't be read as a `T`.
pub fn variable<T: FromStr>(name: &str) -> Result<Option<T>> {
    match env::var(name) {
        Ok(value) if !value.is_empty() => {
            value.parse().map(Some).map_err(|_| Error::msg(format!("{name}={value} isn't a number")))
        }
        _ => Ok(None),
    }
}
