//! Hooks that keep failing with errors or can never succeed: status, events and HookRuns have the reason, and lose it when the
//! cause is removed.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use kube::ResourceExt;
use kube::api::PostParams;
use operator_tests::fleet::{GAME, condition, empty_now, game, hooked, until_empty};
use operator_tests::{Fleet, SOON, assert_has, free_address, merge, web};
use serde_json::{Value, json};
use shared_api::game_deployment::HookCondition;
use shared_api::hook_run::{HookRunSpec, Measurement, MetricResult};
use shared_api::{GameDeploymentStatus, HookRun, HookRunStatus, Phase};
use test_kit::{Answer, Webhook, eventually};

use crate::events::until_told;
use crate::fleet;

/// Port of the pods that nobody listens on.
const CLOSED_PORT: u16 = 9092;

/// Words of remedies, which belong into the message of the condition.
const REMEDIES: [&str; 6] = [
    "kubectl",
    "retry",
    "annotate",
    "set spec.",
    "To rerun the hook",
    "correct",
];

/// Builds a hook that polls the closed port of the pod.
fn polls_closed_port() -> Value {
    let mut hook = until_empty();
    let url = format!("http://{{{{ args.PodIP }}}}:{CLOSED_PORT}");
    hook["metrics"][0]["provider"]["web"]["url"] = json!(url);
    hook
}

/// Waits until the workload is blocked by this condition for this reason, and returns its status and the message.
async fn blocked(fleet: &Fleet<'_>, kind: &str, reason: &str) -> (GameDeploymentStatus, String) {
    let message = fleet.says(kind, reason).await;
    let status = fleet
        .until(|status| condition(status, kind).is_some_and(|found| found.1 == reason))
        .await;
    let found = condition(&status, kind).unwrap();
    assert_eq!(found.0.as_str(), "True", "{status:?}");
    assert_eq!(status.phase.as_deref(), Some("Blocked"), "{status:?}");
    (status, message)
}

/// Checks that an entry has this reason, and the cause alone as its message, which ends with these words.
#[track_caller]
fn assert_cause(entry: &HookCondition, reason: &str, ending: &str) {
    assert_eq!(entry.reason.as_deref(), Some(reason), "{entry:?}");
    let message = entry.message.as_deref().unwrap_or_default();
    assert!(message.ends_with(ending), "{ending}: {message}");
    for remedy in REMEDIES {
        assert!(!message.contains(remedy), "{remedy}: {message}");
    }
}

/// Waits until a gauge of waiting pods with this state has this value.
async fn until_waiting(fleet: &Fleet<'_>, state: &str, count: u64) {
    let labels = format!("gamedeployment=\"{GAME}\",state=\"{state}\"");
    eventually(SOON, || async {
        let name = "hookgate_gamedeployment_hook_waiting_pods{";
        let now = fleet.metric(name, &labels).await;
        if now == count { Ok(()) } else { Err(now) }
    })
    .await;
}

