//! What the measurements say: numbers, whether the targets are met, a chart.

use std::fmt::{self, Display, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::client::Measure;
use crate::workloads::Workload;

/// By how much a row may cost more in an old session: what measuring twice may differ by.
const GROWTH: f64 = 1.1;

/// Where it was measured, and how.
pub struct Environment {
    /// What `version()` says.
    pub server: String,
    /// The day.
    pub date: String,
    /// `pgoutput_rs.flush_bytes`.
    pub flush_bytes: String,
    /// The processor's model.
    pub processor: String,
    /// How many of them.
    pub processors: usize,
    /// The kernel's version: what comes behind its first two numbers is the machine's own.
    pub kernel: String,
    /// How many pairs.
    pub pairs: usize,
    /// What row counts were multiplied by.
    pub scale: f64,
}

/// What was measured one after the other.
pub struct Round {
    /// With the built-in plugin.
    pub stock: Measure,
    /// With ours.
    pub ours: Measure,
    /// With a publication that publishes nothing: the built-in plugin's and ours.
    pub floor: Option<[Measure; 2]>,
    /// In a fresh session, where the others were in an old one: the built-in plugin's and ours.
    pub fresh: Option<[Measure; 2]>,
}

/// Median, minimum and maximum.
#[derive(Clone, Copy)]
struct Spread {
    median: f64,
    minimum: f64,
    maximum: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.as_slice() {
            [] => f64::NAN,
            values if values.len() % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
            values => values[middle],
        };
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        Spread { median, minimum: end(values.first()), maximum: end(values.last()) }
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.minimum, self.maximum)
    }
}

/// What a workload brought.
pub struct Outcome<'a> {
    workload: &'a Workload,
    rows: u64,
    bytes: u64,
    messages: u64,
    wall: [f64; 2],
    cpu: [f64; 2],
    /// How many times faster ours is.
    wall_ratio: Spread,
    cpu_ratio: Spread,
    /// CPU time with a publication that publishes nothing, of both; nothing where the clock starts after that.
    floor: Option<[f64; 2]>,
    /// How many times as much CPU time each takes in an old session as in a fresh one.
    growth: Option<[Spread; 2]>,
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

impl<'a> Outcome<'a> {
    /// Sums the rounds up; there must be one.
    pub fn new(workload: &'a Workload, rows: u64, rounds: &[Round]) -> Self {
        let median = |value: &dyn Fn(&Round) -> Duration| {
            Spread::of(rounds.iter().map(|round| milliseconds(value(round)))).median
        };
        let ratio = |value: fn(&Measure) -> Duration| {
            Spread::of(
                rounds
                    .iter()
                    .map(|round| value(&round.stock).as_secs_f64() / value(&round.ours).as_secs_f64()),
            )
        };
        let floor = |index: usize| {
            median(&|round| round.floor.map_or(Duration::ZERO, |measures| measures[index].cpu))
        };
        let has_floor = rounds.iter().all(|round| round.floor.is_some());
        let cpu = [median(&|round| round.stock.cpu), median(&|round| round.ours.cpu)];
        let growth = |index: usize, measure: fn(&Round) -> &Measure| {
            Spread::of(rounds.iter().filter_map(|round| {
                Some(measure(round).cpu.as_secs_f64() / round.fresh?[index].cpu.as_secs_f64())
            }))
        };
        let content = rounds.first().map(|round| round.stock.content).unwrap_or_default();
        let is_old = rounds.iter().all(|round| round.fresh.is_some());
        Outcome {
            workload,
            rows: rows * workload.slots as u64,
            bytes: content.bytes * workload.slots as u64,
            messages: content.messages * workload.slots as u64,
            wall: [median(&|round| round.stock.wall), median(&|round| round.ours.wall)],
            cpu,
            wall_ratio: ratio(|measure| measure.wall),
            cpu_ratio: ratio(|measure| measure.cpu),
            floor: has_floor.then(|| [floor(0), floor(1)]),
            growth: is_old.then(|| [growth(0, |round| &round.stock), growth(1, |round| &round.ours)]),
        }
    }

