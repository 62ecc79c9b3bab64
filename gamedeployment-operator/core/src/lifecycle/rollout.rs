//! Hooks of a rollout that has not ended: the point that is open, and what the rollout waits for.

use std::collections::BTreeMap;

use shared_api::game_deployment::{LifecycleHookPhase as Phase, LifecycleHookStatus};
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::reason::WorkloadReason;

use super::attempt::{self, Revisions};
use super::point::Point;
use super::{HookProgress, Lifecycle, Wait, being_stopped, new_entry, stop_leftovers};
use crate::canary::{CanaryState, RolloutProgress};
use crate::deadline::Deadline;
use crate::facts::Facts;
use crate::gate::Run;
use crate::plan::PartialPlan;
use crate::plural::{form, updated_pods_are};
use crate::recreate;
use crate::rollback;
use crate::workload::{LifecycleHook, UpdateType};

/// Advances the hooks of a rollout that has not ended.
pub(super) struct Stepper<'f, 'a> {
    pub(super) facts: &'f Facts<'a>,
    pub(super) revisions: Revisions<'a>,
    pub(super) canary: &'f CanaryState,
    pub(super) progress: RolloutProgress,
    pub(super) deadline: Deadline,
    pub(super) is_first: bool,
    /// Whether no attempt may begin: the rollout is or will be aborted, or a HookRun of another rollout has not ended.
    pub(super) is_held: bool,
    pub(super) lifecycle: Lifecycle,
    pub(super) part: PartialPlan,
}

