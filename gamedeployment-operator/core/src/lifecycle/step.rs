//! Steps of one hook: its attempts, their verdicts and what follows.

use jiff::{SignedDuration, Timestamp};
use shared_api::game_deployment::{LifecycleHookPhase as Phase, LifecycleHookStatus};
use shared_api::reason::WorkloadReason;

use super::attempt::{self, RunProblem};
use super::new_pod;
use super::rollout::{Stepper, worse};
use super::{Wait, requested_retry, terminate};
use crate::deadline::{self, Deadline};
use crate::gate::{HookBlocker, NewRun, Run};
use crate::plan::{Action, RunRef, Warning};
use crate::plural::form;
use crate::user_text::bounded;
use crate::workload::{Carrier, FailurePolicy, LifecycleHook, Trigger};

/// Shortest and longest pause before the next attempt.
const INITIAL_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

impl Stepper<'_, '_> {
    /// Returns the next state of a hook. `is_due`: its point has been reached.
    pub(super) fn step(
        &mut self,
        hook: &LifecycleHook,
        mut entry: LifecycleHookStatus,
        is_due: bool,
    ) -> LifecycleHookStatus {
        let is_requested = self.take_request(hook, &mut entry);
        match entry.phase {
            Phase::Waiting => self.begin(hook, &mut entry, is_due, is_requested),
            Phase::Running => self.observe(hook, &mut entry),
            Phase::Failed | Phase::Error | Phase::Inconclusive
                if is_requested || self.has_time_again(&entry) =>
            {
                entry.phase = Phase::Waiting;
                (entry.reason, entry.start_time, entry.completion_time) = (None, None, None);
                entry.message = Some("a retry was requested".to_owned());
            }
            Phase::Successful | Phase::Ignored | Phase::Failed | Phase::Error | Phase::Inconclusive => {}
        }
        entry
    }

    /// Whether the time limit of the rollout, which ended this hook, is no longer exceeded.
    fn has_time_again(&self, entry: &LifecycleHookStatus) -> bool {
        is_stopped_by_rollout(entry) && self.deadline != Deadline::Exceeded
    }

    /// Whether a person requests another attempt. Marks the request as handled.
    fn take_request(&self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus) -> bool {
        let Some(text) = requested_retry(self.facts, &hook.name) else {
            return false;
        };
        let is_new = entry.last_handled_retry.as_ref() != Some(&text);
        entry.last_handled_retry = Some(text);
        is_new
    }

    /// Begins the next attempt, if it is due.
    fn begin(
        &mut self,
        hook: &LifecycleHook,
        entry: &mut LifecycleHookStatus,
        is_due: bool,
        is_requested: bool,
    ) {
        let number = entry.attempts.saturating_add(1);
        if is_requested {
            entry.completion_time = None;
        }
        if self.is_overdue(hook, entry) {
            let why = entry.message.take().unwrap_or_default();
            return self.end(hook, entry, Phase::Failed, &why);
        }
        if !is_due || self.is_held {
            if entry.attempts == 0 {
                (entry.reason, entry.message) = (None, None);
            }
            return;
        }
        if let Some(at) = next_attempt(entry).filter(|at| *at > self.facts.now) {
            self.part
                .wake_at(self.end_of(hook, entry).map_or(at, |end| at.min(end)));
            return self.wait_for_next_attempt(hook, entry);
        }
        match attempt::new_run(self.facts, &self.revisions, hook, number) {
            Ok(wanted) => {
                (entry.phase, entry.attempts) = (Phase::Running, number);
                entry.start_time = entry.start_time.or(Some(self.facts.now.into()));
                entry.completion_time = None;
                self.record(hook, entry, &wanted);
                self.warn_of_ignored_volumes(hook, number);
            }
            Err(blocker) => self.blocked(hook, entry, blocker),
        }
    }

