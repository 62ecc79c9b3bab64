//! Annotations that keep autoscalers from removing the nodes of pods.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use operator_tests::Fleet;
use operator_tests::fleet::{game, hooked, until_empty};
use operator_tests::merge;
use serde_json::{Value, json};
use shared_api::names::pod::{AUTOSCALER_ANNOTATIONS, DO_NOT_DISRUPT, SAFE_TO_EVICT, SKIP_HOOK};

use crate::fleet;

/// Values of the annotations of both autoscalers, and the keys that the operator has set.
type Values<'p> = [Option<&'p str>; 3];

const NONE: Values<'static> = [None, None, None];

fn values(pod: &Pod) -> Values<'_> {
    let keys = [SAFE_TO_EVICT, DO_NOT_DISRUPT, AUTOSCALER_ANNOTATIONS];
    keys.map(|key| pod.annotations().get(key).map(String::as_str))
}

/// Waits until exactly `count` pods exist, each with the values for its name.
async fn await_values<'v>(fleet: &Fleet<'_>, count: usize, wanted: impl Fn(&str) -> Values<'v>) {
    let all = fleet.until_pods(|pods| {
        let has_values = |(name, pod): (&String, &Pod)| values(pod) == wanted(name);
        pods.len() == count && pods.iter().all(has_values)
    });
    all.await;
}

fn field(value: &str) -> Value {
    json!({ "disruption": { "autoscalerAnnotations": value } })
}

#[tokio::test]
async fn pods_have_the_annotations_as_long_as_the_field_and_their_hook_require_them() {
    let fleet = fleet("autoscaler-annotations").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.all_pods().await;
    let [own, other] = [before.keys().next(), before.keys().next_back()].map(|name| name.unwrap().as_str());
    fleet.annotate(own, json!({ DO_NOT_DISRUPT: "true" })).await;
    let both = format!("{SAFE_TO_EVICT},{DO_NOT_DISRUPT}");
    let managed = |name: &str| {
        let set = if name == own { SAFE_TO_EVICT } else { both.as_str() };
        [Some("false"), Some("true"), Some(set)]
    };
    fleet.set(field("Managed")).await;
    await_values(&fleet, 2, managed).await;
    fleet.settled(2).await;
    assert_eq!(fleet.written("annotate_pod").await, 2);

    // A new pod has them from its creation.
    fleet.scale(3);
    await_values(&fleet, 3, managed).await;
    fleet.settled(3).await;
    assert_eq!(fleet.written("annotate_pod").await, 2);

    let skipped = |name: &str| if name == other { NONE } else { managed(name) };
    fleet
        .annotate(other, json!({ SKIP_HOOK: before[other].metadata.uid }))
        .await;
    await_values(&fleet, 3, skipped).await;
    fleet.annotate(other, json!({ SKIP_HOOK: null })).await;
    await_values(&fleet, 3, managed).await;

    fleet.set(field("Unmanaged")).await;
    let unmanaged = |name: &str| [None, (name == own).then_some("true"), None];
    await_values(&fleet, 3, unmanaged).await;
    fleet.settled(3).await;
    assert_eq!(fleet.written("annotate_pod").await, 7);
    let after = fleet.uids().await;
    assert!(before.iter().all(|(name, pod)| after[name] == pod.uid()));
    assert_eq!(fleet.written("create_hook_run").await, 0);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn an_update_in_place_keeps_the_annotations_and_restarts_nothing() {
    let fleet = fleet("autoscaler-annotations").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    merge(&mut spec, field("Managed"));
    fleet.launch(&game(2, spec)).await;
    let before = fleet.uids().await;
    let both = format!("{SAFE_TO_EVICT},{DO_NOT_DISRUPT}");
    let all_set = [Some("false"), Some("true"), Some(both.as_str())];
    await_values(&fleet, 2, |_| all_set).await;
    let of_template = [Some("false"), Some("true"), Some(DO_NOT_DISRUPT)];
    for (annotations, wanted) in [
        (json!({ SAFE_TO_EVICT: "false" }), of_template),
        (json!(null), all_set),
    ] {
        let template = json!({ "metadata": { "annotations": annotations } });
        fleet.set(json!({ "template": template })).await;
        await_values(&fleet, 2, |_| wanted).await;
        fleet.settled(2).await;
        await_values(&fleet, 2, |_| wanted).await;
    }
    assert_eq!(fleet.written("update_pod").await, 4);
    // The pods had them from their creation, and each update kept them.
    assert_eq!(fleet.written("annotate_pod").await, 0);
    assert_eq!(fleet.uids().await, before);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}
