//! Checks the labels of selected pods, which are the `drainingLabels` and the `outdatedLabels` of the spec. The write
//! that records a selection sets them; before an update in place, the write that notes the question does. The write
//! that removes this record or updates the pod restores the former labels. At rest, exactly the selected pods have the
//! labels of the spec.
//!
//! The rules are those of the documentation, without the operator's code. A write carries the version of the
//! pod that its decision is based on, so that the pod before it is the one that the operator knew.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::gate::Update;
use gamedeployment_core::plan::{Action, GatedWrite, MetadataPatch, PodChange};
use gamedeployment_core::workload::Workload;
use k8s_openapi::api::core::v1 as api;
use shared_api::GameDeploymentSpec;
use shared_api::names::pod as names;

use super::{Acted, Referee};
use crate::games::Seen;
use crate::objects::{PodObject, RunObject};
use crate::process::GAMES;
use crate::server::Server;
use crate::setup::LABEL_KEYS;
use crate::world::{FLEET, World};

/// Annotation with the former labels, as documented.
const RECORD: &str = "tkex.tencent.com/draining-labels";
/// Annotation of a pod that is selected for deletion, as documented.
const MARK: &str = "io.tencent.bcs.dev/game-pod-deleting";
/// Prefix of the intents of updates in place, as documented.
const IN_PLACE: &str = "in-place:";
/// Labels that decide to which workload a pod belongs, and its revision.
const VITAL: [&str; 2] = ["app", "controller-revision-hash"];

/// Values of labels or annotations; `None` for one that does not exist.
type Values = BTreeMap<String, Option<String>>;

/// Purpose for which a pod is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The pod is not selected, or its selection requires no labels.
    Nothing,
    Deletion,
    Recreation,
    UpdateInPlace,
}

impl Purpose {
    /// Reads the intent at the beginning of the record of a selection or of a question.
    fn of(text: &str) -> Self {
        if text.starts_with(IN_PLACE) {
            Self::UpdateInPlace
        } else if text.starts_with("recreate:") {
            Self::Recreation
        } else if text.is_empty() || text.starts_with("delete") {
            Self::Deletion
        } else {
            Self::Nothing
        }
    }

    /// Returns the purpose that the record of a pod's selection names.
    fn recorded(pod: &api::Pod) -> Self {
        Self::of(annotation(pod, names::CHOSEN_FOR).unwrap_or_default())
    }

    /// Returns the labels that the spec requires for this purpose.
    fn labels(self, spec: &GameDeploymentSpec) -> BTreeMap<String, String> {
        let scale = spec.scale_strategy.as_ref();
        let draining = scale.and_then(|strategy| strategy.draining_labels.clone());
        let update = spec.update_strategy.as_ref();
        let outdated = update.and_then(|strategy| strategy.outdated_labels.clone());
        let (draining, outdated) = (draining.unwrap_or_default(), outdated.unwrap_or_default());
        match self {
            Self::Nothing => BTreeMap::new(),
            Self::Deletion => draining,
            // The outdated labels take precedence.
            Self::Recreation => draining.into_iter().chain(outdated).collect(),
            Self::UpdateInPlace => outdated,
        }
    }
}

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

/// Returns whether the last question on a pod is about an update in place.
fn shows_update_in_place(pod: &api::Pod) -> bool {
    annotation(pod, names::QUESTION).is_some_and(|question| question.starts_with(IN_PLACE))
}

/// Returns whether a run is that of the hook before an update in place, and not a scout.
fn is_before_update_in_place(run: &RunObject) -> bool {
    let intent = run.read.intent.as_deref();
    run.read.kind.is_some() && intent.is_some_and(|intent| intent.starts_with(IN_PLACE))
}

/// Parses a record; `None` if it is not valid.
fn parsed(text: &str) -> Option<Values> {
    let values: Values = serde_json::from_str(text).ok()?;
    (!VITAL.iter().any(|key| values.contains_key(*key))).then_some(values)
}

/// Returns whether a write sets an outdated label of a pod.
pub fn sets_outdated_labels(action: &Action, seen: &Seen) -> bool {
    let (text, patch) = match action {
        Action::RecordSelection(_, text, patch) => (text, patch),
        Action::NoteQuestion(_, question, patch) => (&question.text, patch),
        _ => return false,
    };
    let outdated = Purpose::UpdateInPlace.labels(&seen.object().spec);
    let mut set = patch
        .labels
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_ref()?)));
    Purpose::of(text) != Purpose::Deletion && set.any(|(key, value)| outdated.get(key) == Some(value))
}

