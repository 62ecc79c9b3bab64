//! Reconcile loop: at most one decision at a time for each dirty workload, and one job that carries it out.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::decide::decide;
use gamedeployment_core::deletion;
use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::{self, Plan};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use gamedeployment_core::view::View;
use gamedeployment_core::write_backoff::{INITIAL_BACKOFF, WriteBackoff};
use shared_api::GameDeployment;
use shared_api::reason::WorkloadReason;

use crate::NamespacedName;
use crate::direct_reads::DirectReads;
use crate::eviction_reports::{DueReports, EvictionReports};
use crate::expectations::{self, Expectations, RETRY_DELAY};
use crate::guard_checks::GuardChecks;
use crate::index::{ClusterView, Index};
use crate::input::DriverInput;
use crate::job::{CallLimits, Effect, Job, JobOutput};
use crate::pacing::{Throttle, Timers};
use crate::request::{
    ApiCall, Decided, DriverOutput, MetricsReport, ObjectKind, ReconcileTarget, Request, RequestError,
    RequestId, Response,
};
use crate::unread::Unread;
use crate::watch_event::{Event, Unreadable, WatchEvent};
use runtime_core::clock::Now;

/// Longest sleep until a time of the wall clock: the clock may be set forward, or the machine suspended.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// Limits on the work in progress for one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriverLimits {
    /// Actions of one plan, before the next decision.
    pub plan: plan::PlanLimits,
    /// API calls of one job.
    pub calls: CallLimits,
}

/// State kept for a workload between decisions. Losing it costs only extra work or a repeated message.
#[derive(Debug, Default)]
struct WorkloadState {
    backoff: WriteBackoff,
    /// Last error that was reported for an object that cannot be read, and its generation.
    unreadable: Option<(String, Option<i64>)>,
}

/// Main loop of the leading process.
#[derive(Debug)]
pub struct Driver {
    with_nodes: bool,
    awaits_evictions: bool,
    limits: DriverLimits,
    /// Cached view of the cluster.
    pub index: Index,
    pub(crate) expectations: Expectations,
    pub(crate) dirty: BTreeSet<NamespacedName>,
    /// Workload that was taken from `dirty` last.
    taken: Option<NamespacedName>,
    /// Workloads whose plan is being carried out.
    jobs: BTreeMap<NamespacedName, Job>,
    pub(crate) reads: DirectReads,
    pub(crate) guard_checks: GuardChecks,
    pub(crate) eviction_reports: EvictionReports,
    /// Requests that record on an unreadable object why it cannot be read.
    reporting_unreadable: BTreeMap<RequestId, NamespacedName>,
    /// Workload whose job each request belongs to.
    requests: HashMap<RequestId, NamespacedName>,
    /// Times at which workloads need another decision without an event.
    pub(crate) timers: Timers,
    /// Large workloads that were decided recently and are throttled.
    throttle: Throttle,
    /// Wake-ups of throttled workloads.
    throttled: Timers,
    states: BTreeMap<NamespacedName, WorkloadState>,
    /// Last revision of each workload for which the API server accepted a pod in a dry run.
    accepted: BTreeMap<NamespacedName, String>,
    pub(crate) ids: RequestId,
    pub(crate) output: VecDeque<DriverOutput>,
}

impl Driver {
    /// Creates a driver with an empty cache.
    pub fn new(with_nodes: bool, limits: DriverLimits) -> Self {
        Self {
            with_nodes,
            awaits_evictions: false,
            limits,
            index: Index::default(),
            expectations: Expectations::default(),
            dirty: BTreeSet::new(),
            taken: None,
            jobs: BTreeMap::new(),
            reads: DirectReads::default(),
            guard_checks: GuardChecks::default(),
            eviction_reports: EvictionReports::default(),
            reporting_unreadable: BTreeMap::new(),
            requests: HashMap::new(),
            timers: Timers::default(),
            throttle: Throttle::default(),
            throttled: Timers::default(),
            states: BTreeMap::new(),
            accepted: BTreeMap::new(),
            ids: 0,
            output: VecDeque::new(),
        }
    }

