//! Test environment for HookRuns: its own namespace on a real API server, an operator process with the
//! permissions of `deploy/rbac.yaml`, and a sample server for hooks to query. On drop, the [witness] judges
//! the operator's writes.

mod audited_order;
pub mod fleet;
pub mod hook_rights;
pub mod identity;
mod metric;
mod operator;
pub mod proof;
mod witnessed;

use std::time::Duration;

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::{HookRun, HookRunStatus, HookTemplate, Phase};
use test_kit::process::output_of;
use test_kit::{ControlPlane, Webhook, eventually};

use witnessed::AuditLogOffset;

pub use audited_order::AuditedOrder;
pub use fleet::{Fleet, Programs};
pub use identity::{GROUPS, allow_election, hooks_kubeconfig, hooks_kubeconfig_behind};
pub use metric::{at_once, merge, milliseconds, phases, values, web};
pub use operator::{Operator, Start, free_address};
pub use witnessed::judged;

/// Generous time limit for anything that should be quick, on a busy machine.
pub const SOON: Duration = Duration::from_mins(1);

/// Namespace with an operator and a sample server.
#[derive(Debug)]
pub struct TestEnv<'c> {
    /// Control plane of the environment.
    pub control_plane: &'c ControlPlane,
    /// Namespace of the environment.
    pub namespace: String,
    /// Sample server.
    pub game: Webhook,
    /// Operator.
    pub operator: Operator,
    /// Texts that must not appear in the API server's audit log.
    pub secrets: Vec<String>,
    beginning: Option<AuditLogOffset>,
}

impl<'c> TestEnv<'c> {
    /// Returns an environment on a control plane, with an operator that is ready.
    pub async fn on(control_plane: &'c ControlPlane, program: &str, name: &str) -> Self {
        let namespace = control_plane.namespace(name).await;
        let kubeconfig = hooks_kubeconfig(control_plane).await;
        Self::with(
            control_plane,
            namespace.clone(),
            &Start::new(program, &kubeconfig, &namespace),
        )
        .await
    }

    /// Returns an environment whose operator starts with these options.
    ///
    /// # Panics
    /// If the sample server cannot be started.
    pub async fn with(control_plane: &'c ControlPlane, namespace: String, start: &Start) -> Self {
        let beginning = AuditLogOffset::of(control_plane);
        let game = Webhook::start().unwrap_or_else(|error| fail(&format!("the sample server: {error}")));
        let operator = Operator::start(start);
        operator.ready().await;
        Self {
            control_plane,
            namespace,
            game,
            operator,
            secrets: Vec::new(),
            beginning,
        }
    }

    /// Returns an administrator's client.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// Returns the namespace's HookRuns.
    pub fn runs(&self) -> Api<HookRun> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Returns the namespace's HookTemplates.
    pub fn templates(&self) -> Api<HookTemplate> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates a run from its spec.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn create(&self, name: &str, spec: Value) -> HookRun {
        let spec: HookRunSpec = serde_json::from_value(spec).unwrap_or_else(|error| fail(&error.to_string()));
        let created = self
            .runs()
            .create(&PostParams::default(), &HookRun::new(name, spec))
            .await;
        created.unwrap_or_else(|error| fail(&format!("creating {name}: {error}")))
    }

    /// Creates a run with one metric.
    pub async fn measure(&self, name: &str, metric: Value) -> HookRun {
        self.create(name, json!({ "metrics": [metric] })).await
    }

