//! A verdict counts for exactly one pod, intent and hook.

use serde_json::{Value, json};
use shared_api::{HookRun, HookTemplateSpec, Phase};

use super::*;
use crate::cluster::FoundTemplate;
use crate::samples::{finish, pod, status, workload};

/// A cluster with one HookTemplate.
pub(super) struct One(HookTemplateSpec);

impl Cluster for One {
    fn template(&self, _: &str) -> FoundTemplate<'_> {
        FoundTemplate::Found(&self.0)
    }

    fn node(&self, _: &str) -> Node {
        Node::Ready
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn is_new_question(&self, _: &Pod) -> bool {
        true
    }

    fn has_run(&self, _: &str, _: &str) -> bool {
        false
    }
}

pub(super) fn one(url: &str) -> One {
    let spec = json!({"metrics": [{"name": "players", "provider": {"web": {"url": url}}}]});
    One(serde_json::from_value(spec).unwrap())
}

pub(super) fn now() -> Timestamp {
    "2024-05-01T00:10:00Z".parse().unwrap()
}

const MARK: &str = "/metadata/annotations/io.tencent.bcs.dev~1game-pod-deleting";
const CHOSEN: &str = "/metadata/annotations/tkex.tencent.com~1chosen-for";
const REVISION: &str = "/metadata/labels/controller-revision-hash";

/// A pod selected for deletion, with these overrides.
pub(super) fn chosen(over: &[(&str, Value)]) -> Pod {
    let mut all = vec![
        (MARK, json!("true")),
        (CHOSEN, json!("delete@2024-05-01T00:00:00Z")),
    ];
    all.extend_from_slice(over);
    pod("fleet-a", &all)
}

pub(super) fn fleet() -> Workload {
    let hook = json!({"hook": {"templateName": "ask"}});
    workload(&[("/spec/preDeleteUpdateStrategy", hook)])
}

/// Returns a finished run for a pod.
pub(super) fn ended(pod: &Pod, intent: &Intent, phase: Phase, successful: i64) -> HookRun {
    let (fleet, around) = (fleet(), one("http://one"));
    let GateState::NotRun(hook_request) =
        Gate::new(&fleet, &around, &[], &[], now()).assess(pod, intent, &[])
    else {
        panic!("nobody has asked");
    };
    let mut run = hook_request.new_run().render();
    finish(&mut run, "players", phase, successful);
    run.status.get_or_insert_default().completed_at = Some(now().into());
    run
}

fn state(run: &HookRun, pod: &Pod, intent: &Intent, around: &One) -> GateStateKind {
    let (fleet, read) = (fleet(), Run::read(run));
    Gate::new(&fleet, around, &[&read], &[], now())
        .assess(pod, intent, &[])
        .state()
}

#[test]
fn only_a_measured_success_opens_the_gate() {
    let (pod, around) = (chosen(&[]), one("http://one"));
    let table = [
        (Phase::Successful, 1, GateStateKind::Open),
        (Phase::Successful, 0, GateStateKind::Unsuccessful),
        (Phase::Failed, 1, GateStateKind::Unsuccessful),
        (Phase::Error, 1, GateStateKind::Unsuccessful),
        (Phase::Inconclusive, 1, GateStateKind::Unsuccessful),
        (Phase::Running, 1, GateStateKind::Running),
        (Phase::Pending, 0, GateStateKind::Running),
    ];
    for (phase, successful, wanted) in table {
        let run = ended(&pod, &Intent::Delete, phase, successful);
        assert_eq!(state(&run, &pod, &Intent::Delete, &around), wanted, "{phase}");
    }
}

#[test]
fn a_verdict_is_void_where_one_thing_of_the_pod_is_another() {
    let run = ended(&chosen(&[]), &Intent::Delete, Phase::Successful, 1);
    let around = one("http://one");
    let still = [("/metadata/resourceVersion", json!("9"))];
    assert_eq!(
        state(&run, &chosen(&still), &Intent::Delete, &around),
        GateStateKind::Open
    );
    let table = [
        ("/metadata/uid", json!("uid-other")),
        (MARK, json!("false")),
        (CHOSEN, json!("delete@2024-05-02T00:00:00Z")),
        (CHOSEN, json!("")),
        ("/status/podIP", json!("10.1.0.2")),
        ("/status/containerStatuses", json!([status("two")])),
    ];
    for (path, value) in table {
        let other = chosen(&[(path, value.clone())]);
        assert_eq!(
            state(&run, &other, &Intent::Delete, &around),
            GateStateKind::Stale,
            "{path} {value}"
        );
    }
    // The name of its run is another one.
    let updated = chosen(&[(REVISION, json!("new"))]);
    let unasked = state(&run, &updated, &Intent::Delete, &around);
    assert_eq!(unasked, GateStateKind::NotRun);
}