    /// Makes no decision before Evictions have been listed, or [`WatchEvent::EvictionsUnavailable`]: new pods must
    /// register this operator as a responder, and requests of Evictions must not seem to have ended.
    #[must_use]
    pub fn awaiting_evictions(mut self) -> Self {
        self.awaits_evictions = true;
        self
    }

    /// Applies an input.
    pub fn handle(&mut self, input: DriverInput, now: Now) {
        match input {
            DriverInput::Watch(event) => {
                if let WatchEvent::Run(event, healthy) = &event {
                    let refused = self.index.refusal(event);
                    self.output.extend(refused.map(DriverOutput::HookUnsuccessful));
                    self.report_failed_notice(event, now);
                    self.index.record_verdict(event, *healthy, now.elapsed);
                }
                if let WatchEvent::Pod(event) = &event {
                    self.report_lost_pod(event, now);
                    self.report_expired_request(event, now);
                }
                let due = DueReports::after(&event);
                self.index.apply_event(event, &mut self.dirty, now);
                self.schedule_reports(due, now);
            }
            DriverInput::NodesWatched(since) => self.index.nodes.set_healthy(since),
            DriverInput::Response(id, answer) => self.answered(id, answer, now),
        }
    }

    /// Reports a guarded pod that others removed, before the index applies the event that shows it. The guard allows the
    /// deletion of a pod whose hooks are skipped, so such a deletion causes no check of the guard.
    pub(crate) fn report_lost_pod(&mut self, event: &Event<Pod>, now: Now) {
        let Some((key, object, warning)) = self.index.lost_pod(event) else {
            return;
        };
        let target = ReconcileTarget::new(key, object, now);
        let output = if warning.reason == WorkloadReason::PodLostUngated {
            self.guard_checks.recheck(key);
            DriverOutput::PodLost(target, warning)
        } else {
            DriverOutput::EmitWarnings(target, vec![warning])
        };
        self.output.push_back(output);
    }

    /// Reports removal requests that have expired when they arrive, before the index applies the event that shows them.
    fn report_expired_request(&mut self, event: &Event<Pod>, now: Now) {
        if let Some((key, object, warning)) = self.index.expired_request(event, now.wall) {
            let target = ReconcileTarget::new(key, object, now);
            self.output
                .push_back(DriverOutput::EmitWarnings(target, vec![warning]));
        }
    }

    /// Reports a notice that ends without a success, before the index applies the event that shows it.
    fn report_failed_notice(&mut self, event: &Event<Run>, now: Now) {
        if let Some((key, object, warning)) = self.index.failed_notice(event) {
            let target = ReconcileTarget::new(key, object, now);
            self.output
                .push_back(DriverOutput::EmitWarnings(target, vec![warning]));
        }
    }

    fn answered(&mut self, id: RequestId, answer: Result<Response, RequestError>, now: Now) {
        if let Some(key) = self.requests.remove(&id) {
            let mut out = JobOutput::default();
            if let Some(job) = self.jobs.get_mut(&key) {
                job.answered(id, answer, now, &mut self.ids, &mut out);
            }
            self.apply_output(&key, out, now);
        } else if let Some(key) = self.reporting_unreadable.remove(&id) {
            if answer.is_err() {
                self.states.remove(&key);
                self.timers.set(&key, Some(now.elapsed + RETRY_DELAY));
            }
        } else if let Some(answer) = self.guard_checked(id, answer, now.elapsed)
            && let Some(answer) = self.eviction_call_finished(id, answer, now)
        {
            self.found(id, answer, now);
        }
    }