#[tokio::test]
async fn errors_in_a_row_block_a_scale_down_until_the_endpoint_answers() {
    let fleet = fleet("hook-errors").await;
    fleet.hook("empty", polls_closed_port()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.scale(1);
    let (status, message) = blocked(&fleet, "ScaleBlocked", "HookErrors").await;
    let entry = &status.pre_delete_hook_condition[0];
    let (pod, run) = (entry.pod_name.clone(), entry.hook_run.clone().unwrap());
    let address = SocketAddr::new(fleet.nodes.pod(&pod).ip().unwrap(), CLOSED_PORT);
    let cause = format!("metric players: connection refused by {address}");
    assert_cause(entry, "HookErrors", &cause);
    assert!(
        entry
            .message
            .as_deref()
            .unwrap()
            .starts_with(&format!("HookRun {run} "))
    );
    assert_eq!(
        (entry.phase, entry.conflicting_hook_run.as_deref()),
        (Phase::Running, None)
    );
    assert_has(&message, &format!("pod {pod}: HookRun {run} "));
    assert_has(&message, &cause);
    until_waiting(&fleet, "erroring", 1).await;
    has_many_errors(&fleet, &run).await;
    until_told(&fleet, "Pod", "HookErrors", &format!("pod {pod}: "), 1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    // The endpoint answers again: first that the server has players, then that it has none.
    let server = Webhook::start_at(address).unwrap();
    server.otherwise(Answer::json(json!({ "players": 3 })));
    fleet.cleared("ScaleBlocked").await;
    let status = fleet
        .until(|status| {
            let mut entries = status.pre_delete_hook_condition.iter();
            entries.all(|entry| entry.reason.is_none())
        })
        .await;
    assert_eq!(status.phase.as_deref(), Some("Progressing"));
    assert_eq!(
        status.pre_delete_hook_condition[0].hook_run.as_ref(),
        Some(&run),
        "it is the same run"
    );
    until_waiting(&fleet, "erroring", 0).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    server.otherwise(Answer::json(json!({ "players": 0 })));
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod]));
    until_told(&fleet, "Pod", "HookErrors", "", 1).await;
}

/// Waits until the run has had more errors than it takes to report them, and checks its status.
async fn has_many_errors(fleet: &Fleet<'_>, name: &str) {
    let runs = fleet
        .until_runs(|runs| {
            let status = runs.first().and_then(|run| run.status.as_ref());
            let metric = status.and_then(HookRunStatus::erroring_metric);
            metric.is_some_and(|metric| metric.consecutive_error >= 20)
        })
        .await;
    assert_eq!(runs[0].name_any(), name);
    let status = runs[0].status.as_ref().unwrap();
    let seen = (status.phase, status.reason.as_deref());
    assert_eq!(seen, (Phase::Running, Some("HookErrors")), "{status:?}");
    let last = newest(&status.metric_results[0]);
    assert_eq!(last.reason.as_deref(), Some("Unreachable"), "{status:?}");
}

/// Returns the newest measurement of a metric.
#[track_caller]
fn newest(result: &MetricResult) -> &Measurement {
    let last = result.measurements.last();
    last.unwrap_or_else(|| panic!("no measurement: {result:?}"))
}

#[tokio::test]
async fn a_hook_without_a_limit_blocks_at_its_first_measurement() {
    let fleet = fleet("hook-errors").await;
    let mut endless = until_empty();
    let metric = endless["metrics"][0].as_object_mut().unwrap();
    metric.remove("successfulLimit");
    fleet.hook("empty", endless).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.scale(1);
    let (status, message) = blocked(&fleet, "ScaleBlocked", "HookCannotSucceed").await;
    let entry = &status.pre_delete_hook_condition[0];
    assert_eq!(entry.reason.as_deref(), Some("HookCannotSucceed"), "{entry:?}");
    let run = entry.hook_run.clone().unwrap();
    let cause = format!(
        "HookRun {run} cannot succeed: metric players has neither count, successfulLimit nor consecutiveSuccessfulLimit"
    );
    assert_has(entry.message.as_deref().unwrap(), &cause);
    assert_has(&message, &cause);
    until_told(&fleet, "Pod", "HookCannotSucceed", "", 1).await;
    until_waiting(&fleet, "erroring", 1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0, "it measured no players");
    fleet.change_hook("empty", until_empty()).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

#[tokio::test]
async fn errors_of_a_pre_delete_hook_block_a_rolling_update() {
    let fleet = fleet("hook-errors").await;
    fleet.hook("empty", polls_closed_port()).await;
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "type": "RollingUpdate", "maxUnavailable": 1 });
    fleet.launch(&game(2, spec)).await;
    let old = fleet.names().await;
    fleet.set_image("game:v2").await;
    let (status, message) = blocked(&fleet, "UpdateBlocked", "HookErrors").await;
    assert_eq!(condition(&status, "ScaleBlocked"), None);
    assert_has(&message, "connection refused by ");
    let entry = &status.pre_delete_hook_condition[0];
    assert_eq!(entry.reason.as_deref(), Some("HookErrors"), "{entry:?}");
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.change_hook("empty", until_empty()).await;
    fleet.all_run("game:v2", 2).await;
    let status = fleet.settled(2).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    assert_eq!(fleet.nodes.terminated_pods(), old);
}