/// Anyone who may create HookRuns can copy labels and annotations.
#[test]
fn a_run_under_another_name_opens_nothing() {
    let (pod, around) = (chosen(&[]), one("http://one"));
    let mut run = ended(&pod, &Intent::Delete, Phase::Successful, 1);
    assert_eq!(state(&run, &pod, &Intent::Delete, &around), GateStateKind::Open);
    run.metadata.name = Some("by-hand".to_owned());
    assert_eq!(state(&run, &pod, &Intent::Delete, &around), GateStateKind::NotRun);
}

#[test]
fn a_verdict_is_void_for_another_intent_another_hook_and_while_it_is_being_removed() {
    let pod = chosen(&[]);
    let mut run = ended(&pod, &Intent::Delete, Phase::Successful, 1);
    let around = one("http://one");
    for to in ["old", "new"] {
        assert_eq!(
            state(&run, &pod, &Intent::Recreate(to.to_owned()), &around),
            GateStateKind::Stale
        );
        assert_eq!(
            state(&run, &pod, &Intent::InPlace(to.to_owned()), &around),
            GateStateKind::Stale
        );
    }
    assert_eq!(
        state(&run, &pod, &Intent::Delete, &one("http://two")),
        GateStateKind::Stale
    );
    run.metadata.deletion_timestamp = serde_json::from_value(json!("2024-05-01T00:00:00Z")).unwrap();
    assert_eq!(state(&run, &pod, &Intent::Delete, &around), GateStateKind::Stale);
}

/// Users and the original operator may give two pods the same instance id.
#[test]
fn pods_of_one_instance_id_have_a_run_each() {
    let (fleet, around) = (fleet(), one("http://one"));
    let (first, twin) = (chosen(&[]), chosen(&[("/metadata/uid", json!("twin"))]));
    let pods = [&first, &twin];
    let refused = Run::read(&ended(&first, &Intent::Delete, Phase::Failed, 0));
    let runs = [&refused];
    let gate = Gate::new(&fleet, &around, &runs, &pods, now());
    assert_eq!(
        gate.assess(&first, &Intent::Delete, &[]).state(),
        GateStateKind::Unsuccessful
    );
    let GateState::NotRun(hook_request) = gate.assess(&twin, &Intent::Delete, &[]) else {
        panic!("the twin waits for a run that is not its own");
    };
    assert!(hook_request.name.starts_with(&refused.name) && hook_request.name != refused.name);
    let mut second = hook_request.new_run().render();
    second.metadata.uid = Some("run-2".to_owned());
    let second = Run::read(&second);
    for runs in [[&refused, &second], [&second, &refused]] {
        let gate = Gate::new(&fleet, &around, &runs, &pods, now());
        let states = pods.map(|pod| gate.assess(pod, &Intent::Delete, &[]).state());
        assert_eq!(states, [GateStateKind::Unsuccessful, GateStateKind::Running]);
    }
    // The twin's run keeps its unique name once the other run is gone.
    let runs = [&second];
    let gate = Gate::new(&fleet, &around, &runs, &pods, now());
    let states = pods.map(|pod| gate.assess(pod, &Intent::Delete, &[]).state());
    assert_eq!(states, [GateStateKind::NotRun, GateStateKind::Running]);
    // Once the first pod is gone, its run blocks the name: it is deleted, and the twin keeps its own run.
    let (left, runs) = ([&twin], [&refused]);
    let gate = Gate::new(&fleet, &around, &runs, &left, now());
    assert_eq!(
        gate.assess(&twin, &Intent::Delete, &[]).state(),
        GateStateKind::Stale
    );
}

/// No hook can run before the finalizer is removed, because a run of the same name cannot be created.
#[test]
fn a_run_that_a_finalizer_keeps_opens_nothing_and_stays() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    let (pod, around, fleet) = (chosen(&[]), one("http://one"), fleet());
    let mut run = ended(&pod, &Intent::Delete, Phase::Successful, 1);
    run.metadata.deletion_timestamp = Some(Time(now()));
    let read = Run::read(&run);
    let runs = [&read];
    let gate_state = Gate::new(&fleet, &around, &runs, &[], now()).assess(&pod, &Intent::Delete, &[]);
    let GateState::Stale(_, stale_reason) = gate_state else {
        panic!("{gate_state:?}");
    };
    assert!(
        stale_reason.is_stuck() && stale_reason.why.contains("stuck terminating"),
        "{stale_reason}"
    );
}
