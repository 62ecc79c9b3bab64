//! View of the removal requests of a pod, and whether they have an effect.

use gamedeployment_core::deletion;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::{Disruption, DisruptionPolicy, Workload};
use jiff::{SignedDuration, Timestamp};
use redact::printable;
use serde::Serialize;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequest, RemovalRequests, RemovalType};
use shared_api::time::Time;

use super::age;
use crate::cluster::Snapshot;

/// Reason why requests have no effect, if the policy is `Unguarded`.
pub(crate) const UNGUARDED: &str = "spec.disruption.policy is Unguarded";

/// Removal requests of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemovalView {
    /// Requests that have not expired, in the order in which they were recorded; none if they cannot be parsed.
    pub(crate) requests: Vec<RequestView>,
    /// Reason why the requests are ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ignored_because: Option<String>,
}

/// Removal request of a requester.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestView {
    /// User or component that requests the removal.
    pub(crate) requester: String,
    /// Kind of request.
    #[serde(rename = "type")]
    pub(crate) type_: RemovalType,
    /// Time of the first request.
    pub(crate) request_time: Timestamp,
    /// Time of the last repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renew_time: Option<Timestamp>,
    /// Time at which the request expires.
    pub(crate) expiration_time: Timestamp,
    /// Whether a repetition extends the request.
    #[serde(skip)]
    is_extended: bool,
}

impl RemovalView {
    /// Reads the requests of a pod; `None` without any. Requests for a pod that has ended or is terminating are moot,
    /// and so are those for pods of a workload that is being deleted: all of them are deleted.
    pub(crate) fn of(snapshot: &Snapshot, pod: &Pod) -> Option<Self> {
        let is_moot = !pod.is_active() || deletion::is_requested(&snapshot.game);
        let text = pod.annotation(REMOVAL_REQUESTED).filter(|_| !is_moot)?;
        let (workload, _) = Workload::examine(&snapshot.game);
        let Disruption {
            policy,
            request_expiration,
        } = workload.disruption;
        let parsed = RemovalRequests::parse(text);
        let ignored_because = match (policy, &parsed) {
            (DisruptionPolicy::Unguarded, _) => Some(UNGUARDED.to_owned()),
            (DisruptionPolicy::Ask, Err(invalid)) => Some(format!(
                "annotation {REMOVAL_REQUESTED} {}",
                printable(&invalid.to_string())
            )),
            (DisruptionPolicy::Ask, Ok(_)) => None,
        };
        let is_invalid = parsed.is_err();
        let mut requests = parsed.unwrap_or_default();
        requests.drop_expired(snapshot.now, request_expiration);
        (is_invalid || !requests.is_empty()).then(|| Self {
            requests: requests
                .iter()
                .map(|request| RequestView::of(request, request_expiration))
                .collect(),
            ignored_because,
        })
    }

    /// Returns whether the pod is deleted because of the requests.
    pub(crate) fn is_effective(&self) -> bool {
        self.ignored_because.is_none() && !self.requests.is_empty()
    }
}

impl RequestView {
    fn of(request: &RemovalRequest, valid_for: SignedDuration) -> Self {
        Self {
            requester: request.requester.clone(),
            type_: request.type_,
            request_time: request.request_time.timestamp(),
            renew_time: request.renew_time.map(Time::timestamp),
            expiration_time: request.expires(valid_for),
            is_extended: request.expiration_time.is_none(),
        }
    }

    /// Formats the requester with the kind of request.
    pub(crate) fn author(&self) -> String {
        author(&self.requester, self.type_)
    }

    /// Formats the age of the request, with that of its last repetition: `3m ago`.
    pub(crate) fn age(&self, now: Timestamp) -> String {
        let first = age::between(self.request_time, now);
        match self.renew_time {
            Some(last) => format!("{first} ago, last repeated {} ago", age::between(last, now)),
            None => format!("{first} ago"),
        }
    }

    /// Describes when the request expires.
    pub(crate) fn expiration(&self, now: Timestamp) -> String {
        let left = age::between(now, self.expiration_time);
        let unless = if self.is_extended { " unless repeated" } else { "" };
        format!("expires in {left}{unless}")
    }
}

/// Formats a requester with the kind of request: `system:admin (Eviction)`.
pub(crate) fn author(requester: &str, type_: RemovalType) -> String {
    format!("{} ({type_})", printable(requester))
}

