//! Writes to pods.

use std::time::Instant;

use gamedeployment_core::gate::{Confirmed, Delete, Grounds, PodRef, Update};
use gamedeployment_core::plan::{Finished, PodChange};
use gamedeployment_driver::request::{Answer, Subject};
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use operator_runtime::calls::CallError;
use serde_json::{Value, json};
use shared_api::names::pod as annotation;
use shared_api::reason::WorkloadReason;

use crate::metrics::How;

use super::throttle::Telling;
use super::{Caller, as_owner, of_pod, pod_reference, reference};

impl Caller {
    /// Patches a pod, with the UID and resource version of the decision as preconditions.
    async fn patch(
        &self,
        subject: &Subject,
        step: &'static str,
        subresource: Option<&str>,
        (pod, until): (&PodRef, Option<Instant>),
        mut patch: Value,
    ) -> Result<Answer, CallError> {
        patch["metadata"]["uid"] = json!(pod.uid);
        patch["metadata"]["resourceVersion"] = json!(pod.resource_version);
        let api = self.api::<Pod>(subject);
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
        let patched = self.calls.call_before(until, &subject.key.0, step, call).await;
        Ok(of_pod(&patched?))
    }

    /// Sets annotations, and removes those whose value is null.
    async fn annotate(
        &self,
        subject: &Subject,
        step: &'static str,
        pod: (&PodRef, Option<Instant>),
        notes: Value,
    ) -> Result<Answer, CallError> {
        let patch = json!({ "metadata": { "annotations": notes } });
        self.patch(subject, step, None, pod, patch).await
    }

    pub(super) async fn mark(&self, subject: &Subject, pod: PodRef, text: &str) -> Result<Answer, CallError> {
        let notes = json!({ annotation::DELETING: "true", annotation::CHOSEN_FOR: text });
        self.annotate(subject, "mark a pod", (&pod, None), notes).await
    }

    pub(super) async fn unmark(&self, subject: &Subject, pod: PodRef) -> Result<Answer, CallError> {
        let notes = json!({ annotation::DELETING: null, annotation::CHOSEN_FOR: null });
        self.annotate(subject, "unmark a pod", (&pod, None), notes).await
    }

    pub(super) async fn confirm(
        &self,
        subject: &Subject,
        confirmed: Confirmed,
        until: Option<Instant>,
    ) -> Result<Answer, CallError> {
        let notes = json!({ annotation::CONFIRMED: confirmed.revision() });
        let pod = confirmed.pod();
        let written = self
            .annotate(subject, "confirm a pod", (pod, until), notes)
            .await?;
        self.metrics.passed(confirmed.hook(), confirmed.grounds());
        if matches!(confirmed.grounds(), Grounds::Skipped { .. }) {
            self.skipped(subject, "Confirm", &pod.name, confirmed.grounds());
        }
        Ok(written)
    }

