//! Converts API objects; keeps only the fields that are cached.

use gamedeployment_core::cluster::{REMOVAL_TAINTS, Taint};
use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::{Pod, controller_of};
use gamedeployment_core::revision::Revision;
use gamedeployment_driver::watch_event::{NodeFacts, OwnedRevision, Template, Workload};
use k8s_openapi::api::core::v1 as api;
use shared_api::names;
use shared_api::parsed::InvalidObject;
use shared_api::reason::CONDITION_VALID;
use shared_api::{GameDeployment, HookRun, HookTemplate};

use super::StoredRevision;

/// Kind of controller whose pods this operator manages.
const KIND: &str = "GameDeployment";

/// Converts a pod. Little more than the name is kept of a pod that another kind controls.
pub fn pod(pod: &api::Pod) -> Pod {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    let read = Pod::read(pod);
    if controller.is_some_and(|owner| owner.kind != KIND) {
        read.of_others()
    } else {
        read
    }
}

/// Converts a ControllerRevision; `None` if it holds no template.
pub fn revision(object: &StoredRevision) -> Option<OwnedRevision> {
    Some(OwnedRevision {
        owner: controller_of(&object.metadata),
        revision: Revision::read(&object.metadata, object.revision, object.data.as_ref())?,
    })
}

/// Converts a HookTemplate, usable or not.
pub(super) fn template(read: Result<HookTemplate, InvalidObject>) -> Template {
    let (metadata, spec, problem) = match read {
        Ok(template) => {
            let problem = problem(&template);
            (template.metadata, Ok(template.spec), problem)
        }
        Err(invalid) => (invalid.metadata, Err(invalid.error), None),
    };
    let uid = metadata.uid.unwrap_or_default();
    let version = metadata.resource_version.unwrap_or_default();
    Template::new(uid, version, spec, problem)
}

/// Converts a HookRun, readable or not.
pub(crate) fn run(read: Result<HookRun, InvalidObject>) -> Run {
    match read {
        Ok(run) => Run::read(&run),
        Err(InvalidObject { metadata, error, .. }) => {
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            tracing::warn!(
                namespace,
                name,
                error,
                "a HookRun cannot be parsed and will not open a gate"
            );
            let remedy = "delete it, or set retry: true for its hook";
            Run::of_metadata(&metadata, format!("cannot be parsed: {error}; {remedy}"))
        }
    }
}

/// Converts a workload, readable or not.
pub(crate) fn workload(read: Result<GameDeployment, InvalidObject>) -> Workload {
    match read {
        Ok(mut object) => {
            // Answers to writes and direct reads have them, the watch has not.
            object.metadata.managed_fields = None;
            Workload::new(object)
        }
        Err(InvalidObject { metadata, error, .. }) => Workload::unreadable(metadata, error),
    }
}

/// Converts a node. An unreadable node exists, and may not be Ready.
pub(crate) fn node(read: Result<api::Node, InvalidObject>) -> NodeFacts {
    let Ok(node) = read else {
        return NodeFacts {
            is_unreadable: true,
            ..NodeFacts::default()
        };
    };
    let notes = node.metadata.annotations.as_ref();
    let cost = notes.and_then(|notes| notes.get(names::NODE_DELETION_COST));
    let status = node.status.as_ref();
    let mut conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready" && condition.status == "True");
    let spec = node.spec.as_ref();
    let is_unschedulable = spec.is_some_and(|spec| spec.unschedulable == Some(true));
    let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let mut keys = taints.iter().map(|taint| taint.key.as_str());
    let no_execute = taints.iter().filter(|taint| taint.effect == "NoExecute");
    NodeFacts {
        ready_since: ready.and_then(|condition| Some(condition.last_transition_time.as_ref()?.0)),
        cost: cost.and_then(|text| text.trim().parse().ok()),
        is_cordoned: is_unschedulable || keys.any(|key| REMOVAL_TAINTS.contains(&key)),
        taints: no_execute.map(taint).collect(),
        is_unreadable: false,
    }
}

fn taint(taint: &api::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        added: taint.time_added.as_ref().map(|time| time.0),
    }
}

/// Returns what hook-operator reports as wrong with the current spec, if anything.
fn problem(template: &HookTemplate) -> Option<String> {
    let mut conditions = template.status.as_ref()?.conditions.iter();
    let valid = conditions.find(|known| known.type_ == CONDITION_VALID)?;
    let is_of_now = valid
        .observed_generation
        .is_none_or(|seen| template.metadata.generation == Some(seen));
    (valid.status == "False" && is_of_now).then(|| valid.message.clone())
}