/// Returns whether a correction restores the former labels of a pod whose update in place is cancelled.
pub fn calls_off_update(patch: &MetadataPatch, pod: &PodObject, seen: &Seen) -> bool {
    let outdated = Purpose::UpdateInPlace.labels(&seen.object().spec);
    let is_removed = patch.annotations.get(RECORD) == Some(&None);
    is_removed && !outdated.is_empty() && !is_marked(&pod.api) && shows_update_in_place(&pod.api)
}

/// Returns the purpose of the labels that a correction leaves on a pod. Only the checks at rest verify that the hook
/// before an update in place still runs for an unmarked pod.
fn purpose_of_correction(patch: &MetadataPatch, pod: &api::Pod) -> Purpose {
    if is_marked(pod) {
        return Purpose::recorded(pod);
    }
    let record = annotation(pod, RECORD);
    let is_labelled = patch.annotations.get(RECORD).map_or(record, Option::as_deref);
    if is_labelled.is_none() {
        return Purpose::Nothing;
    }
    assert!(
        shows_update_in_place(pod),
        "a pod that is not selected gets labels: {patch:#?} {:#?}",
        pod.metadata
    );
    Purpose::UpdateInPlace
}

/// A write to the labels of a pod, and its circumstances.
struct Write<'a> {
    action: &'a Action,
    patch: &'a MetadataPatch,
    purpose: Purpose,
    before: &'a api::Pod,
    spec: &'a GameDeploymentSpec,
    /// Whether somebody has changed the labels or the record of the pod.
    is_touched: bool,
}

impl Write<'_> {
    fn text(&self) -> String {
        format!(
            "{:?}: {:#?} {:#?} {:#?}",
            self.purpose, self.action, self.before.metadata, self.spec
        )
    }

    /// Returns the value of a label after the write.
    fn after(&self, key: &str) -> Option<&str> {
        let changed = self.patch.labels.get(key);
        changed.map_or(label(self.before, key), Option::as_deref)
    }

    /// Checks that the write sets the labels for its purpose and restores all others.
    fn check(&self) {
        let set = self.purpose.labels(self.spec);
        let record = annotation(self.before, RECORD);
        let known = record.and_then(parsed);
        for (key, value) in &set {
            assert_eq!(
                self.after(key),
                Some(value.as_str()),
                "a selected pod gets players: {}",
                self.text()
            );
        }
        for (key, former) in known.iter().flatten().filter(|(key, _)| !set.contains_key(*key)) {
            assert_eq!(
                self.after(key),
                former.as_deref(),
                "a label is not restored: {}",
                self.text()
            );
        }
        // Nothing is known about the labels of a selected pod without a record.
        let may_be_selected = match self.purpose {
            Purpose::UpdateInPlace => self.is_touched,
            Purpose::Nothing | Purpose::Deletion | Purpose::Recreation => is_marked(self.before),
        };
        let is_lost = known.is_none() && (record.is_some() || may_be_selected);
        self.check_record(&set, known.as_ref(), is_lost);
        self.check_changes(&set, known.as_ref(), is_lost);
    }

    /// Checks that the record contains the former values of exactly the labels that are set.
    fn check_record(&self, set: &BTreeMap<String, String>, known: Option<&Values>, is_lost: bool) {
        let expected = set.keys().map(|key| {
            let recorded = known.and_then(|known| known.get(key).cloned());
            let former = recorded.unwrap_or_else(|| label(self.before, key).map(str::to_owned));
            (key.clone(), former)
        });
        let expected: Values = expected.collect();
        let record = annotation(self.before, RECORD);
        let new = self.patch.annotations.get(RECORD);
        let Some(new) = new.map_or(record, Option::as_deref) else {
            assert!(expected.is_empty(), "the former labels are lost: {}", self.text());
            return;
        };
        let new = parsed(new).unwrap();
        let is_right = if is_lost {
            new.keys().eq(expected.keys())
        } else {
            new == expected
        };
        assert!(
            is_right && !new.is_empty(),
            "{new:?} is recorded, not {expected:?}: {}",
            self.text()
        );
    }

    /// Checks that the write changes nothing else, and that each of its changes has an effect.
    fn check_changes(&self, set: &BTreeMap<String, String>, known: Option<&Values>, is_lost: bool) {
        let (before, patch) = (self.before, self.patch);
        // If the record is lost, the labels with the values of the spec count as those that the operator has set.
        let any = Purpose::Recreation.labels(self.spec);
        let is_own = |key: &str| {
            let is_known = known.is_some_and(|known| known.contains_key(key));
            is_known || set.contains_key(key) || is_lost && any.contains_key(key)
        };
        let mut keys = patch.labels.keys();
        assert!(
            keys.all(|key| is_own(key) && !VITAL.contains(&key.as_str())),
            "a label of somebody else is changed: {}",
            self.text()
        );
        let (mut labels, mut annotations) = (patch.labels.iter(), patch.annotations.iter());
        assert!(
            labels.all(|(key, value)| label(before, key) != value.as_deref())
                && annotations
                    .all(|(key, value)| key == RECORD && annotation(before, key) != value.as_deref()),
            "a write changes nothing, or another annotation: {}",
            self.text()
        );
        let corrects = matches!(self.action, Action::SetDrainingLabels(..));
        assert!(!corrects || !patch.is_empty(), "an empty write: {}", self.text());
    }
}

