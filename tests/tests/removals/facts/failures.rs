//! Webhooks that are down or return invalid responses.

use kube::api::DeleteParams;
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::{Answer, eventually};

use super::reviewer::Reviewer;

/// An administrator must therefore be able to disable a guard without its webhook.
#[tokio::test(flavor = "multi_thread")]
async fn removals_fail_while_the_webhook_is_down_and_a_drain_does_not_retry() {
    let mut reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.stop();
    let deletion = reviewer
        .delete("game", &DeleteParams::default())
        .await
        .unwrap_err();
    let eviction = reviewer.evict("game", json!({})).await.unwrap_err();
    for error in [deletion, eviction] {
        assert_eq!(error.code, 500);
        assert!(
            error.message.contains("failed calling webhook"),
            "{}",
            error.message
        );
    }
    let node = &reviewer.nodes.node_names()[0];
    let (succeeded, output) =
        reviewer.kubectl(&["drain", "--force", "--ignore-daemonsets", "--timeout=60s", node]);
    assert!(
        !succeeded && output.contains("failed calling webhook"),
        "{output}"
    );
    assert!(!output.contains("will retry"), "{output}");
    let configuration = reviewer.configuration();
    let (succeeded, output) = reviewer.kubectl(&["delete", "validatingwebhookconfiguration", &configuration]);
    assert!(succeeded, "{output}");
    eventually(SOON, || async {
        let deleted = reviewer.delete("game", &DeleteParams::default()).await;
        deleted.map_err(|error| error.message)
    })
    .await;
    reviewer.await_deleted("game").await;
}

#[tokio::test]
async fn a_deletion_fails_if_the_response_to_its_review_is_invalid() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let review = |response: Value| {
        Answer::json(json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        }))
    };
    let answers = [
        Answer::text("<html>503 Service Unavailable</html>"),
        Answer::json(json!({ "allowed": true })),
        Answer::status(404),
        Answer::status(500),
        Answer::hang_up(),
        review(json!({ "allowed": true })),
        review(json!({ "uid": "another", "allowed": true })),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        reviewer.respond_raw(answer);
        let error = reviewer
            .delete("game", &DeleteParams::default())
            .await
            .unwrap_err();
        assert_eq!(error.code, 500, "{number}: {}", error.message);
    }
    reviewer.pods().get("game").await.unwrap();
}
