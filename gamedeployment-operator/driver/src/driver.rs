//! Reconcile loop: at most one decision at a time for each dirty workload, and one job that carries it out.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::decide::decide;
use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::{self, Plan};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::refusals::{FIRST_PAUSE, Refusals};
use gamedeployment_core::revision::Revision;
use gamedeployment_core::view::View;
use shared_api::GameDeployment;

use crate::Key;
use crate::expectations::{self, Expectations};
use crate::index::{Index, Surroundings};
use crate::input::Input;
use crate::job::{Calls, Effect, Job, Step};
use crate::news::{News, Unreadable};
use crate::pacing::{Rest, Wakes};
use crate::reading::Reads;
use crate::request::{Answer, Call, CallError, Decided, Kind, Output, Report, Request, RequestId, Subject};
use runtime_core::clock::Now;

/// Pause before a retry that no decision depends on.
pub(crate) const LATER: Duration = Duration::from_secs(1);

/// Limits on the work in progress for one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Actions of one plan, before the next decision.
    pub plan: plan::Limits,
    /// API calls of one job.
    pub calls: Calls,
}

/// State kept for a workload between decisions. Losing it costs only extra work or a repeated message.
#[derive(Debug, Default)]
struct Memory {
    refusals: Refusals,
    /// Last error reported for an object that cannot be read.
    unreadable: Option<String>,
}

/// Main loop of the leading process.
#[derive(Debug)]
pub struct Driver {
    with_nodes: bool,
    limits: Limits,
    /// Cached view of the cluster.
    pub index: Index,
    pub(crate) expectations: Expectations,
    pub(crate) dirty: BTreeSet<Key>,
    /// Workloads whose plan is being carried out.
    jobs: BTreeMap<Key, Job>,
    pub(crate) reads: Reads,
    /// Requests that record on an unreadable object why it cannot be read.
    refusing: BTreeMap<RequestId, Key>,
    /// Workload whose job each request belongs to.
    requests: HashMap<RequestId, Key>,
    /// Times at which workloads need another decision without an event.
    pub(crate) wakes: Wakes,
    /// Large workloads that were decided recently and are throttled.
    rest: Rest,
    /// Wake-ups of throttled workloads.
    resting: Wakes,
    memories: BTreeMap<Key, Memory>,
    /// Last revision of each workload for which the API server accepted a pod in a dry run.
    accepted: BTreeMap<Key, String>,
    pub(crate) ids: RequestId,
    pub(crate) output: VecDeque<Output>,
}

impl Driver {
    /// Creates a driver with an empty cache.
    pub fn new(with_nodes: bool, limits: Limits) -> Self {
        Self {
            with_nodes,
            limits,
            index: Index::default(),
            expectations: Expectations::default(),
            dirty: BTreeSet::new(),
            jobs: BTreeMap::new(),
            reads: Reads::default(),
            refusing: BTreeMap::new(),
            requests: HashMap::new(),
            wakes: Wakes::default(),
            rest: Rest::default(),
            resting: Wakes::default(),
            memories: BTreeMap::new(),
            accepted: BTreeMap::new(),
            ids: 0,
            output: VecDeque::new(),
        }
    }

