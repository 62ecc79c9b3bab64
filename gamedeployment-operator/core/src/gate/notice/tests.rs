use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use shared_api::{GameDeployment, HookRun, HookTemplateSpec, Phase};

use super::*;
use crate::cluster::RejectedNotice;
use crate::decide::decide;
use crate::gate::{GateStateKind, Intent};
use crate::hook_kind::HookKind;
use crate::plan::{Action, Plan};
use crate::revision::Revision;
use crate::samples::{self, FakeCluster, finish, keep, names, now, object, pod, pod_to_delete, revisions};
use crate::view::View;

const MARK: &str = "/metadata/annotations/io.tencent.bcs.dev~1game-pod-deleting";
const CHOSEN: &str = "/metadata/annotations/tkex.tencent.com~1chosen-for";

/// A cluster with the HookTemplate `ask` of the hook, and possibly this template `bye` of the notice.
fn with_bye(template: Option<HookTemplateSpec>) -> FakeCluster {
    FakeCluster {
        other_templates: [("bye", template)].into(),
        ..FakeCluster::with_hook()
    }
}

/// A game without desired pods, with a hook and a notice.
fn game(over: &[(&str, Value)]) -> GameDeployment {
    let strategy = json!({ "hook": { "templateName": "ask" }, "notice": { "templateName": "bye" } });
    let mut all = vec![
        ("/spec/replicas", json!(0)),
        ("/spec/preDeleteUpdateStrategy", strategy),
    ];
    all.extend_from_slice(over);
    object(&all)
}

/// A pod that is selected for deletion, with these overrides.
fn selected(over: &[(&str, Value)]) -> Pod {
    let mut all = vec![
        (MARK, json!("true")),
        (CHOSEN, json!("delete@2024-05-01T00:00:00Z")),
    ];
    all.extend_from_slice(over);
    pod("fleet-a", &all)
}

fn decided_in(around: &FakeCluster, object: &GameDeployment, pods: &[Pod], runs: &[Run]) -> Plan {
    let revisions = revisions();
    let (pods, runs): (Vec<&Pod>, Vec<&Run>) = (pods.iter().collect(), runs.iter().collect());
    let view = View {
        object,
        pods: &pods,
        revisions: &revisions.iter().collect::<Vec<&Revision>>(),
        runs: &runs,
        accepted: Some("new"),
        write_errors: None,
        guard_check: None,
        cluster: around,
    };
    decide(&view, now())
}

fn decided(object: &GameDeployment, pods: &[Pod], runs: &[Run]) -> Plan {
    decided_in(&FakeCluster::with_hook(), object, pods, runs)
}

/// Types of the HookRuns that a plan creates.
fn created(plan: &Plan) -> Vec<String> {
    let runs = plan.actions.iter().filter_map(|action| match action {
        Action::CreateRun(new) => Some(new.metadata.labels.as_ref()?["hookrun-type"].clone()),
        _ => None,
    });
    runs.collect()
}

/// Warnings of the HookRuns that a plan creates.
fn warnings(plan: &Plan) -> Vec<Warning> {
    let warnings = plan.actions.iter().filter_map(|action| match action {
        Action::CreateRun(new) => new.warning().cloned(),
        _ => None,
    });
    warnings.collect()
}

/// UIDs of the HookRuns that a plan deletes.
fn deleted(plan: &Plan) -> Vec<&str> {
    let runs = plan.actions.iter().filter_map(|action| match action {
        Action::DeleteRun(run) => Some(run.uid.as_str()),
        _ => None,
    });
    runs.collect()
}

/// Returns the first HookRun that is created for this pod, which was created this number of seconds ago.
fn first(object: &GameDeployment, pod: &Pod, seconds: i64) -> HookRun {
    let plan = decided(object, std::slice::from_ref(pod), &[]);
    let mut run = samples::created_runs(plan).next().unwrap();
    run.metadata.uid = Some("first".to_owned());
    run.metadata.generation = Some(1);
    run.metadata.creation_timestamp = Some(Time(now() - SignedDuration::from_secs(seconds)));
    run
}

