//! Objects that hooks read and annotate, as the account of the run's namespace.
//!
//! | module | job |
//! | --- | --- |
//! | `kinds` | resources of kinds |

use std::sync::Arc;

use futures::AsyncReadExt as _;
use hook_core::answer::{MAX_ANSWER_BYTES, MeasurementFailure, MeasurementReason, pod_uid};
use hook_core::request::{AnnotateRequest, ObjectName, ReadRequest};
use hook_core::value::cut;
use hook_providers::MemoryReservation;
use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Client, Resource as _};
use operator_runtime::calls::{CallError, CallLimiter};
use serde_json::json;
use shared_api::HookRun;
use shared_api::names::{HOOK_OPERATOR, HOOKS_ACCOUNT};

use crate::account;

mod kinds;

use kinds::Kinds;

/// Step of reading an object, for messages.
pub(crate) const READ: &str = "read an object";
/// Bytes that are quoted of a message of the API server, which may hold a whole object.
const QUOTED_BYTES: usize = 300;
/// Representation of an object without spec and status, where the API server knows it.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";

/// Reads and annotates objects.
pub struct Objects {
    client: Client,
    limiter: Arc<CallLimiter>,
    kinds: Kinds,
}

impl Objects {
    /// Creates a reader with a client that may impersonate the accounts.
    pub fn new(client: Client, limiter: Arc<CallLimiter>) -> Self {
        Self {
            kinds: Kinds::new(client.clone(), limiter.clone()),
            client,
            limiter,
        }
    }

    /// Reads an object as JSON text, or its metadata alone if no field needs more.
    ///
    /// # Errors
    /// `ObjectGone`, `ApiRefused` or `Unreachable`, by the answer of the API server. `MalformedAnswer` if the object is too
    /// large.
    pub async fn read(
        &self,
        run: &HookRun,
        request: &ReadRequest,
        reservation: &mut MemoryReservation,
    ) -> Result<Vec<u8>, MeasurementFailure> {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let ObjectName { kind, name, .. } = &request.object;
        // Reserved before the call, which would otherwise wait for memory while it takes a turn of others.
        let before = reservation.held();
        reservation.grow_to(before + MAX_ANSWER_BYTES).await?;
        let resource = self.kinds.resource(namespace, kind).await?;
        let mut read = self
            .fetch(namespace, &resource.path(namespace, name), request)
            .await;
        if read == Err(CallError::Gone)
            && let Some(newer) = self.kinds.resource_now(namespace, kind, &resource).await?
        {
            read = self.fetch(namespace, &newer.path(namespace, name), request).await;
        }
        let read = read.map_err(|error| failed("read", &request.object.to_string(), error))?;
        let bytes = read.ok_or_else(|| {
            let message = format!("{} is larger than 1 MiB", request.object);
            MeasurementFailure::new(MeasurementReason::MalformedAnswer, message)
        })?;
        reservation.hold_only(before + bytes.len());
        Ok(bytes)
    }

    async fn fetch(
        &self,
        namespace: &str,
        path: &str,
        request: &ReadRequest,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let accept = if request.reads_metadata() {
            METADATA
        } else {
            "application/json"
        };
        let client = account::of_hooks(&self.client, namespace);
        fetch(
            &client,
            &self.limiter,
            namespace,
            READ,
            path,
            accept,
            MAX_ANSWER_BYTES,
        )
        .await
    }

