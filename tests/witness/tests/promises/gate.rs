//! Tests of deletions and their verdicts.

use serde_json::{Value, json};

use crate::log::{Call, HOOKS, Log, OPERATOR, SOMEBODY};

fn hooked() -> Log {
    let hook = json!({ "hook": { "templateName": "empty" } });
    Log::of(
        json!({ "replicas": 2, "preDeleteUpdateStrategy": hook, "updateStrategy": { "maxUnavailable": 2 } }),
    )
}

/// Lets the hook of a running pod succeed, then does something else, then deletes the pod.
fn story(then: impl FnOnce(&mut Log)) -> Log {
    let mut log = hooked();
    log.pod("a");
    log.allow("run", "a");
    then(&mut log);
    log.delete("a");
    log
}

/// Deletes a pod with an unusual run.
fn with_run(intent: &str, special: Value) -> Log {
    let mut log = hooked();
    log.pod("a");
    log.ask("run", "a", intent, special);
    log.say_yes(HOOKS, "run");
    log.delete("a");
    log
}

#[test]
fn a_pod_whose_hook_said_yes_may_go() {
    story(|_| {}).is_clean();
    with_run("recreate:arena-2", json!({})).is_clean();
}

#[test]
fn a_pod_that_nobody_asked_about_may_not() {
    let mut log = hooked();
    log.pod("a");
    log.delete("a");
    log.is_caught("no HookRun speaks of it");
}

#[test]
fn without_a_hook_every_pod_may_go() {
    let mut log = hooked();
    log.pod("a");
    log.edit(json!({ "preDeleteUpdateStrategy": null }));
    log.delete("a");
    log.is_clean();
}

#[test]
fn a_hook_counts_from_the_moment_at_which_it_is_set() {
    let mut log = Log::of(json!({ "replicas": 1, "updateStrategy": { "maxUnavailable": 1 } }));
    log.pod("a");
    log.edit(json!({ "preDeleteUpdateStrategy": { "hook": { "templateName": "empty" } } }));
    log.delete("a");
    log.is_caught("no HookRun speaks of it");
}

#[test]
fn a_run_counts_only_for_what_it_was_asked() {
    with_run(
        "in-place:arena-2",
        json!({ "metadata": { "labels": { "hookrun-type": "pre-delete-step" } } }),
    )
    .is_caught("was asked for \"in-place:arena-2\"");
    with_run(
        "delete",
        json!({ "metadata": { "labels": { "hookrun-type": "post-inplace-step" } } }),
    )
    .is_caught("is of the type");
    with_run(
        "delete",
        json!({ "metadata": { "labels": { "hookrun-type": "notice-step" } } }),
    )
    .is_caught("is of the type \"notice-step\"");
    with_run(
        "delete",
        json!({ "metadata": { "labels": { "workload-revision": "arena-0" } } }),
    )
    .is_caught("speaks of revision \"arena-0\"");
    with_run(
        "delete",
        json!({ "metadata": { "labels": { "tkex.tencent.com/pod-uid": "other" } } }),
    )
    .is_caught("no HookRun speaks of it");
    with_run("delete", json!({ "metadata": { "ownerReferences": [] } }))
        .is_caught("belongs to another workload");
}

#[test]
fn only_a_measured_success_of_somebody_else_counts() {
    let verdict = |status: Value, user: &str| {
        let mut log = hooked();
        log.pod("a");
        log.ask("run", "a", "delete", json!({}));
        let patch = json!({ "status": status });
        log.write(
            Call(user, "patch", "hookruns", "status"),
            "run",
            patch.clone(),
            patch,
        );
        log.delete("a");
        log
    };
    verdict(json!({ "phase": "Failed" }), HOOKS).is_caught("has the phase \"Failed\"");
    let unmeasured =
        json!({ "phase": "Successful", "metricResults": [{ "measurements": [{ "phase": "Error" }] }] });
    verdict(unmeasured, SOMEBODY).is_caught("without one Successful measurement");

    let mut log = hooked();
    log.pod("a");
    log.ask("run", "a", "delete", json!({}));
    log.say_yes(OPERATOR, "run");
    log.delete("a");
    let texts: Vec<String> = log
        .report()
        .violations
        .into_iter()
        .map(|violation| violation.to_string())
        .collect();
    assert!(
        texts.len() == 2 && texts[0].contains("wrote a verdict itself") && texts[1].contains("was judged by"),
        "{texts:#?}"
    );
}