/// Returns the predicate of a pod whose removal is requested.
pub(crate) fn prospect(workload: &Workload) -> &'static str {
    if workload.pre_delete.step.is_some() {
        "will be deleted and replaced once its PreDelete hook succeeds"
    } else {
        "will be deleted and replaced once enough other pods are available"
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;
    use crate::view::samples::{self, now, removal_requests, with_removal};

    const POD: &str = "arena-b4n8c";

    fn read(policy: &str, text: String) -> Option<RemovalView> {
        let snapshot = with_removal(samples::complete(), policy, POD, text);
        let pod = snapshot.pods.iter().find(|pod| pod.name_any() == POD)?;
        RemovalView::of(&snapshot, &Pod::read(pod))
    }

    #[test]
    fn requests_that_have_expired_are_not_shown() {
        let type_ = RemovalType::Eviction;
        let made = removal_requests(&[("late", type_, 900), ("drain", type_, 899)]);
        let view = read("Ask", made).unwrap();
        assert!(view.is_effective());
        let requesters: Vec<String> = view.requests.iter().map(RequestView::author).collect();
        assert_eq!(requesters, ["drain (Eviction)"]);
        assert_eq!(read("Ask", removal_requests(&[("late", type_, 900)])), None);
    }

    #[test]
    fn a_request_that_a_repetition_does_not_extend_expires_all_the_same() {
        let request = |field: &str, time: &str| {
            let mut request = json!({ "type": "Manual", "requestTime": "2026-01-02T09:50:00Z" });
            request["requester"] = json!("ci\u{1b}\u{202e}");
            request[field] = json!(time);
            let text = json!({ "v": 1, "requests": [request] }).to_string();
            let request = read("Ask", text).unwrap().requests.remove(0);
            (request.author(), request.age(now()), request.expiration(now()))
        };
        let shown = |age: &str, expiration: &str| {
            let author = "ci  (Manual)".to_owned();
            (author, age.to_owned(), expiration.to_owned())
        };
        assert_eq!(
            request("renewTime", "2026-01-02T09:59:00Z"),
            shown("10m ago, last repeated 60s ago", "expires in 14m unless repeated")
        );
        assert_eq!(
            request("expirationTime", "2026-01-02T11:00:00Z"),
            shown("10m ago", "expires in 60m")
        );
    }

    #[test]
    fn ignored_requests_have_a_reason() {
        let made = removal_requests(&[("drain", RemovalType::Eviction, 60)]);
        let unguarded = read("Unguarded", made).unwrap();
        assert_eq!(
            (unguarded.requests.len(), unguarded.ignored_because.as_deref()),
            (1, Some(UNGUARDED))
        );
        let invalid = read("Ask", "{\"v\":2}".to_owned()).unwrap();
        assert_eq!(
            (invalid.requests.len(), invalid.ignored_because.as_deref()),
            (
                0,
                Some(
                    "annotation tkex.tencent.com/removal-requested has version 2; this version of hookgate supports \
                     version 1"
                )
            )
        );
        assert!(!unguarded.is_effective() && !invalid.is_effective());
    }

    #[test]
    fn requests_are_moot_once_the_pod_is_terminating() {
        let made = removal_requests(&[("drain", RemovalType::Eviction, 60)]);
        let mut snapshot = with_removal(samples::complete(), "Ask", POD, made);
        let mut pods = snapshot.pods.iter_mut();
        let pod = pods.find(|pod| pod.name_any() == POD).unwrap();
        let at = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now());
        pod.metadata.deletion_timestamp = Some(at);
        let pod = Pod::read(pod);
        assert_eq!(RemovalView::of(&snapshot, &pod), None);
    }

    #[test]
    fn requests_are_moot_once_the_workload_is_being_deleted() {
        let made = removal_requests(&[("drain", RemovalType::Eviction, 60)]);
        let requested = with_removal(samples::complete(), "Ask", POD, made);
        let has_view = |snapshot: &Snapshot| {
            let mut pods = snapshot.pods.iter().map(Pod::read);
            pods.any(|pod| RemovalView::of(snapshot, &pod).is_some())
        };
        assert!(has_view(&requested));
        assert!(!has_view(&samples::being_deleted(requested, true)));
    }

    #[test]
    fn json_has_the_times_of_each_request() {
        let made = removal_requests(&[("drain", RemovalType::Eviction, 60)]);
        assert_eq!(
            serde_json::to_value(read("Ask", made)).unwrap(),
            json!({ "requests": [{
                "requester": "drain", "type": "Eviction", "requestTime": "2026-01-02T09:59:00Z",
                "expirationTime": "2026-01-02T10:14:00Z"
            }] })
        );
    }
}
