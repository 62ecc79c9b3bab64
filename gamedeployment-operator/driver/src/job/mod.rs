//! A plan that is being carried out: which of its writes are under way, and which come next.
//!
//! First the changes of what there is, then the removals of runs, then the creations, in batches that grow; the status
//! last, and only where nothing else was written: what was written changes it again, and the next decision follows.

mod effect;
mod runs;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use gamedeployment_core::plan::{Action, Plan, STATUS, Warning};
use gamedeployment_core::refusals::Tried;
use shared_api::GameDeploymentStatus;
use shared_api::reason::WorkloadReason;

use crate::request::{Answer, Call, CallError, Kind, Output, Request, RequestId, Subject};
pub(crate) use effect::Effect;
use effect::{Failure, Target};
use runs::Removals;
use runtime_core::clock::Now;
use write::{Follows, Write};

/// Calls for one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// Writes under way at a time.
    pub at_once: usize,
    /// Runs that one call deletes at most: their digests fit into a URL, and the API server is done well in time.
    pub together: usize,
    /// Fewer runs are deleted one by one.
    pub many: usize,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            at_once: 32,
            together: 200,
            many: 4,
        }
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Changes of what there is.
    Changes,
    /// Removals of runs by calls for many.
    Removals,
    /// Removals of runs one by one.
    SingleRemovals,
    /// Batches of creations.
    Creations,
    /// The status.
    Status,
    /// Nothing.
    Done,
}

/// What a call under way is for.
#[derive(Debug)]
enum Doing {
    Write(Write),
    Removals(Vec<gamedeployment_core::plan::RunRef>),
    Status,
}

/// What came of a plan.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Writes that were done, and those that were refused or not answered.
    pub(crate) tried: Vec<Tried>,
    /// How many writes failed.
    failures: usize,
    /// Whether anything became known.
    learned: bool,
    /// Whether a write failed that is to be decided on anew, and nothing is to be waited for.
    pub(crate) overtaken: bool,
    /// Whether the name of a new revision was taken by something else.
    pub(crate) collision: bool,
}

impl Outcome {
    /// Whether a write failed.
    pub(crate) fn failed(&self) -> bool {
        self.failures > 0
    }
}

/// What a job has to do with the world outside: requests to send, things to tell, and what became known.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) output: Vec<Output>,
    pub(crate) effects: Vec<Effect>,
}

/// A plan that is being carried out.
#[derive(Debug)]
pub(crate) struct Job {
    subject: Arc<Subject>,
    calls: Calls,
    phase: Phase,
    queue: VecDeque<Write>,
    removals: Removals,
    creations: VecDeque<Action>,
    batch: usize,
    failures_before_batch: usize,
    status: Option<Box<GameDeploymentStatus>>,
    warnings: Vec<Warning>,
    under_way: BTreeMap<RequestId, Doing>,
    told: Vec<(WorkloadReason, String)>,
    pub(crate) outcome: Outcome,
}

