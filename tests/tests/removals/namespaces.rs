//! The namespace of guarded pods is deleted.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use operator_tests::SOON;
use serde_json::json;
use test_kit::eventually;

use crate::reviewer::{Reviewer, deletions, refusal, status};

/// So a guard keeps the pods, but can neither ask them by HookRuns nor keep what they need.
#[tokio::test]
async fn denied_pods_stay_while_their_config_maps_go_and_nothing_new_can_be_made() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let maps: Api<ConfigMap> = Api::namespaced(reviewer.control_plane.client(), &reviewer.namespace);
    let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "rules" } })).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    reviewer.answer(|_| Some(refusal(403, "players are on it")));
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
        let told = conditions.into_iter().find(|condition| {
            condition.type_ == "NamespaceDeletionContentFailure" && condition.status == "True"
        });
        let told = told.and_then(|condition| condition.message).unwrap_or_default();
        if told.contains("players are on it") {
            Ok(())
        } else {
            Err(told)
        }
    })
    .await;
    let wish = reviewer.wishes().remove(0);
    assert_eq!(
        wish["userInfo"]["username"],
        "system:serviceaccount:kube-system:namespace-controller"
    );
    eventually(SOON, || async {
        match maps.get_opt("rules").await.unwrap() {
            None => Ok(()),
            Some(_) => Err("the ConfigMap is still there"),
        }
    })
    .await;
    let said = status(maps.create(&PostParams::default(), &map).await.unwrap_err());
    assert_eq!(said.code, 403);
    assert!(said.message.contains("being terminated"), "{}", said.message);
    let note = Patch::Merge(json!({ "metadata": { "annotations": { "room": "7" } } }));
    let patched = reviewer
        .pods()
        .patch("game", &PatchParams::default(), &note)
        .await;
    assert!(
        patched.unwrap().metadata.deletion_timestamp.is_none(),
        "a pod can be written to"
    );
    reviewer.answer(|_| None);
    eventually(SOON, || async {
        match namespaces.get_opt(&reviewer.namespace).await.unwrap() {
            None => Ok(()),
            Some(namespace) => Err(namespace.status),
        }
    })
    .await;
}

/// So a guard can refuse it while pods are guarded.
#[tokio::test]
async fn the_deletion_of_a_namespace_is_reviewed_before_anything_goes() {
    let namespaces = json!({
        "name": "namespaces.example.com",
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["namespaces"] }],
    });
    let reviewer = Reviewer::with(vec![deletions(), namespaces]).await;
    reviewer.pod("game", json!({})).await;
    reviewer.answer(|_| Some(refusal(403, "pods are guarded")));
    let namespaces: Api<Namespace> = Api::all(reviewer.control_plane.client());
    let deleted = namespaces
        .delete(&reviewer.namespace, &DeleteParams::default())
        .await;
    let said = status(deleted.unwrap_err());
    assert!(
        said.message.ends_with("denied the request: pods are guarded"),
        "{}",
        said.message
    );
    let review = reviewer.reviews().remove(0);
    assert_eq!(review["oldObject"]["metadata"]["name"], reviewer.namespace);
    let namespace = namespaces.get(&reviewer.namespace).await.unwrap();
    assert!(namespace.metadata.deletion_timestamp.is_none());
}
