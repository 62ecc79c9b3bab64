//! Life of one ExecutionHook in one process: select containers, record them, try the action in each, record the results.
//!
//! Contract: as of [`crate::Session`]. The containers are recorded before the first try, and a container whose success
//! is recorded is never tried again. Results that are not recorded when the process ends are lost: the next process tries
//! these containers again.
//!
//! | module | job |
//! | --- | --- |
//! | `exchange` | inputs and outputs |
//! | `tries` | tries in containers: due, under way, ended |
//! | `recording` | records the status, and merges states that others recorded |

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hook_core::execution::{
    FoundPod, ResolvedAction, ResolvedHook, SelectError, Selection, by_name, conclude, count, digest_of_spec,
    is_over, progress, resolve_action, resolve_hook, select, summarize, too_many, wait_for,
};
use hook_core::resolve::FieldErrors;
use jiff::SignedDuration;
use runtime_core::backoff::Backoff;
use runtime_core::clock::Now;
use shared_api::execution_hook::{ContainerHookStatus, PinnedAction};
use shared_api::reason::ExecutionReason;
use shared_api::{ExecutionHook, ExecutionHookStatus, HookAction};

use crate::StoreError;

mod exchange;
mod recording;
mod tries;

pub use exchange::{ExecutionInput, ExecutionOutput, TryId};

use recording::Recorder;
use tries::Tries;

/// Longest sleep. It is limited because the wall clock may be set meanwhile.
const MAX_SLEEP: Duration = Duration::from_secs(30);
/// Pause between checks that the HookAction has not changed.
const CHECK_ACTION_EVERY: Duration = Duration::from_secs(30);

/// State of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Must decide.
    Decides,
    /// Waits for the watch, a try or this time.
    Waits(Duration),
    /// Backs off until this time after a failed write.
    Pauses(Duration),
    /// Waits for the list of pods.
    Lists,
    /// Records the status.
    Records,
    /// Reads the hook; after a conflict if so.
    Reads { conflict: bool },
    /// Deletes the hook.
    Deletes,
    /// Ended.
    Ended,
}

/// Execution of one hook.
#[derive(Debug)]
pub struct Execution {
    hook: Arc<ExecutionHook>,
    /// Newest state from the watch that is not processed yet.
    news: Option<Arc<ExecutionHook>>,
    is_enabled: bool,
    spec: Result<ResolvedHook, FieldErrors>,
    spec_digest: String,
    action: Option<Arc<ResolvedAction>>,
    /// Time at which the HookAction is read again, and the back-off while it is missing or the pods are not listed.
    prepare_at: Duration,
    prepare: Backoff,
    /// Status with everything that has happened, recorded or not.
    status: ExecutionHookStatus,
    /// Name of the HookAction that is being read. Nothing waits for it once the hook has started.
    reads_action: Option<String>,
    /// Reason for which this process ended the hook, unless it follows from the hook itself.
    ended_by: Option<(ExecutionReason, String)>,
    tries: Tries,
    recorder: Recorder,
    /// Whether something has happened since the last decision.
    is_due: bool,
    state: State,
    output: VecDeque<ExecutionOutput>,
}

impl Execution {
    /// Creates the execution of a hook. Without `is_enabled`, it ends the hook before its first try.
    pub fn new(hook: Arc<ExecutionHook>, is_enabled: bool, now: Now) -> Self {
        let spec = resolve_hook(&hook.spec);
        let mut execution = Self {
            news: None,
            is_enabled,
            spec,
            spec_digest: digest_of_spec(&hook.spec),
            action: None,
            prepare_at: now.elapsed,
            prepare: Backoff::new(Duration::from_secs(1), Duration::from_secs(10)),
            status: hook.status.clone().unwrap_or_default(),
            tries: Tries::default(),
            reads_action: None,
            ended_by: None,
            recorder: Recorder::default(),
            is_due: false,
            state: State::Decides,
            output: VecDeque::new(),
            hook,
        };
        if execution.hook.is_complete() {
            execution.drop_containers();
        } else {
            // The watch may be old: a container that has succeeded since must not be tried again.
            execution.read(false);
        }
        execution
    }

    /// Returns the hook as the execution sees it.
    pub fn hook(&self) -> &Arc<ExecutionHook> {
        &self.hook
    }

