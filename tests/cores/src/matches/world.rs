//! The objects of one workload, on which both cores decide. Each write succeeds at once.

use std::collections::BTreeMap;

use gamedeployment_core::cluster::{Cluster, FoundTemplate, Node};
use gamedeployment_core::decide::decide;
use gamedeployment_core::gate::{NewRun, PodRef, Run};
use gamedeployment_core::plan::{Action, GatedWrite, Plan, PlanLimits};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use gamedeployment_core::view::View;
use hook_core::decide::{DecisionInput, MeasurementKey, MeasurementOutcome};
use hook_core::judge::MeasurementResult;
use hook_core::resolve::{ResolvedRun, resolve_run};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use shared_api::names::pod as annotation;
use shared_api::{GameDeployment, HookRun, HookTemplateSpec, Phase};

use super::traffic::{Server, Traffic};
use crate::fleet::recorded;
use crate::{Outcome, manifests};

/// Time from the creation of a HookRun to its first measurement, in seconds.
const LATENCY: u32 = 1;
/// Time from one measurement to the next, in seconds.
const INTERVAL: u32 = 10;
/// Maximum number of decisions until the workload has its pods.
const DECISIONS: usize = 20;

/// Numbers of HookRuns created, of writes and of measurements.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) runs: u64,
    pub(super) writes: u64,
    pub(super) measurements: u64,
}

/// The workload with its objects.
pub(super) struct World {
    object: GameDeployment,
    template: HookTemplateSpec,
    revisions: Vec<Revision>,
    pods: BTreeMap<String, Pod>,
    runs: BTreeMap<String, StoredRun>,
    /// Spec of the HookRuns, as hook-operator resolves it. They differ only in the arguments.
    resolved: Option<ResolvedRun>,
    /// Question noted on each pod, by UID, until there is a HookRun for it.
    questions: BTreeMap<String, String>,
    begun: Timestamp,
    second: u32,
    /// Newest resource version.
    version: u64,
    /// Whether gamedeployment-operator has something new to decide on.
    changed: bool,
    wake: Option<Timestamp>,
    counts: Counts,
}

/// A HookRun.
struct StoredRun {
    object: HookRun,
    /// Its facts as gamedeployment-operator knows them.
    known: Run,
    server: usize,
    /// Second of the next measurement; `None` once there is a verdict.
    due: Option<u32>,
    measured: i64,
}

impl Cluster for World {
    fn template(&self, _: &str) -> FoundTemplate<'_> {
        FoundTemplate::Found(&self.template)
    }

    fn node(&self, _: &str) -> Node {
        Node::Ready
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn is_new_question(&self, pod: &Pod) -> bool {
        let noted = self.questions.get(&pod.uid).map(String::as_str);
        noted.is_some() && noted == pod.annotation(annotation::QUESTION)
    }

    fn has_run(&self, _: &str, name: &str) -> bool {
        self.runs.contains_key(name)
    }

    fn has_pod(&self, name: &str) -> bool {
        self.pods.contains_key(name)
    }
}

impl World {
    /// Returns a workload with this many pods in service, already reflected in the status.
    pub(super) fn launch(pods: usize, spec: Value) -> Outcome<Self> {
        let mut template = manifests::hook();
        template["metrics"][0]["interval"] = json!(format!("{INTERVAL}s"));
        let mut world = Self {
            object: serde_json::from_value(manifests::workload(pods, spec))?,
            template: serde_json::from_value(template)?,
            revisions: Vec::new(),
            pods: BTreeMap::new(),
            runs: BTreeMap::new(),
            resolved: None,
            questions: BTreeMap::new(),
            begun: "2026-01-02T00:00:00Z".parse()?,
            second: 0,
            version: 1_000_000,
            changed: true,
            wake: None,
            counts: Counts::default(),
        };
        world.decide()?;
        let revision = world.revisions.first().ok_or("no revision was recorded")?;
        let revision = revision.name.clone();
        for number in 0..pods {
            let pod: api::Pod = serde_json::from_value(manifests::pod(number, &revision))?;
            let pod = Pod::read(&pod);
            world.pods.insert(pod.name.clone(), pod);
        }
        for _ in 0..DECISIONS {
            world.decide()?;
            if !world.changed {
                world.counts = Counts::default();
                return Ok(world);
            }
        }
        Err("the workload does not settle with its pods".into())
    }

