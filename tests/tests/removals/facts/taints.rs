//! A `NoExecute` taint on the node of a guarded pod.

use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use super::reviewer::{Reviewer, denial};

/// A guard must therefore record the denied deletion and delete the pod itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_deletion_by_a_no_execute_taint_is_attempted_five_times_and_never_again() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("busy", json!({})).await;
    let is_busy = |review: &Value| review["oldObject"]["metadata"]["name"] == "busy";
    reviewer.respond_with(move |review| is_busy(review).then(|| denial(403, "players are on it")));
    let node = &reviewer.nodes.node_names()[0];
    let (succeeded, output) = reviewer.kubectl(&["taint", "node", node, "maintenance=now:NoExecute"]);
    assert!(succeeded, "{output}");
    let reviews = || {
        let requests = reviewer.removal_requests().into_iter();
        requests.filter(is_busy).collect::<Vec<_>>()
    };
    eventually(SOON, || async {
        match reviews().len() {
            few @ 0..5 => Err(few),
            _ => Ok(()),
        }
    })
    .await;
    for review in reviews() {
        assert_eq!(review["operation"], "DELETE", "the pod was evicted");
        let user = review["userInfo"]["username"].as_str().unwrap();
        assert!(user.starts_with("system:serviceaccount:kube-system:"), "{user}");
    }
    // The controller deletes another pod: it is running, and has had time for further attempts.
    let create_and_await_deleted = async |name: &str| {
        reviewer.create_pod(name, json!({})).await;
        reviewer.await_deleted(name).await;
    };
    create_and_await_deleted("idle").await;
    let count = reviews().len();
    // Kubernetes 1.20 reviews each denied deletion twice.
    assert!(count == 5 || count == 10, "{count}");
    // Further deletions would be allowed, and the controller sees the pod change.
    reviewer.respond_with(|_| None);
    let (succeeded, output) = reviewer.kubectl(&["annotate", "pod", "busy", "room=7"]);
    assert!(succeeded, "{output}");
    create_and_await_deleted("later").await;
    assert_eq!(reviews().len(), count);
    let pod = reviewer.pods().get("busy").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
}
