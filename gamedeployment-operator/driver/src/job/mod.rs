//! Job that carries out a plan: its writes under way and those that follow.
//!
//! The order is: a read of the workload, if writes rest on its spec alone; changes, which are all writes but the following; deletions of runs; creations of pods in
//! growing batches; the status. The status is written only if there was no other write, or one failed:
//! successful writes change it again, and the next decision follows.

mod effect;
mod node_check;
mod runs;
mod spec_check;
mod stored;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::plan::{Action, Plan, Warning, WriteKind};
use gamedeployment_core::write_backoff::{WriteFailure, WriteResult};
use shared_api::GameDeploymentStatus;
use shared_api::reason::WorkloadReason;

use crate::request::{
    ApiCall, DriverOutput, ObjectKind, ReconcileTarget, Request, RequestError, RequestId, Response,
};
use effect::FailedWrite;
pub(crate) use effect::{Effect, Target};
use runs::Removals;
use runtime_core::clock::Now;
use stored::{Expected, ExpectedWorkload};
use write::{NextCall, Write};

/// Limits on the API calls for one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Concurrent writes.
    pub at_once: usize,
    /// Largest number of runs that one call deletes: their digests fit into a URL, and the API server
    /// finishes well in time.
    pub together: usize,
    /// Smallest number of runs that are deleted together.
    pub many: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            at_once: 32,
            together: 200,
            many: 4,
        }
    }
}

/// Phase of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobPhase {
    /// Direct read of the workload, which some writes rest on.
    Confirmation,
    /// All writes except deletions of runs, creations of pods and the status.
    Changes,
    /// Deletions of runs, many in one call.
    Removals,
    /// Deletions of runs one by one.
    SingleRemovals,
    /// Creations of pods in batches.
    Creations,
    /// Status write.
    Status,
    /// Finished.
    Done,
}

/// Purpose of a call under way.
#[derive(Debug)]
enum InFlight {
    /// Read of the workload, and the time of the request.
    Confirmation(Duration),
    Write(Box<Write>),
    Removals(Vec<gamedeployment_core::plan::RunRef>),
    Status(Expected),
}

/// Outcome of a plan.
#[derive(Debug, Default)]
pub(crate) struct JobOutcome {
    /// Writes that succeeded, were refused or got no answer.
    pub(crate) tried: Vec<WriteResult>,
    /// Number of failed writes.
    failures: usize,
    /// Whether a write succeeded, or failed with an effect on the driver's state.
    had_effect: bool,
    /// Whether a write failed in a way that needs a new decision without back-off.
    pub(crate) overtaken: bool,
    /// Whether another object has the name of a new revision.
    pub(crate) collision: bool,
}

impl JobOutcome {
    /// Whether a write failed.
    pub(crate) fn failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether a write must not be repeated at once.
    pub(crate) fn backs_off(&self) -> bool {
        self.tried.iter().any(|write| write.failure.is_some())
    }
}

/// Result of a job's step: outputs for the shell and effects on the driver's state.
#[derive(Debug, Default)]
pub(crate) struct JobOutput {
    pub(crate) output: Vec<DriverOutput>,
    pub(crate) effects: Vec<Effect>,
}

/// Plan that is being carried out.
#[derive(Debug)]
pub(crate) struct Job {
    target: Arc<ReconcileTarget>,
    calls: CallLimits,
    phase: JobPhase,
    queue: VecDeque<Write>,
    removals: Removals,
    creations: VecDeque<Action>,
    batch: usize,
    failures_before_batch: usize,
    status: Option<Box<GameDeploymentStatus>>,
    warnings: Vec<Warning>,
    under_way: BTreeMap<RequestId, InFlight>,
    events: Vec<(WorkloadReason, String)>,
    pub(crate) outcome: JobOutcome,
}

