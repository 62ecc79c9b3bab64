//! `kubectl drain` of a node with a guarded pod.

use std::time::Duration;

use serde_json::json;

use super::reviewer::{Reviewer, denial};

const DRAIN: [&str; 4] = ["drain", "--force", "--ignore-daemonsets", "--timeout=60s"];

impl Reviewer {
    /// Drains the node. Returns the same as [`Reviewer::kubectl`].
    fn drain(&self, flags: &[&str]) -> (bool, String) {
        let node = &self.nodes.node_names()[0];
        self.kubectl(&[&DRAIN[..], flags, &[node.as_str()]].concat())
    }
}

/// A guard therefore denies an eviction with 429 while a hook of the pod is running.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_prints_a_denial_with_429_and_retries_the_eviction_after_five_seconds() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let mut attempts = 0;
    reviewer.respond_with(move |review| {
        attempts += i32::from(review["subResource"] == "eviction");
        (attempts == 1).then(|| denial(429, "players are on it"))
    });
    let (succeeded, output) = reviewer.drain(&[]);
    assert!(succeeded, "{output}");
    assert!(output.contains("players are on it"), "{output}");
    assert!(output.contains("will retry after 5s"), "{output}");
    reviewer.await_deleted("game").await;
}

/// The client library repeats the request, so kubectl never sees the denial.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_does_not_print_a_denial_with_retry_after_seconds() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let mut attempts = 0;
    reviewer.respond_with(move |review| {
        attempts += i32::from(review["subResource"] == "eviction");
        let later =
            json!({ "code": 429, "message": "players are on it", "details": { "retryAfterSeconds": 1 } });
        Some(later).filter(|_| attempts == 1)
    });
    let (succeeded, output) = reviewer.drain(&[]);
    assert!(succeeded, "{output}");
    assert!(!output.contains("players are on it"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_with_403_fails_the_drain_and_leaves_the_node_cordoned() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("busy", json!({})).await;
    reviewer.create_running_pod("idle", json!({})).await;
    reviewer.respond_with(|review| (review["name"] == "busy").then(|| denial(403, "players are on it")));
    let (succeeded, output) = reviewer.drain(&[]);
    assert!(!succeeded && output.contains("players are on it"), "{output}");
    let requests = reviewer.removal_requests();
    let busy = requests.iter().filter(|review| review["name"] == "busy");
    assert_eq!(busy.count(), 1, "the denied eviction was repeated");
    reviewer
        .await_deleted_within("idle", Duration::from_secs(30))
        .await;
    let (_, node) = reviewer.kubectl(&["get", "node", &reviewer.nodes.node_names()[0], "--output=json"]);
    assert!(node.contains("\"unschedulable\": true"), "{node}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_with_disable_eviction_does_not_retry_a_denied_deletion() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.respond_with(|_| Some(denial(429, "players are on it")));
    let (succeeded, output) = reviewer.drain(&["--disable-eviction"]);
    assert!(!succeeded && output.contains("players are on it"), "{output}");
    assert!(
        reviewer
            .removal_requests()
            .iter()
            .all(|review| review["operation"] == "DELETE")
    );
    assert!(!output.contains("will retry"), "{output}");
}