    /// Reports volumes of `execNewPod` that the new pod does not have. Recorded with the first attempt.
    fn warn_of_ignored_volumes(&mut self, hook: &LifecycleHook, attempt: i32) {
        let Carrier::NewPod(exec) = &hook.carrier else {
            return;
        };
        let ignored = new_pod::ignored_volumes(exec, &self.revisions.to.template);
        if attempt == 1 && !ignored.is_empty() {
            let names: Vec<&str> = ignored.into_iter().map(|(_, name)| name).collect();
            self.lifecycle.warnings.push(Warning {
                pod: None,
                reason: WorkloadReason::HookVolumesIgnored,
                message: format!(
                    "lifecycle hook {}: ignoring execNewPod.volumes {}, because container {} does not mount {}",
                    hook.name,
                    names.join(", "),
                    exec.container_name,
                    form(names.len(), "it", "them")
                ),
            });
        }
    }

    /// Records the HookRun of an attempt before it is created: an attempt keeps the spec that it began with.
    fn record(&mut self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus, wanted: &NewRun) {
        entry.hook_run.clone_from(&wanted.metadata.name);
        entry.spec_digest = Some(wanted.spec_digest().to_string());
        let name = entry.hook_run.as_deref().unwrap_or_default();
        let message = format!("creating HookRun {name}");
        self.running(hook, entry, message);
    }

    /// Creates the recorded HookRun of an attempt. If it would have another spec by now, records that first.
    fn create(&mut self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus, name: &str) {
        if self.is_overdue(hook, entry) {
            let obstacle = deadline::reported_obstacle(self.facts);
            let obstacle = obstacle.map_or_else(String::new, |obstacle| format!("; {obstacle}"));
            let why = format!("HookRun {name} does not exist{obstacle}");
            return self.end(hook, entry, Phase::Failed, &why);
        }
        let wanted = match attempt::new_run(self.facts, &self.revisions, hook, entry.attempts) {
            Ok(wanted) => wanted,
            Err(blocker) => return self.blocked(hook, entry, blocker),
        };
        let digest = wanted.spec_digest().to_string();
        let is_recorded = entry.hook_run == wanted.metadata.name && entry.spec_digest == Some(digest);
        if !is_recorded || self.is_held {
            return self.record(hook, entry, &wanted);
        }
        let (cluster, namespace) = (self.facts.view.cluster, &self.facts.workload.namespace);
        if let Some(run) = cluster.run_without_owner(name) {
            return self.remove_without_owner(hook, entry, run);
        }
        if cluster.has_run(namespace, name) {
            let why = "does not belong to this rollout; delete it";
            return self.blocked(hook, entry, HookBlocker::conflict(name, why));
        }
        self.record(hook, entry, &wanted);
        self.part.actions.push(Action::CreateRun(Box::new(wanted)));
    }

    /// Deletes a HookRun that has the name of an attempt and has lost its owner, or reports why it stays.
    fn remove_without_owner(&mut self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus, run: &Run) {
        if run.terminating {
            return self.blocked(hook, entry, attempt::terminating(run));
        }
        let delete = Action::DeleteRun(RunRef::without_owner(run, None));
        self.part.actions.push(delete);
        self.running(hook, entry, run.replacement_message());
    }

    /// Applies the state of the attempt under way.
    fn observe(&mut self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus) {
        let name = entry.hook_run.clone().unwrap_or_default();
        let recorded = entry.spec_digest.as_deref().and_then(|text| text.parse().ok());
        let intent = attempt::intent(&entry.revision, &hook.name, entry.attempts);
        let Some(run) = self.run(&name) else {
            return self.create(hook, entry, &name);
        };
        // Without a recorded digest no spec matches.
        let outcome = recorded.map_or(Err(RunProblem::Outdated), |digest| {
            attempt::check(run, &intent, digest)
        });
        if let Err(problem) = outcome {
            return self.outdated(hook, entry, run, problem);
        }
        if run.is_measured_success() {
            (entry.phase, entry.reason) = (Phase::Successful, None);
            entry.completion_time = run.completed.map(Into::into);
            entry.message = Some(format!("HookRun {name} succeeded"));
            return;
        }
        if run.phase.is_final() && self.has_time_again(entry) {
            (entry.phase, entry.start_time) = (Phase::Waiting, None);
            entry.message = Some(format!("HookRun {name} was stopped; rerunning the hook"));
            entry.reason = None;
            return;
        }
        if run.phase.is_final() {
            entry.completion_time = Some(run.completed.unwrap_or(self.facts.now).into());
            let why = bounded(&format!("HookRun {name} {}", run.verdict()));
            return self.failed(hook, entry, run.phase, &why);
        }
        let end = self.end_of(hook, entry);
        let is_stopped = is_stopped_by_rollout(entry);
        if is_stopped || end.is_some_and(|end| end <= self.facts.now) {
            // The reason is recorded first: without it, the verdict of a terminated HookRun is a failure of the hook.
            if is_stopped || self.deadline != Deadline::Exceeded {
                terminate(run, &mut self.part);
            }
            let message = if self.has_time_again(entry) {
                format!("stopping HookRun {name} before rerunning the hook")
            } else {
                format!("{}; stopping HookRun {name}", self.late())
            };
            self.running(hook, entry, message);
            let late = WorkloadReason::ProgressDeadlineExceeded.as_str();
            let is_late = is_stopped || self.deadline == Deadline::Exceeded;
            entry.reason = is_late.then(|| late.to_owned());
            return;
        }
        if let Some(end) = end {
            self.part.wake_at(end);
        }
        let (namespace, now) = (&self.facts.workload.namespace, self.facts.now);
        if let Some(blocker) = run.await_verdict(namespace, now, &mut self.part) {
            return self.blocked(hook, entry, blocker);
        }
        let delay = run
            .delay
            .as_deref()
            .map_or_else(String::new, |delay| format!(": {}", bounded(delay)));
        self.running(
            hook,
            entry,
            format!("waiting for the verdict of HookRun {name}{delay}"),
        );
    }