/// Returns the notice of this pod, which was created ten seconds ago.
fn notice(pod: &Pod) -> HookRun {
    let notice = first(&game(&[]), pod, 10);
    assert!(Run::read(&notice).notice.is_some());
    notice
}

/// Records a measurement with this result.
fn measure(run: &mut HookRun, result: &str) {
    let result = json!({ "name": "healthy", "phase": "Running", result: 1 });
    let status = json!({ "phase": "Running", "metricResults": [result] });
    run.status = Some(serde_json::from_value(status).unwrap());
}

const NOTICE: [&str; 1] = ["notice-step"];
const HOOK: [&str; 1] = ["pre-delete-step"];
const NONE: [&str; 0] = [];

#[test]
fn the_notice_comes_first_and_differs_from_the_hook_in_name_type_and_intent() {
    let pod = selected(&[]);
    let plan = decided(&game(&[]), std::slice::from_ref(&pod), &[]);
    assert_eq!(names(&plan), ["create_hook_run"]);
    let Action::CreateRun(new) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert!(plan.actions[0].scales() && new.kind().is_none() && new.warning().is_none());
    let digest = digest_of_text("uid-fleet-a/delete@2024-05-01T00:00:00Z");
    let name = format!("notice-hook-old-a-bye-{digest}");
    assert_eq!(new.name(), name);
    let labels = new.metadata.labels.as_ref().unwrap();
    let wanted = json!({
        "hookrun-type": "notice-step", "gamedeployment-type": "Notice",
        "workload-revision": "old", "PodControllerRevision": "old", "instance-id": "a", "InstanceID": "a",
        "tkex.tencent.com/pod-uid": "uid-fleet-a", "tkex.tencent.com/name-digest": digest_of_text(&name),
        "tkex.tencent.com/gamedeployment": "fleet",
        "velero.io/exclude-from-backup": "true",
    });
    assert_eq!(json!(labels), wanted);
    let notes = new.metadata.annotations.as_ref().unwrap();
    let of = ["intent", "choice", "question"].map(|key| {
        let note = notes.get(&format!("tkex.tencent.com/{key}"));
        note.map(String::as_str)
    });
    assert_eq!(of, [Some("notice"), Some("delete@2024-05-01T00:00:00Z"), None]);
    let run = Run::read(&new.render());
    let kinds = (run.kind, run.scout, run.notice, run.may_open_gate());
    assert_eq!(kinds, (None, None, Some(NoticeProgress::Unmeasured), false));
}

#[test]
fn the_hook_waits_for_the_first_measurement_of_the_notice_and_not_for_its_result() {
    let (game, pod) = (game(&[]), selected(&[]));
    let plan_after = |notice: &HookRun| decided(&game, std::slice::from_ref(&pod), &[Run::read(notice)]);
    let mut run = notice(&pod);
    let plan = plan_after(&run);
    assert_eq!(names(&plan), NONE);
    assert_eq!(plan.wake, Some(now() + SignedDuration::from_secs(20)));
    let status = plan.status.as_ref().unwrap();
    assert_eq!(status.hook_pending_replicas, 0, "the hook has not run");
    assert_eq!(plan.gauges.unwrap().hooks[0].unwrap().asking.pods, 0);
    measure(&mut run, "count");
    assert_eq!(created(&plan_after(&run)), NONE, "no measurement has ended");
    for result in ["successful", "failed", "inconclusive", "error"] {
        measure(&mut run, result);
        assert_eq!(created(&plan_after(&run)), HOOK, "{result}");
    }
    for phase in Phase::FINAL {
        let mut run = notice(&pod);
        finish(&mut run, "healthy", phase, 0);
        let plan = plan_after(&run);
        assert_eq!(names(&plan), ["create_hook_run"], "{phase}");
        assert_eq!(
            (created(&plan).as_slice(), warnings(&plan)),
            (&["pre-delete-step".to_owned()][..], vec![])
        );
    }
}

