//! A small world around a rollout: its API server carries out the plans, and its hooks end as a test says.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use shared_api::game_deployment::{LifecycleHookPhase, RollbackStatus, RolloutTimer};
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;
use shared_api::names::workload::{ABORT_REQUESTED, RETRY_REQUESTED};
use shared_api::{GameDeployment, HookRun, Phase};

use crate::decide::decide;
use crate::gate::Run;
use crate::plan::{Action, GatedWrite, Plan, Warning};
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, finish, now, object, pod, revisions, template};
use crate::template::Template;
use crate::view::{View, WriteErrors};

pub(super) struct World {
    pub(super) object: GameDeployment,
    pub(super) revisions: Vec<Revision>,
    /// Revision of each pod.
    pub(super) pods: BTreeMap<String, String>,
    /// Times at which pods were created.
    pub(super) created: BTreeMap<String, Timestamp>,
    /// Pods that are being deleted, with their revisions.
    pub(super) terminating: BTreeMap<String, String>,
    /// Whether deleted pods go on running for a while.
    pub(super) lingers: bool,
    /// Pods that are not available yet.
    pub(super) starting: Vec<String>,
    /// Whether new pods do not become available.
    pub(super) is_stuck: bool,
    pub(super) runs: Vec<HookRun>,
    pub(super) now: Timestamp,
    /// What happened, in order: `pod REVISION COUNT`, `run HOOK`, `HOOK VERDICT`.
    pub(super) log: Vec<String>,
    pub(super) warnings: Vec<Warning>,
    pub(super) cluster: FakeCluster,
    pub(super) made: usize,
    pub(super) wake: Option<Timestamp>,
    pub(super) write_errors: Option<WriteErrors>,
}

pub(super) fn hook(name: &str, point: &Value) -> Value {
    let trigger = match point.as_str() {
        Some(type_ @ ("Pre" | "Mid" | "Post")) => json!({ "type": type_ }),
        _ => json!({ "progressAvailableParams": { "progressPoint": point } }),
    };
    json!({ "name": name, "trigger": trigger, "hook": { "templateName": "ask" } })
}

impl World {
    /// A workload of `replicas` pods at revision `old`, whose template is that of `new`.
    pub(super) fn new(replicas: usize, hooks: &[Value]) -> Self {
        let names = (0..replicas).map(|n| (format!("fleet-old{n}"), "old".to_owned()));
        let mut world = Self::empty(replicas, hooks);
        world.pods = names.collect();
        world.object.status = serde_json::from_value(json!({
            "currentRevision": "old", "updateRevision": "old",
        }))
        .unwrap();
        world
    }

    /// A new workload.
    pub(super) fn empty(replicas: usize, hooks: &[Value]) -> Self {
        let update = json!({ "maxUnavailable": "100%" });
        Self {
            object: object(&[
                ("/spec/replicas", json!(replicas)),
                ("/spec/updateStrategy", update),
                ("/spec/lifecycleHooks", json!(hooks)),
            ]),
            revisions: revisions(),
            pods: BTreeMap::new(),
            created: BTreeMap::new(),
            terminating: BTreeMap::new(),
            lingers: false,
            starting: Vec::new(),
            is_stuck: false,
            runs: Vec::new(),
            now: now(),
            log: Vec::new(),
            warnings: Vec::new(),
            cluster: FakeCluster::with_hook(),
            made: 0,
            wake: None,
            write_errors: None,
        }
    }

    /// Lets updates delete all old pods before the first new one is created.
    pub(super) fn recreates(mut self) -> Self {
        self.object.spec.update_strategy = serde_json::from_value(json!({ "type": "Recreate" })).unwrap();
        self
    }

    fn is_recreate(&self) -> bool {
        let strategy = self.object.spec.update_strategy.as_ref();
        strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"))
    }

    pub(super) fn plan(&self) -> Plan {
        self.plan_on(&self.runs)
    }

