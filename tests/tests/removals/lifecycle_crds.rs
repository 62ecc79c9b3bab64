//! Stand-in for the API `lifecycle.k8s.io/v1alpha1` on servers that lack it: CRDs with the fields, lists and limits of
//! Kubernetes 1.37, types for the fields that the tests read, and the rules for updates that a schema cannot express.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use operator_tests::{Fleet, SOON};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared_api::names::eviction::{GROUP, MAX_MESSAGE, RESPONDER, VERSION};
use test_kit::{ControlPlane, eventually};
use tokio::sync::OnceCell;

// Kinds and their plural names.
const EVICTION: (&str, &str) = ("Eviction", "evictions");
const EVICTION_REQUEST: (&str, &str) = ("EvictionRequest", "evictionrequests");

// States of a responder.
pub(crate) const INACTIVE: &str = "Inactive";
pub(crate) const ACTIVE: &str = "Active";
pub(crate) const INTERRUPTED: &str = "Interrupted";
pub(crate) const CANCELED: &str = "Canceled";
pub(crate) const COMPLETED: &str = "Completed";

// Conditions.
pub(crate) const TARGET_EVICTED: &str = "TargetEvicted";
pub(crate) const FAILED: &str = "Failed";

// Intents of a requester.
pub(crate) const INTENT_EVICTION: &str = "Eviction";
pub(crate) const INTENT_WITHDRAWN: &str = "Withdrawn";

/// Maximum difference between a time that is set and the present.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(30);
/// Shortest time between two heartbeats. The API asks for it, and does not enforce it.
const HEARTBEAT_INTERVAL: SignedDuration = SignedDuration::from_secs(20);
/// Maximum number of responders of an Eviction.
const MAX_RESPONDERS: usize = 11;
/// Maximum number of requesters and of conditions.
const MAX_ENTRIES: usize = 100;

/// Waits until the shared control plane serves both kinds. The first caller installs them.
pub(crate) async fn serve(control_plane: &ControlPlane) {
    static SERVED: OnceCell<()> = OnceCell::const_new();
    SERVED.get_or_init(|| install(control_plane)).await;
}

async fn install(control_plane: &ControlPlane) {
    let client = control_plane.client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("lifecycle-stand-in").force();
    for (kind, schema) in [
        (EVICTION, eviction_schema()),
        (EVICTION_REQUEST, eviction_request_schema()),
    ] {
        let name = format!("{}.{GROUP}", kind.1);
        let patch = Patch::Apply(definition(kind, schema));
        eventually(SOON, || async { definitions.patch(&name, &params, &patch).await }).await;
    }
    eventually(SOON, || async { find_served(&client).await }).await;
}

/// Checks that both kinds are listed by discovery, and can be listed themselves.
async fn find_served(client: &Client) -> Result<(), String> {
    let words = |error: kube::Error| error.to_string();
    let version = format!("{GROUP}/{VERSION}");
    let found = client.list_api_group_resources(&version).await.map_err(words)?;
    let served: BTreeSet<&str> = found.resources.iter().map(|one| one.name.as_str()).collect();
    for kind in [EVICTION, EVICTION_REQUEST] {
        let status = format!("{}/status", kind.1);
        if !served.contains(kind.1) || !served.contains(status.as_str()) {
            return Err(format!("{served:?}"));
        }
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
        let _ = api.list(&ListParams::default().limit(1)).await.map_err(words)?;
    }
    Ok(())
}

/// Returns the Evictions of a fleet's namespace.
pub(crate) fn evictions(fleet: &Fleet<'_>) -> Api<DynamicObject> {
    Api::namespaced_with(fleet.client(), &fleet.namespace, &resource(EVICTION))
}

/// Returns the `EvictionRequests` of a fleet's namespace.
pub(crate) fn eviction_requests(fleet: &Fleet<'_>) -> Api<DynamicObject> {
    Api::namespaced_with(fleet.client(), &fleet.namespace, &resource(EVICTION_REQUEST))
}