    /// What each adds to the floor of the built-in plugin.
    fn added(&self) -> [f64; 2] {
        let floor = self.floor.map_or(0.0, |[stock, _]| stock);
        self.cpu.map(|cpu| cpu - floor)
    }

    /// What ours adds, as a part of what the built-in plugin adds.
    fn added_quotient(&self) -> f64 {
        let [stock, ours] = self.added();
        ours / stock
    }

    /// What was to be reached, and what was.
    pub fn targets(&self) -> Vec<Target> {
        let name = self.workload.name;
        let faster = self.workload.target.faster.unwrap_or(1.0);
        let mut targets = vec![
            Target {
                name,
                what: "wall, times faster",
                wanted: Wanted::AtLeast(faster),
                value: self.wall_ratio.median,
            },
            Target {
                name,
                what: "CPU, times faster",
                wanted: Wanted::AtLeast(faster),
                value: self.cpu_ratio.median,
            },
        ];
        if let Some(added) = self.workload.target.added {
            let value = self.added_quotient();
            targets.push(Target {
                name,
                what: "ours adds / pgoutput adds",
                wanted: Wanted::AtMost(added),
                value,
            });
        }
        if let Some([_, growth]) = self.growth {
            targets.push(Target {
                name,
                what: "old session / fresh session",
                wanted: Wanted::AtMost(GROWTH),
                value: growth.median,
            });
        }
        targets
    }
}

impl Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: wall {:.0} and {:.0} ms, {} times faster; CPU {:.0} and {:.0} ms, {}; adds {:.3}",
            self.workload.name,
            self.wall[0],
            self.wall[1],
            self.wall_ratio,
            self.cpu[0],
            self.cpu[1],
            self.cpu_ratio,
            self.added_quotient()
        )
    }
}

enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

/// A number that was to be reached.
pub struct Target {
    name: &'static str,
    what: &'static str,
    wanted: Wanted,
    value: f64,
}

impl Target {
    /// Whether it was.
    pub fn is_met(&self) -> bool {
        match self.wanted {
            Wanted::AtLeast(wanted) => self.value >= wanted,
            Wanted::AtMost(wanted) => self.value <= wanted,
        }
    }
}

/// The report, in Markdown.
pub fn markdown(environment: &Environment, outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::new();
    // Writing to a String doesn't fail.
    let _ = write_markdown(&mut text, environment, outcomes);
    text
}

