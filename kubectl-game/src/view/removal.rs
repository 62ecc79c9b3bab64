//! View of the removal requests of a pod, and whether they have an effect.

use std::fmt;

use gamedeployment_core::deletion;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::workload::{Disruption, DisruptionPolicy, Workload};
use jiff::{SignedDuration, Timestamp};
use redact::printable;
use serde::Serialize;
use shared_api::GameDeployment;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequest, RemovalRequests, UnrecordedType};
use shared_api::time::Time;

use super::age;
use crate::cluster::Snapshot;

/// Reason why requests have no effect, if the policy is `Unguarded`.
pub(crate) const UNGUARDED: &str = "spec.disruption.policy is Unguarded";

/// Removal requests of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemovalView {
    /// Requests that have not expired: those that are recorded on the pod, in this order, unless they cannot be parsed;
    /// then the others.
    pub(crate) requests: Vec<RequestView>,
    /// Reason why the recorded requests are ignored.
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
    pub(crate) type_: &'static str,
    /// Time of the first request.
    pub(crate) request_time: Timestamp,
    /// Time of the last repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renew_time: Option<Timestamp>,
    /// Time at which the request expires; `None` if it is not recorded on the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expiration_time: Option<Timestamp>,
    /// Whether a repetition extends the request.
    #[serde(skip)]
    is_extended: bool,
    /// Kind of request, if it is not recorded on the pod.
    #[serde(skip)]
    pub(crate) unrecorded: Option<UnrecordedType>,
}

/// Removal request that is not recorded on the pod, as the status of the workload lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnrecordedRequest<'g> {
    /// Requester: the node, or the requester of an Eviction.
    pub(crate) requester: &'g str,
    /// Kind of request.
    pub(crate) type_: UnrecordedType,
    request_time: Timestamp,
}

impl RemovalView {
    /// Reads the requests of a pod; `None` without any. Requests for a pod that has ended or is terminating are moot,
    /// and so are those for pods of a workload that is being deleted: all of them are deleted.
    pub(crate) fn of(snapshot: &Snapshot, pod: &Pod) -> Option<Self> {
        let is_moot = !pod.is_active() || deletion::is_requested(&snapshot.game);
        let text = pod.annotation(REMOVAL_REQUESTED).filter(|_| !is_moot);
        let unrecorded = if is_moot {
            Vec::new()
        } else {
            UnrecordedRequest::of(&snapshot.game, &pod.uid)
        };
        if text.is_none() && unrecorded.is_empty() {
            return None;
        }
        let (workload, _) = Workload::examine(&snapshot.game);
        let Disruption {
            policy,
            request_expiration,
            on_cordon: _,
            autoscaler_annotations: _,
        } = workload.disruption;
        let parsed = text.map_or_else(|| Ok(RemovalRequests::default()), RemovalRequests::parse);
        let ignored_because = match (policy, &parsed) {
            (DisruptionPolicy::Unguarded, _) => Some(UNGUARDED.to_owned()),
            (DisruptionPolicy::Ask, Err(invalid)) => Some(format!(
                "annotation {REMOVAL_REQUESTED} {}",
                printable(&invalid.to_string())
            )),
            (DisruptionPolicy::Ask, Ok(_)) => None,
        };
        let is_invalid = parsed.is_err();
        let mut recorded = parsed.unwrap_or_default();
        recorded.drop_expired(snapshot.now, request_expiration);
        let recorded = recorded
            .iter()
            .map(|request| RequestView::of(request, request_expiration));
        let unrecorded = unrecorded.into_iter().map(RequestView::from_unrecorded);
        let requests: Vec<RequestView> = recorded.chain(unrecorded).collect();
        (is_invalid || !requests.is_empty()).then_some(Self {
            requests,
            ignored_because,
        })
    }

    /// Returns whether the pod is deleted because of the requests.
    pub(crate) fn is_effective(&self) -> bool {
        let has_recorded = self.recorded().next().is_some();
        self.unrecorded().next().is_some() || self.ignored_because.is_none() && has_recorded
    }

