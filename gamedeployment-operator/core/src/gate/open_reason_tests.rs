//! The reason why a gate is open must hold at the moment of the decision: the verdict's age, the measured
//! spec, and whether the node is gone.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as api;
use serde_json::{Value, json};
use shared_api::reason::WorkloadReason;
use shared_api::{HookRun, Phase};

use super::tests::{One, chosen, ended, fleet, now, one};
use super::*;
use crate::cluster::FoundTemplate;
use crate::samples::{status, workload};

/// A cluster with one HookTemplate, a node, and possibly a seen verdict.
struct FakeCluster {
    one: One,
    node: Node,
    seen: Option<i64>,
}

fn around() -> FakeCluster {
    FakeCluster {
        one: one("http://one"),
        node: Node::Ready,
        seen: None,
    }
}

impl Cluster for FakeCluster {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        self.one.template(name)
    }

    fn node(&self, _: &str) -> Node {
        self.node
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn verdict_seen_for(&self, _: &Run) -> Option<SignedDuration> {
        self.seen.map(SignedDuration::from_secs)
    }

    fn is_new_question(&self, _: &Pod) -> bool {
        true
    }

    fn has_run(&self, _: &str, _: &str) -> bool {
        false
    }
}

/// Summarizes the gate state: why a run is stale, or why the gate is open.
fn stands(run: Option<&HookRun>, pod: &Pod, around: &FakeCluster, of: &Workload, intent: &Intent) -> String {
    let read = run.map(Run::read);
    let runs: Vec<&Run> = read.iter().collect();
    match Gate::new(of, around, &runs, &[], now()).assess(pod, intent, &[]) {
        GateState::Open(approval) => format!("open: {}", approval.open_reason()),
        GateState::Stale(_, stale_reason) => format!("{:?}: {stale_reason}", stale_reason.reason),
        other => format!("{:?}", other.state()),
    }
}

fn deletion(run: &HookRun, pod: &Pod, around: &FakeCluster) -> String {
    stands(Some(run), pod, around, &fleet(), &Intent::Delete)
}

fn yes(pod: &Pod) -> HookRun {
    ended(pod, &Intent::Delete, Phase::Successful, 1)
}

const OPEN: &str = "open: HookRun pre-delete-hook-old-a-ask is Successful";

#[test]
fn a_success_counts_for_thirty_seconds_from_its_arrival_or_else_its_date() {
    let pod = chosen(&[]);
    let table = [
        // Seconds since `completedAt`, seconds since its arrival was seen, whether the gate opens.
        (Some(0), None, true),
        (Some(29), None, true),
        (Some(30), None, false),
        (Some(60 * 60 * 24 * 600), None, false),
        (Some(-5), None, true),
        (Some(-6), None, false),
        (None, None, false),
        (Some(-500), Some(3), true),
        (None, Some(29), true),
        (Some(0), Some(30), false),
        // The verdict took long to arrive.
        (Some(31), Some(0), false),
    ];
    for (dated, seen, opens) in table {
        let mut run = yes(&pod);
        let dated: Option<i64> = dated;
        let completed = dated.map(|age| (now() - SignedDuration::from_secs(age)).into());
        run.status.as_mut().unwrap().completed_at = completed;
        let around = FakeCluster { seen, ..around() };
        let stands = deletion(&run, &pod, &around);
        let wanted = if opens { OPEN } else { "Some(HookVerdictExpired): " };
        assert!(stands.starts_with(wanted), "{dated:?} {seen:?}: {stands}");
    }
}

#[test]
fn a_wrong_clock_makes_no_seen_verdict_old_and_no_other_verdict_fresh() {
    let pod = chosen(&[]);
    let table = [
        // Seconds since its creation by the API server's clock, since its start and its end by
        // hook-operator's clock, and since its arrival was seen; whether the gate opens.
        (10, 508, 500, Some(3), true),
        (10, -492, -500, Some(3), true),
        // It took 8 s, so it ended 32 s ago.
        (40, 508, 500, Some(3), false),
        // It was started late: by `completedAt` it is fresh.
        (400, 12, 4, Some(3), true),
        (400, 38, 31, Some(3), false),
        // It took 2 s, so it may have ended 33 s ago; its date is that of a fast clock.
        (35, 10, 8, None, false),
        (31, 10, 8, None, true),
        (31, 35, 33, None, false),
    ];
    for (created, started, completed, seen, opens) in table {
        let ago = |age: i64| now() - SignedDuration::from_secs(age);
        let mut run = yes(&pod);
        run.metadata.creation_timestamp = Some(api::Time(ago(created)));
        let status = run.status.as_mut().unwrap();
        status.started_at = Some(ago(started).into());
        status.completed_at = Some(ago(completed).into());
        let around = FakeCluster { seen, ..around() };
        let stands = deletion(&run, &pod, &around);
        assert_eq!(
            stands == OPEN,
            opens,
            "{created} {started} {completed} {seen:?}: {stands}"
        );
    }
}

