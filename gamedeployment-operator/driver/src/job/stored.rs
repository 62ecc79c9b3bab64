//! Comparison of a write with what the API server stored. A mutating admission webhook may change an object,
//! and a CRD that is older than the operator drops fields. Repeating such a write at once would never end.

use std::collections::BTreeMap;

use gamedeployment_core::deletion;
use gamedeployment_core::gate::{NewRun, Run};
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::{Action, GatedWrite, MetadataPatch};
use gamedeployment_core::pod::{Pod, controller_of};
use gamedeployment_core::revision::template_in;
use gamedeployment_core::spec_digest::SpecDigest;
use gamedeployment_core::template::Template;
use shared_api::names::pod as annotation;
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::request::{Object, ReconcileTarget};

/// Part of a write that the stored object must have.
#[derive(Debug)]
pub(super) enum Expected {
    /// Nothing: no later decision depends on it.
    Nothing,
    /// Part of a pod.
    Pod(ExpectedPod),
    /// Template of a revision.
    Template(Template),
    /// Number of a revision.
    RevisionNumber(i64),
    /// What a HookRun runs, for what and for whom.
    Run(RunIdentity),
    /// HookRun with `terminate` set.
    TerminatedRun,
    /// Part of the workload.
    Workload(ExpectedWorkload),
}

/// Part of a pod that a write changes.
#[derive(Debug)]
pub(super) enum ExpectedPod {
    /// UID of its controller.
    Controller(Option<String>),
    /// Revision and UID of the controller of a new pod.
    New(String, String),
    /// Annotation `chosen-for`.
    Selection(Option<String>),
    /// Whether the guard label is set.
    Guard(bool),
    /// Labels and annotations.
    Metadata(MetadataPatch),
    /// Annotation `removal-requested`.
    Requests(Option<String>),
    /// Annotation `confirmed-revision`.
    Confirmation(String),
    /// Status of the condition `InPlaceUpdateReady`.
    Ready(bool),
    /// Revision label.
    Revision(String),
}

/// Part of a HookRun that later decisions compare.
#[derive(Debug, PartialEq)]
pub(super) struct RunIdentity {
    spec_digest: SpecDigest,
    intent: Option<String>,
    question: Option<String>,
    controller: Option<String>,
}

/// Part of the workload that a write changes.
#[derive(Debug)]
pub(super) enum ExpectedWorkload {
    /// `retry` of these hooks is not true.
    RetryReset(Vec<HookKind>),
    /// `paused` is true.
    Paused,
    /// Whether the finalizer of guarded pods is set.
    Finalizer(bool),
    /// Status.
    Status(Box<GameDeploymentStatus>),
}

