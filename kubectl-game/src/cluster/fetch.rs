//! Reads of single objects, lists, and everything that belongs to one workload.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, NamespaceResourceScope, Selector, TypeMeta};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared_api::parsed::Parsed;
use shared_api::{ExecutionHook, GameDeployment, HookAction, HookRun};

use super::failure::{Failure, RequestInfo};
use super::flags::ClusterConnection;

/// Maximum number of existing names in a "not found" message.
const MAX_NAMES: usize = 20;

/// A kind that commands work on.
pub(crate) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + serde::Serialize
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// Resource as used in roles.
    const RESOURCE: &'static str;
    /// Accepted kind prefixes of `kind/NAME`.
    const ALIASES: &'static [&'static str];
}

impl Kind for GameDeployment {
    const RESOURCE: &'static str = "gamedeployments.tkex.tencent.com";
    const ALIASES: &'static [&'static str] = &["gd", "gamedeployment", "gamedeployments", Self::RESOURCE];
}

impl Kind for HookRun {
    const RESOURCE: &'static str = "hookruns.tkex.tencent.com";
    const ALIASES: &'static [&'static str] = &["hr", "hookrun", "hookruns", Self::RESOURCE];
}

impl Kind for ExecutionHook {
    const RESOURCE: &'static str = "executionhooks.tkex.tencent.com";
    const ALIASES: &'static [&'static str] = &[
        "eh",
        "executionhook",
        "executionhooks",
        // As printed by `-o name`.
        "executionhook.tkex.tencent.com",
        Self::RESOURCE,
    ];
}

impl Kind for HookAction {
    const RESOURCE: &'static str = "hookactions.tkex.tencent.com";
    const ALIASES: &'static [&'static str] = &["ha", "hookaction", "hookactions", Self::RESOURCE];
}

impl Kind for Pod {
    const RESOURCE: &'static str = "pods";
    const ALIASES: &'static [&'static str] = &["po", "pod", "pods"];
}

impl Kind for ControllerRevision {
    const RESOURCE: &'static str = "controllerrevisions.apps";
    const ALIASES: &'static [&'static str] = &["controllerrevision", "controllerrevisions", Self::RESOURCE];
}

/// Parses `NAME` or `kind/NAME` and returns the name. Fails if the kind is a different one.
pub(crate) fn name_of<K: Kind>(word: &str) -> Result<&str, Failure> {
    match word.split_once('/') {
        None => Ok(word),
        Some((kind, name)) if K::ALIASES.contains(&kind.to_lowercase().as_str()) => Ok(name),
        Some(_) => Err(Failure::Refused(format!(
            "{word} is not of kind {}; use {}/NAME or NAME",
            K::kind(&()),
            K::ALIASES.first().unwrap_or(&"")
        ))),
    }
}

/// Objects of a kind, including those that cannot be parsed.
pub(crate) struct ListResult<K> {
    /// Objects, sorted by namespace and name.
    pub(crate) objects: Vec<K>,
    /// Objects that cannot be parsed.
    pub(crate) unreadable: Vec<UnreadableObject>,
}

/// An object that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadableObject {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Parse error.
    pub(crate) error: String,
    /// UIDs of the object's owners.
    owners: Vec<String>,
}

impl UnreadableObject {
    /// Creates an entry without owners.
    #[cfg(test)]
    pub(crate) fn new(namespace: &str, name: &str, error: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            error: error.to_owned(),
            owners: vec![],
        }
    }
}

impl<K> Default for ListResult<K> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