impl Job {
    /// Begins to carry a plan out. `runs_here`: HookRuns in the workload's namespace, whosever they are.
    pub(crate) fn new(plan: Plan, subject: Arc<Subject>, runs_here: usize, calls: Calls) -> Self {
        let Plan {
            actions,
            status,
            wake: _,
            warnings,
            asking: _,
            gauges: _,
        } = plan;
        let (mut changes, mut removals, mut creations) = (VecDeque::new(), Vec::new(), VecDeque::new());
        for action in actions {
            match action {
                Action::CreatePod(_) => creations.push_back(action),
                Action::DeleteRun(run) => removals.push(run),
                other => changes.push_back(Write::new(other, &subject)),
            }
        }
        Self {
            subject,
            calls,
            phase: Phase::Changes,
            queue: changes,
            removals: Removals::new(removals, runs_here, calls),
            creations,
            batch: 1,
            failures_before_batch: 0,
            status,
            warnings,
            under_way: BTreeMap::new(),
            told: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    /// The workload, as it was decided on.
    pub(crate) fn subject(&self) -> &Arc<Subject> {
        &self.subject
    }

    /// Whether everything has been done.
    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Sends what may be sent now.
    pub(crate) fn advance(&mut self, now: Now, ids: &mut RequestId, step: &mut Step) {
        while self.phase != Phase::Done {
            while self.under_way.len() < self.calls.at_once.max(1)
                && let Some(mut write) = self.queue.pop_front()
            {
                let follows = write.begin(&self.subject, now);
                self.follow(write, follows, ids, step);
            }
            if !self.under_way.is_empty() {
                return;
            }
            self.next(ids, step);
        }
    }

    /// Everything under way has been answered: what comes next.
    fn next(&mut self, ids: &mut RequestId, step: &mut Step) {
        match self.phase {
            Phase::Changes => self.phase = Phase::Removals,
            Phase::Removals => {
                if let Some(runs) = self.removals.next_together() {
                    let call = Call::DeleteRuns(runs.clone());
                    self.send(call, None, Doing::Removals(runs), ids, step);
                } else {
                    let singly = self.removals.singly().map(Action::DeleteRun);
                    self.queue = singly.map(|action| Write::new(action, &self.subject)).collect();
                    self.phase = Phase::SingleRemovals;
                }
            }
            Phase::SingleRemovals => {
                self.failures_before_batch = self.outcome.failures;
                self.phase = Phase::Creations;
            }
            // Where a quota or an admission refuses, few calls are wasted.
            Phase::Creations
                if self.outcome.failures == self.failures_before_batch && !self.creations.is_empty() =>
            {
                let size = self.batch.min(self.creations.len());
                let batch = self.creations.drain(..size);
                self.queue = batch.map(|action| Write::new(action, &self.subject)).collect();
                self.batch *= 2;
            }
            Phase::Creations => {
                let told = std::mem::take(&mut self.told);
                if !told.is_empty() {
                    step.output.push(Output::Tell(self.subject.clone(), told));
                }
                self.phase = Phase::Status;
                let due = !self.outcome.learned || self.outcome.failed();
                if let Some(status) = self.status.take().filter(|_| due) {
                    self.send(Call::WriteStatus(status), None, Doing::Status, ids, step);
                }
            }
            Phase::Status | Phase::Done => self.phase = Phase::Done,
        }
    }

    fn send(
        &mut self,
        call: Call,
        until: Option<std::time::Duration>,
        doing: Doing,
        ids: &mut RequestId,
        step: &mut Step,
    ) {
        *ids += 1;
        self.under_way.insert(*ids, doing);
        step.output.push(Output::Send(Request {
            id: *ids,
            subject: Some(self.subject.clone()),
            call,
            until,
        }));
    }

    fn follow(&mut self, write: Write, follows: Follows, ids: &mut RequestId, step: &mut Step) {
        match follows {
            Follows::Call(call, until) => self.send(call, until, Doing::Write(write), ids, step),
            Follows::End(result) => self.finish(write, result, step),
        }
    }

    /// A call was answered.
    pub(crate) fn answered(
        &mut self,
        id: RequestId,
        answer: Result<Answer, CallError>,
        now: Now,
        ids: &mut RequestId,
        step: &mut Step,
    ) {
        match self.under_way.remove(&id) {
            None => {}
            Some(Doing::Write(mut write)) => {
                let follows = write.answered(answer, &self.subject, now);
                self.follow(write, follows, ids, step);
            }
            Some(Doing::Removals(runs)) => self.removed(runs, answer, step),
            Some(Doing::Status) => self.recorded(answer, step),
        }
        self.advance(now, ids, step);
    }

    fn finish(&mut self, write: Write, result: Result<Effect, Failure>, step: &mut Step) {
        let Write {
            act,
            object,
            scales,
            told,
            void,
            ..
        } = write;
        if result.is_ok() {
            self.told.extend(told);
            if let Some(void) = void {
                step.output.push(Output::Warn(self.subject.clone(), vec![*void]));
            }
        }
        self.note(act, object, scales, result, step);
    }

    fn recorded(&mut self, answer: Result<Answer, CallError>, step: &mut Step) {
        let target = Target {
            kind: Kind::Workload,
            name: self.subject.key.1.clone(),
            uid: Some(self.subject.uid().to_owned()),
        };
        let result = match answer {
            Ok(Answer::Object(object)) => Ok(Effect::Object(object)),
            Ok(_) => Ok(Effect::Nothing),
            Err(error) => {
                let effect = target.after(&error);
                Err(Failure::new(error, effect))
            }
        };
        // What is not recorded is told by the decision that follows: so nothing is told twice.
        let later =
            matches!(&result, Err(failure) if matches!(failure.error, CallError::Conflict | CallError::Gone));
        let warnings = std::mem::take(&mut self.warnings);
        if !later && !warnings.is_empty() {
            step.output.push(Output::Warn(self.subject.clone(), warnings));
        }
        self.note(STATUS, String::new(), false, result, step);
    }

    fn note(
        &mut self,
        act: &'static str,
        object: String,
        scales: bool,
        result: Result<Effect, Failure>,
        step: &mut Step,
    ) {
        let class = result
            .as_ref()
            .map_or_else(|failure| failure.error.class(), |_| "done");
        step.output.push(Output::Wrote(act, class));
        let refused = match result {
            Ok(effect) => {
                self.outcome.learned = true;
                step.effects.push(effect);
                None
            }
            Err(Failure {
                error,
                effect,
                collision,
            }) => {
                self.outcome.learned |= effect.is_some();
                step.effects.extend(effect);
                self.outcome.failures += 1;
                self.outcome.collision |= collision;
                if matches!(error, CallError::Gone | CallError::Conflict | CallError::Lapsed) {
                    self.outcome.overtaken = true;
                    return;
                }
                Some(error.to_string())
            }
        };
        self.outcome.tried.push(Tried {
            act,
            object,
            scales,
            refused,
        });
    }
}