impl Expected {
    /// Returns what the answer to an action must show.
    pub(super) fn of(action: &Action, target: &ReconcileTarget) -> Self {
        let controller = || target.uid().to_owned();
        Self::Pod(match action {
            Action::CreatePod(new) => {
                let revision = new.manifest["metadata"]["labels"][annotation::REVISION].as_str();
                ExpectedPod::New(revision.unwrap_or_default().to_owned(), controller())
            }
            Action::AdoptPod(_) => ExpectedPod::Controller(Some(controller())),
            Action::ReleasePod(_) => ExpectedPod::Controller(None),
            // Without the labels, the selection is recorded as well. The next decision sets them again, and
            // backs off.
            Action::RecordSelection(_, text, _) => ExpectedPod::Selection(Some(text.clone())),
            Action::ClearSelection(..) => ExpectedPod::Selection(None),
            Action::SetGuardLabel(_, is_set) => ExpectedPod::Guard(*is_set),
            Action::SetDrainingLabels(_, patch) | Action::SetAutoscalerAnnotations(_, patch) => {
                ExpectedPod::Metadata(patch.clone())
            }
            Action::WithdrawRequests(_, text) => ExpectedPod::Requests(text.clone()),
            // Without the labels, the question is noted as well: see `RecordSelection`.
            Action::NoteQuestion(_, question, patch) => {
                let mut noted = MetadataPatch {
                    labels: BTreeMap::new(),
                    ..patch.clone()
                };
                let question = Some(question.text.clone());
                noted
                    .annotations
                    .insert(annotation::QUESTION.to_owned(), question);
                ExpectedPod::Metadata(noted)
            }
            Action::Gated(GatedWrite::SetNotReady(..)) => ExpectedPod::Ready(false),
            Action::SetReady(..) => ExpectedPod::Ready(true),
            Action::Gated(GatedWrite::WriteUpdate(update, _)) => {
                ExpectedPod::Revision(update.to().to_owned())
            }
            Action::Gated(GatedWrite::Confirm(confirmed)) => {
                ExpectedPod::Confirmation(confirmed.revision().to_owned())
            }
            Action::CreateRevision(new) => {
                return template_in(&new.data).map_or(Self::Nothing, Self::Template);
            }
            Action::RenumberRevision(_, number) => return Self::RevisionNumber(*number),
            Action::CreateRun(new) => return Self::Run(RunIdentity::of_new(new)),
            Action::TerminateRun(_) => return Self::TerminatedRun,
            Action::ResetRetry(kinds) => {
                return Self::Workload(ExpectedWorkload::RetryReset(kinds.clone()));
            }
            Action::Pause => return Self::Workload(ExpectedWorkload::Paused),
            Action::AddFinalizer => return Self::Workload(ExpectedWorkload::Finalizer(true)),
            Action::RemoveFinalizer(_) => return Self::Workload(ExpectedWorkload::Finalizer(false)),
            Action::AdoptRevision(_)
            | Action::DeleteRevision(_)
            | Action::DryRunPod(..)
            | Action::Gated(GatedWrite::DeletePod(_))
            | Action::DeleteRun(_) => return Self::Nothing,
        })
    }

    /// Returns whether the write sets again what another client has changed.
    pub(super) fn reverts(&self) -> bool {
        matches!(self, Self::Pod(ExpectedPod::Metadata(patch)) if patch.reverts)
    }

    /// Whether a stored object has it.
    pub(super) fn is_in(&self, object: &Object) -> bool {
        match (self, object) {
            (Self::Pod(expected), Object::Pod(_, pod)) => expected.is_in(pod),
            (Self::Template(template), Object::Revision(_, found)) => found.revision.template == *template,
            (Self::RevisionNumber(number), Object::Revision(_, found)) => found.revision.number == *number,
            (Self::Run(expected), Object::Run(_, run)) => RunIdentity::of(run) == *expected,
            (Self::TerminatedRun, Object::Run(_, run)) => run.terminated,
            (Self::Workload(expected), Object::Workload(_, workload)) => {
                let object = workload.object.as_ref();
                object.is_ok_and(|object| expected.is_in(object))
            }
            // The answer is about another object than the write.
            (
                Self::Nothing
                | Self::Pod(_)
                | Self::Template(_)
                | Self::RevisionNumber(_)
                | Self::Run(_)
                | Self::TerminatedRun
                | Self::Workload(_),
                Object::Pod(..) | Object::Revision(..) | Object::Run(..) | Object::Workload(..),
            ) => true,
        }
    }
}

impl RunIdentity {
    fn of(run: &Run) -> Self {
        Self {
            spec_digest: run.spec_digest,
            intent: run.intent.clone(),
            question: run.question.clone(),
            controller: run.controller.clone(),
        }
    }

    fn of_new(new: &NewRun) -> Self {
        Self {
            spec_digest: new.spec_digest(),
            intent: new.intent().map(str::to_owned),
            question: new.question().map(str::to_owned),
            controller: controller_of(&new.metadata),
        }
    }
}

