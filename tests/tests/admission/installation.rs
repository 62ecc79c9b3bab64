//! Installation of the component: its service account with its permissions, its configuration, its replicas.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use operator_tests::{SOON, free_address, merge};
use serde_json::{Value, json};
use test_kit::process::output_of;
use test_kit::{ControlPlane, Process, Program, eventually};

use crate::deploy;

/// Process of the component.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) process: Process,
    pub(crate) health: SocketAddr,
    pub(crate) tls: SocketAddr,
}

/// Installed component, for one namespace.
#[derive(Debug)]
pub(crate) struct Installation<'c> {
    pub(crate) control_plane: &'c ControlPlane,
    pub(crate) namespace: String,
    /// Replaces the name hookgate-admission of the file.
    pub(crate) name: String,
    pub(crate) documents: Vec<Value>,
}

impl<'c> Installation<'c> {
    /// Installs it in its own namespace.
    pub(crate) async fn new(control_plane: &'c ControlPlane) -> Self {
        let namespace = control_plane.namespace("admission").await;
        Self::within(control_plane, namespace).await
    }

    /// Installs it in an existing namespace and grants the service account its permissions.
    pub(crate) async fn within(control_plane: &'c ControlPlane, namespace: String) -> Self {
        Self::of(control_plane, namespace, deploy::documents).await
    }

    /// Returns an installation with the removal guard in its own namespace, and a replica that the API server already
    /// calls.
    pub(crate) async fn with_removal_guard(
        control_plane: &'c ControlPlane,
        operator: &str,
    ) -> (Self, Replica) {
        let namespace = control_plane.namespace("admission").await;
        Self::with_removal_guard_in(control_plane, namespace, operator).await
    }

    /// Returns an installation with the removal guard, as the chart has it for this API server, and a replica that the
    /// API server already calls. `operator`: user of gamedeployment-operator.
    pub(crate) async fn with_removal_guard_in(
        control_plane: &'c ControlPlane,
        namespace: String,
        operator: &str,
    ) -> (Self, Replica) {
        let kubernetes = format!("1.{}.0", control_plane.minor_version());
        let values = format!(
            "admission.enabled=true,admission.removalGuard.enabled=true,\
             admission.removalGuard.operatorUsers={{{operator}}}"
        );
        let documents = |name: &str, namespace: &str| deploy::of_chart(&kubernetes, &values, name, namespace);
        let installation = Self::of(control_plane, namespace, documents).await;
        let flags = ["--removal-guard", "--removal-operator-user", operator];
        let replica = installation.started(&flags).await;
        (installation, replica)
    }

    async fn of(
        control_plane: &'c ControlPlane,
        namespace: String,
        documents: impl FnOnce(&str, &str) -> Vec<Value>,
    ) -> Self {
        let name = format!("adm-{namespace}");
        let documents = documents(&name, &namespace);
        let installation = Self {
            control_plane,
            namespace,
            name,
            documents,
        };
        installation.watch_over(&installation.namespace).await;
        let kinds = [
            "ServiceAccount",
            "Role",
            "RoleBinding",
            "ClusterRole",
            "ClusterRoleBinding",
        ];
        let rights = deploy::of_kinds(&installation.documents, &kinds);
        installation.must(&["apply", "--filename", "-"], &rights);
        installation
    }

    /// Extends the webhooks to one more namespace.
    pub(crate) async fn watch_over(&self, namespace: &str) {
        let namespaces: Api<Namespace> = Api::all(self.control_plane.client());
        let patch = Patch::Merge(json!({ "metadata": { "labels": { deploy::LABEL: self.name } } }));
        let params = PatchParams::default();
        namespaces.patch(namespace, &params, &patch).await.unwrap();
    }

    /// Starts a replica without waiting for it.
    pub(crate) fn replica(&self, flags: &[&str]) -> Replica {
        let account = format!("system:serviceaccount:{}:{}", self.namespace, self.name);
        let own = format!("system:serviceaccounts:{}", self.namespace);
        let groups = ["system:serviceaccounts", &own, "system:authenticated"];
        let kubeconfig = self.control_plane.kubeconfig_as(&account, &groups).unwrap();
        // Replicas share a certificate, so they share the address in it.
        let tls = SocketAddr::from((Ipv4Addr::LOCALHOST, test_kit::free_port().unwrap()));
        let health = free_address();
        let program = Program::new(crate::PROGRAM)
            .env("KUBECONFIG", kubeconfig)
            .args(["--namespace", &self.namespace, "--server-name", "127.0.0.1"])
            .args(["--listen", &health.to_string(), "--listen-tls", &tls.to_string()])
            .args(["--secret", &format!("{}-certificates", self.name)])
            .args(["--configuration", &self.name])
            .args(["--log", "debug,hyper=info,h2=info"])
            .env("HOOKGATE_ADMISSION_DRAIN", "1s")
            .args(flags.iter().copied());
        let process = Process::start(program).unwrap();
        Replica { process, health, tls }
    }

    /// Installs the configuration, with these changes to each webhook.
    pub(crate) async fn configure(&self, address: SocketAddr, changes: &Value) {
        let mut wanted = deploy::configuration(&self.documents, &self.name, address);
        for webhook in wanted["webhooks"].as_array_mut().unwrap() {
            merge(webhook, changes.clone());
        }
        let wanted = serde_json::from_value(wanted).unwrap();
        let created = self
            .configurations()
            .create(&PostParams::default(), &wanted)
            .await;
        created.unwrap();
    }

