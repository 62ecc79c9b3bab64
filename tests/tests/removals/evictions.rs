//! One pod is evicted.

use kube::api::PostParams;
use serde_json::{Value, json};

use crate::reviewer::{GUARDED, Reviewer, deletions, evictions, is_terminating, refusal};

/// So a guard needs a webhook for each, and has to look the pod up.
#[tokio::test]
async fn an_eviction_is_no_deletion_and_its_review_has_no_pod() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    reviewer.evict("game", json!({})).await.unwrap();
    reviewer.gone("game").await;
    let wishes = reviewer.wishes();
    assert_eq!(wishes.len(), 1, "{wishes:#?}");
    let review = &wishes[0];
    assert_eq!(review["operation"], "CREATE");
    assert_eq!(review["subResource"], "eviction");
    assert_eq!(review["name"], "game");
    assert_eq!(review["namespace"], reviewer.namespace);
    assert_eq!(review["object"]["kind"], "Eviction");
    assert_eq!(review["object"]["metadata"]["labels"], Value::Null);
    assert_eq!(review["oldObject"], Value::Null);
    assert_eq!(review["userInfo"]["username"], "admin");
    let deletions = reviewer
        .reviews()
        .into_iter()
        .filter(|review| review["operation"] == "DELETE");
    assert!(
        deletions.into_iter().all(|review| is_terminating(&review)),
        "only the kubelet's own"
    );
}

#[tokio::test]
async fn labels_of_a_pod_select_no_eviction_of_it() {
    let mut selecting = evictions();
    selecting["objectSelector"] = json!({ "matchLabels": { GUARDED: "yes" } });
    let reviewer = Reviewer::with(vec![deletions(), selecting]).await;
    reviewer.pod("game", json!({})).await;
    reviewer.answer(|review| (review["subResource"] == "eviction").then(|| refusal(403, "not now")));
    let labelled = json!({ "metadata": { "labels": { GUARDED: "yes" } } });
    let said = reviewer.evict("game", labelled).await.unwrap_err();
    assert_eq!(said.code, 403, "those of the Eviction do");
    reviewer.evict("game", json!({})).await.unwrap();
    reviewer.gone("game").await;
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_its_words() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    for code in [403, 409, 429, 503] {
        reviewer.answer(move |_| Some(refusal(code, "players are on it")));
        let said = reviewer.evict("game", json!({})).await.unwrap_err();
        let seconds = said.details.map_or(0, |details| details.retry_after_seconds);
        assert_eq!((said.code, seconds), (code, 0));
        assert!(
            said.message.ends_with("denied the request: players are on it"),
            "{}",
            said.message
        );
    }
    reviewer
        .answer(|_| Some(json!({ "code": 429, "message": "later", "details": { "retryAfterSeconds": 7 } })));
    let said = reviewer.evict("game", json!({})).await.unwrap_err();
    assert_eq!(said.details.unwrap().retry_after_seconds, 7);
}

/// So dry runs have to be looked for in both places.
#[tokio::test]
async fn a_dry_run_in_the_body_is_not_told_in_the_review() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let in_body = json!({ "deleteOptions": { "dryRun": ["All"] } });
    reviewer.evict("game", in_body).await.unwrap();
    let in_query = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    reviewer.evict_with("game", &in_query, json!({})).await.unwrap();
    let reviews = reviewer.reviews();
    let told: Vec<(&Value, &Value)> = reviews
        .iter()
        .map(|review| (&review["dryRun"], &review["object"]["deleteOptions"]["dryRun"][0]))
        .collect();
    assert_eq!(
        told,
        [(&json!(false), &json!("All")), (&json!(true), &Value::Null)]
    );
    let pods = reviewer.pods();
    assert!(
        pods.get("game")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
}

#[tokio::test]
async fn the_webhook_is_asked_before_the_budget_and_its_refusal_wins() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let budget = json!({
        "apiVersion": reviewer.policy(), "kind": "PodDisruptionBudget", "metadata": { "name": "all" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { GUARDED: "yes" } } },
    });
    let mut command = reviewer.control_plane.kubectl();
    command.args(["--namespace", &reviewer.namespace, "create", "--filename", "-"]);
    let created = test_kit::process::output_of(&mut command, &budget.to_string()).unwrap();
    assert!(
        created.status.success(),
        "{}",
        String::from_utf8_lossy(&created.stderr)
    );
    let said = reviewer.evict("game", json!({})).await.unwrap_err();
    assert_eq!(
        (said.code, reviewer.reviews().len()),
        (429, 1),
        "the budget refuses, after the webhook"
    );
    assert!(!said.message.contains("denied the request"), "{}", said.message);
    reviewer.answer(|_| Some(refusal(429, "players are on it")));
    let said = reviewer.evict("game", json!({})).await.unwrap_err();
    assert!(said.message.ends_with("players are on it"), "{}", said.message);
}
