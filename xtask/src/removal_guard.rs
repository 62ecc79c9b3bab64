//! hookgate-admission with the removal guard, as a process of this program. It is in effect in one namespace.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use shared_api::HookTemplate;
use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::REMOVAL_GUARD;
use test_kit::process::output_of;
use test_kit::wait::within;
use test_kit::{ControlPlane, Process, Program};

use crate::enclosed::Outcome;
use crate::operator;

/// Name of the user as which gamedeployment-operator must run, so that the guard lets it delete pods.
pub(crate) const OPERATOR_USER: &str = "system:serviceaccount:hookgate:gamedeployment-operator";

const MANIFEST: &str = include_str!("../../deploy/admission-removals.yaml");
/// Kinds of the objects that grant the component its permissions.
const PERMISSIONS: [&str; 5] = [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
];
/// Label of the only namespace in which the webhooks are in effect. After the process has ended, removals
/// fail there, and nowhere else.
const LABEL: &str = "hookgate-removal-guard";
/// Timeout of a step on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// hookgate-admission with the removal guard, as a process of this program, in effect in one namespace. The
/// process ends on drop.
pub(crate) struct RemovalGuard {
    process: Process,
}

impl RemovalGuard {
    /// Installs the component with its permissions, starts it, enables the guard for a namespace, and waits
    /// until the API server calls it.
    pub(crate) async fn install(control_plane: &ControlPlane, namespace: &str) -> Outcome<Self> {
        let own = control_plane.namespace("admission").await;
        let name = format!("hookgate-{own}");
        let documents = documents(&name, &own)?;
        grant(control_plane, &documents)?;
        let address = test_kit::free_address()?;
        let configuration = configuration(documents, &name, address)?;
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(control_plane.client());
        configurations
            .create(&PostParams::default(), &configuration)
            .await?;
        let process = start(control_plane, &own, &name, address)?;
        let started = format!("{} started", operator::ADMISSION);
        process.await_output(&started, PATIENCE).await?;
        let guard = Self { process };
        guard.enable(control_plane, namespace, &name).await?;
        Ok(guard)
    }

    /// Returns the last lines of the component's log.
    pub(crate) fn tail(&self, lines: usize) -> String {
        self.process.tail(lines)
    }

    /// Enables the guard for a namespace, and waits until the API server calls the webhooks: it learns of the
    /// configuration and of the namespace's labels through watches.
    async fn enable(&self, control_plane: &ControlPlane, namespace: &str, name: &str) -> Outcome<()> {
        let namespaces: Api<Namespace> = Api::all(control_plane.client());
        let labels = json!({ LABEL: name, REMOVAL_GUARD: REMOVAL_GUARD_ENABLED });
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        namespaces
            .patch(namespace, &PatchParams::default(), &patch)
            .await?;
        // The same process validates templates, so the denial of an invalid one shows that it is called.
        let provider = json!({ "web": { "url": "http://127.0.0.1:1/" } });
        let metric = json!({ "name": "web", "successCondition": "result >", "provider": provider });
        let invalid = HookTemplate::new("probe", serde_json::from_value(json!({ "metrics": [metric] }))?);
        let templates: Api<HookTemplate> = Api::namespaced(control_plane.client(), namespace);
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let denied = within(PATIENCE, || async {
            match templates.create(&dry_run, &invalid).await {
                Err(kube::Error::Api(status)) if status.message.contains("denied the request") => Ok(()),
                Err(error) => Err(error.to_string()),
                Ok(_) => Err("the API server does not call the webhooks".to_owned()),
            }
        });
        let denied = denied.await;
        denied.map_err(|error| format!("{error}\n{}", self.tail(20)).into())
    }
}

/// Returns the path of a kubeconfig with which gamedeployment-operator runs as [`OPERATOR_USER`]. The user
/// has all permissions here; the tests run the operator with those of `deploy/rbac.yaml`.
pub(crate) fn operator_kubeconfig(control_plane: &ControlPlane) -> Outcome<PathBuf> {
    Ok(control_plane.kubeconfig_as(OPERATOR_USER, &["system:masters"])?)
}

/// Returns the documents of the manifest, with another name of the component and another namespace.
fn documents(name: &str, namespace: &str) -> Outcome<Vec<Value>> {
    let text = MANIFEST
        .replace("namespace: hookgate\n", &format!("namespace: {namespace}\n"))
        .replace("hookgate-admission", name);
    Ok(serde_saphyr::from_multiple(&text)?)
}

