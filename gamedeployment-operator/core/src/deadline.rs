//! Time limit of a rollout, `updateStrategy.timeoutSeconds`.
//!
//! A timer in the status counts the time in which the rollout makes the operator work: it stands still during pauses,
//! while hooks hold pods, and while nothing is left to do below a partition. Once it has reached the limit, no further
//! pod gets the revision and no lifecycle hook runs, until the template changes, the limit is raised, or a person
//! requests a retry.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shared_api::game_deployment::RolloutTimer;
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use crate::canary::{CanaryState, RolloutProgress, StepWait};
use crate::facts::Facts;
use crate::lifecycle::{HookProgress, Lifecycle, Wait};
use crate::plan::PartialPlan;
use crate::recreate;
use crate::user_text::bounded;
use crate::workload::UpdateType;

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

impl Deadline {
    /// Reads the recorded timer.
    pub fn of(facts: &Facts<'_>) -> Self {
        let limit = facts.workload.timeout;
        let Some((limit, timer)) = limit
            .zip(recorded(facts))
            .filter(|(_, timer)| !is_restarted(facts, timer))
        else {
            return Self::None;
        };
        if facts.history.rollback.is_some() || facts.history.unrecorded.is_some() {
            return Self::None;
        }
        let left = limit - SignedDuration::from_secs(timer.elapsed_seconds);
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

    /// Whether the operator has work with the rollout: it is neither paused nor over, and pods or hooks are left, apart
    /// from pods that a partition keeps.
    pub fn is_at_work(
        self,
        facts: &Facts<'_>,
        canary: &CanaryState,
        progress: RolloutProgress,
        lifecycle: &Lifecycle,
    ) -> bool {
        let is_paused = facts.workload.paused || matches!(canary.wait, Some(StepWait::Paused(..)));
        let is_over = self == Self::Exceeded || lifecycle.progress == HookProgress::Aborted;
        !is_paused && !is_over && is_unfinished(facts, canary, progress, lifecycle)
    }

    /// Lets no further pod have the update revision, if the rollout has exceeded its limit; otherwise wakes once it
    /// does.
    #[must_use]
    pub fn limit(
        self,
        facts: &Facts<'_>,
        progress: RolloutProgress,
        lifecycle: &mut Lifecycle,
    ) -> PartialPlan {
        let mut part = PartialPlan::default();
        match self {
            Self::None | Self::Suspended => return part,
            Self::At(end) => {
                part.wake_at(end);
                return part;
            }
            Self::Exceeded if has_ended(facts, progress, lifecycle) => return part,
            Self::Exceeded => {}
        }
        lifecycle.progress = HookProgress::Aborted;
        let has_other = !facts.history.is_updated(&facts.history.current.name);
        let is_recreated = facts.workload.update == UpdateType::Recreate && recreate::old_left(facts) == 0;
        if has_other && !lifecycle.is_incomplete_first && !is_recreated {
            let open = lifecycle.open.unwrap_or(usize::MAX);
            lifecycle.open = Some(open.min(facts.updated()));
        }
        lifecycle.wait = Some(Wait::Blocked(
            WorkloadReason::ProgressDeadlineExceeded,
            message(facts, progress, lifecycle),
        ));
        part
    }
}

/// Whether every pod has the update revision and is available, and every hook has ended.
fn has_ended(facts: &Facts<'_>, progress: RolloutProgress, lifecycle: &Lifecycle) -> bool {
    lifecycle.progress == HookProgress::Passed
        && facts.old() == 0
        && progress.updated_available >= facts.workload.replicas
}

/// Whether pods or hooks are left, apart from pods that a partition keeps.
fn is_unfinished(
    facts: &Facts<'_>,
    canary: &CanaryState,
    progress: RolloutProgress,
    lifecycle: &Lifecycle,
) -> bool {
    let workload = facts.workload;
    let wanted = workload.replicas.saturating_sub(canary.partition);
    let are_pods_left =
        progress.old > canary.partition || progress.updated_available < wanted || canary.wait.is_some();
    // Whoever deletes the pods decides when they are updated.
    let are_pods_left = are_pods_left && workload.update != UpdateType::OnDelete;
    let waits_for_hook = match &lifecycle.wait {
        Some(Wait::Hook(..) | Wait::Blocked(..)) => true,
        Some(Wait::Pods(_)) | None => false,
    };
    are_pods_left || waits_for_hook || canary.run.is_some()
}

/// State of a rollout that decides about its timer.
#[derive(Debug, Clone, Copy)]
pub struct RolloutState {
    /// Whether the operator has work with it, and no pod waits for its hook.
    pub counts: bool,
    /// Whether it has ended, or is aborted and its pods go back.
    pub is_over: bool,
}

/// Returns the timer to record.
pub fn timer(facts: &Facts<'_>, state: RolloutState) -> Option<RolloutTimer> {
    facts.workload.timeout?;
    let status = facts.view.object.status.as_ref();
    if facts.history.unrecorded.is_some() {
        let timer = status?.rollout_timer.clone()?;
        return Some(advanced(timer, false, facts.now));
    }
    if state.is_over {
        return None;
    }
    let known = recorded(facts)
        .filter(|timer| !is_restarted(facts, timer))
        .cloned();
    let timer = match known {
        Some(timer) => timer,
        None if recorded(facts).is_some() || begins(facts) => RolloutTimer {
            revision: facts.history.spec.name.clone(),
            last_handled_retry: requested_retry(facts),
            ..RolloutTimer::default()
        },
        None => return None,
    };
    Some(with_obstacle(facts, advanced(timer, state.counts, facts.now)))
}

/// Returns the timer with the obstacle that ended the rollout, if it has reached the limit.
fn with_obstacle(facts: &Facts<'_>, mut timer: RolloutTimer) -> RolloutTimer {
    let elapsed = SignedDuration::from_secs(timer.elapsed_seconds);
    let is_exceeded = facts.workload.timeout.is_some_and(|limit| limit <= elapsed);
    timer.obstacle = timer.obstacle.or_else(|| obstacle(facts)).filter(|_| is_exceeded);
    timer
}

/// Returns a timer that runs or stands still from now on.
pub fn advanced(mut timer: RolloutTimer, counts: bool, now: Timestamp) -> RolloutTimer {
    match (timer.running_since, counts) {
        (Some(since), false) => {
            let counted = now.duration_since(since.timestamp()).as_secs().max(0);
            timer.elapsed_seconds = timer.elapsed_seconds.saturating_add(counted);
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
    let left = limit - SignedDuration::from_secs(timer.elapsed_seconds);
    if !left.is_positive() {
        return None;
    }
    let (elapsed, limit) = (timer.elapsed_seconds, limit.as_secs());
    Some(
        match timer
            .running_since
            .map(|since| since.timestamp().checked_add(left))
        {
            Some(Ok(end)) => {
                format!("the rollout is aborted at {end} unless it has ended (timeoutSeconds: {limit})")
            }
            Some(Err(_)) | None => {
                format!("{elapsed} of timeoutSeconds ({limit}) have passed; this wait does not count")
            }
        },
    )
}

/// Returns the recorded timer of the rollout.
fn recorded<'f>(facts: &'f Facts<'_>) -> Option<&'f RolloutTimer> {
    let timer = facts.view.object.status.as_ref()?.rollout_timer.as_ref()?;
    (timer.revision == facts.history.spec.name).then_some(timer)
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

/// Whether a person requests a retry of the rollout or of one of its hooks: the time begins again.
fn is_restarted(facts: &Facts<'_>, timer: &RolloutTimer) -> bool {
    let request = requested_retry(facts);
    request.is_some() && request != timer.last_handled_retry
}

fn requested_retry(facts: &Facts<'_>) -> Option<String> {
    facts.view.annotation(RETRY_REQUESTED).map(bounded)
}

/// Returns the obstacle that the status reports to the update, or to the pods that it creates.
fn obstacle(facts: &Facts<'_>) -> Option<String> {
    let status = facts.view.object.status.as_ref()?;
    let is_obstacle = |known: &&Condition| {
        known.status == "True" && known.reason != WorkloadReason::ProgressDeadlineExceeded.as_str()
    };
    let of_kind = |kind: WorkloadCondition| {
        let mut conditions = status.conditions.iter().filter(is_obstacle);
        conditions.find(|known| known.type_ == kind.as_str())
    };
    let known =
        of_kind(WorkloadCondition::UpdateBlocked).or_else(|| of_kind(WorkloadCondition::ScaleBlocked))?;
    Some(bounded(&format!("{}: {}", known.reason, known.message)))
}

/// Describes how far the rollout came, and how to go on.
fn message(facts: &Facts<'_>, progress: RolloutProgress, lifecycle: &Lifecycle) -> String {
    let (workload, revision) = (facts.workload, &facts.history.spec.name);
    let limit = workload.timeout.unwrap_or_default().as_secs();
    let (updated, available) = (facts.updated(), progress.updated_available);
    let aborted = lifecycle.hooks.iter().find(|entry| entry.phase.is_aborted());
    let hook = match (aborted, &lifecycle.wait) {
        (Some(entry), _) => {
            let why = entry.message.as_deref().unwrap_or_default();
            format!("; lifecycle hook {}: {why}", entry.name)
        }
        (None, Some(Wait::Pods(wait) | Wait::Hook(_, wait) | Wait::Blocked(_, wait))) => format!("; {wait}"),
        (None, None) => String::new(),
    };
    let recorded = recorded(facts).and_then(|timer| timer.obstacle.clone());
    let obstacle = recorded.or_else(|| obstacle(facts)).filter(|_| aborted.is_none());
    let obstacle = obstacle.map_or_else(String::new, |obstacle| format!("; {obstacle}"));
    format!(
        "spec.updateStrategy.timeoutSeconds: {limit} s have passed; {updated} of {all} pods have revision {revision}, \
         {available} of them are available{hook}{obstacle}; no further pod is updated; correct the template, raise the limit, \
         or give the rollout the time again: kubectl annotate gamedeployment {name} -n {namespace} --overwrite \
         {RETRY_REQUESTED}=rollout=$(date +%s)",
        all = workload.replicas,
        name = workload.name,
        namespace = workload.namespace,
    )
}
