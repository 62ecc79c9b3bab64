//! Labels of pods that are selected for deletion: because of them, Services, matchmakers and allocators send
//! these pods no new players. The write that records the selection sets them, and the write that removes this record
//! restores the former labels, which an annotation contains. No gate depends on them.
//!
//! The former values are those of the pod's revision, unless users have changed them: only an update changes
//! the revision, and it restores them as well. So no restoration undoes a change of the template.

use std::collections::BTreeMap;

use serde_json::json;
use shared_api::names::pod::DRAINING_LABELS;

use crate::facts::{Facts, PodFacts};
use crate::gate::PodRef;
use crate::plan::{Action, MetadataPatch, PodChange};
use crate::workload::{Selector, is_draining_label};

/// Values of labels; `None` for a label that the pod does not have.
type Labels = BTreeMap<String, Option<String>>;

/// Returns the change that sets the draining labels of a pod.
#[must_use]
pub fn set(facts: &Facts<'_>, pod: &PodFacts<'_>) -> MetadataPatch {
    patch(facts, pod, &facts.workload.draining_labels)
}

/// Returns the change that restores the former labels of a pod.
#[must_use]
pub fn restore(facts: &Facts<'_>, pod: &PodFacts<'_>) -> MetadataPatch {
    patch(facts, pod, &BTreeMap::new())
}

/// Adds the restoration of the former labels to an update: a pod to update in place is not selected for
/// deletion. The template takes precedence.
pub fn restore_in_update(facts: &Facts<'_>, pod: &PodFacts<'_>, change: &mut PodChange) {
    let former = restore(facts, pod);
    for (key, value) in former.labels {
        change.labels.entry(key).or_insert(value);
    }
    change.annotations.extend(former.annotations);
}

/// Corrects the labels of pods whose selection does not change: the spec has changed since, somebody has
/// changed the labels or the record of the selection, or an older operator has selected the pod. A pod to
/// which the plan writes anyway is left to the next decision.
#[must_use]
pub fn label_pods(facts: &Facts<'_>, planned: &[Action]) -> Vec<Action> {
    facts.unwritten(planned, |pod| {
        let patch = if pod.recorded_selection.is_some() {
            set(facts, pod)
        } else {
            restore(facts, pod)
        };
        (!patch.is_empty()).then(|| Action::SetDrainingLabels(PodRef::of(pod.pod), patch))
    })
}

/// Returns the change that gives a pod these labels and restores all others that the operator has set.
fn patch(facts: &Facts<'_>, pod: &PodFacts<'_>, wanted: &BTreeMap<String, String>) -> MetadataPatch {
    let mut labels = former(facts, pod);
    let is_selected = pod.recorded_selection.is_some();
    let pod = pod.pod;
    let (mut record, mut reverts) = (Labels::new(), false);
    for (key, value) in wanted {
        let former = labels.insert(key.clone(), Some(value.clone()));
        // The value in the spec may have changed instead. A back-off after this write then delays nothing.
        reverts |= former.is_some() && pod.labels.get(key) != Some(value);
        let former = former.unwrap_or_else(|| pod.labels.get(key).cloned());
        record.insert(key.clone(), former);
    }
    labels.retain(|key, value| pod.labels.get(key) != value.as_ref());
    let text = (!record.is_empty()).then(|| json!(record).to_string());
    let mut annotations = BTreeMap::new();
    if pod.annotation(DRAINING_LABELS) != text.as_deref() {
        annotations.insert(DRAINING_LABELS.to_owned(), text);
        // The labels of a selected pod are correct, but another client has changed their record.
        reverts |= is_selected && !wanted.is_empty() && labels.is_empty();
    }
    MetadataPatch {
        labels,
        annotations,
        reverts,
    }
}

/// Returns the former values of the labels that the operator has set on a pod. If the annotation of a
/// selected pod is missing, or if that of any pod is not valid, these are the labels with the value of the
/// spec, and the template's value counts as the former one.
fn former(facts: &Facts<'_>, pod: &PodFacts<'_>) -> Labels {
    let selector = &facts.workload.selector;
    let text = pod.pod.annotation(DRAINING_LABELS);
    if let Some(former) = text.and_then(|text| parse(text, selector)) {
        return former;
    }
    if text.is_none() && pod.recorded_selection.is_none() {
        return Labels::new();
    }
    let draining = facts.workload.draining_labels.iter();
    let set = draining.filter(|(key, value)| pod.pod.labels.get(*key) == Some(*value));
    let of_template = |key: &String| facts.history.template_label(pod.pod, key);
    set.map(|(key, _)| (key.clone(), of_template(key))).collect()
}

/// Parses the annotation; `None` if it contains anything but possible draining labels. Another client may have
/// written it, and a label that the operator depends on must not be changed.
fn parse(text: &str, selector: &Selector) -> Option<Labels> {
    let labels: Labels = serde_json::from_str(text).ok()?;
    let mut pairs = labels.iter();
    let is_valid = pairs.all(|(key, value)| {
        let value = value.as_deref().unwrap_or_default();
        is_draining_label(key, value, selector)
    });
    is_valid.then_some(labels)
}

#[cfg(test)]
mod tests;