impl<K: Kind> ListResult<K> {
    /// Separates objects that could be parsed from those that could not.
    pub(crate) fn of(parsed: impl IntoIterator<Item = Parsed<K>>) -> Self {
        let mut listed = Self::default();
        for Parsed(read) in parsed {
            match read {
                Ok(object) => listed.objects.push(object),
                Err(invalid) => {
                    let owners = invalid.metadata.owner_references.into_iter().flatten();
                    listed.unreadable.push(UnreadableObject {
                        namespace: invalid.metadata.namespace.unwrap_or_default(),
                        name: invalid.metadata.name.unwrap_or_default(),
                        error: invalid.error,
                        owners: owners.map(|owner| owner.uid).collect(),
                    });
                }
            }
        }
        listed
            .objects
            .sort_by_key(|object| (object.namespace(), object.name_any()));
        listed.unreadable.sort();
        listed
    }
}

/// Everything that belongs to one workload, at one point in time.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The workload.
    pub(crate) game: GameDeployment,
    /// Pods of the workload, by name.
    pub(crate) pods: Vec<Pod>,
    /// HookRuns of the workload, by name.
    pub(crate) runs: Vec<HookRun>,
    /// Revisions of the workload, oldest first.
    pub(crate) revisions: Vec<ControllerRevision>,
    /// HookRuns of the workload that cannot be parsed.
    pub(crate) unreadable: Vec<UnreadableObject>,
    /// Flags to repeat in commands that are suggested to the reader.
    pub(crate) flags: String,
    /// Time at which the objects were read.
    pub(crate) now: Timestamp,
}

impl Snapshot {
    /// Creates a snapshot of only the workload itself.
    pub(crate) fn alone(game: GameDeployment) -> Self {
        Self::of(game, vec![], ListResult::default(), vec![], "")
    }

    /// Keeps the objects that belong to the workload.
    pub(crate) fn of(
        game: GameDeployment,
        pods: Vec<Pod>,
        runs: ListResult<HookRun>,
        revisions: Vec<ControllerRevision>,
        flags: &str,
    ) -> Self {
        let mut revisions = owned(&game, revisions);
        revisions.sort_by_key(|revision| (revision.revision, revision.name_any()));
        Self {
            pods: owned(&game, pods),
            runs: owned(&game, runs.objects),
            unreadable: runs
                .unreadable
                .into_iter()
                .filter(|run| {
                    run.owners
                        .iter()
                        .any(|uid| Some(uid) == game.metadata.uid.as_ref())
                })
                .collect(),
            revisions,
            flags: flags.to_owned(),
            now: Timestamp::now(),
            game,
        }
    }
}

/// Returns the objects that the workload owns, ordered by name.
fn owned<K: Resource>(game: &GameDeployment, objects: Vec<K>) -> Vec<K> {
    let is_owned = |object: &K| {
        let mut owners = object.owner_references().iter();
        owners.any(|owner| Some(&owner.uid) == game.metadata.uid.as_ref())
    };
    let mut owned: Vec<K> = objects.into_iter().filter(is_owned).collect();
    owned.sort_by_key(ResourceExt::name_any);
    owned
}

/// Returns the selector of the workload's pods.
pub(super) fn selector_of(game: &GameDeployment) -> Selector {
    // An invalid selector matches everything; the filter by owner drops foreign objects later.
    Selector::try_from(game.spec.selector.clone()).unwrap_or_default()
}

impl ClusterConnection {
    /// Returns the API of a kind in the namespace.
    pub(crate) fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the API of a kind in the namespace, or in all namespaces. Objects that cannot be parsed do not
    /// fail the request.
    pub(super) fn parsed<K: Kind>(&self, everywhere: bool) -> Api<Parsed<K>> {
        if everywhere {
            Api::all(self.client.clone())
        } else {
            Api::namespaced(self.client.clone(), &self.namespace)
        }
    }