    /// Applies an input. Ignores an answer that the execution does not wait for.
    pub fn handle(&mut self, input: ExecutionInput, now: Now) {
        match (input, self.state) {
            (ExecutionInput::Watch(hook), _) => self.news = Some(hook),
            (ExecutionInput::ActionRead(answer), _) => {
                self.is_due = true;
                // Another one was read if the spec was edited meanwhile.
                if self.reads_action.take().as_ref() == Some(&self.hook.spec.action_name) {
                    self.action_read(answer, now);
                }
            }
            (ExecutionInput::Listed(answer), State::Lists) => self.listed(answer, now),
            (ExecutionInput::Recorded(answer), State::Records) => self.recorded(answer, now),
            (ExecutionInput::Read(answer), State::Reads { conflict }) => self.was_read(answer, conflict, now),
            (ExecutionInput::Deleted(answer), State::Deletes) => self.deleted(answer, now),
            (ExecutionInput::Started(id), _) => {
                self.is_due |= self.tries.started(id, &mut self.status, now);
            }
            (ExecutionInput::Ended(id, outcome), _) => {
                let limit = self.action.as_ref().and_then(|action| action.action_timeout);
                self.is_due |= self.tries.ended(id, outcome, limit, &mut self.status, now);
            }
            (
                ExecutionInput::Listed(_)
                | ExecutionInput::Recorded(_)
                | ExecutionInput::Read(_)
                | ExecutionInput::Deleted(_),
                _,
            ) => {}
        }
    }

    /// Returns the next output, or `None` if nothing is due before the next input or [`Execution::deadline`].
    pub fn poll(&mut self, now: Now) -> Option<ExecutionOutput> {
        if self.output.is_empty() {
            self.go_on(now);
        }
        self.output.pop_front()
    }

    /// Time at which work is due without an input; `None` if there is none. A time in the past means now.
    pub fn deadline(&self) -> Option<Duration> {
        if !self.output.is_empty() {
            return Some(Duration::ZERO);
        }
        match self.state {
            State::Decides => Some(Duration::ZERO),
            State::Waits(_) if self.is_due || self.news.is_some() => Some(Duration::ZERO),
            State::Waits(until) | State::Pauses(until) => Some(until),
            State::Lists | State::Records | State::Reads { .. } | State::Deletes | State::Ended => None,
        }
    }

    fn go_on(&mut self, now: Now) {
        match self.state {
            State::Decides => {}
            State::Waits(until) => {
                if now.elapsed < until && !self.is_due && self.news.is_none() {
                    return;
                }
            }
            State::Pauses(until) => {
                if now.elapsed < until {
                    return;
                }
                if let Some(conflict) = self.recorder.take_read() {
                    return self.read(conflict);
                }
            }
            State::Lists | State::Records | State::Reads { .. } | State::Deletes | State::Ended => return,
        }
        if let Some(news) = self.news.take() {
            self.accept_news(news);
        }
        self.is_due = false;
        self.state = State::Decides;
        self.decide(now);
    }

    fn decide(&mut self, now: Now) {
        if self.hook.metadata.deletion_timestamp.is_some() {
            self.cancel_tries();
            return self.wait_until(now.elapsed + MAX_SLEEP);
        }
        if self.status.completion_time.is_none()
            && let Some((reason, message)) = self.ending()
        {
            self.conclude(reason, &message, now);
        }
        if self.status.completion_time.is_some() {
            return self.clean_up(now);
        }
        let has_started = self.status.start_time.is_some();
        if now.elapsed >= self.prepare_at && self.reads_action.is_none() {
            if has_started || self.action.is_none() {
                let name = self.hook.spec.action_name.clone();
                self.reads_action = Some(name.clone());
                self.output.push_back(ExecutionOutput::ReadAction(name));
            } else {
                return self.select(now);
            }
        }
        self.carry_on(now);
    }

    /// Returns the reason for which the hook ends now, if there is one.
    fn ending(&self) -> Option<(ExecutionReason, String)> {
        if let Err(errors) = &self.spec {
            return Some((ExecutionReason::InvalidHook, errors.to_string()));
        }
        if self.status.start_time.is_some() && is_over(&self.status) {
            return Some(summarize(&self.status));
        }
        if self.ended_by.is_some() {
            return self.ended_by.clone();
        }
        let digest = self.status.spec_digest.as_ref();
        if digest.is_some_and(|digest| *digest != self.spec_digest) {
            let message =
                "the spec was changed after the containers were selected; create another ExecutionHook";
            return Some((ExecutionReason::SpecChanged, message.to_owned()));
        }
        if self.hook.spec.terminate == Some(true) {
            return Some((
                ExecutionReason::HookTerminated,
                "spec.terminate is set".to_owned(),
            ));
        }
        if !self.is_enabled {
            let message = "hook-operator is running without --execution-hooks; restart it with this flag, then \
                           recreate the ExecutionHook";
            return Some((ExecutionReason::ExecutionHooksDisabled, message.to_owned()));
        }
        None
    }