    /// Deletes a HookRun that was edited or rendered from another template, or reports why it stays.
    fn outdated(
        &mut self,
        hook: &LifecycleHook,
        entry: &mut LifecycleHookStatus,
        run: &Run,
        problem: RunProblem,
    ) {
        match problem {
            RunProblem::Blocked(blocker) => self.blocked(hook, entry, blocker),
            RunProblem::Outdated => {
                self.part.actions.push(Action::DeleteRun(RunRef {
                    name: run.name.clone(),
                    uid: run.uid.clone(),
                    resource_version: None,
                    is_history: false,
                    stale_warning: None,
                }));
                let message = format!(
                    "HookRun {} was edited, or its HookTemplate has changed; deleting the HookRun and rerunning the \
                     hook",
                    run.name
                );
                self.running(hook, entry, message);
            }
        }
    }

    /// Records a failed attempt, and what follows.
    fn failed(
        &mut self,
        hook: &LifecycleHook,
        entry: &mut LifecycleHookStatus,
        phase: shared_api::Phase,
        why: &str,
    ) {
        let is_final = self.is_overdue(hook, entry) || hook.failure_policy != FailurePolicy::Retry;
        let next = match hook.failure_policy {
            FailurePolicy::Ignore if self.deadline == Deadline::Exceeded => {
                "the rollout is aborted".to_owned()
            }
            FailurePolicy::Ignore => "the rollout continues".to_owned(),
            FailurePolicy::Retry if !is_final => {
                entry.phase = Phase::Waiting;
                entry.reason = Some(WorkloadReason::LifecycleHookFailed.as_str().to_owned());
                let at = next_attempt(entry).unwrap_or(self.facts.now);
                // The next attempt may be due before this one is recorded.
                if at > self.facts.now {
                    self.part.wake_at(at);
                }
                let next = format!("retrying at {}", shared_api::time::Time::new(at).timestamp());
                entry.message = Some(format!("{why}; {next}"));
                next
            }
            FailurePolicy::Retry | FailurePolicy::Abort => "the rollout is aborted".to_owned(),
        };
        self.lifecycle.warnings.push(Warning {
            pod: None,
            reason: WorkloadReason::LifecycleHookFailed,
            message: format!(
                "lifecycle hook {}, attempt {}: {why}; {next}",
                hook.name, entry.attempts
            ),
        });
        if is_final {
            self.end(hook, entry, aborted_phase(phase), why);
        } else {
            self.wait_for_next_attempt(hook, entry);
        }
    }

    /// Ends a hook without success.
    fn end(&self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus, phase: Phase, why: &str) {
        let (phase, reason) = match hook.failure_policy {
            _ if self.deadline == Deadline::Exceeded => (phase, WorkloadReason::ProgressDeadlineExceeded),
            FailurePolicy::Ignore => (Phase::Ignored, WorkloadReason::LifecycleHookIgnored),
            FailurePolicy::Abort | FailurePolicy::Retry => (phase, WorkloadReason::LifecycleHookAborted),
        };
        entry.phase = phase;
        entry.reason = Some(reason.as_str().to_owned());
        entry.message = Some(if self.is_overdue(hook, entry) {
            format!("{}; last attempt: {why}", self.late())
        } else {
            why.to_owned()
        });
    }

