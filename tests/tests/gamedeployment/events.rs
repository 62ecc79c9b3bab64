//! Events: every held pod gets the reason and the remedy; the workload gets a summary of many pods. Each is
//! emitted once, and a gauge reports the state while it lasts.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use operator_tests::fleet::{GAME, empty_now, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::json;
use shared_api::names::pod::SKIP_HOOK;
use test_kit::eventually;
use test_kit::node::{Behaviour, PodSelector};

use crate::fleet;

/// Kinds of object that events are about.
const POD: &str = "Pod";
pub(super) const WORKLOAD: &str = "GameDeployment";

/// Returns the events on objects of a kind with this reason and these words, each with its count.
async fn matching_events(fleet: &Fleet<'_>, kind: &str, reason: &str, words: &str) -> Vec<(String, i32)> {
    let events: Api<Event> = Api::namespaced(fleet.client(), &fleet.namespace);
    let events = events
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter();
    let about = events.filter_map(|event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
        let note = event.note.as_deref().unwrap_or_default();
        let is_match =
            regarding == Some(kind) && event.reason.as_deref() == Some(reason) && note.contains(words);
        is_match.then(|| (note.to_owned(), event.series.map_or(1, |series| series.count)))
    });
    about.collect()
}

/// Counts the events on objects of a kind with this reason and these words.
async fn count_events(fleet: &Fleet<'_>, kind: &str, reason: &str, words: &str) -> i32 {
    let events = matching_events(fleet, kind, reason, words).await;
    events.into_iter().map(|(_, count)| count).sum()
}

pub(super) async fn until_told(fleet: &Fleet<'_>, kind: &str, reason: &str, words: &str, times: i32) {
    eventually(operator_tests::SOON, || async {
        let events = matching_events(fleet, kind, reason, words).await;
        let count: i32 = events.iter().map(|(_, count)| count).sum();
        if count == times {
            return Ok(());
        }
        Err(format!(
            "{count} of {times} times {reason} on a {kind}: {events:?}; {:?}",
            fleet.status().await
        ))
    })
    .await;
}

async fn gauge(fleet: &Fleet<'_>, name: &str, label: &str) -> u64 {
    let name = format!("hookgate_gamedeployment_{name}{{");
    let labels = format!("gamedeployment=\"{GAME}\",{label}");
    fleet.metric(&name, &labels).await
}

async fn until_gauge(fleet: &Fleet<'_>, name: &str, label: &str, value: u64) {
    eventually(operator_tests::SOON, || async {
        let now = gauge(fleet, name, label).await;
        if now == value { Ok(()) } else { Err(now) }
    })
    .await;
}

/// Makes many changes that do not affect the reported state.
async fn stir(fleet: &Fleet<'_>, cost: usize) {
    for (number, name) in fleet.names().await.into_iter().enumerate() {
        fleet
            .annotate(
                &name,
                json!({ "controller.kubernetes.io/pod-deletion-cost": (cost + number).to_string() }),
            )
            .await;
    }
    fleet.set(json!({ "revisionHistoryLimit": 7 })).await;
    fleet.quiet().await;
}

#[tokio::test]
async fn every_pod_whose_hook_says_no_is_told_of_once_and_again_when_it_is_asked_again() {
    let mut fleet = fleet("events").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(3);
    fleet.scale(1);
    fleet
        .until(|status| status.pre_delete_hook_condition.len() == 3)
        .await;
    let reason = "HookUnsuccessful";
    fleet.says("ScaleBlocked", reason).await;
    for victim in fleet.marked().await {
        until_told(&fleet, POD, reason, &format!("pod {victim}: "), 1).await;
    }
    until_told(&fleet, WORKLOAD, reason, "", 1).await;
    until_gauge(&fleet, "hook_waiting_pods", "state=\"refused\"", 3).await;
    until_gauge(&fleet, "blocked", "condition=\"ScaleBlocked\"", 1).await;
    assert!(waiting_since(&fleet).await > 1_700_000_000);
    stir(&fleet, 0).await;
    fleet.start_workloads().await;
    stir(&fleet, 100).await;
    assert_eq!(count_events(&fleet, POD, reason, "").await, 3, "nothing is new");
    assert_eq!(
        count_events(&fleet, WORKLOAD, reason, "").await,
        1,
        "nothing is new"
    );
    fleet.retry("preDeleteUpdateStrategy");
    until_told(&fleet, POD, reason, "", 6).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preDeleteUpdateStrategy");
    fleet.settled(1).await;
    for victim in fleet.nodes.terminated_pods() {
        until_told(&fleet, POD, "PodDeleted", &format!("pod {victim}: "), 1).await;
    }
    until_gauge(&fleet, "hook_waiting_pods", "", 0).await;
    until_gauge(&fleet, "blocked", "", 0).await;
    assert_eq!(count_events(&fleet, POD, reason, "").await, 6);
    assert_eq!(
        count_events(&fleet, WORKLOAD, "PodDeleted", "").await,
        0,
        "that is told on the pods"
    );
}