    /// Creates a template from its spec.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn create_template(&self, name: &str, spec: Value) -> HookTemplate {
        let spec: HookTemplateSpec =
            serde_json::from_value(spec).unwrap_or_else(|error| fail(&error.to_string()));
        let created = self
            .templates()
            .create(&PostParams::default(), &HookTemplate::new(name, spec))
            .await;
        created.unwrap_or_else(|error| fail(&format!("creating {name}: {error}")))
    }

    /// Changes a run's spec.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn patch(&self, name: &str, patch: Value) {
        let patched = self
            .runs()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.unwrap_or_else(|error| fail(&format!("patching {name}: {error}")));
    }

    /// Deletes a run.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub async fn delete(&self, name: &str) {
        let deleted = self.runs().delete(name, &DeleteParams::default()).await;
        deleted.map_or_else(|error| fail(&format!("deleting {name}: {error}")), drop);
    }

    /// Returns the run's status; the default if it has none.
    ///
    /// # Panics
    /// If the run does not exist.
    pub async fn status(&self, name: &str) -> HookRunStatus {
        let run = self.runs().get(name).await;
        run.unwrap_or_else(|error| fail(&format!("reading {name}: {error}")))
            .status
            .unwrap_or_default()
    }

    /// Waits until the run's status satisfies the predicate.
    pub async fn until(&self, name: &str, wanted: impl Fn(&HookRunStatus) -> bool) -> HookRunStatus {
        let runs = self.runs();
        eventually(SOON, || async {
            let run = runs.get(name).await.map_err(|error| error.to_string())?;
            let status = run.status.unwrap_or_default();
            if wanted(&status) {
                Ok(status)
            } else {
                Err(format!("{status:?}\n{}", self.operator.process.tail(30)))
            }
        })
        .await
    }

    /// Waits for the run's verdict.
    ///
    /// # Panics
    /// If the final status is invalid.
    pub async fn verdict(&self, name: &str) -> HookRunStatus {
        let status = self.until(name, |status| status.phase.is_final()).await;
        assert!(
            status.completed_at >= status.started_at && status.started_at.is_some(),
            "{status:?}"
        );
        assert!(
            status.message.is_some() && status.reason.is_some(),
            "a verdict without words: {status:?}"
        );
        status
    }

    /// Waits for the run's verdict, then checks that nothing else happens: the status stays, no session
    /// remains, and the sample server receives no further request.
    ///
    /// # Panics
    /// If something else happens.
    pub async fn settled(&self, name: &str) -> HookRunStatus {
        let status = self.verdict(name).await;
        self.idle().await;
        let asked = self.game.all_requests().len();
        assert_eq!(
            self.status(name).await,
            status,
            "the status changed after the verdict"
        );
        assert_eq!(
            self.game.all_requests().len(),
            asked,
            "the server was asked after the verdict"
        );
        status
    }

    /// Returns a metric of its operator, like [`Operator::metric`].
    pub async fn metric(&self, name: &str, labels: &str) -> u64 {
        self.operator.metric(name, labels).await
    }

    /// Waits until the operator has no run without a verdict or waiting for its time to live, and no call in
    /// flight.
    pub async fn idle(&self) {
        eventually(SOON, || async {
            let active = self.metric("hookgate_hook_active_runs", "").await;
            let calls = self.metric("hookgate_hook_measurements_in_flight", "").await;
            if (active, calls) == (0, 0) {
                Ok(())
            } else {
                Err(format!("{active} runs, {calls} calls"))
            }
        })
        .await;
    }

    /// Returns reason and note of each warning event about an object.
    pub async fn warnings(&self, name: &str) -> Vec<String> {
        let events: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(self.client(), &self.namespace);
        let Ok(list) = events.list(&ListParams::default()).await else {
            return vec![];
        };
        let about = list.items.into_iter().filter(|event| {
            let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
            regarding == Some(name) && event.type_.as_deref() == Some("Warning")
        });
        about
            .map(|event| {
                format!(
                    "{} {}",
                    event.reason.unwrap_or_default(),
                    event.note.unwrap_or_default()
                )
            })
            .collect()
    }

    /// Waits for a warning about an object that contains these words.
    pub async fn warned(&self, name: &str, words: &str) {
        eventually(SOON, || async {
            let warnings = self.warnings(name).await;
            if warnings.iter().any(|warning| warning.contains(words)) {
                Ok(())
            } else {
                Err(warnings)
            }
        })
        .await;
    }

    /// Returns the names of all runs.
    pub async fn names(&self) -> Vec<String> {
        let list = self.runs().list(&ListParams::default()).await;
        list.map(|list| list.items.iter().map(ResourceExt::name_any).collect())
            .unwrap_or_default()
    }
}

impl Drop for TestEnv<'_> {
    fn drop(&mut self) {
        self.operator.speak_if_a_test_fails();
        if let Some(beginning) = self.beginning.as_ref().filter(|_| !std::thread::panicking()) {
            // Writes after this point are not judged.
            let ended = self.operator.process.kill_hard();
            ended.unwrap_or_else(|error| fail(&format!("ending the operator: {error}")));
            beginning.judge(&self.namespace, &self.secrets, Duration::ZERO, false);
        }
    }
}

/// Starts a control plane of its own for a test whose operators watch all namespaces, or that stops the API server. It
/// has no audit log: readers of the log parse every object, and a killed API server may not have written the last lines.
///
/// # Panics
/// If it does not start.
pub async fn alone() -> ControlPlane {
    let options = test_kit::Options {
        crds: shared_api::crd::all(),
        ..test_kit::Options::default()
    };
    let started = ControlPlane::start(options).await;
    started.unwrap_or_else(|error| fail(&format!("the control plane does not start: {error}")))
}

/// Whether the API server stores integers that are wider than their format, as the oldest does. The operators
/// may then be unable to read an object. A newer server rejects it by field name.
///
/// # Panics
/// If kubectl fails otherwise.
pub fn stores_wide_integers(control_plane: &ControlPlane, namespace: &str) -> bool {
    let metric = json!({ "name": "m", "count": 5_000_000_000_i64, "interval": "1s",
        "provider": { "web": { "url": "http://game" } } });
    let template = json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate",
        "metadata": { "name": "wide", "namespace": namespace }, "spec": { "metrics": [metric] } });
    let create = [
        "create",
        "--dry-run=server",
        "--validate=false",
        "--filename",
        "-",
    ];
    let output = output_of(control_plane.kubectl().args(create), &template.to_string());
    let output = output.unwrap_or_else(|error| fail(&format!("kubectl: {error}")));
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && !said.contains("count") {
        fail(&format!("kubectl {create:?}: {said}"));
    }
    output.status.success()
}

/// Runs kubectl as administrator and returns its output.
///
/// # Panics
/// If it fails.
pub fn kubectl(control_plane: &ControlPlane, arguments: &[&str], input: &str) -> String {
    let output = output_of(control_plane.kubectl().args(arguments), input);
    let output = output.unwrap_or_else(|error| fail(&format!("kubectl: {error}")));
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        fail(&format!("kubectl {arguments:?}: {text}"));
    }
    text
}

/// Asserts that a text contains these words.
///
/// # Panics
/// If it does not.
#[track_caller]
pub fn assert_has(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in {text}");
}

/// Asserts that a run ended in this phase for this reason.
///
/// # Panics
/// If it did not.
#[track_caller]
pub fn assert_ended(status: &HookRunStatus, phase: Phase, reason: &str) {
    let ended = (status.phase, status.reason.as_deref());
    assert_eq!(ended, (phase, Some(reason)), "{status:?}");
}

#[track_caller]
#[expect(clippy::panic, reason = "a failed expectation of a test")]
fn fail(message: &str) -> ! {
    panic!("{message}")
}
