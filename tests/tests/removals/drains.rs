//! `kubectl drain`, as people call it.

use std::time::Duration;

use serde_json::json;

use crate::reviewer::{Reviewer, refusal};

const DRAIN: [&str; 4] = ["drain", "--force", "--ignore-daemonsets", "--timeout=60s"];

impl Reviewer {
    fn drain(&self, node: &str) -> (bool, String) {
        let mut arguments = DRAIN.to_vec();
        arguments.push(node);
        self.kubectl(&arguments)
    }
}

/// So this is how an eviction is answered while the pod is being asked.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_with_429_is_told_and_tried_again_every_five_seconds() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let mut tries = 0;
    reviewer.answer(move |review| {
        tries += i32::from(review["subResource"] == "eviction");
        (tries == 1).then(|| refusal(429, "players are on it"))
    });
    let (done, said) = reviewer.drain(&reviewer.nodes.node_names()[0]);
    assert!(done, "{said}");
    assert!(said.contains("players are on it"), "people are told: {said}");
    assert!(said.contains("will retry after 5s"), "{said}");
    reviewer.gone("game").await;
}

/// With a number of seconds the client repeats by itself, and people see nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_with_a_number_of_seconds_is_tried_again_in_silence() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let mut tries = 0;
    reviewer.answer(move |review| {
        tries += i32::from(review["subResource"] == "eviction");
        let later =
            json!({ "code": 429, "message": "players are on it", "details": { "retryAfterSeconds": 1 } });
        Some(later).filter(|_| tries == 1)
    });
    let (done, said) = reviewer.drain(&reviewer.nodes.node_names()[0]);
    assert!(done, "{said}");
    assert!(!said.contains("players are on it"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_with_403_ends_the_drain_and_leaves_the_node_cordoned() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("busy", json!({})).await;
    reviewer.pod("idle", json!({})).await;
    reviewer.answer(|review| (review["name"] == "busy").then(|| refusal(403, "players are on it")));
    let (done, said) = reviewer.drain(&reviewer.nodes.node_names()[0]);
    assert!(!done && said.contains("players are on it"), "{said}");
    let busy = reviewer
        .wishes()
        .into_iter()
        .filter(|review| review["name"] == "busy");
    assert_eq!(busy.count(), 1, "asked once");
    reviewer.vanished("idle", Duration::from_secs(30)).await;
    let (_, node) = reviewer.kubectl(&["get", "node", &reviewer.nodes.node_names()[0], "--output=json"]);
    assert!(node.contains("\"unschedulable\": true"), "{node}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_by_deletion_never_tries_again() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    reviewer.answer(|_| Some(refusal(429, "players are on it")));
    let node = &reviewer.nodes.node_names()[0];
    let mut arguments = DRAIN.to_vec();
    arguments.extend(["--disable-eviction", node]);
    let (done, said) = reviewer.kubectl(&arguments);
    assert!(!done && said.contains("players are on it"), "{said}");
    assert!(
        reviewer
            .wishes()
            .iter()
            .all(|review| review["operation"] == "DELETE")
    );
    assert!(!said.contains("will retry"), "{said}");
}
