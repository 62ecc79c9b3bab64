//! Takeover of fleets from the original operators: no pod restarts, and no new revision appears.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use operator_tests::fleet::{GAME, condition, until_empty};
use operator_tests::{Fleet, assert_has};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared_api::names::pod::IN_PLACE_READY;
use shared_api::{GameDeployment, HookRun};

use crate::fleet;

const OLD: &str = "test-gamedeployment-67864c6f65";
const NEW: &str = "test-gamedeployment-7c5fdf8d76";

/// Creates an object unchanged, with its status.
async fn restore<K>(fleet: &Fleet<'_>, object: &Value) -> K
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize,
{
    let client: Client = fleet.client();
    let api: Api<K> = Api::namespaced(client, &fleet.namespace);
    let read: K = serde_json::from_value(object.clone()).unwrap();
    let created = api.create(&PostParams::default(), &read).await.unwrap();
    let Some(status) = object.get("status") else {
        return created;
    };
    let patch = Patch::Merge(json!({ "status": status }));
    let params = PatchParams::default();
    api.patch_status(&created.name_any(), &params, &patch)
        .await
        .unwrap()
}

/// Stops both operators, and creates a fleet of the original in the namespace, with all pods running.
async fn original(name: &str, objects: &str) -> Fleet<'static> {
    let mut fleet = fleet("original").await;
    fleet.workloads = None;
    fleet.hooks = None;
    fleet.hook("empty", until_empty()).await;
    let objects: Vec<Value> = serde_json::from_str(objects).unwrap_or_else(|error| panic!("{name}: {error}"));
    let game: GameDeployment = restore(&fleet, &objects[0]).await;
    let uid = game.uid().unwrap();
    let text = json!(objects[1..])
        .to_string()
        .replace("UID-OF-THE-WORKLOAD", &uid);
    let mut pods = 0;
    for object in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
        match object["kind"].as_str().unwrap() {
            "ControllerRevision" => drop(restore::<ControllerRevision>(&fleet, &object).await),
            "HookRun" => drop(restore::<HookRun>(&fleet, &object).await),
            "Pod" => {
                restore::<Pod>(&fleet, &object).await;
                pods += 1;
            }
            kind => panic!("{kind}"),
        }
    }
    let running =
        |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let all = fleet
        .until_pods(|all| all.len() == pods && all.values().all(running))
        .await;
    for (name, pod) in &all {
        let waits = pod.annotations().contains_key("inplace-update-grace");
        let (status, reason) = if waits {
            ("False", "StartInPlaceUpdate")
        } else {
            ("True", "")
        };
        let condition = json!({ "type": IN_PLACE_READY, "status": status, "reason": reason,
            "lastTransitionTime": "2021-06-02T03:04:05Z" });
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        fleet
            .pods()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    fleet.until_pods(|all| all.values().all(is_as_told)).await;
    fleet
}

/// Whether the kubelet has updated Ready from the readiness gate.
fn is_as_told(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let find = |name: &str| {
        let mut conditions = conditions.clone();
        conditions
            .find(|condition| condition.type_ == name)
            .map(|condition| condition.status.clone())
    };
    find("Ready").is_some() && find("Ready") == find(IN_PLACE_READY)
}

async fn revisions(fleet: &Fleet<'_>) -> BTreeMap<String, i64> {
    let list = fleet.revisions().list(&ListParams::default()).await.unwrap();
    list.into_iter()
        .map(|revision| (revision.name_any(), revision.revision))
        .collect()
}

fn both() -> BTreeMap<String, i64> {
    BTreeMap::from([(OLD.to_owned(), 1), (NEW.to_owned(), 2)])
}

fn versions(pods: &BTreeMap<String, Pod>) -> Vec<(String, Option<String>)> {
    pods.iter()
        .map(|(name, pod)| (name.clone(), pod.resource_version()))
        .collect()
}

#[tokio::test]
async fn a_fleet_at_rest_is_taken_over_without_a_write_to_a_pod() {
    let mut fleet = original(
        "converged",
        include_str!("../../fixtures/original/converged.json"),
    )
    .await;
    let before = fleet.all_pods().await;
    fleet.start_workloads().await;
    fleet.start_hooks().await;
    let status = fleet.settled(4).await;
    assert_eq!(status.update_revision.as_deref(), Some(NEW));
    assert_eq!((status.updated_replicas, status.available_replicas), (4, 4));
    assert_eq!(revisions(&fleet).await, both());
    assert_eq!(versions(&fleet.all_pods().await), versions(&before));
    assert_eq!(fleet.nodes.terminations().len(), 0);

    // It behaves like our own workload: back to the older revision, under its old name.
    fleet.set_image("game:v1").await;
    fleet.settled(4).await;
    fleet.all_run("game:v1", 4).await;
    let renumbered = BTreeMap::from([(OLD.to_owned(), 3), (NEW.to_owned(), 2)]);
    assert_eq!(revisions(&fleet).await, renumbered);
    let after = fleet.all_pods().await;
    assert!(before.iter().all(|(name, pod)| after[name].uid() == pod.uid()));
}