#[test]
fn the_hook_waits_at_most_thirty_seconds_whatever_happens_to_the_notice() {
    let (game, pod) = (game(&[]), selected(&[]));
    let plan_after = |notice: Run| created(&decided(&game, std::slice::from_ref(&pod), &[notice]));
    for (seconds, wanted) in [
        (0, &NONE[..]),
        (29, &NONE),
        (30, &HOOK),
        (3600, &HOOK),
        // The clock of the API server is ahead.
        (-5, &NONE),
        (-3600, &HOOK),
    ] {
        let run = first(&game, &pod, seconds);
        assert_eq!(plan_after(Run::read(&run)), wanted, "{seconds}");
    }
    let mut terminating = notice(&pod);
    keep(&mut terminating);
    let mut undated = notice(&pod);
    undated.metadata.creation_timestamp = None;
    let unreadable = Run::read(&notice(&pod)).unreadable("cannot be parsed".to_owned());
    let unknown = Run::unknown(&unreadable.name, "gd-uid");
    for run in [Run::read(&terminating), Run::read(&undated), unreadable, unknown] {
        assert_eq!(plan_after(run.clone()), HOOK, "{run:#?}");
    }
    // Another object has its name.
    let around = FakeCluster {
        runs: vec![Run::read(&notice(&pod))],
        ..FakeCluster::with_hook()
    };
    let plan = decided_in(&around, &game, std::slice::from_ref(&pod), &[]);
    assert_eq!(created(&plan), HOOK);
}

#[test]
fn a_pod_returns_to_service_while_its_hook_waits_for_the_notice() {
    let conditions = json!([
        { "type": "Ready", "status": "False", "lastTransitionTime": "2024-05-31T00:00:00Z" },
        { "type": "InPlaceUpdateReady", "status": "False", "lastTransitionTime": "2024-05-31T00:00:00Z" },
    ]);
    let pod = selected(&[
        (
            "/spec/readinessGates",
            json!([{ "conditionType": "InPlaceUpdateReady" }]),
        ),
        ("/status/conditions", conditions),
    ]);
    let run = Run::read(&notice(&pod));
    let plan = decided(&game(&[]), &[pod], &[run]);
    assert_eq!(names(&plan), ["put_in_pod"]);
}

#[test]
fn a_hook_whose_notice_cannot_run_runs_at_once_with_a_warning() {
    let with_args = |args: Value| {
        let mut template = FakeCluster::with_hook().template.unwrap();
        template.args = serde_json::from_value(args).unwrap();
        with_bye(Some(template))
    };
    let of_address =
        json!({ "metrics": [{ "name": "a", "provider": { "web": { "url": "http://{{ args.PodIP }}" } } }] });
    let long = "b".repeat(230);
    let named = |name: &str| ("/spec/preDeleteUpdateStrategy/notice/templateName", json!(name));
    let table = [
        (
            with_bye(None),
            "bye",
            "HookTemplate bye does not exist; create it",
        ),
        (
            FakeCluster {
                problem: Some(("bye", "metrics[0]: no")),
                ..FakeCluster::with_hook()
            },
            "bye",
            "HookTemplate bye is invalid: metrics[0]: no",
        ),
        (
            with_args(json!([{ "name": "room" }])),
            "bye",
            "HookTemplate bye needs a value for argument room; set it in the workload's notice.args or in the template",
        ),
        (
            with_bye(serde_json::from_value(of_address).unwrap()),
            "bye",
            "the hook uses PodIP, but the pod has no IP address yet",
        ),
        (
            FakeCluster::with_hook(),
            long.as_str(),
            "the name of the HookRun would be 265 characters long (maximum 253)",
        ),
    ];
    let question = "/metadata/annotations/tkex.tencent.com~1hook-question";
    let asked = |text: &str| selected(&[("/status/podIP", Value::Null), (question, json!(text))]);
    let pod = asked("delete@2024-05-01T00:00:00Z");
    for (around, template, cause) in table {
        let plan = decided_in(
            &around,
            &game(&[named(template)]),
            std::slice::from_ref(&pod),
            &[],
        );
        assert_eq!(created(&plan), HOOK, "{cause}");
        let [
            Warning {
                pod: about,
                reason,
                message,
            },
        ] = &warnings(&plan)[..]
        else {
            panic!("{cause}: {plan:?}")
        };
        assert_eq!(
            (about.as_ref().unwrap().uid.as_str(), reason.as_str()),
            ("uid-fleet-a", "NoticeFailed")
        );
        assert!(
            message
                .starts_with("the notice of pod fleet-a cannot run, so its PreDelete hook runs without it: "),
            "{message}"
        );
        assert!(message.contains(cause), "{message}");
        assert!(
            plan.warnings.iter().all(|other| other.reason != *reason),
            "it is reported once"
        );
        // The hook is rerun.
        let pod = asked("delete@2024-05-01T00:05:00Z");
        let plan = decided_in(&around, &game(&[named(template)]), &[pod], &[]);
        assert_eq!(
            (created(&plan), warnings(&plan)),
            (HOOK.map(str::to_owned).to_vec(), vec![])
        );
    }
}

