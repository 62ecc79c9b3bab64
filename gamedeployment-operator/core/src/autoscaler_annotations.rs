//! Annotations that keep autoscalers from removing the nodes of pods. A marker on the pod lists those that
//! the operator has set; it removes no others.

use std::collections::BTreeMap;

use shared_api::names::pod::{AUTOSCALER_ANNOTATIONS, KEEPS_NODE};

use crate::facts::{Facts, PodFacts};
use crate::gate::PodRef;
use crate::hook_kind::HookKind;
use crate::plan::Action;
use crate::pod::Pod;
use crate::workload::{AutoscalerAnnotations, Workload};

/// Change of a pod's annotations, including the marker. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationChange {
    values: BTreeMap<&'static str, Option<String>>,
    reverts: bool,
}

impl AnnotationChange {
    /// Returns the new values; `None` removes the annotation.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        self.values.iter().map(|(key, value)| (*key, value.as_deref()))
    }

    /// Returns whether it sets an annotation again that another client has changed since the operator set it.
    #[must_use]
    pub fn reverts(&self) -> bool {
        self.reverts
    }

    /// Returns the change that these annotations need; `None` if they are correct. `is_needed`: whether the
    /// pod needs the autoscaler annotations. `written`: annotations that the same write sets or removes
    /// because of the template; they do not belong to the operator, even if the marker lists them.
    ///
    /// A listed annotation with another value has since been changed by another client, and is kept when it
    /// is not needed.
    fn of(
        found: &BTreeMap<String, String>,
        written: &BTreeMap<String, Option<String>>,
        is_needed: bool,
    ) -> Option<Self> {
        let marker = found.get(AUTOSCALER_ANNOTATIONS).map(String::as_str);
        let is_listed = |key: &str| {
            let is_in_marker = marker.is_some_and(|marker| marker.split(',').any(|listed| listed == key));
            is_in_marker && !written.contains_key(key)
        };
        let has_value = |key: &str, value: &str| {
            let found = found.get(key).map(String::as_str);
            written.get(key).map_or(found, Option::as_deref) == Some(value)
        };
        let mut values = BTreeMap::new();
        let mut reverts = false;
        for (key, value) in KEEPS_NODE {
            match (is_needed, has_value(key, value)) {
                (true, false) => {
                    reverts |= is_listed(key);
                    values.insert(key, Some(value.to_owned()));
                }
                (false, true) if is_listed(key) => {
                    values.insert(key, None);
                }
                (true, true) | (false, _) => {}
            }
        }
        let own = KEEPS_NODE.into_iter().map(|(key, _)| key);
        let own = own.filter(|key| is_needed && (values.contains_key(key) || is_listed(key)));
        let own: Vec<&str> = own.collect();
        let lists_own = match marker {
            Some(marker) => marker.split(',').eq(own.iter().copied()),
            None => own.is_empty(),
        };
        if !lists_own {
            let listed = (!own.is_empty()).then(|| own.join(","));
            values.insert(AUTOSCALER_ANNOTATIONS, listed);
        }
        (!values.is_empty()).then_some(Self { values, reverts })
    }
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

fn change_of(pod: &Pod, workload: &Workload) -> Option<AnnotationChange> {
    AnnotationChange::of(&pod.annotations, &BTreeMap::new(), is_needed(pod, workload))
}

/// Returns the change of a template's annotations for a new pod; `None` if there is none.
#[must_use]
pub fn change_of_template(
    annotations: &BTreeMap<String, String>,
    workload: &Workload,
) -> Option<AnnotationChange> {
    AnnotationChange::of(annotations, &BTreeMap::new(), are_needed(workload))
}

/// Adds the change to the annotations that an update writes to a pod. Without it, the pod of a template that
/// no longer sets an annotation would lack it until the next write.
pub fn add_to_update(pod: &Pod, workload: &Workload, written: &mut BTreeMap<String, Option<String>>) {
    let change = AnnotationChange::of(&pod.annotations, written, is_needed(pod, workload));
    let values = change.into_iter().flat_map(|change| change.values);
    written.extend(values.map(|(key, value)| (key.to_owned(), value)));
}

/// Sets the annotations on the pods that need them, and removes those that the operator has set from other
/// pods. A pod to which the plan writes anyway is left to the next decision.
#[must_use]
pub fn annotate_pods(facts: &Facts<'_>, planned: &[Action]) -> Vec<Action> {
    let is_wrong = |pod: &PodFacts<'_>| !pod.unread && change_of(pod.pod, facts.workload).is_some();
    let pods = facts.unwritten(planned, is_wrong);
    let annotate = |pod: &PodFacts<'_>| {
        let change = change_of(pod.pod, facts.workload)?;
        Some(Action::SetAutoscalerAnnotations(PodRef::of(pod.pod), change))
    };
    pods.into_iter().filter_map(annotate).collect()
}

#[cfg(test)]
mod tests;