#[tokio::test]
async fn errors_of_a_canary_step_block_the_update_until_the_endpoint_answers() {
    let fleet = fleet("hook-errors").await;
    let address = free_address();
    let healthy = json!({ "metrics": [{
        "name": "healthy", "interval": "100ms", "successfulLimit": 1, "successCondition": "result == \"yes\"",
        "provider": { "web": { "url": format!("http://{address}/health"), "jsonPath": "{$.healthy}" } }
    }] });
    fleet.hook("healthy", healthy).await;
    let steps = json!([{ "partition": 1 }, { "hook": { "templateName": "healthy" } }]);
    let canary = json!({ "updateStrategy": { "canary": { "steps": steps } } });
    fleet.launch(&game(2, canary)).await;
    fleet.set_image("game:v2").await;
    let (status, message) = blocked(&fleet, "UpdateBlocked", "HookErrors").await;
    assert_has(&message, "canary step 2: HookRun canary-");
    assert_has(
        &message,
        &format!("metric healthy: connection refused by {address}"),
    );
    assert_eq!(status.updated_ready_replicas, 1);
    let strategy = fleet.game().await.spec.update_strategy.unwrap();
    assert_ne!(strategy.paused, Some(true), "nothing has failed");
    fleet.told("HookErrors canary step 2: HookRun canary-").await;
    assert_eq!(fleet.nodes.terminations().len(), 1, "the pod of the first step");
    let server = Webhook::start_at(address).unwrap();
    server.on("/health", Answer::json(json!({ "healthy": "yes" })));
    fleet.cleared("UpdateBlocked").await;
    fleet.all_run("game:v2", 2).await;
    fleet.settled(2).await;
}

#[tokio::test]
async fn entries_have_causes_and_the_condition_has_the_remedy_once() {
    let fleet = fleet("hook-errors").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(3);
    fleet.scale(1);
    let status = fleet
        .until(|status| {
            let failed = status.pre_delete_hook_condition.iter();
            failed.filter(|entry| entry.phase == Phase::Failed).count() == 2
        })
        .await;
    for entry in &status.pre_delete_hook_condition {
        assert_cause(entry, "HookUnsuccessful", "; the pod is kept");
        let message = entry.message.as_deref().unwrap();
        assert_has(
            message,
            " is Failed: metric players Failed: \"3\" does not satisfy",
        );
    }
    let (_, reason, message) = condition(&status, "ScaleBlocked").unwrap();
    assert_eq!(reason.as_str(), "HookUnsuccessful");
    assert_eq!(message.matches("retry to true").count(), 1, "{message}");
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preDeleteUpdateStrategy");
    fleet.settled(1).await;
}

