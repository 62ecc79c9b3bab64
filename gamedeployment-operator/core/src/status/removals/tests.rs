use jiff::SignedDuration;
use serde_json::json;
use shared_api::game_deployment::RemovalRequestStatus;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use super::MAX_ENTRIES;
use crate::pod::Pod;
use crate::samples::{decided, now, object, pod};

/// Returns a pod whose removal these users requested this many seconds ago.
fn requested(name: &str, requests: &[(&str, i64)]) -> Pod {
    let mut recorded = RemovalRequests::default();
    for (requester, ago) in requests {
        let time = now() - SignedDuration::from_secs(*ago);
        recorded.record(requester, RemovalType::Manual, time).unwrap();
    }
    let labels = [
        ("/metadata/labels/controller-revision-hash", json!("new")),
        ("/metadata/labels/tkex.tencent.com~1removal-guard", json!("Ask")),
    ];
    let mut pod = pod(name, &labels);
    pod.annotations
        .insert(REMOVAL_REQUESTED.to_owned(), recorded.text());
    pod
}

/// Returns the number of requested pods and the requests in the status.
fn listed(pods: &[Pod]) -> (i32, Vec<RemovalRequestStatus>) {
    let object = object(&[
        ("/spec/replicas", json!(pods.len())),
        ("/spec/disruption/policy", json!("Ask")),
        (
            "/spec/preDeleteUpdateStrategy",
            json!({ "hook": { "templateName": "ask" } }),
        ),
    ]);
    let status = decided(&object, pods, &[]).status.unwrap();
    (status.removal_pending_replicas, status.removal_requests)
}

fn count_of(pod: &str, requests: &[RemovalRequestStatus]) -> usize {
    requests.iter().filter(|request| request.pod_name == pod).count()
}

/// Returns pods with one request each, the first one the oldest.
fn with_one_request(pods: i64) -> Vec<Pod> {
    let pods = (0..pods).map(|number| requested(&format!("p{number:03}"), &[("ci", 500 - number)]));
    pods.collect()
}

#[test]
fn each_pod_is_listed_before_further_requests_of_one() {
    let mut pods = with_one_request(99);
    pods.push(requested("busy", &[("a", 800), ("b", 799), ("c", 798)]));
    let (pending, requests) = listed(&pods);
    assert_eq!((pending, requests.len()), (100, MAX_ENTRIES));
    for pod in &pods {
        assert_eq!(count_of(&pod.name, &requests), 1, "{}", pod.name);
    }
    assert_eq!(requests[0].requester, "a", "its oldest request");
    assert!(requests.is_sorted_by_key(|request| request.request_time));
    // There is room for a further one.
    pods.remove(0);
    let (pending, requests) = listed(&pods);
    assert_eq!((pending, requests.len()), (99, MAX_ENTRIES));
    assert_eq!(count_of("busy", &requests), 2);
    assert!(requests.is_sorted_by_key(|request| request.request_time));
}

#[test]
fn the_pods_with_the_oldest_requests_are_listed_first() {
    let pods = with_one_request(101);
    let (pending, requests) = listed(&pods);
    assert_eq!((pending, requests.len()), (101, MAX_ENTRIES));
    assert_eq!(count_of("p000", &requests), 1);
    assert_eq!(count_of("p100", &requests), 0);
}
