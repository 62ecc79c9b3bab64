//! A rollout with hooks in a small world: its API server carries out the plans, its hooks end as a test says, and
//! its own record says which revision each pod got before which verdict.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use shared_api::game_deployment::LifecycleHookPhase;
use shared_api::names::hook_run_label::LIFECYCLE_HOOK;
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::{GameDeployment, HookRun, Phase};

use crate::decide::decide;
use crate::gate::Run;
use crate::plan::{Action, GatedWrite, Plan, Warning};
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, finish, now, object, pod, revisions, template};
use crate::template::Template;
use crate::view::View;

struct World {
    object: GameDeployment,
    revisions: Vec<Revision>,
    /// Revision of each pod.
    pods: BTreeMap<String, String>,
    /// Pods that are not available yet.
    starting: Vec<String>,
    runs: Vec<HookRun>,
    now: Timestamp,
    /// What happened, in order: `pod REVISION COUNT`, `run HOOK`, `HOOK VERDICT`.
    log: Vec<String>,
    warnings: Vec<Warning>,
    cluster: FakeCluster,
    made: usize,
    wake: Option<Timestamp>,
}

fn hook(name: &str, point: &Value) -> Value {
    let trigger = match point.as_str() {
        Some(type_ @ ("Pre" | "Post")) => json!({ "type": type_ }),
        _ => json!({ "progressAvailableParams": { "progressPoint": point } }),
    };
    json!({ "name": name, "trigger": trigger, "hook": { "templateName": "ask" } })
}

impl World {
    /// A workload of `replicas` pods at revision `old`, whose template is that of `new`.
    fn new(replicas: usize, hooks: &[Value]) -> Self {
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
    fn empty(replicas: usize, hooks: &[Value]) -> Self {
        let update = json!({ "maxUnavailable": "100%" });
        Self {
            object: object(&[
                ("/spec/replicas", json!(replicas)),
                ("/spec/updateStrategy", update),
                ("/spec/lifecycleHooks", json!(hooks)),
            ]),
            revisions: revisions(),
            pods: BTreeMap::new(),
            starting: Vec::new(),
            runs: Vec::new(),
            now: now(),
            log: Vec::new(),
            warnings: Vec::new(),
            cluster: FakeCluster::with_hook(),
            made: 0,
            wake: None,
        }
    }

    fn plan(&self) -> Plan {
        let pods: Vec<Pod> = self
            .pods
            .iter()
            .map(|(name, revision)| {
                let ready = if self.starting.contains(name) { "False" } else { "True" };
                pod(
                    name,
                    &[
                        ("/metadata/labels/controller-revision-hash", json!(revision)),
                        (
                            "/status/conditions",
                            json!([{"type": "Ready", "status": ready, "lastTransitionTime": "2024-01-01T00:01:00Z"}]),
                        ),
                    ],
                )
            })
            .collect();
        let runs: Vec<Run> = self.runs.iter().map(Run::read).collect();
        let (pods, runs): (Vec<_>, Vec<_>) = (pods.iter().collect(), runs.iter().collect());
        let revisions: Vec<_> = self.revisions.iter().collect();
        let view = View {
            object: &self.object,
            pods: &pods,
            revisions: &revisions,
            runs: &runs,
            accepted: self.revisions.last().map(|revision| revision.name.as_str()),
            write_errors: None,
            cluster: &self.cluster,
        };
        decide(&view, self.now)
    }

    /// Decides and carries out until nothing is left to do. The status is written only without other writes.
    fn settle(&mut self) {
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
        panic!("never at rest: {:#?}", self.object.status);
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::CreatePod(new) => {
                let revision = new.manifest["metadata"]["labels"]["controller-revision-hash"].clone();
                let revision = revision.as_str().unwrap().to_owned();
                self.pods.insert(new.name, revision.clone());
                let count = self.at(&revision);
                self.log.push(format!("pod {revision} {count}"));
            }
            Action::Gated(GatedWrite::DeletePod(delete)) => {
                self.pods.remove(&delete.pod().name);
            }
            Action::CreateRun(new) => {
                let mut run = new.run;
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
                let known = known.next().unwrap();
                known.spec.terminate = Some(true);
                known.metadata.generation = Some(2);
                self.log.push(format!("terminate {}", hook_of(known)));
            }
            Action::RenumberRevision(revision, number) => {
                let mut known = self.revisions.iter_mut();
                let known = known.find(|known| known.name == revision.name).unwrap();
                (known.number, known.is_reused) = (number, true);
            }
            Action::RecordSelection(..) | Action::ClearSelection(_) => {}
            other => panic!("{other:?}"),
        }
    }