fn write_markdown(text: &mut String, environment: &Environment, outcomes: &[Outcome<'_>]) -> fmt::Result {
    let Environment { server, date, flush_bytes, processor, processors, kernel, pairs, scale } = environment;
    writeln!(
        text,
        "# Benchmark

- {server}
- {processors} × {processor}, Linux {kernel}
- {date}; {pairs} pairs of runs, in turn; row counts × {scale}; pgoutput_rs.flush_bytes = {flush_bytes}

Times are medians, in ms; CPU is the walsender's, user and system. *Times faster* is the median over the pairs, with \
         minimum and maximum. The *floor* is the CPU time for the same WAL with a publication that publishes nothing, \
         by `pgoutput` and by `pgoutput_rs`; what a plugin *adds* is its CPU time without `pgoutput`'s floor. \
         Both plugins sent the same in every run.

| workload | rows | MB | wall: pgoutput | pgoutput_rs | times faster | CPU: pgoutput | pgoutput_rs | times faster \
         | floor | pgoutput adds | pgoutput_rs adds | quotient |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for outcome in outcomes {
        let floor = outcome.floor.map_or("–".to_owned(), |[stock, ours]| format!("{stock:.0}, {ours:.0}"));
        let [stock_adds, ours_adds] = outcome.added();
        writeln!(
            text,
            "| {} | {} | {:.1} | {:.0} | {:.0} | {} | {:.0} | {:.0} | {} | {floor} | {stock_adds:.0} | {ours_adds:.0} \
             | {:.3} |",
            outcome.workload.name,
            outcome.rows,
            outcome.bytes as f64 / 1e6,
            outcome.wall[0],
            outcome.wall[1],
            outcome.wall_ratio,
            outcome.cpu[0],
            outcome.cpu[1],
            outcome.cpu_ratio,
            outcome.added_quotient()
        )?;
    }
    writeln!(text, "\nThe workloads:\n")?;
    for outcome in outcomes {
        write!(text, "- `{}`: {}", outcome.workload.name, outcome.workload.about)?;
        if let Some([stock, ours]) = outcome.growth {
            write!(
                text,
                ". Only the rows after those tables are counted, from the first message on. They take {stock} times \
                 the CPU time of a session that has decoded nothing before with pgoutput, {ours} times with \
                 pgoutput_rs"
            )?;
        }
        writeln!(text, " ({} messages)", outcome.messages)?;
    }
    writeln!(text, "\n| target of | | wanted | reached | |\n|---|---|--:|--:|---|")?;
    for target in outcomes.iter().flat_map(Outcome::targets) {
        let wanted = match target.wanted {
            Wanted::AtLeast(wanted) => format!("≥ {wanted:.2}"),
            Wanted::AtMost(wanted) => format!("≤ {wanted:.2}"),
        };
        let met = if target.is_met() { "met" } else { "**missed**" };
        writeln!(text, "| {} | {} | {wanted} | {:.3} | {met} |", target.name, target.what, target.value)?;
    }
    Ok(())
}

const GREY: RGBColor = RGBColor(0xb0, 0xb0, 0xb0);
const BLUE: RGBColor = RGBColor(0x33, 0x67, 0x91);
const ORANGE: RGBColor = RGBColor(0xce, 0x5c, 0x20);

/// Bars of the walsender's CPU time, where the built-in plugin's is 100 %.
pub fn chart(path: &Path, outcomes: &[Outcome<'_>]) -> Result<()> {
    const LEFT: i32 = 150;
    const TOP: i32 = 60;
    const BAR: i32 = 11;
    const GROUP: i32 = 3 * BAR + 11;
    const HUNDRED: f64 = 520.0;
    let height = TOP + GROUP * i32::try_from(outcomes.len())? + 20;
    let area = SVGBackend::new(path, (800, height.cast_unsigned())).into_drawing_area();
    area.fill(&WHITE)?;
    let style = |size: i32| TextStyle::from(("sans-serif", size).into_font()).color(&BLACK);
    let right = style(16).pos(Pos::new(HPos::Right, VPos::Center));
    let left = style(13).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(
        "CPU time of the walsender (pgoutput = 100 %)",
        (LEFT, 18),
        style(20).pos(Pos::new(HPos::Left, VPos::Center)),
    ))?;
    let series = [("pgoutput", GREY), ("pgoutput_rs", ORANGE), ("floor: nothing published", BLUE)];
    for (number, (name, color)) in series.iter().enumerate() {
        let x = LEFT + 150 * i32::try_from(number)?;
        area.draw(&Rectangle::new([(x, 36), (x + 12, 48)], color.filled()))?;
        area.draw(&Text::new(*name, (x + 18, 42), style(16).pos(Pos::new(HPos::Left, VPos::Center))))?;
    }
    for (number, outcome) in outcomes.iter().enumerate() {
        let top = TOP + GROUP * i32::try_from(number)?;
        area.draw(&Text::new(outcome.workload.name, (LEFT - 8, top + 3 * BAR / 2), right.clone()))?;
        let [stock, ours] = outcome.cpu;
        let bars = [Some(stock), Some(ours), outcome.floor.map(|[stock, _]| stock)];
        for (row, (value, (_, color))) in bars.into_iter().zip(&series).enumerate() {
            let Some(value) = value else { continue };
            let part = value / stock;
            let y = top + BAR * i32::try_from(row)?;
            let end = LEFT + (HUNDRED * part) as i32;
            area.draw(&Rectangle::new([(LEFT, y), (end, y + BAR - 1)], color.filled()))?;
            if row > 0 {
                area.draw(&Text::new(
                    format!("{:.0} %", part * 100.0),
                    (end + 4, y + BAR / 2),
                    left.clone(),
                ))?;
            }
        }
    }
    area.present()?;
    Ok(())
}
