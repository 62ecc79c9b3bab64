//! Requests to the API server. If a request fails, a deletion, an eviction or a hook that acts in the cluster is
//! rejected, and warnings about hooks are omitted.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use axum::http;
use futures::AsyncReadExt as _;
use gamedeployment_core::unusable_template::{UnusableTemplate, usable};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIResource, GroupVersionForDiscovery, ListMeta,
};
use kube::api::{
    ApiResource, DynamicObject, GetParams, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, Resource as _};
use operator_runtime::calls::{CallError, CallLimiter};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use shared_api::names::GROUP;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK};
use shared_api::parsed::{self, Parsed};
use shared_api::syntax::is_subdomain;
use shared_api::{GameDeployment, HookTemplate, HookTemplateSpec};

use crate::authors::{HookTarget, NeededRight, Resource, TargetKind};
use crate::complexity::{self, MAX_VALUES, TooComplex};
use crate::guard::PendingDecision;
use crate::hooks::Templates;
use crate::parse_room::{FREE_VALUES, ParseRoom};
use crate::removal::{GuardedPod, KeepingWorkload};
use crate::review::AdmissionDecision;

/// Maximum number of concurrent requests.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Maximum timeout of one request. The API server waits 10 s for the response of the deletion guard, and 5 s for all
/// others, see `helm/templates/admission.yaml`.
const MAX_TIMEOUT: Duration = Duration::from_secs(4);
/// Version of the core API group.
const CORE_VERSION: &str = "v1";
/// Reason why a kind has no resource.
const NOT_SERVED: &str = "the API server has no such namespaced kind; fix the kind, or install its CRD first";

/// Maximum number of HookTemplates that are looked up for one GameDeployment.
const MAX_TEMPLATES: usize = 64;
/// Maximum number of names in which a misspelt one is looked for.
const MAX_NAMES: u32 = 2000;
/// Maximum number of pods in a page.
const PAGE_PODS: u32 = 100;
/// Maximum length of a page of pods, in bytes: ten times the usual one. Several are read at once.
const MAX_PAGE_BYTES: u64 = 4 * 1024 * 1024;
/// Fields of pods that have a node and have not ended.
const SCHEDULED: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/// Names of the objects of a list, from the first column of its table.
#[derive(Deserialize)]
struct NameTable {
    #[serde(default)]
    rows: Vec<NameRow>,
}

#[derive(Deserialize)]
struct NameRow {
    cells: NameCells,
}

/// First cell of a row.
struct NameCells(String);

impl<'de> Deserialize<'de> for NameCells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct First;

        impl<'de> Visitor<'de> for First {
            type Value = NameCells;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("cells that begin with a name")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<NameCells, A::Error> {
                let name = cells.next_element()?.unwrap_or_default();
                while cells.next_element::<IgnoredAny>()?.is_some() {}
                Ok(NameCells(name))
            }
        }

        deserializer.deserialize_seq(First)
    }
}

/// Parts of the cluster that decisions depend on.
#[derive(Debug)]
pub struct ClusterReader {
    client: ClientDebug,
    calls: CallLimiter,
    /// Timeout of one request, and of all requests about the rights of an author.
    timeout: Duration,
}

/// Wraps a client, which has no `Debug` implementation.
struct ClientDebug(Client);

impl std::fmt::Debug for ClientDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl ClusterReader {
    /// Creates a reader that uses this client. `timeout` applies to each request, and is capped.
    pub fn new(client: Client, timeout: Duration) -> Self {
        let timeout = timeout.min(MAX_TIMEOUT);
        Self {
            client: ClientDebug(client),
            calls: CallLimiter::new(MAX_CONCURRENT_CALLS, timeout),
            timeout,
        }
    }

    /// Completes a pending decision: reads the facts that it depends on from the API server.
    pub async fn settle(&self, pending: PendingDecision) -> AdmissionDecision {
        let (refusal, open) = match pending {
            PendingDecision::Given(verdict) => return verdict,
            PendingDecision::UnlessNamespaceEnds { namespace, refusal } => {
                (refusal, self.namespace_ends(&namespace).await)
            }
            PendingDecision::UnlessNoObjects {
                version,
                plural,
                refusal,
            } => (refusal, self.no_objects(&version, &plural).await),
        };
        match open {
            Ok(true) => AdmissionDecision::Allowed(Vec::new()),
            Ok(false) => AdmissionDecision::Forbidden(refusal),
            Err(why) => AdmissionDecision::Forbidden(format!("{refusal} ({why})")),
        }
    }