    fn at(&self, revision: &str) -> usize {
        self.pods.values().filter(|known| *known == revision).count()
    }

    /// Ends the run of a hook that has not ended.
    fn end(&mut self, hook: &str, phase: Phase) {
        let now = self.now;
        let run = self
            .running_mut(hook)
            .unwrap_or_else(|| panic!("{hook} does not run"));
        let name = run.spec.metrics[0].name.clone();
        let (uid, generation) = (run.metadata.uid.clone(), run.metadata.generation);
        finish(run, &name, phase, i64::from(phase == Phase::Successful));
        (run.metadata.uid, run.metadata.generation) = (uid, generation);
        let status = run.status.get_or_insert_default();
        (status.completed_at, status.started_at) = (Some(now.into()), Some(now.into()));
        self.log.push(format!("{hook} {phase}"));
    }

    fn running_mut(&mut self, hook: &str) -> Option<&mut HookRun> {
        let ended = |run: &HookRun| run.status.as_ref().is_some_and(|status| status.phase.is_final());
        self.runs
            .iter_mut()
            .find(|run| hook_of(run) == hook && !ended(run))
    }

    fn is_running(&mut self, hook: &str) -> bool {
        self.running_mut(hook).is_some()
    }

    /// Settles, ends the run of a hook and settles again.
    fn ends(&mut self, hook: &str, phase: Phase) {
        self.settle();
        self.end(hook, phase);
        self.settle();
    }

