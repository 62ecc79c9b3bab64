//! End of a run that has lost its owner: see [`lacks_owner`](shared_api::hook_run::lacks_owner).

use jiff::Timestamp;
use shared_api::Phase;
use shared_api::reason::HookRunReason;

use super::adopt::adopt;
use super::{DecisionInput, RunPlan, budget, ended, metrics};

/// Message of the run.
const MESSAGE: &str = "it was created for a GameDeployment but has no owner (for example, after a restore from a \
                       backup or a deletion with --cascade=orphan), so its verdict has no effect, and the addresses it \
                       calls may now belong to other pods; delete it, and the GameDeployment will rerun the hook if \
                       needed";

/// Message of its metrics without a verdict.
const OF_METRIC: &str = "stopped because the HookRun has no owner";

/// Decides in place of [`decide`](super::decide) about a run that has lost its owner: ends it without a measurement. A
/// verdict that is recorded stays.
#[must_use]
pub fn abandon(input: &DecisionInput<'_>, now: Timestamp) -> RunPlan {
    if input.status.phase.is_final() {
        return ended(input, now);
    }
    let mut next = input.status.clone();
    let mut stop_jobs = Vec::new();
    if let Ok(run) = input.spec {
        adopt(run, &mut next);
        stop_jobs = metrics::StatusUpdate::new(run, &mut next).open_jobs();
    }
    for result in &mut next.metric_results {
        if !result.phase.is_final() {
            result.phase = Phase::Error;
            result.message = Some(OF_METRIC.to_owned());
        }
    }
    next.started_at = Some(next.started_at.unwrap_or(input.taken_up_at.into()));
    next.observed_generation = input.generation;
    next.phase = Phase::Error;
    next.reason = Some(HookRunReason::OwnerMissing.to_string());
    next.message = Some(MESSAGE.to_owned());
    next.completed_at = Some(now.into());
    budget::fit(&mut next);
    RunPlan {
        record: Some(next),
        cancel: input.in_flight.to_vec(),
        stop_jobs,
        ..RunPlan::default()
    }
}
