//! Objects without an API server: no status, an earlier status, unknown words. None of them is healthy.

use std::collections::BTreeSet;

use operator_tests::fleet::game;
use operator_tests::merge;
use serde_json::{Value, json};
use shared_api::reason::{WorkloadPhase, WorkloadReason};

use crate::argo::{self, ACTIONS};
use crate::flux::{self, State};

/// Builds a workload whose rollout is complete, with other fields of its status.
fn complete(status: Value) -> Value {
    let mut object = game(2, json!({}));
    object["metadata"]["generation"] = json!(3);
    object["status"] = json!({
        "observedGeneration": 3, "phase": "Complete", "reason": "RolloutComplete",
        "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 2, "updatedReadyReplicas": 2,
        "conditions": [
            condition("Available", "True", "MinimumPodsAvailable"),
            condition("Progressing", "True", "RolloutComplete"),
            condition("HooksResolved", "True", "HooksResolved")
        ]
    });
    merge(&mut object["status"], status);
    without_nulls(&mut object["status"]);
    object
}

/// Removes fields that are null: the API server has none.
fn without_nulls(status: &mut Value) {
    let fields = status.as_object_mut().unwrap();
    fields.retain(|_, field| !field.is_null());
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": "the cause" })
}

/// Returns the health, on which both tools agree.
fn health(object: &Value) -> String {
    let health = argo::health(object);
    flux::agrees(object, &health);
    health.status
}

fn object(kind: &str, mut status: Value) -> Value {
    without_nulls(&mut status);
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": kind,
        "metadata": { "name": "a", "generation": 2 }, "spec": {}, "status": status
    })
}

#[test]
fn an_object_without_status_is_progressing() {
    for kind in ["GameDeployment", "HookTemplate", "HookRun", "ExecutionHook"] {
        for status in [json!({}), json!({ "conditions": [] })] {
            let mut object = object(kind, status);
            assert_eq!(health(&object), "Progressing", "{object}");
            object.as_object_mut().unwrap().remove("status");
            assert_eq!(health(&object), "Progressing", "{object}");
        }
    }
}

#[test]
fn a_status_of_an_earlier_generation_is_never_healthy() {
    assert_eq!(health(&complete(json!({}))), "Healthy");
    for observed in [json!(2), json!(null)] {
        assert_eq!(
            health(&complete(json!({ "observedGeneration": observed }))),
            "Progressing",
            "{observed}"
        );
    }
    let valid = json!({ "conditions": [condition("Valid", "True", "SpecValid")] });
    let ended = json!({ "conditions": [
        condition("Complete", "True", "ActionSucceeded"),
        condition("Succeeded", "True", "ActionSucceeded")
    ] });
    for (kind, status) in [
        ("HookTemplate", valid),
        ("HookRun", json!({ "phase": "Successful" })),
        ("ExecutionHook", ended),
    ] {
        for (observed, expected) in [(2, "Healthy"), (1, "Progressing")] {
            let mut object = object(kind, status.clone());
            assert_eq!(health(&object), "Progressing", "{kind}");
            object["status"]["observedGeneration"] = json!(observed);
            assert_eq!(health(&object), expected, "{kind} {observed}");
        }
    }
}

#[test]
fn only_a_complete_rollout_is_healthy() {
    let phases = WorkloadPhase::ALL.iter().map(|phase| phase.as_str());
    for phase in phases.chain(["Odd", ""]) {
        let reasons = WorkloadReason::ALL.iter().map(|reason| reason.as_str());
        for reason in reasons.chain(["Odd", ""]) {
            for status in ["True", "False", "Unknown", "Odd"] {
                let progressing = [condition("Progressing", status, reason)];
                let found = argo::health(&complete(
                    json!({ "phase": phase, "reason": reason, "conditions": progressing }),
                ));
                let is_complete = (phase, reason, status) == ("Complete", "RolloutComplete", "True");
                assert_eq!(
                    found.status == "Healthy",
                    is_complete,
                    "{phase} {reason} {status}"
                );
            }
        }
    }
}

