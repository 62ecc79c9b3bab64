//! Labels of pods that are selected for deletion or for an update: because of them, Services, matchmakers and
//! allocators send these pods no new players. The write that records the selection sets them; before an update in
//! place, the write that notes the question does. The write that removes the record of the selection, or that updates
//! the pod, restores the former labels, which an annotation contains. If an update in place is cancelled, a separate
//! write restores them. No gate depends on them.
//!
//! The former values are those of the pod's revision, unless users have changed them: only an update changes
//! the revision, and it restores them as well. So no restoration undoes a change of the template.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use shared_api::names::pod::{DRAINING_LABELS, QUESTION};

use crate::facts::{Facts, PodFacts};
use crate::gate::{GateState, Intent, PodRef};
use crate::plan::{Action, MetadataPatch, PodChange};
use crate::stages::GrantedPod;
use crate::workload::{Selector, Workload, is_draining_label};

/// Values of labels; `None` for a label that the pod does not have.
type Labels = BTreeMap<String, Option<String>>;

/// Kind of selection, which determines the labels of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LabelledFor {
    /// Deletion without an update.
    Deletion,
    /// Update that recreates the pod.
    Recreation,
    /// Update in place.
    UpdateInPlace,
}

impl LabelledFor {
    fn of(intent: &Intent) -> Option<Self> {
        match intent {
            Intent::Delete => Some(Self::Deletion),
            Intent::Recreate(_) => Some(Self::Recreation),
            Intent::InPlace(_) => Some(Self::UpdateInPlace),
            Intent::HotPatch(_) | Intent::Confirm(_) => None,
        }
    }

    /// Returns the selection that is recorded on a pod.
    fn recorded(pod: &PodFacts<'_>) -> Option<Self> {
        let recorded = pod.recorded_selection.as_ref()?;
        Some(if recorded.is_for_update() {
            Self::Recreation
        } else {
            Self::Deletion
        })
    }

    /// Returns `UpdateInPlace` if the last question that is noted on a pod is about an update in place.
    fn noted(pod: &PodFacts<'_>) -> Option<Self> {
        let question = pod.pod.annotation(QUESTION);
        let is_noted = question.is_some_and(|question| question.starts_with(Intent::IN_PLACE));
        is_noted.then_some(Self::UpdateInPlace)
    }

    /// Returns the labels that the spec sets for this selection.
    fn labels(self, workload: &Workload) -> BTreeMap<&str, &str> {
        let draining = Some(&workload.draining_labels);
        let outdated = Some(&workload.outdated_labels);
        let (first, then) = match self {
            Self::Deletion => (draining, None),
            Self::Recreation => (draining, outdated),
            Self::UpdateInPlace => (outdated, None),
        };
        // A later value of a key replaces the earlier one.
        let labels = first.into_iter().chain(then).flatten();
        labels
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }
}

/// Returns the change of labels for the write that records the selection of a pod for this intent.
#[must_use]
pub fn set(facts: &Facts<'_>, pod: &PodFacts<'_>, intent: &Intent) -> MetadataPatch {
    patch(facts, pod, LabelledFor::recorded(pod), LabelledFor::of(intent))
}

/// Returns the change of labels for the write that notes the question about this intent. It is empty except before an
/// update in place, whose selection no other write records.
#[must_use]
pub fn set_before_update(facts: &Facts<'_>, pod: &PodFacts<'_>, intent: &Intent) -> MetadataPatch {
    match intent {
        Intent::InPlace(_) => {
            // The labels may have been restored since an earlier question.
            let is_new = facts.view.cluster.is_new_question(pod.pod);
            let labelled = LabelledFor::noted(pod).filter(|_| is_new);
            patch(facts, pod, labelled, LabelledFor::of(intent))
        }
        Intent::Delete | Intent::Recreate(_) | Intent::HotPatch(_) | Intent::Confirm(_) => {
            MetadataPatch::default()
        }
    }
}

/// Returns whether a pod has its labels before an update in place: they were set with its question.
pub fn is_labelled_before_update(pod: &PodFacts<'_>) -> bool {
    LabelledFor::noted(pod).is_some() && pod.pod.annotation(DRAINING_LABELS).is_some()
}

/// Returns the change that restores the former labels of a pod whose selection is removed.
#[must_use]
pub fn restore(facts: &Facts<'_>, pod: &PodFacts<'_>) -> MetadataPatch {
    patch(facts, pod, LabelledFor::recorded(pod), None)
}

/// Adds the restoration of the former labels to an update in place. The template takes precedence. `was_asked`: a hook
/// has run before the update.
pub fn restore_in_update(facts: &Facts<'_>, pod: &PodFacts<'_>, was_asked: bool, change: &mut PodChange) {
    let labelled = LabelledFor::noted(pod).filter(|_| was_asked);
    let former = patch(facts, pod, labelled, None);
    for (key, value) in former.labels {
        change.labels.entry(key).or_insert(value);
    }
    change.annotations.extend(former.annotations);
}