#[test]
fn the_approval_says_until_when_it_counts() {
    let pod = chosen(&[]);
    let (run, around) = (
        yes(&pod),
        FakeCluster {
            seen: Some(12),
            ..around()
        },
    );
    let (read, fleet) = (Run::read(&run), fleet());
    let runs = [&read];
    let gate_state = Gate::new(&fleet, &around, &runs, &[], now()).assess(&pod, &Intent::Delete, &[]);
    let GateState::Open(approval) = gate_state else {
        panic!("{gate_state:?}");
    };
    let OpenReason::Verdict { until, .. } = approval.open_reason() else {
        panic!("{approval:?}");
    };
    assert_eq!(*until, Some(now() + SignedDuration::from_secs(18)));
}

#[test]
fn a_pod_out_of_service_since_before_it_was_asked_keeps_its_yes() {
    let out = |since: &str, gate: Value| {
        chosen(&[
            ("/spec/readinessGates", gate),
            (
                "/status/conditions",
                json!([{ "type": "InPlaceUpdateReady", "status": "False", "lastTransitionTime": since }]),
            ),
        ])
    };
    let gate = json!([{ "conditionType": "InPlaceUpdateReady" }]);
    let table = [
        ("2024-05-01T00:00:00Z", gate.clone(), true),
        ("2024-05-01T00:02:00Z", gate, false),
        ("2024-05-01T00:00:00Z", json!([]), false),
    ];
    for (since, gate, keeps) in table {
        let pod = out(since, gate.clone());
        let mut run = yes(&pod);
        run.metadata.creation_timestamp = serde_json::from_value(json!("2024-05-01T00:01:00Z")).unwrap();
        let old = now() - SignedDuration::from_secs(300);
        run.status.as_mut().unwrap().completed_at = Some(old.into());
        let stands = deletion(&run, &pod, &around());
        assert_eq!(stands == OPEN, keeps, "{since} {gate}: {stands}");
    }
}

#[test]
fn what_is_compared_is_the_spec_that_was_measured_and_not_what_an_annotation_says_of_it() {
    let pod = chosen(&[]);
    let edited = "Some(HookRunEdited): ";
    let starts = |run: &HookRun, wanted: &str| {
        let stands = deletion(run, &pod, &around());
        assert!(stands.starts_with(wanted), "{stands}");
    };
    // A condition that is always true, with the annotations of the real one.
    let mut run = yes(&pod);
    run.spec.metrics[0].success_condition = Some("true".to_owned());
    starts(&run, edited);
    // Reverted after the measurement.
    let mut run = yes(&pod);
    run.metadata.generation = Some(3);
    starts(&run, edited);
    // Terminated early, which is not an edit, and opens nothing.
    let mut run = yes(&pod);
    (run.spec.terminate, run.metadata.generation) = (Some(true), Some(2));
    starts(&run, "Unsuccessful");
    run.metadata.generation = Some(3);
    starts(&run, edited);
    // The spec counts even without the annotation.
    let mut run = yes(&pod);
    let notes = run.metadata.annotations.as_mut().unwrap();
    notes.remove(shared_api::names::hook_run_annotation::SPEC_DIGEST);
    starts(&run, OPEN);
    // A different hook is not an edit.
    run.spec.timeout_seconds = Some(1);
    starts(&run, "None: the hook or");
}

