//! Sanity checks for a status that may come from the original operator, a manual edit or a process with a
//! wrong clock. Implausible values are replaced so that they neither open a gate nor block a run.

use jiff::Timestamp;
use shared_api::Phase;
use shared_api::hook_run::{HookRunStatus, MetricResult};

use super::DecisionInput;
use crate::resolve::ResolvedRun;
use crate::schedule::after;
use crate::tally;

use std::time::Duration;

/// Clock difference between two processes that counts as normal.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// Drops results of metrics that the spec no longer has and sorts the rest in the spec's order. Of two
/// results with the same name, the worse one counts. A metric is Successful only if a success was counted:
/// the original operator also uses this phase for metrics that were terminated or whose `count` was used up
/// by failures.
pub(super) fn adopt(run: &ResolvedRun, status: &mut HookRunStatus) {
    let place = |result: &MetricResult| run.metrics.iter().position(|metric| metric.name == result.name);
    let results = &mut status.metric_results;
    results.retain(|result| place(result).is_some());
    for result in results.iter_mut() {
        tally::make_plausible(result);
        if result.phase == Phase::Successful && result.successful == 0 {
            result.phase = Phase::Unset;
            result.message = None;
        }
    }
    results.sort_by_key(|result| (place(result), trust(result.phase)));
    results.dedup_by(|a, b| a.name == b.name);
}

/// Rank of a phase; lower ranks keep a gate closed more firmly.
fn trust(phase: Phase) -> u8 {
    match phase {
        Phase::Failed => 0,
        Phase::Error => 1,
        Phase::Inconclusive => 2,
        Phase::Unset | Phase::Pending | Phase::Running => 3,
        Phase::Successful => 4,
    }
}

/// Checks recorded times. A time in the future would make a run wait for it, so it is replaced by the time at
/// which this process first saw the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calendar {
    latest: Timestamp,
    taken_up_at: Timestamp,
}

impl Calendar {
    pub(super) fn new(input: &DecisionInput<'_>, now: Timestamp) -> Self {
        Self {
            latest: after(now, CLOCK_SKEW),
            taken_up_at: input.taken_up_at,
        }
    }

    pub(super) fn believe(&self, recorded: Option<Timestamp>) -> Timestamp {
        recorded
            .filter(|at| *at <= self.latest)
            .unwrap_or(self.taken_up_at)
    }
}
