//! Recording of the status, and recovery when that fails. Results of tries are kept until they are recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hook_core::execution::{digest_of_spec, is_ahead, resolve_hook};
use runtime_core::backoff::Backoff;
use runtime_core::clock::Now;
use shared_api::execution_hook::{ALL_CONTAINERS, ContainerHookStatus};
use shared_api::reason::ExecutionReason;
use shared_api::time::Time;
use shared_api::{ExecutionHook, ExecutionHookStatus};

use super::{Execution, ExecutionOutput, State};
use crate::StoreError;
use crate::version::Version;
use crate::write_retry::{warns_after, write_retry};
use crate::write_throttle::WriteThrottle;

/// Pause between two writes of the status, except for the last one.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// State of recording.
#[derive(Debug)]
pub(super) struct Recorder {
    has_changes: bool,
    /// The hook must be read before the next decision; after a conflict if so.
    must_read: Option<bool>,
    throttle: WriteThrottle,
    retry: Backoff,
    delete: Backoff,
    /// Status that was sent, until its outcome is known.
    sent: Option<Box<ExecutionHookStatus>>,
    /// Reason for which the hook waits, until it is recorded.
    waits: Option<(ExecutionReason, String)>,
    /// End that this process has sent, until it is known to be recorded.
    end: Option<Time>,
    /// Whether a write that failed may have taken effect.
    may_have_written: bool,
    /// Whether the end of the hook was recorded by this process and is not reported yet.
    has_ended: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            has_changes: false,
            must_read: None,
            throttle: WriteThrottle::with_pause(WRITE_EVERY),
            retry: write_retry(),
            delete: Backoff::new(Duration::from_secs(1), Duration::from_mins(5)),
            sent: None,
            waits: None,
            end: None,
            may_have_written: false,
            has_ended: false,
        }
    }
}

impl Recorder {
    /// Notes that the status has changed.
    pub(super) fn change(&mut self) {
        self.has_changes = true;
    }

    pub(super) fn has_changes(&self) -> bool {
        self.has_changes
    }

    /// Returns how long the next write must wait.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        self.throttle.wait(now)
    }

    /// Returns once whether the hook must be read, and whether after a conflict.
    pub(super) fn take_read(&mut self) -> Option<bool> {
        self.must_read.take()
    }

    /// Emits an event once the reason is recorded.
    pub(super) fn report(&mut self, reason: ExecutionReason, message: &str) {
        self.waits = Some((reason, message.to_owned()));
    }

    /// Returns once whether this process recorded the end of the hook.
    pub(super) fn take_end(&mut self) -> bool {
        std::mem::take(&mut self.has_ended)
    }
}

impl Execution {
    pub(super) fn record(&mut self, now: Now) {
        self.describe(now);
        self.recorder.has_changes = false;
        self.recorder.throttle.sent(&self.status, now.elapsed);
        self.recorder.end = self.status.completion_time;
        let status = Box::new(self.status.clone());
        self.recorder.sent = Some(status.clone());
        self.state = State::Records;
        self.output
            .push_back(ExecutionOutput::Record(self.hook.clone(), status));
    }

    pub(super) fn recorded(&mut self, answer: Result<Arc<ExecutionHook>, StoreError>, now: Now) {
        let sent = self.recorder.sent.take();
        match (answer, sent) {
            (Ok(hook), Some(sent)) if has_status(&hook, &sent) => {
                self.recorder.retry.reset();
                self.recorder.may_have_written = false;
                self.output.push_back(ExecutionOutput::StatusWritten("written"));
                self.accept(hook);
                let waits = self.recorder.waits.take();
                if let Some((reason, message)) = waits.filter(|(reason, _)| has_reason(&sent, *reason)) {
                    self.output
                        .push_back(ExecutionOutput::Waits(self.hook.clone(), reason, message));
                }
                self.state = State::Decides;
            }
            (Ok(hook), _) => {
                self.accept(hook);
                self.recorder.has_changes = true;
                self.output.push_back(ExecutionOutput::StatusWritten("failed"));
                self.try_again(
                    failed("the API server's response does not contain the written status"),
                    now,
                );
            }
            (Err(error), _) => self.recover(error, now),
        }
    }