/// A tenant lets a spec of their own be measured, and then sets the real one together with `terminate`.
#[test]
fn terminate_hides_no_edit() {
    let pod = chosen(&[]);
    // Value of `terminate`, generation, observed generation, and the result.
    let table = [
        (None, Some(1), Some(1), OPEN),
        (Some(false), Some(2), Some(1), "Some(HookRunEdited): "),
        (Some(false), Some(2), Some(2), "Some(HookRunEdited): "),
        (Some(true), Some(2), Some(1), "Unsuccessful"),
        (Some(true), Some(2), Some(2), "Unsuccessful"),
        (Some(true), Some(1), Some(1), "Unsuccessful"),
        (None, Some(2), Some(2), "Some(HookRunEdited): "),
        (None, Some(1), Some(2), "Unsuccessful"),
        (None, Some(1), None, "Unsuccessful"),
        (None, None, Some(1), "Unsuccessful"),
        (None, None, None, "Unsuccessful"),
    ];
    for (terminate, generation, observed, wanted) in table {
        let mut run = yes(&pod);
        run.spec.terminate = terminate;
        run.metadata.generation = generation;
        run.status.as_mut().unwrap().observed_generation = observed;
        let stands = deletion(&run, &pod, &around());
        let case = format!("{terminate:?} {generation:?} {observed:?}: {stands}");
        assert!(stands.starts_with(wanted), "{case}");
    }
}

/// Change of a run.
type Change = dyn Fn(&mut HookRun);

#[test]
fn a_success_that_opens_nothing_says_why() {
    let pod = chosen(&[]);
    let said = |change: &Change| {
        let mut run = yes(&pod);
        change(&mut run);
        Run::read(&run).verdict()
    };
    let table: [(&Change, &str); 3] = [
        (
            &|run| run.status.as_mut().unwrap().metric_results[0].successful = 0,
            "it has no measured success",
        ),
        (&|run| run.spec.terminate = Some(true), "it was terminated"),
        (
            &|run| run.status.as_mut().unwrap().observed_generation = None,
            "its spec changed after it was created (metadata.generation and status.observedGeneration must both be 1)",
        ),
    ];
    for (change, why) in table {
        assert_eq!(said(change), format!("is Successful but does not count: {why}"));
    }
}

#[test]
fn a_node_is_gone_when_a_healthy_watch_has_not_shown_it_for_a_minute() {
    let (pod, fleet) = (chosen(&[]), fleet());
    let absent = |seconds| Node::Absent(SignedDuration::from_secs(seconds));
    for (node, wanted) in [
        (Node::Unwatched, "NotRun"),
        (Node::Ready, "NotRun"),
        (Node::JustReady(SignedDuration::ZERO), "NotRun"),
        (Node::NotReady, "NotRun"),
        (Node::Unsure, "NotRun"),
        (absent(59), "NotRun"),
        (absent(60), "open: its node no longer exists"),
    ] {
        let around = FakeCluster { node, ..around() };
        let stands = stands(None, &pod, &around, &fleet, &Intent::Delete);
        assert_eq!(stands, wanted, "{node:?}");
        // A gone node does not confirm that the pod is healthy.
        let confirmed = workload(&[(
            "/spec/postInplaceUpdateStrategy",
            json!({ "hook": { "templateName": "ask" } }),
        )]);
        let confirm = Intent::Confirm("old".to_owned());
        assert_eq!(self::stands(None, &pod, &around, &confirmed, &confirm), "NotRun");
    }
    // Even a failed hook must not keep such a pod forever.
    let refused = ended(&pod, &Intent::Delete, Phase::Failed, 0);
    let around = FakeCluster {
        node: absent(60),
        ..around()
    };
    assert_eq!(
        deletion(&refused, &pod, &around),
        "open: its node no longer exists"
    );
    assert_eq!(
        deletion(&yes(&pod), &pod, &around),
        OPEN,
        "a verdict needs no other grounds"
    );
}

