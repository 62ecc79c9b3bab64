//! What is believed of a status that may come from somewhere else: the original operator, a person's editor, a
//! process whose clock was wrong. What cannot be true is read in the way that opens nothing and stops nothing.

use jiff::Timestamp;
use shared_api::Phase;
use shared_api::hook_run::{HookRunStatus, MetricResult};

use super::View;
use crate::resolve::ResolvedRun;
use crate::schedule::after;
use crate::tally;

use std::time::Duration;

/// Two processes' clocks may differ by this much without either being wrong.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// Drops results of metrics that the spec no longer has and brings the rest into the spec's order. Of two with one
/// name the worse one counts. A metric is Successful only if a success was counted: the original uses the word also
/// for metrics that were terminated, or whose `count` was used up by failures.
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

/// The lower, the more a phase keeps shut.
fn trust(phase: Phase) -> u8 {
    match phase {
        Phase::Failed => 0,
        Phase::Error => 1,
        Phase::Inconclusive => 2,
        Phase::Unset | Phase::Pending | Phase::Running => 3,
        Phase::Successful => 4,
    }
}

/// A recorded time; one that lies in the future would keep a run waiting for it, so it counts as the moment when
/// this process took the run up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calendar {
    latest: Timestamp,
    taken_up_at: Timestamp,
}

impl Calendar {
    pub(super) fn new(view: &View<'_>, now: Timestamp) -> Self {
        Self {
            latest: after(now, CLOCK_SKEW),
            taken_up_at: view.taken_up_at,
        }
    }

    pub(super) fn believe(&self, recorded: Option<Timestamp>) -> Timestamp {
        recorded
            .filter(|at| *at <= self.latest)
            .unwrap_or(self.taken_up_at)
    }
}
