//! A pod whose hook fails holds up no other pod, also where only some pods may be updated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::plan::GatedWrite;
use crate::samples::{self, finish, object, pod};

/// A rolling update as the API server would store it. Each hook answers at once.
struct World {
    object: GameDeployment,
    pods: BTreeMap<String, Vec<(&'static str, Value)>>,
    runs: BTreeMap<String, HookRun>,
    /// Pods with players.
    busy: BTreeSet<&'static str>,
    /// Pods whose hook was run, in order.
    asked: Vec<String>,
    /// Largest number of hooks without a verdict at one time.
    at_once: usize,
    versions: usize,
    /// Whether a canary step pauses the update.
    paused: bool,
}

impl World {
    fn new(strategy: Value, busy: &[&'static str]) -> Self {
        let object = object(&[
            ("/spec/replicas", json!(10)),
            ("/spec/updateStrategy", strategy),
            (
                "/spec/preDeleteUpdateStrategy/hook",
                json!({ "templateName": "ask" }),
            ),
        ]);
        let pods = (0..10).map(|at| (format!("fleet-{at}"), Vec::new())).collect();
        Self {
            object,
            pods,
            runs: BTreeMap::new(),
            busy: busy.iter().copied().collect(),
            asked: Vec::new(),
            at_once: 0,
            versions: 0,
            paused: false,
        }
    }

    fn updated(&self) -> usize {
        let updated = self.pods.values().filter(|over| over.contains(&new()));
        updated.count()
    }

    /// Decides and carries the plan out until nothing is left to do, except for a pause of a canary step.
    fn settle(&mut self) {
        for _ in 0..100 {
            let pods: Vec<Pod> = self.pods.iter().map(|(name, over)| pod(name, over)).collect();
            let runs: Vec<Run> = self.runs.values().map(Run::read).collect();
            let mut plan = samples::decided(&self.object, &pods, &runs);
            if let Some(status) = plan.status.take() {
                self.object.status = Some(*status);
            } else if plan.actions.is_empty() {
                return;
            }
            for action in plan.actions {
                self.act(action);
            }
            if self.paused {
                return;
            }
            let open = |run: &&HookRun| run.status.as_ref().is_none_or(|status| !status.phase.is_final());
            self.at_once = self.at_once.max(self.runs.values().filter(open).count());
            self.answer();
        }
        panic!("it does not settle: {:?}", self.asked);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::CreateRun(new) => {
                self.runs.insert(new.name().to_owned(), new.render());
            }
            Action::DeleteRun(run) => drop(self.runs.remove(&run.name)),
            Action::RecordSelection(at, text, _) => {
                let mark = json!({ "io.tencent.bcs.dev/game-pod-deleting": "true", "tkex.tencent.com/chosen-for": text });
                self.pods
                    .get_mut(&at.name)
                    .unwrap()
                    .push(("/metadata/annotations", mark));
            }
            Action::ClearSelection(at, _) => self.pods.get_mut(&at.name).unwrap().clear(),
            Action::Gated(GatedWrite::DeletePod(delete)) => drop(self.pods.remove(&delete.pod().name)),
            Action::CreatePod(made) => drop(self.pods.insert(made.name, vec![new()])),
            Action::ResetRetry(_) => {
                let hook = self.object.spec.pre_delete_update_strategy.as_mut().unwrap();
                hook.retry = None;
            }
            Action::Pause => self.paused = true,
            other => panic!("{other:?}"),
        }
    }

    /// Lets every hook without a verdict answer.
    fn answer(&mut self) {
        let uids: BTreeMap<String, String> = (self.pods.iter())
            .map(|(name, over)| (pod(name, over).uid, name.clone()))
            .collect();
        for run in self.runs.values_mut().filter(|run| run.status.is_none()) {
            let of = Run::read(run).pod_uid.unwrap();
            let Some(name) = uids.get(&of) else { continue };
            self.asked.push(name.clone());
            let is_busy = self.busy.contains(name.as_str());
            let phase = if is_busy { Phase::Failed } else { Phase::Successful };
            finish(run, "healthy", phase, i64::from(!is_busy));
            self.versions += 1;
            run.metadata.uid = Some(format!("run-{}", self.versions));
            run.status.as_mut().unwrap().completed_at = Some(samples::now().into());
        }
    }
}

fn new() -> (&'static str, Value) {
    ("/metadata/labels/controller-revision-hash", json!("new"))
}

#[test]
fn a_pod_that_its_hook_holds_does_not_hold_up_a_partition() {
    for (partition, busy, updated) in [
        (9, vec!["fleet-0"], 1),
        (9, vec!["fleet-0", "fleet-1", "fleet-2"], 1),
        (7, vec!["fleet-0", "fleet-4"], 3),
        (2, vec!["fleet-0", "fleet-1", "fleet-2"], 7),
        (10, vec![], 0),
    ] {
        let strategy = json!({ "maxUnavailable": 2, "partition": partition });
        let mut world = World::new(strategy, &busy);
        world.settle();
        assert_eq!(
            world.updated(),
            updated,
            "{partition} {busy:?}: {:?}",
            world.asked
        );
        let mut asked = world.asked.clone();
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), world.asked.len(), "asked twice: {:?}", world.asked);
        assert!(world.at_once <= 2, "{}", world.at_once);
        for name in busy {
            assert!(world.pods.contains_key(name), "{name} is busy");
        }
    }
}

