//! Times an operation and counts what it allocates.

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use allocation_counter::AllocationInfo;
use serde::Serialize;

use crate::Outcome;

/// How long one round is at least: a clock cannot tell shorter ones apart well.
const ROUND: Duration = Duration::from_millis(2);
/// Most operations of one round.
const MOST: usize = 100_000;
/// How often allocations are counted, to see that their number is always the same.
const COUNTED: usize = 3;

/// Measures.
pub(crate) struct Meter {
    rounds: usize,
    only: String,
}

/// One line of what is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Line<'a> {
    /// What one operation costs.
    Cost(Cost<'a>),
    /// Something that must be so.
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
    /// The longest that the median may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_ns: Option<f64>,
    allocations: u64,
    bytes: u64,
    /// Most bytes at once, besides those that were there before.
    peak_bytes: u64,
    /// Whether the counts were the same each time.
    exact: bool,
}

impl Meter {
    /// Times each operation so many times, of the figures whose name contains `only`.
    pub(crate) fn new(rounds: usize, only: String) -> Self {
        Self {
            rounds: rounds.max(1),
            only,
        }
    }

    /// Whether somebody wants to know any of this, so that nothing is prepared in vain.
    pub(crate) fn wants(&self, figure: &str) -> bool {
        figure.contains(&self.only)
    }

    /// Measures an operation, with the drop of what it returns.
    pub(crate) fn cost<T>(
        &self,
        figure: &str,
        most: Option<Duration>,
        mut operation: impl FnMut() -> T,
    ) -> Outcome<()> {
        if !self.wants(figure) {
            return Ok(());
        }
        // What is made once, and only on first use, belongs to no operation.
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

    /// Something that must be so.
    pub(crate) fn fact(&self, figure: &str, holds: bool, text: &str) -> Outcome<()> {
        if !self.wants(figure) {
            return Ok(());
        }
        print(&Line::Fact { figure, holds, text })
    }

    /// Nanoseconds of one operation in each round, shortest first.
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

/// Nanoseconds of one of so many operations.
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
