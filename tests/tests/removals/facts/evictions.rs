//! Eviction of one pod.

use kube::api::PostParams;
use serde_json::{Value, json};
use test_kit::process::output_of;

use super::reviewer::{GUARDED, Reviewer, deletions, denial, evictions, is_terminating};

/// A guard therefore needs a webhook for evictions, which looks up the pod.
#[tokio::test]
async fn an_eviction_is_reviewed_as_a_create_without_the_pod_and_not_as_a_delete() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.evict("game", json!({})).await.unwrap();
    reviewer.await_deleted("game").await;
    let requests = reviewer.removal_requests();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    let review = &requests[0];
    assert_eq!(review["operation"], "CREATE");
    assert_eq!(review["subResource"], "eviction");
    assert_eq!(review["name"], "game");
    assert_eq!(review["namespace"], reviewer.namespace);
    assert_eq!(review["object"]["kind"], "Eviction");
    assert_eq!(review["object"]["metadata"]["labels"], Value::Null);
    assert_eq!(review["oldObject"], Value::Null);
    assert_eq!(review["userInfo"]["username"], "admin");
    let reviews = reviewer.reviews();
    let mut deletions = reviews.iter().filter(|review| review["operation"] == "DELETE");
    assert!(
        deletions.all(is_terminating),
        "a deletion other than the kubelet's was reviewed"
    );
}

#[tokio::test]
async fn evictions_are_selected_by_the_labels_of_the_eviction_and_not_of_the_pod() {
    let mut selecting = evictions();
    selecting["objectSelector"] = json!({ "matchLabels": { GUARDED: "yes" } });
    let reviewer = Reviewer::with(vec![deletions(), selecting]).await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.respond_with(|review| (review["subResource"] == "eviction").then(|| denial(403, "not now")));
    let labelled = json!({ "metadata": { "labels": { GUARDED: "yes" } } });
    let error = reviewer.evict("game", labelled).await.unwrap_err();
    assert_eq!(error.code, 403, "{}", error.message);
    reviewer.evict("game", json!({})).await.unwrap();
    reviewer.await_deleted("game").await;
}

#[tokio::test]
async fn code_message_and_retry_after_seconds_of_a_denied_eviction_reach_the_client() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    for code in [403, 409, 429, 503] {
        reviewer.respond_with(move |_| Some(denial(code, "players are on it")));
        let error = reviewer.evict("game", json!({})).await.unwrap_err();
        let seconds = error.details.map_or(0, |details| details.retry_after_seconds);
        assert_eq!((error.code, seconds), (code, 0));
        assert!(
            error.message.ends_with("denied the request: players are on it"),
            "{}",
            error.message
        );
    }
    let later = json!({ "code": 429, "message": "later", "details": { "retryAfterSeconds": 7 } });
    reviewer.respond_with(move |_| Some(later.clone()));
    let error = reviewer.evict("game", json!({})).await.unwrap_err();
    assert_eq!(error.details.unwrap().retry_after_seconds, 7);
}

/// A webhook must therefore check both places for a dry run.
#[tokio::test]
async fn a_dry_run_in_the_body_of_an_eviction_does_not_set_dry_run_in_its_review() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let in_body = json!({ "deleteOptions": { "dryRun": ["All"] } });
    reviewer.evict("game", in_body).await.unwrap();
    let in_query = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    reviewer.evict_with("game", &in_query, json!({})).await.unwrap();
    let reviews = reviewer.reviews();
    let dry_runs: Vec<(&Value, &Value)> = reviews
        .iter()
        .map(|review| (&review["dryRun"], &review["object"]["deleteOptions"]["dryRun"][0]))
        .collect();
    assert_eq!(
        dry_runs,
        [(&json!(false), &json!("All")), (&json!(true), &Value::Null)]
    );
    let pod = reviewer.pods().get("game").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
}

#[tokio::test]
async fn evictions_are_reviewed_before_the_disruption_budget_is_checked() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let budget = json!({
        "apiVersion": reviewer.policy_version(), "kind": "PodDisruptionBudget", "metadata": { "name": "all" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { GUARDED: "yes" } } },
    });
    let mut command = reviewer.control_plane.kubectl();
    command.args(["--namespace", &reviewer.namespace, "create", "--filename", "-"]);
    let created = output_of(&mut command, &budget.to_string()).unwrap();
    assert!(
        created.status.success(),
        "{}",
        String::from_utf8_lossy(&created.stderr)
    );
    let error = reviewer.evict("game", json!({})).await.unwrap_err();
    assert_eq!(
        (error.code, reviewer.reviews().len()),
        (429, 1),
        "the budget rejects the eviction after one review"
    );
    assert!(!error.message.contains("denied the request"), "{}", error.message);
    reviewer.respond_with(|_| Some(denial(429, "players are on it")));
    let error = reviewer.evict("game", json!({})).await.unwrap_err();
    assert!(error.message.ends_with("players are on it"), "{}", error.message);
}