    /// Decides on a cache that shows these HookRuns.
    pub(super) fn plan_on(&self, runs: &[HookRun]) -> Plan {
        let pods: Vec<Pod> = self
            .pods
            .iter()
            .map(|(name, revision)| {
                let created = self.created.get(name).map(ToString::to_string);
                let created = created.unwrap_or_else(|| "2024-01-01T00:00:00Z".to_owned());
                let ready = if self.starting.contains(name) { "False" } else { "True" };
                pod(
                    name,
                    &[
                        ("/metadata/labels/controller-revision-hash", json!(revision)),
                        ("/metadata/creationTimestamp", json!(created)),
                        (
                            "/status/conditions",
                            json!([{"type": "Ready", "status": ready, "lastTransitionTime": "2024-01-01T00:01:00Z"}]),
                        ),
                    ],
                )
            })
            .chain(self.terminating.iter().map(|(name, revision)| {
                let revision = ("/metadata/labels/controller-revision-hash", json!(revision));
                let deleted = ("/metadata/deletionTimestamp", json!("2024-06-01T00:00:00Z"));
                pod(name, &[revision, deleted])
            }))
            .collect();
        let runs: Vec<Run> = runs.iter().map(Run::read).collect();
        let (pods, runs): (Vec<_>, Vec<_>) = (pods.iter().collect(), runs.iter().collect());
        let revisions: Vec<_> = self.revisions.iter().collect();
        // The API server accepts the pods of any template unless a test sets errors.
        let target = Template::read(&self.object.spec.template.value());
        let target = self.revisions.iter().find(|revision| revision.template == target);
        let target = target.map(|revision| revision.name.as_str());
        let back = self.rollback().filter(|back| target == Some(&back.from_revision));
        let accepted = back.map(|back| back.to_revision.as_str()).or(target);
        let accepted = accepted.filter(|_| self.write_errors.is_none());
        let view = View {
            object: &self.object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted,
            write_errors: self.write_errors.as_ref(),
            guard_check: None,
            cluster: &self.cluster,
        };
        let mut plan = decide(&view, self.now);
        // The driver backs off from a dry run that was refused.
        let is_refused = |action: &Action| {
            matches!(action, Action::DryRunPod(..) | Action::CreateRun(_)) && self.write_errors.is_some()
        };
        plan.actions.retain(|action| !is_refused(action));
        plan
    }

    /// Decides and carries out until nothing is left to do. The status is written only without other writes.
    pub(super) fn settle(&mut self) {
        for _ in 0..200 {
            let plan = self.plan();
            self.wake = plan.wake;
            let writes = !plan.actions.is_empty();
            if !writes && plan.status.is_none() {
                return;
            }
            for action in plan.actions {
                self.carry_out(action);
            }
            if let Some(status) = plan.status.filter(|_| !writes) {
                self.object.status = Some(*status);
                self.warnings.extend(plan.warnings);
            }
        }
        panic!("never at rest: {:?} {:#?}", self.log, self.object.status);
    }

    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::CreatePod(new) => {
                let revision = new.manifest["metadata"]["labels"]["controller-revision-hash"].clone();
                let revision = revision.as_str().unwrap().to_owned();
                if self.is_stuck {
                    self.starting.push(new.name.clone());
                }
                self.created.insert(new.name.clone(), self.now);
                self.pods.insert(new.name, revision.clone());
                let mut all = self.pods.values().chain(self.terminating.values());
                if self.is_recreate() {
                    assert!(
                        all.all(|known| *known == revision),
                        "two revisions side by side: {all:?}"
                    );
                }
                let count = self.at(&revision);
                self.log.push(format!("pod {revision} {count}"));
            }
            Action::Gated(GatedWrite::DeletePod(delete)) => {
                let name = delete.pod().name.clone();
                let revision = self.pods.remove(&name);
                // A successor may get the same name.
                let named = self.object.spec.scale_strategy.as_mut();
                let named = named.and_then(|strategy| strategy.pods_to_delete.as_mut());
                if let Some(list) = named {
                    list.retain(|known| *known != name);
                }
                self.terminating
                    .extend(revision.filter(|_| self.lingers).map(|revision| (name, revision)));
            }
            Action::CreateRun(new) => {
                let mut run = new.render();
                let taken = |known: &HookRun| known.metadata.name == run.metadata.name;
                assert!(!self.runs.iter().any(taken), "{:?} exists", run.metadata.name);
                self.made += 1;
                run.metadata.uid = Some(format!("run-{}", self.made));
                run.metadata.resource_version = Some("1".to_owned());
                run.metadata.generation = Some(1);
                run.metadata.creation_timestamp =
                    serde_json::from_value(json!(self.now.to_string())).unwrap();
                self.log.push(format!("run {}", hook_of(&run)));
                self.runs.push(run);
            }
            Action::DeleteRun(run) => self
                .runs
                .retain(|known| known.metadata.uid.as_deref() != Some(run.uid.as_str())),
            Action::TerminateRun(run) => {
                let known = self.runs.iter_mut();
                let mut known = known.filter(|known| known.metadata.uid.as_deref() == Some(run.uid.as_str()));
                // It is gone.
                let Some(known) = known.next() else { return };
                if known.metadata.resource_version.as_deref() != Some(run.resource_version.as_str()) {
                    return;
                }
                known.metadata.resource_version = Some("terminated".to_owned());
                known.spec.terminate = Some(true);
                known.metadata.generation = Some(2);
                self.log.push(format!("terminate {}", hook_of(known)));
            }
            Action::RenumberRevision(revision, number) => {
                let mut known = self.revisions.iter_mut();
                let known = known.find(|known| known.name == revision.name).unwrap();
                (known.number, known.is_reused) = (number, true);
            }
            Action::Pause => {
                let strategy = self.object.spec.update_strategy.get_or_insert_default();
                strategy.paused = Some(true);
            }
            Action::DeleteRevision(revision) => self.revisions.retain(|known| known.name != revision.name),
            Action::RecordSelection(..)
            | Action::ClearSelection(..)
            | Action::SetDrainingLabels(..)
            | Action::SetGuardLabel(..)
            | Action::SetAutoscalerAnnotations(..)
            | Action::WithdrawRequests(..) => {}
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn at(&self, revision: &str) -> usize {
        self.pods.values().filter(|known| *known == revision).count()
    }

