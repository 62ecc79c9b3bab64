//! Objects that hooks read and annotate, as the account of the run's namespace.
//!
//! | module | job |
//! | --- | --- |
//! | `kinds` | resources of kinds |

use std::sync::Arc;

use futures::{AsyncRead, AsyncReadExt as _};
use hook_core::answer::{FailureKind, MAX_ANSWER_BYTES, MeasurementFailure, pod_uid};
use hook_core::request::{AnnotateRequest, ObjectName, ReadRequest};
use hook_core::value::cut;
use hook_providers::MemoryReservation;
use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use operator_runtime::calls::{CallError, CallLimiter};
use serde_json::json;
use shared_api::HookRun;
use shared_api::names::{HOOK_OPERATOR, HOOKS_ACCOUNT};

use crate::account;

mod kinds;

use kinds::Kinds;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bytes that are quoted of a message of the API server, which may hold a whole object.
const QUOTED_BYTES: usize = 300;
/// Representation of an object without spec and status.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

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
        let resource = self.kinds.resource(namespace, kind).await?;
        let accept = if request.reads_metadata() {
            METADATA
        } else {
            "application/json"
        };
        let call = Request::get(resource.path(namespace, name))
            .header(ACCEPT, accept)
            .body(Vec::new());
        let client = account::of_hooks(&self.client, namespace);
        let call = async move {
            let stream = client
                .request_stream(call.map_err(kube::Error::HttpError)?)
                .await?;
            read_all(stream, reservation).await
        };
        let read = self.limiter.call(namespace, "read an object", call).await;
        read.map_err(|error| failed(&request.object.to_string(), error))?
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
        let api: Api<Pod> = Api::namespaced(account::of_hooks(&self.client, namespace), namespace);
        let params = PatchParams {
            field_manager: Some(HOOK_OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let call = api.patch_metadata(&pod.name, &params, &patch);
        let written = self.limiter.call(namespace, "annotate a pod", call).await;
        let written: Result<PartialObjectMeta<Pod>, CallError> = written;
        match written {
            Ok(_) => Ok(()),
            // API servers answer another UID with a conflict, and those before 1.21 with an invalid field.
            Err(CallError::Conflict) => Err(another_pod(pod)),
            Err(CallError::Refused { message, .. }) if message.contains("metadata.uid") => {
                Err(another_pod(pod))
            }
            Err(error) => Err(failed(&pod.to_string(), error)),
        }
    }
}

/// Reads the body of an answer. The outer error is the connection's.
async fn read_all(
    mut body: impl AsyncRead + Unpin,
    reservation: &mut MemoryReservation,
) -> Result<Result<Vec<u8>, MeasurementFailure>, kube::Error> {
    let before = reservation.held();
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = body.read(&mut chunk).await.map_err(kube::Error::ReadEvents)?;
        let chunk = chunk.get(..read).unwrap_or_default();
        if chunk.is_empty() {
            return Ok(Ok(bytes));
        }
        if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
            let message = "the object is larger than 1 MiB";
            return Ok(Err(MeasurementFailure::new(
                FailureKind::MalformedAnswer,
                message,
            )));
        }
        if let Err(full) = reservation.grow_to(before + bytes.len() + chunk.len()).await {
            return Ok(Err(full.into()));
        }
        bytes.extend_from_slice(chunk);
    }
}

fn another_pod(pod: &ObjectName) -> MeasurementFailure {
    let message = format!(
        "{pod} is not annotated: it is not the pod of this run any more, or it was changed at the same time"
    );
    MeasurementFailure::new(FailureKind::ObjectGone, message)
}

/// Returns the failure of a call about an object or a kind.
fn failed(about: &str, error: CallError) -> MeasurementFailure {
    let (kind, why) = match error {
        CallError::Gone => {
            let message = format!("{about} does not exist in the namespace of this run");
            return MeasurementFailure::new(FailureKind::ObjectGone, message);
        }
        CallError::Refused { step, message } => {
            let message = cut(&message, QUOTED_BYTES);
            (
                FailureKind::ApiRefused,
                format!("the API server refuses ServiceAccount {HOOKS_ACCOUNT} to {step}: {message}"),
            )
        }
        error @ (CallError::Conflict | CallError::Lapsed | CallError::Unknown { .. }) => {
            (FailureKind::Unreachable, cut(&error.to_string(), QUOTED_BYTES))
        }
    };
    MeasurementFailure::new(kind, format!("{about}: {why}"))
}
