//! Times an operation and counts its allocations.

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use allocation_counter::AllocationInfo;
use serde::Serialize;

use crate::Outcome;

/// Minimum duration of one round: clocks cannot distinguish shorter ones well.
const ROUND: Duration = Duration::from_millis(2);
/// Maximum number of operations in one round.
const MOST: usize = 100_000;
/// Number of times that allocations are counted, to check that the counts are equal.
const COUNTED: usize = 3;

/// Measures operations.
pub(crate) struct Meter {
    rounds: usize,
    only: String,
}

/// Line of output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Line<'a> {
    /// Cost of one operation.
    Cost(Cost<'a>),
    /// Fact that must hold.
    Fact {
        figure: &'a str,
        holds: bool,
        text: &'a str,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost<'a> {
    figure: &'a str,
    best_ns: f64,
    median_ns: f64,
    /// Upper limit of the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_ns: Option<f64>,
    allocations: u64,
    bytes: u64,
    /// Peak of allocated bytes, excluding those allocated before.
    peak_bytes: u64,
    /// Whether the counts were the same each time.
    exact: bool,
}

impl Meter {
    /// Returns a meter that times each operation this many times, for figures whose name contains `only`.
    pub(crate) fn new(rounds: usize, only: String) -> Self {
        Self {
            rounds: rounds.max(1),
            only,
        }
    }

    /// Whether the figure is selected, to skip unneeded preparation.
    pub(crate) fn wants(&self, figure: &str) -> bool {
        figure.contains(&self.only)
    }

    /// Measures an operation, including the drop of its result.
    pub(crate) fn cost<T>(
        &self,
        figure: &str,
        most: Option<Duration>,
        mut operation: impl FnMut() -> T,
    ) -> Outcome<()> {
        if !self.wants(figure) {
            return Ok(());
        }
        // The first call absorbs one-time initialization.
        drop(black_box(operation()));
        let counts: Vec<AllocationInfo> = (0..COUNTED)
            .map(|_| allocation_counter::measure(|| drop(black_box(operation()))))
            .collect();
        let Some(count) = counts.first() else {
            return Ok(());
        };
        let times = self.times(&mut operation);
        let (Some(best), Some(median)) = (times.first(), times.get(times.len() / 2)) else {
            return Ok(());
        };
        print(&Line::Cost(Cost {
            figure,
            best_ns: *best,
            median_ns: *median,
            most_ns: most.map(|most| most.as_secs_f64() * 1e9),
            allocations: count.count_total,
            bytes: count.bytes_total,
            peak_bytes: count.bytes_max,
            exact: counts.iter().all(|other| other == count),
        }))
    }

    /// Records a fact that must hold.
    pub(crate) fn fact(&self, figure: &str, holds: bool, text: &str) -> Outcome<()> {
        if !self.wants(figure) {
            return Ok(());
        }
        print(&Line::Fact { figure, holds, text })
    }

    /// Returns the time of one operation in each round, in nanoseconds, shortest first.
    fn times<T>(&self, operation: &mut impl FnMut() -> T) -> Vec<f64> {
        let alone = timed(operation, 1).max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of operations"
        )]
        let repeats = (ROUND.as_secs_f64() * 1e9 / alone).ceil() as usize;
        let repeats = repeats.clamp(1, MOST);
        let mut times: Vec<f64> = (0..self.rounds).map(|_| timed(operation, repeats)).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// Returns the average time of one operation over `repeats` of them, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "few operations")]
fn timed<T>(operation: &mut impl FnMut() -> T, repeats: usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..repeats {
        drop(black_box(operation()));
    }
    begun.elapsed().as_secs_f64() * 1e9 / repeats as f64
}

fn print(line: &Line<'_>) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    writeln!(out)?;
    Ok(())
}
