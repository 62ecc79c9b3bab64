//! Annotations that keep autoscalers from removing the nodes of pods. A marker on the pod lists those that
//! the operator has set; it removes no others.

use std::collections::BTreeMap;

use shared_api::names::pod::{AUTOSCALER_ANNOTATIONS, KEEPS_NODE};

use crate::facts::Facts;
use crate::gate::PodRef;
use crate::hook_kind::HookKind;
use crate::plan::{Action, MetadataPatch};
use crate::pod::Pod;
use crate::workload::{AutoscalerAnnotations, Workload};

/// Changed annotations of a pod; `None` removes one.
type Changes = BTreeMap<String, Option<String>>;

/// Returns the change that these annotations need, including the marker. `is_needed`: whether the pod needs the
/// autoscaler annotations. `written`: annotations that the same write sets or removes because of the template;
/// they do not belong to the operator, even if the marker lists them.
///
/// A listed annotation with another value has since been changed by another client, and is kept when it is not
/// needed.
fn patch(found: &BTreeMap<String, String>, written: &Changes, is_needed: bool) -> MetadataPatch {
    let marker = found.get(AUTOSCALER_ANNOTATIONS).map(String::as_str);
    let is_listed = |key: &str| {
        let is_in_marker = marker.is_some_and(|marker| marker.split(',').any(|listed| listed == key));
        is_in_marker && !written.contains_key(key)
    };
    let has_value = |key: &str, value: &str| {
        let found = found.get(key).map(String::as_str);
        written.get(key).map_or(found, Option::as_deref) == Some(value)
    };
    let mut patch = MetadataPatch::default();
    let changes = &mut patch.annotations;
    for (key, value) in KEEPS_NODE {
        match (is_needed, has_value(key, value)) {
            (true, false) => {
                patch.reverts |= is_listed(key);
                changes.insert(key.to_owned(), Some(value.to_owned()));
            }
            (false, true) if is_listed(key) => {
                changes.insert(key.to_owned(), None);
            }
            (true, true) | (false, _) => {}
        }
    }
    let own = KEEPS_NODE.into_iter().map(|(key, _)| key);
    let own = own.filter(|key| is_needed && (changes.contains_key(*key) || is_listed(key)));
    let own: Vec<&str> = own.collect();
    let lists_own = match marker {
        Some(marker) => marker.split(',').eq(own.iter().copied()),
        None => own.is_empty(),
    };
    if !lists_own {
        let listed = (!own.is_empty()).then(|| own.join(","));
        changes.insert(AUTOSCALER_ANNOTATIONS.to_owned(), listed);
    }
    patch
}

/// Returns whether the pods of a workload need the annotations, except those that skip their hooks.
fn are_needed(workload: &Workload) -> bool {
    workload.disruption.autoscaler_annotations == AutoscalerAnnotations::Managed
        && workload.hook(HookKind::PreDelete).step.is_some()
}

/// Returns whether a pod needs the annotations: its removal requires a hook.
fn is_needed(pod: &Pod, workload: &Workload) -> bool {
    are_needed(workload) && !pod.skips_hooks()
}

/// Returns the changes of a template's annotations for a new pod.
#[must_use]
pub fn changes_of_template(
    annotations: &BTreeMap<String, String>,
    workload: &Workload,
) -> BTreeMap<String, Option<String>> {
    patch(annotations, &Changes::new(), are_needed(workload)).annotations
}

/// Adds the changes to the annotations that an update writes to a pod. Without it, the pod of a template that
/// no longer sets an annotation would lack it until the next write.
pub fn add_to_update(pod: &Pod, workload: &Workload, written: &mut BTreeMap<String, Option<String>>) {
    let more = patch(&pod.annotations, written, is_needed(pod, workload));
    written.extend(more.annotations);
}

/// Sets the annotations on the pods that need them, and removes those that the operator has set from other
/// pods. A pod to which the plan writes anyway is left to the next decision.
#[must_use]
pub fn annotate_pods(facts: &Facts<'_>, planned: &[Action]) -> Vec<Action> {
    facts.unwritten(planned, |pod| {
        let patch = patch(
            &pod.pod.annotations,
            &Changes::new(),
            is_needed(pod.pod, facts.workload),
        );
        (!patch.is_empty()).then(|| Action::SetAutoscalerAnnotations(PodRef::of(pod.pod), patch))
    })
}

#[cfg(test)]
mod tests;
