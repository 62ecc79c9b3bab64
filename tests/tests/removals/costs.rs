//! Counted costs of removals: requests of gamedeployment-operator and of the webhook to the API server, and reviews by
//! the webhook.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::fleet::{Who, condition, game, hooked};
use operator_tests::{SOON, merge};
use serde_json::{Value, json};
use shared_api::HookTemplate;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK};
use test_kit::api_proxy::{Entry, Outcome};
use test_kit::{ApiProxy, eventually};

use crate::condition::audit_log;
use crate::deploy::LABEL;
use crate::faults::delete;
use crate::guarded::{Guarded, evict, guarded_game};
use crate::installation::bad_template;

/// Number of pods of a workload.
const PODS: usize = 4;
/// Check of the removal guard by gamedeployment-operator.
const CHECK: &str = "dry run: patch pods";
/// Time limit for the first successful check: it is repeated every minute.
const CHECKED: Duration = Duration::from_mins(2);
/// Labels of the metric for deletions of all kinds.
const DELETIONS: [&str; 1] = ["operation=\"delete\""];
/// Labels of the metric for reviews by the removal guard.
const REMOVALS: [&str; 1] = ["path=\"removals\""];
/// Beginning of the webhook's user: the tests install it in namespaces with this prefix.
const WEBHOOK: &str = "system:serviceaccount:admission-";

/// Number of writes, by verb and resource.
type Counts = BTreeMap<String, usize>;

/// Counts the writes of gamedeployment-operator after the first `from` requests, except those of the status
/// of GameDeployments, whose number depends on the number of decisions. A write that conflicts with a write
/// of a kubelet is repeated, and counted once. Reads are not counted: the operator reads an object directly
/// only after a conflict, or if a watch is late.
fn writes(proxy: &ApiProxy, from: usize) -> Counts {
    let mut counts = Counts::new();
    for Entry { call, outcome, .. } in proxy.requests().into_iter().skip(from) {
        let is_read = ["get", "list", "watch"].contains(&call.verb);
        let is_counted = ["gamedeployments", "pods", "pods/status", "hookruns"].contains(&&*call.resource);
        if is_read || !is_counted || outcome == Outcome::Status(409) {
            continue;
        }
        let kind = if call.query.contains("dryRun") {
            "dry run: "
        } else {
            ""
        };
        // Deletes several HookRuns, or only one.
        let verb = call.verb.trim_end_matches("collection");
        *counts
            .entry(format!("{kind}{verb} {}", call.resource))
            .or_default() += 1;
    }
    counts
}

fn counts(expected: &[(&str, usize)]) -> Counts {
    let counts = expected
        .iter()
        .map(|(write, count)| ((*write).to_owned(), *count));
    counts.collect()
}

/// Costs of the launch of a workload and of the deletion of all its pods but one.
struct Life {
    writes: Counts,
    /// Number of checks of the guard until the launch was complete.
    checks: usize,
    /// Number of reviews by the removal guard after the launch.
    reviews: u64,
    /// Minor version of the API server.
    minor_version: u32,
}

impl Life {
    async fn of(name: &str, policy: &str) -> Self {
        let mut guarded = Guarded::new(name).await;
        let proxy = ApiProxy::start(guarded.fleet.control_plane).unwrap();
        guarded.fleet.start_behind(&proxy, Who::Workloads).await;
        let fleet = &guarded.fleet;
        let changes = json!({ "disruption": { "policy": policy } });
        fleet.launch(&guarded_game(PODS, changes)).await;
        if policy == "Ask" {
            await_guard(&guarded).await;
        }
        fleet.settled(PODS).await;
        let checks = writes(&proxy, 0).remove(CHECK).unwrap_or(0);
        let earlier = guarded.count_reviews(&REMOVALS).await;
        // One by one: several HookRuns may be deleted in one call.
        for replicas in (1..PODS).rev() {
            fleet.scale(replicas);
            fleet.settled(replicas).await;
        }
        let mut writes = writes(&proxy, 0);
        assert_eq!(writes.remove(CHECK).unwrap_or(0), checks, "{writes:?}");
        assert_eq!(fleet.nodes.terminations().len(), PODS - 1);
        Self {
            writes,
            checks,
            reviews: guarded.count_reviews(&REMOVALS).await - earlier,
            minor_version: fleet.control_plane.minor_version(),
        }
    }
}