impl Job {
    /// Creates the job of a plan. `runs_here` is the number of HookRuns in the workload's namespace, of every
    /// owner.
    pub(crate) fn new(plan: Plan, target: Arc<ReconcileTarget>, runs_here: usize, calls: CallLimits) -> Self {
        let Plan {
            actions,
            status,
            wake: _,
            warnings,
            granted: _,
            gauges: _,
            guard_check: _,
        } = plan;
        let (mut changes, mut removals, mut creations) = (VecDeque::new(), Vec::new(), VecDeque::new());
        for action in actions {
            match action {
                Action::CreatePod(_) => creations.push_back(action),
                Action::DeleteRun(run) => removals.push(run),
                Action::CreateRevision(_)
                | Action::AdoptRevision(_)
                | Action::RenumberRevision(..)
                | Action::DeleteRevision(_)
                | Action::AdoptPod(_)
                | Action::ReleasePod(_)
                | Action::DryRunPod(..)
                | Action::RecordSelection(..)
                | Action::ClearSelection(..)
                | Action::SetDrainingLabels(..)
                | Action::SetGuardLabel(..)
                | Action::SetAutoscalerAnnotations(..)
                | Action::WithdrawRequests(..)
                | Action::NoteQuestion(..)
                | Action::Gated(_)
                | Action::SetReady(..)
                | Action::CreateRun(_)
                | Action::TerminateRun(_)
                | Action::ResetRetry(_)
                | Action::Pause
                | Action::AddFinalizer
                | Action::RemoveFinalizer(_) => changes.push_back(Write::new(action, &target)),
            }
        }
        let phase = if changes.iter().any(Write::rests_on_spec) {
            JobPhase::Confirmation
        } else {
            JobPhase::Changes
        };
        Self {
            target,
            calls,
            phase,
            queue: changes,
            removals: Removals::new(removals, runs_here, calls),
            creations,
            batch: 1,
            failures_before_batch: 0,
            status,
            warnings,
            under_way: BTreeMap::new(),
            events: Vec::new(),
            outcome: JobOutcome::default(),
        }
    }

    /// Workload at the time of the decision.
    pub(crate) fn target(&self) -> &Arc<ReconcileTarget> {
        &self.target
    }

