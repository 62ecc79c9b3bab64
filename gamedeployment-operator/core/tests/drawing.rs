//! Drives the gate through every event that can affect a pod, its hook and its run, one at a time: it takes
//! exactly the transitions of the diagram.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use gamedeployment_core::cluster::{Cluster, FoundTemplate, Node};
use gamedeployment_core::gate::transitions::TRANSITIONS;
use gamedeployment_core::gate::{Gate, GateState, GateStateKind, Intent, NODE_GONE_AFTER, Run};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::Workload;
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::json;
use shared_api::hook_run::MetricResult;
use shared_api::{HookRun, HookTemplateSpec, Phase};

/// Inputs of the gate for one pod.
struct Situation {
    workload: Workload,
    without_hook: Workload,
    templates: [HookTemplateSpec; 2],
    /// Index of the existing template, if any.
    template: Option<usize>,
    hook: bool,
    name_taken: bool,
    node_gone: bool,
    pod: Pod,
    intent: Intent,
    run: Option<HookRun>,
    now: Timestamp,
    counter: u32,
}

fn workload(hook: bool) -> Workload {
    let mut object = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": {"name": "fleet", "namespace": "games", "uid": "gd-uid"},
        "spec": {
            "selector": {"matchLabels": {"app": "game"}},
            "template": {"metadata": {"labels": {"app": "game"}}, "spec": {"containers": [{"name": "game"}]}},
        },
    });
    if hook {
        object["spec"]["preDeleteUpdateStrategy"] = json!({"hook": {"templateName": "ask"}});
    }
    Workload::read(&serde_json::from_value(object).unwrap()).unwrap()
}

fn template(url: &str) -> HookTemplateSpec {
    serde_json::from_value(json!({"metrics": [{"name": "players", "provider": {"web": {"url": url}}}]}))
        .unwrap()
}

/// A running pod that was chosen for deletion.
fn pod() -> Pod {
    let object = json!({
        "metadata": {
            "name": "fleet-a", "uid": "uid-1",
            "labels": {"controller-revision-hash": "old"},
            "annotations": {"io.tencent.bcs.dev/game-pod-deleting": "true", "tkex.tencent.com/chosen-for": "delete@0"},
        },
        "spec": {"nodeName": "node", "containers": [{"name": "game", "image": "game:v1"}]},
        "status": {"phase": "Running", "podIP": "10.1.0.1", "containerStatuses": [{
            "name": "game", "image": "game:v1", "imageID": "1", "containerID": "c0", "restartCount": 0, "ready": true,
            "state": {"running": {}},
        }]},
    });
    Pod::read(&serde_json::from_value(object).unwrap())
}

impl Cluster for Situation {
    fn template(&self, _: &str) -> FoundTemplate<'_> {
        match self.template {
            Some(at) => FoundTemplate::Found(&self.templates[at]),
            None => FoundTemplate::Missing,
        }
    }

    fn node(&self, _: &str) -> Node {
        if self.node_gone {
            Node::Absent(NODE_GONE_AFTER)
        } else {
            Node::Ready
        }
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn is_new_question(&self, _: &Pod) -> bool {
        true
    }

    fn has_run(&self, _: &str, _: &str) -> bool {
        self.name_taken || self.run.is_some()
    }
}

const ENDS: [(Phase, bool); 6] = [
    (Phase::Running, false),
    (Phase::Failed, true),
    (Phase::Error, true),
    (Phase::Inconclusive, true),
    (Phase::Successful, false),
    (Phase::Successful, true),
];

impl Situation {
    fn new() -> Self {
        Self {
            workload: workload(true),
            without_hook: workload(false),
            templates: [template("http://one"), template("http://two")],
            template: Some(0),
            hook: true,
            name_taken: false,
            node_gone: false,
            pod: pod(),
            intent: Intent::Delete,
            run: None,
            now: Timestamp::from_second(1_700_000_000).unwrap(),
            counter: 0,
        }
    }

    /// Returns the gate's state and the run that would be created now.
    fn assess(&self) -> (GateStateKind, Option<HookRun>) {
        let read = self.run.as_ref().map(Run::read);
        let runs: Vec<&Run> = read.iter().collect();
        let workload = if self.hook {
            &self.workload
        } else {
            &self.without_hook
        };
        let gate_state = Gate::new(workload, self, &runs, &[], self.now).assess(&self.pod, &self.intent, &[]);
        let state = gate_state.state();
        match gate_state {
            GateState::NotRun(question) => (state, Some(question.new_run().render())),
            _ => (state, None),
        }
    }

