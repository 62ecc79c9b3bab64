//! Steps of a canary rollout: the number of pods that stay old now, and the start of the next step.
//!
//! The first rollout of a workload has no steps, because there is nothing to compare it with. A new template
//! starts at the first step, and so do edited steps: fulfilled steps pass immediately regardless of the
//! counts, so an edit cannot stall a rollout. A rollback to the last fully rolled-out revision needs no
//! steps.

use jiff::{SignedDuration, Timestamp};
use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::{CanaryStatus, PauseCondition};
use shared_api::reason::WorkloadReason;

use crate::deadline::Deadline;
use crate::digest::digest;
use crate::facts::Facts;
use crate::gate::Run;
use crate::plan::{Action, PartialPlan, Warning};
use crate::rollback;
use crate::view::View;
use crate::workload::{Lifetime, Pause, RolloutStep, Workload};

mod hook;

/// Progress of the pods, used to judge a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RolloutProgress {
    /// Pods at old revisions.
    pub old: usize,
    /// Pods at the update revision that are available.
    pub updated_available: usize,
}

/// State of a canary rollout.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CanaryState {
    /// Pods that stay at old revisions for now.
    pub partition: usize,
    /// Current step; the number of steps if all are done; `None` without steps.
    pub index: Option<i32>,
    /// Hash of the steps that the index refers to.
    pub hash: Option<String>,
    /// Pauses of the current step, for the status.
    pub pauses: Vec<PauseCondition>,
    /// Canary part of the status.
    pub status: Option<CanaryStatus>,
    /// Reason why the current step is not done.
    pub wait: Option<StepWait>,
    /// Name of the run that the current step depends on.
    pub run: Option<String>,
    /// Warning about a step that passed in this decision despite the failure of its hook.
    pub promoted: Option<Warning>,
}

/// Reason why a step is not done, with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepWait {
    /// Pods are being updated, or the hook runs.
    RollingOut(String),
    /// The step or a user pauses the rollout.
    Paused(WorkloadReason, String),
    /// A person must act.
    Blocked(WorkloadReason, String),
}

impl CanaryState {
    /// Records the wait of the current step. The message gets the number of the step.
    fn wait_for(&mut self, wait: StepWait) {
        let of_step = |message| format!("canary step {}: {message}", number(self));
        self.wait = Some(match wait {
            StepWait::RollingOut(message) => StepWait::RollingOut(of_step(message)),
            StepWait::Paused(reason, message) => StepWait::Paused(reason, of_step(message)),
            StepWait::Blocked(reason, message) => StepWait::Blocked(reason, of_step(message)),
        });
    }
}

/// Prefix of step hashes. It distinguishes them from the original operator's hashes, which cannot be
/// recomputed.
const HASH_PREFIX: &str = "steps-";

/// Advances the rollout as far as possible. Leaves it unchanged while the revision of the spec's template is
/// not recorded, before an abort, and once the rollout has exceeded its time.
#[must_use]
pub fn advance_steps(
    facts: &Facts<'_>,
    rollout_progress: RolloutProgress,
    deadline: Deadline,
) -> (CanaryState, PartialPlan) {
    let (view, workload, history) = (facts.view, facts.workload, &facts.history);
    if workload.lifetime == Lifetime::Ending {
        return (CanaryState::default(), PartialPlan::default());
    }
    let is_aborted = rollback::is_abort_requested(facts);
    let recorded = view
        .object
        .status
        .as_ref()
        .and_then(|status| status.update_revision.as_ref());
    let is_recorded = recorded == Some(&history.spec.name);
    // The patch that requests an abort may also end a pause: its step must not pass.
    let is_begun = is_recorded && history.rollback.is_none();
    if history.unrecorded.is_some() || is_begun && (is_aborted || deadline == Deadline::Exceeded) {
        return (frozen(view, workload), PartialPlan::default());
    }
    if history.rollback.is_some() || is_aborted {
        return (rolled_back(facts), PartialPlan::default());
    }
    let (update, stable) = (history.update.name.as_str(), history.current.name.as_str());
    if workload.steps.is_empty() {
        let canary = CanaryState {
            partition: workload.partition.partition(workload.replicas),
            ..CanaryState::default()
        };
        return (canary, PartialPlan::default());
    }
    let status = view.object.status.clone().unwrap_or_default();
    let mut stepper = CanaryStepper {
        view,
        workload,
        update,
        rollout_progress,
        from: None,
        now: facts.now,
        part: PartialPlan::default(),
    };
    let mut canary = stepper.resume(&status, stable);
    stepper.from = canary.index;
    let count = i32::try_from(workload.steps.len()).unwrap_or(i32::MAX);
    while let Some(step) = stepper.step(canary.index) {
        canary.partition = stepper.partition_at(canary.index);
        if !stepper.done(step, &mut canary) {
            break;
        }
        canary.index = canary.index.map(|index| index + 1);
        canary.pauses.clear();
        canary.wait = None;
        canary.run = None;
    }
    if canary.index.is_none_or(|index| index >= count) {
        canary.partition = 0;
    }
    canary.status = Some(CanaryStatus {
        revision: Some(stable.to_owned()),
        pause_start_time: None,
        current_step_hook_run: canary.run.clone(),
    });
    (canary, stepper.part)
}

