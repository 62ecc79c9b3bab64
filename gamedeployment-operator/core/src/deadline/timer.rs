//! Timer of a rollout with a limit: how it starts, runs, stands still and ends.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::{Remainder, RolloutTimer};
use crate::facts::Facts;
use crate::user_text::bounded;

/// Returns the timer to record. `holds_pods`: whether pods wait for their hooks. `is_rolled_back`: whether pods go back
/// to an earlier revision.
pub fn advance_timer(
    facts: &Facts<'_>,
    left: Remainder,
    holds_pods: bool,
    is_rolled_back: bool,
) -> Option<RolloutTimer> {
    let limit = facts.workload.timeout?;
    if facts.history.unrecorded.is_some() {
        let timer = facts.view.object.status.as_ref()?.rollout_timer.clone()?;
        return Some(advanced(timer, false, facts.now));
    }
    if is_rolled_back || left == Remainder::Nothing {
        return None;
    }
    let known = recorded(facts);
    let timer = match known.filter(|timer| !is_restarted(facts, timer)) {
        Some(timer) => timer.clone(),
        None if known.is_some() || begins(facts) => RolloutTimer {
            revision: facts.history.spec.name.clone(),
            last_handled_retry: requested_retry(facts),
            ..RolloutTimer::default()
        },
        None => return None,
    };
    let was_exceeded = limit <= elapsed(&timer);
    let updated = i32::try_from(facts.updated()).unwrap_or(i32::MAX);
    let counts = match left {
        Remainder::Nothing | Remainder::Kept | Remainder::Stopped => false,
        // Below a partition, pods that are replaced later are not of the rollout.
        Remainder::Starting => !holds_pods && timer.resting_replicas.is_none_or(|resting| updated > resting),
        Remainder::Work => !holds_pods,
    };
    let mut timer = advanced(timer, counts, facts.now);
    if left == Remainder::Kept {
        timer.resting_replicas = Some(updated);
    }
    if facts.old() == 0 && facts.updated() >= facts.workload.replicas {
        timer.updated_time = timer.updated_time.or(Some(facts.now.into()));
    } else if facts.old() > 0 {
        timer.updated_time = None;
    }
    if limit > elapsed(&timer) {
        timer.obstacle = None;
    } else if !was_exceeded {
        timer.obstacle = reported_obstacle(facts);
        // A higher limit gives the difference.
        timer.elapsed_milliseconds = milliseconds(limit);
    }
    Some(timer)
}

/// Returns a timer that runs or stands still from now on.
pub fn advanced(mut timer: RolloutTimer, counts: bool, now: Timestamp) -> RolloutTimer {
    match (timer.running_since, counts) {
        (Some(since), false) => {
            let counted = now.duration_since(since.timestamp()).max(SignedDuration::ZERO);
            timer.elapsed_milliseconds = timer.elapsed_milliseconds.saturating_add(milliseconds(counted));
            timer.running_since = None;
        }
        (None, true) => timer.running_since = Some(now.into()),
        (Some(_), true) | (None, false) => {}
    }
    timer
}

/// Describes the state of a timer, without a value that changes with time alone.
pub fn describe(facts: &Facts<'_>, timer: &RolloutTimer) -> Option<String> {
    let limit = facts.workload.timeout?;
    let left = limit - elapsed(timer);
    if !left.is_positive() {
        return None;
    }
    let (elapsed, limit) = (elapsed(timer).as_secs(), limit.as_secs());
    let end = timer
        .running_since
        .and_then(|since| since.timestamp().checked_add(left).ok());
    Some(match end {
        Some(end) => {
            format!(
                "the rollout will be aborted at {end} unless it completes by then (timeoutSeconds: {limit})"
            )
        }
        None => format!(
            "{elapsed}s of the {limit}s timeout (timeoutSeconds) used; the timer is stopped during this wait"
        ),
    })
}

/// Returns the recorded timer of the rollout.
pub(super) fn recorded<'f>(facts: &'f Facts<'_>) -> Option<&'f RolloutTimer> {
    let timer = facts.view.object.status.as_ref()?.rollout_timer.as_ref()?;
    (timer.revision == facts.history.spec.name).then_some(timer)
}

/// Time that has counted before the timer was started last.
pub(super) fn elapsed(timer: &RolloutTimer) -> SignedDuration {
    SignedDuration::from_millis(timer.elapsed_milliseconds)
}

/// Whether a person requests a retry of the rollout or of one of its hooks: the time begins again.
pub(super) fn is_restarted(facts: &Facts<'_>, timer: &RolloutTimer) -> bool {
    let request = requested_retry(facts);
    request.is_some() && request != timer.last_handled_retry
}

/// Returns the obstacle that the rollout met when its time had passed.
pub(super) fn obstacle(facts: &Facts<'_>) -> Option<String> {
    let timer = recorded(facts)?;
    let is_recorded = facts
        .workload
        .timeout
        .is_some_and(|limit| limit <= elapsed(timer));
    if is_recorded {
        timer.obstacle.clone()
    } else {
        reported_obstacle(facts)
    }
}

/// Returns the obstacle that the status reports to the update, or to the writes of pods that it needs.
pub(crate) fn reported_obstacle(facts: &Facts<'_>) -> Option<String> {
    let status = facts.view.object.status.as_ref()?;
    let is_obstacle = |known: &&Condition| {
        let is_of_update = known.type_ == WorkloadCondition::UpdateBlocked.as_str()
            && known.reason != WorkloadReason::ProgressDeadlineExceeded.as_str();
        let is_of_write = known.type_ == WorkloadCondition::ScaleBlocked.as_str()
            && known.reason == WorkloadReason::WriteFailed.as_str();
        known.status == "True" && (is_of_update || is_of_write)
    };
    let known = status.conditions.iter().find(is_obstacle)?;
    Some(bounded(&format!("{}: {}", known.reason, known.message)))
}

/// Whether the status shows that the rollout begins with this decision: before, another revision was rolled out or
/// complete.
fn begins(facts: &Facts<'_>) -> bool {
    let Some(status) = facts.view.object.status.as_ref() else {
        return true;
    };
    let is_complete = |name: &String| facts.history.is_updated(name);
    status.update_revision.as_ref() != Some(&facts.history.spec.name)
        || !status.current_revision.as_ref().is_some_and(is_complete)
}

fn requested_retry(facts: &Facts<'_>) -> Option<String> {
    facts.view.annotation(RETRY_REQUESTED).map(bounded)
}

fn milliseconds(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