    /// Ends the run of a hook that has not ended.
    pub(super) fn end(&mut self, hook: &str, phase: Phase) {
        let now = self.now;
        let run = self
            .running_mut(hook)
            .unwrap_or_else(|| panic!("{hook} does not run"));
        let name = run.spec.metrics[0].name.clone();
        let (uid, generation) = (run.metadata.uid.clone(), run.metadata.generation);
        finish(run, &name, phase, i64::from(phase == Phase::Successful));
        (run.metadata.uid, run.metadata.generation) = (uid, generation);
        run.metadata.resource_version = Some("ended".to_owned());
        let status = run.status.get_or_insert_default();
        (status.completed_at, status.started_at) = (Some(now.into()), Some(now.into()));
        self.log.push(format!("{hook} {phase}"));
    }

    pub(super) fn running_mut(&mut self, hook: &str) -> Option<&mut HookRun> {
        let ended = |run: &HookRun| run.status.as_ref().is_some_and(|status| status.phase.is_final());
        self.runs
            .iter_mut()
            .find(|run| hook_of(run) == hook && !ended(run))
    }

    pub(super) fn is_running(&mut self, hook: &str) -> bool {
        self.running_mut(hook).is_some()
    }

    /// Settles, ends the run of a hook and settles again.
    pub(super) fn ends(&mut self, hook: &str, phase: Phase) {
        self.settle();
        self.end(hook, phase);
        self.settle();
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub(super) fn phase(&self, hook: &str) -> LifecycleHookPhase {
        let status = self.object.status.as_ref().unwrap();
        let entry = status.lifecycle_hooks.iter().find(|entry| entry.name == hook);
        entry
            .unwrap_or_else(|| panic!("no entry {hook}: {status:#?}"))
            .phase
    }

    pub(super) fn condition(&self, kind: &str) -> (String, String) {
        let status = self.object.status.as_ref().unwrap();
        let found = status.conditions.iter().find(|known| known.type_ == kind);
        found.map_or_else(Default::default, |found| {
            (found.status.clone(), found.reason.clone())
        })
    }

    pub(super) fn message(&self, kind: &str) -> &str {
        let status = self.object.status.as_ref().unwrap();
        let found = status.conditions.iter().find(|known| known.type_ == kind);
        found.map_or("", |found| found.message.as_str())
    }

    pub(super) fn recreating(&self) -> Option<&str> {
        self.object.status.as_ref()?.recreating_revision.as_deref()
    }

    pub(super) fn rollback(&self) -> Option<&RollbackStatus> {
        self.object.status.as_ref()?.rollback.as_ref()
    }

    pub(super) fn current(&self) -> Option<&str> {
        self.object.status.as_ref()?.current_revision.as_deref()
    }

    pub(super) fn set_template(&mut self, name: &str, image: &str) {
        self.object.spec.template = template(image).into();
        if self.revisions.iter().all(|revision| revision.name != name) {
            let number = self
                .revisions
                .iter()
                .map(|revision| revision.number)
                .max()
                .unwrap();
            self.revisions.push(Revision {
                name: name.to_owned(),
                uid: format!("uid-{name}"),
                resource_version: "1".to_owned(),
                number: number + 1,
                is_reused: false,
                template: Template::read(&template(image)),
                orphan: None,
            });
        }
    }

    pub(super) fn request(&mut self, text: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(RETRY_REQUESTED.to_owned(), text.to_owned());
    }

    /// Limits the time of rollouts.
    pub(super) fn limit_time(&mut self, seconds: Option<i32>) {
        let strategy = self.object.spec.update_strategy.get_or_insert_default();
        strategy.timeout_seconds = seconds;
    }

    pub(super) fn timer(&self) -> Option<&RolloutTimer> {
        self.object.status.as_ref()?.rollout_timer.as_ref()
    }

    pub(super) fn request_abort(&mut self, text: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(ABORT_REQUESTED.to_owned(), text.to_owned());
    }

    pub(super) fn runs_of(&self, hook: &str) -> Vec<&HookRun> {
        self.runs.iter().filter(|run| hook_of(run) == hook).collect()
    }
}

pub(super) fn hook_of(run: &HookRun) -> String {
    let labels = run.metadata.labels.as_ref().unwrap();
    labels
        .get(LIFECYCLE_HOOK)
        .cloned()
        .unwrap_or_else(|| run.metadata.name.clone().unwrap())
}
