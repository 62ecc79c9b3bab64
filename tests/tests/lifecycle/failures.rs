//! Failures: what ends a rollout, what lets it continue, and how a person starts a hook again.

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};
use shared_api::{GameDeployment, HookRun};

use crate::{Rollouts, hook, retry_request, rollout};

fn with(mut hook: Value, more: Value) -> Value {
    operator_tests::merge(&mut hook, more);
    hook
}

#[tokio::test]
async fn abort_ends_the_rollout_until_a_request_runs_the_hook_again() {
    let rollouts = Rollouts::start("abort").await;
    rollouts.answer("half", "yes");
    let half = with(hook("half", &json!("50%")), json!({ "failurePolicy": "Abort" }));
    rollouts
        .fleet
        .apply(&rollout(4, &[half], json!({ "maxUnavailable": 4 })));
    rollouts.until_complete(4).await;
    rollouts.answer("half", "no");
    rollouts.fleet.set_image("game:v2").await;
    let message = rollouts.fleet.says("UpdateBlocked", "LifecycleHookAborted").await;
    for part in [
        "lifecycle hook half: HookRun lifecycle-",
        "is Failed",
        "kubectl annotate gamedeployment",
    ] {
        assert!(message.contains(part), "{message}");
    }
    rollouts.fleet.says("Progressing", "LifecycleHookAborted").await;
    rollouts
        .fleet
        .told("LifecycleHookFailed lifecycle hook half, attempt 1: HookRun lifecycle-")
        .await;
    rollouts
        .fleet
        .told("LifecycleHookAborted lifecycle hook half: HookRun lifecycle-")
        .await;
    let status = rollouts.fleet.status().await;
    assert_eq!(
        (status.phase.as_deref(), status.updated_replicas),
        (Some("Blocked"), 2)
    );
    rollouts.fleet.quiet().await;
    assert_eq!(rollouts.attempts(), 2);
    rollouts.answer("half", "yes");
    // The command of the message.
    let command = message.split("rerun the hook: kubectl ").nth(1).unwrap();
    let command = command.replace("$(date +%s)", "now");
    let words: Vec<&str> = command.split_whitespace().collect();
    let _ = rollouts.fleet.kubectl(&words, "");
    rollouts.until_complete(4).await;
    assert_eq!(rollouts.attempts(), 3);
    let entry = &rollouts.fleet.status().await.lifecycle_hooks[0];
    assert_eq!(
        (entry.attempts, entry.last_handled_retry.as_deref()),
        (2, Some("now"))
    );
    let order = rollouts.order.check(&[("half", 2)]);
    assert_eq!(order, [["half"], ["half"]]);
}

#[tokio::test]
async fn ignore_reports_the_failure_and_retry_tries_again() {
    let rollouts = Rollouts::start("retry").await;
    let hooks = [
        with(
            hook("before", &json!("Pre")),
            json!({ "failurePolicy": "Ignore" }),
        ),
        hook("again", &json!(1)),
    ];
    rollouts.answer("before", "no");
    rollouts.answer("again", "no");
    rollouts
        .fleet
        .apply(&rollout(2, &hooks, json!({ "maxUnavailable": 2 })));
    let entry = rollouts.until("again", |entry| entry.reason.is_some()).await;
    assert_eq!(
        (entry.phase.as_str(), entry.reason.as_deref()),
        ("Waiting", Some("LifecycleHookFailed"))
    );
    assert!(entry.message.unwrap().contains("; retrying at "));
    assert_eq!(rollouts.running("game:v1").await, 1);
    rollouts
        .fleet
        .told("LifecycleHookFailed lifecycle hook before, attempt 1")
        .await;
    rollouts.answer("again", "yes");
    retry_request(&rollouts.fleet, "lifecycle/again=1");
    rollouts.until_complete(2).await;
    let status = rollouts.fleet.status().await;
    let phases: Vec<_> = status
        .lifecycle_hooks
        .iter()
        .map(|entry| entry.phase.as_str())
        .collect();
    assert_eq!(phases, ["Ignored", "Successful"]);
    // The HookRuns of failed attempts stay with their revision.
    let runs = rollouts.fleet.until_runs(|runs| runs.len() == 2).await;
    let owners: Vec<_> = runs
        .iter()
        .flat_map(|run| run.metadata.owner_references.clone().unwrap())
        .collect();
    assert!(
        owners.iter().all(|owner| owner.kind == "ControllerRevision"),
        "{owners:?}"
    );
}