    /// Ends the hook for a reason that does not follow from its state.
    fn end_by(&mut self, reason: ExecutionReason, message: &str) {
        self.ended_by = Some((reason, message.to_owned()));
        self.is_due = true;
    }

    fn conclude(&mut self, reason: ExecutionReason, message: &str, now: Now) {
        self.cancel_tries();
        let generation = self.hook.metadata.generation;
        conclude(&mut self.status, generation, reason, message, now.wall);
        self.recorder.change();
    }

    /// Records the end, then deletes the hook when its time to live has passed.
    fn clean_up(&mut self, now: Now) {
        if self.recorder.has_changes() {
            return self.record(now);
        }
        if self.recorder.take_end() {
            self.output
                .push_back(ExecutionOutput::Completed(self.hook.clone()));
        }
        self.drop_containers();
        // A spec that cannot be read has the default.
        let time_to_live = self
            .spec
            .as_ref()
            .map_or(Duration::from_hours(1), |spec| spec.time_to_live);
        let end = self
            .status
            .completion_time
            .map_or(now.wall, shared_api::time::Time::timestamp);
        let time_to_live = SignedDuration::try_from(time_to_live).unwrap_or(SignedDuration::MAX);
        let expiry = end.checked_add(time_to_live).unwrap_or(now.wall);
        if now.wall < expiry {
            return self.wait_until(now.at(expiry).min(now.elapsed + MAX_SLEEP));
        }
        self.state = State::Deletes;
        self.output.push_back(ExecutionOutput::Delete(self.hook.clone()));
    }

    fn action_read(&mut self, answer: Result<Box<HookAction>, StoreError>, now: Now) {
        if self.status.completion_time.is_some() {
            return;
        }
        let name = &self.hook.spec.action_name;
        let resolved = match answer {
            Ok(action) => resolve_action(&action).map_err(|errors| {
                (
                    ExecutionReason::InvalidAction,
                    format!("HookAction {name}: {errors}"),
                )
            }),
            Err(StoreError::Gone) => {
                let message = format!("HookAction {name} does not exist in this namespace; create it");
                Err((ExecutionReason::ActionNotFound, message))
            }
            Err(StoreError::Failed { message, .. }) => Err((
                ExecutionReason::ActionNotRead,
                format!("failed to read HookAction {name}: {message}"),
            )),
            Err(error @ StoreError::Conflict) => Err((
                ExecutionReason::ActionNotRead,
                format!("failed to read HookAction {name}: {error}"),
            )),
        };
        // An edit of its time limits changes nothing that runs in containers.
        let is_pinned = |action: &PinnedAction| {
            let pinned = self.status.action.as_ref();
            pinned.is_some_and(|pinned| (&pinned.uid, &pinned.digest) == (&action.uid, &action.digest))
        };
        match resolved {
            Ok(action) if self.status.start_time.is_none() || is_pinned(&action.pinned) => {
                self.action = Some(Arc::new(action));
                let started = self.status.start_time.is_some();
                self.prepare_at = if started {
                    now.elapsed + CHECK_ACTION_EVERY
                } else {
                    now.elapsed
                };
            }
            // The action that runs is known: an API server that does not answer changes nothing.
            Err((ExecutionReason::ActionNotRead, _)) if self.action.is_some() => {
                self.prepare_at = now.elapsed + CHECK_ACTION_EVERY;
            }
            Err((ExecutionReason::ActionNotRead, message)) => {
                self.wait_for(ExecutionReason::ActionNotRead, &message, now);
            }
            Err((reason, message)) if self.status.start_time.is_none() => {
                self.wait_for(reason, &message, now);
            }
            Ok(_) | Err(_) => {
                let message =
                    format!("HookAction {name} was changed or deleted; create another ExecutionHook");
                self.end_by(ExecutionReason::ActionChanged, &message);
            }
        }
    }

    /// Says in the status why nothing is carried out yet.
    fn wait_for(&mut self, reason: ExecutionReason, message: &str, now: Now) {
        self.prepare_at = now.elapsed + self.prepare.fail();
        let generation = self.hook.metadata.generation;
        if wait_for(&mut self.status, generation, reason, message, now.wall) {
            self.recorder.change();
            self.recorder.report(reason, message);
        }
    }

