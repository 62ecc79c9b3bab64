//! Grants for hooks that act in the cluster: those of hook-operator, and those of a namespace.

use std::path::PathBuf;

use serde_json::{Value, json};
use test_kit::node::Options;
use test_kit::{ControlPlane, eventually};
use tokio::sync::Mutex;

use crate::fleet::Who;
use crate::{Fleet, Programs, SOON, fail, hooks_kubeconfig, kubectl};

const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/rbac-hooks.yaml");
const JOBS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks.yaml");
const READS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks-get.yaml");
const PATCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks-patch.yaml");
const COMMANDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks-exec.yaml");

/// Held while objects of the whole cluster are applied: concurrent creations of one object fail.
static TURN: Mutex<()> = Mutex::const_new(());

/// Lets hook-operator act as the account of each namespace.
pub async fn grant_to_operator(control_plane: &ControlPlane) {
    let _turn = TURN.lock().await;
    let _ = kubectl(control_plane, &["apply", "-f", OPERATOR], "");
    let right = ["impersonate", "serviceaccounts/hookgate-hooks", "-n", "default"];
    allowed(
        control_plane,
        &right,
        "system:serviceaccount:hookgate:hook-operator",
    )
    .await;
}

/// Returns a kubeconfig of hook-operator with a token of its own. The kubeconfigs of other tests impersonate it, and
/// impersonation cannot be nested.
///
/// # Panics
/// If the API server issues no token.
pub async fn hooks_kubeconfig_with_token(control_plane: &ControlPlane) -> PathBuf {
    let _ = hooks_kubeconfig(control_plane).await;
    let turn = TURN.lock().await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "hookgate" } });
    let metadata = json!({ "name": "hook-operator", "namespace": "hookgate" });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
    for manifest in [namespace, account] {
        let _ = kubectl(control_plane, &["apply", "-f", "-"], &manifest.to_string());
    }
    drop(turn);
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "expirationSeconds": 7200 } });
    let path = "/api/v1/namespaces/hookgate/serviceaccounts/hook-operator/token";
    let answer = kubectl(
        control_plane,
        &["create", "--raw", path, "-f", "-"],
        &request.to_string(),
    );
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| fail(&error.to_string()));
    let token = answer["status"]["token"]
        .as_str()
        .unwrap_or_else(|| fail(&answer.to_string()));
    let written = control_plane.kubeconfig_with_token(token);
    written.unwrap_or_else(|error| fail(&error.to_string()))
}

/// Lets the hooks of a namespace run Jobs.
pub async fn grant_to_namespace(control_plane: &ControlPlane, namespace: &str) {
    grant(control_plane, namespace, JOBS, &["create", "jobs"]).await;
}

/// Lets the hooks of a namespace read pods.
pub async fn grant_reads(control_plane: &ControlPlane, namespace: &str) {
    grant(control_plane, namespace, READS, &["get", "pods"]).await;
}

/// Lets the hooks of a namespace annotate pods.
pub async fn grant_patches(control_plane: &ControlPlane, namespace: &str) {
    grant(control_plane, namespace, PATCHES, &["patch", "pods"]).await;
}

/// Lets the hooks of a namespace run commands in its pods.
pub async fn grant_exec(control_plane: &ControlPlane, namespace: &str) {
    // `pods/exec` would be the pod of the name `exec`.
    let right = ["create", "pods", "--subresource=exec"];
    grant(control_plane, namespace, COMMANDS, &right).await;
}

/// Applies a file with a grant, and waits until the account of the namespace has this right of it.
async fn grant(control_plane: &ControlPlane, namespace: &str, file: &str, right: &[&str]) {
    let _ = kubectl(control_plane, &["apply", "-n", namespace, "-f", file], "");
    let account = format!("system:serviceaccount:{namespace}:hookgate-hooks");
    let right = [right, &["-n", namespace]].concat();
    allowed(control_plane, &right, &account).await;
}

/// Waits until the API server has seen a grant.
async fn allowed(control_plane: &ControlPlane, right: &[&str], user: &str) {
    eventually(SOON, || async {
        let can_i = [&["auth", "can-i"], right, &["--as", user]].concat();
        let output = control_plane.kubectl().args(can_i).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said.starts_with("yes") {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
}

/// Starts hook-operator with these flags of optional providers, in place of the running one. Grants it the right to act
/// as the accounts of namespaces; these grant their hooks nothing yet.
pub async fn start_with(fleet: &mut Fleet<'_>, providers: &[&str]) {
    grant_to_operator(fleet.control_plane).await;
    let kubeconfig = hooks_kubeconfig_with_token(fleet.control_plane).await;
    let flags = [providers, &["--egress-allow-loopback"]].concat();
    let start = fleet.start_of(Who::Hooks, None);
    let start = start.kubeconfig(&kubeconfig).flags(&flags);
    fleet.start(Who::Hooks, &start).await;
}

/// Starts a fleet on nodes with stand-in kubelets, whose hook-operator has these flags; `None` on an existing cluster,
/// which cannot reach the kubelets.
pub async fn with_kubelets(
    control_plane: &'static ControlPlane,
    programs: Programs,
    name: &str,
    flags: &[&str],
) -> Option<Fleet<'static>> {
    if !control_plane.is_own() {
        eprintln!("skipped: an existing cluster cannot reach the kubelets of this test");
        return None;
    }
    let options = Options {
        kubelet: true,
        ..Options::default()
    };
    let mut fleet = Fleet::with(control_plane, programs, name, options).await;
    start_with(&mut fleet, flags).await;
    Some(fleet)
}