#[cfg(test)]
mod tests {
    use gamedeployment_core::unusable_template::{MAX_TEMPLATE_BYTES, TooLarge, UnusableTemplate};
    use serde_json::json;

    use super::*;

    /// Reads a template with a comment of this many bytes.
    fn template(bytes: usize) -> Template {
        let spec = json!({ "metrics": [], "comment": "x".repeat(bytes) });
        let template = json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate",
            "metadata": { "name": "ask", "uid": "u", "resourceVersion": "7" }, "spec": spec,
        });
        super::template(Ok(serde_json::from_value(template).unwrap()))
    }

    #[test]
    fn the_spec_of_a_template_that_is_too_large_is_not_kept() {
        let small = template(1000);
        assert_eq!(
            small.bytes,
            json!(small.spec.as_deref().unwrap()).to_string().len()
        );
        let large = template(MAX_TEMPLATE_BYTES);
        let why = UnusableTemplate::TooLarge(TooLarge::Spec(MAX_TEMPLATE_BYTES + 27));
        assert_eq!((large.spec.unwrap_err(), large.bytes), (why, 0));
        assert_eq!((large.uid, large.version), ("u".to_owned(), "7".to_owned()));
    }

    fn pod(kind: Option<&str>) -> Pod {
        let owner = kind.map(
            |kind| json!([{ "apiVersion": "v1", "kind": kind, "name": "a", "uid": "u", "controller": true }]),
        );
        let pod = json!({
            "metadata": { "name": "pod", "uid": "p", "labels": { "app": "a" }, "ownerReferences": owner },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
        });
        super::pod(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_node_is_ready_since_its_condition_became_true() {
        let since = |status: &str, time: serde_json::Value| {
            let other = json!({ "type": "DiskPressure", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z" });
            let ready = json!({ "type": "Ready", "status": status, "lastTransitionTime": time });
            let node = json!({ "metadata": { "name": "node" }, "status": { "conditions": [other, ready] } });
            super::node(Ok(serde_json::from_value(node).unwrap())).ready_since
        };
        let time = "2024-05-01T00:00:00Z";
        assert_eq!(since("True", json!(time)), Some(time.parse().unwrap()));
        // Nobody knows since when.
        assert_eq!(since("True", json!(null)), None);
        for status in ["False", "Unknown"] {
            assert_eq!(since(status, json!(time)), None);
        }
    }

    #[test]
    fn the_taints_of_autoscalers_count_as_a_cordon() {
        let is_cordoned = |spec: &serde_json::Value| {
            let node = json!({ "metadata": { "name": "node" }, "spec": spec });
            super::node(Ok(serde_json::from_value(node).unwrap())).is_cordoned
        };
        let tainted = |key: &str, effect: &str| json!({ "taints": [{ "key": key, "effect": effect }] });
        for spec in [
            json!({ "unschedulable": true }),
            tainted("ToBeDeletedByClusterAutoscaler", "NoSchedule"),
            tainted("karpenter.sh/disrupted", "NoSchedule"),
            tainted("karpenter.sh/disruption", "NoExecute"),
        ] {
            assert!(is_cordoned(&spec), "{spec}");
        }
        for spec in [
            json!({}),
            json!({ "unschedulable": false }),
            tainted("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"),
            tainted("example.com/gpu", "NoExecute"),
        ] {
            assert!(!is_cordoned(&spec), "{spec}");
        }
    }

    #[test]
    fn of_the_taints_of_a_node_only_those_that_evict_pods_are_kept() {
        let node = json!({ "metadata": { "name": "node" }, "spec": { "taints": [
            { "key": "a", "effect": "NoSchedule" },
            { "key": "b", "effect": "PreferNoSchedule" },
            { "key": "c", "effect": "NoExecute", "value": "v", "timeAdded": "2024-05-01T00:00:00Z" },
            { "key": "d", "effect": "NoExecute" },
        ] } });
        let taint = |key: &str, value: &str, added| Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            added,
        };
        let added = "2024-05-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            super::node(Ok(serde_json::from_value(node).unwrap())).taints,
            [taint("c", "v", Some(added)), taint("d", "", None)]
        );
    }

    #[test]
    fn of_pods_that_something_else_controls_little_more_than_the_name_is_kept() {
        let others = pod(Some("ReplicaSet"));
        assert_eq!(
            (others.name.as_str(), others.controller.as_deref()),
            ("pod", Some("u"))
        );
        assert!(others.labels.is_empty() && others.containers.is_empty());
        for whole in [pod(Some("GameDeployment")), pod(None)] {
            assert!(
                !whole.labels.is_empty() && !whole.containers.is_empty(),
                "it may be ours, or become so"
            );
        }
    }
}