/// The garbage collector follows the owners.
#[tokio::test]
async fn kept_hook_runs_are_deleted_with_their_revision() {
    let rollouts = Rollouts::start("retain").await;
    rollouts.answer("after", "yes");
    let after = with(hook("after", &json!("Post")), json!({ "retainPolicy": "Always" }));
    let mut game = rollout(1, &[after], json!({}));
    game["spec"]["revisionHistoryLimit"] = json!(0);
    rollouts.fleet.apply(&game);
    rollouts.until_complete(1).await;
    let first = rollouts.fleet.until_runs(|runs| runs.len() == 1).await;
    let revision = first[0].metadata.owner_references.as_ref().unwrap()[0]
        .name
        .clone();
    rollouts.fleet.set_image("game:v2").await;
    rollouts.until_complete(1).await;
    let is_other = |run: &HookRun| run.metadata.uid != first[0].metadata.uid;
    let _ = rollouts
        .fleet
        .until_runs(|runs| runs.len() == 1 && runs.iter().all(is_other))
        .await;
    let found = rollouts.fleet.revisions().get_opt(&revision).await.unwrap();
    assert!(found.is_none(), "{found:?}");
}

#[tokio::test]
async fn a_hook_that_outlasts_its_time_is_stopped() {
    let rollouts = Rollouts::start("timeout").await;
    rollouts.answer("slow", "wait");
    let slow = with(hook("slow", &json!("Pre")), json!({ "timeoutSeconds": 2 }));
    rollouts.fleet.apply(&rollout(2, &[slow], json!({})));
    let message = rollouts.fleet.says("UpdateBlocked", "LifecycleHookAborted").await;
    assert!(
        message.contains("the hook exceeded its timeoutSeconds; last attempt: HookRun "),
        "{message}"
    );
    let runs = rollouts.fleet.until_runs(|runs| runs.len() == 1).await;
    assert_eq!(runs[0].spec.terminate, Some(true));
    assert_eq!(rollouts.running("game:v1").await, 0);
}

#[tokio::test]
async fn problems_of_the_spec_are_named_by_path() {
    let rollouts = Rollouts::start("invalid").await;
    let kind = ApiResource::erase::<GameDeployment>(&());
    let api: Api<DynamicObject> =
        Api::namespaced_with(rollouts.fleet.client(), &rollouts.fleet.namespace, &kind);
    let create = async |hooks: &[Value]| {
        let manifest = serde_json::from_value(rollout(1, hooks, json!({}))).unwrap();
        api.create(&PostParams::default(), &manifest).await
    };
    for (hooks, part) in [
        (
            json!([{ "name": "a", "hook": { "templateName": "ask" } }]),
            "trigger",
        ),
        (
            json!([with(
                hook("a", &json!("Pre")),
                json!({ "trigger": { "type": "Middle" } })
            )]),
            "trigger.type",
        ),
        (
            json!([hook("a", &json!("Pre")), hook("a", &json!("Pre"))]),
            "Duplicate value",
        ),
        (json!([hook(&"a".repeat(41), &json!("Pre"))]), "lifecycleHooks"),
        (json!([hook("a", &json!("many"))]), "progressPoint"),
    ] {
        let said = create(hooks.as_array().unwrap()).await.unwrap_err().to_string();
        assert!(said.contains(part), "{hooks}: {said}");
    }
    // Old API servers evaluate no rules that compare fields.
    let both = with(hook("a", &json!("Pre")), json!({ "jobSpec": {} }));
    match create(&[both]).await {
        Ok(_) => {
            let message = rollouts.fleet.says("InvalidSpec", "InvalidSpec").await;
            assert_eq!(
                message,
                "spec.lifecycleHooks[0]: must set only one of execNewPod, jobSpec, hook"
            );
        }
        Err(refused) => assert!(
            refused
                .to_string()
                .contains("exactly one of execNewPod, jobSpec, hook"),
            "{refused}"
        ),
    }
}
