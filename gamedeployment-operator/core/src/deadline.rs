//! Time limit of a rollout, `updateStrategy.timeoutSeconds`.
//!
//! A [timer] in the status counts the time in which the rollout makes the operator work: it stands still during pauses,
//! while hooks hold pods, and while nothing is left to do below a partition. Once it has reached the limit, no further
//! pod gets the revision and no lifecycle hook runs, until the template changes, the limit is raised, or a person
//! requests a retry.

use jiff::Timestamp;
use shared_api::game_deployment::RolloutTimer;
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::reason::WorkloadReason;

use crate::canary::{CanaryState, RolloutProgress, StepWait};
use crate::facts::{Facts, PodFacts};
use crate::lifecycle::{HookProgress, Lifecycle, Wait};
use crate::plan::PartialPlan;
use crate::recreate;
use crate::workload::UpdateType;

mod timer;

pub(crate) use timer::reported_obstacle;
pub use timer::{advance_timer, advanced, describe};

/// Time limit of a rollout, from the recorded timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deadline {
    /// There is no limit, no rollout, or no recorded timer.
    #[default]
    None,
    /// The timer stands still below the limit.
    Suspended,
    /// The timer reaches the limit at this time.
    At(Timestamp),
    /// The timer has reached the limit.
    Exceeded,
}

/// Part of a rollout that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Remainder {
    /// Every pod has the revision and is available, and every hook has ended.
    #[default]
    Nothing,
    /// Pods that a partition keeps, or whose update others decide about.
    Kept,
    /// Anything, but the rollout is paused or aborted.
    Stopped,
    /// Pods of the revision that are not available.
    Starting,
    /// Pods of other revisions, or hooks.
    Work,
}

impl Deadline {
    /// Reads the recorded timer.
    pub fn of(facts: &Facts<'_>) -> Self {
        let Some((limit, timer)) = facts.workload.timeout.zip(timer::recorded(facts)) else {
            return Self::None;
        };
        let history = &facts.history;
        if timer::is_restarted(facts, timer) || history.rollback.is_some() || history.unrecorded.is_some() {
            return Self::None;
        }
        let left = limit - timer::elapsed(timer);
        match timer.running_since {
            _ if !left.is_positive() => Self::Exceeded,
            None => Self::Suspended,
            Some(since) => match since.timestamp().checked_add(left) {
                Ok(end) if end <= facts.now => Self::Exceeded,
                Ok(end) => Self::At(end),
                Err(_) => Self::Suspended,
            },
        }
    }

    /// Time at which a running attempt of a lifecycle hook is terminated.
    pub fn end(self) -> Option<Timestamp> {
        match self {
            Self::None | Self::Suspended => None,
            Self::At(end) => Some(end),
            Self::Exceeded => Some(Timestamp::MIN),
        }
    }

    /// Lets no further pod have the update revision, if the rollout has exceeded its limit; otherwise wakes once it
    /// does. Returns what is left of a rollout with a limit, too.
    #[must_use]
    pub fn limit(
        self,
        facts: &Facts<'_>,
        canary: &CanaryState,
        progress: RolloutProgress,
        lifecycle: &mut Lifecycle,
    ) -> (Remainder, PartialPlan) {
        let mut part = PartialPlan::default();
        if facts.workload.timeout.is_none() {
            return (Remainder::Nothing, part);
        }
        let left = remainder(facts, canary, progress, lifecycle);
        match self {
            Self::None | Self::Suspended => {}
            Self::At(end) => part.wake_at(end),
            Self::Exceeded if left == Remainder::Nothing => {}
            Self::Exceeded => {
                lifecycle.progress = HookProgress::Aborted;
                let has_other = !facts.history.is_updated(&facts.history.current.name);
                if has_other && !lifecycle.is_incomplete_first && !recreate::has_recreated(facts) {
                    let open = lifecycle.open.unwrap_or(usize::MAX);
                    lifecycle.open = Some(open.min(facts.updated()));
                }
                lifecycle.wait = Some(Wait::Blocked(
                    WorkloadReason::ProgressDeadlineExceeded,
                    message(facts, progress, lifecycle),
                ));
                return (Remainder::Stopped, part);
            }
        }
        (left, part)
    }
}