    /// Whether the job is done.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == JobPhase::Done
    }

    /// Sends all writes that the limits allow now.
    pub(crate) fn advance(&mut self, now: Now, ids: &mut RequestId, out: &mut JobOutput) {
        while self.phase != JobPhase::Done {
            if self.phase == JobPhase::Confirmation {
                if self.under_way.is_empty() {
                    let call = ApiCall::Read(ObjectKind::Workload, self.target.key.clone());
                    self.send(call, None, InFlight::Confirmation(now.elapsed), ids, out);
                }
                return;
            }
            while self.under_way.len() < self.calls.at_once.max(1)
                && let Some(mut write) = self.queue.pop_front()
            {
                let follows = write.begin(&self.target, now);
                self.follow(write, follows, ids, out);
            }
            if !self.under_way.is_empty() {
                return;
            }
            self.next(ids, out);
        }
    }

    /// Takes the next step of the current phase, or enters the next phase. No call is under way.
    fn next(&mut self, ids: &mut RequestId, out: &mut JobOutput) {
        match self.phase {
            JobPhase::Confirmation | JobPhase::Changes => self.phase = JobPhase::Removals,
            JobPhase::Removals => {
                if let Some(runs) = self.removals.next_together() {
                    let call = ApiCall::DeleteRuns(runs.clone());
                    self.send(call, None, InFlight::Removals(runs), ids, out);
                } else {
                    let singly = self.removals.singly().map(Action::DeleteRun);
                    self.queue = singly.map(|action| Write::new(action, &self.target)).collect();
                    self.phase = JobPhase::SingleRemovals;
                }
            }
            JobPhase::SingleRemovals => {
                self.failures_before_batch = self.outcome.failures;
                self.phase = JobPhase::Creations;
            }
            // Batches grow, and a failure ends them: few calls are wasted when a quota or a webhook
            // refuses pods.
            JobPhase::Creations
                if self.outcome.failures == self.failures_before_batch && !self.creations.is_empty() =>
            {
                let size = self.batch.min(self.creations.len());
                let batch = self.creations.drain(..size);
                self.queue = batch.map(|action| Write::new(action, &self.target)).collect();
                self.batch *= 2;
            }
            JobPhase::Creations => {
                let events = std::mem::take(&mut self.events);
                if !events.is_empty() {
                    out.output
                        .push(DriverOutput::EmitEvents(self.target.clone(), events));
                }
                self.phase = JobPhase::Status;
                let due = !self.outcome.had_effect || self.outcome.failed();
                if let Some(status) = self.status.take().filter(|_| due) {
                    let expected = Expected::Workload(ExpectedWorkload::Status(status.clone()));
                    let expected = InFlight::Status(expected);
                    self.send(ApiCall::WriteStatus(status), None, expected, ids, out);
                }
            }
            JobPhase::Status | JobPhase::Done => self.phase = JobPhase::Done,
        }
    }

    fn send(
        &mut self,
        call: ApiCall,
        until: Option<Duration>,
        doing: InFlight,
        ids: &mut RequestId,
        out: &mut JobOutput,
    ) {
        *ids += 1;
        self.under_way.insert(*ids, doing);
        out.output.push(DriverOutput::Send(Request {
            id: *ids,
            target: Some(self.target.clone()),
            call,
            until,
        }));
    }

    fn follow(&mut self, write: Write, follows: NextCall, ids: &mut RequestId, out: &mut JobOutput) {
        match follows {
            NextCall::Send(call, until) => self.send(call, until, InFlight::Write(Box::new(write)), ids, out),
            NextCall::End(result) => self.finish(write, result, out),
        }
    }

    /// Applies the answer to a call.
    pub(crate) fn answered(
        &mut self,
        id: RequestId,
        answer: Result<Response, RequestError>,
        now: Now,
        ids: &mut RequestId,
        out: &mut JobOutput,
    ) {
        match self.under_way.remove(&id) {
            None => {}
            Some(InFlight::Write(mut write)) => {
                let follows = write.answered(answer, &self.target, now);
                self.follow(*write, follows, ids, out);
            }
            Some(InFlight::Confirmation(asked)) => self.confirmed(asked, answer, out),
            Some(InFlight::Removals(runs)) => self.removed(runs, answer, out),
            Some(InFlight::Status(expected)) => self.recorded(&expected, answer, out),
        }
        self.advance(now, ids, out);
    }

    fn finish(&mut self, write: Write, result: Result<Effect, FailedWrite>, out: &mut JobOutput) {
        let Write {
            kind,
            object,
            scales,
            events,
            warning,
            ..
        } = write;
        if result.is_ok() {
            self.events.extend(events);
            if let Some(warning) = warning {
                let warnings = DriverOutput::EmitWarnings(self.target.clone(), vec![*warning]);
                out.output.push(warnings);
            }
        }
        self.note(kind, object, scales, result, out);
    }

    fn recorded(&mut self, expected: &Expected, answer: Result<Response, RequestError>, out: &mut JobOutput) {
        let target = Target {
            kind: ObjectKind::Workload,
            name: self.target.key.1.clone(),
            uid: Some(self.target.uid().to_owned()),
            scales: false,
        };
        let result = match answer {
            Ok(Response::Object(object)) if !expected.is_in(&object) => Err(FailedWrite::new(
                RequestError::NotStored,
                Some(Effect::Object(object)),
            )),
            Ok(Response::Object(object)) => Ok(Effect::Object(object)),
            Ok(_) => Ok(Effect::Nothing),
            Err(error) => {
                let effect = target.after(&error);
                Err(FailedWrite::new(error, effect))
            }
        };
        // If the status write lost a race, the next decision emits the warnings; this prevents duplicates.
        let later = matches!(&result, Err(failure) if matches!(failure.error, RequestError::Conflict | RequestError::Gone));
        let warnings = std::mem::take(&mut self.warnings);
        if !later && !warnings.is_empty() {
            out.output
                .push(DriverOutput::EmitWarnings(self.target.clone(), warnings));
        }
        self.note(WriteKind::Status, String::new(), false, result, out);
    }

    fn note(
        &mut self,
        kind: WriteKind,
        object: String,
        scales: bool,
        result: Result<Effect, FailedWrite>,
        out: &mut JobOutput,
    ) {
        let class = result
            .as_ref()
            .map_or_else(|failure| failure.error.class(), |_| "done");
        out.output.push(DriverOutput::WriteFinished(kind, class));
        let failure = match result {
            Ok(effect) => {
                self.outcome.had_effect = true;
                out.effects.push(effect);
                None
            }
            Err(FailedWrite {
                error,
                effect,
                collision,
            }) => {
                self.outcome.had_effect |= effect.is_some();
                out.effects.extend(effect);
                // A repeated write has taken effect: the status is of how it was before.
                self.outcome.failures += usize::from(error != RequestError::Repeated);
                self.outcome.collision |= collision;
                if matches!(
                    error,
                    RequestError::Gone | RequestError::Conflict | RequestError::Lapsed
                ) {
                    self.outcome.overtaken = true;
                    return;
                }
                Some(match error {
                    RequestError::NotStored => WriteFailure::NotStored(error.to_string()),
                    RequestError::Repeated => WriteFailure::Repeated(error.to_string()),
                    RequestError::Gone
                    | RequestError::Conflict
                    | RequestError::Lapsed
                    | RequestError::Refused(_) => WriteFailure::Rejected(error.to_string()),
                    RequestError::Throttled(_) | RequestError::Unknown(_) => {
                        WriteFailure::Unanswered(error.to_string())
                    }
                })
            }
        };
        self.outcome.tried.push(WriteResult {
            kind,
            object,
            scales,
            failure,
        });
    }
}