/// Checks an update: the pod is not selected for deletion, its former labels are restored unless the template has new
/// values, and no record of them is left.
fn check_update(update: &Update, change: &PodChange, before: &PodObject, seen: &Seen) {
    let (labels, annotations) = (&change.labels, &change.annotations);
    let pod = &before.api;
    let text = || format!("{labels:?} {annotations:?} {:#?}", pod.metadata);
    assert!(!is_marked(pod), "a marked pod is updated in place: {}", text());
    let record = annotation(pod, RECORD);
    assert!(
        record.is_none() || annotations.get(RECORD) == Some(&None),
        "a record outlives the revision: {}",
        text()
    );
    let template = |name: &str| {
        let revision = seen.revisions.iter().find(|known| known.name == name);
        revision.map(|revision| revision.template.labels())
    };
    let (from, to) = (template(before.read.revision()), template(update.to()));
    for (key, former) in record.and_then(parsed).iter().flatten() {
        let new = to.as_ref().and_then(|to| to.get(key));
        let is_new = from.as_ref().and_then(|from| from.get(key)) != new;
        let expected = if is_new { new } else { former.as_ref() };
        assert_eq!(
            labels.get(key).map_or(label(pod, key), Option::as_deref),
            expected.map(String::as_str),
            "a label is not restored: {}",
            text()
        );
    }
}

/// Update that was cancelled while its pod was out of service: its revision, and the generation and annotations of the
/// workload, which show whether a user has changed it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CalledOff {
    to: String,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
}

impl CalledOff {
    fn new(to: &str, seen: &Seen) -> Self {
        let metadata = &seen.object().metadata;
        Self {
            to: to.to_owned(),
            generation: metadata.generation,
            annotations: metadata.annotations.clone(),
        }
    }
}

impl Referee {
    /// Records that somebody has changed the labels of a selected pod, or their record.
    pub fn somebody_labels(&mut self, uid: &str) {
        self.labelled.insert(uid.to_owned());
    }

    /// Checks a write that concerns the labels of a pod, and that took effect.
    pub(super) fn check_labels(&mut self, action: &Action, acted: &Acted<'_>) {
        let Some(pod) = &acted.before else { return };
        let before = &pod.api;
        let (patch, purpose) = match action {
            Action::RecordSelection(_, text, patch) => (patch, Purpose::of(text)),
            Action::ClearSelection(_, patch) => (patch, Purpose::Nothing),
            Action::SetDrainingLabels(_, patch) => (patch, purpose_of_correction(patch, before)),
            Action::NoteQuestion(_, question, patch) => {
                let purpose = Purpose::of(&question.text);
                if purpose != Purpose::UpdateInPlace {
                    assert!(
                        patch.is_empty(),
                        "a question of another intent sets labels: {action:#?} {:#?}",
                        before.metadata
                    );
                    return;
                }
                assert!(
                    !is_marked(before),
                    "a hook runs before an update of a pod that is selected for deletion: {action:#?} {:#?}",
                    before.metadata
                );
                (patch, purpose)
            }
            Action::Gated(GatedWrite::WriteUpdate(update, change)) => {
                check_update(update, change, pod, acted.seen);
                return self.check_called_off(update, pod, acted.seen);
            }
            Action::SetReady(..) => {
                self.called_off.remove(&pod.id.uid);
                return;
            }
            _ => return,
        };
        let write = Write {
            action,
            patch,
            purpose,
            before,
            spec: &acted.seen.object().spec,
            is_touched: self.labelled.contains(&pod.id.uid),
        };
        write.check();
        self.called_off.remove(&pod.id.uid);
        if matches!(action, Action::SetDrainingLabels(..))
            && pod.read.is_out_of_service()
            && !write.is_touched
            && calls_off_update(patch, pod, acted.seen)
            && let Some(begun) = self.out.get(&pod.id.uid)
        {
            let called_off = CalledOff::new(&begun.to, acted.seen);
            self.called_off.insert(pod.id.uid.clone(), called_off);
        }
    }

    /// Checks that a pod that is out of service before this update has kept its labels: they keep new players away
    /// while its game still runs.
    fn check_called_off(&mut self, update: &Update, pod: &PodObject, seen: &Seen) {
        let called_off = self.called_off.remove(&pod.id.uid);
        assert_ne!(
            called_off,
            Some(CalledOff::new(update.to(), seen)),
            "a pod gets its former labels before its update: {:#?}",
            pod.api.metadata
        );
    }

