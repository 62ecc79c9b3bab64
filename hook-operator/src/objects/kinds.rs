//! Resources of kinds, as the API server announces them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hook_core::answer::{MeasurementFailure, MeasurementReason};
use hook_core::request::ObjectKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use operator_runtime::calls::{CallError, CallLimiter};

/// Time for which a known resource is not looked up again.
const KNOWN_FOR: Duration = Duration::from_mins(10);
/// Time for which a kind that does not exist is not looked up again.
const UNKNOWN_FOR: Duration = Duration::from_secs(10);
/// Most kinds that are remembered.
const MOST_KNOWN: usize = 1000;
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

/// Looks up kinds as the operator itself: every account may, and the answer is the same for all namespaces.
pub(super) struct Kinds {
    client: Client,
    limiter: Arc<CallLimiter>,
    known: Mutex<HashMap<ObjectKind, Known>>,
}

/// Result of a lookup.
struct Known {
    outcome: Result<ApiResource, MeasurementFailure>,
    since: Instant,
}

impl Known {
    fn is_fresh(&self) -> bool {
        let lasts = if self.outcome.is_ok() {
            KNOWN_FOR
        } else {
            UNKNOWN_FOR
        };
        self.since.elapsed() < lasts
    }
}

impl Kinds {
    pub(super) fn new(client: Client, limiter: Arc<CallLimiter>) -> Self {
        Self {
            client,
            limiter,
            known: Mutex::default(),
        }
    }

    /// Returns the resource of a kind.
    ///
    /// # Errors
    /// `ApiRefused` if there is none whose objects are in namespaces. `Unreachable` if the API server does not say.
    pub(super) async fn resource(
        &self,
        namespace: &str,
        kind: &ObjectKind,
    ) -> Result<ApiResource, MeasurementFailure> {
        if kind.is_pod() {
            return Ok(ApiResource::pods());
        }
        if let Some(known) = self.known().get(kind).filter(|known| known.is_fresh()) {
            return known.outcome.clone();
        }
        self.look_up(namespace, kind).await
    }

    /// Looks up a kind again after its resource had no object. Returns the resource if it is another one now.
    ///
    /// # Errors
    /// As [`Kinds::resource`].
    pub(super) async fn resource_now(
        &self,
        namespace: &str,
        kind: &ObjectKind,
        before: &ApiResource,
    ) -> Result<Option<ApiResource>, MeasurementFailure> {
        let is_old = |known: &Known| known.since.elapsed() >= UNKNOWN_FOR;
        if kind.is_pod() || !self.known().get(kind).is_none_or(is_old) {
            return Ok(None);
        }
        let now = self.look_up(namespace, kind).await?;
        Ok((now != *before).then_some(now))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ObjectKind, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_up(&self, namespace: &str, kind: &ObjectKind) -> Result<ApiResource, MeasurementFailure> {
        let outcome = match self.found(namespace, kind).await {
            Ok(Some((version, found))) => namespaced(kind, &found).map(|plural| ApiResource {
                group: kind.group.clone(),
                plural: plural.to_owned(),
                version,
            }),
            Ok(None) => Err(unknown(kind)),
            Err(error) => return Err(undiscovered(kind, &error)),
        };
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, known| known.is_fresh());
        }
        if known.len() < MOST_KNOWN {
            let (outcome, since) = (outcome.clone(), Instant::now());
            known.insert(kind.clone(), Known { outcome, since });
        }
        outcome
    }

    /// Returns the first version that has the kind, and its resource.
    async fn found(
        &self,
        namespace: &str,
        kind: &ObjectKind,
    ) -> Result<Option<(String, APIResource)>, CallError> {
        for version in self.versions(namespace, kind).await? {
            let of_group = format!("{}/{version}", kind.group);
            let call = async {
                if kind.group.is_empty() {
                    self.client.list_core_api_resources(&version).await
                } else {
                    self.client.list_api_group_resources(&of_group).await
                }
            };
            let step = "list the kinds of an API group";
            let resources = match self.limiter.call(namespace, step, call).await {
                Ok(APIResourceList { resources, .. }) => resources,
                Err(CallError::Gone) => continue,
                Err(error) => return Err(error),
            };
            // A slash is in the names of subresources.
            let is_kind = |resource: &APIResource| resource.kind == kind.kind && !resource.name.contains('/');
            if let Some(resource) = resources.into_iter().find(is_kind) {
                return Ok(Some((version, resource)));
            }
        }
        Ok(None)
    }

    /// Returns the version of the kind, or all versions of its group, the preferred one first.
    async fn versions(&self, namespace: &str, kind: &ObjectKind) -> Result<Vec<String>, CallError> {
        if let Some(version) = &kind.version {
            return Ok(vec![version.clone()]);
        }
        if kind.group.is_empty() {
            return Ok(vec![CORE_VERSION.to_owned()]);
        }
        let call = self.client.list_api_groups();
        let groups = self
            .limiter
            .call(namespace, "list the API groups", call)
            .await?
            .groups;
        let group = groups.into_iter().find(|group| group.name == kind.group);
        Ok(group.map_or_else(Vec::new, |group| {
            let preferred = group.preferred_version.map(|version| version.version);
            let others = group.versions.into_iter().map(|version| version.version);
            let others = others.filter(|version| Some(version) != preferred.as_ref());
            preferred.clone().into_iter().chain(others).collect()
        }))
    }
}

/// Returns the plural of a resource whose objects are in namespaces.
fn namespaced<'r>(kind: &ObjectKind, resource: &'r APIResource) -> Result<&'r str, MeasurementFailure> {
    if resource.namespaced {
        return Ok(&resource.name);
    }
    let message = format!("kind {} is not namespaced, so hooks cannot read it", kind.kind);
    Err(MeasurementFailure::new(MeasurementReason::ApiRefused, message))
}

/// Returns the failure of a lookup, which the operator makes as itself.
fn undiscovered(kind: &ObjectKind, error: &CallError) -> MeasurementFailure {
    let message = format!("failed to look up kind {}: {error}", kind.kind);
    MeasurementFailure::new(MeasurementReason::Unreachable, message)
}

fn unknown(kind: &ObjectKind) -> MeasurementFailure {
    let group = match (kind.group.as_str(), kind.version.as_deref()) {
        ("", None) => "the core group".to_owned(),
        ("", Some(version)) => format!("version {version} of the core group"),
        (group, None) => format!("group {group}"),
        (group, Some(version)) => format!("version {version} of group {group}"),
    };
    let message = format!(
        "the API server has no kind {} in {group}; fix target, or install the CRD",
        kind.kind
    );
    MeasurementFailure::new(MeasurementReason::ApiRefused, message)
}
