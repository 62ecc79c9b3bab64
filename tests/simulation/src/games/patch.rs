//! Applies the shell's patches to a pod.

use std::collections::BTreeMap;

use gamedeployment_core::gate::owner;
use gamedeployment_core::plan::{Action, GatedWrite, PodChange};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::names::pod as names;

use super::Seen;
use crate::kubelet::set_condition;

/// Changes a pod as an action requires.
pub(super) fn patch(pod: &mut api::Pod, action: &Action, seen: &Seen, now: Timestamp) {
    let notes = pod.metadata.annotations.get_or_insert_default();
    match action {
        Action::AdoptPod(_) => {
            pod.metadata.owner_references = Some(vec![owner(&seen.target.key.1, seen.uid())]);
        }
        Action::ReleasePod(_) => pod.metadata.owner_references = None,
        Action::ClearSelection(_, labels) => {
            notes.remove(names::DELETING);
            notes.remove(names::CHOSEN_FOR);
            write_metadata(&mut pod.metadata, &labels.labels, &labels.annotations);
        }
        Action::SetGuardLabel(_, is_set) => {
            let labels = pod.metadata.labels.get_or_insert_default();
            let value = is_set.then(|| names::REMOVAL_GUARD_ASK.to_owned());
            match value {
                Some(value) => labels.insert(names::REMOVAL_GUARD.to_owned(), value),
                None => labels.remove(names::REMOVAL_GUARD),
            };
        }
        Action::SetDrainingLabels(_, patch) | Action::SetAutoscalerAnnotations(_, patch) => {
            write_metadata(&mut pod.metadata, &patch.labels, &patch.annotations);
        }
        Action::WithdrawRequests(_, Some(text)) => {
            notes.insert(names::REMOVAL_REQUESTED.to_owned(), text.clone());
        }
        Action::WithdrawRequests(_, None) => {
            notes.remove(names::REMOVAL_REQUESTED);
        }
        Action::RecordSelection(_, text, labels) => {
            notes.insert(names::DELETING.to_owned(), "true".to_owned());
            notes.insert(names::CHOSEN_FOR.to_owned(), text.clone());
            notes.insert(names::QUESTION.to_owned(), text.clone());
            write_metadata(&mut pod.metadata, &labels.labels, &labels.annotations);
        }
        Action::NoteQuestion(_, question, labels) => {
            notes.insert(names::QUESTION.to_owned(), question.text.clone());
            write_metadata(&mut pod.metadata, &labels.labels, &labels.annotations);
        }
        Action::Gated(GatedWrite::Confirm(confirmed)) => {
            notes.insert(names::CONFIRMED.to_owned(), confirmed.revision().to_owned());
        }
        Action::SetReady(_, finished) => {
            let status = pod.status.get_or_insert_default();
            let mark = finished.as_ref().map(|finished| finished.mark.as_str());
            set_condition(status, names::IN_PLACE_READY, true, mark, now);
        }
        Action::Gated(GatedWrite::SetNotReady(update, _)) => {
            let status = pod.status.get_or_insert_default();
            // A pod out of service is no longer ready; the next report of the kubelet says so.
            set_condition(status, names::IN_PLACE_READY, false, Some(update.to()), now);
        }
        Action::Gated(GatedWrite::WriteUpdate(_, change)) => write_update(pod, change),
        other => panic!("not about a pod: {other:?}"),
    }
}

fn write_update(pod: &mut api::Pod, change: &PodChange) {
    for container in &mut pod.spec.as_mut().unwrap().containers {
        if let Some(image) = change.images.get(&container.name) {
            container.image = Some(image.clone());
        }
    }
    write_metadata(&mut pod.metadata, &change.labels, &change.annotations);
}

/// Labels or annotations of a patch; `None` removes one.
type Changes = BTreeMap<String, Option<String>>;

fn write_metadata(metadata: &mut ObjectMeta, labels: &Changes, annotations: &Changes) {
    for (map, changes) in [
        (&mut metadata.labels, labels),
        (&mut metadata.annotations, annotations),
    ] {
        let map = map.get_or_insert_default();
        for (key, value) in changes {
            match value {
                Some(value) => drop(map.insert(key.clone(), value.clone())),
                None => drop(map.remove(key)),
            }
        }
    }
}
