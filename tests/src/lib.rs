//! The stage that every test of HookRuns stands on: a namespace of its own on a real API server, an operator
//! process that works in it, and a sample server to be asked.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use shared_api::hook_run::{HookRunSpec, MetricResult};
use shared_api::hook_template::HookTemplateSpec;
use shared_api::{HookRun, HookRunStatus, HookTemplate, Phase};
use test_kit::{ControlPlane, Process, Program, Webhook, eventually};

/// Long enough for anything that has no reason to take long, on a busy machine.
pub const SOON: Duration = Duration::from_mins(1);

/// A namespace with an operator and a sample server.
#[derive(Debug)]
pub struct Stage<'c> {
    /// The control plane that it stands on.
    pub control_plane: &'c ControlPlane,
    /// Its namespace.
    pub namespace: String,
    /// The sample server.
    pub game: Webhook,
    /// The operator.
    pub operator: Operator,
}

/// An operator process and where it answers.
#[derive(Debug)]
pub struct Operator {
    /// The process.
    pub process: Process,
    /// Its health and metrics endpoint.
    pub address: SocketAddr,
}

/// How an operator is started.
#[derive(Debug, Clone)]
pub struct Start {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    flags: Vec<String>,
}

impl Start {
    /// The operator `program` in one namespace.
    #[must_use]
    pub fn new(program: &str, kubeconfig: &Path, namespace: &str) -> Self {
        Self {
            program: program.into(),
            kubeconfig: kubeconfig.into(),
            namespace: namespace.to_owned(),
            flags: vec!["--egress-allow-loopback".to_owned()],
        }
    }

    /// With other flags than `--egress-allow-loopback`.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self
    }
}

impl Operator {
    /// Starts an operator, without waiting for it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(start: &Start) -> Self {
        let address = free_address();
        let program = Program::new(&start.program)
            .env("KUBECONFIG", &start.kubeconfig)
            .args([
                "--namespace",
                &start.namespace,
                "--listen",
                &address.to_string(),
                "--log",
                "debug,hyper=info",
            ])
            .args(&start.flags);
        let process = Process::start(program).unwrap_or_else(|error| fail(&format!("the operator: {error}")));
        Self { process, address }
    }

    /// Waits until the operator says that it is ready.
    pub async fn ready(&self) {
        eventually(SOON, || async {
            let (status, text) = self.ask("/readyz").await?;
            if status == 200 { Ok(()) } else { Err(text) }
        })
        .await;
    }

    /// Status and text of one of its endpoints, as soon as it listens.
    pub async fn ask(&self, path: &str) -> Result<(u16, String), String> {
        let answer = http().get(self.url(path)).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), answer.text().await.unwrap_or_default()))
    }

    /// The text of one of its endpoints.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn get(&self, path: &str) -> String {
        let answer = self.ask(path).await;
        answer.unwrap_or_else(|error| fail(&format!("{path}: {error}"))).1
    }

    /// The sum of a metric over all series whose labels contain `labels`.
    pub async fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = self.get("/metrics").await;
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(labels));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl<'c> Stage<'c> {
    /// A stage on a control plane, with an operator that is ready.
    pub async fn on(control_plane: &'c ControlPlane, program: &str, name: &str) -> Self {
        let namespace = control_plane.namespace(name).await;
        let start = Start::new(program, control_plane.kubeconfig_path(), &namespace);
        Self::with(control_plane, namespace, &start).await
    }

    /// A stage with an operator started in a way of its own.
    ///
    /// # Panics
    /// If the sample server cannot be started.
    pub async fn with(control_plane: &'c ControlPlane, namespace: String, start: &Start) -> Self {
        let game = Webhook::start().unwrap_or_else(|error| fail(&format!("the sample server: {error}")));
        let operator = Operator::start(start);
        operator.ready().await;
        Self {
            control_plane,
            namespace,
            game,
            operator,
        }
    }

    /// An administrator's client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// The namespace's HookRuns.
    #[must_use]
    pub fn runs(&self) -> Api<HookRun> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The namespace's HookTemplates.
    #[must_use]
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

    /// Creates a run of one metric.
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

    /// The run's status, empty where there is none.
    ///
    /// # Panics
    /// If the run is not there.
    pub async fn status(&self, name: &str) -> HookRunStatus {
        let run = self.runs().get(name).await;
        run.unwrap_or_else(|error| fail(&format!("reading {name}: {error}")))
            .status
            .unwrap_or_default()
    }

    /// Waits until the run's status is as wanted.
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
    /// If the final status is not a proper one.
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

    /// Waits for the run's verdict, then sees that nothing else happens: the status stays, no session is left, and
    /// the sample server is not asked again.
    ///
    /// # Panics
    /// If something else happens.
    pub async fn settled(&self, name: &str) -> HookRunStatus {
        let status = self.verdict(name).await;
        eventually(SOON, || async {
            let active = self.operator.metric("hookgate_hook_active_runs", "").await;
            let calls = self
                .operator
                .metric("hookgate_hook_measurements_in_flight", "")
                .await;
            if (active, calls) == (0.0, 0.0) {
                Ok(())
            } else {
                Err(format!("{active} runs, {calls} calls"))
            }
        })
        .await;
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

    /// Notes of the warnings about an object.
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

    /// Waits for a warning about an object that holds these words.
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

    /// Names of all runs.
    pub async fn names(&self) -> Vec<String> {
        let list = self.runs().list(&ListParams::default()).await;
        list.map(|list| list.items.iter().map(ResourceExt::name_any).collect())
            .unwrap_or_default()
    }
}

/// A metric that asks a URL.
#[must_use]
pub fn web(name: &str, url: &str, more: Value) -> Value {
    let mut metric = json!({ "name": name, "provider": { "web": { "url": url, "jsonPath": "{$.age}" } } });
    merge(&mut metric, more);
    metric
}

/// Adds fields, deeply.
pub fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            for (key, value) in more {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, more) => *target = more,
    }
}

/// Phases of a metric's measurements, oldest first.
#[must_use]
pub fn phases(result: &MetricResult) -> Vec<Phase> {
    result
        .measurements
        .iter()
        .map(|measurement| measurement.phase)
        .collect()
}

/// Values of a metric's measurements, oldest first.
#[must_use]
pub fn values(result: &MetricResult) -> Vec<&str> {
    result
        .measurements
        .iter()
        .map(|measurement| measurement.value.as_deref().unwrap_or_default())
        .collect()
}

/// An address on loopback that nobody listens on.
#[must_use]
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.unwrap_or_else(|error| fail(&format!("no free port: {error}")))
}

fn http() -> reqwest::Client {
    test_kit::http_client().unwrap_or_else(|error| fail(&error.to_string()))
}

#[track_caller]
#[expect(clippy::panic, reason = "a failed expectation of a test")]
fn fail(message: &str) -> ! {
    panic!("{message}")
}
