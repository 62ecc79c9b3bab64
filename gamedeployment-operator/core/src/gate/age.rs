//! A yes has an age: players may have joined since it was measured.
//!
//! The age counts from when this process saw the verdict arrive. A watch may be late, and the verdict older than that: so
//! it counts from `completedAt` where that is longer ago. `completedAt` is of another machine's clock, which may be slow;
//! the run cannot have ended earlier than its own time after it was created, by the API server's clock, and of both
//! bounds the later one is believed. Of a verdict that this process did not see arrive, `completedAt` alone counts.

use jiff::{SignedDuration, Timestamp};
use shared_api::reason::WorkloadReason;

use super::{Run, Void};
use crate::cluster::Cluster;
use crate::pod::Pod;

/// So far may `completedAt` lie ahead of this process's clock.
const AHEAD: SignedDuration = SignedDuration::from_secs(5);

/// Until when a success counts for a pod; none: for as long as nothing else voids it. The error says why it does not
/// count any more.
pub(super) fn until(
    run: &Run,
    pod: &Pod,
    fresh: SignedDuration,
    cluster: &dyn Cluster,
    now: Timestamp,
) -> Result<Option<Timestamp>, Void> {
    if is_out_since(pod, run) {
        return Ok(None);
    }
    let void = |why: String| Void::told(WorkloadReason::HookVerdictExpired, why);
    let age = match (cluster.verdict_seen_for(run), run.completed) {
        (Some(seen), None) => seen,
        (Some(seen), Some(completed)) => seen.max(at_most(run, completed, now)),
        (None, Some(completed)) => now.duration_since(completed),
        (None, None) => return Err(void("nobody knows when its verdict was reached".to_owned())),
    };
    if age < -AHEAD {
        let ahead = age.abs().as_secs();
        return Err(void(format!(
            "its verdict is dated {ahead}s ahead of this operator's clock; compare the clocks of both operators"
        )));
    }
    if age >= fresh {
        let (age, fresh) = (age.as_secs(), fresh.as_secs());
        return Err(void(format!(
            "its verdict is {age}s old, and counts for {fresh}s (freshForSeconds)"
        )));
    }
    let left = fresh.saturating_sub(age.max(SignedDuration::ZERO));
    Ok(Some(now.checked_add(left).unwrap_or(Timestamp::MAX)))
}

/// How old a verdict is at most, unless two of three clocks are wrong: by `completedAt`, or by when the run was created
/// and how long it took.
fn at_most(run: &Run, completed: Timestamp, now: Timestamp) -> SignedDuration {
    let dated = now.duration_since(completed);
    let (Some(created), Some(started)) = (run.created, run.started) else {
        return dated;
    };
    let took = completed.duration_since(started);
    dated.min(now.duration_since(created).saturating_sub(took))
}

/// Whether the pod has been out of service since before the run was created: no player can have joined it.
fn is_out_since(pod: &Pod, run: &Run) -> bool {
    let out = pod.in_place.as_ref().filter(|condition| !condition.ready);
    let since = out
        .filter(|_| pod.has_readiness_gate)
        .and_then(|condition| condition.since);
    matches!((since, run.created), (Some(since), Some(created)) if since < created)
}
