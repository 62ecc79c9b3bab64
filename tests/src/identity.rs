//! Identities of the operators: the service accounts of `deploy/rbac.yaml`, with exactly the permissions in
//! that file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use test_kit::{ApiProxy, ControlPlane, eventually};
use tokio::sync::Mutex;

use crate::{SOON, fail, kubectl};

/// User of gamedeployment-operator.
pub const WORKLOADS_USER: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
/// User of hook-operator.
pub(crate) const HOOKS_USER: &str = "system:serviceaccount:hookgate:hook-operator";
/// Groups of both users.
pub const GROUPS: [&str; 3] = [
    "system:serviceaccounts",
    "system:serviceaccounts:hookgate",
    "system:authenticated",
];

const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/rbac.yaml");

const APPLY: [&str; 3] = ["apply", "--filename", "-"];

/// URLs of the control planes where `deploy/rbac.yaml` is installed.
static INSTALLED: Mutex<BTreeSet<String>> = Mutex::const_new(BTreeSet::new());

/// Kubeconfigs of both operators.
#[derive(Debug)]
pub(crate) struct Identities {
    pub(crate) workloads: PathBuf,
    pub(crate) hooks: PathBuf,
}

impl Identities {
    /// Grants both operators their permissions, once for each control plane.
    pub(crate) async fn on(control_plane: &ControlPlane) -> Self {
        let mut installed = INSTALLED.lock().await;
        if !installed.contains(control_plane.api_url()) {
            install(control_plane).await;
            installed.insert(control_plane.api_url().to_owned());
        }
        let kubeconfig = |user| {
            let written = control_plane.kubeconfig_as(user, &GROUPS);
            written.unwrap_or_else(|error| fail(&format!("a kubeconfig for {user}: {error}")))
        };
        Self {
            workloads: kubeconfig(WORKLOADS_USER),
            hooks: kubeconfig(HOOKS_USER),
        }
    }
}

/// Returns a kubeconfig of hook-operator, with the permissions of `deploy/rbac.yaml`.
pub async fn hooks_kubeconfig(control_plane: &ControlPlane) -> PathBuf {
    Identities::on(control_plane).await.hooks
}

/// Returns such a kubeconfig that connects through a proxy.
pub async fn hooks_kubeconfig_behind(control_plane: &ControlPlane, proxy: &ApiProxy) -> PathBuf {
    let _ = Identities::on(control_plane).await;
    let written = proxy.kubeconfig_as(HOOKS_USER, &GROUPS);
    written.unwrap_or_else(|error| fail(&format!("a kubeconfig: {error}")))
}

/// Lets both operators keep their leases in a test's namespace, as in their own.
pub fn allow_election(control_plane: &ControlPlane, namespace: &str) {
    let mut manifests: Vec<Value> =
        serde_saphyr::from_multiple(&rights()).unwrap_or_else(|error| fail(&format!("{RIGHTS}: {error}")));
    manifests.retain(|manifest| manifest["metadata"]["name"] == "hookgate-leader-election");
    let kinds: Vec<&Value> = manifests.iter().map(|manifest| &manifest["kind"]).collect();
    if kinds != ["Role", "RoleBinding"] {
        fail(&format!(
            "{RIGHTS} has no Role and RoleBinding named hookgate-leader-election"
        ));
    }
    for manifest in &mut manifests {
        manifest["metadata"]["namespace"] = json!(namespace);
    }
    let here = json!({"apiVersion": "v1", "kind": "List", "items": manifests}).to_string();
    let _ = kubectl(control_plane, &APPLY, &here);
}

fn rights() -> String {
    std::fs::read_to_string(RIGHTS).unwrap_or_else(|error| fail(&format!("{RIGHTS}: {error}")))
}

async fn install(control_plane: &ControlPlane) {
    let _ = kubectl(control_plane, &APPLY, &rights());
    // The API server watches roles, so new ones take effect a moment later.
    for (user, group, resource) in [
        (WORKLOADS_USER, "", "pods"),
        (HOOKS_USER, "tkex.tencent.com", "hookruns"),
    ] {
        let review = json!({
            "metadata": {},
            "spec": { "user": user, "groups": GROUPS, "resourceAttributes":
                { "namespace": "default", "verb": "patch", "group": group, "resource": resource, "subresource": "status" } }
        });
        let review: SubjectAccessReview =
            serde_json::from_value(review).unwrap_or_else(|error| fail(&error.to_string()));
        let reviews: Api<SubjectAccessReview> = Api::all(control_plane.client());
        eventually(SOON, || async {
            let answer = reviews.create(&PostParams::default(), &review).await;
            let status = answer.map_err(|error| error.to_string())?.status;
            if status.as_ref().is_some_and(|status| status.allowed) {
                Ok(())
            } else {
                Err(format!("{user} may not patch {resource}/status: {status:?}"))
            }
        })
        .await;
    }
}