/// Its writer died before the response, and the API server recorded a failure; the write may have taken
/// effect.
#[test]
fn a_measured_success_whose_answer_was_lost_counts() {
    let sent = |user: &str, code: u64, measured: bool| {
        let measurements = if measured {
            json!([{ "phase": "Successful" }])
        } else {
            json!([])
        };
        let verdict = json!({ "status": {
            "phase": "Successful", "metricResults": [{ "name": "players", "measurements": measurements }]
        } });
        let mut log = hooked();
        log.pod("a");
        log.ask("run", "a", "delete", json!({}));
        log.answered(
            Call(user, "patch", "hookruns", "status"),
            "run",
            (verdict, Value::Null),
            code,
        );
        log.delete("a");
        log
    };
    sent(HOOKS, 500, true).is_clean();
    sent(HOOKS, 504, true).is_clean();
    sent(HOOKS, 409, true).is_caught("has the phase");
    sent(HOOKS, 500, false).is_caught("has the phase");
    sent(SOMEBODY, 500, true).is_caught("has the phase");
}

#[test]
fn a_run_that_was_deleted_among_many_counts_no_more() {
    let removed = |user: &'static str| {
        story(|log| {
            let selector = "tkex.tencent.com%2Fname-digest+in+%281%2C2%29";
            log.remove_many(user, "hookruns", &["run"], selector);
            log.wait(5000);
        })
    };
    removed(SOMEBODY).is_caught("was deleted");
    removed(OPERATOR).is_caught("was deleted");
}

#[test]
fn many_runs_are_deleted_only_by_their_names() {
    let removed = |selector: &str| {
        let mut log = hooked();
        log.newborn("a");
        log.ask("run", "a", "delete", json!({}));
        log.remove_many(OPERATOR, "hookruns", &["run"], selector);
        log
    };
    removed("tkex.tencent.com%2Fname-digest+in+%281%2C2%29").is_clean();
    removed("app%3Darena").is_caught("without /preconditions/uid");
}

#[test]
fn a_run_that_was_deleted_counts_no_more() {
    let removed = |user: &'static str, wait: i64| {
        story(|log| {
            log.remove(user, "hookruns", "run");
            log.wait(wait);
        })
    };
    removed(SOMEBODY, 5000).is_caught("was deleted");
    // The operator's write was already in flight, based on a measured success.
    removed(SOMEBODY, 0).is_clean();
    removed(OPERATOR, 0).is_caught("was deleted");
}

#[test]
fn a_removal_that_overlaps_counts_as_later() {
    let mut log = story(|_| {});
    // As if the run's deletion had been requested while the pod's was in flight.
    log.wait(-15);
    log.remove(OPERATOR, "hookruns", "run");
    log.is_clean();
}

#[test]
fn a_removal_follows_all_writes_of_its_object() {
    let mut log = story(|_| {});
    // As if the request had been received before the first question, and had waited until the pod was terminating.
    log.wait(-90);
    let call = Call(SOMEBODY, "create", "pods", "eviction");
    log.line(call, "a", Value::Null, json!({ "kind": "Status" }));
    log.is_clean();
}

#[test]
fn a_verdict_is_used_once() {
    let mut log = hooked();
    log.pod("a");
    let in_place = json!({ "metadata": { "labels": { "hookrun-type": "pre-delete-step" } } });
    log.ask("run", "a", "in-place:arena-2", in_place);
    log.say_yes(HOOKS, "run");
    let out = |status: &str| {
        json!({ "status": { "conditions": [
        { "type": "InPlaceUpdateReady", "status": status, "reason": "StartInPlaceUpdate", "message": "arena-2" }] } })
    };
    log.patch("a", "status", out("False"));
    log.patch("a", "status", out("True"));
    log.is_clean();
    log.patch("a", "status", out("False"));
    log.is_caught("was used for in-place:arena-2");
}

#[test]
fn a_pod_with_the_skip_annotation_of_its_own_uid_passes() {
    let annotated = |uid: &str| {
        let mut log = hooked();
        log.pod("a");
        let patch = json!({ "metadata": { "annotations": { "tkex.tencent.com/skip-hook": uid } } });
        log.write(Call(SOMEBODY, "patch", "pods", ""), "a", patch.clone(), patch);
        log.delete("a");
        log
    };
    annotated("uid-of-a").is_clean();
    annotated("true").is_caught("no HookRun speaks of it");
}

