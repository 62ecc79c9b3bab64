//! What is kept of objects, and which changes of them are news.

use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::{Pod, controller_of};
use gamedeployment_core::revision::Revision;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1 as api;
use kube::core::error_boundary::InvalidObject;
use operator_runtime::watch::{Key, key_of};
use shared_api::{HookTemplate, names};

use super::{NodeFacts, OwnedRevision, Template};

/// A version alone is no news: the next write that it makes fail is tried again with this one.
pub(super) fn pods_differ(known: &Pod, new: &mut Pod) -> bool {
    let version = std::mem::replace(&mut new.resource_version, known.resource_version.clone());
    let differ = known != new;
    new.resource_version = version;
    differ
}

/// As of pods.
pub(super) fn runs_differ(known: &Run, new: &mut Run) -> bool {
    let version = std::mem::replace(&mut new.resource_version, known.resource_version.clone());
    let differ = known != new;
    new.resource_version = version;
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

pub(super) fn read_template(read: Result<HookTemplate, InvalidObject>) -> (Key, Template) {
    let (metadata, spec) = match read {
        Ok(template) => (template.metadata, Ok(Box::new(template.spec))),
        Err(invalid) => (invalid.metadata, Err(invalid.error)),
    };
    let template = Template {
        uid: metadata.uid.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
        spec,
    };
    (key_of(&metadata), template)
}

pub(super) fn read_node(read: Result<api::Node, InvalidObject>) -> (String, NodeFacts) {
    let metadata = match read {
        Ok(node) => node.metadata,
        Err(invalid) => invalid.metadata,
    };
    let cost = metadata
        .annotations
        .as_ref()
        .and_then(|notes| notes.get(names::NODE_DELETION_COST));
    let cost = cost.and_then(|text| text.trim().parse().ok());
    (metadata.name.unwrap_or_default(), NodeFacts { cost })
}