    /// Edits `spec.replicas`.
    pub(super) fn set_replicas(&mut self, replicas: usize) -> Outcome<()> {
        self.object.spec.replicas = Some(replicas.try_into()?);
        let generation = &mut self.object.metadata.generation;
        *generation = generation.map(|generation| generation + 1);
        self.changed = true;
        Ok(())
    }

    /// Measures the HookRuns that are due in this second, and decides if anything has changed. Returns the servers
    /// whose pods are deleted.
    pub(super) fn advance(&mut self, second: u32, traffic: &Traffic) -> Outcome<Vec<usize>> {
        self.second = second;
        self.measure(traffic)?;
        if self.changed || self.wake.is_some_and(|wake| wake <= self.now()) {
            return self.decide();
        }
        Ok(Vec::new())
    }

    /// Returns whether no HookRun is left and nothing remains to be done.
    pub(super) fn is_settled(&self) -> bool {
        self.runs.is_empty() && !self.changed
    }

    /// Returns what has been counted since the launch.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    fn now(&self) -> Timestamp {
        self.begun + SignedDuration::from_secs(i64::from(self.second))
    }

    fn plan(&self) -> Plan {
        let pods: Vec<&Pod> = self.pods.values().collect();
        let runs: Vec<&Run> = self.runs.values().map(|run| &run.known).collect();
        let revisions: Vec<&Revision> = self.revisions.iter().collect();
        let view = View {
            object: &self.object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: None,
            write_errors: None,
            guard_check: None,
            cluster: self,
        };
        decide(&view, self.now())
    }

    /// Decides once and carries out the plan, up to the operator's limit. Returns the servers whose pods are deleted.
    fn decide(&mut self) -> Outcome<Vec<usize>> {
        let mut plan = self.plan();
        (self.changed, self.wake) = (false, plan.wake);
        // Deletions count against no limit: none may be delayed until after the next match has started.
        let (gated, others): (Vec<Action>, Vec<Action>) = plan
            .actions
            .drain(..)
            .partition(|action| matches!(action, Action::Gated(_)));
        plan.actions = others;
        plan.limit(&PlanLimits::default());
        let mut deleted = Vec::new();
        let actions = gated.into_iter().chain(plan.actions);
        for action in actions {
            deleted.extend(self.write(action)?);
            self.count_write();
        }
        // The operator writes the status once nothing else is left to write.
        if !self.changed
            && let Some(status) = plan.status
        {
            self.object.status = Some(*status);
            self.count_write();
        }
        Ok(deleted)
    }

    fn count_write(&mut self) {
        self.counts.writes += 1;
        self.changed = true;
    }

    /// Carries out one write. Returns the server whose pod is deleted, if one is.
    fn write(&mut self, action: Action) -> Outcome<Option<usize>> {
        match action {
            Action::CreateRevision(new) => self.revisions.push(recorded(new)?),
            Action::CreateRun(new) => self.create_run(&new)?,
            Action::DeleteRun(run) => {
                let known = self.runs.remove(&run.name);
                known.ok_or("a HookRun is deleted that does not exist")?;
            }
            Action::RecordSelection(at, text, _) => {
                self.note_question(&at, &text)?;
                let notes = &mut self.pod(&at)?.annotations;
                notes.insert(annotation::DELETING.to_owned(), "true".to_owned());
                notes.insert(annotation::CHOSEN_FOR.to_owned(), text);
            }
            Action::ClearSelection(at, _) => {
                let notes = &mut self.pod(&at)?.annotations;
                notes.remove(annotation::DELETING);
                notes.remove(annotation::CHOSEN_FOR);
            }
            Action::NoteQuestion(at, question, _) => self.note_question(&at, &question.text)?,
            Action::Gated(GatedWrite::DeletePod(delete)) => {
                let server = self.pod(delete.pod())?.instance().parse()?;
                self.pods.remove(&delete.pod().name);
                return Ok(Some(server));
            }
            other => return Err(format!("unexpected action: {other:?}").into()),
        }
        Ok(None)
    }

    /// Returns the pod that a write concerns, with a new resource version.
    fn pod(&mut self, at: &PodRef) -> Outcome<&mut Pod> {
        self.version += 1;
        let pod = self.pods.get_mut(&at.name).filter(|pod| pod.uid == at.uid);
        let pod = pod.ok_or("a write concerns a pod that does not exist")?;
        pod.resource_version = self.version.to_string();
        Ok(pod)
    }

    fn note_question(&mut self, at: &PodRef, text: &str) -> Outcome<()> {
        self.questions.insert(at.uid.clone(), text.to_owned());
        let notes = &mut self.pod(at)?.annotations;
        notes.insert(annotation::QUESTION.to_owned(), text.to_owned());
        Ok(())
    }

    /// Creates a HookRun, as the API server does.
    fn create_run(&mut self, new: &NewRun) -> Outcome<()> {
        self.version += 1;
        self.counts.runs += 1;
        let mut object = new.render();
        object.metadata.uid = Some(format!("uid-{}", self.version));
        object.metadata.resource_version = Some(self.version.to_string());
        object.metadata.generation = Some(1);
        object.metadata.creation_timestamp = Some(Time(self.now()));
        if self.resolved.is_none() {
            let resolved = resolve_run(&object.spec);
            self.resolved = Some(resolved.map_err(|problems| format!("{problems:?}"))?);
        }
        let known = Run::read(&object);
        let pod = known.pod_uid.as_ref().ok_or("a HookRun has no pod")?;
        if known.question.is_some() && self.questions.get(pod) == known.question.as_ref() {
            self.questions.remove(pod);
        }
        let stored = StoredRun {
            server: known.instance.parse()?,
            due: Some(self.second + LATENCY),
            measured: 0,
            object,
            known,
        };
        match self.runs.insert(new.name().to_owned(), stored) {
            None => Ok(()),
            Some(_) => Err(format!("HookRun {} is created twice", new.name()).into()),
        }
    }

    /// Lets hook-operator measure the HookRuns that are due.
    fn measure(&mut self, traffic: &Traffic) -> Outcome<()> {
        let (now, second) = (self.now(), self.second);
        let Some(resolved) = &self.resolved else {
            return Ok(());
        };
        let is_due = |run: &&mut StoredRun| run.due.is_some_and(|due| due <= second);
        for run in self.runs.values_mut().filter(is_due) {
            run.measure(resolved, traffic.server(run.server), now)?;
            self.version += 1;
            self.counts.measurements += 1;
            run.object.metadata.resource_version = Some(self.version.to_string());
            run.due = Some(second + INTERVAL).filter(|_| !run.phase().is_final());
            let known = Run::read(&run.object);
            // Another failed measurement only prolongs the time until the HookRun counts as not measured.
            let content = |run: &Run| (run.phase, run.measured, run.flaw);
            self.changed |= content(&known) != content(&run.known);
            run.known = known;
        }
        Ok(())
    }
}

