//! The removal request of the user that drains a node, in the annotation of a pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{InvalidRequests, RemovalRequests, RemovalType};

use crate::cluster::Failure;
use crate::command::keep::annotate;

/// Returns whether the request of a user must be recorded, or repeated.
pub(super) fn is_due(pod: &Pod, requester: &str, valid_for: SignedDuration, now: Timestamp) -> bool {
    let Some(Ok(requests)) = parsed(pod) else {
        return true;
    };
    requests.of(requester).is_none_or(|known| {
        known.type_ != RemovalType::Manual
            || known.expires(valid_for) <= now
            || known.is_repetition_due(now, valid_for)
    })
}

/// Returns the patch that records the request of a user on a pod, or repeats it.
pub(super) fn record(
    pod: &Pod,
    requester: &str,
    valid_for: SignedDuration,
    now: Timestamp,
) -> Result<Value, Failure> {
    let text = pod.annotations().get(REMOVAL_REQUESTED).map(String::as_str);
    let mut requests = RemovalRequests::to_extend(text).map_err(|newer| {
        Failure::Refused(format!(
            "annotation {REMOVAL_REQUESTED} {newer}; install the version of kubectl game that matches the operator"
        ))
    })?;
    let record = |requests: &mut RemovalRequests| requests.record(requester, RemovalType::Manual, now);
    // By the clock of this machine, so only if there is no room otherwise.
    let recorded = record(&mut requests).or_else(|_| {
        requests.drop_expired(now, valid_for);
        record(&mut requests)
    });
    recorded.map_err(|too_many| Failure::Refused(too_many.to_string()))?;
    Ok(annotate(Some(requests.text())))
}

/// Returns whether a user has requested the removal of a pod with this command.
pub(super) fn is_requested(pod: &Pod, requester: &str) -> bool {
    let Some(Ok(requests)) = parsed(pod) else {
        return false;
    };
    let known = requests.of(requester);
    known.is_some_and(|known| known.type_ == RemovalType::Manual)
}

/// Returns the patch that withdraws the request of a user, and the requests that are left.
pub(super) fn withdraw(pod: &Pod, requester: &str) -> Option<(Value, RemovalRequests)> {
    if !is_requested(pod, requester) {
        return None;
    }
    let mut requests = parsed(pod)?.ok()?;
    requests.withdraw(requester);
    Some((annotate(requests.annotation()), requests))
}

fn parsed(pod: &Pod) -> Option<Result<RemovalRequests, InvalidRequests>> {
    let text = pod.annotations().get(REMOVAL_REQUESTED)?;
    Some(RemovalRequests::parse(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples::{self, now, removal_requests};

    const VALID_FOR: SignedDuration = SignedDuration::from_mins(15);

    fn annotated(text: &str) -> Pod {
        samples::pod("arena-x7k2p", "arena-7d4b9c", json!({ REMOVAL_REQUESTED: text }))
    }

    fn requested(made: &[(&str, RemovalType, i64)]) -> Pod {
        annotated(&removal_requests(made))
    }

    fn bare() -> Pod {
        samples::pod("arena-x7k2p", "arena-7d4b9c", json!({}))
    }

    #[test]
    fn a_request_is_repeated_once_a_quarter_of_its_validity_has_passed() {
        let is_due = |pod: &Pod| is_due(pod, "jane", VALID_FOR, now());
        for (ago, due) in [(0, false), (224, false), (225, true), (900, true)] {
            assert_eq!(
                is_due(&requested(&[("jane", RemovalType::Manual, ago)])),
                due,
                "{ago}"
            );
        }
        assert!(is_due(&bare()));
        assert!(is_due(&annotated("drain")));
        assert!(is_due(&requested(&[("joe", RemovalType::Manual, 1)])));
        assert!(is_due(&requested(&[("jane", RemovalType::Eviction, 1)])));
        let expired = r#"{"v":1,"requests":[{"requester":"jane","type":"Manual",
            "requestTime":"2026-01-02T09:59:59Z","expirationTime":"2026-01-02T10:00:00Z"}]}"#;
        assert!(is_due(&annotated(expired)));
    }

    /// Records the request of jane. Returns the requests with their types.
    fn recorded(pod: &Pod) -> Vec<(String, RemovalType)> {
        let patch = record(pod, "jane", VALID_FOR, now()).unwrap();
        let text = patch["metadata"]["annotations"][REMOVAL_REQUESTED].as_str();
        let requests = RemovalRequests::parse(text.unwrap()).unwrap();
        assert_eq!(requests.of("jane").unwrap().last_repetition().timestamp(), now());
        requests
            .iter()
            .map(|request| (request.requester.clone(), request.type_))
            .collect()
    }

    #[test]
    fn a_request_is_recorded_beside_those_of_others() {
        let jane = ("jane".to_owned(), RemovalType::Manual);
        let joe = ("joe".to_owned(), RemovalType::Eviction);
        for pod in [bare(), annotated("drain")] {
            assert_eq!(recorded(&pod), std::slice::from_ref(&jane));
        }
        let both = requested(&[
            ("jane", RemovalType::Eviction, 300),
            ("joe", RemovalType::Eviction, 10),
        ]);
        assert_eq!(recorded(&both), [jane.clone(), joe]);
        let late = requested(&[("joe", RemovalType::Eviction, 900)]);
        assert_eq!(
            recorded(&late),
            [("joe".to_owned(), RemovalType::Eviction), jane.clone()]
        );
        let full = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|user| (user, RemovalType::Eviction, 900));
        assert_eq!(recorded(&requested(&full)), [jane]);
    }

    #[test]
    fn a_request_that_cannot_be_recorded_has_a_reason() {
        let failed = |pod: &Pod| record(pod, "jane", VALID_FOR, now()).unwrap_err().to_string();
        let made = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|user| (user, RemovalType::Manual, 1));
        let words = "8 others have already requested the removal of this pod";
        assert_eq!(failed(&requested(&made)), words);
        let newer = failed(&annotated("{\"v\":2}"));
        let words = "annotation tkex.tencent.com/removal-requested has version 2; ";
        assert!(newer.starts_with(words), "{newer}");
    }

    #[test]
    fn only_the_own_manual_request_is_withdrawn() {
        let both = requested(&[
            ("jane", RemovalType::Manual, 60),
            ("joe", RemovalType::Manual, 10),
        ]);
        let (patch, left) = withdraw(&both, "jane").unwrap();
        let text = removal_requests(&[("joe", RemovalType::Manual, 10)]);
        assert_eq!(patch, annotate(Some(text.clone())));
        assert_eq!(left.text(), text);
        let (patch, left) = withdraw(&requested(&[("jane", RemovalType::Manual, 60)]), "jane").unwrap();
        assert_eq!((patch, left.is_empty()), (annotate(None), true));
        for other in [
            bare(),
            annotated("drain"),
            requested(&[("joe", RemovalType::Manual, 10)]),
            requested(&[("jane", RemovalType::Eviction, 10)]),
        ] {
            assert_eq!(withdraw(&other, "jane"), None);
        }
    }
}