#[test]
fn pods_that_are_missing_or_wait_are_not_healthy() {
    for status in [
        json!({ "availableReplicas": 1 }),
        json!({ "availableReplicas": null }),
        json!({ "replicas": 1 }),
        json!({ "replicas": 3 }),
        json!({ "hookPendingReplicas": 1 }),
        json!({ "conditions": [] }),
        json!({ "conditions": null }),
    ] {
        assert_eq!(
            argo::health(&complete(status.clone())).status,
            "Progressing",
            "{status}"
        );
    }
    let mut single = complete(json!({ "replicas": 1, "availableReplicas": 1 }));
    single["spec"].as_object_mut().unwrap().remove("replicas");
    assert_eq!(health(&single), "Healthy", "replicas defaults to 1");
}

#[test]
fn a_person_is_needed_whatever_else_the_status_says() {
    for (kind, value) in [
        ("InvalidSpec", "True"),
        ("ScaleBlocked", "True"),
        ("UpdateBlocked", "True"),
        ("HooksResolved", "False"),
    ] {
        for phase in ["Complete", "Progressing", "Paused", "Blocked", "Odd"] {
            let conditions = [
                condition("Progressing", "True", "RolloutComplete"),
                condition(kind, value, "Odd"),
            ];
            let object = complete(json!({ "phase": phase, "conditions": conditions }));
            assert_eq!(health(&object), "Degraded", "{object}");
            assert_eq!(argo::health(&object).message, "Odd: the cause");
            assert_eq!(flux::state(&object), Some(State::Failed));
        }
    }
    // Without the condition that it is about.
    let blocked = complete(json!({ "phase": "Blocked", "reason": "Odd" }));
    assert_eq!(argo::health(&blocked).status, "Degraded");
    assert_eq!(flux::state(&blocked), Some(State::InProgress));
}

/// Of the causes, the operator reports a failed hook first.
#[test]
fn a_blocked_workload_also_says_that_its_rollout_was_aborted() {
    let message = |progressing: Value, blocked: Value| {
        let object = complete(json!({ "phase": "Blocked", "conditions": [progressing, blocked] }));
        assert_eq!(health(&object), "Degraded", "{object}");
        argo::health(&object).message
    };
    let mut aborted = condition("Progressing", "False", "RolloutAborted");
    aborted["message"] = json!("the rollout was aborted");
    let both = "HookUnsuccessful: the cause; the rollout was aborted";
    for (kind, value) in [
        ("UpdateBlocked", "True"),
        ("ScaleBlocked", "True"),
        ("HooksResolved", "False"),
    ] {
        let blocked = condition(kind, value, "HookUnsuccessful");
        assert_eq!(message(aborted.clone(), blocked.clone()), both, "{kind}");
        let progressing = condition("Progressing", "True", "RollingOut");
        assert_eq!(
            message(progressing, blocked),
            "HookUnsuccessful: the cause",
            "{kind}"
        );
    }
    let same = condition("UpdateBlocked", "True", "RolloutAborted");
    assert_eq!(message(aborted.clone(), same), "RolloutAborted: the cause");
    // The other conditions of an invalid spec may be those of an earlier one.
    let invalid = condition("InvalidSpec", "True", "InvalidSpec");
    assert_eq!(message(aborted, invalid), "InvalidSpec: the cause");
}

#[test]
fn a_spec_that_cannot_be_parsed_is_degraded() {
    let mut invalid = condition("InvalidSpec", "True", "InvalidSpec");
    invalid["observedGeneration"] = json!(3);
    let blocked = json!({ "phase": "Blocked", "reason": "InvalidSpec", "conditions": [invalid] });
    let mut changed = complete(blocked.clone());
    // Without the counts of an earlier status.
    let mut new = complete(json!({}));
    new["status"] = blocked;
    new["status"]["observedGeneration"] = json!(3);
    for object in [&mut changed, &mut new] {
        object["spec"]["replicas"] = json!(3_000_000_000_u32);
        assert_eq!(health(object), "Degraded", "{object}");
        assert_eq!(argo::health(object).message, "InvalidSpec: the cause");
        assert_eq!(flux::state(object), Some(State::Failed));
        object["metadata"]["generation"] = json!(4);
        assert_eq!(health(object), "Progressing", "corrected: {object}");
    }
}

