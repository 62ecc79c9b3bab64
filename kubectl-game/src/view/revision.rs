//! Revisions: their numbers and images, which of them counts, and the pods that have them.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::pod::PodView;
use super::{created, status_of};
use crate::cluster::Snapshot;

/// A revision, as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionView {
    /// Its place in the history; none where its object is gone.
    pub(crate) number: Option<i64>,
    /// Its name, which is also its pods' label.
    pub(crate) name: String,
    /// When it was first used.
    pub(crate) created: Option<Timestamp>,
    /// What pods are updated to.
    pub(crate) update: bool,
    /// What was rolled out whole last.
    pub(crate) current: bool,
    /// Images of its containers, each once, in their order.
    pub(crate) images: Vec<String>,
    /// Pods that have it, by name.
    pub(crate) pods: Vec<PodView>,
}

impl RevisionView {
    /// What it is to the workload, in words.
    pub(crate) fn role(&self) -> &'static str {
        match (self.update, self.current) {
            (true, true) => "current",
            (true, false) => "update",
            (false, true) => "previous",
            (false, false) => "old",
        }
    }
}

/// The revisions that have pods or count, newest first.
pub(super) fn all(snapshot: &Snapshot) -> Vec<RevisionView> {
    let mut all = history(snapshot);
    all.retain(|revision| !revision.pods.is_empty() || revision.update);
    all
}

/// All revisions, newest first.
pub(crate) fn history(snapshot: &Snapshot) -> Vec<RevisionView> {
    let status = status_of(&snapshot.game);
    let view = |name: String, object: Option<&ControllerRevision>| RevisionView {
        number: object.map(|object| object.revision),
        created: object.and_then(created),
        update: status.update_revision.as_deref() == Some(&name),
        current: status.current_revision.as_deref() == Some(&name),
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

/// The template that a revision holds.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<Value> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    if let Value::Object(fields) = &mut template {
        // The mark of a strategic merge patch, no field of a pod.
        fields.remove("$patch");
    }
    Some(template)
}

/// The images of a template's containers.
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