impl StoredRun {
    fn phase(&self) -> Phase {
        self.object
            .status
            .as_ref()
            .map_or_else(Phase::default, |status| status.phase)
    }

    /// Measures once, and records what hook-operator decides.
    fn measure(&mut self, resolved: &ResolvedRun, server: Server, now: Timestamp) -> Outcome<()> {
        let metric = self.object.spec.metrics.first().ok_or("the hook has no metric")?;
        let (phase, value, message) = match server {
            Server::Idle => (Phase::Successful, Some("0"), None),
            Server::Busy(_) => (
                Phase::Failed,
                Some("10"),
                Some("\"10\" does not satisfy the condition"),
            ),
            Server::Gone => (Phase::Error, None, Some("connection refused")),
        };
        let outcomes = [MeasurementOutcome {
            key: MeasurementKey {
                metric: metric.name.clone(),
                number: self.measured,
            },
            started_at: now,
            finished_at: now,
            verdict: MeasurementResult {
                phase,
                reason: None,
                value: value.map(str::to_owned),
                message: message.map(str::to_owned),
            },
        }];
        self.measured += 1;
        let status = self.object.status.clone().unwrap_or_default();
        let input = DecisionInput {
            spec: Ok(resolved),
            time_to_live: None,
            generation: self.object.metadata.generation,
            status: &status,
            taken_up_at: self.known.created.unwrap_or(now),
            in_flight: &[],
            outcomes: &outcomes,
            held_up: None,
        };
        let plan = hook_core::decide::decide(&input, now);
        let recorded = plan.record.ok_or("a measurement is not recorded")?;
        self.object.status = Some(recorded);
        Ok(())
    }
}