#[test]
fn a_hook_and_its_rerun_wait_thirty_seconds_for_a_rejected_notice() {
    let question = "/metadata/annotations/tkex.tencent.com~1hook-question";
    let asked = |text: &str| selected(&[(question, json!(text))]);
    let (first, rerun) = (
        asked("delete@2024-05-01T00:00:00Z"),
        asked("delete@2024-05-01T00:05:00Z"),
    );
    let rejected = |seconds: i64| FakeCluster {
        rejected_notice: Some(RejectedNotice {
            lasts: SignedDuration::from_secs(seconds),
            answer: "quota exceeded (403)",
        }),
        ..FakeCluster::with_hook()
    };
    for (pod, seconds, wanted) in [
        (&first, 0, NOTICE),
        (&first, 29, NOTICE),
        (&first, 30, HOOK),
        (&first, 3600, HOOK),
        (&rerun, 29, NOTICE),
        (&rerun, 30, HOOK),
    ] {
        let pods = std::slice::from_ref(pod);
        let plan = decided_in(&rejected(seconds), &game(&[]), pods, &[]);
        assert_eq!(
            (names(&plan), created(&plan)),
            (vec!["create_hook_run"], wanted.map(str::to_owned).to_vec())
        );
        let messages = warnings(&plan).into_iter().map(|warning| warning.message);
        let message = "the notice of pod fleet-a cannot run, so its PreDelete hook runs without it: the API server \
                       rejects its HookRun: quota exceeded (403)";
        let reported = (wanted == HOOK).then(|| message.to_owned());
        assert_eq!(
            messages.collect::<Vec<_>>(),
            Vec::from_iter(reported),
            "{seconds}"
        );
    }
    // It has been created since.
    let pods = std::slice::from_ref(&first);
    let plan = decided_in(&rejected(30), &game(&[]), pods, &[Run::read(&notice(&first))]);
    assert_eq!(names(&plan), NONE);
}

