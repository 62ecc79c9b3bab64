//! Resources of kinds, as the API server announces them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hook_core::answer::{FailureKind, MeasurementFailure};
use hook_core::request::ObjectKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use operator_runtime::calls::{CallError, CallLimiter};

use super::failed;

/// Time for which a known resource is not looked up again.
const KNOWN_FOR: Duration = Duration::from_mins(10);
/// Version of the core group.
const CORE_VERSION: &str = "v1";

/// Resource of a kind whose objects are in namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiResource {
    /// API group; empty for the core group.
    group: String,
    version: String,
    plural: String,
}

impl ApiResource {
    fn pods() -> Self {
        Self {
            group: String::new(),
            version: CORE_VERSION.to_owned(),
            plural: "pods".to_owned(),
        }
    }

    /// Returns the path of an object.
    pub(super) fn path(&self, namespace: &str, name: &str) -> String {
        let Self {
            group,
            version,
            plural,
        } = self;
        if group.is_empty() {
            format!("/api/{version}/namespaces/{namespace}/{plural}/{name}")
        } else {
            format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}")
        }
    }
}

/// Looks up kinds as the operator itself, because the account of a namespace gets no answer to tell a kind that does not
/// exist from one that it may not read.
pub(super) struct Kinds {
    client: Client,
    limiter: Arc<CallLimiter>,
    /// Kinds that exist, so their number is limited.
    known: Mutex<HashMap<ObjectKind, (ApiResource, Instant)>>,
}

impl Kinds {
    pub(super) fn new(client: Client, limiter: Arc<CallLimiter>) -> Self {
        Self {
            client,
            limiter,
            known: Mutex::default(),
        }
    }

    pub(super) async fn resource(
        &self,
        namespace: &str,
        kind: &ObjectKind,
    ) -> Result<ApiResource, MeasurementFailure> {
        if kind.is_pod() {
            return Ok(ApiResource::pods());
        }
        if let Some(known) = self.known(kind) {
            return Ok(known);
        }
        let version = self.version(namespace, kind).await?;
        let resources = self.resources(namespace, kind, &version).await?;
        let resource = ApiResource {
            group: kind.group.clone(),
            plural: namespaced(kind, &resources)?.to_owned(),
            version,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind.clone(), (resource.clone(), Instant::now()));
        Ok(resource)
    }

    fn known(&self, kind: &ObjectKind) -> Option<ApiResource> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (resource, since) = known.get(kind)?;
        (since.elapsed() < KNOWN_FOR).then(|| resource.clone())
    }

    /// Returns the version of the kind, by default the one that the API server prefers.
    async fn version(&self, namespace: &str, kind: &ObjectKind) -> Result<String, MeasurementFailure> {
        if let Some(version) = &kind.version {
            return Ok(version.clone());
        }
        if kind.group.is_empty() {
            return Ok(CORE_VERSION.to_owned());
        }
        let call = self.client.list_api_groups();
        let groups = self.limiter.call(namespace, "list the API groups", call).await;
        let groups = groups.map_err(|error| failed(&kind.kind, error))?.groups;
        let group = groups.into_iter().find(|group| group.name == kind.group);
        let version = group.and_then(|group| {
            let first = group.versions.into_iter().next();
            group.preferred_version.or(first)
        });
        version
            .map(|version| version.version)
            .ok_or_else(|| unknown(kind))
    }

    async fn resources(
        &self,
        namespace: &str,
        kind: &ObjectKind,
        version: &str,
    ) -> Result<Vec<APIResource>, MeasurementFailure> {
        let of_group = format!("{}/{version}", kind.group);
        let call = async {
            if kind.group.is_empty() {
                self.client.list_core_api_resources(version).await
            } else {
                self.client.list_api_group_resources(&of_group).await
            }
        };
        match self
            .limiter
            .call(namespace, "list the kinds of an API group", call)
            .await
        {
            Ok(APIResourceList { resources, .. }) => Ok(resources),
            Err(CallError::Gone) => Err(unknown(kind)),
            Err(error) => Err(failed(&kind.kind, error)),
        }
    }
}

/// Returns the plural of a kind whose objects are in namespaces.
fn namespaced<'r>(kind: &ObjectKind, resources: &'r [APIResource]) -> Result<&'r str, MeasurementFailure> {
    // A slash is in the names of subresources.
    let is_kind = |resource: &&APIResource| resource.kind == kind.kind && !resource.name.contains('/');
    let resource = resources.iter().find(is_kind).ok_or_else(|| unknown(kind))?;
    if resource.namespaced {
        return Ok(&resource.name);
    }
    let message = format!(
        "objects of kind {} belong to no namespace, so no hook may read them",
        kind.kind
    );
    Err(MeasurementFailure::new(FailureKind::ApiRefused, message))
}

fn unknown(kind: &ObjectKind) -> MeasurementFailure {
    let group = match (kind.group.as_str(), kind.version.as_deref()) {
        ("", None) => "the core group".to_owned(),
        ("", Some(version)) => format!("version {version} of the core group"),
        (group, None) => format!("group {group}"),
        (group, Some(version)) => format!("version {version} of group {group}"),
    };
    let message = format!(
        "the API server has no kind {} in {group}; correct target, or install its CRD",
        kind.kind
    );
    MeasurementFailure::new(FailureKind::ApiRefused, message)
}