    pub(super) async fn delete_pod(
        &self,
        subject: &Subject,
        delete: Delete,
        until: Option<Instant>,
    ) -> Result<Answer, CallError> {
        let pod = delete.pod();
        let same = Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: Some(pod.resource_version.clone()),
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::default()
        };
        let api = self.api::<Pod>(subject);
        let call = api.delete(&pod.name, &params);
        let answer = self
            .calls
            .call_before(until, &subject.key.0, "delete a pod", call)
            .await?;
        self.metrics.passed(delete.hook(), delete.grounds());
        if delete.recreates() {
            self.metrics.updated(How::Recreate);
        }
        self.tell(
            subject,
            WorkloadReason::PodDeleted,
            "Delete",
            pod,
            delete.grounds(),
        );
        Ok(answer.either(|pod| of_pod(&pod), |_| Answer::Gone))
    }

    /// Takes a pod out of service: it gets no new players, and the update follows after the grace period.
    pub(super) async fn take_out(
        &self,
        subject: &Subject,
        update: Update,
        since: Timestamp,
        until: Option<Instant>,
    ) -> Result<Answer, CallError> {
        // The API server stores whole seconds. Rounding up keeps the grace period from becoming shorter than
        // promised.
        let up = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
        let since = since.round(up).unwrap_or(since);
        let condition = condition("False", "StartInPlaceUpdate", update.to(), since);
        let status = json!({ "status": { "conditions": [condition] } });
        let taken = self
            .patch(
                subject,
                "take a pod out of service",
                Some("status"),
                (update.pod(), until),
                status,
            )
            .await?;
        self.metrics.passed(update.hook(), update.grounds());
        self.tell(
            subject,
            WorkloadReason::PodUpdateStarted,
            "Update",
            update.pod(),
            update.grounds(),
        );
        Ok(taken)
    }

    pub(super) async fn put_in(
        &self,
        subject: &Subject,
        pod: PodRef,
        finished: Option<Finished>,
    ) -> Result<Answer, CallError> {
        let mark = finished.as_ref().map_or("", |finished| finished.mark.as_str());
        let condition = condition("True", "InService", mark, Timestamp::now());
        let status = json!({ "status": { "conditions": [condition] } });
        let written = self
            .patch(
                subject,
                "put a pod into service",
                Some("status"),
                (&pod, None),
                status,
            )
            .await?;
        if let Some(Finished { revision, .. }) = finished {
            let note = format!("pod {}: updated in place to {revision}", pod.name);
            self.tell_of(subject, WorkloadReason::PodUpdated, "Update", &pod, &note);
        }
        Ok(written)
    }

    /// Writes images, metadata, revision and the record of the previous state in one patch.
    pub(super) async fn write_update(
        &self,
        subject: &Subject,
        update: Update,
        change: PodChange,
        until: Option<Instant>,
    ) -> Result<Answer, CallError> {
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
            .patch(subject, "update a pod", None, (update.pod(), until), patch)
            .await?;
        self.metrics.passed(update.hook(), update.grounds());
        let how = if update.hot() { How::HotPatch } else { How::InPlace };
        self.metrics.updated(how);
        if update.grounds() != &Grounds::UnderWay {
            self.tell(
                subject,
                WorkloadReason::PodUpdateStarted,
                "Update",
                update.pod(),
                update.grounds(),
            );
        }
        Ok(written)
    }

    /// Makes the workload the pod's controller.
    pub(super) async fn adopt(&self, subject: &Subject, pod: PodRef) -> Result<Answer, CallError> {
        let patch = json!({ "metadata": { "ownerReferences": [as_owner(subject)] } });
        self.patch(subject, "adopt a pod", None, (&pod, None), patch)
            .await
    }

    pub(super) async fn release(&self, subject: &Subject, pod: PodRef) -> Result<Answer, CallError> {
        let gone = json!({ "$patch": "delete", "uid": subject.object.metadata.uid });
        let patch = json!({ "metadata": { "ownerReferences": [gone] } });
        self.patch(subject, "release a pod", None, (&pod, None), patch)
            .await
    }

    /// Warns about every pod that passes without its hook, by name.
    fn skipped(&self, subject: &Subject, action: &str, pod: &str, grounds: &Grounds) {
        let (reason, note) = (
            WorkloadReason::HookSkipped.as_str(),
            format!("pod {pod}: {grounds}"),
        );
        self.events.warn(reference(subject), reason, action, &note);
    }

    /// Emits an event on the pod with the action and its approval.
    fn tell(
        &self,
        subject: &Subject,
        reason: WorkloadReason,
        action: &'static str,
        pod: &PodRef,
        grounds: &Grounds,
    ) {
        let note = format!("pod {}: {grounds}", pod.name);
        let (namespace, name) = &subject.key;
        tracing::info!(namespace, name, pod = pod.name, %reason, %grounds, "acted on a pod");
        self.tell_of(subject, reason, action, pod, &note);
        if matches!(grounds, Grounds::Skipped { .. }) {
            self.skipped(subject, action, &pod.name, grounds);
        }
    }

    /// Emits the event on the pod. Above the limit, emits one event on the workload with the number of
    /// further pods.
    fn tell_of(
        &self,
        subject: &Subject,
        reason: WorkloadReason,
        action: &'static str,
        pod: &PodRef,
        note: &str,
    ) {
        match self.throttle.one_more(&subject.key, reason, Instant::now()) {
            Telling::Named => {
                self.events
                    .tell(pod_reference(subject, pod), reason.as_str(), action, note);
            }
            Telling::Counted => {}
            Telling::FirstCounted(rest) => {
                let (throttle, events, key) =
                    (self.throttle.clone(), self.events.clone(), subject.key.clone());
                let about = reference(subject);
                // If the process ends first, this event is lost, but the log names each pod.
                tokio::spawn(async move {
                    tokio::time::sleep(rest).await;
                    let more = throttle.number(&key, reason);
                    let note = format!("{more} more pods than were named; the log names each");
                    events.tell(about, reason.as_str(), action, &note);
                });
            }
        }
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