    fn is_overdue(&self, hook: &LifecycleHook, entry: &LifecycleHookStatus) -> bool {
        self.end_of(hook, entry).is_some_and(|end| end <= self.facts.now)
    }

    /// Time at which a hook that has begun and has not succeeded ends: its own limit, or that of the rollout.
    fn end_of(&self, hook: &LifecycleHook, entry: &LifecycleHookStatus) -> Option<Timestamp> {
        let begun = entry.start_time?.timestamp();
        let own = hook.timeout.and_then(|timeout| begun.checked_add(timeout).ok());
        [own, self.deadline.end()].into_iter().flatten().min()
    }

    /// Names the limit that has passed.
    fn late(&self) -> &'static str {
        if self.deadline == Deadline::Exceeded {
            "the rollout exceeded its timeoutSeconds"
        } else {
            "the hook exceeded its timeoutSeconds"
        }
    }

    fn running(&mut self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus, message: String) {
        let reason = WorkloadReason::LifecycleHookRunning;
        self.waits_for_hook(hook, reason, &message);
        (entry.reason, entry.message) = (None, Some(message));
    }

    fn blocked(&mut self, hook: &LifecycleHook, entry: &mut LifecycleHookStatus, blocker: HookBlocker) {
        let message = bounded(&blocker.message);
        let wait = Wait::Blocked(blocker.reason, of_hook(hook, &message));
        self.lifecycle.wait = Some(worse(self.lifecycle.wait.take(), wait));
        if !is_stopped_by_rollout(entry) {
            entry.reason = Some(blocker.reason.as_str().to_owned());
        }
        entry.message = Some(message);
    }

    /// Waits for the next attempt, with the message of the entry.
    fn wait_for_next_attempt(&mut self, hook: &LifecycleHook, entry: &LifecycleHookStatus) {
        let message = entry.message.clone().unwrap_or_default();
        self.waits_for_hook(hook, WorkloadReason::LifecycleHookWaiting, &message);
    }

    fn waits_for_hook(&mut self, hook: &LifecycleHook, reason: WorkloadReason, message: &str) {
        let wait = Wait::Hook(reason, of_hook(hook, message));
        self.lifecycle.wait = Some(worse(self.lifecycle.wait.take(), wait));
    }
}

/// Whether the time limit of the rollout ended or stops this hook.
fn is_stopped_by_rollout(entry: &LifecycleHookStatus) -> bool {
    entry.reason.as_deref() == Some(WorkloadReason::ProgressDeadlineExceeded.as_str())
}

fn of_hook(hook: &LifecycleHook, message: &str) -> String {
    let point = match hook.trigger {
        Trigger::Pre => "Pre".to_owned(),
        Trigger::Mid => "Mid".to_owned(),
        Trigger::Progress(amount) => amount.to_string(),
        Trigger::Post => "Post".to_owned(),
    };
    format!("lifecycle hook {} ({point}): {message}", hook.name)
}

/// Phase of an entry that ended without success.
fn aborted_phase(phase: shared_api::Phase) -> Phase {
    match phase {
        shared_api::Phase::Error => Phase::Error,
        shared_api::Phase::Inconclusive => Phase::Inconclusive,
        // A success that does not count.
        shared_api::Phase::Successful
        | shared_api::Phase::Failed
        | shared_api::Phase::Unset
        | shared_api::Phase::Pending
        | shared_api::Phase::Running => Phase::Failed,
    }
}

/// Time of the next attempt; `None`: at once.
fn next_attempt(entry: &LifecycleHookStatus) -> Option<Timestamp> {
    let ended = entry.completion_time?.timestamp();
    let doublings = u32::try_from(entry.attempts.saturating_sub(1))
        .unwrap_or(0)
        .min(8);
    let pause = INITIAL_BACKOFF
        .saturating_mul(2_i32.saturating_pow(doublings))
        .min(MAX_BACKOFF);
    ended.checked_add(pause).ok()
}