/// Leaves the rollout unchanged; its steps continue once the revision of the spec's template is recorded.
fn frozen(view: &View<'_>, workload: &Workload) -> CanaryState {
    let status = view.object.status.clone().unwrap_or_default();
    CanaryState {
        partition: workload.partition.partition(workload.replicas),
        index: status.current_step_index,
        hash: status.current_step_hash,
        pauses: status.pause_conditions,
        run: status
            .canary
            .as_ref()
            .and_then(|canary| canary.current_step_hook_run.clone()),
        status: status.canary,
        wait: None,
        promoted: None,
    }
}

/// Returns the state while the rollout is aborted: no pod stays, and a later rollout begins at the first step.
fn rolled_back(facts: &Facts<'_>) -> CanaryState {
    if facts.workload.steps.is_empty() {
        return CanaryState::default();
    }
    CanaryState {
        index: Some(0),
        hash: Some(hash_of_steps(facts.view)),
        status: Some(CanaryStatus {
            revision: Some(facts.history.current.name.clone()),
            ..CanaryStatus::default()
        }),
        ..CanaryState::default()
    }
}

/// Returns the hash of the canary steps.
fn hash_of_steps(view: &View<'_>) -> String {
    let update = view.object.spec.update_strategy.as_ref();
    let steps = update.and_then(|update| update.canary.as_ref());
    format!("{HASH_PREFIX}{}", digest(&steps))
}

struct CanaryStepper<'a> {
    view: &'a View<'a>,
    workload: &'a Workload,
    update: &'a str,
    rollout_progress: RolloutProgress,
    /// Step at the start of this decision.
    from: Option<i32>,
    now: Timestamp,
    part: PartialPlan,
}

impl<'a> CanaryStepper<'a> {
    /// Resumes from the recorded status; restarts or finishes if the recorded step no longer matches.
    fn resume(&self, status: &GameDeploymentStatus, stable: &str) -> CanaryState {
        let hash = hash_of_steps(self.view);
        let end = i32::try_from(self.workload.steps.len()).unwrap_or(i32::MAX);
        let known = status.current_step_hash.as_deref();
        // The original operator's hash cannot be compared, so its index is used as is.
        let same_steps =
            known == Some(hash.as_str()) || known.is_some_and(|known| !known.starts_with(HASH_PREFIX));
        let same_revision = status.update_revision.as_deref() == Some(self.update);
        let nothing_to_roll = self.update == stable;
        let goes_on = same_steps && same_revision && !nothing_to_roll;
        let index = match status.current_step_index {
            Some(index) if goes_on => index.clamp(0, end),
            _ if nothing_to_roll => end,
            _ => 0,
        };
        let pauses = if goes_on {
            status.pause_conditions.clone()
        } else {
            Vec::new()
        };
        CanaryState {
            index: Some(index),
            hash: Some(hash),
            pauses,
            ..CanaryState::default()
        }
    }

