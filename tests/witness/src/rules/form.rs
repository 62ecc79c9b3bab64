//! Checks the form of writes: their preconditions, and the permitted writers.

use serde_json::Value;

use crate::event::Event;
use crate::model::Step;
use crate::object::text;

/// Checks a write of gamedeployment-operator.
pub(super) fn of_workloads(step: &Step<'_>) -> Vec<String> {
    let event = step.event;
    let mut found = Vec::new();
    found.extend(right(step, "gamedeployment-operator"));
    let (resource, subresource) = (event.resource.as_str(), event.subresource.as_str());
    if (resource, subresource) == ("hookruns", "status") {
        found.push(said(
            step,
            "gamedeployment-operator wrote a verdict itself, which only hook-operator may",
        ));
    }
    // Old API servers do not record the body of a custom resource's deletion, so nothing follows from its
    // absence.
    let unrecorded = event.request.is_null();
    let wanted: &[&str] = match (event.verb.as_str(), resource) {
        ("delete", "hookruns") if unrecorded || selects_by_name(event) => &[],
        ("delete", "pods") => &["/preconditions/uid", "/preconditions/resourceVersion"],
        ("delete", "hookruns" | "controllerrevisions") => &["/preconditions/uid"],
        ("patch" | "update", "pods" | "gamedeployments" | "controllerrevisions") => {
            &["/metadata/uid", "/metadata/resourceVersion"]
        }
        _ => &[],
    };
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|path| text(&event.request, path).is_empty())
        .copied()
        .collect();
    if !missing.is_empty() {
        found.push(said(
            step,
            &format!(
                "without {}: it may meet another object or state",
                missing.join(" and ")
            ),
        ));
    }
    let generated = text(&event.request, "/metadata/generateName");
    if event.verb == "create" && !generated.is_empty() {
        found.push(said(
            step,
            &format!("under a random name {generated}…: done twice it makes two"),
        ));
    }
    found
}

/// Whether a collection request selects each object by the digest of its name.
fn selects_by_name(event: &Event) -> bool {
    text(&event.request, "/selector").contains("name-digest")
}

/// Checks a write of hook-operator.
pub(super) fn of_hooks(step: &Step<'_>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(right(step, "hook-operator"));
    if step.event.resource == "pods" {
        found.push(said(step, "hook-operator wrote a pod, which it never may"));
    }
    found
}

/// Parts of annotation keys that belong to Kubernetes or to the operators.
const KEYS_OF_THE_SYSTEM: [&str; 7] = [
    "tkex",
    "tencent",
    "kubernetes.io",
    "k8s.io",
    "io.kubernetes",
    "inplace-update",
    "hotpatch-update",
];

/// Checks a write of the account with which hooks act: of pods, it sets annotations, and none that lets a pod pass its
/// gate.
pub(super) fn of_account(step: &Step<'_>) -> Vec<String> {
    let event = step.event;
    // Without a right the request has no effect, and its body is not recorded.
    if event.resource != "pods" || event.no_right {
        return Vec::new();
    }
    let fields = |object: &Value| -> Vec<String> {
        let fields = object.as_object().into_iter().flat_map(serde_json::Map::keys);
        fields.cloned().collect()
    };
    let metadata = &event.request["metadata"];
    let is_of_annotations = event.verb == "patch"
        && event.subresource.is_empty()
        && fields(&event.request) == ["metadata"]
        && fields(metadata)
            .iter()
            .all(|field| field == "annotations" || field == "uid");
    if !is_of_annotations {
        return vec![said(step, "a hook wrote more of a pod than its annotations")];
    }
    let keys = fields(&metadata["annotations"]);
    let is_of_the_system = |key: &&String| KEYS_OF_THE_SYSTEM.iter().any(|part| key.contains(part));
    let found = keys.iter().filter(is_of_the_system);
    let found = found.map(|key| {
        said(
            step,
            &format!("a hook set annotation {key}, which belongs to the system"),
        )
    });
    found.collect()
}

/// Reports a missing permission: either the documents grant too little, or the operator does too much.
fn right(step: &Step<'_>, who: &str) -> Option<String> {
    step.event
        .no_right
        .then(|| said(step, &format!("{who} has no right to this by deploy/rbac.yaml")))
}

fn said(step: &Step<'_>, what: &str) -> String {
    let event = step.event;
    let slash = if event.subresource.is_empty() { "" } else { "/" };
    let name = match event.name.as_str() {
        "" => text(&event.request, "/metadata/name"),
        name => name,
    };
    let request = match &event.request {
        Value::Null => String::new(),
        request => format!("; the request: {request}"),
    };
    format!(
        "{} of {}{slash}{} {name}: {what}{request}",
        event.verb, event.resource, event.subresource
    )
}
