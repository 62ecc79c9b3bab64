use serde_json::{Value, json};
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use crate::pod::Pod;
use crate::samples::{decided, now, object, pod};

const REVISION: &str = "/metadata/labels/controller-revision-hash";
const GUARD: &str = "/metadata/labels/tkex.tencent.com~1removal-guard";

/// Returns a pod whose removal these users requested this many seconds ago.
fn requested(requests: &[(&str, i64)]) -> Pod {
    let mut recorded = RemovalRequests::default();
    for (requester, ago) in requests {
        let time = now() - jiff::SignedDuration::from_secs(*ago);
        recorded.record(requester, RemovalType::Eviction, time).unwrap();
    }
    let mut pod = pod("a", &[(GUARD, json!("Ask")), (REVISION, json!("new"))]);
    if !requests.is_empty() {
        pod.annotations
            .insert(REMOVAL_REQUESTED.to_owned(), recorded.text());
    }
    pod
}

/// Returns the events about expired requests, if the old status lists these requesters.
fn events(listed: &[&str], pod: Pod, over: &[(&str, Value)]) -> Vec<String> {
    let entry = |requester: &&str| {
        json!({
            "podName": "a", "podUID": "uid-a", "requester": requester, "type": "Eviction",
            "requestTime": "2024-05-31T23:00:00Z",
        })
    };
    let listed: Vec<Value> = listed.iter().map(entry).collect();
    let mut all = vec![
        ("/spec/replicas", json!(1)),
        ("/spec/disruption/policy", json!("Ask")),
        (
            "/spec/preDeleteUpdateStrategy",
            json!({ "hook": { "templateName": "ask" } }),
        ),
        ("/status", json!({ "removalRequests": listed })),
    ];
    all.extend_from_slice(over);
    let plan = decided(&object(&all), &[pod], &[]);
    let of_reason = |warning: &crate::plan::Warning| warning.reason.as_str() == "RemovalRequestExpired";
    let warnings = plan.warnings.into_iter().filter(of_reason);
    warnings.map(|warning| warning.message).collect()
}

#[test]
fn a_pod_whose_last_request_has_expired_gets_one_event() {
    let expired = "the removal request of drain was not repeated in time and has expired; pod a is kept";
    assert_eq!(events(&["drain"], requested(&[("drain", 901)]), &[]), [expired]);
    let both = requested(&[("drain", 901), ("jane", 1000)]);
    let message =
        "the removal requests of drain, jane were not repeated in time and have expired; pod a is kept";
    assert_eq!(events(&["drain", "jane"], both, &[]), [message]);
}

#[test]
fn requests_that_have_not_expired_now_send_no_event() {
    let none: [&str; 0] = [];
    for (case, listed, pod) in [
        ("valid", &["drain"][..], requested(&[("drain", 10)])),
        (
            "another is valid",
            &["drain"],
            requested(&[("drain", 901), ("jane", 10)]),
        ),
        ("reported before", &[], requested(&[("drain", 901)])),
        ("withdrawn", &["drain"], requested(&[])),
        (
            "withdrawn beside another",
            &["drain"],
            requested(&[("jane", 901)]),
        ),
    ] {
        assert_eq!(events(listed, pod, &[]), none, "{case}");
    }
    let mut replaced = requested(&[("drain", 901)]);
    replaced.uid = "another".to_owned();
    assert_eq!(
        events(&["drain"], replaced, &[]),
        none,
        "another pod of this name"
    );
    let named = [("/spec/scaleStrategy/podsToDelete", json!(["a"]))];
    let expired = requested(&[("drain", 901)]);
    assert_eq!(
        events(&["drain"], expired.clone(), &named),
        none,
        "named by podsToDelete"
    );
    let surplus = [("/spec/replicas", json!(0))];
    assert_eq!(events(&["drain"], expired, &surplus), none, "surplus");
}
