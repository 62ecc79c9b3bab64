//! Pods that have ended for good: they are deleted and replaced, with a back-off if they end right after
//! their start.
//!
//! Such a pod keeps its place for a while before it is deleted and replaced. The wait is as long as pods had
//! been ending this way before it, at least 10 s and at most 5 minutes, so it doubles each time. The start of
//! that period is the transition time of the condition that reports it.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use crate::claim::Claim;
use crate::facts::Facts;
use crate::gate::{Act, Gate, Intent, Standing};
use crate::plan::{Action, Part};
use crate::pod::{AT_ONCE, Ending, Pod};
use crate::scale::Need;

const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(5);

/// A pod that ended right after its start, with the time of its replacement.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// The ended pod, which keeps its place until it is replaced.
    pub pod: &'a Pod,
    /// Details of its end.
    pub ending: &'a Ending,
    /// Time of its deletion and replacement.
    pub until: Timestamp,
}

/// Deletes ended pods. Returns those whose replacement is delayed, the earliest first.
#[must_use]
pub fn settle<'a>(
    facts: &Facts<'a>,
    claimed: &Claim<'a>,
    gate: &Gate<'a>,
    need: Need,
) -> (Vec<Held<'a>>, Part) {
    let mut part = Part::default();
    let since = since(facts);
    let (mut held, mut gone) = (Vec::new(), Vec::new());
    for pod in &claimed.ended {
        match hold(facts, pod, since, need) {
            Some(pod) => held.push(pod),
            None => gone.push(*pod),
        }
    }
    held.sort_by_key(|held| (Reverse(held.until), &held.pod.name));
    let missing = need.create_old + need.create_updated;
    gone.extend(held.drain(missing.min(held.len())..).map(|held| held.pod));
    held.reverse();
    for pod in gone {
        if let Standing::Open(approval) = gate.assess(pod, &Intent::Delete, &[])
            && let Act::Delete(delete) = approval.into_act()
        {
            part.actions.push(Action::DeletePod(delete));
        }
    }
    let starting = starting(facts).filter(|_| since.is_some());
    let wakes = held.iter().map(|held| held.until).chain(starting);
    wakes.for_each(|at| part.wake_at(at));
    (held, part)
}

/// Returns the pod with its replacement time if its replacement is delayed. A pod of another revision does
/// not predict how a new pod ends.
fn hold<'a>(facts: &Facts<'_>, pod: &'a Pod, since: Option<Timestamp>, need: Need) -> Option<Held<'a>> {
    let ending = pod.ended.as_deref().filter(|ending| ending.at_once)?;
    let (history, revision) = (&facts.history, pod.revision());
    let again = history.is_updated(revision) || need.create_old > 0 && revision == history.current.name;
    let at = ending.at.min(facts.now);
    let lasts = since.map_or(FIRST_WAIT, |since| at.duration_since(since));
    let until = at.checked_add(lasts.clamp(FIRST_WAIT, LONGEST_WAIT)).ok()?;
    (again && until > facts.now).then_some(Held { pod, ending, until })
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
    let proven = pods.filter_map(|pod| pod.pod.created?.checked_add(AT_ONCE).ok());
    proven.max().filter(|at| *at > facts.now)
}