/// Waits until the operator reports that the guard is in effect.
async fn await_guard(guarded: &Guarded) {
    eventually(CHECKED, || async {
        match condition(&guarded.fleet.status().await, "RemovalsGuarded") {
            Some((status, ..)) if status == "True" => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// Returns the length of the audit log.
fn audit_log_end(guarded: &Guarded) -> u64 {
    let log = guarded.fleet.control_plane.audit_log().unwrap();
    std::fs::metadata(log).unwrap().len()
}

/// Returns the successful writes of the webhook in the namespace after this offset in the audit log, in
/// bytes: the verb, the resource and the name of each.
fn writes_of_webhook(guarded: &Guarded, from: u64) -> Vec<String> {
    let text = audit_log(guarded, from);
    // The last line may be incomplete.
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_counted = |entry: &Value| {
        let user = entry["impersonatedUser"]["username"].as_str().unwrap_or_default();
        user.starts_with(WEBHOOK)
            && entry["objectRef"]["namespace"] == guarded.fleet.namespace.as_str()
            && entry["responseStatus"]["code"]
                .as_u64()
                .is_some_and(|code| code < 300)
    };
    let describe = |entry: Value| {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &entry["objectRef"];
        let words = [&entry["verb"], &object["resource"], &object["name"]].map(word);
        words.join(" ")
    };
    entries.filter(is_counted).map(describe).collect()
}

/// Waits until the webhook has made exactly these writes since this length of the audit log.
async fn await_writes_of_webhook(guarded: &Guarded, from: u64, expected: &[String]) {
    eventually(SOON, || async {
        let found = writes_of_webhook(guarded, from);
        if found == expected { Ok(()) } else { Err(found) }
    })
    .await;
}

/// The operator checks the guard with dry runs, whose number does not depend on that of the pods. Before Kubernetes 1.28,
/// the API server calls the webhook for the writes of the operator as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_pod_costs_no_additional_write_and_its_workload_only_the_finalizer() {
    let (guarded, unguarded) = tokio::join!(
        Life::of("costs-guarded", "Ask"),
        Life::of("costs-unguarded", "Unguarded")
    );
    let deleted = PODS - 1;
    let mut of_pods = counts(&[
        ("create pods", PODS),
        ("patch pods/status", PODS),
        ("patch pods", deleted),
        ("create hookruns", deleted),
        ("delete pods", deleted),
        ("delete hookruns", deleted),
    ]);
    assert_eq!(unguarded.writes, of_pods);
    assert_eq!((unguarded.checks, unguarded.reviews), (0, 0));
    of_pods.insert("patch gamedeployments".to_owned(), 1);
    assert_eq!(guarded.writes, of_pods);
    assert_ne!(guarded.checks, 0);
    if guarded.minor_version >= 28 {
        assert_eq!(guarded.reviews, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_request_costs_one_write_its_repetition_none_and_its_execution_no_more_than_a_scale_down() {
    let mut guarded = Guarded::new("costs-request").await;
    let proxy = ApiProxy::start(guarded.fleet.control_plane).unwrap();
    guarded.fleet.start_behind(&proxy, Who::Workloads).await;
    let pods = guarded.launch(2, json!({ "maxUnavailable": 2 })).await;
    guarded.occupy(&pods, 2);
    await_guard(&guarded).await;
    guarded.fleet.settled(2).await;
    let (from, earlier) = (audit_log_end(&guarded), proxy.requests().len());
    let (first, last) = (pods.first().unwrap(), pods.last().unwrap());
    let (ann, bob) = (guarded.pods_as("ann"), guarded.pods_as("bob"));
    for _ in 0..3 {
        assert_eq!(delete(&ann, first).await, 403);
    }
    for _ in 0..3 {
        let eviction = json!({ "metadata": { "name": last } });
        assert_eq!(evict(&ann, &eviction).await, 429);
    }
    assert_eq!(delete(&bob, first).await, 403);
    let recorded = [first, last, first].map(|pod| format!("patch pods {pod}"));
    await_writes_of_webhook(&guarded, from, &recorded).await;

    guarded.fleet.asked(2).await;
    guarded.fleet.nodes.every_pod().set_players(0);
    guarded.await_replaced(&pods, 2).await;
    guarded.fleet.settled(2).await;
    guarded.assert_ended_once(&pods);
    assert_eq!(writes_of_webhook(&guarded, from), recorded);
    let mut writes = writes(&proxy, earlier);
    // Both HookRuns may be deleted in one call.
    let deletions = writes.remove("delete hookruns").unwrap_or(0);
    assert!((1..=2).contains(&deletions), "{deletions}");
    let expected = counts(&[
        ("patch pods", 2),
        ("create hookruns", 2),
        ("delete pods", 2),
        ("create pods", 2),
        ("patch pods/status", 2),
    ]);
    assert_eq!(writes, expected);
}

/// Returns a workload `open` without the policy `Ask`.
fn unguarded_game(replicas: usize) -> Value {
    let mut workload = game(replicas, hooked("empty"));
    let labels = json!({ "app": "open" });
    let changes = json!({
        "metadata": { "name": "open", "labels": labels },
        "spec": { "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels } } },
    });
    merge(&mut workload, changes);
    workload
}

/// Returns a pod that no node runs.
fn pod(name: &str, labels: Value) -> Pod {
    let spec = json!({ "nodeName": "none", "containers": [{ "name": "main", "image": "main:v1" }] });
    let pod = json!({ "metadata": { "name": name, "labels": labels }, "spec": spec });
    serde_json::from_value(pod).unwrap()
}

/// Returns another namespace that the webhook watches over, in which the removal guard is not enabled.
async fn other_namespace(guarded: &Guarded) -> String {
    let client = guarded.fleet.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let own = namespaces.get(&guarded.fleet.namespace).await.unwrap();
    let other = guarded.fleet.control_plane.namespace("elsewhere").await;
    let label = Patch::Merge(json!({ "metadata": { "labels": { LABEL: own.labels()[LABEL] } } }));
    namespaces
        .patch(&other, &PatchParams::default(), &label)
        .await
        .unwrap();
    let templates: Api<HookTemplate> = Api::namespaced(client, &other);
    let template = serde_json::from_value(bad_template("probe")).unwrap();
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    // The API server learns of labels through a watch.
    eventually(SOON, || async {
        match templates.create(&dry_run, &template).await {
            Err(kube::Error::Api(status)) if status.message.contains("denied the request") => Ok(()),
            other => Err(other.map(drop)),
        }
    })
    .await;
    other
}

/// Creates a pod with these labels, and deletes it at once.
async fn create_and_delete_pod(pods: &Api<Pod>, name: &str, labels: Value) {
    let created = pods.create(&PostParams::default(), &pod(name, labels)).await;
    created.unwrap();
    let deleted = pods.delete(name, &DeleteParams::default().grace_period(0)).await;
    assert!(deleted.is_ok(), "{name}: {deleted:?}");
}

/// A deletion that the webhook does not review is not delayed by it.
#[tokio::test(flavor = "multi_thread")]
async fn deletions_of_unguarded_objects_cost_no_review_and_no_write() {
    let guarded = Guarded::new("costs-others").await;
    let fleet = &guarded.fleet;
    let pods = guarded.launch(1, json!({})).await;
    guarded.occupy(&pods, 1);
    fleet.launch(&unguarded_game(2)).await;
    let elsewhere: Api<Pod> = Api::namespaced(fleet.client(), &other_namespace(&guarded).await);
    fleet.quiet().await;
    let (from, earlier) = (audit_log_end(&guarded), guarded.count_reviews(&DELETIONS).await);

    let open = fleet.names().await.difference(&pods).next().cloned().unwrap();
    let _ = fleet.kubectl(&["delete", "pod", &open], "");
    fleet
        .until_of("open", |status| {
            status.replicas == 2 && status.available_replicas == 2
        })
        .await;
    create_and_delete_pod(&fleet.pods(), "bare", json!({ "app": "other" })).await;
    let guard = json!({ REMOVAL_GUARD: REMOVAL_GUARD_ASK });
    create_and_delete_pod(&elsewhere, "labelled", guard).await;
    let config_maps: Api<ConfigMap> = Api::namespaced(fleet.client(), &fleet.namespace);
    let config_map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "other" } })).unwrap();
    config_maps
        .create(&PostParams::default(), &config_map)
        .await
        .unwrap();
    let deleted = config_maps.delete("other", &DeleteParams::default()).await;
    assert!(deleted.is_ok(), "{deleted:?}");
    assert_eq!(guarded.count_reviews(&DELETIONS).await, earlier);
    assert!(writes_of_webhook(&guarded, from).is_empty());

    let busy = pods.first().unwrap();
    assert_eq!(delete(&guarded.pods_as("ann"), busy).await, 403);
    assert!(guarded.count_reviews(&DELETIONS).await > earlier);
    await_writes_of_webhook(&guarded, from, &[format!("patch pods {busy}")]).await;
}