#[test]
fn a_pod_that_nobody_can_play_on_passes() {
    let said = |change: Value| {
        let mut log = hooked();
        log.pod("a");
        log.kubelet("a", change);
        log.delete("a");
        log
    };
    let container = |status: Value| said(json!({ "status": { "containerStatuses": [status] } }));
    let waiting = |reason: &str| json!({ "waiting": { "reason": reason } });
    said(json!({ "status": { "phase": "Failed" } })).is_clean();
    said(json!({ "spec": { "nodeName": "" } })).is_clean();
    container(json!({ "state": waiting("ImagePullBackOff"), "restartCount": 3, "containerID": "c" }))
        .is_clean();
    container(json!({ "state": waiting("ContainerCreating") })).is_clean();
    container(json!({ "state": waiting("CrashLoopBackOff"), "restartCount": 3 })).is_caught("no HookRun");
    container(json!({ "state": { "terminated": {} }, "containerID": "c" })).is_caught("no HookRun");
}

#[test]
fn a_pod_whose_node_is_gone_passes_and_one_whose_node_came_back_does_not() {
    let mut log = hooked();
    log.pod("a");
    log.pod("b");
    log.remove(SOMEBODY, "nodes", "node");
    log.delete("a");
    log.is_clean();
    let again = json!({ "metadata": { "name": "node", "uid": "another", "resourceVersion": "900" } });
    log.line(Call(SOMEBODY, "create", "nodes", ""), "node", json!({}), again);
    log.wait(10_000);
    let mut request = log.preconditions("b");
    request["gracePeriodSeconds"] = json!(30);
    let ending = json!({ "metadata": { "name": "b", "uid": "uid-of-b", "resourceVersion": "901",
        "deletionTimestamp": "2026-01-02T04:00:00Z", "deletionGracePeriodSeconds": 30 } });
    log.line(Call(OPERATOR, "delete", "pods", ""), "b", request, ending);
    log.is_caught("pod b (uid-of-b)");
}

#[test]
fn a_verdict_that_is_too_old_counts_no_more() {
    story(|log| log.wait(29_000)).is_clean();
    story(|log| log.wait(40_000)).is_caught("had been Successful for 40s, of 30s that count");
    let shorter = |log: &mut Log| {
        log.edit(json!({ "preDeleteUpdateStrategy": { "freshForSeconds": 5 } }));
        log.wait(10_000);
    };
    story(shorter).is_caught("of 5s that count");
}

#[test]
fn a_run_that_asks_something_else_counts_for_nothing() {
    let edited = |log: &mut Log| {
        let patch = json!({ "spec": { "metrics": [{ "name": "players", "successCondition": "true" }] } });
        let call = Call(SOMEBODY, "patch", "hookruns", "");
        log.write(call, "run", patch.clone(), patch);
    };
    story(edited).is_caught("was edited by somebody");
    let terminated = |log: &mut Log| {
        let patch = json!({ "spec": { "terminate": true } });
        let call = Call(SOMEBODY, "patch", "hookruns", "");
        log.write(call, "run", patch.clone(), patch);
    };
    story(terminated).is_clean();
    let args = json!({ "spec": { "args": [{ "name": "PodName", "value": "b" }] } });
    with_run("delete", args).is_caught("was asked with PodName");
    let asks = |condition: &str| json!({ "spec": { "metrics": [{ "name": "players", "successCondition": condition }] } });
    for (condition, caught) in [("result == 0", false), ("result >= 0", true)] {
        let mut log = hooked();
        log.put(SOMEBODY, "hooktemplates", "empty", asks("result == 0"));
        log.pod("a");
        log.ask("run", "a", "delete", asks(condition));
        log.say_yes(HOOKS, "run");
        log.delete("a");
        if caught {
            log.is_caught("asks what HookTemplate empty never asked");
        } else {
            log.is_clean();
        }
    }
}

#[test]
fn each_run_asks_a_question_that_its_pod_shows_and_no_other_run_has_asked() {
    let asked_twice = |question: Option<&str>| {
        let mut log = hooked();
        log.pod("a");
        log.ask("first", "a", "delete", json!({}));
        let first =
            log.object("hookruns", "first")["metadata"]["annotations"]["tkex.tencent.com/question"].clone();
        log.remove(OPERATOR, "hookruns", "first");
        let question = question.map_or(first, |question| json!(question));
        let notes = json!({ "metadata": { "annotations": { "tkex.tencent.com/question": question } } });
        log.ask("second", "a", "delete", notes);
        log
    };
    asked_twice(None).is_caught("has asked");
    asked_twice(Some("another")).is_caught("was not noted on its pod");
    asked_twice(Some("")).is_caught("was not noted on its pod");

    // An older build asks without a question.
    let found = |log: Log| log.report_with_older().violations.len();
    assert_eq!(found(asked_twice(Some(""))), 0);
    assert_eq!(found(asked_twice(Some("another"))), 1);

    let mut log = hooked();
    log.pod("a");
    log.ask("first", "a", "delete", json!({}));
    log.ask("second", "a", "delete", json!({}));
    log.is_clean();
}
