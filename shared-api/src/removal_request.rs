//! Requests to remove a pod, recorded on the pod in the annotation
//! [`REMOVAL_REQUESTED`](crate::names::pod::REMOVAL_REQUESTED).
//!
//! An eviction or a deletion of a guarded pod becomes a request: the pod's hook runs, and the operator deletes the pod
//! once the hook has succeeded. Requests are identified by their requester, so that one can be withdrawn without the
//! others. The annotation is an open door: everybody who may patch pods can write it, and all that a request achieves
//! is that the pod's hook runs.
//!
//! Requests of nodes and of Evictions (`lifecycle.k8s.io`) are never recorded: the operator derives them from the node or
//! the Eviction, and lists them in the status with the others.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Version of the annotation's format.
const VERSION: u32 = 1;
/// Seconds for which a request is valid after its last repetition, unless `requestExpirationSeconds` is set.
pub const DEFAULT_EXPIRATION_SECONDS: i32 = 900;
/// The repetition of a request is recorded only after this part of its validity.
const RENEWED_AFTER: i32 = 4;
/// Maximum number of requests for a pod.
pub const MAX_REQUESTS: usize = 8;
/// Maximum length of the annotation in bytes.
pub const MAX_BYTES: usize = 4096;
/// Maximum length of a requester in bytes. With it, [`MAX_REQUESTS`] requests always fit into [`MAX_BYTES`].
pub const MAX_REQUESTER_BYTES: usize = 160;
/// Users of the controllers that delete pods from nodes with a `NoExecute` taint, if kube-controller-manager runs with
/// `--use-service-account-credentials`, as in kubeadm and managed clusters. They repeat a denied deletion only for a
/// moment.
pub const TAINT_CONTROLLERS: [&str; 2] = [
    "system:serviceaccount:kube-system:node-controller",
    "system:serviceaccount:kube-system:taint-eviction-controller",
];

/// Kind of a removal request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RemovalType {
    /// The pod was evicted: `kubectl drain`, an autoscaler, a descheduler.
    Eviction,
    /// The pod was deleted: `kubectl delete pod`, a controller.
    Delete,
    /// A person requested it with `kubectl game`.
    Manual,
}

impl RemovalType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Eviction, Self::Delete, Self::Manual];

    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eviction => "Eviction",
            Self::Delete => "Delete",
            Self::Manual => "Manual",
        }
    }
}

impl fmt::Display for RemovalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Kind of a removal request that is not recorded on the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnrecordedType {
    /// The node has a `NoExecute` taint that the pod does not tolerate, or no longer.
    Taint,
    /// The node is cordoned, or an autoscaler is about to remove it.
    Cordon,
    /// The operator is the active responder of an Eviction (`lifecycle.k8s.io`) of the pod.
    EvictionRequest,
}

impl UnrecordedType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Taint, Self::Cordon, Self::EvictionRequest];

    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Taint => "Taint",
            Self::Cordon => "Cordon",
            Self::EvictionRequest => "EvictionRequest",
        }
    }

    /// Returns the type with this word; `None` for the type of a recorded request.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }
}

/// Returns the requester of a node's removal requests.
pub fn node_requester(node: &str) -> String {
    format!("node/{node}")
}

/// A request to remove a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemovalRequest {
    /// User or component that requests the removal.
    pub requester: String,
    /// Kind of request.
    #[serde(rename = "type")]
    pub type_: RemovalType,
    /// Time of the first request.
    pub request_time: Time,
    /// Time of the last repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<Time>,
    /// Time at which the request expires. If unset, it expires some time after its last repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<Time>,
}

impl RemovalRequest {
    /// Returns the time at which the request expires, if it is valid for this long after its last repetition.
    pub fn expires(&self, valid_for: SignedDuration) -> Timestamp {
        let repeated = self.last_repetition().timestamp();
        let implied = || repeated.checked_add(valid_for).unwrap_or(Timestamp::MAX);
        self.expiration_time.map_or_else(implied, Time::timestamp)
    }

    /// Returns the time of the last repetition, or of the request if it has not been repeated.
    pub fn last_repetition(&self) -> Time {
        self.renew_time.unwrap_or(self.request_time)
    }

    /// Returns whether a repetition of the request must be recorded: only after a part of its validity, because a drain
    /// repeats its evictions every 5 s.
    pub fn is_repetition_due(&self, now: Timestamp, valid_for: SignedDuration) -> bool {
        let last = self.last_repetition().timestamp();
        now.duration_since(last) >= valid_for / RENEWED_AFTER
    }

