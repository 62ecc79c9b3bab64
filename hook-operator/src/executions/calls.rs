//! Calls of the API server: hooks and HookActions as the operator, pods and commands as the account of the namespace.
//! Calls of pods: HTTP GETs and TCP connections.

use std::sync::Arc;
use std::time::Duration;

use hook_core::answer::{
    MeasurementFailure, MeasurementReason, RunningContainer, check_end, check_same_container,
    interpret_command, running_container,
};
use hook_core::execution::{Attempt, FoundPod, Operation, TryOutcome, address, conclude, failed, outcome_of};
use hook_core::request::ObjectName;
use hook_core::value::cut;
use hook_driver::StoreError;
use hook_providers::Providers;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Client, Resource as _, ResourceExt as _};
use operator_runtime::calls::CallLimiter;
use operator_runtime::patch::replacing;
use runtime_core::backoff::Backoff;
use serde::Deserialize;
use serde_json::json;
use shared_api::names::HOOKS_ACCOUNT;
use shared_api::parsed::{InvalidObject, Parsed};
use shared_api::reason::{ContainerReason, ExecutionCondition, ExecutionReason};
use shared_api::{ExecutionHook, ExecutionHookStatus, HookAction};

use crate::account;
use crate::act::{ApiBackend, readable, reference_of};
use crate::commands::Commands;
use crate::metrics::ExecutionMetrics;

/// Most commands of ExecutionHooks at a time, apart from those of measurements. A namespace may begin one only while it
/// has fewer than there is room for, so one alone gets half.
const MAX_COMMANDS: usize = 256;
/// Pods of one answer of a list.
const PAGE: u32 = 50;
/// Bytes that are quoted of a message of the API server.
const QUOTED_BYTES: usize = 300;
/// Number of further reads of the pod after a command, if the API server does not answer.
const CONFIRM_RETRIES: u32 = 4;

/// Calls for executions.
pub(super) struct Calls {
    client: Client,
    providers: Providers,
    backend: Arc<ApiBackend>,
    commands: Commands,
    /// Calls as the accounts of namespaces, apart from those of measurements.
    limiter: Arc<CallLimiter>,
    pub(super) metrics: ExecutionMetrics,
    pub(super) is_enabled: bool,
}