    /// Returns the HookTemplates of these names; `None` if one cannot be looked up, or if there are too many. Together,
    /// they may have as many values as one object, and keep their room until they are dropped.
    pub async fn templates(
        &self,
        namespace: &str,
        names: &BTreeSet<String>,
        (room, client): (&ParseRoom, String),
    ) -> Option<Templates> {
        if names.len() > MAX_TEMPLATES {
            return None;
        }
        let (mut templates, mut values) = (Templates::default(), 0);
        for name in names {
            let text = match self.template(namespace, name).await {
                Ok(text) => text,
                Err(CallError::Gone) => {
                    if templates.names.is_empty() {
                        templates.names = self.template_names(namespace).await.ok()?;
                    }
                    continue;
                }
                Err(error) => {
                    tracing::debug!(%error, namespace, "failed to look up a HookTemplate");
                    return None;
                }
            };
            let found = match complexity::values(text.as_bytes()) {
                Ok(more) if values + more <= MAX_VALUES => {
                    values += more;
                    if values > FREE_VALUES && templates.room.is_none() {
                        templates.room = room.claim(&client, MAX_VALUES).await;
                    }
                    read_template(&text)
                }
                Ok(_) => Err(not_checked(TooComplex::Values)),
                Err(why) => Err(not_checked(why)),
            };
            templates.found.insert(name.clone(), found);
        }
        Some(templates)
    }