#[test]
fn never_started_is_what_a_kubelet_has_reported_of_every_container_that_lasts() {
    let waiting = |name: &str| {
        json!({ "name": name, "image": "", "imageID": "", "restartCount": 0, "ready": false,
            "state": { "waiting": { "reason": "PodInitializing" } } })
    };
    let sidecar = json!([{ "name": "proxy", "image": "proxy:v1", "restartPolicy": "Always" }]);
    let setup = json!([{ "name": "setup", "image": "setup:v1" }]);
    let running = |name: &str| {
        let mut status = status("two");
        status["name"] = json!(name);
        json!([status])
    };
    let reported = json!([waiting("game")]);
    let (free, asked) = ("open: none of its containers has started", "NotRun");
    let none = json!([]);
    let table = [
        ("bound, and nothing reported", &none, &none, &none, asked),
        ("reported as waiting", &reported, &none, &none, free),
        ("a sidecar runs", &reported, &sidecar, &running("proxy"), asked),
        (
            "a sidecar waits",
            &reported,
            &sidecar,
            &json!([waiting("proxy")]),
            free,
        ),
        ("a sidecar is not reported", &reported, &sidecar, &none, asked),
        (
            "an init container runs",
            &reported,
            &setup,
            &running("setup"),
            free,
        ),
    ];
    for (case, containers, init, inits, wanted) in table {
        let pod = chosen(&[
            ("/spec/initContainers", init.clone()),
            ("/status/phase", json!("Pending")),
            ("/status/containerStatuses", containers.clone()),
            ("/status/initContainerStatuses", inits.clone()),
        ]);
        let stands = stands(None, &pod, &around(), &fleet(), &Intent::Delete);
        assert_eq!(stands, wanted, "{case}");
    }
}

/// A kubelet that falls silent after such a report starts the containers all the same.
#[test]
fn never_started_is_believed_of_a_kubelet_that_still_reports() {
    let report = |state: &str, id: Value| {
        json!([{ "name": "game", "image": "game:v1", "imageID": "", "restartCount": 0, "ready": false,
            "containerID": id, "state": { "waiting": { "reason": state } } }])
    };
    let fields = |part: &str| json!({ "f:status": { part: { "k:{\"name\":\"game\"}": {} } } });
    let managed = |seconds: i64| {
        let at = now() - SignedDuration::from_secs(seconds);
        let entry = |manager: &str, time: Timestamp, part: &str| {
            json!({ "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
                "fieldsType": "FieldsV1", "fieldsV1": fields(part) })
        };
        // Others write conditions at any time.
        json!([
            entry("k3s", at, "f:containerStatuses"),
            entry("hookgate", now(), "f:conditions")
        ])
    };
    let creating = ("Pending", report("ContainerCreating", Value::Null));
    // Updated in place to an image that the kubelet could not pull.
    let pulling = ("Running", report("ErrImagePull", json!("one")));
    let (free, asked) = ("open: none of its containers has started", "NotRun");
    let months = 150 * 24 * 60 * 60;
    let table = [
        (Node::Ready, months, free),
        (Node::JustReady(SignedDuration::from_secs(59)), months, asked),
        (Node::JustReady(SignedDuration::from_secs(59)), 1, asked),
        (Node::NotReady, months, asked),
        (Node::NotReady, 1, asked),
        (Node::Unsure, 1, asked),
        (Node::Absent(SignedDuration::from_secs(59)), 1, asked),
        (Node::Unwatched, months, asked),
        (Node::Unwatched, 30, asked),
        (Node::Unwatched, 29, free),
        (Node::Unwatched, -5, free),
        (Node::Unwatched, -6, asked),
    ];
    for (phase, containers) in [creating, pulling] {
        for (node, seconds, wanted) in table {
            let pod = chosen(&[
                ("/status/phase", json!(phase)),
                ("/status/containerStatuses", containers.clone()),
                ("/metadata/managedFields", managed(seconds)),
            ]);
            let around = FakeCluster { node, ..around() };
            let stands = stands(None, &pod, &around, &fleet(), &Intent::Delete);
            assert_eq!(stands, wanted, "{phase} {node:?}, reported {seconds} s ago");
        }
    }
    // A hook that cannot run says why it is needed, and the way out.
    let (phase, containers) = (json!("Pending"), report("ContainerCreating", Value::Null));
    for (node, doubt) in [
        (Node::NotReady, "node node is not known to be Ready"),
        (
            Node::JustReady(SignedDuration::ZERO),
            "node node became Ready less than 60s ago",
        ),
        (Node::Unwatched, "nodes are not watched (--ignore-nodes)"),
    ] {
        let pod = chosen(&[
            ("/status/phase", phase.clone()),
            ("/status/containerStatuses", containers.clone()),
            ("/status/podIP", Value::Null),
        ]);
        let around = FakeCluster {
            one: one("http://{{args.PodIP}}"),
            node,
            seen: None,
        };
        let fleet = fleet();
        let gate_state = Gate::new(&fleet, &around, &[], &[], now()).assess(&pod, &Intent::Delete, &[]);
        let GateState::Blocked(blocker) = gate_state else {
            panic!("{gate_state:?}");
        };
        assert_eq!(blocker.reason, WorkloadReason::PodAddressMissing);
        for words in [doubt, "annotate it with tkex.tencent.com/skip-hook=uid-fleet-a"] {
            assert!(blocker.message.contains(words), "{}", blocker.message);
        }
    }
    // Nobody knows when it was reported.
    let (phase, containers) = ("Pending", report("ContainerCreating", Value::Null));
    let pod = chosen(&[
        ("/status/phase", json!(phase)),
        ("/status/containerStatuses", containers),
    ]);
    let around = FakeCluster {
        node: Node::Unwatched,
        ..around()
    };
    assert_eq!(stands(None, &pod, &around, &fleet(), &Intent::Delete), asked);
}