/// Grants the component its permissions.
fn grant(control_plane: &ControlPlane, documents: &[Value]) -> Outcome<()> {
    let grants = |document: &&Value| {
        let kind = document["kind"].as_str();
        kind.is_some_and(|kind| PERMISSIONS.contains(&kind))
    };
    let items: Vec<&Value> = documents.iter().filter(grants).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    let applied = output_of(control_plane.kubectl().args(["apply", "--filename", "-"]), &list)?;
    if applied.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&applied.stderr);
    Err(format!("kubectl could not apply deploy/admission-removals.yaml: {error}").into())
}

/// Returns the configuration of the webhooks, with this address of the process. The deletion guard is left
/// out: it would also be in effect for the CRDs, which are in no namespace.
fn configuration(
    documents: Vec<Value>,
    name: &str,
    address: SocketAddr,
) -> Outcome<ValidatingWebhookConfiguration> {
    let mut found = documents.into_iter();
    let found = found.find(|document| document["kind"] == "ValidatingWebhookConfiguration");
    let mut configuration = found.ok_or("the manifest has no ValidatingWebhookConfiguration")?;
    let webhooks = configuration["webhooks"].as_array_mut();
    let webhooks = webhooks.ok_or("the ValidatingWebhookConfiguration has no webhooks")?;
    webhooks.retain(|webhook| webhook["clientConfig"]["service"]["path"] != "/guard");
    for webhook in webhooks {
        let path = webhook["clientConfig"]["service"]["path"].as_str();
        let url = format!("https://{address}{}", path.ok_or("a webhook has no path")?);
        webhook["clientConfig"] = json!({ "url": url });
        webhook["namespaceSelector"]["matchLabels"][LABEL] = name.into();
    }
    Ok(serde_json::from_value(configuration)?)
}

/// Starts the process with the permissions of its service account.
fn start(control_plane: &ControlPlane, own: &str, name: &str, address: SocketAddr) -> Outcome<Process> {
    let account = format!("system:serviceaccount:{own}:{name}");
    let accounts = format!("system:serviceaccounts:{own}");
    let groups = ["system:serviceaccounts", &accounts, "system:authenticated"];
    let program = Program::new(std::env::current_exe()?)
        .env("KUBECONFIG", control_plane.kubeconfig_as(&account, &groups)?)
        .args([operator::ADMISSION, "--namespace", own, "--configuration", name])
        .args(["--secret", &format!("{name}-certificates")])
        .args(["--server-name", &address.ip().to_string()])
        .args(["--listen", "127.0.0.1:0", "--listen-tls", &address.to_string()])
        .args(["--log-format", "human"])
        .args(["--removal-guard", "--removal-operator-user", OPERATOR_USER]);
    Ok(Process::start(program)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "hookgate-admission-x7k2p";
    const OWN: &str = "admission-x7k2p";

    #[test]
    fn the_webhooks_are_in_effect_in_one_namespace_only() {
        let documents = documents(NAME, OWN).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 8443));
        let configuration = configuration(documents, NAME, address).unwrap();
        assert_eq!(configuration.metadata.name.as_deref(), Some(NAME));
        let webhooks = configuration.webhooks.unwrap();
        let urls = webhooks
            .iter()
            .filter_map(|webhook| webhook.client_config.url.as_deref());
        let of_the_guard = urls.filter(|url| *url == "https://127.0.0.1:8443/removals");
        assert_eq!(of_the_guard.count(), 4);
        for webhook in webhooks {
            let labels = webhook.namespace_selector.unwrap().match_labels.unwrap();
            assert_eq!(labels[LABEL], NAME);
            // The selector does not apply to objects in no namespace, except namespaces.
            for rule in webhook.rules.unwrap() {
                let is_namespaced = rule.scope.as_deref() == Some("Namespaced");
                assert!(is_namespaced || rule.resources.unwrap() == ["namespaces"]);
            }
        }
    }

    #[test]
    fn both_bindings_grant_permissions_to_the_service_account_of_the_component() {
        let documents = documents(NAME, OWN).unwrap();
        let bindings = documents
            .iter()
            .filter(|document| document["subjects"].is_array());
        let subjects: Vec<&Value> = bindings.map(|binding| &binding["subjects"][0]).collect();
        let own = json!({ "kind": "ServiceAccount", "name": NAME, "namespace": OWN });
        assert_eq!(subjects, [&own, &own]);
    }
}