    /// Returns an installation with a replica that the API server already calls.
    pub(crate) async fn running(control_plane: &'c ControlPlane, flags: &[&str]) -> (Self, Replica) {
        let installation = Self::new(control_plane).await;
        let replica = installation.started(flags).await;
        (installation, replica)
    }

    /// Starts a replica, and waits until the API server calls it.
    async fn started(&self, flags: &[&str]) -> Replica {
        let replica = self.replica(flags);
        self.configure(replica.tls, &json!({})).await;
        replica.ready().await;
        self.asked().await;
        replica
    }

    /// Waits until the API server calls the webhooks: it learns of configurations through a watch.
    pub(crate) async fn asked(&self) {
        let bad = bad_template("probe").to_string();
        let create = ["create", "--dry-run=server", "--filename", "-"];
        eventually(SOON, || async {
            match self.kubectl(&create, &bad) {
                Err(said) if said.contains("denied the request") => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }

    pub(crate) fn configurations(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.control_plane.client())
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.control_plane.client(), &self.namespace)
    }

    pub(crate) fn secret_name(&self) -> String {
        format!("{}-certificates", self.name)
    }

    /// Returns the CA bundle of the first webhook.
    pub(crate) async fn bundle(&self) -> String {
        let found = self.configurations().get(&self.name).await.unwrap();
        let webhooks = found.webhooks.unwrap();
        let bundles: Vec<_> = webhooks
            .iter()
            .map(|webhook| webhook.client_config.ca_bundle.clone())
            .collect();
        assert!(bundles.iter().all(|bundle| *bundle == bundles[0]), "all the same");
        let bundle = bundles[0].clone().unwrap_or_default();
        String::from_utf8(bundle.0).unwrap()
    }

    /// Runs kubectl in the namespace and returns its output, or its error.
    pub(crate) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = self.control_plane.kubectl();
        command.args(["--namespace", &self.namespace]).args(arguments);
        run(command, input)
    }

    /// Runs kubectl in the namespace and expects success.
    pub(crate) fn must(&self, arguments: &[&str], input: &str) -> String {
        let said = self.kubectl(arguments, input);
        said.unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    /// Runs kubectl in the namespace and expects a refusal by a webhook. Returns the webhook's message.
    pub(crate) fn refused(&self, arguments: &[&str], input: &str) -> String {
        let said = match self.kubectl(arguments, input) {
            Ok(said) => panic!("kubectl {arguments:?} was allowed: {said}"),
            Err(said) => said,
        };
        let words = said.split_once("denied the request: ");
        words.unwrap_or_else(|| panic!("{said}")).1.trim_end().to_owned()
    }
}

impl Replica {
    pub(crate) async fn ready(&self) {
        eventually(SOON, || async {
            let (status, text) = self.ask("/readyz").await?;
            if status == 200 {
                return Ok(());
            }
            Err(format!("{text}{}", self.process.tail(10)))
        })
        .await;
    }

    /// Waits until the replica reports that it is not ready, with all these words.
    pub(crate) async fn not_ready(&self, words: &[&str]) {
        eventually(SOON, || async {
            let (status, text) = self.ask("/readyz").await?;
            if status == 503 && words.iter().all(|word| text.contains(word)) {
                return Ok(());
            }
            Err(text)
        })
        .await;
    }

    /// Returns status and text of a health or metrics path.
    pub(crate) async fn ask(&self, path: &str) -> Result<(u16, String), String> {
        let client = test_kit::http_client().unwrap();
        let answer = client.get(format!("http://{}{path}", self.health)).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), answer.text().await.unwrap_or_default()))
    }

    /// Returns the sum of a metric over the series whose labels contain all of these.
    pub(crate) async fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let (_, text) = self.ask("/metrics").await.unwrap();
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    /// Posts bytes to a path of the TLS server, on a new connection that trusts only `bundle`.
    pub(crate) async fn post(
        &self,
        bundle: &str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(u16, String), String> {
        test_kit::install_tls();
        let words = |error: reqwest::Error| format!("{error:?}");
        let authorities = reqwest::Certificate::from_pem_bundle(bundle.as_bytes()).map_err(words)?;
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(10))
            .tls_certs_only(authorities)
            .build()
            .map_err(words)?;
        let answer = client
            .post(format!("https://{}{path}", self.tls))
            .body(body)
            .send()
            .await;
        let answer = answer.map_err(words)?;
        Ok((answer.status().as_u16(), answer.text().await.unwrap_or_default()))
    }
}

/// Runs a command with this input and returns its output, or its error.
pub(crate) fn run(mut command: Command, input: &str) -> Result<String, String> {
    let output = output_of(&mut command, input).map_err(|error| format!("{command:?}: {error}"))?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(text)
    } else {
        Err(text)
    }
}

/// Builds a template whose condition does not compile.
pub(crate) fn bad_template(name: &str) -> Value {
    hook("HookTemplate", name, "result >")
}

/// Builds a HookTemplate or HookRun with this condition.
pub(crate) fn hook(kind: &str, name: &str, condition: &str) -> Value {
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": kind, "metadata": { "name": name },
        "spec": { "metrics": [{
            "name": "web", "successCondition": condition, "provider": { "web": { "url": "http://127.0.0.1:1/" } }
        }] }
    })
}
