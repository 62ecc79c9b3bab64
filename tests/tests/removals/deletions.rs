//! One pod is deleted.

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use crate::reviewer::{GUARDED, Reviewer, deletions, is_terminating, refusal};

/// Grace period 0: the pod is gone at once.
fn at_once() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

#[tokio::test]
async fn the_labels_of_the_stored_pod_select_and_a_review_holds_the_whole_pod() {
    let reviewer = Reviewer::new().await;
    let pod = reviewer
        .pod("guarded", json!({ "annotations": { "room": "7" } }))
        .await;
    reviewer.pod("free", json!({ "labels": { GUARDED: "no" } })).await;
    reviewer.delete("free", &DeleteParams::default()).await.unwrap();
    reviewer.gone("free").await;
    assert_eq!(
        reviewer.reviews(),
        Vec::<Value>::new(),
        "another label selects nothing"
    );
    reviewer.answer(|_| Some(refusal(403, "not now")));
    let said = reviewer
        .delete("guarded", &DeleteParams::default())
        .await
        .unwrap_err();
    assert_eq!(said.code, 403);
    assert_eq!(
        said.message,
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
        "unchanged"
    );
}

#[tokio::test]
async fn a_precondition_on_the_uid_is_checked_before_the_webhook_is_asked() {
    let reviewer = Reviewer::new().await;
    let pod = reviewer.pod("game", json!({})).await;
    let of = |uid: &str| DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let said = reviewer.delete("game", &of("another")).await.unwrap_err();
    assert_eq!((said.code, reviewer.reviews().len()), (409, 0));
    let uid = pod.metadata.uid.unwrap();
    reviewer.delete("game", &of(&uid)).await.unwrap();
    reviewer.gone("game").await;
    let wish = &reviewer.wishes()[0];
    assert_eq!(wish["options"]["preconditions"]["uid"], uid);
}

/// So an answer has to be the same for some seconds.
#[tokio::test]
async fn one_request_is_reviewed_up_to_three_times() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    reviewer.delete("game", &at_once()).await.unwrap();
    reviewer.gone("game").await;
    let reviews = reviewer.reviews();
    assert!((1..=3).contains(&reviews.len()), "{}", reviews.len());
    let mut ids: Vec<&str> = reviews
        .iter()
        .map(|review| review["uid"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), reviews.len(), "each has a uid of its own");
}

/// Up to 1.20 a denied request is reviewed again, and a denial that was taken back in between deletes the pod.
#[tokio::test]
async fn a_denial_that_is_taken_back_at_once_may_be_no_denial() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let mut asked = 0;
    reviewer.answer(move |_| {
        asked += 1;
        (asked == 1).then(|| refusal(403, "not now"))
    });
    let denied = reviewer.delete("game", &DeleteParams::default()).await;
    let reviews = reviewer.wishes().len();
    match denied {
        Err(_) => {
            assert_eq!(reviews, 1);
            assert!(
                reviewer
                    .pods()
                    .get("game")
                    .await
                    .unwrap()
                    .metadata
                    .deletion_timestamp
                    .is_none()
            );
        }
        Ok(()) => assert_eq!(reviews, 2, "it was asked again"),
    }
}

/// So what is terminating has to pass: whoever refuses it protects nobody.
#[tokio::test]
async fn a_denied_review_of_a_terminating_pod_keeps_it_terminating() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    reviewer.answer(|review| is_terminating(review).then(|| refusal(403, "too late")));
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    let denied = || {
        reviewer
            .reviews()
            .iter()
            .filter(|review| is_terminating(review))
            .count()
    };
    test_kit::eventually(operator_tests::SOON, || async {
        if denied() > 0 {
            Ok(())
        } else {
            Err("the kubelet has not asked yet")
        }
    })
    .await;
    let pod = reviewer.pods().get("game").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_some());
    let last = reviewer.reviews().pop().unwrap();
    assert_eq!(
        last["options"]["gracePeriodSeconds"], 0,
        "this is how a kubelet ends a pod"
    );
    reviewer.answer(|_| None);
    reviewer.delete("game", &at_once()).await.unwrap();
    reviewer.gone("game").await;
}

#[tokio::test]
async fn a_dry_run_is_told_in_the_review() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    let dry = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    reviewer.delete("game", &dry).await.unwrap();
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    reviewer.gone("game").await;
    let told: Vec<Value> = reviewer
        .wishes()
        .iter()
        .map(|review| review["dryRun"].clone())
        .collect();
    assert_eq!(told[0], true);
    assert!(told[1..].iter().all(|dry| dry == false), "{told:?}");
}

/// So the removal of the label is a way round, and has to be judged too.
#[tokio::test]
async fn without_its_label_a_pod_goes_unasked_and_the_loss_of_the_label_is_an_update() {
    let mut updates = deletions();
    updates["name"] = json!("updates.example.com");
    updates["rules"][0]["operations"] = json!(["UPDATE"]);
    let reviewer = Reviewer::with(vec![deletions(), updates]).await;
    reviewer.pod("game", json!({})).await;
    reviewer.forget();
    let bare = Patch::Merge(json!({ "metadata": { "labels": { GUARDED: null } } }));
    let patched = reviewer
        .pods()
        .patch("game", &PatchParams::default(), &bare)
        .await;
    patched.unwrap();
    let reviews = reviewer.reviews();
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0]["operation"], "UPDATE");
    assert_eq!(reviews[0]["oldObject"]["metadata"]["labels"][GUARDED], "yes");
    assert_eq!(reviews[0]["object"]["metadata"]["labels"][GUARDED], Value::Null);
    reviewer.answer(|_| Some(refusal(403, "nobody hears this")));
    reviewer.delete("game", &DeleteParams::default()).await.unwrap();
    reviewer.gone("game").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn force_is_reviewed_as_everything_else() {
    let reviewer = Reviewer::new().await;
    reviewer.pod("game", json!({})).await;
    reviewer.answer(|_| Some(refusal(403, "players are on it")));
    let (done, said) = reviewer.kubectl(&["delete", "pod", "game", "--force", "--grace-period=0"]);
    assert!(
        !done && said.contains("denied the request: players are on it"),
        "{said}"
    );
    assert_eq!(reviewer.wishes()[0]["options"]["gracePeriodSeconds"], 0);
    assert!(
        reviewer
            .pods()
            .get("game")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
}