/// Each sync ends the pause of a canary step.
#[test]
fn a_manifest_that_sets_paused_is_degraded() {
    let warning = |reason: &str| {
        let mut warning = condition("SpecWarning", "True", reason);
        warning["message"] = json!("the warning");
        warning
    };
    for (phase, value, reason) in [
        ("Complete", "True", "RolloutComplete"),
        ("Progressing", "True", "RollingOut"),
        ("Paused", "False", "PausedByCanaryPauseStep"),
    ] {
        let with = |warning: Value| {
            let conditions = [condition("Progressing", value, reason), warning];
            complete(json!({ "phase": phase, "reason": reason, "conditions": conditions }))
        };
        let paused = with(warning("PausedInManifest"));
        assert_eq!(health(&paused), "Degraded");
        assert_eq!(argo::health(&paused).message, "PausedInManifest: the warning");
        assert_eq!(flux::state(&paused), Some(State::Failed));
        // Other warnings are in the message.
        let other = with(warning("Odd"));
        let mut without = other.clone();
        without["status"]["conditions"].as_array_mut().unwrap().pop();
        assert_eq!(health(&other), health(&without));
        let message = argo::health(&without).message;
        assert_eq!(argo::health(&other).message, format!("{message}; the warning"));
        let mut past = other;
        past["status"]["conditions"][1]["status"] = json!("False");
        assert_eq!(argo::health(&past), argo::health(&without));
    }
    for reason in ["PausedInManifest", "Odd"] {
        let conditions = [condition("ScaleBlocked", "True", "PodRefused"), warning(reason)];
        let blocked = complete(json!({ "phase": "Blocked", "conditions": conditions }));
        assert_eq!(health(&blocked), "Degraded");
        let message = argo::health(&blocked).message;
        assert_eq!(message, "PodRefused: the cause; the warning");
    }
}

#[test]
fn a_pause_is_suspended_and_says_that_pods_are_missing() {
    for reason in ["Paused", "PausedByCanaryPauseStep"] {
        let conditions = [
            condition("Available", "False", "MinimumPodsUnavailable"),
            condition("Progressing", "False", reason),
        ];
        let paused = complete(json!({ "phase": "Paused", "reason": reason, "conditions": conditions }));
        assert_eq!(health(&paused), "Suspended");
        assert_eq!(
            argo::health(&paused).message,
            format!("{reason}: the cause; the cause")
        );
    }
}

#[test]
fn unknown_phases_of_other_kinds_are_not_healthy() {
    for (kind, status, expected) in [
        ("HookRun", json!({ "phase": "Odd" }), "Progressing"),
        (
            "HookRun",
            json!({ "phase": "Running", "reason": "HookErrors" }),
            "Degraded",
        ),
        (
            "HookRun",
            json!({ "phase": "Running", "reason": "HookCannotSucceed" }),
            "Degraded",
        ),
        ("HookRun", json!({ "phase": "Inconclusive" }), "Degraded"),
        (
            "HookTemplate",
            json!({ "conditions": [condition("Valid", "Odd", "SpecValid")] }),
            "Progressing",
        ),
        (
            "ExecutionHook",
            json!({ "conditions": [condition("Complete", "True", "ActionSucceeded")] }),
            "Degraded",
        ),
        (
            "ExecutionHook",
            json!({ "conditions": [condition("Complete", "Odd", "ActionSucceeded"),
                condition("Succeeded", "True", "ActionSucceeded")] }),
            "Progressing",
        ),
    ] {
        let mut object = object(kind, status);
        object["status"]["observedGeneration"] = json!(2);
        assert_eq!(health(&object), expected, "{object}");
    }
}

