//! What selects the deletions that a webhook reviews, apart from the pod's labels.

use kube::api::DeleteParams;
use serde_json::json;

use super::reviewer::{Reviewer, deletions, is_terminating};

/// A namespace's label can therefore switch a guard off in an emergency.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_of_the_namespace_excludes_its_pods_even_while_the_webhook_is_down() {
    let mut reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.stop();
    let error = reviewer
        .delete("game", &DeleteParams::default())
        .await
        .unwrap_err();
    assert_eq!(error.code, 500, "{}", error.message);
    reviewer.exclude_namespace().await;
    test_kit::eventually(operator_tests::SOON, || async {
        let deleted = reviewer.delete("game", &DeleteParams::default()).await;
        deleted.map_err(|error| error.message)
    })
    .await;
    reviewer.await_deleted("game").await;
}

/// Older servers drop the field and send these reviews too.
#[tokio::test]
async fn match_conditions_exclude_terminating_pods_from_kubernetes_1_28_on() {
    let mut conditional = deletions();
    conditional["matchConditions"] = json!([{
        "name": "running", "expression": "!has(oldObject.metadata.deletionTimestamp)",
    }]);
    let reviewer = Reviewer::with(vec![conditional]).await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    reviewer.await_deleted("game").await;
    assert_eq!(reviewer.removal_requests().len(), 1);
    let of_terminating = reviewer.reviews().iter().any(is_terminating);
    assert_eq!(of_terminating, reviewer.control_plane.minor_version() < 28);
}