/// Returns the time since which the longest-waiting pod waits; a gauge without further labels.
async fn waiting_since(fleet: &Fleet<'_>) -> u64 {
    let labels = format!("gamedeployment=\"{GAME}\"");
    fleet
        .metric(
            "hookgate_gamedeployment_hook_waiting_since_timestamp_seconds",
            &labels,
        )
        .await
}

/// A thousand leaving servers do not cause a thousand events.
#[tokio::test]
async fn of_many_pods_that_leave_the_first_ones_are_told_of_by_name_and_the_others_as_a_number() {
    let fleet = fleet("crowd").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(25, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.scale(1);
    fleet.settled(1).await;
    until_told(
        &fleet,
        WORKLOAD,
        "PodDeleted",
        "14 more pods; see the log for the full list",
        1,
    )
    .await;
    assert_eq!(count_events(&fleet, POD, "PodDeleted", "").await, 10);
    assert_eq!(count_events(&fleet, WORKLOAD, "PodDeleted", "").await, 1);
    // The workload's own events are few, and remain when the pods are gone.
    for (reason, words) in [
        ("PodsCreated", "created: "),
        ("HooksAsked", "HookRuns created: pre-delete-hook-"),
        ("PodsDeleted", "deleted: "),
    ] {
        let count = count_events(&fleet, WORKLOAD, reason, words).await;
        assert!((1..=10).contains(&count), "{reason}: {count}");
    }
}

#[tokio::test]
async fn every_pod_that_passes_without_a_question_is_told_of() {
    let fleet = fleet("events").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(2).await;
    let pods = fleet.all_pods().await;
    for name in fleet.marked().await {
        fleet
            .annotate(&name, json!({ SKIP_HOOK: pods[&name].metadata.uid }))
            .await;
        until_told(&fleet, WORKLOAD, "HookSkipped", &format!("pod {name}: "), 1).await;
    }
    fleet.settled(1).await;
    assert_eq!(count_events(&fleet, WORKLOAD, "HookSkipped", "").await, 2);
}

#[tokio::test]
async fn what_keeps_a_workload_from_going_on_is_told_once_and_shown_as_long_as_it_holds() {
    let fleet = fleet("events").await;
    fleet.launch(&game(2, hooked("nowhere"))).await;
    fleet.scale(1);
    fleet.says("ScaleBlocked", "HookTemplateMissing").await;
    until_told(
        &fleet,
        POD,
        "HookTemplateMissing",
        "create it. Continues automatically ",
        1,
    )
    .await;
    until_told(
        &fleet,
        WORKLOAD,
        "HookTemplateMissing",
        "1 pod is blocked by a hook: ",
        1,
    )
    .await;
    until_gauge(&fleet, "hook_waiting_pods", "state=\"blocked\"", 1).await;
    stir(&fleet, 10).await;
    assert_eq!(count_events(&fleet, POD, "HookTemplateMissing", "").await, 1);
    // Once on the workload before a pod waited, and once when one did.
    assert_eq!(count_events(&fleet, WORKLOAD, "HookTemplateMissing", "").await, 2);
    fleet.set(json!({ "preDeleteUpdateStrategy": null })).await;
    fleet.settled(1).await;
    until_gauge(&fleet, "blocked", "", 0).await;
    fleet
        .nodes
        .behave(PodSelector::image("game:broken"), Behaviour::CannotPull);
    fleet.set_image("game:broken").await;
    fleet.says("UpdateBlocked", "InPlaceStalled").await;
    until_told(&fleet, WORKLOAD, "InPlaceStalled", "ImagePullBackOff", 1).await;
    until_gauge(&fleet, "blocked", "condition=\"UpdateBlocked\"", 1).await;
    until_gauge(&fleet, "pods", "state=\"ready\"", 0).await;
    stir(&fleet, 20).await;
    assert_eq!(count_events(&fleet, WORKLOAD, "InPlaceStalled", "").await, 1);
    fleet.set(json!({ "minReadySeconds": -1 })).await;
    until_told(&fleet, WORKLOAD, "InvalidSpec", "spec.minReadySeconds", 1).await;
    until_gauge(&fleet, "blocked", "condition=\"InvalidSpec\"", 1).await;
    stir(&fleet, 30).await;
    assert_eq!(count_events(&fleet, WORKLOAD, "InvalidSpec", "").await, 1);
    fleet.set(json!({ "minReadySeconds": 0 })).await;
    fleet.set_image("game:v1").await;
    fleet.settled(1).await;
    until_gauge(&fleet, "blocked", "", 0).await;
    until_gauge(&fleet, "pods", "state=\"ready\"", 1).await;
    // Gauges disappear with their workload.
    let _ = fleet.kubectl(&["delete", "gamedeployment", GAME], "");
    eventually(operator_tests::SOON, || async {
        let text = fleet.workloads.as_ref().unwrap().get("/metrics").await;
        let left: Vec<String> = text
            .lines()
            .filter(|line| line.contains(GAME))
            .map(str::to_owned)
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn more_pods_than_the_status_shows_are_counted_and_nobody_is_told_of_again_and_again() {
    let fleet = fleet("many-events").await;
    fleet.launch(&game(105, hooked("nowhere"))).await;
    fleet.scale(1);
    let status = fleet.until(|status| status.hook_pending_replicas == 104).await;
    assert_eq!(status.pre_delete_hook_condition.len(), 100);
    let message = fleet.says("ScaleBlocked", "HookTemplateMissing").await;
    assert_has(&message, " more");
    until_told(&fleet, POD, "HookTemplateMissing", "", 100).await;
    let sent = || async { fleet.metric("hookgate_api_requests_total", "events").await };
    fleet.quiet().await;
    let before = sent().await;
    for number in 1..4 {
        fleet.set(json!({ "revisionHistoryLimit": number })).await;
        fleet.until(|_| true).await;
    }
    fleet.quiet().await;
    assert_eq!(sent().await, before);
    assert_eq!(count_events(&fleet, POD, "HookTemplateMissing", "").await, 100);
    assert!(count_events(&fleet, WORKLOAD, "HookTemplateMissing", "").await <= 3);
}

/// Each held pod gets one event, its run one, and the workload one at one pod and one at ten.
#[tokio::test]
async fn fifty_pods_held_by_a_hook_are_told_of_on_each_pod_and_hardly_on_the_workload() {
    let fleet = fleet("crowd").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(51, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(3);
    fleet.scale(1);
    fleet
        .until(|status| {
            let refused = status.pre_delete_hook_condition.iter();
            refused.filter(|entry| entry.phase.is_final()).count() == 50
        })
        .await;
    let reason = "HookUnsuccessful";
    until_told(&fleet, POD, reason, "", 50).await;
    for victim in fleet.marked().await {
        let next = format!(
            "To rerun the hook: kubectl game retry {GAME} -n {namespace} --hook pre-delete (or kubectl patch \
             gamedeployment {GAME} -n {namespace} --type=merge -p \
             '{{\"spec\":{{\"preDeleteUpdateStrategy\":{{\"retry\":true}}}}}}')",
            namespace = fleet.namespace
        );
        assert_eq!(
            count_events(&fleet, POD, reason, &format!("pod {victim}: HookRun ")).await,
            1
        );
        assert_eq!(count_events(&fleet, POD, reason, &next).await, 50);
        let shown = fleet.kubectl(&["describe", "pod", &victim], "");
        assert!(shown.contains(&next), "{next} is not in {shown}");
    }
    stir(&fleet, 10).await;
    let words = "blocked by a hook: ";
    let crowds = count_events(&fleet, WORKLOAD, reason, words).await;
    assert!((1..=2).contains(&crowds), "{crowds}");
    let next = format!("Next: kubectl game why {GAME} -n {}", fleet.namespace);
    assert_eq!(count_events(&fleet, WORKLOAD, reason, &next).await, crowds);
    let runs = count_events(
        &fleet,
        "HookRun",
        "FailureLimitExceeded",
        "Next: fix the cause, then run: kubectl game retry",
    )
    .await;
    assert_eq!(runs, 50);
    let events: Api<Event> = Api::namespaced(fleet.client(), &fleet.namespace);
    let all = events
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter();
    let ours = all.filter(|event| {
        event
            .reporting_controller
            .as_deref()
            .is_some_and(|who| who.ends_with("-operator"))
    });
    let (warnings, normal): (Vec<_>, Vec<_>) =
        ours.partition(|event| event.type_.as_deref() == Some("Warning"));
    // One for each pod, one for its run, and two for the workload: no more.
    assert!(warnings.len() <= 50 + 50 + 2, "{} warnings", warnings.len());
    // Created pods and started hooks: ten by name, and one for all others.
    assert!(normal.len() <= 2 * 11, "{} normal events", normal.len());
}