#[test]
fn a_rerun_of_the_hook_does_not_repeat_the_notice() {
    let (fleet, pod) = (game(&[]), selected(&[]));
    let mut ended = notice(&pod);
    finish(&mut ended, "healthy", Phase::Failed, 0);
    ended.metadata.uid = Some("notice".to_owned());
    let given = Run::read(&ended);
    let hook = |phase: Phase, successful| {
        let plan = decided(&fleet, std::slice::from_ref(&pod), std::slice::from_ref(&given));
        let mut run = samples::created_runs(plan).next().unwrap();
        finish(&mut run, "healthy", phase, successful);
        run.status.as_mut().unwrap().completed_at =
            Some("2024-05-01T00:00:00Z".parse::<Timestamp>().unwrap().into());
        Run::read(&run)
    };
    // The verdict has expired, or someone has edited the HookRun.
    let expired = hook(Phase::Successful, 1);
    let edited = Run {
        is_edited: true,
        ..hook(Phase::Running, 0)
    };
    for stale in [expired, edited] {
        let plan = decided(&fleet, std::slice::from_ref(&pod), &[given.clone(), stale]);
        assert_eq!(
            (names(&plan), deleted(&plan)),
            (vec!["delete_hook_run"], vec!["run-1"])
        );
    }
    let retried = game(&[("/spec/preDeleteUpdateStrategy/retry", json!(true))]);
    let plan = decided(
        &retried,
        std::slice::from_ref(&pod),
        &[given.clone(), hook(Phase::Failed, 0)],
    );
    assert_eq!(deleted(&plan), ["run-1"], "a retry is for the hook");
    let plan = decided(&retried, std::slice::from_ref(&pod), std::slice::from_ref(&given));
    assert_eq!(
        (created(&plan), deleted(&plan)),
        (vec!["pre-delete-step".to_owned()], vec![])
    );
    // The spec now names another template.
    let other = game(&[(
        "/spec/preDeleteUpdateStrategy/notice/templateName",
        json!("other"),
    )]);
    let plan = decided(&other, &[pod], &[given]);
    assert_eq!(
        (created(&plan), deleted(&plan)),
        (vec!["pre-delete-step".to_owned()], vec![])
    );
}

#[test]
fn another_selection_or_pod_has_a_notice_of_its_own() {
    let pod = selected(&[]);
    let old = Run::read(&notice(&pod));
    let plan = |pod: Pod| decided(&game(&[]), &[pod], std::slice::from_ref(&old));
    let again = plan(selected(&[(CHOSEN, json!("delete@2024-05-02T00:00:00Z"))]));
    assert_eq!(
        (created(&again), deleted(&again)),
        (vec!["notice-step".to_owned()], vec!["first"])
    );
    let replaced = plan(selected(&[("/metadata/uid", json!("uid-other"))]));
    assert_eq!(
        (created(&replaced), deleted(&replaced)),
        (vec!["notice-step".to_owned()], vec!["first"])
    );
    let names = [again, replaced].map(|plan| {
        plan.actions.iter().find_map(|action| match action {
            Action::CreateRun(new) => Some(new.name().to_owned()),
            _ => None,
        })
    });
    assert!(
        names[0] != names[1] && !names.contains(&Some(old.name.clone())),
        "{names:?}"
    );
    // Pods may share an instance id.
    let id = (
        "/metadata/labels/tkex.bkbcs.tencent.com~1gamedeployment-instance-id",
        json!("a"),
    );
    let twins = [
        selected(std::slice::from_ref(&id)),
        selected(&[id, ("/metadata/uid", json!("twin"))]),
    ];
    assert_eq!(
        created(&decided(&game(&[]), &twins, &[])),
        ["notice-step", "notice-step"]
    );
}