#[tokio::test]
async fn a_question_in_flight_is_put_again_about_the_same_pod() {
    let file = include_str!("../../fixtures/original/question-in-flight.json");
    let mut fleet = original("question-in-flight", file).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.start_workloads().await;
    fleet.start_hooks().await;
    let victims = fleet.asked(1).await;
    let victim = victims.values().next().unwrap().clone();
    assert_eq!(victim, format!("{GAME}-7cblw"));
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.pod(&victim).set_players(0);
    fleet.settled(3).await;
    assert_eq!(fleet.nodes.terminated_pods(), [victim].into());
    assert_eq!(revisions(&fleet).await, both());
}

#[tokio::test]
async fn an_approval_that_was_left_over_opens_nothing() {
    let file = include_str!("../../fixtures/original/approval-left-over.json");
    let mut fleet = original("approval-left-over", file).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.start_workloads().await;
    fleet.start_hooks().await;
    let victims = fleet.asked(1).await;
    assert_eq!(
        victims.into_values().collect::<Vec<_>>(),
        [format!("{GAME}-7cblw")]
    );
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.scale(4);
    fleet.settled(4).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn an_update_in_its_grace_period_is_brought_to_its_end() {
    let file = include_str!("../../fixtures/original/grace-period.json");
    let mut fleet = original("grace-period", file).await;
    let before = fleet.all_pods().await;
    fleet.start_workloads().await;
    fleet.start_hooks().await;
    fleet.all_run("game:v2", 2).await;
    fleet.settled(2).await;
    let after = fleet.all_pods().await;
    assert!(before.iter().all(|(name, pod)| after[name].uid() == pod.uid()));
    assert_eq!(fleet.nodes.terminated_pods(), [format!("{GAME}-7cblw")].into());
    assert!(
        after
            .values()
            .all(|pod| !pod.annotations().contains_key("inplace-update-grace"))
    );
    assert_eq!(revisions(&fleet).await, both());
}

#[tokio::test]
async fn a_canary_that_pauses_for_a_person_goes_on_pausing() {
    let file = include_str!("../../fixtures/original/canary-pause.json");
    let mut fleet = original("canary-pause", file).await;
    fleet.start_workloads().await;
    fleet.start_hooks().await;
    let progressing = fleet.says("Progressing", "PausedByCanaryPauseStep").await;
    assert_has(&progressing, "spec.updateStrategy.paused");
    fleet.quiet().await;
    let status = fleet.status().await;
    assert_eq!((status.current_step_index, status.updated_replicas), (Some(1), 1));
    assert!(condition(&status, "InvalidSpec").is_none());
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.set(json!({ "updateStrategy": { "paused": false } })).await;
    fleet.settled(4).await;
    fleet.until(|status| status.updated_ready_replicas == 4).await;
    assert_eq!(fleet.images().await, ["game:v2".to_owned()].into());
    assert_eq!(fleet.nodes.terminations().len(), 3);
    assert_eq!(revisions(&fleet).await, both());
}

#[tokio::test]
async fn pods_and_revisions_without_a_controller_are_taken_up_as_they_are() {
    let mut fleet = original(
        "converged",
        include_str!("../../fixtures/original/converged.json"),
    )
    .await;
    // The state after `kubectl delete --cascade=orphan` and a new workload with the same name.
    let none = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    for name in fleet.names().await {
        fleet
            .pods()
            .patch(&name, &PatchParams::default(), &none)
            .await
            .unwrap();
    }
    for name in [OLD, NEW] {
        fleet
            .revisions()
            .patch(name, &PatchParams::default(), &none)
            .await
            .unwrap();
    }
    let before = fleet.all_pods().await;
    fleet.start_workloads().await;
    fleet.start_hooks().await;
    fleet.settled(4).await;
    assert_eq!(revisions(&fleet).await, both());
    let after = fleet.all_pods().await;
    assert!(before.iter().all(|(name, pod)| after[name].uid() == pod.uid()));
    let uid = fleet.game().await.uid();
    let owned = |owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference]| {
        owners
            .iter()
            .any(|owner| Some(&owner.uid) == uid.as_ref() && owner.controller == Some(true))
    };
    assert!(after.values().all(|pod| owned(pod.owner_references())));
    let list = fleet.revisions().list(&ListParams::default()).await.unwrap();
    assert!(list.iter().all(|revision| owned(revision.owner_references())));
    assert_eq!(fleet.nodes.terminations().len(), 0);
}
