//! Mistakes and limits of tenants, which call nobody of the platform at night.

use operator_tests::fleet::{Who, condition, game, hooked};
use operator_tests::{Fleet, GROUPS, Operator, SOON, merge, web};
use serde_json::{Value, json};
use test_kit::eventually;

use super::recording::{Recording, Target, minutes};
use super::release::quiet;
use super::verdict::judge_harmless;
use crate::PROGRAMS;
use crate::grants::Grant;

/// Builds a workload with its own name.
fn named(name: &str, replicas: usize, extra: Value) -> Value {
    let labels = json!({ "app": name });
    let mut manifest = game(replicas, extra);
    merge(
        &mut manifest,
        json!({
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels } }
            }
        }),
    );
    manifest
}

/// Allows the namespace no more pods than these.
async fn limit_pods(fleet: &Fleet<'_>, count: usize) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "pods" },
        "spec": { "hard": { "pods": count.to_string() } }
    });
    fleet.apply(&quota);
    eventually(SOON, || async {
        let quota = fleet.kubectl(&["get", "quota", "pods", "--output", "json"], "");
        let quota: Value = serde_json::from_str(&quota).unwrap();
        if quota["status"]["hard"].is_object() {
            Ok(())
        } else {
            Err(quota)
        }
    })
    .await;
}

/// Builds a run that reads a Secret for each of its measurements.
fn with_secret() -> Value {
    let header = json!({ "key": "Authorization",
        "valueFrom": { "secretKeyRef": { "name": "credentials", "key": "token" } } });
    let more = json!({
        "interval": "100ms", "successfulLimit": 1, "successCondition": "true",
        "provider": { "web": { "headers": [header] } }
    });
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": { "name": "by-hand" },
        "spec": { "metrics": [web("age", "http://127.0.0.1:1/", more)] }
    })
}

/// Builds a hook for an address without a listener, with endless retries.
fn unreachable() -> Value {
    let more = json!({ "interval": "100ms", "successfulLimit": 1, "successCondition": "true" });
    json!({ "metrics": [web("players", "http://127.0.0.1:1/", more)] })
}

/// Waits until a counter has grown.
async fn grows(operator: &Operator, name: &str, labels: &str) {
    let before = operator.metric(name, labels).await;
    eventually(SOON, || async {
        let now = operator.metric(name, labels).await;
        if now > before { Ok(()) } else { Err(now) }
    })
    .await;
}

/// A workload lacks its template, another one has no room in its namespace, nothing listens at the address of a hook,
/// and a hook reads a Secret although the release does not allow that.
#[tokio::test]
async fn mistakes_of_tenants_call_nobody() {
    let mut fleet = Fleet::on(crate::shared().await, PROGRAMS, "tenants").await;
    let right = Grant::new(Who::Hooks, "get", "secrets");
    let user = right.take_away(fleet.control_plane, &fleet.namespace).await;
    let kubeconfig = fleet.control_plane.kubeconfig_as(&user, &GROUPS).unwrap();
    let start = fleet.start_of(Who::Hooks, None).kubeconfig(&kubeconfig);
    fleet.start(Who::Hooks, &start).await;
    let fleet = fleet;
    fleet.launch(&named("cellar", 2, hooked("nowhere"))).await;
    fleet.launch(&named("market", 1, json!({}))).await;
    fleet.hook("unreachable", unreachable()).await;
    fleet.launch(&named("island", 2, hooked("unreachable"))).await;
    limit_pods(&fleet, 5).await;
    fleet.apply(&named("market", 3, json!({})));
    fleet.apply(&named("cellar", 1, hooked("nowhere")));
    fleet.apply(&named("island", 1, hooked("unreachable")));
    fleet.apply(&with_secret());
    for (name, reason) in [("cellar", "HookTemplateMissing"), ("island", "HookErrors")] {
        fleet
            .until_of(name, |status| {
                condition(status, "ScaleBlocked").is_some_and(|found| found.1 == reason)
            })
            .await;
    }
    let (workloads, hooks) = (fleet.workloads.as_ref().unwrap(), fleet.hooks.as_ref().unwrap());
    let own = [
        Target::new(
            Who::Workloads.name(),
            "gamedeployment-operator-0",
            workloads.address,
        ),
        Target::new(Who::Hooks.name(), "hook-operator-0", hooks.address),
    ];
    let mut targets = quiet().await.but(&[Who::Workloads.name(), Who::Hooks.name()]);
    targets.extend(&own);
    let mut recording = Recording::default();
    for round in 0..6 {
        grows(hooks, "hookgate_hook_measurements_total", "phase=\"Error\"").await;
        // The pauses between two attempts double.
        if round < 4 {
            let name = "hookgate_gamedeployment_actions_total";
            grows(workloads, name, "outcome=\"refused\"").await;
        }
        recording.scrape(&targets, minutes(5)).await;
    }
    let refused = workloads
        .metric("hookgate_api_requests_total", "code=\"403-policy\"")
        .await;
    assert!(refused > 0, "the quota refused nothing");
    judge_harmless("hooks and quotas of tenants", &recording);
}