#[test]
fn a_notice_is_kept_as_long_as_its_pod_remains_selected() {
    let pod = selected(&[]);
    let mut ended = notice(&pod);
    finish(&mut ended, "healthy", Phase::Successful, 1);
    ended.metadata.uid = Some("notice".to_owned());
    let unreadable = Run::read(&notice(&pod)).unreadable("cannot be parsed".to_owned());
    let runs = [
        Run::read(&notice(&pod)),
        Run::read(&ended),
        Run {
            uid: "notice".to_owned(),
            ..unreadable
        },
    ];
    let without = game(&[("/spec/preDeleteUpdateStrategy/notice", Value::Null)]);
    let unhooked = game(&[("/spec/preDeleteUpdateStrategy", Value::Null)]);
    let terminating = ("/metadata/deletionTimestamp", json!("2024-06-01T00:00:00Z"));
    for run in runs {
        for fleet in [game(&[]), without.clone(), unhooked.clone()] {
            let plan = decided(&fleet, std::slice::from_ref(&pod), std::slice::from_ref(&run));
            assert_eq!(deleted(&plan), NONE, "{run:#?}");
        }
        let going = selected(std::slice::from_ref(&terminating));
        assert_eq!(
            deleted(&decided(&game(&[]), &[going], std::slice::from_ref(&run))),
            NONE
        );
        let gone = decided(&game(&[]), &[], std::slice::from_ref(&run));
        assert_eq!(deleted(&gone), [run.uid.as_str()], "its pod is gone");
        let kept = game(&[
            ("/spec/replicas", json!(1)),
            ("/spec/updateStrategy/partition", json!(1)),
        ]);
        let cleared = decided(&kept, std::slice::from_ref(&pod), std::slice::from_ref(&run));
        assert_eq!(names(&cleared), ["unmark_pod"], "its selection is cleared first");
        let plan = decided(&kept, &[samples::pod("fleet-a", &[])], std::slice::from_ref(&run));
        assert_eq!(
            deleted(&plan),
            [run.uid.as_str()],
            "its pod is no longer selected"
        );
    }
    let released = selected(&[("/metadata/ownerReferences", json!([]))]);
    let plan = decided(&game(&[]), &[released], &[Run::read(&notice(&pod))]);
    assert_eq!(deleted(&plan), ["first"], "the workload no longer owns its pod");
}

#[test]
fn a_pod_that_no_hook_keeps_gets_no_notice() {
    let waiting = json!({ "waiting": { "reason": "ContainerCreating" } });
    let status = json!([{
        "name": "game", "image": "game:v1", "imageID": "", "ready": false, "restartCount": 0, "state": waiting,
    }]);
    let skip = "/metadata/annotations/tkex.tencent.com~1skip-hook";
    for over in [
        ("/status/containerStatuses", status),
        (skip, json!("uid-fleet-a")),
        ("/spec/nodeName", Value::Null),
    ] {
        let plan = decided(&game(&[]), &[selected(std::slice::from_ref(&over))], &[]);
        assert_eq!(names(&plan), ["delete_pod"], "{over:?}");
    }
    let alone = json!({ "notice": { "templateName": "bye" } });
    let invalid = game(&[("/spec/preDeleteUpdateStrategy", alone)]);
    assert_eq!(names(&decided(&invalid, &[selected(&[])], &[])), NONE);
    let plan = decided(&game(&[]), &[pod("fleet-a", &[])], &[]);
    assert_eq!(names(&plan), ["mark_pod"], "the selection is recorded first");
}

#[test]
fn candidates_get_no_notice() {
    let over = [
        ("/spec/replicas", json!(1)),
        ("/spec/scaleStrategy/selectionPolicy", json!("FirstIdle")),
        ("/spec/updateStrategy/partition", json!(100)),
    ];
    let pods = ["fleet-a", "fleet-b", "fleet-c"].map(|name| pod(name, &[]));
    let fleet = game(&over);
    assert_eq!(created(&decided(&fleet, &pods, &[])), ["scout-step"; 3]);
    let chosen = [
        pod("fleet-a", &[]),
        pod_to_delete("fleet-b"),
        pod_to_delete("fleet-c"),
    ];
    assert_eq!(
        created(&decided(&fleet, &chosen, &[])),
        ["notice-step", "notice-step"]
    );
}

#[test]
fn an_update_has_a_notice_only_if_it_recreates_the_pod() {
    let of_type = |kind: &str| {
        [
            ("/spec/replicas", json!(1)),
            ("/spec/updateStrategy/type", json!(kind)),
        ]
    };
    let plan = decided(&game(&of_type("InplaceUpdate")), &[pod("fleet-a", &[])], &[]);
    assert_eq!(created(&plan), HOOK);
    let rolling = game(&of_type("RollingUpdate"));
    let chosen = selected(&[(CHOSEN, json!("recreate:new@2024-05-01T00:00:00Z"))]);
    let plan = decided(&rolling, std::slice::from_ref(&chosen), &[]);
    assert_eq!(created(&plan), NOTICE);
    assert!(!plan.actions[0].scales(), "it is a write of the update");
}

