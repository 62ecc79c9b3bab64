//! Deletion of the namespace of guarded pods.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;
use test_kit::process::output_of;

use super::reviewer::{Reviewer, deletions, denial, status};

/// Returns the webhook for deletions of namespaces.
fn deletions_of_namespaces() -> Value {
    json!({
        "name": "namespaces.example.com",
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["namespaces"] }],
    })
}

fn maps(reviewer: &Reviewer) -> Api<ConfigMap> {
    Api::namespaced(reviewer.control_plane.client(), &reviewer.namespace)
}

/// Returns a ConfigMap.
fn rules() -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "rules" } })).unwrap()
}

/// A guard can therefore keep the pods, but it can neither create HookRuns for them nor keep the objects they use.
#[tokio::test]
async fn in_a_terminating_namespace_denied_pods_remain_and_no_object_can_be_created() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let (maps, map) = (maps(&reviewer), rules());
    maps.create(&PostParams::default(), &map).await.unwrap();
    reviewer.respond_with(|_| Some(denial(403, "players are on it")));
    let namespaces: Api<Namespace> = Api::all(reviewer.control_plane.client());
    namespaces
        .delete(&reviewer.namespace, &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        let namespace = namespaces.get(&reviewer.namespace).await.unwrap();
        let conditions = namespace
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        let failure = conditions.into_iter().find(|condition| {
            condition.type_ == "NamespaceDeletionContentFailure" && condition.status == "True"
        });
        let message = failure
            .and_then(|condition| condition.message)
            .unwrap_or_default();
        if message.contains("players are on it") {
            Ok(())
        } else {
            Err(message)
        }
    })
    .await;
    let review = reviewer.removal_requests().remove(0);
    assert_eq!(
        review["userInfo"]["username"],
        "system:serviceaccount:kube-system:namespace-controller"
    );
    eventually(SOON, || async {
        match maps.get_opt("rules").await.unwrap() {
            None => Ok(()),
            Some(_) => Err("the ConfigMap still exists"),
        }
    })
    .await;
    let error = status(maps.create(&PostParams::default(), &map).await.unwrap_err());
    assert_eq!(error.code, 403);
    assert!(error.message.contains("being terminated"), "{}", error.message);
    let annotation = Patch::Merge(json!({ "metadata": { "annotations": { "room": "7" } } }));
    let patched = reviewer
        .pods()
        .patch("game", &PatchParams::default(), &annotation)
        .await;
    assert!(
        patched.unwrap().metadata.deletion_timestamp.is_none(),
        "the pod is terminating"
    );
    reviewer.respond_with(|_| None);
    eventually(SOON, || async {
        match namespaces.get_opt(&reviewer.namespace).await.unwrap() {
            None => Ok(()),
            Some(namespace) => Err(namespace.status),
        }
    })
    .await;
}

/// A guard can therefore deny it while the namespace has guarded pods.
#[tokio::test]
async fn the_deletion_of_a_namespace_is_reviewed_before_its_content_is_deleted() {
    let reviewer = Reviewer::with(vec![deletions(), deletions_of_namespaces()]).await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.respond_with(|_| Some(denial(403, "pods are guarded")));
    let namespaces: Api<Namespace> = Api::all(reviewer.control_plane.client());
    let deleted = namespaces
        .delete(&reviewer.namespace, &DeleteParams::default())
        .await;
    let error = status(deleted.unwrap_err());
    assert!(
        error.message.ends_with("denied the request: pods are guarded"),
        "{}",
        error.message
    );
    let review = reviewer.reviews().remove(0);
    assert_eq!(review["oldObject"]["metadata"]["name"], reviewer.namespace);
    let namespace = namespaces.get(&reviewer.namespace).await.unwrap();
    assert!(namespace.metadata.deletion_timestamp.is_none());
}

/// A denial therefore costs nothing.
#[tokio::test]
async fn a_denied_deletion_of_a_namespace_changes_nothing_in_it_and_kubectl_exits_with_1() {
    let reviewer = Reviewer::with(vec![deletions(), deletions_of_namespaces()]).await;
    let pod = reviewer.create_running_pod("game", json!({})).await;
    let maps = maps(&reviewer);
    let map = maps.create(&PostParams::default(), &rules()).await.unwrap();
    reviewer.respond_with(|_| Some(denial(403, "pods are guarded")));
    let mut kubectl = reviewer.control_plane.kubectl();
    kubectl.args(["delete", "namespace", &reviewer.namespace, "--timeout=60s"]);
    let output = output_of(&mut kubectl, "").unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("denied the request: pods are guarded"), "{error}");
    let reviews = reviewer.reviews();
    assert!(
        reviews.iter().all(|review| review["kind"]["kind"] == "Namespace"),
        "{reviews:?}"
    );
    let namespaces: Api<Namespace> = Api::all(reviewer.control_plane.client());
    let namespace = namespaces.get(&reviewer.namespace).await.unwrap();
    assert_eq!(
        namespace.status.and_then(|status| status.phase).as_deref(),
        Some("Active")
    );
    let left = reviewer.pods().get("game").await.unwrap().metadata;
    assert_eq!((left.uid, left.deletion_timestamp), (pod.metadata.uid, None));
    let left = maps.get("rules").await.unwrap().metadata;
    assert_eq!(left.resource_version, map.metadata.resource_version);
    reviewer.create_running_pod("later", json!({})).await;
}

/// The label that disables a guard for the pods of a namespace therefore also allows the deletion of the namespace.
#[tokio::test]
async fn deletions_of_namespaces_are_selected_by_the_labels_of_the_namespace() {
    let reviewer = Reviewer::with(vec![deletions(), deletions_of_namespaces()]).await;
    reviewer.respond_with(|_| Some(denial(403, "pods are guarded")));
    let unlabelled = reviewer.control_plane.namespace("removals").await;
    let namespaces: Api<Namespace> = Api::all(reviewer.control_plane.client());
    let deletion = DeleteParams::default();
    let error = namespaces
        .delete(&reviewer.namespace, &deletion)
        .await
        .unwrap_err();
    assert_eq!(status(error).code, 403);
    namespaces.delete(&unlabelled, &deletion).await.unwrap();
    let reviews = reviewer.reviews();
    let is_of_labelled = |review: &Value| review["oldObject"]["metadata"]["name"] == reviewer.namespace;
    assert!(reviews.iter().all(is_of_labelled), "{reviews:?}");
}
