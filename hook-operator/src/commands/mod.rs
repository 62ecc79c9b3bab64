//! Commands that hooks run in containers, as the account of the hook's namespace.
//!
//! | module | job |
//! | --- | --- |
//! | `connection` | the handshake and the frames of a connection |

use std::sync::Arc;

use fair_share::semaphore::{FairSemaphore, Permit};
use hook_core::answer::{
    KEPT_OF_STREAM, MAX_ANSWER_BYTES, MeasurementFailure, MeasurementReason, Transcript, check_end, pod_uid,
    running_container,
};
use hook_core::request::{ExecRequest, ObjectName};
use hook_providers::MemoryReservation;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use operator_runtime::calls::{CallLimiter, LATE};
use operator_runtime::clock;
use shared_api::defaults::EXEC_WAIT;
use shared_api::{HookRun, parsed};

use crate::account;
use crate::objects::{READ, failed, fetch};

mod connection;

use connection::Socket;

/// Most commands of measurements at a time.
pub const MAX_COMMANDS: usize = 64;
/// Bytes reserved for the output of a command, as received and as text.
const RESERVED: usize = 4 * KEPT_OF_STREAM;

/// Runs commands.
pub struct Commands {
    client: Client,
    limiter: Arc<CallLimiter>,
    turns: FairSemaphore,
}

impl Commands {
    /// Creates a runner with a client that may impersonate the accounts. It runs this many commands at a time; a
    /// namespace may begin one only while it has fewer than there is room for.
    pub fn new(client: Client, limiter: Arc<CallLimiter>, at_once: usize) -> Self {
        Self {
            client,
            limiter,
            turns: FairSemaphore::with_reserve(at_once),
        }
    }

    /// Waits for a turn.
    pub async fn turn(&self, namespace: &str) -> Permit {
        self.turns.take(namespace).await
    }

    /// Runs a command in a container of the run's pod. Dropping the future ends the connection; the command may run on.
    ///
    /// # Errors
    /// If the command did not run to its end in this container, or its end is not known. `Timeout` also if its end was
    /// read long after the timeout: the machine was suspended meanwhile, and the result may be old.
    pub async fn run(
        &self,
        run: &HookRun,
        request: &ExecRequest,
        reservation: &mut MemoryReservation,
    ) -> Result<Transcript, MeasurementFailure> {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let turn = tokio::time::timeout(EXEC_WAIT, self.turns.take(namespace)).await;
        let Ok(_turn) = turn else {
            let message = format!(
                "not started yet: waited {}s for a free slot, because this namespace has used up its share of \
                 concurrent commands (limit {MAX_COMMANDS})",
                EXEC_WAIT.as_secs()
            );
            return Err(MeasurementFailure::new(MeasurementReason::NotAsked, message));
        };
        // Reserved after the wait: those that wait take no memory of others.
        reservation.grow_to(reservation.held() + RESERVED).await?;
        let begun = clock::elapsed();
        let measured = self.run_in(namespace, pod_uid(run), request);
        let measured = tokio::time::timeout(request.timeout, measured)
            .await
            .unwrap_or_else(|_| {
                let message = format!(
                    "{request} did not finish within {}s; it may still be running",
                    request.timeout.as_secs()
                );
                Err(MeasurementFailure::new(MeasurementReason::Timeout, message))
            });
        // Timers stand still while the machine is suspended.
        let took = clock::elapsed().saturating_sub(begun);
        if measured.is_ok() && took > request.timeout.saturating_add(LATE) {
            let message = format!(
                "the exit status of the {request} was read {}s after its start, past the {}s timeout; hook-operator or \
                 its machine was probably suspended, or the clock was changed",
                took.as_secs(),
                request.timeout.as_secs()
            );
            return Err(MeasurementFailure::new(MeasurementReason::Timeout, message));
        }
        measured
    }

    async fn run_in(
        &self,
        namespace: &str,
        run_pod: Option<&str>,
        request: &ExecRequest,
    ) -> Result<Transcript, MeasurementFailure> {
        let before = self.pod(namespace, &request.pod).await?;
        let container = running_container(&request.pod, &request.container, run_pod, &before)?;
        drop(before);
        let socket = self.begin(namespace, request).await?;
        let transcript = self.await_end(socket, request).await?;
        let after = self.pod(namespace, &request.pod).await?;
        check_end(request, run_pod, &container, &after, &transcript)?;
        Ok(transcript)
    }

    /// Starts a command.
    ///
    /// # Errors
    /// If it was not started, or this is not known.
    pub(crate) async fn begin(
        &self,
        namespace: &str,
        request: &ExecRequest,
    ) -> Result<Socket, MeasurementFailure> {
        let client = account::of_hooks(&self.client, namespace);
        connection::open(&client, &self.limiter, namespace, request).await
    }

    /// Waits until a command ends, without a limit of time.
    ///
    /// # Errors
    /// If its end is not known.
    pub(crate) async fn await_end(
        &self,
        mut socket: Socket,
        request: &ExecRequest,
    ) -> Result<Transcript, MeasurementFailure> {
        // Closes the connection at its end, whatever the next call takes.
        connection::transcript(&mut socket, request).await
    }

    /// Reads a pod.
    ///
    /// # Errors
    /// `ObjectGone`, `ApiRefused`, `Unreachable` or `MalformedAnswer`.
    pub async fn pod(&self, namespace: &str, pod: &ObjectName) -> Result<Pod, MeasurementFailure> {
        let name = &pod.name;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let client = account::of_hooks(&self.client, namespace);
        let accept = "application/json";
        let fetched = fetch(
            &client,
            &self.limiter,
            namespace,
            READ,
            &path,
            accept,
            MAX_ANSWER_BYTES,
        );
        let text = fetched
            .await
            .map_err(|error| failed("read", &pod.to_string(), error))?;
        // The typed client would log a body that it cannot parse, with the environment of the pod.
        text.and_then(|text| parsed::parse(std::str::from_utf8(&text).ok()?).0.ok())
            .ok_or_else(|| {
                let message = format!("the API server returned an invalid {pod}");
                MeasurementFailure::new(MeasurementReason::MalformedAnswer, message)
            })
    }
}
