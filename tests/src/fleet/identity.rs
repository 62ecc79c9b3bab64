//! Who the operators are: the service accounts of `deploy/rbac.yaml`, with the rights that stand there and no others.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::json;
use test_kit::{ControlPlane, eventually};
use tokio::sync::Mutex;

use crate::{SOON, fail};

/// The user as which gamedeployment-operator runs.
pub const WORKLOADS_USER: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
/// The user as which hook-operator runs.
pub const HOOKS_USER: &str = "system:serviceaccount:hookgate:hook-operator";
/// The groups of both.
pub const GROUPS: [&str; 3] = [
    "system:serviceaccounts",
    "system:serviceaccounts:hookgate",
    "system:authenticated",
];

const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/rbac.yaml");

/// Control planes that have the rights, by their URL.
static INSTALLED: Mutex<BTreeSet<String>> = Mutex::const_new(BTreeSet::new());

/// Kubeconfigs of both operators.
#[derive(Debug)]
pub(super) struct Identities {
    pub(super) workloads: PathBuf,
    pub(super) hooks: PathBuf,
}

impl Identities {
    /// Gives both operators their rights, once on each control plane.
    pub(super) async fn on(control_plane: &ControlPlane) -> Self {
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

async fn install(control_plane: &ControlPlane) {
    let mut command = control_plane.kubectl();
    command.args(["apply", "--filename", RIGHTS]).stdin(Stdio::null());
    let output = command
        .output()
        .unwrap_or_else(|error| fail(&format!("kubectl: {error}")));
    if !output.status.success() {
        fail(&format!("{RIGHTS}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    // The API server learns of roles by watching them, a moment later.
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