fn resource((kind, plural): (&str, &str)) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, kind), plural)
}

/// Returns a manifest of a kind, with these further fields.
fn manifest((kind, _): (&str, &str), fields: Value) -> Value {
    let mut manifest = json!({ "apiVersion": format!("{GROUP}/{VERSION}"), "kind": kind });
    operator_tests::merge(&mut manifest, fields);
    manifest
}

/// Returns the manifest of an Eviction, with these further fields.
pub(crate) fn eviction_manifest(fields: Value) -> Value {
    manifest(EVICTION, fields)
}

/// Returns the manifest of an `EvictionRequest`, with these further fields.
pub(crate) fn eviction_request_manifest(fields: Value) -> Value {
    manifest(EVICTION_REQUEST, fields)
}

fn definition((kind, plural): (&str, &str), schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "annotations": { "api-approved.kubernetes.io": "unapproved, for tests" },
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"),
                "plural": plural, "singular": kind.to_lowercase(),
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Returns the schema of a list whose items this field identifies.
fn list(key: &str, max: usize, items: Value) -> Value {
    json!({
        "type": "array", "maxItems": max, "items": items,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn target() -> Value {
    let pod = object(&["name", "uid"], json!({ "name": text(), "uid": text() }));
    object(&["pod"], json!({ "pod": pod }))
}

fn conditions() -> Value {
    let properties = json!({
        "type": { "type": "string", "maxLength": 316 },
        "status": one_of(&["True", "False", "Unknown"]),
        "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
        "lastTransitionTime": time(),
        "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
        "message": { "type": "string", "maxLength": 32768 },
    });
    let required = ["type", "status", "lastTransitionTime", "reason", "message"];
    list("type", MAX_ENTRIES, object(&required, properties))
}

fn generation() -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 1 })
}

fn eviction_request_schema() -> Value {
    let spec = json!({
        "intent": one_of(&[INTENT_EVICTION, INTENT_WITHDRAWN]),
        "requester": text(),
        "target": target(),
    });
    let spec = object(&["intent", "requester", "target"], spec);
    let status = json!({ "conditions": conditions(), "observedGeneration": generation() });
    let status = json!({ "type": "object", "properties": status });
    object(&["spec"], json!({ "spec": spec, "status": status }))
}

fn eviction_schema() -> Value {
    let requester = json!({ "name": text(), "intent": one_of(&[INTENT_EVICTION, INTENT_WITHDRAWN]) });
    let target_responder = json!({
        "name": text(),
        "priority": { "type": "integer", "format": "int32", "minimum": 0, "maximum": 100_000 },
        "state": one_of(&[INACTIVE, ACTIVE, INTERRUPTED, CANCELED, COMPLETED]),
    });
    let responder = json!({
        "name": text(),
        "startTime": time(),
        "heartbeatTime": time(),
        "expectedCompletionTime": time(),
        "completionTime": time(),
        "message": { "type": "string", "maxLength": MAX_MESSAGE },
    });
    let target_responder = object(&["name", "priority", "state"], target_responder);
    let status = json!({
        "conditions": conditions(),
        "observedGeneration": generation(),
        "requesters": list("name", MAX_ENTRIES, object(&["name", "intent"], requester)),
        "targetResponders": list("name", MAX_RESPONDERS, target_responder),
        "responders": list("name", MAX_RESPONDERS, object(&["name"], responder)),
    });
    let spec = object(&["target"], json!({ "target": target() }));
    let status = json!({ "type": "object", "properties": status });
    object(&["spec"], json!({ "spec": spec, "status": status }))
}

/// Pod that is evicted.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PodReference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Request to evict a pod.
#[derive(Debug, Clone)]
pub(crate) struct EvictionRequest {
    pub(crate) requester: String,
    /// Whether the eviction is wanted: the request is neither withdrawn nor being deleted.
    pub(crate) is_wanted: bool,
    pub(crate) pod: PodReference,
    /// The request as the owner of an Eviction.
    pub(crate) owner: OwnerReference,
}

/// Eviction of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Eviction {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Revision of etcd, which counts the writes to objects of all kinds.
    pub(crate) revision: u64,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) pod: PodReference,
    pub(crate) status: EvictionStatus,
}

