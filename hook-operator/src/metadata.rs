//! Metadata of HookRuns as this operator keeps them. Authors may store a megabyte in what it does not use.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use shared_api::names::hook_run_annotation::{INTENT, INTENT_OF_NOTICE};
use shared_api::names::hook_run_label::POD_UID;

/// Maximum bytes of an owner reference. Those of real owners have a few hundred.
const MAX_OWNER_BYTES: usize = 1024;

/// Returns the metadata without what is not used: finalizers, managed fields, most labels and annotations, and owners
/// that are neither the first nor the controller.
pub(crate) fn used(metadata: ObjectMeta) -> ObjectMeta {
    let label = |mut labels: BTreeMap<String, String>| labels.remove_entry(POD_UID);
    let label = metadata.labels.and_then(label);
    let intent = metadata.annotations.and_then(|mut notes| notes.remove(INTENT));
    // Of other intents, only the presence is used: see `lacks_owner`.
    let note = intent.map(|intent| {
        let is_notice = intent == INTENT_OF_NOTICE;
        let used = if is_notice { INTENT_OF_NOTICE } else { "" };
        (INTENT.to_owned(), used.to_owned())
    });
    ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        generation: metadata.generation,
        creation_timestamp: metadata.creation_timestamp,
        deletion_timestamp: metadata.deletion_timestamp,
        labels: label.map(|label| BTreeMap::from([label])),
        annotations: note.map(|note| BTreeMap::from([note])),
        owner_references: metadata.owner_references.map(used_owners),
        ..ObjectMeta::default()
    }
}

fn used_owners(owners: Vec<OwnerReference>) -> Vec<OwnerReference> {
    let mut owners = owners.into_iter().filter(is_short);
    let first = owners.next();
    let controller = owners.find(|owner| owner.controller == Some(true));
    first.into_iter().chain(controller).collect()
}

fn is_short(owner: &OwnerReference) -> bool {
    let OwnerReference {
        api_version,
        kind,
        name,
        uid,
        ..
    } = owner;
    let bytes: usize = [api_version, kind, name, uid].into_iter().map(String::len).sum();
    bytes <= MAX_OWNER_BYTES
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_used_is_kept() {
        let owner = |name: &str, controller: bool| json!({ "apiVersion": "v1", "kind": "Game", "name": name, "uid": name, "controller": controller });
        let long = "x".repeat(MAX_OWNER_BYTES);
        let owners = json!([
            owner(&long, false),
            owner("a", false),
            owner("b", false),
            owner("c", true)
        ]);
        let kept = json!({
            "name": "run", "namespace": "games", "uid": "1", "resourceVersion": "2", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:01Z",
            "labels": { POD_UID: "4" }, "annotations": { INTENT: "" },
            "ownerReferences": [owner("a", false), owner("c", true)],
        });
        let mut stored = kept.clone();
        stored["labels"]["app"] = json!("arena");
        stored["annotations"] = json!({ "note": long, INTENT: long });
        stored["finalizers"] = json!(["example.com/hold"]);
        stored["managedFields"] = json!([{ "manager": "kubectl" }]);
        stored["ownerReferences"] = owners;
        let mut stored: ObjectMeta = serde_json::from_value(stored).unwrap();
        assert_eq!(json!(used(stored.clone())), kept);
        let notes = stored.annotations.get_or_insert_default();
        notes.insert(INTENT.to_owned(), INTENT_OF_NOTICE.to_owned());
        assert_eq!(
            json!(used(stored).annotations),
            json!({ INTENT: INTENT_OF_NOTICE })
        );
        assert_eq!(used(ObjectMeta::default()), ObjectMeta::default());
    }
}
