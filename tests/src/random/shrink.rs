//! Makes a case small that shows a difference.

use std::collections::BTreeSet;

use anyhow::Result;

use super::case::{Action, Case, Step};
use super::execute::{Difference, Runner};
use crate::options::Options;

/// After so many runs it is small enough.
const MAXIMUM_RUNS: u32 = 400;

/// Makes a case smaller as long as it shows the same kind of difference. Returns it with what it shows.
///
/// # Errors
///
/// When a case can't be run.
pub fn shrink(runner: &mut Runner<'_>, case: &Case, difference: &Difference) -> Result<(Case, Difference)> {
    let mut shrinker = Shrinker {
        runner,
        runs: 0,
        case: Case { streams: vec![case.streams[difference.stream].clone()], ..case.clone() },
        difference: difference.clone(),
    };
    if !shrinker.keep(shrinker.case.clone())? {
        // It takes what the other streams did before.
        shrinker.case = case.clone();
        shrinker.drop_streams()?;
    }
    loop {
        let before = shrinker.case.clone();
        shrinker.drop_transactions()?;
        shrinker.drop_steps()?;
        shrinker.drop_setup()?;
        shrinker.drop_options()?;
        if shrinker.case == before || shrinker.runs >= MAXIMUM_RUNS {
            return Ok((shrinker.case, shrinker.difference));
        }
    }
}

struct Shrinker<'r, 'a> {
    runner: &'r mut Runner<'a>,
    runs: u32,
    case: Case,
    difference: Difference,
}

impl Shrinker<'_, '_> {
    /// Takes a smaller case if it shows the difference, too.
    fn keep(&mut self, case: Case) -> Result<bool> {
        if self.runs >= MAXIMUM_RUNS {
            return Ok(false);
        }
        self.runs += 1;
        let found = self.runner.run(&case, None)?;
        let same = found.into_iter().find(|found| found.signature == self.difference.signature);
        Ok(match same {
            Some(difference) => {
                self.case = case;
                self.difference = difference;
                true
            }
            None => false,
        })
    }

    fn drop_streams(&mut self) -> Result<()> {
        for number in (0..self.case.streams.len()).rev() {
            let mut smaller = self.case.clone();
            smaller.streams.remove(number);
            if !smaller.streams.is_empty() {
                self.keep(smaller)?;
            }
        }
        Ok(())
    }

    /// Drops the steps of whole transactions.
    fn drop_transactions(&mut self) -> Result<()> {
        let mut groups = transactions(&self.case.steps);
        while let Some(group) = groups.pop() {
            let mut number = 0;
            let mut smaller = self.case.clone();
            smaller.steps.retain(|_| {
                number += 1;
                !group.contains(&(number - 1))
            });
            if self.keep(smaller)? {
                groups = transactions(&self.case.steps).into_iter().take(groups.len()).collect();
            }
        }
        Ok(())
    }

    fn drop_steps(&mut self) -> Result<()> {
        self.drop_from(|case| &mut case.steps)
    }

    fn drop_setup(&mut self) -> Result<()> {
        self.drop_from(|case| &mut case.setup)
    }

    /// Drops ever smaller parts of a list, from the end on.
    fn drop_from(&mut self, list: fn(&mut Case) -> &mut Vec<Step>) -> Result<()> {
        let mut size = list(&mut self.case).len().div_ceil(2);
        while size > 0 {
            let mut end = list(&mut self.case).len();
            while end > 0 {
                let start = end.saturating_sub(size);
                let mut smaller = self.case.clone();
                list(&mut smaller).drain(start..end);
                self.keep(smaller)?;
                end = start;
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(())
    }

    /// Drops settings and options of the streams, and publications from their lists.
    fn drop_options(&mut self) -> Result<()> {
        for stream in 0..self.case.streams.len() {
            for setting in (0..self.case.streams[stream].settings.len()).rev() {
                let mut smaller = self.case.clone();
                smaller.streams[stream].settings.remove(setting);
                self.keep(smaller)?;
            }
            let names: Vec<_> =
                self.case.streams[stream].options.iter().map(|(name, _)| name.to_owned()).collect();
            for name in
                names.iter().filter(|name| !["proto_version", "publication_names"].contains(&name.as_str()))
            {
                let mut smaller = self.case.clone();
                smaller.streams[stream].options = change(&smaller.streams[stream].options, name, None);
                self.keep(smaller)?;
            }
            let publications: Vec<_> = self.case.streams[stream]
                .options
                .get("publication_names")
                .unwrap_or_default()
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect();
            let mut kept: BTreeSet<usize> = (0..publications.len()).collect();
            for number in 0..publications.len() {
                let fewer: Vec<_> = kept
                    .iter()
                    .filter(|other| **other != number)
                    .map(|at| publications[*at].as_str())
                    .collect();
                let mut smaller = self.case.clone();
                let options = &smaller.streams[stream].options;
                smaller.streams[stream].options =
                    change(options, "publication_names", Some(&fewer.join(",")));
                if !fewer.is_empty() && self.keep(smaller)? {
                    kept.remove(&number);
                }
            }
        }
        Ok(())
    }
}

/// The options with another value for one of them, or without it.
fn change(options: &Options, name: &str, value: Option<&str>) -> Options {
    options.iter().fold(Options::none(), |changed, (other, old)| match (other == name, value, old) {
        (true, None, _) => changed,
        (true, Some(new), _) => changed.with(other, new),
        (false, _, Some(old)) => changed.with(other, old),
        (false, _, None) => changed.flag(other),
    })
}

/// The numbers of the steps of each transaction.
fn transactions(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open = std::collections::BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        let Action::Sql(session, sql) = &step.action else {
            groups.push(vec![number]);
            continue;
        };
        let starts = |words: &[&str]| words.iter().any(|word| sql.starts_with(word));
        match open.get(session) {
            Some(group) => {
                let group: &mut Vec<usize> = &mut groups[*group];
                group.push(number);
                if starts(&["COMMIT", "PREPARE"]) || sql == "ROLLBACK" {
                    open.remove(session);
                }
            }
            None => {
                groups.push(vec![number]);
                if starts(&["BEGIN"]) {
                    open.insert(*session, groups.len() - 1);
                }
            }
        }
    }
    groups
}