    /// Applies an input.
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::News(news) => {
                if let News::Run(event, healthy) = &news {
                    let refused = self.index.refusal(event);
                    self.output.extend(refused.map(Output::Refused));
                    self.index.see_verdict(event, *healthy, now.mono);
                }
                self.index.learn(news, &mut self.dirty, now);
            }
            Input::NodesWatched(since) => self.index.nodes.set_healthy(since),
            Input::Answered(id, answer) => self.answered(id, answer, now),
        }
    }

    fn answered(&mut self, id: RequestId, answer: Result<Answer, CallError>, now: Now) {
        if let Some(key) = self.requests.remove(&id) {
            let mut step = Step::default();
            if let Some(job) = self.jobs.get_mut(&key) {
                job.answered(id, answer, now, &mut self.ids, &mut step);
            }
            self.carry_on(&key, step, now);
        } else if let Some(key) = self.refusing.remove(&id) {
            if answer.is_err() {
                self.memories.remove(&key);
                self.wakes.set(&key, Some(now.mono + LATER));
            }
        } else {
            self.found(id, answer, now);
        }
    }

    /// Returns the next output, or `None` if nothing is due before the next input or [`Driver::deadline`].
    pub fn poll(&mut self, now: Now) -> Option<Output> {
        if let Some(output) = self.output.pop_front() {
            return Some(output);
        }
        self.dirty.extend(self.wakes.due(now.mono));
        self.dirty.extend(self.resting.due(now.mono));
        if !self.is_synced() {
            return None;
        }
        self.reread_overdue(now.mono);
        while self.output.is_empty()
            && let Some(key) = self.dirty.pop_first()
        {
            self.consider(key, now);
        }
        self.output.pop_front()
    }

    /// Time at which work is due without an input; `None` if there is none. A time in the past means now.
    pub fn deadline(&self) -> Option<Duration> {
        let synced = self.is_synced();
        if !self.output.is_empty() || synced && !self.dirty.is_empty() {
            return Some(Duration::ZERO);
        }
        let overdue = expectations::next_overdue(&self.index);
        let overdue = overdue.filter(|_| synced && !self.reads.rereads());
        let overdue = overdue.map(|at| self.reads.may_reread_at(at));
        let times = [self.wakes.next(), self.resting.next(), overdue];
        times.into_iter().flatten().filter(|_| synced).min()
    }

    /// Dumps the internal state for debugging.
    pub fn describe(&self) -> String {
        let Self {
            expectations,
            dirty,
            jobs,
            reads,
            wakes,
            resting,
            memories,
            ..
        } = self;
        format!("{expectations:?} {dirty:?} {jobs:?} {reads:?} {wakes:?} {resting:?} {memories:?}")
    }

    /// Whether every watch has listed once; no decision is made before.
    pub fn is_synced(&self) -> bool {
        self.index.is_synced(self.with_nodes)
    }

    /// Records that the last decision on a workload, begun at `begun`, took `took`.
    pub fn took(&mut self, key: &Key, begun: Duration, took: Duration) {
        self.rest.decided(key, begun, took);
    }

    /// Whether a job or a direct read is under way for a workload.
    fn is_busy(&self, key: &Key) -> bool {
        self.jobs.contains_key(key) || self.reads.are_for(key)
    }

    /// Decides on one workload. A workload with a job or a read under way is skipped and comes back when that
    /// ends.
    fn consider(&mut self, key: Key, now: Now) {
        if self.is_busy(&key) {
            return;
        }
        if let Some(until) = self.rest.until(&key, now.mono) {
            self.resting.set(&key, Some(until));
            return;
        }
        let uncertain: Vec<(Kind, String)> = self.expectations.of(&key).cloned().collect();
        if !uncertain.is_empty() {
            for (kind, name) in uncertain {
                self.read(Some(&key), kind, (key.0.clone(), name));
            }
            return;
        }
        let Some(workload) = self.index.workloads.get(&key) else {
            return self.forget(key);
        };
        match workload.object.clone() {
            Ok(object) => self.decide_on(key, object, now),
            Err(unreadable) => self.refuse(key, unreadable),
        }
    }

    fn decide_on(&mut self, key: Key, object: Arc<GameDeployment>, now: Now) {
        if let Some(memory) = self.memories.get_mut(&key) {
            memory.refusals.see(object.metadata.generation);
        }
        let mut plan = self.decide(&key, &object, now);
        if let Some(memory) = self.memories.get_mut(&key)
            && memory.refusals.forget_others(&plan)
        {
            // The reported failures no longer apply: decide again without them.
            plan = self.decide(&key, &object, now);
        }
        let report = plan.gauges.and_then(|gauges| {
            let status = plan.status.as_deref().or(object.status.as_ref())?.clone();
            let wanted = object.spec.replicas.unwrap_or(1);
            Some(Box::new(Report {
                wanted,
                status,
                gauges,
            }))
        });
        let wake = plan.wake.map(|at| now.at(at));
        let (again, remembers) = self.memories.get(&key).map_or((None, false), |memory| {
            memory.refusals.hold(&mut plan, now.mono);
            (memory.refusals.next(), memory.refusals.remembers())
        });
        self.wakes.set(&key, wake.into_iter().chain(again).min());
        let is_empty = plan.is_empty();
        if is_empty && !remembers {
            self.memories.remove(&key);
        }
        plan.limit(&self.limits.plan);
        let subject = Arc::new(Subject {
            key: key.clone(),
            object,
            decided: now,
        });
        self.output.push_back(Output::Decided(Decided {
            subject: subject.clone(),
            actions: plan.actions.len(),
            status: plan.status.is_some(),
            at_rest: is_empty && again.is_none(),
            report,
        }));
        if !is_empty {
            let runs_here = self.index.runs.count_in(&key.0);
            let job = Job::new(plan, subject, runs_here, self.limits.calls);
            self.jobs.insert(key.clone(), job);
            let mut step = Step::default();
            if let Some(job) = self.jobs.get_mut(&key) {
                job.advance(now, &mut self.ids, &mut step);
            }
            self.carry_on(&key, step, now);
        }
    }

    /// Returns the decision that would be made on a workload now.
    #[must_use]
    pub fn decide(&self, key: &Key, object: &GameDeployment, now: Now) -> Plan {
        let surroundings = Surroundings {
            index: &self.index,
            namespace: &key.0,
            now: now.mono,
        };
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let mut pods: Vec<&Pod> = self.index.pods.owned_by(uid).collect();
        pods.extend(self.index.pods.orphans_in(&key.0));
        let runs: Vec<&Run> = self.index.runs.owned_by(uid).collect();
        let revisions = &self.index.revisions;
        let revisions = revisions.owned_by(uid).chain(revisions.orphans_in(&key.0));
        let revisions: Vec<&Revision> = revisions.map(|owned| &owned.revision).collect();
        let memory = self.memories.get(key);
        let write_errors = memory.and_then(|memory| memory.refusals.write_errors());
        let view = View {
            object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: self.accepted.get(key).map(String::as_str),
            write_errors: write_errors.as_ref(),
            cluster: &surroundings,
        };
        decide(&view, now.wall)
    }

    /// Reports once why an object cannot be read.
    fn refuse(&mut self, key: Key, unreadable: Arc<Unreadable>) {
        let memory = self.memories.entry(key.clone()).or_default();
        if memory.unreadable.as_ref() == Some(&unreadable.error) {
            return;
        }
        memory.unreadable = Some(unreadable.error.clone());
        self.output
            .push_back(Output::Unreadable(key.clone(), unreadable.clone()));
        self.ids += 1;
        self.refusing.insert(self.ids, key.clone());
        self.output.push_back(Output::Send(Request {
            id: self.ids,
            subject: None,
            call: Call::Refuse(key, unreadable),
            until: None,
        }));
    }

    /// Drops all state of a deleted workload.
    fn forget(&mut self, key: Key) {
        self.expectations.forget(&key);
        self.wakes.set(&key, None);
        self.resting.set(&key, None);
        self.rest.forget(&key);
        self.accepted.remove(&key);
        self.memories.remove(&key);
        self.output.push_back(Output::Forgotten(key));
    }

    /// Applies the result of a job's step and concludes the job when it is done.
    fn carry_on(&mut self, key: &Key, step: Step, now: Now) {
        for output in &step.output {
            if let Output::Send(request) = output {
                self.requests.insert(request.id, key.clone());
            }
        }
        self.output.extend(step.output);
        for effect in step.effects {
            self.apply(key, effect, now.mono);
        }
        if self.jobs.get(key).is_some_and(Job::is_done)
            && let Some(job) = self.jobs.remove(key)
        {
            self.conclude(key, job, now.mono);
        }
    }

    /// Applies the result of a write or a direct read to the cache.
    pub(crate) fn apply(&mut self, workload: &Key, effect: Effect, now: Duration) {
        match effect {
            Effect::Object(object) => self.index.wrote(object, now),
            // The watch reports its deletion.
            Effect::Gone(Kind::Workload, ..) | Effect::Nothing => {}
            Effect::Gone(kind, name, uid) => {
                let key = (workload.0.clone(), name);
                self.index.shelf_mut(kind).removed(&key, &uid);
            }
            Effect::Accepted(revision) => drop(self.accepted.insert(workload.clone(), revision)),
            Effect::NodeNotGone(name) => self.index.nodes.restart_absence(&name, now),
            Effect::Uncertain(kind, name) => self.expectations.mark_uncertain(workload, kind, name),
        }
    }

    /// Records the outcome of a finished job and schedules the next decision.
    fn conclude(&mut self, key: &Key, job: Job, now: Duration) {
        let failed = job.outcome.failed();
        let decided = job.subject().decided.mono;
        if failed || self.memories.contains_key(key) {
            let workload = self.index.workloads.get(key);
            let generation = workload.and_then(|workload| workload.object.as_ref().ok()?.metadata.generation);
            let memory = self.memories.entry(key.clone()).or_default();
            memory.refusals.see(generation);
            memory.refusals.learn(job.outcome.tried, now);
            memory.refusals.collide(job.outcome.collision);
            if memory.refusals.is_empty() {
                self.memories.remove(key);
            }
        }
        if job.outcome.overtaken {
            // A direct read resolves a conflict, so a fixed pause is enough; only refusals and timeouts back
            // off.
            self.dirty.remove(key);
            self.wakes.set(key, Some(now + FIRST_PAUSE));
        } else {
            self.dirty.insert(key.clone());
        }
        self.output.push_back(Output::Concluded {
            key: key.clone(),
            decided,
            failed,
        });
    }
}
