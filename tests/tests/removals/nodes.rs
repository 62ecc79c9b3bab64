//! Removal requests of nodes (cordons and `NoExecute` taints), and drains that are stopped.

use std::collections::BTreeSet;

use operator_tests::SOON;
use serde_json::json;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::TAINT_CONTROLLERS;
use test_kit::eventually;

use crate::guarded::Guarded;

/// Labels of the metric for evictions.
const EVICTIONS: [&str; 1] = ["kind=\"Eviction\""];
/// Labels of the metric for denied deletions of pods.
const DENIED_DELETIONS: [&str; 3] = ["kind=\"Pod\"", "operation=\"delete\"", "outcome=\"refused\""];

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_replaces_the_idle_pods_at_once_and_the_busy_one_when_its_match_ends_without_evictions() {
    let guarded = Guarded::new("cordon").await;
    let changes = json!({ "disruption": { "onCordon": "Ask" }, "updateStrategy": { "maxUnavailable": 4 } });
    let before = guarded.launch_with(4, changes).await;
    let (busy, idle) = guarded.occupy(&before, 1);
    let [node, other] = guarded.nodes();
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    guarded.await_replaced(&idle, 4).await;
    let requester = format!("node/{node}");
    guarded.await_requests(&[(&busy[0], "Cordon", &requester)]).await;
    guarded.fleet.quiet().await;
    guarded.assert_ended_after_hooks(&idle);
    assert!(guarded.requesters(&busy[0]).await.is_empty());
    guarded.end_match(&busy[0]);
    guarded.await_replaced(&before, 4).await;
    guarded.fleet.settled(4).await;
    guarded.await_requests(&[]).await;
    guarded.assert_ended_after_hooks(&before);
    assert_eq!(guarded.pods_on(&other).len(), 4);
    assert_eq!(guarded.count_reviews(&EVICTIONS).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_removes_no_pod_until_on_cordon_is_set_to_ask() {
    let guarded = Guarded::new("cordon-ignored").await;
    let before = guarded.launch(3, json!({ "maxUnavailable": 3 })).await;
    let [node, _] = guarded.nodes();
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    // Until this pod has been replaced, the operator has decided many times since the cordon.
    let first = before.first().unwrap();
    guarded.replace(first, &mut BTreeSet::new(), 3).await;
    guarded.await_requests(&[]).await;
    let ask = json!({ "disruption": { "onCordon": "Ask" } });
    guarded.fleet.set(ask).await;
    guarded.await_replaced(&before, 3).await;
    guarded.fleet.settled(3).await;
    guarded.assert_ended_after_hooks(&before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_pod_is_kept_after_its_drain_is_stopped_and_its_node_uncordoned_and_a_new_drain_removes_it() {
    let guarded = Guarded::new("drain-stopped").await;
    let before = guarded.launch(3, json!({ "maxUnavailable": 3 })).await;
    let (busy, mut ended) = guarded.occupy(&before, 1);
    let busy = busy[0].as_str();
    let [node, other] = guarded.nodes();
    let (succeeded, output) = guarded.kubectl(&["drain", &node, "--ignore-daemonsets", "--timeout=8s"]);
    assert!(!succeeded, "{output}");
    guarded.await_replaced(&ended, 3).await;
    guarded.await_requests(&[(busy, "Eviction", "admin")]).await;
    assert_ne!(guarded.count_reviews(&EVICTIONS).await, 0);
    let _ = guarded.fleet.kubectl(&["uncordon", &node], "");
    guarded.await_requests(&[]).await;
    guarded.await_withdrawn(busy).await;
    // Another cordon does not bring the requests back.
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    guarded.assert_kept(busy, &mut ended, 3).await;
    guarded.await_requests(&[]).await;

    // The drain ends before it repeats an eviction. The first one is recorded, although a quarter of the validity has
    // not passed since the evictions of the earlier drain.
    assert_eq!(guarded.pods_on(&node), BTreeSet::from([busy.to_owned()]));
    ended.insert(busy.to_owned());
    guarded.begin_match(busy);
    let (succeeded, output) = guarded.kubectl(&["drain", &node, "--ignore-daemonsets", "--timeout=3s"]);
    assert!(!succeeded, "{output}");
    assert_eq!(guarded.requesters(busy).await, ["admin"]);
    guarded.await_requests(&[(busy, "Eviction", "admin")]).await;
    guarded.end_match(busy);
    let (succeeded, output) = guarded.kubectl(&["drain", &node, "--ignore-daemonsets", "--timeout=120s"]);
    assert!(succeeded, "{output}");
    guarded.await_replaced(&ended, 3).await;
    guarded.fleet.settled(3).await;
    guarded.assert_ended_after_hooks(&ended);
    assert_eq!(guarded.pods_on(&other).len(), 3);
}

/// The taint controller repeats a denied deletion only a few times: see `facts/taints.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn a_no_execute_taint_requests_the_removal_of_a_busy_pod_until_it_is_removed() {
    let guarded = Guarded::new("taint").await;
    let before = guarded.launch(3, json!({ "maxUnavailable": 3 })).await;
    let (busy, mut ended) = guarded.occupy(&before, 1);
    let busy = busy[0].as_str();
    let [node, _] = guarded.nodes();
    let requester = format!("node/{node}");
    let by_taint = [(busy, "Taint", requester.as_str())];
    let taint = |taint: &str| {
        let _ = guarded.fleet.kubectl(&["taint", "nodes", &node, taint], "");
    };
    // The scheduler of the test kit ignores taints.
    let _ = guarded.fleet.kubectl(&["cordon", &node], "");
    taint("maintenance=now:NoExecute");
    guarded.await_replaced(&ended, 3).await;
    guarded.await_requests(&by_taint).await;
    let recorded = eventually(SOON, || async {
        let requesters = guarded.requesters(busy).await;
        if requesters.is_empty() {
            Err("no request")
        } else {
            Ok(requesters)
        }
    })
    .await;
    assert!(
        recorded.len() == 1 && TAINT_CONTROLLERS.contains(&recorded[0].as_str()),
        "{recorded:?}"
    );
    guarded.assert_ended_after_hooks(&ended);

    taint("maintenance:NoExecute-");
    guarded.await_requests(&[]).await;
    guarded.await_withdrawn(busy).await;
    guarded.assert_kept(busy, &mut ended, 3).await;

    guarded.begin_match(busy);
    let earlier = guarded.count_reviews(&DENIED_DELETIONS).await;
    taint("maintenance=now:NoExecute");
    guarded.await_requests(&by_taint).await;
    eventually(SOON, || async {
        match guarded.count_reviews(&DENIED_DELETIONS).await - earlier {
            denials @ 0..5 => Err(denials),
            _ => Ok(()),
        }
    })
    .await;
    // The controller no longer retries, and without the annotation its request has no effect, as if it had expired.
    let annotation = format!("{REMOVAL_REQUESTED}-");
    let _ = guarded.fleet.kubectl(&["annotate", "pod", busy, &annotation], "");
    guarded.fleet.quiet().await;
    guarded.await_requests(&by_taint).await;
    guarded.assert_ended_after_hooks(&ended);
    guarded.end_match(busy);
    ended.insert(busy.to_owned());
    guarded.await_replaced(&ended, 3).await;
    guarded.fleet.settled(3).await;
    guarded.assert_ended_after_hooks(&ended);
}