/// The deletion cost of another pod falls while the hook of a selected one waits for its notice.
#[test]
fn a_pod_keeps_its_turn_while_its_hook_waits_for_the_notice() {
    let rolling = |replicas: usize| {
        game(&[
            ("/spec/replicas", json!(replicas)),
            ("/spec/updateStrategy/type", json!("RollingUpdate")),
            ("/spec/updateStrategy/maxUnavailable", json!(1)),
        ])
    };
    let chosen = selected(&[(CHOSEN, json!("recreate:new@2024-05-01T00:00:00Z"))]);
    let running = Run::read(&first(&rolling(1), &chosen, 10));
    let cost = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";
    let cheaper = pod("fleet-b", &[(cost, json!("-10"))]);
    let plan = decided(&rolling(2), &[chosen, cheaper], &[running]);
    assert_eq!(names(&plan), NONE);
}

#[test]
fn the_time_of_a_rollout_stands_still_while_a_hook_waits_for_the_notice() {
    let over = [
        ("/spec/replicas", json!(1)),
        ("/spec/updateStrategy/timeoutSeconds", json!(600)),
    ];
    let fleet = game(&over);
    let chosen = selected(&[(CHOSEN, json!("recreate:new@2024-05-01T00:00:00Z"))]);
    let running = Run::read(&first(&fleet, &chosen, 10));
    let plan = decided(&fleet, &[chosen], &[running]);
    assert_eq!(names(&plan), NONE);
    let timer = plan.status.unwrap().rollout_timer.unwrap();
    assert_eq!(timer.running_since, None);
}

/// Anyone who may edit HookRuns can give a notice another label, and anyone who may create them another name.
#[test]
fn a_successful_notice_opens_nothing_under_any_name_or_label() {
    let (fleet, pod) = (game(&[]), selected(&[]));
    let mut real = notice(&pod);
    finish(&mut real, "healthy", Phase::Successful, 1);
    real.status.as_mut().unwrap().completed_at = Some(now().into());
    let hook = "pre-delete-hook-old-a-ask";
    let forge = |name: Option<&str>, kind: Option<&str>, intent: Option<&str>| {
        let mut run = real.clone();
        run.metadata.name = name.map(str::to_owned).or(run.metadata.name);
        let labels = run.metadata.labels.get_or_insert_default();
        labels.extend(kind.map(|kind| ("hookrun-type".to_owned(), kind.to_owned())));
        let notes = run.metadata.annotations.get_or_insert_default();
        notes.extend(intent.map(|intent| ("tkex.tencent.com/intent".to_owned(), intent.to_owned())));
        Run::read(&run)
    };
    let (ask, step, notice_step) = (Some(hook), Some("pre-delete-step"), Some("notice-step"));
    for (run, wanted) in [
        (forge(None, None, None), GateStateKind::NotRun),
        (forge(None, step, Some("delete")), GateStateKind::NotRun),
        (
            forge(Some("by-hand"), step, Some("delete")),
            GateStateKind::NotRun,
        ),
        (forge(ask, None, None), GateStateKind::Stale),
        (forge(ask, step, None), GateStateKind::Stale),
        (
            forge(ask, Some("PreDelete"), Some("notice")),
            GateStateKind::Stale,
        ),
    ] {
        let (around, runs, pods) = (FakeCluster::with_hook(), [&run], [&pod]);
        let workload = crate::workload::Workload::read(&fleet).unwrap();
        let gate = Gate::new(&workload, &around, &runs, &pods, now());
        let gate_state = gate.assess(&pod, &Intent::Delete, &[]);
        assert_eq!(gate_state.state(), wanted, "{run:#?}");
        let plan = decided(&fleet, std::slice::from_ref(&pod), std::slice::from_ref(&run));
        let is_gated = |action: &Action| matches!(action, Action::Gated(_));
        assert!(!plan.actions.iter().any(is_gated), "{plan:#?}");
    }
    // The label of a notice takes nothing from a verdict of the hook, and adds nothing to its HookRun.
    let given = Run::read(&real);
    let mut own = samples::created_runs(decided(
        &fleet,
        std::slice::from_ref(&pod),
        std::slice::from_ref(&given),
    ));
    let mut own = own.next().unwrap();
    finish(&mut own, "healthy", Phase::Running, 0);
    let labels = own.metadata.labels.get_or_insert_default();
    labels.extend(notice_step.map(|kind| ("hookrun-type".to_owned(), kind.to_owned())));
    let plan = decided(&fleet, &[pod], &[given, Run::read(&own)]);
    assert_eq!(names(&plan), NONE, "its hook runs");
}