    /// Returns whether a request of this type by the same requester replaces it, instead of repeating it. Evictions are
    /// withdrawn when the node is uncordoned, and others are not, so an eviction never replaces another request.
    pub fn is_replaced_by(&self, type_: RemovalType) -> bool {
        self.type_ == RemovalType::Eviction && type_ != RemovalType::Eviction
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        let others = [self.renew_time, self.expiration_time];
        std::iter::once(self.request_time).chain(others.into_iter().flatten())
    }
}

/// The requests to remove a pod, at most one per requester.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalRequests(Vec<RemovalRequest>);

/// Reason why the annotation is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequests {
    /// It is longer than any that this system writes.
    #[error("is {0} bytes long; the limit is {MAX_BYTES}")]
    TooLong(usize),
    /// It is not JSON, or has a different structure.
    #[error("cannot be parsed: {0}")]
    Form(String),
    /// A time is outside of the years that the API server accepts.
    #[error("has the time {0}; it must be between 1970 and 9999")]
    Time(Timestamp),
    /// It was written by a newer version.
    #[error("has version {0}; this version of hookgate supports version {VERSION}")]
    Version(u32),
}

/// Reason why a request cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_REQUESTS} others have already requested the removal of this pod")]
pub struct TooManyRequests;

#[derive(Serialize, Deserialize)]
struct Text<R> {
    v: u32,
    requests: R,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl RemovalRequests {
    /// Parses the annotation. Of several requests of one requester, the last one is valid.
    pub fn parse(text: &str) -> Result<Self, InvalidRequests> {
        if text.len() > MAX_BYTES {
            return Err(InvalidRequests::TooLong(text.len()));
        }
        let form = |error: serde_json::Error| InvalidRequests::Form(error.to_string());
        let Version { v } = serde_json::from_str(text).map_err(form)?;
        if v != VERSION {
            return Err(InvalidRequests::Version(v));
        }
        let text: Text<Vec<RemovalRequest>> = serde_json::from_str(text).map_err(form)?;
        let mut read = Self::default();
        for mut request in text.requests {
            request.requester = printable_requester(&request.requester);
            if let Some(time) = request.times().find(|time| !is_plausible(*time)) {
                return Err(InvalidRequests::Time(time.timestamp()));
            }
            read.0.retain(|known| known.requester != request.requester);
            read.0.push(request);
        }
        Ok(read)
    }

    /// Parses the annotation in order to add a request. An annotation that cannot be parsed has no effect and is
    /// replaced, but one of a newer version is not.
    pub fn to_extend(text: Option<&str>) -> Result<Self, InvalidRequests> {
        match text.map(Self::parse) {
            None
            | Some(Err(InvalidRequests::TooLong(_) | InvalidRequests::Form(_) | InvalidRequests::Time(_))) => {
                Ok(Self::default())
            }
            Some(Ok(requests)) => Ok(requests),
            Some(Err(newer @ InvalidRequests::Version(_))) => Err(newer),
        }
    }

    /// Formats the annotation; `None` without requests.
    pub fn annotation(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.text())
    }

