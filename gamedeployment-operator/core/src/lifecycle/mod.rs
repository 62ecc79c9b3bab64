//! Hooks at points of a rollout: which attempts to start, and how many pods may have the update revision now.
//!
//! The recorded status is the memory. A rollout is recorded before anything is done for it, an attempt before its
//! HookRun is created, and a point is passed once the success of its hooks is recorded. So a decision on an old
//! cache only repeats a creation, and the name of a HookRun says which attempt it is.

use std::collections::{BTreeMap, BTreeSet};

use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::{LifecycleHookPhase, LifecycleHookStatus};
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::reason::WorkloadReason;

use crate::canary::{CanaryState, RolloutProgress};
use crate::deadline::Deadline;
use crate::facts::Facts;
use crate::gate::Run;
use crate::plan::{Action, PartialPlan, RunVersion, Warning};
use crate::rollback;
use crate::user_text::bounded;
use crate::workload::{LifecycleHook, RetainPolicy, UpdateType};

mod attempt;
mod new_pod;
mod point;
mod rollout;
mod stage;
mod step;

use attempt::Revisions;
pub use new_pod::new_pod_warnings;
pub use point::Point;
use rollout::Stepper;
use stage::Stage;

/// Number of a hook's HookRuns that are kept.
const MAX_KEPT_ATTEMPTS: i32 = 10;

/// Part of a HookRun that says which attempt of which hook it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifecycleRun {
    /// Name of the hook.
    pub hook: String,
    /// Whether the HookRun is kept after it has ended.
    pub retain_policy: RetainPolicy,
}

/// State of a rollout's hooks.
#[derive(Debug, Default)]
pub struct Lifecycle {
    /// Number of pods that may have the update revision; `None`: no limit.
    pub open: Option<usize>,
    /// Whether pods beyond `open` must not exist, because there is no other revision.
    pub holds_creations: bool,
    /// Whether the workload must not record its revision as complete yet, and has no earlier one.
    pub is_incomplete_first: bool,
    /// Progress of the hooks.
    pub progress: HookProgress,
    /// Entries of the status.
    pub hooks: Vec<LifecycleHookStatus>,
    /// What the rollout waits for.
    pub wait: Option<Wait>,
    /// Warnings about failed attempts.
    pub warnings: Vec<Warning>,
    /// Names of the HookRuns that an entry depends on.
    pub runs: BTreeSet<String>,
}

/// Progress of a rollout's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookProgress {
    /// Those before the first pod have not ended.
    #[default]
    NotBegun,
    /// Some have not ended.
    UnderWay,
    /// One has failed and ended the rollout.
    Aborted,
    /// All have ended, or there are none: the rollout may end.
    Passed,
}

/// What a rollout waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The pods that the next point needs.
    Pods(String),
    /// The end of an attempt, or the next one.
    Hook(WorkloadReason, String),
    /// A person must act.
    Blocked(WorkloadReason, String),
}

impl Lifecycle {
    /// Number of pods that stay at old revisions, at least the number that the user and canary steps want.
    pub fn partition(&self, wanted: usize, replicas: usize) -> usize {
        match self.open {
            None => wanted,
            // Without another revision, no pod can stay at it.
            Some(open) if self.holds_creations => replicas.saturating_sub(open),
            Some(open) => wanted.max(replicas.saturating_sub(open)),
        }
    }
}

/// Advances the hooks of a rollout.
#[must_use]
pub fn advance(
    facts: &Facts<'_>,
    canary: &CanaryState,
    progress: RolloutProgress,
    deadline: Deadline,
) -> (Lifecycle, PartialPlan) {
    let none = GameDeploymentStatus::default();
    let status = facts.view.object.status.as_ref().unwrap_or(&none);
    let stage = Stage::of(facts, status);
    let is_first = stage::is_first(facts, status);
    let recorded: BTreeMap<&str, &LifecycleHookStatus> = stage::recorded(facts, status)
        .map(|entry| (entry.name.as_str(), entry))
        .collect();
    let mut lifecycle = Lifecycle::default();
    let mut part = PartialPlan::default();
    match stage {
        Stage::Ended => {
            lifecycle.progress = HookProgress::Passed;
            let hooks = facts.workload.lifecycle_hooks.iter();
            let recorded = hooks.filter_map(|hook| recorded.get(hook.name.as_str()));
            lifecycle.hooks = recorded.map(|entry| (*entry).clone()).collect();
            let leftover = stop_leftovers(facts, &BTreeSet::new(), &mut part);
            if let Some(run) = leftover.filter(|_| facts.workload.update == UpdateType::Recreate) {
                // A hook of Mid that was removed: it has no pods beside it until it has ended.
                lifecycle.open = Some(0);
                lifecycle.wait = Some(being_stopped(run));
            }
        }
        Stage::Adopted => {
            lifecycle.progress = HookProgress::Passed;
            hold(&mut lifecycle, is_first);
        }
        Stage::Unsettled => {
            hold(&mut lifecycle, is_first);
            lifecycle.is_incomplete_first = is_first;
            lifecycle.hooks.clone_from(&status.lifecycle_hooks);
            let runs = facts.view.runs.iter().filter(|run| run.lifecycle().is_some());
            lifecycle.runs = runs.map(|run| run.name.clone()).collect();
        }
        Stage::RolledBack => {
            lifecycle.progress = HookProgress::Aborted;
            let is_restarted = rollback::is_retry_requested(facts);
            // Entries of hooks that were removed stay: if they come back, their attempts have numbers of their own.
            let entries = status.lifecycle_hooks.iter();
            let entries = entries.filter(|entry| entry.revision == facts.history.spec.name);
            lifecycle.hooks = entries
                .cloned()
                .map(|entry| {
                    if is_restarted {
                        again(facts, entry)
                    } else {
                        withdrawn(entry)
                    }
                })
                .collect();
            stop_leftovers(facts, &BTreeSet::new(), &mut part);
        }
        Stage::New | Stage::UnderWay => {
            let mut stepper = Stepper {
                facts,
                revisions: Revisions::of(facts, is_first),
                canary,
                progress,
                deadline,
                is_first,
                is_held: false,
                lifecycle,
                part,
            };
            if stage == Stage::New {
                stepper.advance(&BTreeMap::new());
                stepper.lifecycle.progress = HookProgress::NotBegun;
                hold(&mut stepper.lifecycle, is_first);
            } else {
                stepper.advance(&recorded);
            }
            return (stepper.lifecycle, stepper.part);
        }
    }
    (lifecycle, part)
}

