//! Deletion of one pod.

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use operator_tests::SOON;
use serde_json::{Value, json};
use test_kit::eventually;

use super::reviewer::{GUARDED, Reviewer, deletions, denial, is_terminating, updates};

/// Returns parameters with grace period 0: the API server removes the pod immediately.
fn immediately() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

#[tokio::test]
async fn deletions_are_selected_by_the_labels_of_the_pod_and_reviewed_with_the_pod() {
    let reviewer = Reviewer::new().await;
    let pod = reviewer
        .create_running_pod("guarded", json!({ "annotations": { "room": "7" } }))
        .await;
    reviewer
        .create_running_pod("free", json!({ "labels": { GUARDED: "no" } }))
        .await;
    reviewer.delete("free", &DeleteParams::default()).await.unwrap();
    reviewer.await_deleted("free").await;
    assert_eq!(
        reviewer.reviews(),
        Vec::<Value>::new(),
        "a pod with another value of the label was reviewed"
    );
    reviewer.respond_with(|_| Some(denial(403, "not now")));
    let error = reviewer
        .delete("guarded", &DeleteParams::default())
        .await
        .unwrap_err();
    assert_eq!(error.code, 403);
    assert_eq!(
        error.message,
        r#"admission webhook "deletions.example.com" denied the request: not now"#
    );
    let review = reviewer.reviews().remove(0);
    assert_eq!(review["operation"], "DELETE");
    assert_eq!(review["object"], Value::Null);
    assert_eq!(review["userInfo"]["username"], "admin");
    let old = &review["oldObject"];
    assert_eq!(old["metadata"]["uid"], *pod.metadata.uid.as_ref().unwrap());
    assert_eq!(old["metadata"]["annotations"]["room"], "7");
    assert_eq!(old["status"]["phase"], "Running");
    assert!(old["spec"]["nodeName"].is_string(), "{old}");
    let after = reviewer.pods().get("guarded").await.unwrap();
    assert_eq!(
        after.metadata.resource_version, pod.metadata.resource_version,
        "the denied request changed the pod"
    );
}

#[tokio::test]
async fn a_uid_precondition_of_a_deletion_is_checked_before_its_review() {
    let reviewer = Reviewer::new().await;
    let pod = reviewer.create_running_pod("game", json!({})).await;
    let with_uid = |uid: &str| DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let error = reviewer.delete("game", &with_uid("another")).await.unwrap_err();
    assert_eq!((error.code, reviewer.reviews().len()), (409, 0));
    let uid = pod.metadata.uid.unwrap();
    reviewer.delete("game", &with_uid(&uid)).await.unwrap();
    reviewer.await_deleted("game").await;
    let review = &reviewer.removal_requests()[0];
    assert_eq!(review["options"]["preconditions"]["uid"], uid);
}

/// A webhook must therefore give the same response for some seconds.
#[tokio::test]
async fn one_deletion_is_reviewed_up_to_three_times() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.delete("game", &immediately()).await.unwrap();
    reviewer.await_deleted("game").await;
    let reviews = reviewer.reviews();
    assert!((2..=3).contains(&reviews.len()), "{}", reviews.len());
    let mut uids: Vec<&str> = reviews
        .iter()
        .map(|review| review["uid"].as_str().unwrap())
        .collect();
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), reviews.len(), "two reviews have the same uid");
}

/// Kubernetes 1.20 reviews a denied request again, and deletes the pod if the second review allows it.
#[tokio::test]
async fn a_denied_deletion_succeeds_if_a_second_review_of_the_request_allows_it() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let mut count = 0;
    reviewer.respond_with(move |_| {
        count += 1;
        (count == 1).then(|| denial(403, "not now"))
    });
    let deleted = reviewer.delete("game", &DeleteParams::default()).await;
    let reviews = reviewer.removal_requests().len();
    match reviewer.control_plane.minor_version() {
        ..=20 => assert!(deleted.is_ok(), "{deleted:?}"),
        21..36 => {}
        36.. => assert!(deleted.is_err(), "{deleted:?}"),
    }
    match deleted {
        Err(_) => {
            assert_eq!(reviews, 1);
            let pod = reviewer.pods().get("game").await.unwrap();
            assert!(pod.metadata.deletion_timestamp.is_none());
        }
        Ok(()) => assert_eq!(reviews, 2, "the pod was deleted without a second review"),
    }
}

/// A denial would not keep the game server running, so a webhook must allow deletions of terminating pods.
#[tokio::test]
async fn a_terminating_pod_remains_while_the_deletion_by_its_kubelet_is_denied() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.respond_with(|review| is_terminating(review).then(|| denial(403, "too late")));
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async {
        if reviewer.reviews().iter().any(is_terminating) {
            Ok(())
        } else {
            Err("no deletion by the kubelet yet")
        }
    })
    .await;
    let pod = reviewer.pods().get("game").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_some());
    let last = reviewer.reviews().pop().unwrap();
    assert_eq!(
        last["options"]["gracePeriodSeconds"], 0,
        "the kubelet's final deletion has grace period 0"
    );
    reviewer.respond_with(|_| None);
    // The kubelet may repeat its deletion first.
    drop(reviewer.delete("game", &immediately()).await);
    reviewer.await_deleted("game").await;
}

#[tokio::test]
async fn the_review_of_a_dry_run_deletion_has_dry_run_true() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    let dry_run = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    reviewer.delete("game", &dry_run).await.unwrap();
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    reviewer.await_deleted("game").await;
    let dry_runs: Vec<Value> = reviewer
        .removal_requests()
        .iter()
        .map(|review| review["dryRun"].clone())
        .collect();
    assert_eq!(dry_runs[0], true);
    assert!(
        dry_runs[1..].iter().all(|dry_run| dry_run == false),
        "{dry_runs:?}"
    );
}

/// Removing the label bypasses a guard of deletions, so a guard must also review updates.
#[tokio::test]
async fn removing_the_label_is_reviewed_as_an_update_and_the_deletion_after_it_is_not() {
    let reviewer = Reviewer::with(vec![deletions(), updates()]).await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.clear();
    let unlabelled = Patch::Merge(json!({ "metadata": { "labels": { GUARDED: null } } }));
    let patched = reviewer
        .pods()
        .patch("game", &PatchParams::default(), &unlabelled)
        .await;
    patched.unwrap();
    let reviews = reviewer.reviews();
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0]["operation"], "UPDATE");
    assert_eq!(reviews[0]["oldObject"]["metadata"]["labels"][GUARDED], "yes");
    assert_eq!(reviews[0]["object"]["metadata"]["labels"][GUARDED], Value::Null);
    reviewer.respond_with(|_| Some(denial(403, "without effect")));
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    reviewer.await_deleted("game").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_deletion_is_reviewed_and_can_be_denied() {
    let reviewer = Reviewer::new().await;
    reviewer.create_running_pod("game", json!({})).await;
    reviewer.respond_with(|_| Some(denial(403, "players are on it")));
    let (succeeded, output) = reviewer.kubectl(&["delete", "pod", "game", "--force", "--grace-period=0"]);
    assert!(
        !succeeded && output.contains("denied the request: players are on it"),
        "{output}"
    );
    assert_eq!(reviewer.removal_requests()[0]["options"]["gracePeriodSeconds"], 0);
    let pod = reviewer.pods().get("game").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
}