    fn pass(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    fn phase(&self, hook: &str) -> LifecycleHookPhase {
        let status = self.object.status.as_ref().unwrap();
        let entry = status.lifecycle_hooks.iter().find(|entry| entry.name == hook);
        entry
            .unwrap_or_else(|| panic!("no entry {hook}: {status:#?}"))
            .phase
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let status = self.object.status.as_ref().unwrap();
        let found = status.conditions.iter().find(|known| known.type_ == kind);
        found.map_or_else(Default::default, |found| {
            (found.status.clone(), found.reason.clone())
        })
    }

    fn current(&self) -> Option<&str> {
        self.object.status.as_ref()?.current_revision.as_deref()
    }

    fn set_template(&mut self, name: &str, image: &str) {
        self.object.spec.template = template(image);
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

    fn request(&mut self, text: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(RETRY_REQUESTED.to_owned(), text.to_owned());
    }

    fn runs_of(&self, hook: &str) -> Vec<&HookRun> {
        self.runs.iter().filter(|run| hook_of(run) == hook).collect()
    }
}

fn hook_of(run: &HookRun) -> String {
    run.metadata.labels.as_ref().unwrap()[LIFECYCLE_HOOK].clone()
}

#[test]
fn points_open_one_after_another_and_the_rollout_ends_after_the_last_hook() {
    let hooks = [
        hook("after", &json!("Post")),
        hook("half", &json!("50%")),
        hook("two", &json!(2)),
        hook("before", &json!("Pre")),
    ];
    let mut world = World::new(6, &hooks);
    for (name, pods) in [("before", 0), ("two", 2), ("half", 3), ("after", 6)] {
        world.settle();
        assert_eq!(world.at("new"), pods, "{name}: {:?}", world.log);
        assert!(world.is_running(name), "{name}: {:?}", world.log);
        assert_eq!(world.current(), Some("old"));
        assert_eq!(world.condition("Progressing").1, "LifecycleHookRunning");
        assert_eq!(world.condition("LifecycleHooksSucceeded").0, "Unknown");
        world.end(name, Phase::Successful);
    }
    world.settle();
    assert_eq!(world.current(), Some("new"));
    assert_eq!(
        world.condition("Progressing"),
        ("True".to_owned(), "RolloutComplete".to_owned())
    );
    let succeeded = ("True".to_owned(), "LifecycleHooksSucceeded".to_owned());
    assert_eq!(world.condition("LifecycleHooksSucceeded"), succeeded);
    assert!(
        world.runs.is_empty(),
        "successful runs are not retained: {:?}",
        world.runs
    );
    // Scaling and healing start no hook.
    world.log.clear();
    world.object.spec.replicas = Some(9);
    world.settle();
    world.pods.pop_first();
    world.settle();
    assert_eq!(world.at("new"), 9);
    assert!(
        world.log.iter().all(|event| event.starts_with("pod new")),
        "{:?}",
        world.log
    );
}

#[test]
fn a_point_is_reached_when_its_pods_are_available() {
    let mut world = World::new(4, &[hook("half", &json!("50%"))]);
    world.settle();
    // Both pods are created at once in this world; one is not available.
    let mut early = World::new(4, &[hook("half", &json!("50%"))]);
    let updated = |world: &World| -> Vec<String> {
        let pods = world.pods.iter().filter(|(_, revision)| *revision == "new");
        pods.map(|(name, _)| name.clone()).collect()
    };
    while updated(&early).len() < 2 {
        let plan = early.plan();
        let writes = !plan.actions.is_empty();
        plan.actions
            .into_iter()
            .for_each(|action| early.carry_out(action));
        early.object.status = plan
            .status
            .filter(|_| !writes)
            .map(|status| *status)
            .or(early.object.status);
    }
    early.starting = vec![updated(&early)[0].clone()];
    early.settle();
    assert!(!early.is_running("half"), "{:?}", early.log);
    early.starting.clear();
    early.settle();
    assert!(
        early.is_running("half") && early.at("new") == 2,
        "{:?}",
        early.log
    );
}

#[test]
fn hooks_of_one_point_run_side_by_side_and_an_earlier_point_ends_first_on_the_same_pod() {
    let hooks = [
        hook("a", &json!("50%")),
        hook("b", &json!(1)),
        hook("c", &json!("60%")),
    ];
    let mut world = World::new(2, &hooks);
    world.settle();
    assert!(world.is_running("a") && world.is_running("b") && !world.is_running("c"));
    world.ends("b", Phase::Successful);
    assert!(!world.is_running("c") && world.at("new") == 1);
    world.ends("a", Phase::Successful);
    assert!(world.is_running("c") && world.at("new") == 2, "{:?}", world.log);
    let mut one = World::new(1, &hooks);
    one.settle();
    one.end("a", Phase::Successful);
    one.settle();
    assert!(
        one.is_running("c") && !one.is_running("b"),
        "100% is one pod: {:?}",
        one.log
    );
}

#[test]
fn the_first_rollout_runs_its_hooks_and_creates_no_pod_beyond_the_open_point() {
    let hooks = [
        hook("before", &json!("Pre")),
        hook("some", &json!(3)),
        hook("after", &json!("Post")),
    ];
    let mut world = World::empty(10, &hooks);
    world.object.spec.update_strategy.as_mut().unwrap().partition =
        Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(4));
    for (name, pods) in [("before", 0), ("some", 3), ("after", 10)] {
        world.settle();
        assert_eq!(
            (world.pods.len(), world.current()),
            (pods, None),
            "{:?}",
            world.log
        );
        assert!(world.is_running(name), "{:?}", world.log);
        world.end(name, Phase::Successful);
    }
    world.settle();
    assert_eq!(world.current(), Some("new"), "{:#?}", world.object.status);
    assert!(world.revisions.iter().any(|revision| revision.name == "old"));
}

#[test]
fn an_adopted_fleet_runs_no_hook() {
    let mut world = World::new(3, &[hook("before", &json!("Pre")), hook("after", &json!("Post"))]);
    world.object.status = None;
    for revision in world.pods.values_mut() {
        "new".clone_into(revision);
    }
    world.pods.pop_first();
    world.settle();
    assert_eq!((world.current(), world.pods.len()), (Some("new"), 3));
    assert!(
        !world.log.iter().any(|event| event.starts_with("run")),
        "{:?}",
        world.log
    );
    // Its next rollout runs them.
    world.set_template("third", "game:v3");
    world.settle();
    assert!(world.is_running("before"));
}

#[test]
fn hooks_that_are_added_to_a_finished_rollout_wait_for_the_next_one() {
    let mut world = World::new(2, &[]);
    world.settle();
    assert_eq!(world.current(), Some("new"));
    world.object.spec.lifecycle_hooks =
        serde_json::from_value(json!([hook("before", &json!("Pre"))])).unwrap();
    world.settle();
    assert!(!world.is_running("before"));
    world.set_template("third", "game:v3");
    world.settle();
    assert!(world.is_running("before") && world.at("third") == 0);
}

#[test]
fn a_failure_with_abort_ends_the_rollout_until_a_person_asks_again() {
    let mut half = hook("half", &json!("50%"));
    half["failurePolicy"] = json!("Abort");
    let mut world = World::new(4, &[half]);
    world.request("lifecycle/half=before the rollout");
    world.ends("half", Phase::Failed);
    assert_eq!(
        (world.phase("half"), world.at("new")),
        (LifecycleHookPhase::Failed, 2)
    );
    let aborted = |status: &str| (status.to_owned(), "LifecycleHookAborted".to_owned());
    assert_eq!(world.condition("Progressing"), aborted("False"));
    assert_eq!(world.condition("UpdateBlocked"), aborted("True"));
    assert_eq!(world.condition("LifecycleHooksSucceeded"), aborted("False"));
    let reasons: Vec<&str> = world
        .warnings
        .iter()
        .map(|warning| warning.reason.as_str())
        .collect();
    assert_eq!(reasons, ["LifecycleHookAborted", "LifecycleHookFailed"]);
    assert_eq!(world.runs_of("half").len(), 1, "a failed run is retained");
    // More pods are old ones, and so are successors.
    world.object.spec.replicas = Some(8);
    world.settle();
    let updated = world
        .pods
        .iter()
        .find(|(_, revision)| *revision == "new")
        .unwrap()
        .0
        .clone();
    world.pods.remove(&updated);
    world.pass(100_000);
    world.settle();
    assert_eq!((world.at("new"), world.at("old")), (1, 7));
    world.request("lifecycle/other=1");
    world.settle();
    assert_eq!(world.phase("half"), LifecycleHookPhase::Failed);
    world.request("lifecycle/half=1");
    world.settle();
    // Its point is 4 of 8 pods now.
    assert!(
        world.is_running("half") && world.at("new") == 4,
        "{:?}",
        world.log
    );
    world.ends("half", Phase::Successful);
    assert_eq!((world.at("new"), world.current()), (8, Some("new")));
}

#[test]
fn a_failure_with_ignore_lets_the_rollout_go_on_and_is_reported() {
    let mut before = hook("before", &json!("Pre"));
    before["failurePolicy"] = json!("Ignore");
    let mut world = World::new(2, &[before]);
    world.ends("before", Phase::Error);
    assert_eq!(
        (world.phase("before"), world.at("new")),
        (LifecycleHookPhase::Ignored, 2)
    );
    let ignored = ("True".to_owned(), "LifecycleHookIgnored".to_owned());
    assert_eq!(world.condition("LifecycleHooksSucceeded"), ignored);
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    assert!(world.warnings[0].message.ends_with("the rollout continues"));
}

#[test]
fn a_failure_with_retry_runs_again_with_growing_pauses() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    let mut pauses = Vec::new();
    for attempt in 1..8 {
        world.ends("before", Phase::Failed);
        assert!(!world.is_running("before"));
        assert_eq!(world.phase("before"), LifecycleHookPhase::Waiting);
        assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting");
        assert_eq!(world.warnings.len(), attempt, "one event for each attempt");
        let pause = world.wake.unwrap().duration_since(world.now).as_secs();
        pauses.push(pause);
        world.pass(pause - 1);
        world.settle();
        assert!(!world.is_running("before"));
        world.pass(1);
        world.settle();
        assert!(world.is_running("before"), "{pauses:?}");
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300]);
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
    // A request ends a pause.
    world.set_template("third", "game:v3");
    world.ends("before", Phase::Failed);
    world.request("lifecycle/before=now");
    world.settle();
    assert!(world.is_running("before"));
}