    /// Returns the next output, or `None` if nothing is due before the next input or [`Driver::deadline`].
    pub fn poll(&mut self, now: Now) -> Option<DriverOutput> {
        if let Some(output) = self.output.pop_front() {
            return Some(output);
        }
        self.dirty.extend(self.timers.due(now.elapsed));
        self.dirty.extend(self.throttled.due(now.elapsed));
        if !self.is_synced() {
            return None;
        }
        self.reread_overdue(now.elapsed);
        self.report_evictions(now);
        while self.output.is_empty()
            && let Some(key) = self.take_dirty()
        {
            self.reconcile(key, now);
        }
        self.output.pop_front()
    }

    /// Takes the next dirty workload after the one that was taken last, in the order of keys: those that become
    /// dirty again and again keep none from its turn.
    fn take_dirty(&mut self) -> Option<NamespacedName> {
        let later = self.taken.as_ref().and_then(|taken| {
            let later = (Bound::Excluded(taken), Bound::Unbounded);
            self.dirty.range::<NamespacedName, _>(later).next()
        });
        let key = later.or_else(|| self.dirty.first())?.clone();
        self.dirty.remove(&key);
        self.taken = Some(key.clone());
        Some(key)
    }

    /// Time at which work is due without an input; `None` if there is none. A time in the past means now.
    pub fn deadline(&self) -> Option<Duration> {
        let synced = self.is_synced();
        if !self.output.is_empty() || synced && !self.dirty.is_empty() {
            return Some(Duration::ZERO);
        }
        let overdue = expectations::next_overdue(&self.index);
        let overdue = overdue.filter(|_| synced && !self.reads.rereads());
        let reports = self.eviction_reports.next();
        let times = [self.timers.next(), self.throttled.next(), overdue, reports];
        times.into_iter().flatten().filter(|_| synced).min()
    }

    /// Dumps the internal state, without the cache, for debugging.
    pub fn describe(&self) -> String {
        let Self {
            expectations,
            dirty,
            jobs,
            reads,
            guard_checks,
            eviction_reports,
            timers,
            throttled,
            states,
            ..
        } = self;
        format!(
            "{expectations:?} {dirty:?} {jobs:?} {reads:?} {guard_checks:?} {eviction_reports:?} {timers:?} \
             {throttled:?} {states:?}"
        )
    }

    /// Whether every watch has listed once; no decision is made before.
    pub fn is_synced(&self) -> bool {
        self.index.is_synced(self.with_nodes) && (self.index.evictions.is_settled() || !self.awaits_evictions)
    }

    /// Records that the last decision on a workload, begun at `begun`, took `took`.
    pub fn record_duration(&mut self, key: &NamespacedName, begun: Duration, took: Duration) {
        self.throttle.decided(key, begun, took);
    }

    /// Decides on one workload. A workload with a job under way, or that waits for a read, is skipped and
    /// comes back when that ends.
    fn reconcile(&mut self, key: NamespacedName, now: Now) {
        if self.jobs.contains_key(&key) {
            return;
        }
        if let Some(until) = self.throttle.until(&key, now.elapsed) {
            self.throttled.set(&key, Some(until));
            return;
        }
        self.read_uncertain(&key, now.elapsed);
        if self.expectations.must_wait(&key) {
            self.timers.set(&key, self.expectations.next_read(&key));
            return;
        }
        let Some(workload) = self.index.workloads.get(&key) else {
            return self.forget(key);
        };
        match workload.object.clone() {
            Ok(object) => self.decide_on(key, object, now),
            Err(unreadable) => self.report_unreadable(key, unreadable),
        }
    }

