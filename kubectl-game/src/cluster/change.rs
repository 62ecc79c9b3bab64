//! Writes with a precondition on the state they were decided on. A conflicting write is decided again.

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::failure::{Failure, RequestInfo};
use super::fetch::Kind;
use super::flags::ClusterConnection;

/// Field manager of our writes.
pub(super) const FIELD_MANAGER: &str = "kubectl-game";
/// Maximum number of attempts per write. The operator updates the status often, but more conflicts in a row
/// indicate another cause.
const ATTEMPTS: usize = 5;

impl ClusterConnection {
    /// Applies a merge patch to an object. Reads the object and decides again after a conflict.
    ///
    /// `decide` returns the patch and a message for the user, or the reason not to write.
    pub(crate) async fn change<K: Kind, T>(
        &self,
        name: &str,
        decide: impl Fn(&K) -> Result<(Value, T), Failure>,
    ) -> Result<T, Failure> {
        let mut attempt = 1;
        loop {
            let object: K = self.get(name).await?;
            let (mut patch, answer) = decide(&object)?;
            pin(&mut patch, &object);
            match self.merge::<K>(name, &patch).await {
                Err(Failure::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome.map(|()| answer),
            }
        }
    }

    /// Like [`ClusterConnection::change`], but with a JSON patch, which can replace a nested object as a
    /// whole.
    pub(crate) async fn replace<K: Kind, T>(
        &self,
        name: &str,
        decide: impl Fn(&K) -> Result<(Vec<Value>, T), Failure>,
    ) -> Result<T, Failure> {
        let mut attempt = 1;
        loop {
            let object: K = self.get(name).await?;
            let (mut operations, answer) = decide(&object)?;
            let version = json!({
                "op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version()
            });
            operations.push(version);
            let operations = serde_json::from_value(Value::Array(operations))
                .map_err(|error| Failure::Other(format!("failed to encode the patch: {error}")))?;
            match self.patch::<K>(name, &Patch::Json::<()>(operations)).await {
                Err(Failure::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome.map(|()| answer),
            }
        }
    }

    /// Creates an object. A name that is taken is a conflict.
    pub(crate) async fn create<K: Kind>(&self, object: &K) -> Result<K, Failure> {
        let name = object.name_any();
        let parameters = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let created = self.api::<K>().create(&parameters, object).await;
        created.map_err(|error| self.request::<K>("create", Some(&name)).not_created(&error))
    }

    async fn merge<K: Kind>(&self, name: &str, patch: &Value) -> Result<(), Failure> {
        self.patch::<K>(name, &Patch::Merge(patch)).await
    }

    async fn patch<K: Kind>(
        &self,
        name: &str,
        patch: &Patch<impl serde::Serialize + std::fmt::Debug>,
    ) -> Result<(), Failure> {
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = self.parsed::<K>(false).patch(name, &parameters, patch).await;
        patched
            .map(drop)
            .map_err(|error| self.request::<K>("patch", Some(name)).failed(&error))
    }

    /// Sets the number of pods through the `scale` subresource, like kubectl. Retries conflicts like
    /// [`ClusterConnection::change`].
    pub(crate) async fn scale<T>(
        &self,
        name: &str,
        decide: impl Fn(&GameDeployment) -> Result<(u32, T), Failure>,
    ) -> Result<T, Failure> {
        let request = RequestInfo {
            resource: "gamedeployments.tkex.tencent.com/scale",
            ..self.request::<GameDeployment>("patch", Some(name))
        };
        let mut attempt = 1;
        loop {
            let game: GameDeployment = self.get(name).await?;
            let (replicas, answer) = decide(&game)?;
            let mut patch = json!({ "spec": { "replicas": replicas } });
            pin(&mut patch, &game);
            let (games, parameters) = (self.api::<GameDeployment>(), PatchParams::default());
            let scaled = games.patch_scale(name, &parameters, &Patch::Merge(&patch)).await;
            match scaled.map_err(|error| request.failed(&error)) {
                Err(Failure::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome.map(|_| answer),
            }
        }
    }
}

/// Adds the UID and the resource version to a merge patch, so that it applies only to the object that was
/// read.
fn pin(patch: &mut Value, object: &impl Resource) {
    let meta = object.meta();
    if let Value::Object(fields) = patch {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.insert("uid".to_owned(), json!(meta.uid));
            metadata.insert("resourceVersion".to_owned(), json!(meta.resource_version));
        }
    }
}