fn remainder(
    facts: &Facts<'_>,
    canary: &CanaryState,
    progress: RolloutProgress,
    lifecycle: &Lifecycle,
) -> Remainder {
    let workload = facts.workload;
    let passed = canary
        .index
        .and_then(|index| usize::try_from(index).ok())
        .unwrap_or(0);
    let mut steps = workload.steps.iter().skip(passed);
    // Once all pods are updated, steps of a partition alone are done.
    let are_steps_left = steps.any(|step| step.pause.is_some() || step.hook.is_some());
    let is_aborted = lifecycle.progress == HookProgress::Aborted;
    let are_hooks_left = lifecycle.progress != HookProgress::Passed;
    if !are_hooks_left && !are_steps_left && facts.old() == 0 && are_available(facts) {
        return Remainder::Nothing;
    }
    if workload.paused || is_aborted || matches!(canary.wait, Some(StepWait::Paused(..))) {
        return Remainder::Stopped;
    }
    // Whoever deletes the pods decides when they are updated.
    let is_left_to_others = workload.update == UpdateType::OnDelete && facts.old() > 0;
    let is_updating = progress.old > canary.partition && !is_left_to_others;
    let waits_for_hook = canary.run.is_some()
        || matches!(canary.wait, Some(StepWait::Blocked(..)))
        || matches!(lifecycle.wait, Some(Wait::Hook(..) | Wait::Blocked(..)));
    let wanted = workload.replicas.saturating_sub(canary.partition);
    if is_updating || waits_for_hook {
        Remainder::Work
    } else if progress.updated_available < wanted && !is_left_to_others {
        Remainder::Starting
    } else {
        Remainder::Kept
    }
}

/// Whether the pods of the rollout are available. Pods that were created after each had the revision replace lost ones,
/// or are of a later scaling; they count if no other is left.
fn are_available(facts: &Facts<'_>) -> bool {
    let updated = timer::recorded(facts).and_then(|timer| timer.updated_time);
    let updated = updated.map(shared_api::time::Time::timestamp);
    let is_later = |pod: &PodFacts<'_>| {
        let times = updated.zip(pod.pod.created);
        times.is_some_and(|(updated, created)| created > updated)
    };
    let mut own = facts.pods.iter().filter(|pod| !is_later(pod)).peekable();
    if updated.is_none() || own.peek().is_none() {
        facts.updated() >= facts.workload.replicas && facts.pods.iter().all(PodFacts::is_available)
    } else {
        own.all(PodFacts::is_available)
    }
}

/// Describes how far the rollout came, and how to continue.
fn message(facts: &Facts<'_>, progress: RolloutProgress, lifecycle: &Lifecycle) -> String {
    let (workload, revision) = (facts.workload, &facts.history.spec.name);
    let limit = workload.timeout.unwrap_or_default().as_secs();
    let (updated, available) = (facts.updated(), progress.updated_available);
    let aborted = lifecycle.hooks.iter().find(|entry| entry.phase.is_aborted());
    let why = match (aborted, &lifecycle.wait) {
        (Some(entry), _) => {
            let why = entry.message.as_deref().unwrap_or_default();
            Some(format!("lifecycle hook {}: {why}", entry.name))
        }
        (None, Some(Wait::Hook(_, wait) | Wait::Blocked(_, wait))) => Some(wait.clone()),
        (None, Some(Wait::Pods(_)) | None) => timer::obstacle(facts),
    };
    let why = why.map_or_else(String::new, |why| format!("; {why}"));
    format!(
        "the rollout exceeded spec.updateStrategy.timeoutSeconds ({limit}s): {updated} of {all} pods are at revision \
         {revision}, {available} of them available{why}; no further pods are updated; fix the template, raise the \
         limit, or restart the timer: kubectl annotate gamedeployment {name} -n {namespace} --overwrite \
         {RETRY_REQUESTED}=rollout=$(date +%s)",
        all = workload.replicas,
        name = workload.name,
        namespace = workload.namespace,
    )
}