    fn select(&mut self, now: Now) {
        match &self.spec {
            Ok(ResolvedHook {
                selection: Selection::Names(pods),
                ..
            }) => {
                let containers = by_name(pods);
                self.selected(Ok(containers), now);
            }
            Ok(ResolvedHook {
                selection: Selection::Labels { pods, .. },
                ..
            }) => {
                self.state = State::Lists;
                self.output.push_back(ExecutionOutput::List(pods.clone()));
            }
            // The hook has ended.
            Err(_) => {}
        }
    }

    fn listed(&mut self, answer: Result<Vec<FoundPod>, String>, now: Now) {
        self.state = State::Decides;
        match (answer, &self.spec) {
            (Ok(pods), Ok(spec)) => {
                let names = match &spec.selection {
                    Selection::Labels { containers, .. } => containers.as_slice(),
                    Selection::Names(_) => &[],
                };
                let selected = select(&pods, names);
                self.selected(selected, now);
            }
            (Err(why), _) => {
                // It may be another one when the pods are listed.
                self.action = None;
                self.wait_for(ExecutionReason::PodsNotListed, &why, now);
            }
            (Ok(_), Err(_)) => {}
        }
    }

    /// Starts the hook. Nothing is carried out before this is recorded.
    fn selected(&mut self, selected: Result<Vec<ContainerHookStatus>, SelectError>, now: Now) {
        let containers = match selected {
            Ok(containers) => containers,
            Err(SelectError { reason, message }) => return self.end_by(reason, &message),
        };
        let Some(action) = &self.action else { return };
        self.status.action = Some(action.pinned.clone());
        self.status.spec_digest = Some(self.spec_digest.clone());
        self.status.start_time = Some(now.wall.into());
        self.status.hook_statuses = containers;
        self.tries.resize(&self.status);
        self.prepare.reset();
        self.prepare_at = now.elapsed + CHECK_ACTION_EVERY;
        self.recorder.change();
        self.state = State::Decides;
        self.carry_on(now);
    }

    /// Records results and starts tries, then waits.
    fn carry_on(&mut self, now: Now) {
        let mut until = now.elapsed + MAX_SLEEP;
        if self.status.start_time.is_some() {
            let limit = self.action.as_ref().and_then(|action| action.action_timeout);
            if let Some(cancelled) = self.tries.expire(limit, &mut self.status, now) {
                self.output
                    .extend(cancelled.into_iter().map(ExecutionOutput::Cancel));
                self.recorder.change();
                // The last container may have ended.
                self.is_due = true;
            }
        }
        if self.tries.take_changes() {
            self.recorder.change();
        }
        if let Some(total) = self.tries.excess(&self.status) {
            let message = too_many(&format!("at least {total}"));
            self.end_by(ExecutionReason::TooManyContainers, &message);
            return self.wait_until(now.elapsed);
        }
        if self.recorder.has_changes() {
            match self.recorder.wait(now.elapsed) {
                Some(wait) => until = until.min(now.elapsed + wait),
                None => return self.record(now),
            }
        }
        let is_recorded = self
            .hook
            .status
            .as_ref()
            .is_some_and(|status| status.start_time.is_some());
        if let (true, Some(action), Ok(spec)) = (is_recorded, &self.action, &self.spec) {
            let starts = self.tries.start(spec.parallelism, action, &self.status, now);
            self.output.extend(starts);
            let due = self
                .tries
                .next_due(spec.parallelism, action.action_timeout, &self.status);
            until = until.min(due.unwrap_or(until));
        }
        if self.reads_action.is_none() {
            until = until.min(self.prepare_at.max(now.elapsed));
        }
        self.wait_until(until);
    }

    fn wait_until(&mut self, until: Duration) {
        self.state = State::Waits(until);
    }

    fn cancel_tries(&mut self) {
        let cancelled = self.tries.cancel();
        self.output.extend(cancelled.map(ExecutionOutput::Cancel));
    }

    fn end(&mut self) {
        self.cancel_tries();
        self.state = State::Ended;
        self.output.push_back(ExecutionOutput::End);
    }

    /// Counts the containers for the status that is recorded next.
    fn describe(&mut self, now: Now) {
        if self.status.completion_time.is_some() {
            return;
        }
        count(&mut self.status, self.tries.active());
        let queued = self.tries.queued();
        if self.status.start_time.is_some() && self.action.is_some() {
            let message = progress(&self.status, queued);
            let generation = self.hook.metadata.generation;
            wait_for(
                &mut self.status,
                generation,
                ExecutionReason::Executing,
                &message,
                now.wall,
            );
        }
    }
}
