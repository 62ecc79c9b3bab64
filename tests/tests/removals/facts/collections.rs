//! Deletion of many pods.

use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::reviewer::{Reviewer, denial, status};

/// A webhook must therefore read the name from `oldObject`. It receives no review of the pods after a denied one.
#[tokio::test]
async fn delete_collection_reviews_pods_without_their_names_and_stops_at_a_denial() {
    let reviewer = Reviewer::new().await;
    for name in ["a", "b", "c"] {
        reviewer.create_running_pod(name, json!({})).await;
    }
    reviewer.respond_with(|review| {
        (review["oldObject"]["metadata"]["name"] == "b").then(|| denial(403, "not b"))
    });
    let deleted = reviewer
        .pods()
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    let error = status(deleted.unwrap_err());
    assert_eq!(error.code, 403);
    reviewer.await_deleted("a").await;
    let requests = reviewer.removal_requests();
    let names: Vec<&Value> = requests
        .iter()
        .map(|review| &review["oldObject"]["metadata"]["name"])
        .collect();
    assert!(
        names.iter().all(|name| **name == "a" || **name == "b"),
        "the deletion of c was reviewed: {names:?}"
    );
    assert!(
        requests
            .iter()
            .all(|review| review["name"].as_str().unwrap_or_default().is_empty())
    );
    let pod = reviewer.pods().get("c").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_delete_all_sends_one_request_per_pod_and_continues_after_a_denial() {
    let reviewer = Reviewer::new().await;
    for name in ["a", "b", "c"] {
        reviewer.create_running_pod(name, json!({})).await;
    }
    reviewer.respond_with(|review| (review["name"] == "b").then(|| denial(403, "not b")));
    let (succeeded, output) = reviewer.kubectl(&["delete", "pods", "--all", "--wait=false"]);
    assert!(
        !succeeded && output.contains("denied the request: not b"),
        "{output}"
    );
    reviewer.await_deleted("a").await;
    reviewer.await_deleted("c").await;
    reviewer.pods().get("b").await.unwrap();
}
