//! Pods that have ended for good: they are deleted and replaced, with a back-off if they end right after
//! their start.
//!
//! A pod that ended right after its start keeps its place for a while before it is deleted and replaced. The
//! wait is as long as pods had been ending this way before it, at least 10 s and at most 5 minutes, so it
//! doubles each time. The start of that period is the transition time of the condition that reports it.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use crate::claim::Claim;
use crate::facts::Facts;
use crate::gate::{ApprovedAction, Gate, GateState, Intent};
use crate::plan::{Action, GatedWrite, PartialPlan};
use crate::pod::{CRASH_WINDOW, Pod, Termination};
use crate::scale::ScaleDiff;

const INITIAL_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// A pod that ended right after its start, with the time of its replacement.
#[derive(Debug, Clone, Copy)]
pub struct DelayedReplacement<'a> {
    /// The ended pod, which keeps its place until it is replaced.
    pub pod: &'a Pod,
    /// Details of its end.
    pub ending: &'a Termination,
    /// Time of its deletion and replacement.
    pub until: Timestamp,
}

/// Deletes ended pods. Returns those whose replacement is delayed, the earliest first.
#[must_use]
pub fn replace<'a>(
    facts: &Facts<'a>,
    claimed: &Claim<'a>,
    gate: &Gate<'a>,
    diff: ScaleDiff,
) -> (Vec<DelayedReplacement<'a>>, PartialPlan) {
    let mut part = PartialPlan::default();
    let since = since(facts);
    let (mut delayed, mut gone) = (Vec::new(), Vec::new());
    for pod in &claimed.ended {
        match back_off(facts, pod, since, diff) {
            Some(pod) => delayed.push(pod),
            None => gone.push(*pod),
        }
    }
    delayed.sort_by_key(|delayed| (Reverse(delayed.until), &delayed.pod.name));
    let missing = diff.create_old + diff.create_updated;
    gone.extend(
        delayed
            .drain(missing.min(delayed.len())..)
            .map(|delayed| delayed.pod),
    );
    delayed.reverse();
    for pod in gone {
        if let GateState::Open(approval) = gate.assess(pod, &Intent::Delete, &[])
            && let ApprovedAction::Delete(delete) = approval.into_action()
        {
            part.actions.push(Action::Gated(GatedWrite::DeletePod(delete)));
        }
    }
    let starting = starting(facts).filter(|_| since.is_some());
    let wakes = delayed.iter().map(|delayed| delayed.until).chain(starting);
    wakes.for_each(|at| part.wake_at(at));
    (delayed, part)
}

/// Returns the pod with its replacement time if its replacement is delayed. A pod of another revision does
/// not predict how a new pod ends.
fn back_off<'a>(
    facts: &Facts<'_>,
    pod: &'a Pod,
    since: Option<Timestamp>,
    diff: ScaleDiff,
) -> Option<DelayedReplacement<'a>> {
    let ending = pod.ended.as_deref().filter(|ending| ending.within_crash_window)?;
    let (history, revision) = (&facts.history, pod.revision());
    let again = history.is_updated(revision) || diff.create_old > 0 && revision == history.current.name;
    let at = ending.at.min(facts.now);
    let lasts = since.map_or(INITIAL_BACKOFF, |since| at.duration_since(since));
    let until = at.checked_add(lasts.clamp(INITIAL_BACKOFF, MAX_BACKOFF)).ok()?;
    (again && until > facts.now).then_some(DelayedReplacement { pod, ending, until })
}

/// Start of the period in which pods end right after their start, from the condition that reports it.
pub fn since(facts: &Facts<'_>) -> Option<Timestamp> {
    let status = facts.view.object.status.as_ref()?;
    let said = status.conditions.iter().find(|known| {
        known.type_ == WorkloadCondition::ScaleBlocked.as_str()
            && known.reason == WorkloadReason::PodsEndAtOnce.as_str()
            && known.status == "True"
    });
    said.map(|known| known.last_transition_time.0)
}

/// Time when the youngest existing pod has lived long enough not to count as ending at once; `None` if all
/// have.
pub fn starting(facts: &Facts<'_>) -> Option<Timestamp> {
    let pods = facts.pods.iter();
    let proven = pods.filter_map(|pod| pod.pod.created?.checked_add(CRASH_WINDOW).ok());
    proven.max().filter(|at| *at > facts.now)
}