/// Corrects the labels of pods whose selection does not change: the spec has changed since, somebody has
/// changed the labels or the record of the selection, or an older operator has selected the pod. Restores the former
/// labels of pods whose update in place is cancelled. A pod to which the plan writes anyway is left to the next
/// decision.
#[must_use]
pub fn label_pods(facts: &Facts<'_>, pods: &[GrantedPod<'_>], planned: &[Action]) -> Vec<Action> {
    let asked: BTreeSet<&str> = pods
        .iter()
        .filter(|pod| !facts.workload.outdated_labels.is_empty() && is_asked(pod))
        .map(|pod| pod.facts.pod.uid.as_str())
        .collect();
    facts.unwritten(planned, |pod| {
        let before_update = || {
            asked
                .contains(pod.pod.uid.as_str())
                .then_some(LabelledFor::UpdateInPlace)
        };
        let selected = LabelledFor::recorded(pod).or_else(before_update);
        let mut patch = patch(facts, pod, selected, selected);
        patch.is_for_deletion = pod.recorded_selection.is_some();
        (!patch.is_empty()).then(|| Action::SetDrainingLabels(PodRef::of(pod.pod), patch))
    })
}

/// Returns whether a pod must have the labels of an update in place: its hook runs or has ended, or the write that
/// noted the question has set them. The success may have been used already while the pod is out of service before its
/// update.
fn is_asked(pod: &GrantedPod<'_>) -> bool {
    if LabelledFor::of(&pod.intent) != Some(LabelledFor::UpdateInPlace) {
        return false;
    }
    let is_labelled = || is_labelled_before_update(pod.facts);
    let awaits_update = || is_labelled() && pod.facts.pod.is_out_of_service();
    match &pod.gate_state {
        GateState::Running(_) | GateState::Unsuccessful(_) => true,
        GateState::Open(approval) => approval.run().is_some() || awaits_update(),
        GateState::Consumed(run) => run.is_some() || awaits_update(),
        GateState::NotRun(_) | GateState::Stale(..) => pod.granted && is_labelled(),
        // The hook may run again soon, for example because its template is replaced.
        GateState::Blocked(_) => is_labelled(),
    }
}

/// Returns the change that sets the labels of a pod for the selection `selected`, and restores all others that the
/// operator has set. `labelled` is the selection for which the pod has labels now.
fn patch(
    facts: &Facts<'_>,
    pod: &PodFacts<'_>,
    labelled: Option<LabelledFor>,
    selected: Option<LabelledFor>,
) -> MetadataPatch {
    let mut labels = former(facts, pod, labelled);
    let pod = pod.pod;
    let mut record = Labels::new();
    let wanted = selected.map(|selected| selected.labels(facts.workload));
    for (key, value) in wanted.into_iter().flatten() {
        let former = labels.insert(key.to_owned(), Some(value.to_owned()));
        let former = former.unwrap_or_else(|| pod.labels.get(key).cloned());
        record.insert(key.to_owned(), former);
    }
    labels.retain(|key, value| pod.labels.get(key) != value.as_ref());
    let text = (!record.is_empty()).then(|| json!(record).to_string());
    let mut annotations = BTreeMap::new();
    let is_kept = text.is_some();
    if pod.annotation(DRAINING_LABELS) != text.as_deref() {
        annotations.insert(DRAINING_LABELS.to_owned(), text);
    }
    // The pod had its labels before: another client has changed them, or the spec has changed.
    let changes = !labels.is_empty() || !annotations.is_empty();
    MetadataPatch {
        labels,
        annotations,
        reverts: labelled.is_some() && is_kept && changes,
        is_for_deletion: false,
    }
}

/// Returns the former values of the labels that the operator has set on a pod. If the annotation of a labelled pod is
/// missing, or if that of any pod is not valid, these are the labels with the value of the spec, and the template's
/// value counts as the former one.
fn former(facts: &Facts<'_>, pod: &PodFacts<'_>, labelled: Option<LabelledFor>) -> Labels {
    let selector = &facts.workload.selector;
    let text = pod.pod.annotation(DRAINING_LABELS);
    if let Some(former) = text.and_then(|text| parse(text, selector)) {
        return former;
    }
    // An invalid annotation shows that the operator has set labels, but not which ones.
    let labelled = labelled.or(text.map(|_| LabelledFor::Recreation));
    let set = labelled.map(|labelled| labelled.labels(facts.workload));
    let set = set.into_iter().flatten();
    let set = set.filter(|(key, value)| pod.pod.labels.get(*key).map(String::as_str) == Some(*value));
    let of_template = |key: &str| facts.history.template_label(pod.pod, key);
    set.map(|(key, _)| (key.to_owned(), of_template(key))).collect()
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
