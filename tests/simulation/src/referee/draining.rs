//! Checks the draining labels: the write that records a selection sets them, the write that removes its
//! record restores the former labels, and at rest exactly the selected pods have them.
//!
//! The rules are those of the documentation, without the operator's code. A write carries the version of the
//! pod that its decision is based on, so that the pod before it is the one that the operator knew.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::Workload;
use k8s_openapi::api::core::v1 as api;
use shared_api::GameDeploymentSpec;

use super::{Acted, Referee};
use crate::objects::PodObject;
use crate::setup::DRAINING_KEYS;
use crate::world::{FLEET, World};

/// Annotation with the former labels, as documented.
const RECORD: &str = "tkex.tencent.com/draining-labels";
/// Annotation of a pod that is selected for deletion, as documented.
const MARK: &str = "io.tencent.bcs.dev/game-pod-deleting";
/// Labels that decide to which workload a pod belongs, and its revision.
const VITAL: [&str; 2] = ["app", "controller-revision-hash"];

/// Values of labels or annotations; `None` for one that does not exist.
type Values = BTreeMap<String, Option<String>>;

fn label<'a>(pod: &'a api::Pod, key: &str) -> Option<&'a str> {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(key).map(String::as_str))
}

fn annotation<'a>(pod: &'a api::Pod, key: &str) -> Option<&'a str> {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(key).map(String::as_str))
}

fn is_marked(pod: &api::Pod) -> bool {
    annotation(pod, MARK) == Some("true")
}

/// Returns the labels of the spec.
fn wanted(spec: &GameDeploymentSpec) -> BTreeMap<String, String> {
    let strategy = spec.scale_strategy.as_ref();
    let labels = strategy.and_then(|strategy| strategy.draining_labels.clone());
    labels.unwrap_or_default()
}

/// Parses a record; `None` if it is not valid.
fn parsed(text: &str) -> Option<Values> {
    let values: Values = serde_json::from_str(text).ok()?;
    (!VITAL.iter().any(|key| values.contains_key(*key))).then_some(values)
}

/// Checks a write that concerns the draining labels of a pod, and that took effect.
pub(super) fn check_draining(action: &Action, acted: &Acted<'_>) {
    let Some(before) = &acted.before else { return };
    let before = &before.api;
    let (labels, annotations, is_selected) = match action {
        Action::RecordSelection(_, _, patch) => (&patch.labels, &patch.annotations, true),
        Action::ClearSelection(_, patch) => (&patch.labels, &patch.annotations, false),
        Action::SetDrainingLabels(_, patch) => (&patch.labels, &patch.annotations, is_marked(before)),
        Action::Gated(GatedWrite::WriteUpdate(_, change)) => {
            return check_update(&change.labels, &change.annotations, before);
        }
        _ => return,
    };
    let text = || {
        format!(
            "{action:#?} {:#?} {:#?}",
            before.metadata,
            acted.seen.object().spec
        )
    };
    let spec = wanted(&acted.seen.object().spec);
    let set = if is_selected {
        spec.clone()
    } else {
        BTreeMap::new()
    };
    let record = annotation(before, RECORD);
    let known = record.and_then(parsed);
    let after = |key: &str| labels.get(key).map_or(label(before, key), Option::as_deref);
    for (key, value) in &set {
        assert_eq!(
            after(key),
            Some(value.as_str()),
            "a selected pod gets players: {}",
            text()
        );
    }
    for (key, former) in known.iter().flatten().filter(|(key, _)| !set.contains_key(*key)) {
        assert_eq!(
            after(key),
            former.as_deref(),
            "a label is not restored: {}",
            text()
        );
    }
    // Nothing is known about the labels of a selected pod without a record.
    let is_lost = known.is_none() && (record.is_some() || is_marked(before));
    let expected = set.keys().map(|key| {
        let recorded = known.as_ref().and_then(|known| known.get(key).cloned());
        let former = recorded.unwrap_or_else(|| label(before, key).map(str::to_owned));
        (key.clone(), former)
    });
    let expected: Values = expected.collect();
    let new_record = annotations.get(RECORD).map_or(record, Option::as_deref);
    match new_record {
        None => assert!(expected.is_empty(), "the former labels are lost: {}", text()),
        Some(new) => {
            let new = parsed(new).unwrap();
            let is_right = if is_lost {
                new.keys().eq(expected.keys())
            } else {
                new == expected
            };
            assert!(
                is_right && !new.is_empty(),
                "{new:?} is recorded, not {expected:?}: {}",
                text()
            );
        }
    }
    let is_own = |key: &str| spec.contains_key(key) || known.iter().any(|known| known.contains_key(key));
    assert!(
        labels
            .keys()
            .all(|key| is_own(key) && !VITAL.contains(&key.as_str())),
        "a label of somebody else is changed: {}",
        text()
    );
    let mut changed = labels.iter();
    assert!(
        changed.all(|(key, value)| label(before, key) != value.as_deref())
            && annotations
                .iter()
                .all(|(key, value)| key == RECORD && annotation(before, key) != value.as_deref()),
        "a write changes nothing, or another annotation: {}",
        text()
    );
    let corrects = matches!(action, Action::SetDrainingLabels(..));
    assert!(
        !corrects || !labels.is_empty() || !annotations.is_empty(),
        "an empty write: {}",
        text()
    );
}