    fn step(&self, index: Option<i32>) -> Option<&'a RolloutStep> {
        self.workload.steps.get(usize::try_from(index?).ok()?)
    }

    /// Returns the partition of this or the closest earlier step. Before the first one nothing is updated.
    fn partition_at(&self, index: Option<i32>) -> usize {
        let index = index.and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        let steps = self.workload.steps.iter().take(index.saturating_add(1));
        let nearest = steps.rev().find_map(|step| step.partition);
        nearest.map_or(self.workload.replicas, |partition| {
            partition.partition(self.workload.replicas)
        })
    }

    /// Whether every part of a step is done. If not, records what it waits for.
    fn done(&mut self, step: &RolloutStep, canary: &mut CanaryState) -> bool {
        self.rolled(step, canary) && self.paused(step, canary) && self.hook_succeeded(step, canary)
    }

    /// Whether the pods of this step are updated and available. More than requested is fine.
    fn rolled(&self, step: &RolloutStep, canary: &mut CanaryState) -> bool {
        if step.partition.is_none() {
            return true;
        }
        let wanted = self.workload.replicas.saturating_sub(canary.partition);
        let done = self.rollout_progress.old <= canary.partition
            && self.rollout_progress.updated_available >= wanted;
        if !done {
            let have = self.rollout_progress.updated_available;
            canary.wait_for(if self.workload.paused {
                let message = format!(
                    "updates are paused at {have} of {wanted} pods; to continue, set spec.updateStrategy.paused to \
                     false"
                );
                StepWait::Paused(WorkloadReason::Paused, message)
            } else {
                let message = format!("{have} of {wanted} pods are updated and available");
                StepWait::RollingOut(message)
            });
        }
        done
    }

    fn paused(&mut self, step: &RolloutStep, canary: &mut CanaryState) -> bool {
        let Some(pause) = step.pause else { return true };
        let reason = WorkloadReason::PausedByCanaryPauseStep;
        let since = since(&canary.pauses, reason);
        match pause {
            Pause::For(seconds) => {
                let start = since.unwrap_or_else(|| pause_from(canary, reason, None, self.now));
                let end = start
                    .checked_add(SignedDuration::from_secs(seconds))
                    .unwrap_or(Timestamp::MAX);
                if self.now >= end {
                    return true;
                }
                self.part.wake_at(end);
                canary.wait_for(StepWait::Paused(
                    reason,
                    format!("paused until {}", seconds_of(end)),
                ));
                false
            }
            Pause::UntilResumed => {
                let resumed = self.is_resumed(reason, None, canary);
                if !resumed {
                    let message = "paused; to continue, set spec.updateStrategy.paused to false";
                    canary.wait_for(StepWait::Paused(reason, message.to_owned()));
                }
                resumed
            }
        }
    }

    /// Whether someone has set `paused` back to false. The operator first sets it to true and records the
    /// pause only once it sees that value: a recorded pause without `paused` means that someone ended it. A
    /// step reached in this decision is recorded before `paused` is set: otherwise `paused` would count for
    /// the previous pause, which was just ended, over and over.
    fn is_resumed(&mut self, reason: WorkloadReason, run: Option<&Run>, canary: &mut CanaryState) -> bool {
        let recorded = since(&canary.pauses, reason).is_some();
        match (recorded, self.workload.paused) {
            (true, false) => return true,
            (false, false) if canary.index != self.from => {}
            (false, false) => self.part.actions.push(Action::Pause),
            (false, true) => {
                pause_from(canary, reason, run, self.now);
            }
            (true, true) => {}
        }
        false
    }
}

/// Records a pause, with the HookRun that caused it, and returns its start time.
fn pause_from(
    canary: &mut CanaryState,
    reason: WorkloadReason,
    run: Option<&Run>,
    now: Timestamp,
) -> Timestamp {
    canary.pauses.push(PauseCondition {
        reason: reason.as_str().to_owned(),
        start_time: Some(now.into()),
        hook_run_uid: run.map(|run| run.uid.clone()),
    });
    now
}

fn since(pauses: &[PauseCondition], reason: WorkloadReason) -> Option<Timestamp> {
    let pause = pauses.iter().find(|pause| pause.reason == reason.as_str())?;
    Some(
        pause
            .start_time
            .map_or(Timestamp::MIN, shared_api::time::Time::timestamp),
    )
}

fn number(canary: &CanaryState) -> i32 {
    canary.index.unwrap_or_default().saturating_add(1)
}

fn seconds_of(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