#[test]
fn a_hook_that_outlasts_its_time_is_stopped_and_aborts() {
    let mut before = hook("before", &json!("Pre"));
    before["timeoutSeconds"] = json!(60);
    let mut world = World::new(2, &[before.clone()]);
    world.settle();
    assert_eq!(
        world.wake.map(|at| at.duration_since(world.now).as_secs()),
        Some(30),
        "taken up?"
    );
    world.running_mut("before").unwrap().status =
        serde_json::from_value(json!({ "phase": "Running", "startedAt": "2024-06-01T00:00:00Z" })).unwrap();
    world.pass(59);
    world.settle();
    assert!(!world.log.contains(&"terminate before".to_owned()));
    world.pass(1);
    world.settle();
    assert!(
        world.log.contains(&"terminate before".to_owned()),
        "{:?}",
        world.log
    );
    world.ends("before", Phase::Inconclusive);
    assert_eq!(world.phase("before"), LifecycleHookPhase::Inconclusive);
    assert_eq!(world.condition("UpdateBlocked").1, "LifecycleHookAborted");
    // The time also covers the pauses between attempts.
    let mut world = World::new(2, &[before]);
    world.ends("before", Phase::Failed);
    world.pass(10);
    world.ends("before", Phase::Failed);
    world.pass(50);
    world.settle();
    assert!(!world.is_running("before"));
    assert_eq!(world.phase("before"), LifecycleHookPhase::Failed);
}