    /// Formats the annotation.
    pub fn text(&self) -> String {
        let text = Text {
            v: VERSION,
            requests: &self.0,
        };
        // Strings and times always serialize.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// Returns the requests, oldest first as they were recorded.
    pub fn iter(&self) -> impl Iterator<Item = &RemovalRequest> {
        self.0.iter()
    }

    /// Returns whether there are no requests.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the request of a requester.
    pub fn of(&self, requester: &str) -> Option<&RemovalRequest> {
        let requester = printable_requester(requester);
        self.0.iter().find(|request| request.requester == requester)
    }

    /// Keeps only the requests that fulfil a condition.
    pub fn retain(&mut self, is_kept: impl FnMut(&RemovalRequest) -> bool) {
        self.0.retain(is_kept);
    }

    /// Drops the requests that have expired.
    pub fn drop_expired(&mut self, now: Timestamp, valid_for: SignedDuration) {
        self.retain(|request| request.expires(valid_for) > now);
    }

    /// Records a request, or the repetition of one: the time of the first request stays, and so does its type if an
    /// eviction repeats it.
    pub fn record(
        &mut self,
        requester: &str,
        type_: RemovalType,
        now: Timestamp,
    ) -> Result<(), TooManyRequests> {
        let requester = printable_requester(requester);
        if let Some(known) = self.0.iter_mut().find(|known| known.requester == requester) {
            if type_ != RemovalType::Eviction {
                known.type_ = type_;
            }
            known.renew_time = Some(now.into());
            // Otherwise, the repetition of an expired request would have no effect.
            known.expiration_time = known.expiration_time.filter(|until| until.timestamp() > now);
            return Ok(());
        }
        if self.0.len() >= MAX_REQUESTS {
            return Err(TooManyRequests);
        }
        self.0.push(RemovalRequest {
            requester,
            type_,
            request_time: now.into(),
            renew_time: None,
            expiration_time: None,
        });
        Ok(())
    }

    /// Records a request like [`record`](Self::record), which expires at this time unless it is repeated.
    pub fn record_until(
        &mut self,
        requester: &str,
        type_: RemovalType,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), TooManyRequests> {
        self.record(requester, type_, now)?;
        let requester = printable_requester(requester);
        let mut recorded = self.0.iter_mut();
        if let Some(request) = recorded.find(|request| request.requester == requester) {
            request.expiration_time = Some(until.into());
        }
        Ok(())
    }

    /// Withdraws the request of a requester. Returns whether there was one.
    pub fn withdraw(&mut self, requester: &str) -> bool {
        let (before, requester) = (self.0.len(), printable_requester(requester));
        self.0.retain(|request| request.requester != requester);
        self.0.len() < before
    }
}

/// Returns whether the API server accepts this time in a status.
fn is_plausible(time: Time) -> bool {
    let year = jiff::tz::TimeZone::UTC.to_datetime(time.timestamp()).year();
    (1970..=9999).contains(&year)
}

/// Cuts a requester to its maximum length, and replaces characters that are not printable: requesters that look the
/// same are the same.
pub fn printable_requester(requester: &str) -> String {
    let printable = redact::printable(requester);
    let kept = printable.get(..printable.floor_char_boundary(MAX_REQUESTER_BYTES));
    kept.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_repetition_keeps_the_time_of_the_first_request_and_extends_the_request() {
        let mut requests = RemovalRequests::default();
        requests.record("drain", RemovalType::Eviction, at(100)).unwrap();
        requests.record("drain", RemovalType::Eviction, at(200)).unwrap();
        let request = requests.of("drain").unwrap().clone();
        assert_eq!(request.request_time, at(100).into());
        let valid_for = SignedDuration::from_secs(60);
        assert_eq!(request.expires(valid_for), at(260));
        requests.drop_expired(at(259), valid_for);
        assert!(!requests.is_empty());
        requests.drop_expired(at(260), valid_for);
        assert!(requests.is_empty());
    }

    #[test]
    fn an_eviction_extends_another_request_and_never_replaces_it() {
        use RemovalType::{Delete, Eviction, Manual};
        for (before, type_, after) in [
            (Eviction, Eviction, Eviction),
            (Eviction, Delete, Delete),
            (Eviction, Manual, Manual),
            (Delete, Eviction, Delete),
            (Delete, Delete, Delete),
            (Manual, Eviction, Manual),
            (Manual, Delete, Delete),
        ] {
            let mut requests = RemovalRequests::default();
            requests.record("jane", before, at(100)).unwrap();
            let is_replaced = requests.of("jane").unwrap().is_replaced_by(type_);
            assert_eq!(
                is_replaced,
                before == Eviction && after != before,
                "{before} {type_}"
            );
            requests.record("jane", type_, at(200)).unwrap();
            let request = requests.of("jane").unwrap();
            assert_eq!(
                (request.type_, request.last_repetition()),
                (after, at(200).into())
            );
            assert_eq!(request.request_time, at(100).into());
        }
    }

    #[test]
    fn an_explicit_expiration_time_wins() {
        let text = r#"{"v":1,"requests":[{"requester":"a","type":"Manual","requestTime":"2026-01-01T00:00:00Z",
            "expirationTime":"2026-01-02T00:00:00Z"}]}"#;
        let requests = RemovalRequests::parse(text).unwrap();
        let expires = requests.of("a").unwrap().expires(SignedDuration::from_secs(60));
        assert_eq!(expires, "2026-01-02T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn one_request_is_withdrawn_without_the_others() {
        let mut requests = RemovalRequests::default();
        for requester in ["a", "b"] {
            requests.record(requester, RemovalType::Delete, at(1)).unwrap();
        }
        assert!(requests.withdraw("a") && !requests.withdraw("a"));
        let left: Vec<&str> = requests
            .iter()
            .map(|request| request.requester.as_str())
            .collect();
        assert_eq!(left, ["b"]);
    }

    #[test]
    fn a_ninth_requester_is_rejected_and_a_known_one_is_not() {
        let mut requests = RemovalRequests::default();
        for number in 0..MAX_REQUESTS {
            let requester = format!("{number}{}", "é".repeat(MAX_REQUESTER_BYTES));
            requests.record(&requester, RemovalType::Eviction, at(1)).unwrap();
        }
        assert_eq!(
            requests.record("ninth", RemovalType::Eviction, at(2)),
            Err(TooManyRequests)
        );
        let known = format!("0{}", "é".repeat(MAX_REQUESTER_BYTES));
        requests.record(&known, RemovalType::Eviction, at(2)).unwrap();
        assert!(requests.text().len() <= MAX_BYTES, "{}", requests.text().len());
        assert_eq!(RemovalRequests::parse(&requests.text()), Ok(requests));
    }

    #[test]
    fn requesters_that_look_the_same_are_the_same() {
        let entry = |requester: &str| json!({ "requester": requester, "type": "Delete", "requestTime": "2026-01-01T00:00:00Z" });
        let text =
            json!({ "v": 1, "requests": [entry("a\u{200b}"), entry("a\u{202e}"), entry(&"b".repeat(999))] });
        let requests = RemovalRequests::parse(&text.to_string()).unwrap();
        let requesters: Vec<usize> = requests.iter().map(|request| request.requester.len()).collect();
        assert_eq!(requesters, [1, MAX_REQUESTER_BYTES]);
    }

    #[test]
    fn times_that_an_api_server_would_not_store_are_invalid() {
        for field in ["requestTime", "renewTime", "expirationTime"] {
            for time in ["-000001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
                let mut entry =
                    json!({ "requester": "a", "type": "Delete", "requestTime": "2026-01-01T00:00:00Z" });
                entry[field] = json!(time);
                let text = json!({ "v": 1, "requests": [entry] }).to_string();
                let invalid = RemovalRequests::parse(&text).unwrap_err();
                assert!(
                    matches!(invalid, InvalidRequests::Time(_)),
                    "{field} {time}: {invalid}"
                );
            }
        }
    }

    #[test]
    fn a_request_with_an_expiration_time_is_extended_by_its_repetition() {
        let mut requests = RemovalRequests::default();
        for (now, until) in [(100, 1000), (200, 2000)] {
            let recorded = requests.record_until("taints", RemovalType::Delete, at(now), at(until));
            recorded.unwrap();
        }
        let request = requests.of("taints").unwrap();
        assert_eq!(request.expires(SignedDuration::from_secs(60)), at(2000));
        assert_eq!(request.request_time, at(100).into());
    }

    #[test]
    fn the_repetition_of_an_expired_request_is_valid_again() {
        let mut requests = RemovalRequests::default();
        let recorded = requests.record_until("jane", RemovalType::Manual, at(100), at(150));
        recorded.unwrap();
        requests.record("jane", RemovalType::Eviction, at(149)).unwrap();
        let expires = |requests: &RemovalRequests| {
            let request = requests.of("jane").unwrap();
            request.expires(SignedDuration::from_secs(60))
        };
        assert_eq!(expires(&requests), at(150));
        requests.record("jane", RemovalType::Eviction, at(150)).unwrap();
        assert_eq!(expires(&requests), at(210));
    }

    #[test]
    fn anything_else_is_not_a_request() {
        let long = " ".repeat(MAX_BYTES + 1);
        for (text, message) in [
            (
                "",
                "cannot be parsed: EOF while parsing a value at line 1 column 0",
            ),
            (
                "true",
                "cannot be parsed: invalid type: boolean `true`, expected struct Version at line 1 column 4",
            ),
            (
                r#"{"v":2}"#,
                "has version 2; this version of hookgate supports version 1",
            ),
            (long.as_str(), "is 4097 bytes long; the limit is 4096"),
        ] {
            assert_eq!(RemovalRequests::parse(text).unwrap_err().to_string(), message);
        }
        let unknown = r#"{"v":1,"requests":[{"requester":"a","type":"Explosion","requestTime":"2026-01-01T00:00:00Z"}]}"#;
        assert!(matches!(
            RemovalRequests::parse(unknown),
            Err(InvalidRequests::Form(_))
        ));
    }

    proptest! {
        #[test]
        fn recorded_requests_are_read_back(requesters in proptest::collection::vec("\\PC{0,200}|[\"\\\\\u{0}\u{2028}]{0,300}", 0..12)) {
            let mut requests = RemovalRequests::default();
            for (second, requester) in (0..).zip(&requesters) {
                let _ = requests.record(requester, RemovalType::Eviction, at(second));
            }
            prop_assert_eq!(RemovalRequests::parse(&requests.text()), Ok(requests));
        }
    }
}