#[test]
fn pods_held_beside_a_partition_update_no_more_than_it_says_after_a_retry() {
    let strategy = json!({ "maxUnavailable": 2, "partition": 9 });
    let all = [
        "fleet-0", "fleet-1", "fleet-2", "fleet-3", "fleet-4", "fleet-5", "fleet-6", "fleet-7", "fleet-8",
        "fleet-9",
    ];
    let mut world = World::new(strategy, &all);
    world.settle();
    assert_eq!((world.updated(), world.asked.len()), (0, 10), "{:?}", world.asked);
    let status = world.object.status.as_ref().unwrap();
    assert_eq!(status.pre_delete_hook_condition.len(), 10, "each is named");
    world.busy.clear();
    let hook = world.object.spec.pre_delete_update_strategy.as_mut().unwrap();
    hook.retry = Some(true);
    world.settle();
    assert_eq!(world.updated(), 1);
    assert!(world.runs.is_empty(), "{:?}", world.runs.keys());
}

#[test]
fn the_failed_run_of_a_pod_stays_while_another_pod_is_asked_instead() {
    let strategy = json!({ "maxUnavailable": 2, "partition": 9 });
    let mut world = World::new(strategy.clone(), &["fleet-0", "fleet-1"]);
    // The pod that comes first is asked last.
    world.object.spec.update_strategy.as_mut().unwrap().partition =
        serde_json::from_value(json!(10)).unwrap();
    world.settle();
    for name in ["fleet-1", "fleet-0"] {
        let mut only = World::new(strategy.clone(), &[]);
        only.pods.retain(|known, _| known == name);
        only.object.spec.replicas = Some(1);
        only.object.spec.update_strategy.as_mut().unwrap().partition = None;
        for _ in 0..2 {
            let pods: Vec<Pod> = only.pods.iter().map(|(name, over)| pod(name, over)).collect();
            samples::decided(&only.object, &pods, &[])
                .actions
                .into_iter()
                .for_each(|action| only.act(action));
        }
        world.pods.extend(only.pods);
        world.runs.extend(only.runs);
    }
    assert_eq!(world.runs.len(), 2);
    let mut runs: Vec<HookRun> = world.runs.into_values().collect();
    let held = runs
        .iter_mut()
        .find(|run| Run::read(run).pod_uid.as_deref() == Some("uid-fleet-1"));
    finish(held.unwrap(), "healthy", Phase::Failed, 0);
    world.object.spec.update_strategy.as_mut().unwrap().partition = serde_json::from_value(json!(9)).unwrap();
    let runs: Vec<Run> = runs.iter().map(Run::read).collect();
    let pods: Vec<Pod> = world.pods.iter().map(|(name, over)| pod(name, over)).collect();
    let plan = samples::decided(&world.object, &pods, &runs);
    assert_eq!(plan.actions, [], "{:?}", plan.actions);
    let entries = plan.status.unwrap().pre_delete_hook_condition;
    assert_eq!(entries.len(), 2, "{entries:?}");
}

#[test]
fn a_canary_step_goes_on_past_a_pod_that_its_hook_holds() {
    let steps = json!({ "maxUnavailable": 2, "canary": { "steps": [{ "partition": 8 }, { "pause": {} }] } });
    let mut world = World::new(steps, &["fleet-0"]);
    world.settle();
    assert!(
        world.paused,
        "the step with two pods is passed: {:?}",
        world.asked
    );
    assert_eq!(world.updated(), 2);
}

#[test]
fn the_time_of_a_rollout_stands_still_while_a_hook_holds_a_pod() {
    let mut world = World::new(json!({ "timeoutSeconds": 600 }), &["fleet-3"]);
    world.settle();
    assert_eq!(world.updated(), 9);
    let status = world.object.status.as_ref().unwrap();
    let timer = status.rollout_timer.as_ref().unwrap();
    assert_eq!((timer.running_since, timer.revision.as_str()), (None, "new"));
    let message = &status
        .conditions
        .iter()
        .find(|known| known.type_ == "Progressing")
        .unwrap()
        .message;
    assert!(
        message.contains(
            "; 0s of the 600s timeout (timeoutSeconds) used; the timer is stopped during this wait"
        ),
        "{message}"
    );
}