    /// Returns the requests that are recorded on the pod, and can be withdrawn from it.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = &RequestView> {
        self.requests
            .iter()
            .filter(|request| request.unrecorded.is_none())
    }

    /// Returns the requests that are not recorded on the pod, each with its kind.
    pub(crate) fn unrecorded(&self) -> impl Iterator<Item = (&RequestView, UnrecordedType)> {
        self.requests
            .iter()
            .filter_map(|request| Some((request, request.unrecorded?)))
    }
}

impl<'g> UnrecordedRequest<'g> {
    /// Returns the requests for a pod with this UID. With the policy `Unguarded`, such requests have no effect, and the
    /// status will soon no longer list them.
    pub(crate) fn of(game: &'g GameDeployment, pod_uid: &str) -> Vec<Self> {
        let listed = game.status.iter().flat_map(|status| &status.removal_requests);
        let requests = listed.filter_map(|entry| {
            let type_ = UnrecordedType::named(&entry.type_)?;
            (entry.pod_uid == pod_uid).then(|| Self {
                requester: &entry.requester,
                type_,
                request_time: entry.request_time.timestamp(),
            })
        });
        let (workload, _) = Workload::examine(game);
        match workload.disruption.policy {
            DisruptionPolicy::Unguarded => Vec::new(),
            DisruptionPolicy::Ask => requests.collect(),
        }
    }

    /// Formats the requester with the kind of request.
    pub(crate) fn author(&self) -> String {
        author(self.requester, self.type_.as_str())
    }
}

impl RequestView {
    fn of(request: &RemovalRequest, valid_for: SignedDuration) -> Self {
        Self {
            requester: request.requester.clone(),
            type_: request.type_.as_str(),
            request_time: request.request_time.timestamp(),
            renew_time: request.renew_time.map(Time::timestamp),
            expiration_time: Some(request.expires(valid_for)),
            is_extended: request.expiration_time.is_none(),
            unrecorded: None,
        }
    }