/// Status of an Eviction.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EvictionStatus {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) requesters: Vec<Requester>,
    pub(crate) target_responders: Vec<TargetResponder>,
    pub(crate) responders: Vec<ResponderStatus>,
}

/// Condition of an Eviction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) last_transition_time: Timestamp,
}

/// Requester of an Eviction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Requester {
    pub(crate) name: String,
    pub(crate) intent: String,
}

/// Responder, and whether it is its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetResponder {
    pub(crate) name: String,
    pub(crate) priority: i32,
    pub(crate) state: String,
}

/// Report of a responder.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ResponderStatus {
    pub(crate) name: String,
    pub(crate) start_time: Option<Timestamp>,
    pub(crate) heartbeat_time: Option<Timestamp>,
    pub(crate) expected_completion_time: Option<Timestamp>,
    pub(crate) completion_time: Option<Timestamp>,
    pub(crate) message: Option<String>,
}

/// Reads a part of an object; the default if it is unset.
fn read<T: DeserializeOwned + Default>(object: &DynamicObject, pointer: &str) -> T {
    let part = object.data.pointer(pointer);
    part.map(|part| serde_json::from_value(part.clone()).unwrap())
        .unwrap_or_default()
}

/// Returns the revision of etcd at which a version of an object was stored.
pub(crate) fn revision<K: ResourceExt>(object: &K) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

impl EvictionRequest {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let intent: String = read(object, "/spec/intent");
        Self {
            requester: read(object, "/spec/requester"),
            is_wanted: intent == INTENT_EVICTION && object.metadata.deletion_timestamp.is_none(),
            pod: read(object, "/spec/target/pod"),
            owner: OwnerReference {
                api_version: format!("{GROUP}/{VERSION}"),
                kind: EVICTION_REQUEST.0.to_owned(),
                name: object.name_any(),
                uid: object.uid().unwrap(),
                ..OwnerReference::default()
            },
        }
    }
}

impl Eviction {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        Self {
            name: object.name_any(),
            uid: object.uid().unwrap(),
            revision: revision(object),
            generation: object.metadata.generation.unwrap(),
            labels: object.labels().clone(),
            owners: object.owner_references().to_vec(),
            pod: read(object, "/spec/target/pod"),
            status: read(object, "/status"),
        }
    }

    /// Returns the state of a responder; an empty text if the Eviction does not list it.
    pub(crate) fn state(&self, responder: &str) -> &str {
        self.status.state(responder)
    }

    /// Returns the report of gamedeployment-operator; an empty one if the Eviction does not list it.
    pub(crate) fn own(&self) -> ResponderStatus {
        self.status.responder(RESPONDER).cloned().unwrap_or_default()
    }

    /// Whether the pod has been evicted.
    pub(crate) fn is_evicted(&self) -> bool {
        self.status.holds(TARGET_EVICTED)
    }

    /// Whether the Eviction has ended without evicting the pod.
    pub(crate) fn is_failed(&self) -> bool {
        self.status.holds(FAILED)
    }

    /// Whether gamedeployment-operator has sent a heartbeat.
    pub(crate) fn is_answered(&self) -> bool {
        self.own().heartbeat_time.is_some()
    }
}

impl EvictionStatus {
    /// Returns the state of a responder; an empty text if there is none of this name.
    pub(crate) fn state(&self, responder: &str) -> &str {
        let mut targets = self.target_responders.iter();
        let target = targets.find(|target| target.name == responder);
        target.map_or("", |target| target.state.as_str())
    }