    pub(super) fn deleted(&mut self, answer: Result<(), StoreError>, now: Now) {
        match answer {
            Ok(()) | Err(StoreError::Gone) => self.end(),
            Err(StoreError::Conflict) => self.read(true),
            Err(why @ StoreError::Failed { .. }) => {
                // It may be forbidden for good.
                let pause = self.recorder.delete.fail();
                self.pause(
                    ExecutionReason::HookNotDeleted,
                    why,
                    pause,
                    self.recorder.delete.failures(),
                    now,
                );
            }
        }
    }

    /// Recovers from a failed write of the status: reads the hook again if it may have changed, otherwise retries after a pause.
    pub(super) fn recover(&mut self, error: StoreError, now: Now) {
        self.recorder.has_changes = true;
        match error {
            StoreError::Conflict => {
                // Another process has recorded the end, unless an earlier write of this one took effect.
                if !self.recorder.may_have_written {
                    self.recorder.end = None;
                }
                self.read(true);
            }
            StoreError::Gone => self.read(false),
            StoreError::Failed { .. } => {
                self.recorder.may_have_written = true;
                self.output.push_back(ExecutionOutput::StatusWritten("failed"));
                self.try_again(error, now);
            }
        }
    }

    pub(super) fn read(&mut self, conflict: bool) {
        self.state = State::Reads { conflict };
        self.output.push_back(ExecutionOutput::Read(self.hook.clone()));
    }

    pub(super) fn was_read(
        &mut self,
        answer: Result<Arc<ExecutionHook>, StoreError>,
        conflict: bool,
        now: Now,
    ) {
        match answer {
            Ok(hook) => {
                self.accept(hook);
                self.state = State::Decides;
                if conflict {
                    self.output.push_back(ExecutionOutput::StatusWritten("conflict"));
                    let pause = self.recorder.retry.fail();
                    // A single conflict is normal; repeated conflicts mean that another writer is as eager.
                    if self.recorder.retry.failures() > 1 {
                        self.state = State::Pauses(now.elapsed + pause);
                    }
                }
            }
            Err(StoreError::Gone) => {
                self.output.push_back(ExecutionOutput::StatusWritten("gone"));
                self.end();
            }
            // Until the hook is read, nothing is known to be new.
            Err(error @ (StoreError::Conflict | StoreError::Failed { .. })) => {
                self.try_again(error, now);
                self.recorder.must_read = Some(conflict);
            }
        }
    }

    fn try_again(&mut self, why: StoreError, now: Now) {
        let pause = self.recorder.retry.fail();
        let reason = ExecutionReason::HookStatusNotRecorded;
        self.pause(reason, why, pause, self.recorder.retry.failures(), now);
    }

    fn pause(&mut self, reason: ExecutionReason, why: StoreError, pause: Duration, failures: u32, now: Now) {
        self.output.push_back(ExecutionOutput::CallFailed {
            hook: self.hook.clone(),
            reason,
            why,
            pause,
            tell: warns_after(failures),
        });
        self.state = State::Pauses(now.elapsed + pause);
    }

    /// Applies a state from the watch, unless it is older than the known one.
    pub(super) fn accept_news(&mut self, hook: Arc<ExecutionHook>) {
        let version = |hook: &ExecutionHook| Version::parse(hook.metadata.resource_version.as_deref());
        if !version(&hook).is_older_than(version(&self.hook)) {
            self.accept(hook);
        }
    }