#[test]
fn a_successful_notice_ranks_no_pod_and_takes_no_turn() {
    let over = [
        ("/spec/replicas", json!(2)),
        ("/spec/updateStrategy/partition", json!(1)),
    ];
    let pods = ["fleet-a", "fleet-b"].map(|name| pod(name, &[]));
    let mut left = notice(&pod_to_delete("fleet-b"));
    finish(&mut left, "healthy", Phase::Successful, 1);
    let of_b = Run::read(&left);
    assert_eq!(of_b.pod_uid.as_deref(), Some("uid-fleet-b"));
    let marked = |plan: &Plan| {
        let marked = plan.actions.iter().find_map(|action| match action {
            Action::RecordSelection(pod, ..) => Some(pod.name.clone()),
            _ => None,
        });
        marked.unwrap()
    };
    let fleet = game(&over);
    let without = decided(&fleet, &pods, &[]);
    let with = decided(&fleet, &pods, &[of_b]);
    assert_eq!(marked(&with), marked(&without), "an update selects the same pod");
    let fleet = game(&[
        ("/spec/replicas", json!(1)),
        ("/spec/updateStrategy/partition", json!(100)),
    ]);
    let of_b = Run::read(&left);
    let (without, with) = (decided(&fleet, &pods, &[]), decided(&fleet, &pods, &[of_b]));
    assert_eq!(marked(&with), marked(&without), "so does a scale-down");
}

#[test]
fn a_failed_notice_is_reported_about_its_pod_while_that_exists() {
    let pod = selected(&[]);
    let mut run = notice(&pod);
    finish(&mut run, "healthy", Phase::Failed, 0);
    run.status.as_mut().unwrap().message = Some("metric healthy Failed: no".to_owned());
    let run = Run::read(&run);
    let warning = failed_notice(&run, Some(&pod));
    let message = format!(
        "the notice of pod fleet-a failed: HookRun {} is Failed: metric healthy Failed: no. The hook of the pod runs \
         nevertheless",
        run.name
    );
    assert_eq!(
        (warning.reason, warning.message),
        (WorkloadReason::NoticeFailed, message)
    );
    assert_eq!(warning.pod, Some(PodRef::of(&pod)));
    assert_eq!(failed_notice(&run, None).pod, None);
}

#[test]
fn the_name_of_a_notice_identifies_its_selection() {
    let table = [
        ("notice-hook-old-a-bye-0011", Some("0011")),
        ("notice-hook--0011", Some("0011")),
        ("notice-hook-", None),
        ("notice-hooks-old-0011", None),
        ("pre-delete-hook-old-a-notice-hook-0011", None),
    ];
    for (name, wanted) in table {
        assert_eq!(selection_of(name), wanted, "{name}");
    }
    assert!(is_notice("notice-step") && is_notice("Notice") && !is_notice("pre-delete-step"));
    let kinds = HookKind::ALL.map(|kind| is_notice(kind.label()));
    assert_eq!(kinds, [false; 3]);
}