#[tokio::test]
async fn an_entry_names_the_run_that_has_the_name() {
    let fleet = fleet("hook-errors").await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.scale(1);
    let (status, _) = blocked(&fleet, "ScaleBlocked", "HookTemplateMissing").await;
    let entry = &status.pre_delete_hook_condition[0];
    assert_eq!(entry.reason.as_deref(), Some("HookTemplateMissing"));
    let words = "its hook cannot run, because HookTemplate empty does not exist; create it";
    assert_eq!(entry.message.as_deref(), Some(words));
    let id = entry.pod_name.rsplit('-').next().unwrap();
    let revision = status.update_revision.as_deref().unwrap();
    let taken = format!("pre-delete-hook-{revision}-{id}-empty");
    let spec: HookRunSpec = serde_json::from_value(empty_now()).unwrap();
    let run = HookRun::new(&taken, spec);
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
    fleet.hook("empty", empty_now()).await;
    let (status, _) = blocked(&fleet, "ScaleBlocked", "HookRunNameInvalid").await;
    let entry = &status.pre_delete_hook_condition[0];
    assert_eq!(entry.reason.as_deref(), Some("HookRunNameInvalid"), "{entry:?}");
    let runs = (entry.hook_run.as_deref(), entry.conflicting_hook_run.as_deref());
    assert_eq!(runs, (None, Some(taken.as_str())));
    fleet.delete_run(&taken).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

/// Returns metrics that poll without success, each with the phase and the reason of its measurements.
fn unsuccessful(server: &Webhook) -> Vec<(Value, Phase, Option<&'static str>)> {
    server.on("/words", Answer::json(json!({ "age": "many" })));
    server.on("/young", Answer::json(json!({ "age": 5 })));
    server.on("/other", Answer::json(json!({ "years": 45 })));
    let empty = json!({ "resultType": "vector", "result": [] });
    let empty = json!({ "status": "success", "data": empty });
    server.on("/api/v1/query", Answer::json(empty));
    let older = "asInt(result) > 30";
    let polls = json!({ "interval": "100ms", "successfulLimit": 1, "successCondition": older });
    let answer = |name: &str, path: &str| web(name, &server.url(path), polls.clone());
    let series = |name: &str, on_no_data: &str| {
        let provider = json!({ "prometheus": { "address": server.url(""), "query": "players" } });
        let mut metric = json!({ "name": name, "provider": provider, "onNoData": on_no_data });
        merge(&mut metric, polls.clone());
        metric["successCondition"] = json!("result[0] > 30");
        metric
    };
    let nobody = format!("http://{}/", free_address());
    vec![
        (
            web("unreachable", &nobody, polls.clone()),
            Phase::Error,
            Some("Unreachable"),
        ),
        (answer("status", "/missing"), Phase::Error, Some("Status")),
        (answer("path", "/other"), Phase::Error, Some("PathNotFound")),
        (
            answer("condition", "/words"),
            Phase::Error,
            Some("ConditionFailed"),
        ),
        (series("nothing", "Error"), Phase::Error, Some("NoData")),
        (series("nobody", "Failed"), Phase::Failed, Some("NoData")),
        (answer("young", "/young"), Phase::Failed, None),
    ]
}

#[tokio::test]
async fn measurements_have_a_reason_unless_a_condition_decided() {
    let fleet = fleet("hook-errors").await;
    let server = Webhook::start().unwrap();
    let cases = unsuccessful(&server);
    let metrics: Vec<&Value> = cases.iter().map(|(metric, ..)| metric).collect();
    let spec: HookRunSpec = serde_json::from_value(json!({ "metrics": metrics })).unwrap();
    let run = HookRun::new("unsuccessful", spec);
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
    let runs = fleet
        .until_runs(|runs| {
            let status = runs.first().and_then(|run| run.status.as_ref());
            status.is_some_and(|status| {
                let measured = status.metric_results.iter();
                measured.filter(|result| !result.measurements.is_empty()).count() == cases.len()
                    && status.reason.as_deref() == Some("HookErrors")
            })
        })
        .await;
    let status = runs[0].status.as_ref().unwrap();
    assert_eq!(status.phase, Phase::Running, "{status:?}");
    for (result, (metric, phase, reason)) in status.metric_results.iter().zip(&cases) {
        assert_eq!(result.name, metric["name"], "{status:?}");
        let last = newest(result);
        assert_eq!(
            (last.phase, last.reason.as_deref()),
            (*phase, *reason),
            "{result:?}"
        );
    }
    fleet.delete_run("unsuccessful").await;
    fleet.until_runs(<[HookRun]>::is_empty).await;
}
