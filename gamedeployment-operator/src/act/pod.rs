//! Writes to pods.

use std::time::Duration;

use gamedeployment_core::gate::{Confirmed, Delete, OpenReason, PodRef, Update};
use gamedeployment_core::plan::{Finished, MetadataPatch, PodChange};
use gamedeployment_driver::request::{Object, ReconcileTarget, Response};
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use operator_runtime::calls::CallError;
use operator_runtime::objects;
use serde_json::{Value, json};
use shared_api::names::pod as annotation;
use shared_api::reason::WorkloadReason;

use crate::metrics::How;

use super::{Caller, as_owner, of_pod, pod_reference, reference};

/// Number of pods in one response to a list.
const PAGE: u32 = 500;

impl Caller {
    /// Lists the pods with this selector, bypassing the cache. Returns an active one that the workload controls.
    pub(super) async fn find_pod(
        &self,
        target: &ReconcileTarget,
        selector: &str,
    ) -> Result<Response, CallError> {
        const STEP: &str = "list the pods";
        let api = self.api::<Pod>(target);
        let mut list = ListParams::default().labels(selector).limit(PAGE);
        loop {
            let page = self.calls.call(&target.key.0, STEP, api.list(&list)).await?;
            for pod in page.items {
                let response = of_pod(STEP, pod)?;
                if let Response::Object(Object::Pod(_, pod)) = &response
                    && pod.is_active()
                    && pod.controller.as_deref() == Some(target.uid())
                {
                    return Ok(response);
                }
            }
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => list = list.continue_token(&next),
                None => return Ok(Response::Gone),
            }
        }
    }

    /// Patches a pod, with the UID and resource version of the decision as preconditions.
    async fn patch(
        &self,
        target: &ReconcileTarget,
        step: &'static str,
        subresource: Option<&str>,
        (pod, until): (&PodRef, Option<Duration>),
        mut patch: Value,
    ) -> Result<Response, CallError> {
        patch["metadata"]["uid"] = json!(pod.uid);
        patch["metadata"]["resourceVersion"] = json!(pod.resource_version);
        let api = self.api::<Pod>(target);
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let call = async {
            match subresource {
                Some(subresource) => {
                    api.patch_subresource(subresource, &pod.name, &params, &patch)
                        .await
                }
                None => api.patch(&pod.name, &params, &patch).await,
            }
        };
        let patched = self.calls.call_before(until, &target.key.0, step, call).await;
        of_pod(step, patched?)
    }

    /// Sets annotations, and removes those whose value is null.
    async fn annotate(
        &self,
        target: &ReconcileTarget,
        step: &'static str,
        pod: (&PodRef, Option<Duration>),
        notes: Value,
    ) -> Result<Response, CallError> {
        let patch = json!({ "metadata": { "annotations": notes } });
        self.patch(target, step, None, pod, patch).await
    }

    /// Writes labels and annotations.
    pub(super) async fn write_metadata(
        &self,
        target: &ReconcileTarget,
        step: &'static str,
        pod: &PodRef,
        written: &MetadataPatch,
    ) -> Result<Response, CallError> {
        let patch = json!({ "metadata": { "labels": written.labels, "annotations": written.annotations } });
        self.patch(target, step, None, (pod, None), patch).await
    }

    /// Records the selection and sets its labels in one write.
    pub(super) async fn record_selection(
        &self,
        target: &ReconcileTarget,
        pod: &PodRef,
        text: &str,
        mut patch: MetadataPatch,
    ) -> Result<Response, CallError> {
        let marks = [
            (annotation::DELETING, "true"),
            (annotation::CHOSEN_FOR, text),
            (annotation::QUESTION, text),
        ];
        let marks = marks.map(|(key, value)| (key.to_owned(), Some(value.to_owned())));
        patch.annotations.extend(marks);
        let step = "mark a pod for deletion";
        self.write_metadata(target, step, pod, &patch).await
    }

    /// Removes the record of the selection and restores the former labels in one write.
    pub(super) async fn clear_selection(
        &self,
        target: &ReconcileTarget,
        pod: &PodRef,
        mut patch: MetadataPatch,
    ) -> Result<Response, CallError> {
        let marks = [annotation::DELETING, annotation::CHOSEN_FOR];
        patch.annotations.extend(marks.map(|key| (key.to_owned(), None)));
        let step = "remove the deletion mark from a pod";
        self.write_metadata(target, step, pod, &patch).await
    }

    pub(super) async fn set_guard_label(
        &self,
        target: &ReconcileTarget,
        pod: PodRef,
        is_set: bool,
    ) -> Result<Response, CallError> {
        let value = is_set.then_some(annotation::REMOVAL_GUARD_ASK);
        let patch = json!({ "metadata": { "labels": { annotation::REMOVAL_GUARD: value } } });
        let step = "set the label of guarded pods";
        self.patch(target, step, None, (&pod, None), patch).await
    }

    pub(super) async fn withdraw_requests(
        &self,
        target: &ReconcileTarget,
        pod: PodRef,
        text: Option<String>,
    ) -> Result<Response, CallError> {
        let notes = json!({ annotation::REMOVAL_REQUESTED: text });
        self.annotate(target, "remove withdrawn removal requests", (&pod, None), notes)
            .await
    }

    pub(super) async fn note_question(
        &self,
        target: &ReconcileTarget,
        pod: &PodRef,
        text: String,
        mut patch: MetadataPatch,
    ) -> Result<Response, CallError> {
        patch
            .annotations
            .insert(annotation::QUESTION.to_owned(), Some(text));
        let step = "annotate a pod for its next HookRun";
        self.write_metadata(target, step, pod, &patch).await
    }

    pub(super) async fn confirm(
        &self,
        target: &ReconcileTarget,
        confirmed: Confirmed,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        let notes = json!({ annotation::CONFIRMED: confirmed.revision() });
        let pod = confirmed.pod();
        let written = self
            .annotate(target, "confirm a pod", (pod, until), notes)
            .await?;
        self.metrics.passed(confirmed.hook(), confirmed.open_reason());
        if matches!(confirmed.open_reason(), OpenReason::Skipped { .. }) {
            self.skipped(target, "Confirm", &pod.name, confirmed.open_reason());
        }
        Ok(written)
    }

    pub(super) async fn delete_pod(
        &self,
        target: &ReconcileTarget,
        delete: Delete,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        let pod = delete.pod();
        let same = Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: Some(pod.resource_version.clone()),
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::default()
        };
        let step = "delete a pod";
        let call = objects::delete(&self.client, &target.key.0, &pod.name, &params);
        let left = self.calls.call_before(until, &target.key.0, step, call).await?;
        self.metrics.passed(delete.hook(), delete.open_reason());
        if delete.recreates() {
            self.metrics.updated(How::Recreate);
        }
        self.report_approved(
            target,
            WorkloadReason::PodDeleted,
            "Delete",
            pod,
            delete.open_reason(),
        );
        left.map_or(Ok(Response::Gone), |pod| of_pod(step, pod))
    }

    /// Takes a pod out of service: it gets no new players, and the update follows after the grace period.
    pub(super) async fn set_not_ready(
        &self,
        target: &ReconcileTarget,
        update: Update,
        since: Timestamp,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        // The API server stores whole seconds. Rounding up keeps the grace period from becoming shorter than
        // promised.
        let up = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
        let since = since.round(up).unwrap_or(since);
        let condition = condition("False", "StartInPlaceUpdate", update.to(), since);
        let status = json!({ "status": { "conditions": [condition] } });
        let taken = self
            .patch(
                target,
                "take a pod out of service",
                Some("status"),
                (update.pod(), until),
                status,
            )
            .await?;
        self.metrics.passed(update.hook(), update.open_reason());
        self.report_approved(
            target,
            WorkloadReason::PodUpdateStarted,
            "Update",
            update.pod(),
            update.open_reason(),
        );
        Ok(taken)
    }

    pub(super) async fn set_ready(
        &self,
        target: &ReconcileTarget,
        pod: PodRef,
        finished: Option<Finished>,
    ) -> Result<Response, CallError> {
        let mark = finished.as_ref().map_or("", |finished| finished.mark.as_str());
        let condition = condition("True", "InService", mark, Timestamp::now());
        let status = json!({ "status": { "conditions": [condition] } });
        let written = self
            .patch(
                target,
                "put a pod into service",
                Some("status"),
                (&pod, None),
                status,
            )
            .await?;
        if let Some(Finished { revision, .. }) = finished {
            let note = format!("updated pod {} in place to revision {revision}", pod.name);
            self.emit_on_pod(target, WorkloadReason::PodUpdated, "Update", &pod, &note);
        }
        Ok(written)
    }

    /// Writes images, metadata, revision and the record of the previous state in one patch.
    pub(super) async fn write_update(
        &self,
        target: &ReconcileTarget,
        update: Update,
        change: PodChange,
        until: Option<Duration>,
    ) -> Result<Response, CallError> {
        let PodChange {
            images,
            labels,
            annotations,
        } = change;
        let containers: Vec<Value> = images
            .iter()
            .map(|(name, image)| json!({ "name": name, "image": image }))
            .collect();
        let mut patch = json!({ "metadata": { "labels": labels, "annotations": annotations } });
        if !containers.is_empty() {
            patch["spec"] = json!({ "containers": containers });
        }
        let written = self
            .patch(target, "update a pod", None, (update.pod(), until), patch)
            .await?;
        self.metrics.passed(update.hook(), update.open_reason());
        let how = if update.hot() { How::HotPatch } else { How::InPlace };
        self.metrics.updated(how);
        if update.open_reason() != &OpenReason::AlreadyStarted {
            self.report_approved(
                target,
                WorkloadReason::PodUpdateStarted,
                "Update",
                update.pod(),
                update.open_reason(),
            );
        }
        Ok(written)
    }

    /// Makes the workload the pod's controller.
    pub(super) async fn adopt(&self, target: &ReconcileTarget, pod: PodRef) -> Result<Response, CallError> {
        let patch = json!({ "metadata": { "ownerReferences": [as_owner(target)] } });
        self.patch(target, "adopt a pod", None, (&pod, None), patch).await
    }

    pub(super) async fn release(&self, target: &ReconcileTarget, pod: PodRef) -> Result<Response, CallError> {
        let gone = json!({ "$patch": "delete", "uid": target.object.metadata.uid });
        let patch = json!({ "metadata": { "ownerReferences": [gone] } });
        self.patch(target, "release a pod", None, (&pod, None), patch)
            .await
    }

    /// Warns by name about a pod whose hook was skipped. `EventAggregator` does not limit this warning.
    fn skipped(&self, target: &ReconcileTarget, action: &str, pod: &str, open_reason: &OpenReason) {
        let (reason, note) = (
            WorkloadReason::HookSkipped.as_str(),
            format!("pod {pod}: {open_reason}"),
        );
        self.events.warn(reference(target), reason, action, &note);
    }

    /// Logs an approved action and emits it as an event on the pod, with the reason of its approval.
    fn report_approved(
        &self,
        target: &ReconcileTarget,
        reason: WorkloadReason,
        action: &'static str,
        pod: &PodRef,
        open_reason: &OpenReason,
    ) {
        let note = format!("pod {}: {open_reason}", pod.name);
        let (namespace, name) = &target.key;
        tracing::info!(namespace, name, pod = pod.name, %reason, "grounds" = %open_reason, "acted on a pod");
        self.emit_on_pod(target, reason, action, pod, &note);
        if matches!(open_reason, OpenReason::Skipped { .. }) {
            self.skipped(target, action, &pod.name, open_reason);
        }
    }

    /// Emits the event on the pod. Above the limit, emits one event on the workload with the number of
    /// further pods.
    fn emit_on_pod(
        &self,
        target: &ReconcileTarget,
        reason: WorkloadReason,
        action: &'static str,
        pod: &PodRef,
        note: &str,
    ) {
        let about = (pod_reference(target, pod), 1);
        let rest = |more: usize| {
            let pods = if more == 1 { "pod" } else { "pods" };
            format!("{more} more {pods}; see the log for the full list")
        };
        self.emit_limited(target, (reason, action), about, note, rest);
    }
}

fn condition(status: &str, reason: &str, message: &str, since: Timestamp) -> Value {
    // The API server stores condition times in whole seconds.
    let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
    json!({
        "type": annotation::IN_PLACE_READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    })
}