    fn from_unrecorded(request: UnrecordedRequest<'_>) -> Self {
        Self {
            requester: request.requester.to_owned(),
            type_: request.type_.as_str(),
            request_time: request.request_time,
            renew_time: None,
            expiration_time: None,
            is_extended: false,
            unrecorded: Some(request.type_),
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

    /// Describes when the request ends.
    pub(crate) fn end(&self, now: Timestamp) -> String {
        match (self.unrecorded, self.expiration_time) {
            (Some(UnrecordedType::Cordon), _) => {
                "valid while the node is cordoned or an autoscaler is removing it".to_owned()
            }
            (Some(UnrecordedType::Taint), _) => {
                "valid while the node has a NoExecute taint that the pod does not tolerate".to_owned()
            }
            (Some(UnrecordedType::EvictionRequest), _) => {
                "valid until the EvictionRequest is withdrawn".to_owned()
            }
            (None, expires) => {
                let left = age::between(now, expires.unwrap_or(now));
                let unless = if self.is_extended { " unless repeated" } else { "" };
                format!("expires in {left}{unless}")
            }
        }
    }
}

/// Formats a requester with the kind of request: `system:admin (Eviction)`.
pub(crate) fn author(requester: &str, type_: impl fmt::Display) -> String {
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
    use shared_api::removal_request::RemovalType;

    use super::*;
    use crate::view::samples::{
        self, now, removal_requests, with_eviction_request, with_node_request, with_removal,
    };

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
            (request.author(), request.age(now()), request.end(now()))
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
    fn the_request_of_a_node_is_read_from_the_status() {
        let read = |policy: &str, text: Option<&str>, uid: &str| {
            let annotation = text.unwrap_or_default().to_owned();
            let mut snapshot = with_removal(samples::complete(), policy, POD, annotation);
            let mut pods = snapshot.pods.iter_mut();
            let pod = pods.find(|pod| pod.name_any() == POD).unwrap();
            if text.is_none() {
                pod.metadata.annotations = None;
            }
            let pod = Pod::read(pod);
            RemovalView::of(&with_node_request(snapshot, uid, "Cordon"), &pod)
        };
        let view = read("Ask", None, "u-b4n8c").unwrap();
        assert!(view.is_effective());
        assert_eq!(
            serde_json::to_value(&view).unwrap(),
            json!({ "requests": [{
                "requester": "node/node-1", "type": "Cordon", "requestTime": "2026-01-02T09:57:00Z"
            }] })
        );
        assert_eq!(
            view.requests[0].end(now()),
            "valid while the node is cordoned or an autoscaler is removing it"
        );
        assert_eq!(read("Ask", None, "u-before"), None, "another pod of this name");
        assert_eq!(read("Unguarded", None, "u-b4n8c"), None);
        // An annotation that cannot be parsed is ignored, but not the node.
        let beside = read("Ask", Some("drain"), "u-b4n8c").unwrap();
        assert!(beside.is_effective() && beside.ignored_because.is_some());
        let made = removal_requests(&[("drain", RemovalType::Eviction, 60)]);
        let both = read("Ask", Some(&made), "u-b4n8c").unwrap();
        let authors: Vec<String> = both.requests.iter().map(RequestView::author).collect();
        assert_eq!(authors, ["drain (Eviction)", "node/node-1 (Cordon)"]);
        let unrecorded: Vec<UnrecordedType> = both.unrecorded().map(|(_, type_)| type_).collect();
        assert_eq!(
            (both.recorded().count(), unrecorded),
            (1, vec![UnrecordedType::Cordon])
        );
    }

    #[test]
    fn each_requester_of_an_eviction_has_a_request() {
        let made = removal_requests(&[("drain", RemovalType::Eviction, 60)]);
        let requested = |policy: &str, text: &str| {
            let snapshot = with_removal(samples::complete(), policy, POD, text.to_owned());
            let snapshot = with_node_request(snapshot, "u-b4n8c", "Taint");
            let snapshot = with_eviction_request(snapshot, "u-b4n8c", "acme.io/drain");
            let snapshot = with_eviction_request(snapshot, "u-b4n8c", "acme.io/scaler\u{1b}");
            with_eviction_request(snapshot, "u-q9w5d", "acme.io/other")
        };
        let view_of = |snapshot: &Snapshot| {
            let pod = snapshot.pods.iter().find(|pod| pod.name_any() == POD);
            RemovalView::of(snapshot, &Pod::read(pod.unwrap()))
        };
        let view = view_of(&requested("Ask", &made)).unwrap();
        let authors: Vec<String> = view.requests.iter().map(RequestView::author).collect();
        assert_eq!(
            authors,
            [
                "drain (Eviction)",
                "node/node-1 (Taint)",
                "acme.io/drain (EvictionRequest)",
                "acme.io/scaler  (EvictionRequest)"
            ]
        );
        assert_eq!((view.recorded().count(), view.unrecorded().count()), (1, 3));
        let request = &view.requests[2];
        assert_eq!(request.end(now()), "valid until the EvictionRequest is withdrawn");
        assert_eq!(
            serde_json::to_value(request).unwrap(),
            json!({
                "requester": "acme.io/drain", "type": "EvictionRequest", "requestTime": "2026-01-02T09:57:00Z"
            })
        );
        // An annotation that cannot be parsed ends none of them.
        let beside = view_of(&requested("Ask", "drain")).unwrap();
        assert!(beside.is_effective() && beside.requests.len() == 3, "{beside:?}");
        let unguarded = view_of(&requested("Unguarded", &made)).unwrap();
        assert_eq!(unguarded.requests.len(), 1, "{unguarded:?}");
        let deleted = samples::being_deleted(requested("Ask", &made), true);
        assert_eq!(view_of(&deleted), None);
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