/// Whether a first rollout with hooks has not ended. Its pods are created up to the open point only.
pub fn holds_first_rollout(facts: &Facts<'_>) -> bool {
    let status = facts.view.object.status.as_ref();
    status.is_some_and(|status| !status.lifecycle_hooks.is_empty() && stage::is_first(facts, status))
        && !facts.workload.lifecycle_hooks.is_empty()
}

/// Lets no further pod have the update revision.
fn hold(lifecycle: &mut Lifecycle, is_first: bool) {
    lifecycle.open = Some(0);
    lifecycle.holds_creations = is_first;
}

fn new_entry(facts: &Facts<'_>, hook: &LifecycleHook) -> LifecycleHookStatus {
    LifecycleHookStatus {
        name: hook.name.clone(),
        revision: facts.history.update.name.clone(),
        attempts: attempt::last_number(facts, &hook.name),
        // A request that is older than the rollout has no effect.
        last_handled_retry: requested_retry(facts, &hook.name),
        ..LifecycleHookStatus::default()
    }
}

/// Returns the entry of a hook in an aborted rollout: it begins no attempt, and a running one is terminated.
fn withdrawn(mut entry: LifecycleHookStatus) -> LifecycleHookStatus {
    match entry.phase {
        LifecycleHookPhase::Waiting | LifecycleHookPhase::Running => {
            entry.phase = LifecycleHookPhase::Waiting;
            (entry.reason, entry.message) = (None, Some("the rollout is aborted".to_owned()));
        }
        LifecycleHookPhase::Successful
        | LifecycleHookPhase::Ignored
        | LifecycleHookPhase::Failed
        | LifecycleHookPhase::Error
        | LifecycleHookPhase::Inconclusive => {}
    }
    entry
}

/// Returns the entry of a hook whose rollout begins again. Further attempts keep their own numbers, and so their own
/// HookRuns.
fn again(facts: &Facts<'_>, entry: LifecycleHookStatus) -> LifecycleHookStatus {
    LifecycleHookStatus {
        last_handled_retry: requested_retry(facts, &entry.name).or(entry.last_handled_retry),
        name: entry.name,
        revision: entry.revision,
        attempts: entry.attempts,
        hook_run: entry.hook_run,
        spec_digest: entry.spec_digest,
        ..LifecycleHookStatus::default()
    }
}

/// Returns the text of a request to retry a hook, as the status records it.
fn requested_retry(facts: &Facts<'_>, hook: &str) -> Option<String> {
    let request = facts
        .view
        .annotation(RETRY_REQUESTED)?
        .strip_prefix("lifecycle/")?;
    let (name, text) = request.split_once('=')?;
    (name == hook).then(|| bounded(text))
}

/// Terminates the HookRuns that no entry depends on, and returns one that has not ended.
fn stop_leftovers<'a>(facts: &Facts<'a>, used: &BTreeSet<String>, part: &mut PartialPlan) -> Option<&'a Run> {
    let is_leftover = |run: &&Run| {
        run.lifecycle().is_some() && !run.phase.is_final() && !run.terminating && !used.contains(&run.name)
    };
    let mut first = None;
    for run in facts.view.runs.iter().copied().filter(is_leftover) {
        first.get_or_insert(run);
        terminate(run, part);
    }
    first
}

/// Returns the wait for a HookRun that nothing depends on any more.
fn being_stopped(run: &Run) -> Wait {
    let message = format!(
        "waiting for HookRun {} of another rollout or hook to stop before running lifecycle hooks",
        run.name
    );
    Wait::Hook(WorkloadReason::LifecycleHookWaiting, message)
}

fn terminate(run: &Run, part: &mut PartialPlan) {
    if !run.terminated {
        part.actions.push(Action::TerminateRun(RunVersion {
            name: run.name.clone(),
            uid: run.uid.clone(),
            resource_version: run.resource_version.clone(),
        }));
    }
}

/// Whether a HookRun that no entry depends on stays.
pub fn is_retained(run: &Run, lifecycle: &LifecycleRun, hooks: &[LifecycleHookStatus]) -> bool {
    let attempt = || run.intent.as_deref()?.rsplit(':').next()?.parse::<i32>().ok();
    let begun = hooks
        .iter()
        .find(|entry| entry.name == lifecycle.hook && entry.revision == run.revision);
    let is_old = begun
        .zip(attempt())
        .is_some_and(|(entry, attempt)| attempt.saturating_add(MAX_KEPT_ATTEMPTS) <= entry.attempts);
    match lifecycle.retain_policy {
        RetainPolicy::Always => !is_old,
        RetainPolicy::OnFailure => !run.is_measured_success() && !is_old,
        RetainPolicy::Never => false,
    }
}

#[cfg(test)]
mod tests;