    /// Follows a newer state, and keeps results that it does not have.
    fn accept(&mut self, hook: Arc<ExecutionHook>) {
        if hook.spec != self.hook.spec {
            if self.status.start_time.is_none() {
                // It may be another one.
                self.action = None;
                self.prepare_at = Duration::ZERO;
            }
            self.spec = resolve_hook(&hook.spec);
            self.spec_digest = digest_of_spec(&hook.spec);
        }
        let recorded = hook.status.clone().unwrap_or_default();
        self.hook = hook;
        let before = std::mem::replace(&mut self.status, recorded);
        // The answer to the write may have been lost.
        let end = self
            .recorder
            .end
            .take_if(|end| self.status.completion_time == Some(*end));
        self.recorder.has_ended |= end.is_some();
        if before.start_time.is_some() && self.status.start_time.is_none() {
            // The containers must be selected again.
            self.action = None;
            self.prepare_at = Duration::ZERO;
        }
        let (is_recorded, has_news) = merge(&before.hook_statuses, &mut self.status.hook_statuses);
        self.recorder.has_changes = has_news;
        let after = &self.status.hook_statuses;
        let cancelled = self.tries.rearrange(&before.hook_statuses, after, &is_recorded);
        self.output.extend(cancelled);
    }

    /// Drops the containers of a hook that has ended: only its time to live matters.
    pub(super) fn drop_containers(&mut self) {
        self.cancel_tries();
        self.tries.clear();
        self.status.hook_statuses = Vec::new();
        if let Some(hook) = Arc::get_mut(&mut self.hook)
            && let Some(status) = &mut hook.status
        {
            status.hook_statuses = Vec::new();
        }
    }
}

/// Adds to recorded states of containers the progress that they do not have. Returns whether the pod of each container is
/// recorded, and whether there is any progress.
fn merge(ours: &[ContainerHookStatus], recorded: &mut Vec<ContainerHookStatus>) -> (Vec<bool>, bool) {
    let mut known: BTreeMap<(&str, &str), &ContainerHookStatus> = BTreeMap::new();
    let mut by_pod: BTreeMap<&str, Vec<&ContainerHookStatus>> = BTreeMap::new();
    for container in ours {
        known.insert((&container.pod_name, &container.container_name), container);
        if container.container_name != ALL_CONTAINERS {
            by_pod.entry(&container.pod_name).or_default().push(container);
        }
    }
    let (mut is_recorded, mut has_news, mut others) = (Vec::new(), false, Vec::new());
    for container in recorded.iter_mut() {
        is_recorded.push(container.pod_uid.is_some());
        let key = (container.pod_name.as_str(), container.container_name.as_str());
        let found = (key.1 == ALL_CONTAINERS).then(|| by_pod.remove(key.0)).flatten();
        let mut found = found.unwrap_or_default().into_iter();
        let ahead = known.get(&key).copied().filter(|ours| is_ahead(ours, container));
        if let Some(ours) = found.next().or(ahead) {
            container.clone_from(ours);
            has_news = true;
        }
        others.extend(found.cloned());
    }
    is_recorded.extend(others.iter().map(|_| false));
    recorded.extend(others);
    (is_recorded, has_news)
}

/// Returns whether a hook from the API server's answer has the status that was written.
fn has_status(hook: &ExecutionHook, written: &ExecutionHookStatus) -> bool {
    let results = |status: &ExecutionHookStatus| -> Vec<_> {
        let containers = status.hook_statuses.iter();
        containers
            .map(|container| (container.succeed, container.attempts, container.pod_uid.clone()))
            .collect()
    };
    hook.status.as_ref().is_some_and(|kept| {
        (kept.completion_time, &kept.action) == (written.completion_time, &written.action)
            && results(kept) == results(written)
    })
}

/// Returns whether the conditions of a status have this reason.
fn has_reason(status: &ExecutionHookStatus, reason: ExecutionReason) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|condition| condition.reason == reason.as_str())
}

fn failed(message: &str) -> StoreError {
    StoreError::Failed {
        step: "write the status",
        message: message.to_owned(),
    }
}