    /// Reads a HookTemplate as text, because parsing a hostile one takes a hundred times its bytes.
    async fn template(&self, namespace: &str, name: &str) -> Result<String, CallError> {
        let url = HookTemplate::url_path(&(), Some(namespace));
        let request = kube::core::Request::new(url).get(name, &GetParams::default());
        let client = &self.client.0;
        let call = async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            client.request_text(request).await
        };
        self.calls.call(namespace, "read a HookTemplate", call).await
    }

    /// Returns the names of the first HookTemplates of a namespace. A table holds them without the objects.
    async fn template_names(&self, namespace: &str) -> Result<Vec<String>, CallError> {
        let url = HookTemplate::url_path(&(), Some(namespace));
        let request = http::Request::get(format!("{url}?limit={MAX_NAMES}&includeObject=None"))
            .header(
                http::header::ACCEPT,
                "application/json;as=Table;v=v1;g=meta.k8s.io",
            )
            .body(Vec::new());
        let client = &self.client.0;
        let call = async {
            let request = request.map_err(kube::Error::HttpError)?;
            client.request::<NameTable>(request).await
        };
        let table = self.calls.call(namespace, "list the HookTemplates", call).await?;
        Ok(table.rows.into_iter().map(|row| row.cells.0).collect())
    }

    /// Refuses a write whose author lacks one of these rights, or whose rights cannot be read.
    pub async fn authorize(&self, rights: &[NeededRight]) -> AdmissionDecision {
        // API servers before 1.28 store the object if the answer comes too late.
        let deadline = tokio::time::Instant::now() + self.timeout;
        for right in rights {
            let refusal = tokio::time::timeout_at(deadline, self.refusal(right)).await;
            let late = |_| Some(right.unknown(&format!("no response within {}s", self.timeout.as_secs())));
            if let Some(refusal) = refusal.unwrap_or_else(late) {
                return AdmissionDecision::Forbidden(refusal);
            }
        }
        AdmissionDecision::Allowed(Vec::new())
    }

    /// Returns the refusal if the author lacks the right, or if it cannot be read.
    async fn refusal(&self, right: &NeededRight) -> Option<String> {
        let resource = match &right.action.target {
            HookTarget::Resource(resource) => resource.clone(),
            HookTarget::Kind(kind) => match self.resource_of(&right.namespace, kind).await {
                Ok(resource) => resource,
                Err(why) => return Some(right.unknown(&why)),
            },
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.0.clone());
        let (params, review) = (PostParams::default(), right.review(&resource));
        let call = api.create(&params, &review);
        let answer = self
            .calls
            .call(&right.namespace, "create a SubjectAccessReview", call)
            .await;
        let why = match answer.map(|review| review.status) {
            Ok(Some(status)) if status.allowed => return None,
            Ok(status) => status.and_then(|status| status.reason).unwrap_or_default(),
            Err(error) => format!("failed to check the permission: {error}"),
        };
        let refusal = right.refusal(&resource);
        Some(if why.is_empty() {
            refusal
        } else {
            format!("{refusal} ({why})")
        })
    }

    /// Returns the resource of a kind, or the reason why it is not known. A namespace has no objects of a kind that is
    /// not namespaced.
    async fn resource_of(&self, namespace: &str, target: &TargetKind) -> Result<Resource, String> {
        let client = &self.client.0;
        let served = if target.group.is_empty() {
            let call = client.list_core_api_resources(CORE_VERSION);
            self.calls
                .call(namespace, "list the resources of the core group", call)
                .await
        } else {
            let call = client.list_api_groups();
            let groups = self.calls.call(namespace, "list the API groups", call).await;
            let groups = groups.map_err(|error| error.to_string())?.groups;
            // From the list, because the text of an author must not become part of a request path.
            let version = group_version(&groups, target).ok_or(NOT_SERVED)?;
            let call = client.list_api_group_resources(version);
            self.calls
                .call(namespace, "list the resources of an API group", call)
                .await
        };
        let resources = served.map_err(|error| error.to_string())?.resources;
        plural(&resources, &target.kind)
            .map(|plural| Resource::new(&target.group, plural))
            .ok_or_else(|| NOT_SERVED.to_owned())
    }

    /// Returns the time limit for all requests on behalf of one review.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns a pod, if it exists.
    pub(crate) async fn pod(&self, namespace: &str, name: &str) -> Result<Option<GuardedPod>, CallError> {
        let url = Pod::url_path(&(), Some(namespace));
        self.fields(url, [namespace, name], "read the pod").await
    }

    /// Lists the guarded pods of a namespace that have a node and have not ended, without their spec and status.
    /// `token`: that of the previous page, if there is one.
    pub(crate) async fn guarded_pods(&self, namespace: &str, token: Option<&str>) -> Result<PodPage, String> {
        if !is_subdomain(namespace) {
            return Err(format!("{namespace:?} is not the name of a namespace"));
        }
        let label = format!("{REMOVAL_GUARD}={REMOVAL_GUARD_ASK}");
        let params = ListParams::default().labels(&label).fields(SCHEDULED);
        let mut params = params.limit(PAGE_PODS);
        params.continue_token = token.map(str::to_owned);
        let url = Pod::url_path(&(), Some(namespace));
        let request = kube::core::Request::new(url).list_metadata(&params);
        let client = &self.client.0;
        let call = async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            let page = pin!(client.request_stream(request).await?);
            let (mut page, mut text) = (page.take(MAX_PAGE_BYTES), Vec::new());
            let read = page.read_to_end(&mut text).await;
            read.map_err(kube::Error::ReadEvents)?;
            if page.limit() == 0 {
                let why = format!("the list is longer than {MAX_PAGE_BYTES} bytes");
                return Err(kube::Error::Service(why.into()));
            }
            serde_json::from_slice(&text).map_err(kube::Error::SerdeError)
        };
        let listed = self.calls.call(namespace, "list the guarded pods", call).await;
        listed.map_err(|error| error.to_string())
    }

    /// Returns a GameDeployment, if it exists, or the reason why it is not known.
    pub(crate) async fn workload(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<KeepingWorkload>, String> {
        let url = || GameDeployment::url_path(&(), Some(namespace));
        let step = "read the GameDeployment";
        let found = self.fields(url(), [namespace, name], step).await;
        let found = found.map_err(|error| error.to_string())?;
        if found.is_none() {
            self.check_served(namespace, url()).await?;
        }
        Ok(found)
    }

    /// Fails if the API server does not serve GameDeployments: it then responds with 404 for each of them.
    async fn check_served(&self, namespace: &str, url: String) -> Result<(), String> {
        let listed = self.list_one(namespace, url, "list the GameDeployments").await;
        listed.map(drop).map_err(|error| match error {
            CallError::Gone => "the API server does not serve GameDeployments".to_owned(),
            CallError::Conflict
            | CallError::Refused { .. }
            | CallError::Lapsed
            | CallError::Unknown { .. } => error.to_string(),
        })
    }

    /// Lists at most one object, without its spec and status.
    async fn list_one(&self, namespace: &str, url: String, step: &'static str) -> Result<AnyList, CallError> {
        let request = kube::core::Request::new(url).list_metadata(&ListParams::default().limit(1));
        let client = &self.client.0;
        let call = async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            client.request::<AnyList>(request).await
        };
        self.calls.call(namespace, step, call).await
    }

    /// Reads some fields of an object, if it exists.
    async fn fields<T: DeserializeOwned + Send>(
        &self,
        url: String,
        [namespace, name]: [&str; 2],
        step: &'static str,
    ) -> Result<Option<T>, CallError> {
        // The author of a pod chooses the names of its owners, which must not become another request path.
        if !is_subdomain(namespace) || !is_subdomain(name) {
            return Ok(None);
        }
        let request = kube::core::Request::new(url).get(name, &GetParams::default());
        let client = &self.client.0;
        let call = async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            let text = client.request_text(request).await?;
            serde_json::from_str(&text).map_err(kube::Error::SerdeError)
        };
        match self.calls.call(namespace, step, call).await {
            Ok(found) => Ok(Some(found)),
            Err(CallError::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Patches a pod that was read before.
    pub(crate) async fn patch_pod(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), CallError> {
        let url = Pod::url_path(&(), Some(namespace));
        let params = PatchParams::default();
        let request = kube::core::Request::new(url).patch_metadata(name, &params, &Patch::Merge(patch));
        let client = &self.client.0;
        let call = async {
            let request = request.map_err(kube::Error::BuildRequest)?;
            client.request_text(request).await.map(drop)
        };
        self.calls.call(namespace, "annotate the pod", call).await
    }

    /// Returns whether a namespace is being deleted.
    pub(crate) async fn namespace_ends(&self, name: &str) -> Result<bool, String> {
        let api: Api<Parsed<Namespace>> = Api::all(self.client.0.clone());
        let call = self.calls.call(name, "read the namespace", api.get(name)).await;
        let found =
            call.map_err(|error| format!("failed to check whether the namespace is being deleted: {error}"))?;
        Ok(found.meta().deletion_timestamp.is_some())
    }

    async fn no_objects(&self, version: &str, plural: &str) -> Result<bool, String> {
        let kind = GroupVersionKind::gvk(GROUP, version, "");
        let kind = ApiResource::from_gvk_with_plural(&kind, plural);
        let path = DynamicObject::url_path(&kind, None);
        let found = self.list_one("", path, "list the objects").await;
        let found = found.map_err(|error| format!("failed to check whether objects exist: {error}"))?;
        Ok(found.items.is_none_or(|items| items.is_empty()))
    }
}

/// Page of a list of pods.
#[derive(Debug, Deserialize)]
pub(crate) struct PodPage {
    metadata: ListMeta,
    /// Null in empty lists of old API servers, and never absent.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<GuardedPod>>,
}

impl PodPage {
    /// Returns the pods of the page.
    pub(crate) fn pods(&self) -> &[GuardedPod] {
        self.items.as_deref().unwrap_or_default()
    }

    /// Returns the token of the next page; `None` if this is the last one.
    pub(crate) fn next_token(&self) -> Option<&str> {
        let token = self.metadata.continue_.as_deref();
        token.filter(|token| !token.is_empty())
    }
}

/// List of which only the length matters.
#[derive(Deserialize)]
struct AnyList {
    /// Null in empty lists of old API servers, and never absent.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<IgnoredAny>>,
}

fn read_template(text: &str) -> Result<HookTemplateSpec, UnusableTemplate> {
    let Parsed(template) = parsed::parse::<HookTemplate>(text);
    let template = template.map_err(|invalid| UnusableTemplate::Unreadable(invalid.error))?;
    usable(template.spec)
}

fn not_checked(why: TooComplex) -> UnusableTemplate {
    UnusableTemplate::Unreadable(why.to_string())
}

/// Returns the group and version that serve a kind: the version that the hook names, or the preferred one.
fn group_version<'g>(groups: &'g [APIGroup], target: &TargetKind) -> Option<&'g str> {
    let group = groups.iter().find(|group| group.name == target.group)?;
    let is_wanted = |served: &&GroupVersionForDiscovery| {
        let version = target.version.as_ref();
        version.is_none_or(|version| *version == served.version)
    };
    let mut served = group.preferred_version.iter().chain(&group.versions);
    served.find(is_wanted).map(|served| served.group_version.as_str())
}

