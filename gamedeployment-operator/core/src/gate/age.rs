//! Maximum age of a success: players may have joined since the measurement.
//!
//! The age counts from the moment this process saw the verdict arrive. A watch may lag and the verdict may be
//! older, so the age counts from the end of the run if that is earlier. `completedAt` comes from another
//! machine's clock, which may be wrong, but the run cannot have ended before its creation time (API server
//! clock) plus its own duration. The later of these two times counts as its end if this process saw the verdict
//! arrive, so that a slow clock voids nothing, and the earlier one if it did not: a fast clock must not hide the
//! verdict's age.

use jiff::{SignedDuration, Timestamp};
use shared_api::reason::WorkloadReason;

use super::{Run, StaleReason};
use crate::cluster::Cluster;
use crate::pod::Pod;

/// Maximum clock skew: how far `completedAt` may lie ahead of this process's clock.
pub(super) const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);

/// Returns when a success expires for a pod; `None` if it does not expire by age. The error says why it no
/// longer counts.
pub(super) fn fresh_until(
    run: &Run,
    pod: &Pod,
    fresh: SignedDuration,
    cluster: &dyn Cluster,
    now: Timestamp,
) -> Result<Option<Timestamp>, StaleReason> {
    if is_out_since(pod, run) {
        return Ok(None);
    }
    let stale_reason = |why: String| StaleReason::reported(WorkloadReason::HookVerdictExpired, why);
    let age = match (cluster.verdict_seen_for(run), run.completed) {
        (Some(seen), None) => seen,
        (Some(seen), Some(completed)) => {
            let dated = now.duration_since(completed);
            seen.max(since_possible_end(run, completed, now).map_or(dated, |age| dated.min(age)))
        }
        (None, Some(completed)) => {
            let dated = now.duration_since(completed);
            since_possible_end(run, completed, now).map_or(dated, |age| dated.max(age))
        }
        (None, None) => {
            return Err(stale_reason("the time of its verdict is unknown".to_owned()));
        }
    };
    if age < -CLOCK_SKEW {
        let ahead = age.abs().as_secs();
        return Err(stale_reason(format!(
            "the time of its verdict is {ahead}s ahead of this operator's clock; check the clocks of both operators"
        )));
    }
    if age >= fresh {
        let (age, fresh) = (age.as_secs(), fresh.as_secs());
        return Err(stale_reason(format!(
            "its success is {age}s old, but is valid for only {fresh}s (freshForSeconds)"
        )));
    }
    let left = fresh.saturating_sub(age.max(SignedDuration::ZERO));
    Ok(Some(now.checked_add(left).unwrap_or(Timestamp::MAX)))
}

/// Time since the earliest possible end of a run: its creation plus its duration.
fn since_possible_end(run: &Run, completed: Timestamp, now: Timestamp) -> Option<SignedDuration> {
    let took = completed.duration_since(run.started?);
    Some(now.duration_since(run.created?).saturating_sub(took))
}

/// Whether the pod has been out of service since before the run was created, so that no player can have
/// joined it.
fn is_out_since(pod: &Pod, run: &Run) -> bool {
    let out = pod.in_place.as_ref().filter(|condition| !condition.ready);
    let since = out
        .filter(|_| pod.has_readiness_gate)
        .and_then(|condition| condition.since);
    matches!((since, run.created), (Some(since), Some(created)) if since < created)
}