impl<'a> Stepper<'_, 'a> {
    pub(super) fn advance(&mut self, recorded: &BTreeMap<&str, &LifecycleHookStatus>) {
        let (workload, replicas) = (self.facts.workload, self.facts.workload.replicas);
        let hooks = &workload.lifecycle_hooks;
        let known = |hook: &LifecycleHook| recorded.get(hook.name.as_str()).copied();
        let used = hooks.iter().filter_map(known).flat_map(|entry| self.used(entry));
        self.lifecycle.runs = used.collect();
        let leftover = stop_leftovers(self.facts, &self.lifecycle.runs, &mut self.part);
        let is_aborted = hooks
            .iter()
            .filter_map(known)
            .any(|entry| entry.phase.is_aborted());
        self.is_held = leftover.is_some()
            || is_aborted
            || self.deadline == Deadline::Exceeded
            || rollback::is_abort_requested(self.facts);
        let is_passed = |hook: &LifecycleHook| known(hook).is_some_and(|entry| entry.phase.is_passed());
        let point = |hook: &LifecycleHook| Point::of(hook.trigger, replicas);
        let current = hooks.iter().filter(|hook| !is_passed(hook)).map(point).min();
        let is_due = current.is_some_and(|point| self.is_reached(point));
        for hook in hooks {
            let is_due = is_due && current == Some(point(hook));
            let entry = known(hook).cloned();
            let entry = entry.unwrap_or_else(|| new_entry(self.facts, hook));
            let entry = self.step(hook, entry, is_due);
            self.lifecycle.hooks.push(entry);
        }
        self.lifecycle.progress = match current {
            Some(_) if is_aborted => HookProgress::Aborted,
            Some(Point::Pre) => HookProgress::NotBegun,
            Some(Point::Mid | Point::Progress(_) | Point::Post) => HookProgress::UnderWay,
            None => HookProgress::Passed,
        };
        self.lifecycle.is_incomplete_first = self.is_first;
        self.limit(current, is_aborted);
        if leftover.is_some() && workload.update == UpdateType::Recreate {
            self.lifecycle.open = Some(0);
        }
        self.wait(current, leftover);
    }

    /// Names of the HookRuns that a recorded entry depends on.
    fn used(&self, entry: &LifecycleHookStatus) -> Vec<String> {
        match entry.phase {
            Phase::Running => entry.hook_run.clone().into_iter().collect(),
            Phase::Waiting => vec![attempt::name(self.revisions.to, &entry.name, entry.attempts + 1)],
            Phase::Successful | Phase::Ignored | Phase::Failed | Phase::Error | Phase::Inconclusive => {
                Vec::new()
            }
        }
    }

    /// Limits the pods at the update revision to those that the current point needs.
    fn limit(&mut self, current: Option<Point>, is_aborted: bool) {
        let replicas = self.facts.workload.replicas;
        let needed = current.map(|point| point.pods(replicas));
        self.lifecycle.open = match needed {
            // An aborted rollout gets no further pod, also if more are wanted now. Without pods of another revision,
            // lost ones are replaced.
            Some(needed) if is_aborted && !self.is_first && !recreate::has_recreated(self.facts) => {
                Some(needed.min(self.facts.updated()))
            }
            needed => needed.filter(|needed| *needed < replicas || is_aborted || replicas == 0),
        };
        self.lifecycle.holds_creations = self.is_first && self.lifecycle.open.is_some();
    }

    /// Whether a point has been reached.
    fn is_reached(&self, point: Point) -> bool {
        let (workload, facts) = (self.facts.workload, self.facts);
        let replicas = workload.replicas;
        let available = self.progress.updated_available;
        match point {
            // Nothing begins while no pod may be updated.
            Point::Pre => {
                let is_allowed = self.canary.partition < replicas || replicas == 0 || self.is_first;
                !workload.paused && is_allowed
            }
            Point::Mid => recreate::old_left(facts) == 0,
            Point::Progress(_) => available >= point.pods(replicas),
            Point::Post => facts.old() == 0 && available >= replicas && self.canary.wait.is_none(),
        }
    }

    pub(super) fn run(&self, name: &str) -> Option<&'a Run> {
        self.facts.view.runs.iter().copied().find(|run| run.name == name)
    }

    /// Returns the wait for a HookRun of another rollout, or of a hook that was removed.
    fn wait_for_end(&mut self, run: &Run) -> Wait {
        let (namespace, now) = (&self.facts.workload.namespace, self.facts.now);
        let blocker = run.unreadable_blocker();
        let blocker = blocker.or_else(|| run.await_take_up(namespace, now, &mut self.part));
        if let Some(blocker) = blocker {
            let message = format!(
                "lifecycle hooks are waiting for an earlier one to finish: {}",
                blocker.message
            );
            return Wait::Blocked(blocker.reason, message);
        }
        being_stopped(run)
    }

    /// Adds what the whole rollout waits for.
    fn wait(&mut self, current: Option<Point>, leftover: Option<&Run>) {
        let hooks = &self.facts.workload.lifecycle_hooks;
        let aborted = self.lifecycle.hooks.iter().find(|entry| entry.phase.is_aborted());
        let wait = if let Some(entry) = aborted {
            let (name, namespace) = (&self.facts.workload.name, &self.facts.workload.namespace);
            let why = entry.message.as_deref().unwrap_or_default();
            let message = format!(
                "lifecycle hook {hook}: {why}; no further pods are updated to revision {revision}; fix the template, \
                 or rerun the hook: kubectl annotate gamedeployment {name} -n {namespace} --overwrite \
                 {RETRY_REQUESTED}=lifecycle/{hook}=$(date +%s)",
                hook = entry.name,
                revision = entry.revision
            );
            Wait::Blocked(WorkloadReason::LifecycleHookAborted, message)
        } else if let Some(run) = leftover {
            self.wait_for_end(run)
        } else if let Some(point) = current {
            let replicas = self.facts.workload.replicas;
            let hooks = hooks.iter().zip(&self.lifecycle.hooks);
            let waiting = hooks.filter(|(hook, entry)| {
                Point::of(hook.trigger, replicas) == point && !entry.phase.is_passed()
            });
            let names: Vec<&str> = waiting.map(|(hook, _)| hook.name.as_str()).collect();
            let wanted = match point {
                Point::Pre => {
                    "for the rollout to start (blocked by a pause, partition or canary step)".to_owned()
                }
                Point::Mid => {
                    let left = recreate::old_left(self.facts);
                    format!("until all pods of earlier revisions are gone ({left} left)")
                }
                Point::Progress(_) | Point::Post => format!(
                    "until {} available (now {})",
                    updated_pods_are(point.pods(replicas)),
                    self.progress.updated_available
                ),
            };
            let (hooks, are) = (form(names.len(), "hook", "hooks"), form(names.len(), "is", "are"));
            Wait::Pods(format!(
                "lifecycle {hooks} {} {are} waiting {wanted}",
                names.join(", ")
            ))
        } else {
            return;
        };
        self.lifecycle.wait = Some(worse(self.lifecycle.wait.take(), wait));
    }
}

/// Returns the wait that matters more; of equal ones the first.
pub(super) fn worse(one: Option<Wait>, other: Wait) -> Wait {
    let badness = |wait: &Wait| match wait {
        Wait::Pods(_) => 0,
        Wait::Hook(..) => 1,
        Wait::Blocked(WorkloadReason::LifecycleHookAborted, _) => 3,
        Wait::Blocked(..) => 2,
    };
    match one {
        Some(one) if badness(&one) >= badness(&other) => one,
        Some(_) | None => other,
    }
}