#[test]
fn another_template_stops_the_hooks_and_begins_with_its_own() {
    let hooks = [hook("before", &json!("Pre")), hook("half", &json!("50%"))];
    let mut world = World::new(4, &hooks);
    world.ends("before", Phase::Successful);
    world.settle();
    assert!(world.is_running("half"));
    world.set_template("third", "game:v3");
    world.settle();
    assert_eq!(world.log.last().unwrap(), "terminate half");
    assert_eq!(
        world.runs_of("before").len(),
        0,
        "it waits for the end of the other"
    );
    world.ends("half", Phase::Inconclusive);
    assert!(world.is_running("before"), "{:?}", world.log);
    assert_eq!((world.at("new"), world.at("third")), (2, 0));
    world.ends("before", Phase::Successful);
    world.ends("half", Phase::Successful);
    assert_eq!(world.at("third"), 4);
}

#[test]
fn the_wait_for_the_hooks_of_another_rollout_is_explained() {
    let mut world = World::new(4, &[hook("before", &json!("Pre"))]);
    world.settle();
    world.set_template("third", "game:v3");
    world.settle();
    let waiting = ("True".to_owned(), "LifecycleHookWaiting".to_owned());
    assert_eq!(world.condition("Progressing"), waiting);
    // Nobody stops it.
    let wake = world.wake.unwrap();
    assert_eq!(wake.duration_since(world.now).as_secs(), 30);
    world.pass(30);
    world.settle();
    assert_eq!(world.condition("UpdateBlocked").1, "HookNotTakenUp");
    world.ends("before", Phase::Inconclusive);
    assert!(world.is_running("before"), "that of the new revision");
    assert_eq!(world.condition("UpdateBlocked").0, "");
}