    /// Describes a request for error messages.
    pub(crate) fn request<'a, K: Kind>(
        &'a self,
        verb: &'static str,
        name: Option<&'a str>,
    ) -> RequestInfo<'a> {
        RequestInfo {
            verb,
            resource: K::RESOURCE,
            name,
            namespace: Some(&self.namespace),
        }
    }

    /// Returns an object by name. If it does not exist, the error lists the existing names.
    pub(crate) async fn get<K: Kind>(&self, name: &str) -> Result<K, Failure> {
        match self.parsed::<K>(false).get(name).await {
            Ok(Parsed(Ok(object))) => Ok(object),
            Ok(Parsed(Err(invalid))) => Err(self.request::<K>("get", Some(name)).unreadable(&invalid.error)),
            Err(error) => match self.request::<K>("get", Some(name)).failed(&error) {
                Failure::NotFound(_) => Err(self.no_such::<K>(name).await),
                other => Err(other),
            },
        }
    }

    async fn no_such<K: Kind>(&self, name: &str) -> Failure {
        let kind = K::kind(&());
        let missing = format!("no {kind} named {name:?} in namespace {}", self.namespace);
        let there = match self.api::<K>().list_metadata(&ListParams::default()).await {
            Err(_) => return Failure::NotFound(missing),
            Ok(list) => list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        };
        let shown = there
            .iter()
            .take(MAX_NAMES)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        Failure::NotFound(match there.len() {
            0 => format!("{missing}: the namespace has no {kind}s; use -n to select another namespace"),
            1..=MAX_NAMES => format!("{missing}; available: {shown}"),
            more => format!("{missing}; available: {shown} and {} more", more - MAX_NAMES),
        })
    }

    /// Lists the objects of a kind.
    pub(crate) async fn list<K: Kind>(
        &self,
        everywhere: bool,
        parameters: &ListParams,
    ) -> Result<ListResult<K>, Failure> {
        let request = RequestInfo {
            namespace: (!everywhere).then_some(self.namespace.as_str()),
            ..self.request::<K>("list", None)
        };
        let list = self.parsed::<K>(everywhere).list(parameters).await;
        Ok(ListResult::of(list.map_err(|error| request.failed(&error))?))
    }

    /// Lists the objects of a kind as they are stored.
    pub(crate) async fn list_raw(&self, kind: ApiResource, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let request = RequestInfo {
            verb: "list",
            resource: &format!("{}.{}", kind.plural, kind.group),
            name: None,
            namespace: (!everywhere).then_some(self.namespace.as_str()),
        };
        let api: Api<DynamicObject> = if everywhere {
            Api::all_with(self.client.clone(), &kind)
        } else {
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind)
        };
        let list = api.list(&ListParams::default()).await;
        let objects = list.map_err(|error| request.failed(&error))?.items.into_iter();
        let whole = objects.map(|object| {
            let types = TypeMeta {
                api_version: kind.api_version.clone(),
                kind: kind.kind.clone(),
            };
            serde_json::to_value(DynamicObject {
                types: Some(types),
                ..object
            })
        });
        let whole: Result<Vec<Value>, _> = whole.collect();
        whole.map_err(|error| request.unreadable(&error.to_string()))
    }

    /// Returns the revisions of a workload, oldest first.
    pub(crate) async fn revisions(&self, name: &str) -> Result<Vec<ControllerRevision>, Failure> {
        let game: GameDeployment = self.get(name).await?;
        let revisions = self.list(false, &ListParams::default()).await?;
        Ok(Snapshot::of(
            game,
            vec![],
            ListResult::default(),
            revisions.objects,
            &self.flags,
        )
        .revisions)
    }

    /// Reads everything that belongs to a workload.
    pub(crate) async fn snapshot(&self, name: &str) -> Result<Snapshot, Failure> {
        let game: GameDeployment = self.get(name).await?;
        let selected = ListParams::default().labels_from(&selector_of(&game));
        let all = ListParams::default();
        let (pods, runs, revisions) = tokio::try_join!(
            self.list(false, &selected),
            self.list(false, &all),
            self.list(false, &all)
        )?;
        Ok(Snapshot::of(
            game,
            pods.objects,
            runs,
            revisions.objects,
            &self.flags,
        ))
    }
}