/// Page of a list of pods. The typed list would log a body that it cannot parse, with the environment of the pods.
#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    /// Null in empty lists of old API servers.
    items: Option<Vec<Parsed<Pod>>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl Calls {
    pub(super) fn new(
        client: Client,
        providers: Providers,
        limiter: CallLimiter,
        backend: Arc<ApiBackend>,
        metrics: ExecutionMetrics,
        is_enabled: bool,
    ) -> Self {
        let limiter = Arc::new(limiter);
        Self {
            commands: Commands::new(client.clone(), limiter.clone(), MAX_COMMANDS),
            client,
            providers,
            backend,
            limiter,
            metrics,
            is_enabled,
        }
    }

    /// Reads the hook, bypassing the cache.
    pub(super) async fn read(&self, hook: &ExecutionHook) -> Result<ExecutionHook, StoreError> {
        self.backend.read_same("read an ExecutionHook", hook).await
    }

    /// Records a status, if the hook is still as it was.
    pub(super) async fn record(
        &self,
        hook: &ExecutionHook,
        status: &ExecutionHookStatus,
    ) -> Result<ExecutionHook, StoreError> {
        let old = hook.status.as_ref().map_or(json!(null), |status| json!(status));
        let patch = replacing(old, json!(status));
        let step = "write the status of an ExecutionHook";
        let recorded = self.backend.patch_status(step, &hook.metadata, patch).await?;
        readable(step, recorded)
    }

    /// Deletes the hook, if it is still as it was.
    pub(super) async fn delete(&self, hook: &ExecutionHook) -> Result<(), StoreError> {
        self.backend.delete_same("delete an ExecutionHook", hook).await
    }

    pub(super) async fn action(&self, hook: &ExecutionHook, name: &str) -> Result<HookAction, StoreError> {
        let step = "read a HookAction";
        let action = self.backend.get(namespace_of(hook), step, name).await?;
        readable(step, action)
    }

    /// Lists the pods with these labels that have not ended.
    pub(super) async fn list(
        &self,
        hook: &ExecutionHook,
        labels: LabelSelector,
    ) -> Result<Vec<FoundPod>, String> {
        let namespace = namespace_of(hook);
        let selector = Selector::try_from(labels).map_err(|error| format!("podSelector: {error}"))?;
        let client = account::of_hooks(&self.client, namespace);
        let mut params = ListParams::default().labels_from(&selector).limit(PAGE);
        let mut found: Vec<FoundPod> = Vec::new();
        loop {
            let request = kube::core::Request::new(Pod::url_path(&(), Some(namespace)))
                .list(&params)
                .map_err(|error| error.to_string())?;
            let call = client.request_text(request);
            let text = self.limiter.call(namespace, "list pods", call).await;
            let text = text.map_err(|error| {
                let why = cut(&error.cause(), QUOTED_BYTES);
                format!("failed to list pods as ServiceAccount {HOOKS_ACCOUNT}: {why}")
            })?;
            let page: Page =
                serde_json::from_str(&text).map_err(|_| "the API server returned an invalid list of pods")?;
            for Parsed(pod) in page.items.into_iter().flatten() {
                // The error could quote the environment of the pod.
                let pod = pod.map_err(|InvalidObject { metadata, .. }| {
                    let name = metadata.name.unwrap_or_default();
                    format!("pod {name} cannot be parsed")
                })?;
                let pod = FoundPod::of(&pod);
                // Ended pods stay for long, and are no reason to select fewer of the others.
                if !pod.has_ended {
                    found.push(pod);
                }
            }
            match page.metadata.next.filter(|next| !next.is_empty()) {
                Some(next) => params = params.continue_token(&next),
                None => return Ok(found),
            }
        }
    }

    /// Looks up a pod. Calls `started` when its turn has come.
    pub(super) async fn find(
        &self,
        hook: &ExecutionHook,
        pod: &str,
        started: impl FnOnce() + Send,
    ) -> TryOutcome {
        let namespace = namespace_of(hook);
        let _turn = self.commands.turn(namespace).await;
        started();
        let pod = ObjectName::known_pod(pod);
        let missing = |message| TryOutcome::Failed(ContainerReason::NoSuchContainer, message);
        match self.commands.pod(namespace, &pod).await {
            Ok(found) => {
                let found = FoundPod::of(&found);
                if found.has_ended {
                    missing(format!("pod {} has ended", found.name))
                } else {
                    TryOutcome::Found(found)
                }
            }
            Err(failure) if failure.kind == MeasurementReason::ObjectGone => {
                missing(format!("pod {} does not exist", pod.name))
            }
            Err(failure) => failed(failure),
        }
    }

    /// Carries out an action in a container. Calls `started` when its turn has come.
    pub(super) async fn run(
        &self,
        hook: &ExecutionHook,
        attempt: &Attempt,
        started: impl FnOnce() + Send,
    ) -> TryOutcome {
        let namespace = namespace_of(hook);
        let _turn = self.commands.turn(namespace).await;
        let _in_flight = self.metrics.command();
        started();
        // Boxed because many tries wait for their turn, and each would reserve the space.
        Box::pin(self.run_in_turn(namespace, attempt)).await
    }

    async fn run_in_turn(&self, namespace: &str, attempt: &Attempt) -> TryOutcome {
        let name = attempt.pod();
        let tried = async {
            let pod = self.commands.pod(namespace, &name).await?;
            if FoundPod::of(&pod).has_ended {
                return Ok(TryOutcome::Gone(format!("pod {} has ended", name.name)));
            }
            let uid = Some(attempt.pod_uid.as_str());
            let container = running_container(&name, &attempt.container_name, uid, &pod)?;
            let address_of = |port| address(&pod, &attempt.container_name, port);
            // The pod is dropped before the call: many calls may hang for long.
            match &attempt.action.operation {
                Operation::Exec(command) => {
                    drop(pod);
                    self.exec(namespace, attempt, command, &container).await
                }
                Operation::HttpGet(get) => {
                    let address = address_of(get.port())?;
                    drop(pod);
                    let request = get.request(address, attempt.timeout, attempt.action.shows_output);
                    self.providers.call(namespace, &request).await?;
                    self.confirm_call(namespace, attempt, &container).await
                }
                Operation::TcpSocket(port) => {
                    let address = address_of(port)?;
                    drop(pod);
                    let timeout = attempt.timeout;
                    self.providers.connect(namespace, address, timeout).await?;
                    self.confirm_call(namespace, attempt, &container).await
                }
            }
        };
        match tried.await {
            Ok(outcome) => outcome,
            Err(failure) if failure.kind == MeasurementReason::ObjectGone => {
                TryOutcome::Gone(format!("pod {} was deleted or replaced", name.name))
            }
            Err(failure) => failed(failure),
        }
    }

    async fn exec(
        &self,
        namespace: &str,
        attempt: &Attempt,
        command: &[String],
        container: &RunningContainer,
    ) -> Result<TryOutcome, MeasurementFailure> {
        let request = &attempt.exec(command);
        let socket = self.commands.begin(namespace, request).await?;
        let end = self.commands.await_end(socket, request);
        let transcript = tokio::time::timeout(attempt.timeout, end)
            .await
            .unwrap_or_else(|_| {
                let timeout = attempt.timeout;
                let message =
                    format!("{request} did not finish within {timeout:.1?}; it may still be running");
                Err(MeasurementFailure::new(MeasurementReason::Timeout, message))
            })?;
        let after = self.pod_after(namespace, &request.pod).await?;
        let uid = Some(attempt.pod_uid.as_str());
        check_end(request, uid, container, &after, &transcript)?;
        Ok(outcome_of(interpret_command(request, &transcript)))
    }

    /// Checks that the pod that was called is still the same: its IP may have gone to another one.
    async fn confirm_call(
        &self,
        namespace: &str,
        attempt: &Attempt,
        container: &RunningContainer,
    ) -> Result<TryOutcome, MeasurementFailure> {
        let name = attempt.pod();
        let after = self.pod_after(namespace, &name).await?;
        let uid = Some(attempt.pod_uid.as_str());
        check_same_container(&name, &attempt.container_name, uid, container, &after)?;
        Ok(TryOutcome::Succeeded)
    }

    /// Reads the pod after a try. An API server that does not answer at once discards no result.
    async fn pod_after(&self, namespace: &str, name: &ObjectName) -> Result<Pod, MeasurementFailure> {
        let mut pause = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));
        loop {
            match self.commands.pod(namespace, name).await {
                Err(failure)
                    if failure.kind == MeasurementReason::Unreachable
                        && pause.failures() < CONFIRM_RETRIES =>
                {
                    tokio::time::sleep(pause.fail()).await;
                }
                read => return read,
            }
        }
    }

    /// Emits an event: the hook waits.
    pub(super) fn waits(&self, hook: &ExecutionHook, reason: ExecutionReason, message: &str) {
        self.warn(hook, reason.as_str(), "Select", message);
    }

    /// Emits an event: a call for the hook fails again and again.
    pub(super) fn failed(&self, hook: &ExecutionHook, reason: ExecutionReason, why: &str) {
        self.warn(hook, reason.as_str(), "Record", why);
    }

    /// Reports the end of a hook.
    pub(super) fn completed(&self, hook: &ExecutionHook) {
        let conditions = hook.status.iter().flat_map(|status| &status.conditions);
        let mut complete =
            conditions.filter(|condition| condition.type_ == ExecutionCondition::Complete.as_str());
        let Some(condition) = complete.next() else { return };
        let (name, reason, message) = (hook.name_any(), &condition.reason, &condition.message);
        tracing::info!(
            name,
            namespace = hook.namespace(),
            reason,
            why = message,
            "ExecutionHook ended"
        );
        self.metrics.completed(reason);
        // A success is in the status; events are for problems that need a person.
        if *reason != ExecutionReason::ActionSucceeded.as_str() {
            self.warn(hook, reason, "Execute", message);
        }
    }

    /// Ends a hook that cannot be read, unless it has ended.
    pub(super) async fn refuse_unreadable(&self, invalid: &InvalidObject) -> Result<(), StoreError> {
        let InvalidObject { metadata, error, .. } = invalid;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let step = "read an ExecutionHook";
        let read: Parsed<ExecutionHook> = self.backend.get(namespace, step, name).await?;
        let Err(InvalidObject { status: old, .. }) = read.0 else {
            // It was corrected, which the watch will show.
            return Ok(());
        };
        if !old["completionTime"].is_null() {
            return Ok(());
        }
        let mut status: ExecutionHookStatus = serde_json::from_value(old.clone()).unwrap_or_default();
        let message = format!(
            "the ExecutionHook cannot be parsed: {error}; fix the field, then create another ExecutionHook"
        );
        let reason = ExecutionReason::InvalidHook;
        conclude(
            &mut status,
            metadata.generation,
            reason,
            &message,
            Timestamp::now(),
        );
        // The watch may show the written status before the answer arrives, which ends this attempt.
        let about = reference_of("ExecutionHook", metadata);
        self.backend
            .events()
            .warn(about, reason.as_str(), "Validate", &message);
        let patch = replacing(old, json!(status));
        let step = "mark an ExecutionHook as invalid";
        self.backend
            .patch_status::<ExecutionHook>(step, metadata, patch)
            .await?;
        Ok(())
    }

    fn warn(&self, hook: &ExecutionHook, reason: &str, action: &str, message: &str) {
        let about = reference_of("ExecutionHook", &hook.metadata);
        self.backend.events().warn(about, reason, action, message);
    }
}

fn namespace_of(hook: &ExecutionHook) -> &str {
    hook.metadata.namespace.as_deref().unwrap_or_default()
}
