//! Labels that a pod has exactly as long as it is selected for deletion.
//!
//! The pods have loopback addresses, for which Kubernetes creates no endpoints. So the tests list the pods
//! with the selector of a Service themselves.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::WatchEvent;
use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use operator_tests::merge;
use serde_json::{Value, json};
use shared_api::names::pod::{DELETING, DRAINING_LABELS};

use crate::fleet;
use crate::seen::{self, Seen};

/// Label that the template sets to `true`, and that pods have with the value `false` while they are selected.
pub(super) const LABEL: &str = "accepts-players";
/// Record of the former value of this label alone.
pub(super) const FORMER: &str = r#"{"accepts-players":"true"}"#;

fn field(labels: Value) -> Value {
    json!({ "scaleStrategy": { "drainingLabels": labels } })
}

/// Part of a spec with a hook before deletions and a draining label.
fn draining() -> Value {
    let mut spec = hooked("empty");
    merge(&mut spec, field(json!({ LABEL: "false" })));
    spec
}

/// Creates a workload whose pods have players and accept more, and a Service that selects the pods that accept players.
pub(super) async fn launch(fleet: &Fleet<'_>, replicas: usize, mut spec: Value) {
    fleet.hook("empty", until_empty()).await;
    fleet.apply(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "lobby" },
        "spec": { "selector": { "app": GAME, LABEL: "true" }, "ports": [{ "port": 9091 }] },
    }));
    merge(
        &mut spec,
        json!({ "template": { "metadata": { "labels": { LABEL: "true" } } } }),
    );
    fleet.launch(&game(replicas, spec)).await;
    fleet.nodes.every_pod().set_players(1);
}

/// Returns the pods that the Service selects.
pub(super) async fn lobby(fleet: &Fleet<'_>) -> BTreeSet<String> {
    let services: Api<Service> = Api::namespaced(fleet.client(), &fleet.namespace);
    let service = services.get("lobby").await.unwrap();
    let selector = service.spec.unwrap().selector.unwrap();
    let rules = selector.iter().map(|(key, value)| format!("{key}={value}"));
    let rules: Vec<String> = rules.collect();
    let list = ListParams::default().labels(&rules.join(","));
    let pods = fleet.pods().list(&list).await.unwrap();
    pods.iter().map(ResourceExt::name_any).collect()
}

pub(super) fn label<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    pod.labels().get(key).map(String::as_str)
}

pub(super) fn record(pod: &Pod) -> Option<&str> {
    pod.annotations().get(DRAINING_LABELS).map(String::as_str)
}

/// Returns all states of all pods up to now.
pub(super) async fn states(pods: &Seen<Pod>) -> Vec<Pod> {
    let events = pods.up_to_now().await.into_iter();
    let states = events.filter_map(|event| match event {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) => Some(pod),
        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
    });
    states.collect()
}

/// Asserts that in each state of each pod, the mark, the label and the record belong together: one write sets
/// them, and another one removes them. Returns the number of states with a mark.
async fn assert_written_together(pods: &Seen<Pod>) -> usize {
    let mut marked = 0;
    for pod in states(pods).await {
        let is_marked = pod.annotations().contains_key(DELETING);
        marked += usize::from(is_marked);
        let is_closed = label(&pod, LABEL) == Some("false");
        let former = is_marked.then_some(FORMER);
        assert_eq!(
            (is_closed, record(&pod)),
            (is_marked, former),
            "{:#?}",
            pod.metadata
        );
    }
    marked
}

#[tokio::test]
async fn a_pod_leaves_its_service_with_its_selection_and_returns_when_it_is_kept() {
    let fleet = fleet("draining-labels").await;
    launch(&fleet, 3, draining()).await;
    let (all, before) = (fleet.names().await, fleet.uids().await);
    assert_eq!(lobby(&fleet).await, all);
    let pods = seen::pods(&fleet).await;
    fleet.scale(2);
    let selected: BTreeSet<String> = fleet.asked(1).await.into_values().collect();
    assert_eq!(fleet.marked().await, selected);
    assert_eq!(lobby(&fleet).await, all.difference(&selected).cloned().collect());
    fleet.scale(3);
    fleet.settled(3).await;
    assert_eq!(lobby(&fleet).await, all);
    assert!(assert_written_together(&pods).await > 0);
    assert_eq!(fleet.written("mark_pod").await, 1);
    assert_eq!(fleet.written("unmark_pod").await, 1);
    assert_eq!(fleet.written("label_draining_pod").await, 0);
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

/// Waits until a pod has these values of the label and of another one, and this record. Returns the number of
/// corrections so far.
pub(super) async fn corrections(
    fleet: &Fleet<'_>,
    name: &str,
    values: [Option<&str>; 2],
    former: Option<&str>,
) -> u64 {
    let is_right = |pod: &Pod| [label(pod, LABEL), label(pod, "region")] == values && record(pod) == former;
    fleet.until_pods(|pods| is_right(&pods[name])).await;
    fleet.quiet().await;
    fleet.written("label_draining_pod").await
}

#[tokio::test]
async fn labels_of_a_selected_pod_follow_the_spec_and_undo_the_changes_of_others() {
    let fleet = fleet("draining-labels").await;
    launch(&fleet, 2, draining()).await;
    fleet.scale(1);
    let selected: BTreeSet<String> = fleet.asked(1).await.into_values().collect();
    let name = selected.first().unwrap();
    let values = [Some("false"), None];
    assert_eq!(corrections(&fleet, name, values, Some(FORMER)).await, 0);

    fleet
        .set(field(json!({ LABEL: "draining", "region": "none" })))
        .await;
    let both = Some(r#"{"accepts-players":"true","region":null}"#);
    let values = [Some("draining"), Some("none")];
    assert_eq!(corrections(&fleet, name, values, both).await, 1);

    let edit = Patch::Merge(json!({ "metadata": { "labels": { LABEL: "true" } } }));
    let edited = fleet.pods().patch(name, &PatchParams::default(), &edit).await;
    assert_eq!(label(&edited.unwrap(), LABEL), Some("true"));
    assert_eq!(corrections(&fleet, name, values, both).await, 2);

    fleet.set(field(json!(null))).await;
    assert_eq!(corrections(&fleet, name, [Some("true"), None], None).await, 3);
    assert_eq!(fleet.marked().await, selected);
    assert_eq!(fleet.written("mark_pod").await, 1);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), selected);
}

#[tokio::test]
async fn a_kept_pod_gets_the_label_of_a_new_template_and_none_restarts() {
    let fleet = fleet("draining-labels").await;
    launch(&fleet, 3, draining()).await;
    let before = fleet.uids().await;
    let pods = seen::pods(&fleet).await;
    fleet.scale(2);
    let selected: BTreeSet<String> = fleet.asked(1).await.into_values().collect();
    let template = json!({ "metadata": { "labels": { LABEL: "yes" } } });
    fleet.set(json!({ "template": template, "replicas": 3 })).await;
    fleet.until_marked(&BTreeSet::new()).await;
    fleet.nodes.every_pod().set_players(0);
    let is_updated = |pod: &Pod| label(pod, LABEL) == Some("yes") && record(pod).is_none();
    fleet.until_pods(|pods| pods.values().all(is_updated)).await;
    fleet.settled(3).await;
    assert!(fleet.all_pods().await.values().all(is_updated));
    assert!(assert_written_together(&pods).await > 0);
    assert_eq!(selected.len(), 1);
    assert_eq!(fleet.written("update_pod").await, 3);
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}
