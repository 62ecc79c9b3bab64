//! Views of revisions: numbers, images, roles and pods.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::pod::PodView;
use super::state::rollback;
use super::{created, status_of};
use crate::cluster::Snapshot;

/// View of a revision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionView {
    /// Number in the history; `None` if the object was deleted.
    pub(crate) number: Option<i64>,
    /// Name of the revision, which is also the label of its pods.
    pub(crate) name: String,
    /// Time of its creation.
    pub(crate) created: Option<Timestamp>,
    /// Whether pods are updated, or rolled back, to this revision.
    pub(crate) update: bool,
    /// Whether this is the last revision that was rolled out completely.
    pub(crate) current: bool,
    /// Whether the rollout to this revision is aborted, and its pods are rolled back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) aborted: bool,
    /// Images of its containers without duplicates, in order.
    pub(crate) images: Vec<String>,
    /// Pods at this revision, by name.
    pub(crate) pods: Vec<PodView>,
}

impl RevisionView {
    /// Returns the role of the revision for the workload.
    pub(crate) fn role(&self) -> &'static str {
        match (self.update, self.current) {
            (false, false) if self.aborted => "aborted",
            (true, true) => "current",
            (true, false) => "update",
            (false, true) => "previous",
            (false, false) => "old",
        }
    }
}

/// Returns the revisions that have pods, the update revision and the aborted one, newest first.
pub(super) fn all(snapshot: &Snapshot) -> Vec<RevisionView> {
    let mut all = history(snapshot);
    all.retain(|revision| !revision.pods.is_empty() || revision.update || revision.aborted);
    all
}

/// Returns all revisions, newest first.
pub(crate) fn history(snapshot: &Snapshot) -> Vec<RevisionView> {
    let status = status_of(&snapshot.game);
    let rollback = rollback(&status);
    let target = rollback.map(|rollback| &rollback.to_revision);
    let target = target.or(status.update_revision.as_ref());
    let view = |name: String, object: Option<&ControllerRevision>| RevisionView {
        number: object.map(|object| object.revision),
        created: object.and_then(created),
        update: target == Some(&name),
        current: status.current_revision.as_deref() == Some(&name),
        aborted: rollback.is_some_and(|rollback| rollback.from_revision == name),
        images: object
            .and_then(template_of)
            .map(|template| images(&template))
            .unwrap_or_default(),
        pods: Vec::new(),
        name,
    };
    let mut all: Vec<RevisionView> = snapshot
        .revisions
        .iter()
        .rev()
        .map(|object| view(object.name_any(), Some(object)))
        .collect();
    for pod in &snapshot.pods {
        let pod = PodView::of(snapshot, pod);
        let place = all.iter().position(|revision| revision.name == pod.revision);
        let place = place.unwrap_or_else(|| {
            all.push(view(pod.revision.clone(), None));
            all.len() - 1
        });
        if let Some(revision) = all.get_mut(place) {
            revision.pods.push(pod);
        }
    }
    all
}

/// Returns the template in a revision.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<Value> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    if let Value::Object(fields) = &mut template {
        // Directive of a strategic merge patch, not a field of a pod.
        fields.remove("$patch");
    }
    Some(template)
}

/// Returns the distinct images of a template's containers, in order.
pub(crate) fn images(template: &Value) -> Vec<String> {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    let mut images: Vec<String> = Vec::new();
    for image in containers
        .into_iter()
        .flatten()
        .filter_map(|container| container["image"].as_str())
    {
        if !images.iter().any(|known| known == image) {
            images.push(image.to_owned());
        }
    }
    images
}
