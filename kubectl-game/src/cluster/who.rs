//! Identity of the user, as known to the API server or else to the kubeconfig.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::Value;

use super::ClusterConnection;

/// Versions of `SelfSubjectReview` in Kubernetes 1.28, 1.27 and 1.26.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

impl ClusterConnection {
    /// Returns the name of the user. Older servers cannot report it; then the kubeconfig's name is used.
    pub(crate) async fn who(&self) -> String {
        for version in VERSIONS {
            if let Some(name) = self.review(version).await {
                return name;
            }
        }
        let user = self.user.as_ref();
        user.map_or_else(
            || "unknown".to_owned(),
            |user| format!("{user} (from kubeconfig)"),
        )
    }

    async fn review(&self, version: &str) -> Option<String> {
        let group = "authentication.k8s.io".to_owned();
        let kind = ApiResource {
            api_version: format!("{group}/{version}"),
            group,
            version: version.to_owned(),
            kind: "SelfSubjectReview".to_owned(),
            plural: "selfsubjectreviews".to_owned(),
        };
        let mut request = DynamicObject::new("", &kind);
        request.metadata.name = None;
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let response = api.create(&PostParams::default(), &request).await.ok()?;
        let name = response
            .data
            .pointer("/status/userInfo/username")
            .and_then(Value::as_str)?;
        Some(name.to_owned())
    }
}
