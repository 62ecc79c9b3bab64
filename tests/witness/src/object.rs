//! Reads objects, based on the documents alone.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Waiting reasons of a container that cannot have players: it lacks something that it needs to start.
const NOTHING_TO_START: [&str; 8] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RegistryUnavailable",
];

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a label; its name may contain slashes.
pub(crate) fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["labels"][name].as_str().unwrap_or_default()
}

/// Returns an annotation; its name may contain slashes.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name]
        .as_str()
        .unwrap_or_default()
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn revision(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion")
        .parse()
        .unwrap_or_default()
}

pub(crate) fn items<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    let found = object.pointer(path).and_then(Value::as_array);
    found.into_iter().flatten()
}

/// Returns the UID of the controlling GameDeployment; empty if there is none.
pub(crate) fn controller(object: &Value) -> &str {
    let mut owners = items(object, "/metadata/ownerReferences");
    let found = owners.find(|owner| owner["controller"] == true && owner["kind"] == "GameDeployment");
    found.map_or("", |owner| text(owner, "/uid"))
}

pub(crate) fn terminating(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// Whether the pod counts as a replica.
pub(crate) fn active(pod: &Value) -> bool {
    !terminating(pod) && !finished(pod)
}

pub(crate) fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    items(pod, "/status/conditions").find(|condition| condition["type"] == kind)
}

/// Returns the message of the condition that keeps a pod out of service, if there is one.
pub(crate) fn out_for(pod: &Value) -> Option<&str> {
    let condition = condition(pod, "InPlaceUpdateReady").filter(|found| found["status"] == "False")?;
    Some(text(condition, "/message"))
}

/// Whether the pod has been ready for this long, is in service, and is not terminating.
pub(crate) fn available(pod: &Value, min_ready_seconds: i64, at: Timestamp) -> bool {
    let ready = condition(pod, "Ready").filter(|found| found["status"] == "True");
    let Some(ready) = ready.filter(|_| active(pod) && out_for(pod).is_none()) else {
        return false;
    };
    let since = text(ready, "/lastTransitionTime").parse::<Timestamp>();
    let wait = SignedDuration::from_secs(min_ready_seconds);
    min_ready_seconds <= 0 || since.is_ok_and(|since| at.duration_since(since) >= wait)
}

/// Whether a pod may have players, provided that its node exists.
pub(crate) fn may_have_players(pod: &Value) -> bool {
    !text(pod, "/spec/nodeName").is_empty()
        && active(pod)
        && items(pod, "/status/containerStatuses").any(container_may_have_players)
}

fn container_may_have_players(status: &Value) -> bool {
    let state = &status["state"];
    if state["running"].is_object() || state["terminated"].is_object() {
        return true;
    }
    // A waiting container is started again: an earlier run counts, unless the container cannot start.
    let ran = !text(status, "/containerID").is_empty()
        || status["restartCount"].as_u64().unwrap_or_default() > 0
        || status["lastState"]["terminated"].is_object();
    ran && !NOTHING_TO_START.contains(&text(state, "/waiting/reason"))
}

/// Returns container names and images, in spec order.
pub(crate) fn images(pod: &Value) -> Vec<(&str, &str)> {
    items(pod, "/spec/containers")
        .map(|container| (text(container, "/name"), text(container, "/image")))
        .collect()
}