    fn decide_on(&mut self, key: NamespacedName, object: Arc<GameDeployment>, now: Now) {
        if let Some(state) = self.states.get_mut(&key) {
            state.backoff.observe_generation(object.metadata.generation);
        }
        let mut plan = self.decide(&key, &object, now);
        if let Some(state) = self.states.get_mut(&key)
            && state.backoff.retain_planned(&plan, now.elapsed)
        {
            // The reported failures no longer apply: decide again without them.
            plan = self.decide(&key, &object, now);
        }
        let report = plan.gauges.and_then(|gauges| {
            let status = plan.status.as_deref().or(object.status.as_ref())?.clone();
            let wanted = if deletion::is_requested(&object) {
                0
            } else {
                object.spec.replicas.unwrap_or(1)
            };
            Some(Box::new(MetricsReport {
                wanted,
                status,
                gauges,
            }))
        });
        let wake = plan.wake.map(|at| now.at(at).min(now.elapsed + MAX_SLEEP));
        let (again, remembers) = self.states.get(&key).map_or((None, false), |state| {
            state.backoff.remove_backed_off(&mut plan, now.elapsed);
            (state.backoff.next_retry(), state.backoff.has_failures())
        });
        let unread = Unread::of(&self.expectations, &key);
        unread.remove_writes(&mut plan, (&key.1, object.metadata.uid.as_deref()));
        // A retry that is due is in the plan, or its object is unread.
        let again = again.filter(|at| *at > now.elapsed);
        let state = self.states.get(&key);
        let unnoticed = state.and_then(|state| state.backoff.next_end_of_wait(now.elapsed));
        let again = again.into_iter().chain(unnoticed);
        let again = again.chain(self.expectations.next_read(&key)).min();
        let check = self.check_guard(&key, std::mem::take(&mut plan.guard_check), now.elapsed);
        self.timers
            .set(&key, wake.into_iter().chain(again).chain(check).min());
        let is_empty = plan.is_empty();
        if is_empty && !remembers {
            self.states.remove(&key);
        }
        plan.limit(&self.limits.plan);
        let target = ReconcileTarget::new(&key, object, now);
        self.output.push_back(DriverOutput::Decided(Decided {
            target: target.clone(),
            actions: plan.actions.len(),
            status: plan.status.is_some(),
            at_rest: is_empty && again.is_none(),
            report,
        }));
        if !is_empty {
            let runs_here = self.index.runs.count_in(&key.0);
            let job = Job::new(plan, target, runs_here, self.limits.calls);
            self.jobs.insert(key.clone(), job);
            let mut out = JobOutput::default();
            if let Some(job) = self.jobs.get_mut(&key) {
                job.advance(now, &mut self.ids, &mut out);
            }
            self.apply_output(&key, out, now);
        }
    }

    /// Returns the decision that would be made on a workload now.
    #[must_use]
    pub fn decide(&self, key: &NamespacedName, object: &GameDeployment, now: Now) -> Plan {
        let state = self.states.get(key);
        let cluster_view = ClusterView {
            index: &self.index,
            namespace: &key.0,
            backoff: state.map(|state| &state.backoff),
            now,
        };
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let mut pods: Vec<&Pod> = self.index.pods.owned_by(uid).collect();
        pods.extend(self.index.pods.orphans_in(&key.0));
        let unread = Unread::of(&self.expectations, key);
        let unread_runs = unread.runs(&self.index, &key.0, uid);
        let runs = self.index.runs_of(uid);
        let runs = runs.filter(|run| !unread.contains(ObjectKind::Run, &run.name));
        let runs: Vec<&Run> = runs.chain(&unread_runs).collect();
        let revisions = &self.index.revisions;
        let revisions = revisions.owned_by(uid).chain(revisions.orphans_in(&key.0));
        let revisions: Vec<&Revision> = revisions.map(|owned| &owned.revision).collect();
        let write_errors = state.and_then(|state| state.backoff.write_errors());
        let write_errors = unread.report(write_errors);
        let view = View {
            object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: self.accepted.get(key).map(String::as_str),
            write_errors: write_errors.as_ref(),
            guard_check: self.guard_checks.last(key),
            cluster: &cluster_view,
        };
        decide(&view, now.wall)
    }