    /// Checks that a pod has the labels of the spec that the operator knows before a hook runs for its update in place.
    /// Skips pods whose labels somebody has changed, and processes that no longer lead: they may know an earlier spec.
    pub fn check_labelled_before_run(&self, run: &RunObject, seen: &Seen, late: bool, server: &Server) {
        let mut pods = server.pods.iter();
        let pod = pods.find(|pod| run.read.pod_uid.as_ref() == Some(&pod.id.uid));
        let Some(pod) = pod.filter(|_| is_before_update_in_place(run)) else {
            return;
        };
        let uid = &pod.id.uid;
        let is_latest = self.ours.get(uid).is_some_and(|(_, writer)| *writer == seen.by);
        if late || !is_latest || server.leases_deleted[GAMES] || self.labelled.contains(uid) {
            return;
        }
        let wanted = Purpose::UpdateInPlace.labels(&seen.object().spec);
        let record = annotation(&pod.api, RECORD).and_then(parsed);
        assert!(
            wanted.is_empty() || record.is_some(),
            "a hook runs for a pod without its labels {wanted:?}: {:#?} {:#?}",
            pod.api.metadata,
            run.read
        );
        for (key, value) in wanted {
            let label = label(&pod.api, &key);
            // If the spec has changed since the question was noted, a correction follows.
            let former = record.as_ref().and_then(|record| record.get(&key));
            assert!(
                label == Some(value.as_str()) || former.is_none_or(|former| former.as_deref() != label),
                "a hook runs for a pod that gets players, because of its label {key}: {:#?} {:#?}",
                pod.api.metadata,
                run.read
            );
        }
    }
}

impl World {
    /// Returns the purpose for which a pod is selected while nothing happens; `None` if it cannot be determined from
    /// the objects.
    fn purpose_at_rest(&self, pod: &PodObject, workload: &str) -> Option<Purpose> {
        if is_marked(&pod.api) {
            return Some(Purpose::recorded(&pod.api));
        }
        let about = |run: &&Rc<RunObject>| {
            is_before_update_in_place(run) && run.read.pod_uid.as_ref() == Some(&pod.id.uid)
        };
        let runs: Vec<_> = self.server.runs.iter().filter(about).collect();
        // The hook runs, or has run without success. A finalizer may keep a run that no longer counts.
        let counts = |run: &&Rc<RunObject>| {
            let is_own = run.id.owner.as_deref() == Some(workload);
            is_own && !run.read.terminating && !run.read.is_measured_success()
        };
        if runs.is_empty() {
            Some(Purpose::Nothing)
        } else {
            runs.iter().any(counts).then_some(Purpose::UpdateInPlace)
        }
    }

    /// Checks, while nothing happens, that every selected pod has exactly the labels for the purpose of its selection.
    /// The recorded former labels, and the labels of all other pods, are those of the templates, unless somebody has
    /// changed them.
    pub(super) fn check_labels_at_rest(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        if Workload::read(&object.api).is_err() {
            return;
        }
        let own =
            |pod: &&Rc<PodObject>| pod.id.owner.as_deref() == Some(object.uid()) && pod.read.is_active();
        for pod in self.server.pods.iter().filter(own) {
            let Some(purpose) = self.purpose_at_rest(pod, object.uid()) else {
                continue;
            };
            let wanted = purpose.labels(&object.api.spec);
            let record = annotation(&pod.api, RECORD).map(|record| parsed(record).unwrap());
            let keys: BTreeSet<&String> = record.iter().flat_map(BTreeMap::keys).collect();
            let mut pairs = wanted.iter();
            assert!(
                pairs.all(|(key, value)| label(&pod.api, key) == Some(value.as_str()))
                    && keys.into_iter().eq(wanted.keys())
                    && record.is_some() != wanted.is_empty(),
                "a pod that is selected for {purpose:?} does not have exactly the labels {wanted:?}: {:#?}",
                pod.api.metadata
            );
            let revision = self.server.revisions.get(pod.read.revision());
            let is_touched = self.referee.labelled.contains(&pod.id.uid);
            let Some(revision) = revision.filter(|_| !is_touched) else {
                continue;
            };
            let template = revision.read.template.labels();
            for key in LABEL_KEYS {
                let recorded = record.as_ref().and_then(|record| record.get(key));
                assert_eq!(
                    recorded.map_or(label(&pod.api, key), Option::as_deref),
                    template.get(key).map(String::as_str),
                    "the label {key} of a pod, or its former value, differs from the template: {:#?}",
                    pod.api.metadata
                );
            }
        }
    }
}