impl ExpectedPod {
    fn is_in(&self, pod: &Pod) -> bool {
        match self {
            Self::Controller(controller) => pod.controller == *controller,
            Self::New(revision, controller) => {
                pod.revision() == revision && pod.controller.as_deref() == Some(controller)
            }
            Self::Selection(text) => pod.annotation(annotation::CHOSEN_FOR) == text.as_deref(),
            Self::Guard(is_set) => pod.guard_label() == is_set.then_some(annotation::REMOVAL_GUARD_ASK),
            Self::Metadata(patch) => patch.is_in(pod),
            Self::Requests(text) => pod.annotation(annotation::REMOVAL_REQUESTED) == text.as_deref(),
            Self::Confirmation(revision) => pod.annotation(annotation::CONFIRMED) == Some(revision),
            Self::Ready(ready) => pod.in_place.as_ref().is_some_and(|known| known.ready == *ready),
            Self::Revision(revision) => pod.revision() == revision,
        }
    }
}

impl ExpectedWorkload {
    fn is_in(&self, object: &GameDeployment) -> bool {
        let spec = &object.spec;
        match self {
            Self::RetryReset(kinds) => kinds.iter().all(|kind| {
                let strategy = match kind {
                    HookKind::PreDelete => &spec.pre_delete_update_strategy,
                    HookKind::PreInplace => &spec.pre_inplace_update_strategy,
                    HookKind::PostInplace => &spec.post_inplace_update_strategy,
                };
                strategy
                    .as_ref()
                    .is_none_or(|strategy| strategy.retry != Some(true))
            }),
            Self::Paused => spec.update_strategy.as_ref().and_then(|update| update.paused) == Some(true),
            Self::Finalizer(is_set) => deletion::has_finalizer(object) == *is_set,
            Self::Status(status) => object.status.as_ref() == Some(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gamedeployment_core::gate::{PodRef, Question};
    use k8s_openapi::api::core::v1 as api;
    use serde_json::json;

    use super::*;

    fn pod(labels: &serde_json::Value, annotations: &serde_json::Value) -> Object {
        let manifest = json!({ "metadata": { "name": "a", "labels": labels, "annotations": annotations } });
        let pod: api::Pod = serde_json::from_value(manifest).unwrap();
        Object::Pod(("games".to_owned(), "a".to_owned()), Box::new(Pod::read(&pod)))
    }

    /// Without its labels, the pod would still be asked, and a correction follows. Without their record, the former
    /// values would be lost.
    #[test]
    fn a_question_is_stored_with_the_record_of_the_former_labels() {
        let target = ReconcileTarget {
            key: ("games".to_owned(), "fleet".to_owned()),
            object: Arc::new(GameDeployment::new(
                "fleet",
                shared_api::GameDeploymentSpec::default(),
            )),
            decided: runtime_core::clock::Now {
                wall: jiff::Timestamp::UNIX_EPOCH,
                elapsed: std::time::Duration::ZERO,
                monotonic: std::time::Duration::ZERO,
            },
        };
        let record = r#"{"x":null}"#.to_owned();
        let patch = MetadataPatch {
            labels: [("x".to_owned(), Some("1".to_owned()))].into(),
            annotations: [(annotation::DRAINING_LABELS.to_owned(), Some(record.clone()))].into(),
            ..MetadataPatch::default()
        };
        let question = Question {
            text: "in-place:v2@2024-05-01T00:00:00Z".to_owned(),
            is_of_deletion: false,
        };
        let both = json!({ annotation::QUESTION: question.text, annotation::DRAINING_LABELS: record });
        let without = |key: &str| {
            let mut annotations = both.clone();
            annotations.as_object_mut().unwrap().remove(key);
            annotations
        };
        let at = PodRef {
            name: "a".to_owned(),
            uid: "1".to_owned(),
            resource_version: "1".to_owned(),
        };
        for reverts in [false, true] {
            let patch = MetadataPatch {
                reverts,
                ..patch.clone()
            };
            let action = Action::NoteQuestion(at.clone(), question.clone(), patch);
            let expected = Expected::of(&action, &target);
            assert_eq!(expected.reverts(), reverts);
            assert!(expected.is_in(&pod(&json!({ "x": "1" }), &both)));
            assert!(expected.is_in(&pod(&json!({}), &both)));
            for key in [annotation::QUESTION, annotation::DRAINING_LABELS] {
                assert!(
                    !expected.is_in(&pod(&json!({ "x": "1" }), &without(key))),
                    "{key}"
                );
            }
        }
    }
}