#[test]
fn a_rollback_runs_its_hooks_and_says_so_to_jobs() {
    let job = |name: &str, type_: &str| {
        json!({ "name": name, "trigger": {"type": type_}, "jobSpec": {"template": {"spec": {
            "initContainers": [{"name": "wait"}],
            "containers": [{"name": "a", "env": [{"name": "K8S_ROLLOUT_TYPE", "value": "mine"}, {"name": "B"}]}],
        }}}})
    };
    let mut world = World::new(2, &[job("before", "Pre")]);
    let variables = |world: &World| -> Vec<String> {
        let run = world.runs_of("before")[0];
        let job = &run.spec.metrics[0].provider.job.as_ref().unwrap().spec;
        let containers =
            ["initContainers", "containers"].map(|list| &job["template"]["spec"][list][0]["env"]);
        let words = |env: &Value| -> String {
            let pairs = env.as_array().unwrap().iter();
            let pairs = pairs.map(|pair| {
                let value = pair["value"].as_str().unwrap_or_default();
                format!(
                    "{}={value}",
                    pair["name"].as_str().unwrap().replace("K8S_ROLLOUT_", "")
                )
            });
            pairs.collect::<Vec<_>>().join(" ")
        };
        containers.into_iter().map(words).collect()
    };
    world.settle();
    assert_eq!(
        variables(&world),
        [
            "FROM_OBJECT=games/old TO_OBJECT=games/new TYPE=ROLLOUT",
            "FROM_OBJECT=games/old TO_OBJECT=games/new TYPE=mine B="
        ]
    );
    let owner = &world.runs_of("before")[0]
        .metadata
        .owner_references
        .as_ref()
        .unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str()),
        ("ControllerRevision", "new")
    );
    let first_name = world.runs_of("before")[0].metadata.name.clone();
    // Back to the last complete revision, before the hook ends.
    world.set_template("old", "game:v1");
    world.settle();
    world.ends("before", Phase::Inconclusive);
    world.runs.retain(|run| run.metadata.name != first_name);
    assert_eq!(
        variables(&world)[0],
        "FROM_OBJECT=games/new TO_OBJECT=games/old TYPE=ROLLBACK"
    );
    assert_eq!(world.current(), Some("old"));
    assert_eq!(world.condition("Progressing").1, "LifecycleHookRunning");
    world.ends("before", Phase::Successful);
    assert_eq!(world.condition("Progressing").1, "RolloutComplete");
    // The same revision again is another rollout: its runs have other names.
    world.set_template("new", "game:v2");
    world.settle();
    assert_ne!(world.runs_of("before")[0].metadata.name, first_name);
    let mut first = World::empty(2, &[job("before", "Pre")]);
    first.settle();
    assert_eq!(
        variables(&first)[0],
        "FROM_OBJECT= TO_OBJECT=games/new TYPE=ROLLOUT"
    );
}

#[test]
fn nothing_begins_while_no_pod_may_be_updated() {
    let hooks = [hook("before", &json!("Pre")), hook("after", &json!("Post"))];
    let mut world = World::new(4, &hooks);
    let set = |world: &mut World, paused: bool, partition: &str| {
        let update = json!({ "maxUnavailable": "100%", "paused": paused, "partition": partition });
        world.object.spec.update_strategy = serde_json::from_value(update).unwrap();
    };
    set(&mut world, true, "0");
    world.settle();
    assert!(!world.is_running("before"));
    set(&mut world, false, "4");
    world.settle();
    assert!(!world.is_running("before"));
    assert_eq!(world.condition("Progressing").1, "LifecycleHookWaiting");
    set(&mut world, false, "2");
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
    assert!(!world.is_running("after"), "it waits for the other pods");
    assert_eq!(
        world.condition("Progressing"),
        ("True".to_owned(), "LifecycleHookWaiting".to_owned())
    );
    assert_eq!(world.current(), Some("old"));
    set(&mut world, false, "0");
    world.settle();
    assert!(world.is_running("after") && world.at("new") == 4);
}