/// Returns the plural name of a kind whose objects have a namespace.
fn plural<'r>(resources: &'r [APIResource], kind: &str) -> Option<&'r str> {
    // Subresources have names such as `deployments/scale`.
    let is_wanted =
        |served: &&APIResource| served.kind == kind && served.namespaced && !served.name.contains('/');
    resources
        .iter()
        .find(is_wanted)
        .map(|served| served.name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn served(group: &str, version: &str) -> GroupVersionForDiscovery {
        GroupVersionForDiscovery {
            group_version: format!("{group}/{version}"),
            version: version.to_owned(),
        }
    }

    #[test]
    fn a_template_is_kept_only_if_hooks_can_use_it() {
        let template = |bytes: usize| {
            let spec = json!({ "metrics": [], "comment": "x".repeat(bytes) });
            json!({ "kind": "HookTemplate", "metadata": { "name": "ask" }, "spec": spec }).to_string()
        };
        assert!(read_template(&template(1000)).is_ok());
        let large = read_template(&template(200_000));
        assert!(matches!(large, Err(UnusableTemplate::TooLarge(_))), "{large:?}");
        let unreadable = read_template(r#"{ "spec": { "metrics": 1 } }"#);
        assert!(
            matches!(unreadable, Err(UnusableTemplate::Unreadable(_))),
            "{unreadable:?}"
        );
    }

    /// A definition goes when there are no objects: what is no list must not count as an empty one.
    #[test]
    fn only_a_list_without_items_is_empty() {
        let deep = format!(r#"{{"items":[{}{}]}}"#, "[".repeat(500), "]".repeat(500));
        for (json, is_empty) in [
            (r#"{"metadata":{},"items":[]}"#, Some(true)),
            (r#"{"items":null}"#, Some(true)),
            (&deep, Some(false)),
            ("{}", None),
            (r#"{"kind":"Status"}"#, None),
            (r#"{"items":{}}"#, None),
        ] {
            let read = serde_json::from_str::<AnyList>(json).ok();
            let found = read.map(|list| list.items.is_none_or(|items| items.is_empty()));
            assert_eq!(found, is_empty, "{json:.40}");
        }
    }

    /// A namespace without guarded pods is deleted, so a response that is not a list must not count as an empty one.
    #[test]
    fn only_a_complete_list_of_pods_is_a_page() {
        for (json, wanted) in [
            (r#"{"metadata":{},"items":[]}"#, Some((0, None))),
            (r#"{"metadata":{"continue":""},"items":null}"#, Some((0, None))),
            (
                r#"{"metadata":{"continue":"t"},"items":[{"metadata":{"name":"a"}},{}]}"#,
                Some((2, Some("t"))),
            ),
            (r#"{"items":[]}"#, None),
            (r#"{"metadata":{}}"#, None),
            (r#"{"metadata":{},"items":{}}"#, None),
            (r#"{"metadata":{"continue":1},"items":[]}"#, None),
            (r#"{"metadata":{},"items":[1]}"#, None),
            (
                r#"{"metadata":{},"items":[{"metadata":{"deletionTimestamp":1}}]}"#,
                None,
            ),
            (
                r#"{"metadata":{},"items":[{"metadata":{"ownerReferences":{}}}]}"#,
                None,
            ),
            (
                r#"{"metadata":{},"items":[{"metadata":{"annotations":{"tkex.tencent.com/skip-hook":1}}}]}"#,
                None,
            ),
        ] {
            let page = serde_json::from_str::<PodPage>(json).ok();
            let found = page.as_ref().map(|page| (page.pods().len(), page.next_token()));
            assert_eq!(found, wanted, "{json}");
        }
    }

    #[test]
    fn a_kind_is_looked_up_in_the_version_that_a_hook_names_or_in_the_preferred_one() {
        let versions = ["v1beta1", "v1"].map(|version| served("games.example.com", version));
        let games = APIGroup {
            name: "games.example.com".to_owned(),
            preferred_version: Some(versions[1].clone()),
            versions: versions.to_vec(),
            ..APIGroup::default()
        };
        let apps = APIGroup {
            name: "apps".to_owned(),
            versions: vec![served("apps", "v1")],
            ..APIGroup::default()
        };
        let groups = [games, apps];
        for (group, version, wanted) in [
            ("games.example.com", None, Some("games.example.com/v1")),
            (
                "games.example.com",
                Some("v1beta1"),
                Some("games.example.com/v1beta1"),
            ),
            ("games.example.com", Some("v2"), None),
            ("apps", None, Some("apps/v1")),
            ("example.com", None, None),
            ("../api/v1", None, None),
        ] {
            let target = TargetKind {
                group: group.to_owned(),
                version: version.map(str::to_owned),
                kind: "Arena".to_owned(),
            };
            assert_eq!(group_version(&groups, &target), wanted, "{group} {version:?}");
        }
    }

    #[test]
    fn a_kind_without_objects_in_namespaces_has_no_plural() {
        let resource = |name: &str, kind: &str, namespaced| APIResource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            namespaced,
            ..APIResource::default()
        };
        let resources = [
            resource("pods/eviction", "Eviction", true),
            resource("pods", "Pod", true),
            resource("nodes", "Node", false),
        ];
        for (kind, wanted) in [
            ("Pod", Some("pods")),
            ("pod", None),
            ("Node", None),
            ("Eviction", None),
        ] {
            assert_eq!(plural(&resources, kind), wanted, "{kind}");
        }
    }
}
