//! Evictions that come late: repeated, with preconditions, or of a pod that is already terminating.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::{DeleteParams, Patch, PatchParams};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use super::reviewer::{Reviewer, denial};

fn is_eviction(review: &Value) -> bool {
    review["subResource"] == "eviction"
}

/// A successor must therefore not take the name of a pod that was evicted a short time ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_repeats_an_eviction_by_name_and_evicts_a_new_pod_of_that_name() {
    let reviewer = Arc::new(Reviewer::new().await);
    reviewer.create_running_pod("game", json!({})).await;
    let is_replaced = Arc::new(AtomicBool::new(false));
    let replaced = Arc::clone(&is_replaced);
    reviewer.respond_with(move |review| {
        let is_early = is_eviction(review) && !replaced.load(Ordering::SeqCst);
        is_early.then(|| denial(429, "players are on it"))
    });
    let drains = Arc::clone(&reviewer);
    let drain = tokio::task::spawn_blocking(move || {
        let node = &drains.nodes.node_names()[0];
        drains.kubectl(&["drain", "--force", "--ignore-daemonsets", "--timeout=60s", node])
    });
    eventually(SOON, || async {
        let is_denied = reviewer.reviews().iter().any(is_eviction);
        is_denied.then_some(()).ok_or("no eviction yet")
    })
    .await;
    let at_once = DeleteParams::default().grace_period(0);
    reviewer.delete("game", &at_once).await.unwrap();
    reviewer.create_pod("game", json!({})).await;
    reviewer.clear();
    is_replaced.store(true, Ordering::SeqCst);
    let (succeeded, output) = drain.await.unwrap();
    assert!(succeeded, "{output}");
    let requests = reviewer.removal_requests();
    assert_eq!(requests.iter().filter(|review| is_eviction(review)).count(), 1);
    reviewer.await_deleted("game").await;
}

#[tokio::test]
async fn an_eviction_of_a_terminating_pod_is_reviewed_and_succeeds() {
    let reviewer = Reviewer::new().await;
    let kept = json!({ "finalizers": ["example.com/kept"] });
    reviewer.create_running_pod("game", kept).await;
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    reviewer.clear();
    reviewer.evict("game", json!({})).await.unwrap();
    let evictions: Vec<Value> = reviewer.reviews().into_iter().filter(is_eviction).collect();
    assert_eq!(evictions.len(), 1);
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let pods = reviewer.pods();
    pods.patch("game", &PatchParams::default(), &released)
        .await
        .unwrap();
    reviewer.await_deleted("game").await;
}

/// Unlike a deletion, an eviction is reviewed before its preconditions are checked.
#[tokio::test]
async fn a_precondition_of_an_eviction_is_checked_after_its_review() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let other = json!({ "deleteOptions": { "preconditions": { "uid": "other" } } });
    let error = reviewer.evict("game", other).await.unwrap_err();
    assert_eq!(error.code, 409, "{}", error.message);
    let review = &reviewer.reviews()[0];
    assert_eq!(review["object"]["deleteOptions"]["preconditions"]["uid"], "other");
    let pod = reviewer.pods().get("game").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
}
