//! What is kept of objects, and which changes of them are news.

use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::{Pod, controller_of};
use gamedeployment_core::revision::Revision;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1 as api;
use kube::core::error_boundary::InvalidObject;
use operator_runtime::watch::{Key, key_of};
use shared_api::reason::CONDITION_VALID;
use shared_api::{HookTemplate, HookTemplateSpec};

use super::OwnedRevision;

/// The kind whose pods are decided on.
const KIND: &str = "GameDeployment";

/// What is kept of a pod.
pub(super) fn read_pod(pod: &api::Pod) -> Pod {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    let read = Pod::read(pod);
    if controller.is_some_and(|owner| owner.kind != KIND) {
        read.of_others()
    } else {
        read
    }
}

/// A version alone is no news: the next write that it makes fail is tried again with this one.
pub(super) fn pods_differ(known: &Pod, new: &mut Pod) -> bool {
    let version = std::mem::replace(&mut new.resource_version, known.resource_version.clone());
    let differ = known != new;
    new.resource_version = version;
    differ
}

/// As of pods. A measurement that came in time is no news either: whoever waits for it wakes by itself.
pub(super) fn runs_differ(known: &Run, new: &mut Run) -> bool {
    let version = std::mem::replace(&mut new.resource_version, known.resource_version.clone());
    let at = new.not_taken_up_at;
    if known
        .not_taken_up_at
        .is_some_and(|known| known > Timestamp::now())
        && at.is_some()
    {
        new.not_taken_up_at = known.not_taken_up_at;
    }
    let differ = known != new;
    (new.resource_version, new.not_taken_up_at) = (version, at);
    differ
}

/// What is kept of a ControllerRevision; none of one that does not hold a template.
#[must_use]
pub fn read_revision(object: &ControllerRevision) -> Option<OwnedRevision> {
    Some(OwnedRevision {
        owner: controller_of(&object.metadata),
        revision: Revision::read(object)?,
    })
}

/// A HookTemplate, readable or not.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) spec: Result<Box<HookTemplateSpec>, String>,
    /// What is wrong with it, by hook-operator.
    pub(super) problem: Option<String>,
}

impl Template {
    /// Whether workloads that use it see a difference.
    pub(super) fn differs(&self, new: &Self) -> bool {
        (&self.spec, &self.problem) != (&new.spec, &new.problem)
    }
}

pub(super) fn read_template(read: Result<HookTemplate, InvalidObject>) -> (Key, Template) {
    let (metadata, spec, problem) = match read {
        Ok(template) => {
            let problem = problem(&template);
            (template.metadata, Ok(Box::new(template.spec)), problem)
        }
        Err(invalid) => (invalid.metadata, Err(invalid.error), None),
    };
    let template = Template {
        uid: metadata.uid.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
        spec,
        problem,
    };
    (key_of(&metadata), template)
}

/// What hook-operator says of the spec as it is, if that is no good.
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
    use serde_json::json;

    use super::*;

    fn pod(kind: Option<&str>) -> Pod {
        let owner = kind.map(
            |kind| json!([{ "apiVersion": "v1", "kind": kind, "name": "a", "uid": "u", "controller": true }]),
        );
        let pod = json!({
            "metadata": { "name": "pod", "uid": "p", "labels": { "app": "a" }, "ownerReferences": owner },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
        });
        read_pod(&serde_json::from_value(pod).unwrap())
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