    /// Returns the report of a responder.
    pub(crate) fn responder(&self, name: &str) -> Option<&ResponderStatus> {
        self.responders.iter().find(|entry| entry.name == name)
    }

    /// Whether a condition is true.
    pub(crate) fn holds(&self, type_: &str) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|one| one.type_ == type_ && one.status == "True")
    }

    /// Returns the rules of the API that a change from one status to the next breaks, as far as responders can break
    /// them. `now`: time of the change.
    pub(crate) fn broken_rules(old: &Self, new: &Self, now: Timestamp) -> Vec<String> {
        let targets: Vec<&str> = new
            .target_responders
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let entries: Vec<&str> = new.responders.iter().map(|one| one.name.as_str()).collect();
        let mut broken = Vec::new();
        if targets != entries {
            broken.push(format!("reports of {entries:?}, and responders {targets:?}"));
        }
        for entry in &new.responders {
            let rules = entry.broken_rules(old.responder(&entry.name), new.state(&entry.name), now);
            broken.extend(
                rules
                    .iter()
                    .map(|rule| format!("{}: {rule}: {entry:?}", entry.name)),
            );
        }
        broken
    }
}

impl ResponderStatus {
    /// Returns the rules that a change to this report breaks. `state`: state of the responder after the change.
    fn broken_rules(&self, old: Option<&Self>, state: &str, now: Timestamp) -> Vec<&'static str> {
        let unset = Self::default();
        let known = old.unwrap_or(&unset);
        let is_far = |time: Timestamp| now.duration_since(time).abs() >= MAX_SKEW;
        let has_fraction = |time: Timestamp| time.subsec_nanosecond() != 0;
        let is_early = |time: Timestamp| self.start_time.is_none_or(|start| time < start);
        let beat = self
            .heartbeat_time
            .filter(|time| known.heartbeat_time != Some(*time));
        let end = self
            .completion_time
            .filter(|time| known.completion_time != Some(*time));
        let expected = self.expected_completion_time;
        let expected = expected.filter(|time| known.expected_completion_time != Some(*time));
        let since_beat = beat.and_then(|time| Some(time.duration_since(known.heartbeat_time?)));
        let length = self.message.as_ref().map_or(0, |message| message.chars().count());
        let is_changed =
            |time: fn(&Self) -> Option<Timestamp>| time(known).is_some() && time(self) != time(known);
        let checks = [
            (
                state != ACTIVE && old.is_some_and(|old| old != self),
                "it changed, although the responder is not active",
            ),
            (is_changed(|entry| entry.start_time), "startTime changed"),
            (
                self.start_time.is_none() && state == ACTIVE,
                "an active responder has no startTime",
            ),
            (
                known.heartbeat_time.is_some() && self.heartbeat_time.is_none(),
                "heartbeatTime was removed",
            ),
            (beat.is_some_and(is_early), "heartbeatTime is before startTime"),
            (beat.is_some_and(is_far), "heartbeatTime is not near the present"),
            (
                beat.is_some_and(has_fraction) || end.is_some_and(has_fraction),
                "a time is not in whole seconds",
            ),
            (
                since_beat.is_some_and(|since| since.is_negative()),
                "heartbeatTime decreased",
            ),
            (
                end.is_none() && since_beat.is_some_and(|since| since < HEARTBEAT_INTERVAL),
                "a heartbeat follows the one before within 20 s",
            ),
            (
                is_changed(|entry| entry.completion_time),
                "completionTime changed",
            ),
            (end.is_some_and(is_early), "completionTime is before startTime"),
            (end.is_some_and(is_far), "completionTime is not near the present"),
            (
                expected.is_some_and(|time| time < now - MAX_SKEW),
                "expectedCompletionTime is in the past",
            ),
            (length > MAX_MESSAGE, "the message is too long"),
        ];
        let broken = checks.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, rule)| rule).collect()
    }
}