#[test]
fn a_sidecar_that_has_restarted_voids_a_verdict() {
    let pod = |id: &str| {
        let mut status = status(id);
        status["name"] = json!("proxy");
        chosen(&[
            (
                "/spec/initContainers",
                json!([{ "name": "proxy", "restartPolicy": "Always" }]),
            ),
            ("/status/initContainerStatuses", json!([status])),
        ])
    };
    let run = yes(&pod("two"));
    assert_eq!(deletion(&run, &pod("two"), &around()), OPEN);
    assert_eq!(
        deletion(&run, &pod("three"), &around()),
        "None: container proxy has restarted since"
    );
}

#[test]
fn an_update_that_recreates_is_asked_by_the_hook_of_updates_where_no_other_is_set() {
    let pod = chosen(&[]);
    let hook = json!({ "hook": { "templateName": "ask" } });
    let only_updates = workload(&[("/spec/preInplaceUpdateStrategy", hook.clone())]);
    let both = workload(&[
        ("/spec/preInplaceUpdateStrategy", hook.clone()),
        ("/spec/preDeleteUpdateStrategy", hook),
    ]);
    let recreate = Intent::Recreate("new".to_owned());
    assert_eq!(recreate.hook(&only_updates), Some(HookKind::PreInplace));
    assert_eq!(recreate.hook(&both), Some(HookKind::PreDelete));
    let stands = |intent: &Intent| stands(None, &pod, &around(), &only_updates, intent);
    assert_eq!(stands(&recreate), "NotRun");
    assert_eq!(stands(&Intent::Delete), "open: no hook is configured");
}

#[test]
fn an_update_that_was_begun_goes_on_unasked_only_where_the_pod_is_kept_out_of_service() {
    let hook = json!({ "hook": { "templateName": "ask" } });
    let updated = workload(&[("/spec/preInplaceUpdateStrategy", hook)]);
    let begun = |gates: Value| {
        chosen(&[
            ("/spec/readinessGates", gates),
            (
                "/status/conditions",
                json!([{ "type": "InPlaceUpdateReady", "status": "False", "message": "new",
                    "lastTransitionTime": "2024-05-01T00:00:00Z" }]),
            ),
        ])
    };
    let update = Intent::InPlace("new".to_owned());
    let gated = begun(json!([{ "conditionType": "InPlaceUpdateReady" }]));
    let stands = |pod: &Pod| stands(None, pod, &around(), &updated, &update);
    assert_eq!(
        stands(&gated),
        "open: the update has already been approved and started"
    );
    assert_eq!(stands(&begun(json!([]))), "NotRun");
}

#[test]
fn who_skipped_a_hook_and_why_is_part_of_the_grounds() {
    let note = |name: &str| format!("/metadata/annotations/{}", name.replace('/', "~1"));
    let (skip, why, by) = (
        note(names::SKIP_HOOK),
        note(names::SKIP_HOOK_REASON),
        note(names::SKIP_HOOK_BY),
    );
    let said = |over: &[(&str, Value)]| {
        let pod = crate::samples::pod("a", over);
        stands(None, &pod, &around(), &fleet(), &Intent::Delete)
    };
    let uid = json!("uid-a");
    let begin = "open: its hooks are skipped by annotation tkex.tencent.com/skip-hook;";
    assert_eq!(
        said(&[(&skip, uid.clone())]),
        format!("{begin} reason: not given; by: not given")
    );
    let why = (&*why, json!(" the event\nis over "));
    let words = [(&*skip, uid), why, (&by, json!("ann"))];
    let wanted = format!("{begin} reason: the event is over; by: ann");
    assert_eq!(said(&words), wanted);
}
