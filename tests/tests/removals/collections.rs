//! Many pods are deleted by one request.

use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::reviewer::{Reviewer, refusal, status};

/// So names are read from the pod, and what stands behind a denied pod in order has to be asked by somebody else.
#[tokio::test]
async fn pods_are_reviewed_one_by_one_without_a_name_until_one_is_denied() {
    let reviewer = Reviewer::new().await;
    for name in ["a", "b", "c"] {
        reviewer.pod(name, json!({})).await;
    }
    reviewer.answer(|review| (review["oldObject"]["metadata"]["name"] == "b").then(|| refusal(403, "not b")));
    let deleted = reviewer
        .pods()
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    let said = status(deleted.unwrap_err());
    assert_eq!(said.code, 403);
    reviewer.gone("a").await;
    let wishes = reviewer.wishes();
    let names: Vec<&Value> = wishes
        .iter()
        .map(|review| &review["oldObject"]["metadata"]["name"])
        .collect();
    assert!(
        names.iter().all(|name| **name == "a" || **name == "b"),
        "c was never asked: {names:?}"
    );
    assert!(
        wishes
            .iter()
            .all(|review| review["name"].as_str().unwrap_or_default().is_empty())
    );
    assert!(
        reviewer
            .pods()
            .get("c")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_deletes_all_with_a_request_for_each() {
    let reviewer = Reviewer::new().await;
    for name in ["a", "b", "c"] {
        reviewer.pod(name, json!({})).await;
    }
    reviewer.answer(|review| (review["name"] == "b").then(|| refusal(403, "not b")));
    let (done, said) = reviewer.kubectl(&["delete", "pods", "--all", "--wait=false"]);
    assert!(!done && said.contains("denied the request: not b"), "{said}");
    reviewer.gone("a").await;
    reviewer.gone("c").await;
    reviewer.pods().get("b").await.unwrap();
}