#[test]
fn only_its_own_run_as_it_was_created_passes_a_point() {
    type Change = dyn Fn(&mut HookRun);
    let changes: [(&str, &Change); 5] = [
        ("softened", &|run| {
            run.spec.metrics[0].success_condition = Some("true".to_owned());
        }),
        ("edited and restored", &|run| run.metadata.generation = Some(3)),
        ("terminated", &|run| {
            (run.spec.terminate, run.metadata.generation) = (Some(true), Some(2));
        }),
        ("of another attempt", &|run| {
            let notes = run.metadata.annotations.as_mut().unwrap();
            notes.insert(
                "tkex.tencent.com/intent".to_owned(),
                "lifecycle:new:before:2".to_owned(),
            );
        }),
        ("not measured", &|run| {
            run.status.as_mut().unwrap().metric_results.clear();
        }),
    ];
    for (case, change) in changes {
        let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
        world.settle();
        world.end("before", Phase::Successful);
        change(world.runs.iter_mut().next().unwrap());
        world.settle();
        assert_eq!(world.at("new"), 0, "{case}: {:?}", world.log);
    }
    // A run that is gone before its verdict was recorded runs again under its name.
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.settle();
    let name = world.runs[0].metadata.name.clone();
    world.runs.clear();
    world.settle();
    assert_eq!((world.at("new"), &world.runs[0].metadata.name), (0, &name));
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
}

#[test]
fn a_changed_template_does_not_stop_an_attempt_and_counts_from_the_next() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.settle();
    let metric = &mut world.cluster.template.as_mut().unwrap().metrics[0];
    metric.success_condition = Some("result == 2".to_owned());
    world.settle();
    assert_eq!(world.made, 1);
    world.ends("before", Phase::Failed);
    world.pass(10);
    world.settle();
    let run = world.running_mut("before").unwrap();
    assert_eq!(
        run.spec.metrics[0].success_condition.as_deref(),
        Some("result == 2")
    );
}

#[test]
fn a_hook_that_cannot_run_holds_the_rollout_and_names_the_reason() {
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    world.cluster.template = None;
    world.settle();
    assert_eq!(
        world.condition("UpdateBlocked"),
        ("True".to_owned(), "HookTemplateMissing".to_owned())
    );
    assert_eq!(world.condition("HooksResolved").0, "False");
    world.cluster = FakeCluster::with_hook();
    world.ends("before", Phase::Successful);
    assert_eq!(world.at("new"), 2);
}

#[test]
fn hooks_that_are_added_or_removed_in_a_rollout_count_from_then_on() {
    let mut world = World::new(4, &[hook("half", &json!("50%"))]);
    world.settle();
    assert!(world.is_running("half"));
    let hooks = json!([hook("all", &json!("75%"))]);
    world.object.spec.lifecycle_hooks = serde_json::from_value(hooks).unwrap();
    world.settle();
    assert!(
        world.log.contains(&"terminate half".to_owned()),
        "{:?}",
        world.log
    );
    assert!(!world.is_running("all"), "it waits for the end of the other");
    world.ends("half", Phase::Inconclusive);
    assert!(world.is_running("all") && world.at("new") == 3, "{:?}", world.log);
    world.object.spec.lifecycle_hooks = None;
    world.settle();
    world.end("all", Phase::Inconclusive);
    world.settle();
    assert_eq!((world.at("new"), world.current()), (4, Some("new")));
    assert!(world.object.status.as_ref().unwrap().lifecycle_hooks.is_empty());
}

#[test]
fn retained_runs_are_those_that_the_policy_names() {
    for (policy, after_failure, after_success) in [("Always", 1, 2), ("OnFailure", 1, 1), ("Never", 0, 0)] {
        let mut before = hook("before", &json!("Pre"));
        before["retainPolicy"] = json!(policy);
        let mut world = World::new(2, &[before]);
        world.ends("before", Phase::Failed);
        assert_eq!(world.runs.len(), after_failure, "{policy}");
        world.pass(10);
        world.ends("before", Phase::Successful);
        assert_eq!(world.runs.len(), after_success, "{policy}");
    }
    let mut world = World::new(2, &[hook("before", &json!("Pre"))]);
    for _ in 0..15 {
        world.ends("before", Phase::Failed);
        world.pass(300);
    }
    assert_eq!(world.runs.len(), 10, "of many failures the last ones stay");
}
