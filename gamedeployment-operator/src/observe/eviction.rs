//! Evictions of `lifecycle.k8s.io` as this operator reads them: the fields that concern it as a responder.

use gamedeployment_driver::watch_event::Eviction;
use jiff::Timestamp;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use shared_api::names::eviction::RESPONDER;
use shared_api::time::Time;

/// Conditions that end an Eviction.
const FINAL: [&str; 2] = ["TargetEvicted", "Failed"];

/// Spec of an Eviction.
#[derive(Debug, Clone, Default, Serialize, Deserialize, CustomResource)]
#[kube(
    group = "lifecycle.k8s.io",
    version = "v1alpha1",
    kind = "Eviction",
    root = "StoredEviction",
    namespaced,
    status = "EvictionStatus",
    schema = "disabled"
)]
#[serde(default)]
pub struct EvictionSpec {
    target: Target,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Target {
    pod: Option<PodReference>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct PodReference {
    name: String,
    uid: String,
}

/// Status of an Eviction.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EvictionStatus {
    conditions: Vec<Condition>,
    requesters: Vec<Requester>,
    responders: Vec<ResponderStatus>,
    target_responders: Vec<TargetResponder>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Requester {
    name: String,
    intent: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResponderStatus {
    name: String,
    start_time: Option<Time>,
    heartbeat_time: Option<Time>,
    completion_time: Option<Time>,
    message: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct TargetResponder {
    name: String,
    state: String,
}

/// Converts an Eviction; `None` if its target is not a pod.
pub(super) fn eviction(object: StoredEviction) -> Option<Eviction> {
    let pod = object.spec.target.pod?;
    let status = object.status.unwrap_or_default();
    let is_final = |known: &Condition| known.status == "True" && FINAL.contains(&known.type_.as_str());
    let is_final = status.conditions.iter().any(is_final);
    let mut responders = status.responders.into_iter();
    let own = responders
        .find(|known| known.name == RESPONDER)
        .unwrap_or_default();
    let mut targeted = status.target_responders.iter();
    let is_active = targeted.any(|known| known.name == RESPONDER && known.state == "Active");
    let requesters = status.requesters.into_iter();
    let requesters = requesters.filter(|known| known.intent == "Eviction");
    let time = |time: Option<Time>| -> Option<Timestamp> { time.map(Time::timestamp) };
    Some(Eviction {
        uid: object.metadata.uid.unwrap_or_default(),
        pod_name: pod.name,
        pod_uid: pod.uid,
        is_active: is_active && !is_final && own.completion_time.is_none(),
        requesters: requesters.map(|known| known.name).collect(),
        started: time(own.start_time),
        heartbeat: time(own.heartbeat_time),
        message: own.message,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Reads an Eviction whose active responder is this operator, with this change.
    fn read(pointer: &str, value: Value) -> Eviction {
        let mut object = json!({
            "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "Eviction",
            "metadata": { "name": "pod-1-arena-x", "namespace": "games", "uid": "e" },
            "spec": { "target": { "pod": { "name": "arena-x", "uid": "p" } } },
            "status": {
                "observedGeneration": 1,
                "conditions": [
                    { "type": "TargetEvicted", "status": "False", "reason": "AwaitingEviction", "message": "",
                      "lastTransitionTime": "2026-01-01T00:00:00Z" },
                    { "type": "Failed", "status": "False", "reason": "AwaitingEviction", "message": "",
                      "lastTransitionTime": "2026-01-01T00:00:00Z" },
                ],
                "requesters": [
                    { "name": "acme.io/drain", "intent": "Eviction" },
                    { "name": "acme.io/other", "intent": "Withdrawn" },
                ],
                "targetResponders": [
                    { "name": RESPONDER, "priority": 10000, "state": "Active" },
                    { "name": "imperative-eviction.k8s.io/evictor", "priority": 100, "state": "Inactive" },
                ],
                "responders": [
                    { "name": RESPONDER, "startTime": "2026-01-01T00:00:00Z",
                      "heartbeatTime": "2026-01-01T00:05:00Z", "message": "a player is on" },
                    { "name": "imperative-eviction.k8s.io/evictor" },
                ],
            },
        });
        if !pointer.is_empty() {
            *object.pointer_mut(pointer).unwrap() = value;
        }
        eviction(serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn the_entries_of_this_operator_count() {
        let wanted = Eviction {
            uid: "e".to_owned(),
            pod_name: "arena-x".to_owned(),
            pod_uid: "p".to_owned(),
            is_active: true,
            requesters: vec!["acme.io/drain".to_owned()],
            started: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            heartbeat: Some("2026-01-01T00:05:00Z".parse().unwrap()),
            message: Some("a player is on".to_owned()),
        };
        assert_eq!(read("", Value::Null), wanted);
        let withdrawn = read("/status/requesters/0/intent", json!("Withdrawn"));
        assert_eq!((withdrawn.is_active, withdrawn.requesters), (true, Vec::new()));
    }

    #[test]
    fn an_eviction_that_has_ended_or_is_another_responders_is_not_active() {
        for (pointer, value) in [
            ("/status/conditions/0/status", json!("True")),
            ("/status/conditions/1/status", json!("True")),
            ("/status/targetResponders/0/state", json!("Inactive")),
            ("/status/targetResponders/0/state", json!("Interrupted")),
            ("/status/targetResponders/0/state", json!("Canceled")),
            ("/status/targetResponders/0/state", json!("Completed")),
            ("/status/targetResponders/0/name", json!("acme.io/other")),
            (
                "/status/responders/0",
                json!({ "name": RESPONDER, "completionTime": "2026-01-01T00:05:00Z" }),
            ),
            ("/status", json!({})),
        ] {
            assert!(!read(pointer, value.clone()).is_active, "{pointer} {value}");
        }
    }

    #[test]
    fn an_eviction_without_a_pod_is_skipped() {
        let object = json!({
            "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "Eviction", "metadata": { "name": "group" },
            "spec": { "target": { "podGroup": { "name": "a" } } },
        });
        assert!(eviction(serde_json::from_value(object).unwrap()).is_none());
    }
}