    /// Sets annotations of a pod, if it is still the run's.
    ///
    /// # Errors
    /// As [`Objects::read`]. After `Unreachable`, the annotations may be set.
    pub async fn annotate(&self, run: &HookRun, request: &AnnotateRequest) -> Result<(), MeasurementFailure> {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let AnnotateRequest { pod, annotations } = request;
        let mut metadata = json!({ "annotations": annotations });
        if let Some(uid) = pod_uid(run).filter(|_| pod.is_pod_of_run) {
            metadata["uid"] = json!(uid);
        }
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let client = account::of_hooks(&self.client, namespace);
        let params = PatchParams {
            field_manager: Some(HOOK_OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let call = async {
            let request = kube::core::Request::new(Pod::url_path(&(), Some(namespace)));
            let request = request.patch_metadata(&pod.name, &params, &patch);
            // The answer is not parsed: nothing in it is needed.
            client
                .request_text(request.map_err(kube::Error::BuildRequest)?)
                .await
        };
        match self.limiter.call(namespace, "annotate a pod", call).await {
            Ok(_) => Ok(()),
            // API servers answer another UID with a conflict, and those before 1.21 with an invalid field.
            Err(CallError::Conflict) => Err(another_pod(pod)),
            Err(CallError::Refused {
                code: 422, message, ..
            }) if message.contains("metadata.uid: Invalid value") => Err(another_pod(pod)),
            Err(error) => Err(failed("annotate", &pod.to_string(), error)),
        }
    }
}

/// Reads the text of an object; `None` if it is longer than `longest`.
pub(crate) async fn fetch(
    client: &Client,
    limiter: &CallLimiter,
    namespace: &str,
    step: &'static str,
    path: &str,
    accept: &str,
    longest: usize,
) -> Result<Option<Vec<u8>>, CallError> {
    let call = Request::get(path).header(ACCEPT, accept).body(Vec::new());
    let call = async move {
        let call = call.map_err(kube::Error::HttpError)?;
        let mut body = client.request_stream(call).await?.take(longest as u64 + 1);
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)
            .await
            .map_err(kube::Error::ReadEvents)?;
        Ok((bytes.len() <= longest).then_some(bytes))
    };
    limiter.call(namespace, step, call).await
}

fn another_pod(pod: &ObjectName) -> MeasurementFailure {
    let message =
        format!("{pod} was not annotated, because it was replaced by another pod or modified concurrently");
    MeasurementFailure::new(MeasurementReason::ObjectGone, message)
}

/// Returns the failure of a call that was made as the account of the namespace, to read or annotate an object.
pub(crate) fn failed(verb: &str, about: &str, error: CallError) -> MeasurementFailure {
    let failed_to = format!("failed to {verb} {about}");
    match error {
        CallError::Gone => {
            let message = format!("{about} does not exist in the namespace of this HookRun");
            MeasurementFailure::new(MeasurementReason::ObjectGone, message)
        }
        // A server that is too busy says nothing about rights.
        CallError::Refused {
            code: 429, message, ..
        }
        | CallError::Unknown { message, .. } => unreachable(&failed_to, &message),
        CallError::Refused { message, .. } => {
            let message = cut(&message, QUOTED_BYTES);
            let message = format!("{failed_to} as ServiceAccount {HOOKS_ACCOUNT}: {message}");
            MeasurementFailure::new(MeasurementReason::ApiRefused, message)
        }
        error @ (CallError::Conflict | CallError::Lapsed) => unreachable(about, &error.to_string()),
    }
}

pub(crate) fn unreachable(about: &str, why: &str) -> MeasurementFailure {
    let message = format!("{about}: {}", cut(why, QUOTED_BYTES));
    MeasurementFailure::new(MeasurementReason::Unreachable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_the_api_server_decides_what_went_wrong() {
        let refused = |code: u16, message: &str| CallError::Refused {
            step: READ,
            code,
            message: message.to_owned(),
        };
        let unknown = CallError::Unknown {
            step: READ,
            message: "no answer within 10s".to_owned(),
        };
        for (error, kind, words) in [
            (
                CallError::Gone,
                MeasurementReason::ObjectGone,
                "Pod a does not exist",
            ),
            (
                refused(403, "no"),
                MeasurementReason::ApiRefused,
                "failed to read Pod a as ServiceAccount hookgate-hooks: no",
            ),
            (
                refused(422, &"x".repeat(9000)),
                MeasurementReason::ApiRefused,
                "xxx… (cut)",
            ),
            (
                refused(429, "busy"),
                MeasurementReason::Unreachable,
                "Pod a: busy",
            ),
            (CallError::Conflict, MeasurementReason::Unreachable, "Pod a: "),
            (CallError::Lapsed, MeasurementReason::Unreachable, "Pod a: "),
            (unknown, MeasurementReason::Unreachable, "no answer within 10s"),
        ] {
            let failure = failed("read", "Pod a", error);
            assert_eq!(failure.kind, kind, "{failure}");
            assert!(
                failure.message.contains(words) && failure.message.len() < 500,
                "{failure}"
            );
        }
    }
}