    fn choose(&mut self, intent: Intent) {
        self.counter += 1;
        let text = format!("{}@{}", intent.text(), self.counter);
        self.pod
            .annotations
            .insert("tkex.tencent.com/chosen-for".to_owned(), text);
        self.intent = intent;
    }

    /// Applies one event.
    fn happen(&mut self, event: u8) {
        let at = usize::from(event / 16);
        match event % 16 {
            // The operator creates a run or deletes an unused one; a user deletes a run.
            0..=2 => {
                if let (_, Some(mut run)) = self.assess() {
                    self.counter += 1;
                    run.metadata.uid = Some(format!("run-{}", self.counter));
                    self.run = Some(run);
                }
            }
            3 => self.run = None,
            4..=6 => {
                if let Some(run) = &mut self.run {
                    end(run, ENDS[at % ENDS.len()], self.now);
                }
            }
            7 => self.template = [None, Some(0), Some(1)][at % 3],
            8 => self.hook = !self.hook,
            9 => {
                let key = "tkex.tencent.com/skip-hook".to_owned();
                if self.pod.annotations.remove(&key).is_none() {
                    self.pod.annotations.insert(key, self.pod.uid.clone());
                }
            }
            10 => self.name_taken = !self.name_taken,
            11 => self.choose([Intent::Delete, Intent::Recreate("new".to_owned())][at % 2].clone()),
            12 => {
                self.counter += 1;
                self.pod.containers[0].container_id = format!("c{}", self.counter);
            }
            13 if at < 2 => self.pod.terminating = true,
            13 => self.now += SignedDuration::from_secs(10),
            14 if at > 12 => {
                if let Some(run) = &mut self.run {
                    run.metadata.generation = Some(2);
                }
            }
            14 if at < 2 => self.node_gone = true,
            15 => {
                if let Some(run) = &mut self.run {
                    run.metadata.deletion_timestamp =
                        serde_json::from_str("\"2024-01-01T00:00:00Z\"").unwrap();
                }
            }
            _ => {}
        }
    }
}

/// Starts or finishes a run; a finished run does not change.
fn end(run: &mut HookRun, (phase, measured): (Phase, bool), now: Timestamp) {
    let status = run.status.get_or_insert_default();
    if status.phase.is_final() {
        return;
    }
    status.phase = phase;
    status.completed_at = Some(now.into());
    status.metric_results = vec![MetricResult {
        name: "players".to_owned(),
        phase,
        successful: i64::from(measured),
        ..MetricResult::default()
    }];
}

/// Mermaid ends a label at either character.
#[test]
fn no_cause_has_a_colon_or_a_semicolon() {
    for (_, cause, _) in TRANSITIONS {
        assert!(!cause.contains([':', ';']), "{cause}");
    }
}

#[test]
fn questions_go_the_ways_of_the_drawing_and_no_other() {
    let taken: RefCell<BTreeMap<(GateStateKind, GateStateKind), Vec<u8>>> = RefCell::default();
    let config = ProptestConfig {
        cases: 10_000,
        ..ProptestConfig::default()
    };
    // Deterministic: whether every transition is taken must not depend on chance.
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let played = runner.run(&vec(any::<u8>(), 1..60), |events| {
        let mut situation = Situation::new();
        let mut before = situation.assess().0;
        for (at, event) in events.iter().enumerate() {
            situation.happen(*event);
            let (after, _) = situation.assess();
            if before != after {
                let mut taken = taken.borrow_mut();
                taken
                    .entry((before, after))
                    .or_insert_with(|| events[..=at].to_vec());
            }
            before = after;
        }
        Ok(())
    });
    played.unwrap();
    let taken = taken.into_inner();
    let drawn: BTreeSet<(GateStateKind, GateStateKind)> =
        TRANSITIONS.iter().map(|(from, _, to)| (*from, *to)).collect();
    let not_taken: Vec<_> = drawn.iter().filter(|way| !taken.contains_key(way)).collect();
    let not_drawn: Vec<_> = taken.iter().filter(|(way, _)| !drawn.contains(way)).collect();
    assert!(not_taken.is_empty(), "drawn, and never taken: {not_taken:?}");
    assert!(not_drawn.is_empty(), "taken, and not drawn: {not_drawn:#?}");
}