    /// Reports why an object cannot be read, once until the error changes.
    fn report_unreadable(&mut self, key: NamespacedName, unreadable: Arc<Unreadable>) {
        let state = self.states.entry(key.clone()).or_default();
        let report = Some((unreadable.error.clone(), unreadable.metadata.generation));
        if state.unreadable == report {
            return;
        }
        state.unreadable = report;
        self.output
            .push_back(DriverOutput::Unreadable(key.clone(), unreadable.clone()));
        self.ids += 1;
        self.reporting_unreadable.insert(self.ids, key.clone());
        self.output.push_back(DriverOutput::Send(Request {
            id: self.ids,
            target: None,
            call: ApiCall::ReportUnreadable(key, unreadable),
            until: None,
        }));
    }

    /// Drops all state of a deleted workload.
    fn forget(&mut self, key: NamespacedName) {
        self.expectations.forget(&key);
        self.timers.set(&key, None);
        self.throttled.set(&key, None);
        self.throttle.forget(&key);
        self.accepted.remove(&key);
        self.states.remove(&key);
        self.guard_checks.forget(&key);
        self.output.push_back(DriverOutput::WorkloadDeleted(key));
    }

    /// Applies the result of a job's step and concludes the job when it is done.
    fn apply_output(&mut self, key: &NamespacedName, out: JobOutput, now: Now) {
        for output in &out.output {
            if let DriverOutput::Send(request) = output {
                self.requests.insert(request.id, key.clone());
                self.index.record_question(request);
                self.index.record_deletion(request);
            }
        }
        self.output.extend(out.output);
        for effect in out.effects {
            self.apply(key, effect, now);
        }
        if self.jobs.get(key).is_some_and(Job::is_done)
            && let Some(job) = self.jobs.remove(key)
        {
            self.conclude(key, job, now.elapsed);
        }
    }

    /// Applies the result of a write or a direct read to the driver's state.
    pub(crate) fn apply(&mut self, workload: &NamespacedName, effect: Effect, now: Now) {
        match effect {
            Effect::Object(object) => self.index.apply_write(object, now.elapsed),
            // The watch reports its deletion.
            Effect::Gone(ObjectKind::Workload, ..) | Effect::Nothing => {}
            Effect::Gone(kind, name, uid) => {
                let key = (workload.0.clone(), name);
                self.index.object_store_mut(kind).removed(&key, &uid);
            }
            Effect::Accepted(revision) => drop(self.accepted.insert(workload.clone(), revision)),
            Effect::NodeNotGone(name) => self.index.nodes.restart_absence(&name, now.monotonic),
            Effect::NodeNotReady(name, found) => self.index.nodes.set_not_ready(&name, found),
            Effect::Uncertain(object) => {
                let key = (workload.0.clone(), object.name.clone());
                let seen = self.index.object_store(object.kind).seen_version(&key);
                self.expectations.mark_uncertain(workload, object, seen);
            }
        }
    }

    /// Records the outcome of a finished job and schedules the next decision.
    fn conclude(&mut self, key: &NamespacedName, job: Job, now: Duration) {
        let failed = job.outcome.failed();
        let decided = job.target().decided.elapsed;
        if failed || job.outcome.backs_off() || self.states.contains_key(key) {
            let workload = self.index.workloads.get(key);
            let generation = workload.and_then(|workload| workload.object.as_ref().ok()?.metadata.generation);
            let state = self.states.entry(key.clone()).or_default();
            state.backoff.observe_generation(generation);
            state.backoff.record(job.outcome.tried, now);
            state.backoff.record_collision(job.outcome.collision);
            if state.backoff.is_empty() {
                self.states.remove(key);
            }
        }
        if job.outcome.overtaken {
            // A direct read resolves a conflict, so a fixed pause is enough; only refusals and unknown
            // outcomes back off.
            self.dirty.remove(key);
            self.timers.set(key, Some(now + INITIAL_BACKOFF));
        } else {
            self.dirty.insert(key.clone());
        }
        self.output.push_back(DriverOutput::Concluded {
            key: key.clone(),
            decided,
            failed,
        });
    }
}