/// Checks an update in place: the pod is not selected, and no record of a selection is left.
fn check_update(labels: &Values, annotations: &Values, before: &api::Pod) {
    let text = || format!("{labels:?} {annotations:?} {:#?}", before.metadata);
    assert!(
        !is_marked(before),
        "a selected pod is updated in place: {}",
        text()
    );
    let record = annotation(before, RECORD);
    assert!(
        record.is_none() || annotations.get(RECORD) == Some(&None),
        "a record outlives the revision: {}",
        text()
    );
    for (key, former) in record.and_then(parsed).iter().flatten() {
        // The template may set another value.
        assert!(
            labels.contains_key(key) || label(before, key) == former.as_deref(),
            "a label is not restored: {}",
            text()
        );
    }
}

impl Referee {
    /// Records that somebody has changed the draining labels of a pod, or their record.
    pub fn somebody_labels(&mut self, uid: &str) {
        self.labelled.insert(uid.to_owned());
    }
}

impl World {
    /// Checks, while nothing happens, that exactly the selected pods have the draining labels, and that all
    /// others have the labels of their templates, unless somebody has changed them.
    pub(super) fn check_draining_labels(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        if Workload::read(&object.api).is_err() {
            return;
        }
        let wanted = wanted(&object.api.spec);
        let own =
            |pod: &&Rc<PodObject>| pod.id.owner.as_deref() == Some(object.uid()) && pod.read.is_active();
        for pod in self.server.pods.iter().filter(own) {
            let record = annotation(&pod.api, RECORD);
            if is_marked(&pod.api) {
                let recorded = record.map(|record| parsed(record).unwrap());
                let keys: BTreeSet<&String> = recorded.iter().flat_map(BTreeMap::keys).collect();
                let mut pairs = wanted.iter();
                assert!(
                    pairs.all(|(key, value)| label(&pod.api, key) == Some(value.as_str()))
                        && keys.into_iter().eq(wanted.keys())
                        && record.is_some() != wanted.is_empty(),
                    "a selected pod does not have the labels {wanted:?}: {:#?}",
                    pod.api.metadata
                );
                continue;
            }
            assert!(record.is_none(), "a record is left: {:#?}", pod.api.metadata);
            let revision = self.server.revisions.get(pod.read.revision());
            let is_touched = self.referee.labelled.contains(&pod.id.uid);
            let Some(revision) = revision.filter(|_| !is_touched) else {
                continue;
            };
            let template = revision.read.template.labels();
            for key in DRAINING_KEYS {
                assert_eq!(
                    label(&pod.api, key),
                    template.get(key).map(String::as_str),
                    "a pod that is not selected differs from its template in {key}: {:#?}",
                    pod.api.metadata
                );
            }
        }
    }
}