#[test]
fn every_action_has_a_definition_and_is_refused_where_it_is_disabled() {
    let names: BTreeSet<&str> = argo::definitions()
        .iter()
        .map(|definition| definition["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(ACTIONS));
    let new = object("GameDeployment", json!({}));
    for workload in [new, complete(json!({}))] {
        let actions = argo::actions(&workload);
        assert!(actions.keys().eq(ACTIONS), "{actions:?}");
        for (action, enabled) in actions {
            assert_eq!(enabled, action == "pause", "{action}");
            assert_eq!(argo::patch(&workload, &action).is_some(), enabled, "{action}");
        }
    }
}

#[test]
fn a_refused_action_says_why() {
    let refusal = |object: &Value, action: &str| argo::act(object, action).unwrap_err();
    let mut workload = complete(json!({ "updateRevision": "game-2", "currentRevision": "game-1" }));
    for (action, words) in [
        ("retry", "nothing to retry: no hook has failed"),
        (
            "restart-rollout",
            "nothing to restart: the rollout was not aborted",
        ),
        ("resume", "updates are not paused"),
        ("promote", "no canary step is waiting"),
    ] {
        let refusal = refusal(&workload, action);
        assert!(refusal.starts_with(words), "{action}: {refusal}");
    }
    workload["spec"]["updateStrategy"]["paused"] = json!(true);
    assert_eq!(refusal(&workload, "pause"), "updates are already paused");
    for (action, field, value, words) in [
        (
            "abort",
            "currentRevision",
            json!("game-2"),
            "there is no rollout to abort",
        ),
        (
            "abort",
            "currentRevision",
            json!(null),
            "there is no completed revision to roll back to",
        ),
        (
            "abort",
            "updateRevision",
            json!(null),
            "gamedeployment-operator has not recorded a revision",
        ),
        (
            "abort",
            "observedGeneration",
            json!(2),
            "gamedeployment-operator has not observed",
        ),
        (
            "promote",
            "observedGeneration",
            json!(2),
            "gamedeployment-operator has not observed",
        ),
        (
            "abort",
            "conditions",
            json!([condition("InvalidSpec", "True", "InvalidSpec")]),
            "the spec cannot be rolled out: the cause",
        ),
        (
            "abort",
            "rollback",
            json!({ "fromRevision": "game-2", "toRevision": "game-1" }),
            "the rollout is already aborted; to restart it, run restart-rollout",
        ),
        (
            "retry",
            "rollback",
            json!({ "fromRevision": "game-2", "toRevision": "game-1" }),
            "nothing to retry: no hook of a pod has failed; to restart the rollout, run restart-rollout",
        ),
        (
            "promote",
            "pauseConditions",
            json!([{ "reason": "PausedByStepBasedHook" }]),
            "the hook of the canary step did not succeed; to rerun it, run retry",
        ),
    ] {
        let mut changed = workload.clone();
        changed["status"][field] = value;
        without_nulls(&mut changed["status"]);
        let refusal = refusal(&changed, action);
        assert!(refusal.starts_with(words), "{action}: {refusal}");
    }
    workload["spec"]["updateStrategy"]["type"] = json!("Recreate");
    let refusal = refusal(&workload, "abort");
    assert!(refusal.contains("Recreate"), "{refusal}");
}

/// Argo CD would write a list in its place, which changes the template.
#[test]
fn an_empty_object_in_a_list_refuses_every_action() {
    let template = json!({ "template": { "spec": { "imagePullSecrets": [{}] } } });
    let hooks = json!({ "lifecycleHooks": [{ "name": "smoke", "hook": { "args": [{ "name": "a" }, {}] } }] });
    for spec in [template, hooks] {
        let mut workload = complete(json!({}));
        merge(&mut workload["spec"], spec);
        for action in ACTIONS {
            let command = action.replace("restart-rollout", "retry");
            let expected = format!(
                "a list in spec contains an empty object, which Argo CD cannot keep; use kubectl game {command}"
            );
            assert_eq!(argo::act(&workload, action), Err(expected), "{action}");
            assert_eq!(argo::patch(&workload, action), None, "{action}");
        }
    }
}

/// A script returns the whole object. Lua has no null and no empty objects.
#[test]
fn an_action_changes_only_its_own_fields() {
    let mut workload = complete(json!({}));
    let container = &mut workload["spec"]["template"]["spec"]["containers"][0];
    container["resources"] = json!({});
    container["args"] = json!([]);
    container["env"] = json!([{ "name": "SHARE", "value": "0.5" }]);
    workload["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": {} }]);
    workload["spec"]["updateStrategy"]["canary"] = json!({ "steps": [{ "pause": {} }] });
    let patch = argo::patch(&workload, "pause").unwrap();
    assert_eq!(patch, json!({ "spec": { "updateStrategy": { "paused": true } } }));
}

#[test]
fn every_key_is_one_that_argo_cd_reads() {
    let kinds: BTreeSet<String> = shared_api::crd::all()
        .iter()
        .map(|definition| format!("{}_{}", definition.spec.group, definition.spec.names.kind))
        .collect();
    let mut with_health = BTreeSet::new();
    for key in argo::DATA.keys() {
        let key = key.strip_prefix("resource.customizations.").unwrap();
        let (what, kind) = key.split_once('.').unwrap();
        assert!(
            ["health", "actions"].contains(&what) && kinds.contains(kind),
            "{key}"
        );
        with_health.extend((what == "health").then(|| kind.to_owned()));
    }
    // A HookAction has no status.
    let without: Vec<&String> = kinds.difference(&with_health).collect();
    assert_eq!(without, ["tkex.tencent.com_HookAction"]);
}
