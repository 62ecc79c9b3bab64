//! Objects by name, and everything about one workload.

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{DeserializeGuard, NamespaceResourceScope, Selector};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use shared_api::{GameDeployment, HookRun};

use super::failure::{Ask, Failure};
use super::flags::Cluster;

/// Names shown where one is not found.
const NAMED: usize = 20;

/// A kind that commands speak of.
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
    /// As roles name it.
    const RESOURCE: &'static str;
    /// What may stand before a slash in the place of the kind.
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

impl Kind for Pod {
    const RESOURCE: &'static str = "pods";
    const ALIASES: &'static [&'static str] = &["po", "pod", "pods"];
}

impl Kind for ControllerRevision {
    const RESOURCE: &'static str = "controllerrevisions.apps";
    const ALIASES: &'static [&'static str] = &["controllerrevision", "controllerrevisions", Self::RESOURCE];
}

/// `NAME`, `kind/NAME`: the name, where the kind is the one that is meant.
pub(crate) fn name_of<K: Kind>(word: &str) -> Result<&str, Failure> {
    match word.split_once('/') {
        None => Ok(word),
        Some((kind, name)) if K::ALIASES.contains(&kind.to_lowercase().as_str()) => Ok(name),
        Some((kind, _)) => Err(Failure::Refused(format!(
            "{kind} is not what this command is about; write {}/NAME or NAME",
            K::ALIASES.first().unwrap_or(&"")
        ))),
    }
}

/// Objects of a kind, with those that cannot be read.
pub(crate) struct Listed<K> {
    /// In the order of namespaces and names.
    pub(crate) objects: Vec<K>,
    /// Those that cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unreadable {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// What is wrong.
    pub(crate) error: String,
    /// UIDs of its owners.
    owners: Vec<String>,
}

impl Unreadable {
    /// With no owner.
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

impl<K> Default for Listed<K> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

impl<K: Kind> Listed<K> {
    /// Sorts guarded objects.
    pub(crate) fn of(guarded: impl IntoIterator<Item = DeserializeGuard<K>>) -> Self {
        let mut listed = Self::default();
        for DeserializeGuard(read) in guarded {
            match read {
                Ok(object) => listed.objects.push(object),
                Err(invalid) => {
                    let owners = invalid.metadata.owner_references.into_iter().flatten();
                    listed.unreadable.push(Unreadable {
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

/// Everything about one workload, at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The workload.
    pub(crate) game: GameDeployment,
    /// Its pods, by name.
    pub(crate) pods: Vec<Pod>,
    /// Its HookRuns, by name.
    pub(crate) runs: Vec<HookRun>,
    /// Its revisions, oldest first.
    pub(crate) revisions: Vec<ControllerRevision>,
    /// HookRuns of its own that cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Flags that a command shown to the reader needs.
    pub(crate) flags: String,
}

impl Snapshot {
    /// A workload of which nothing else needs to be known.
    pub(crate) fn alone(game: GameDeployment) -> Self {
        Self::of(game, vec![], Listed::default(), vec![], "")
    }

    /// Keeps what belongs to the workload.
    pub(crate) fn of(
        game: GameDeployment,
        pods: Vec<Pod>,
        runs: Listed<HookRun>,
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
            game,
        }
    }
}

/// The objects whose controller the workload is.
fn owned<K: Resource>(game: &GameDeployment, objects: Vec<K>) -> Vec<K> {
    let is_owned = |object: &K| {
        let mut owners = object.owner_references().iter();
        owners.any(|owner| Some(&owner.uid) == game.metadata.uid.as_ref())
    };
    let mut owned: Vec<K> = objects.into_iter().filter(is_owned).collect();
    owned.sort_by_key(ResourceExt::name_any);
    owned
}

/// The selector of a workload's pods.
pub(super) fn selector_of(game: &GameDeployment) -> Selector {
    // One that cannot be read selects all: what is not the workload's own is left out by its owner.
    Selector::try_from(game.spec.selector.clone()).unwrap_or_default()
}

impl Cluster {
    /// A kind's objects in the namespace.
    pub(crate) fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A kind's objects in the namespace or in all of them, each as far as it can be read.
    pub(super) fn guarded<K: Kind>(&self, everywhere: bool) -> Api<DeserializeGuard<K>> {
        if everywhere {
            Api::all(self.client.clone())
        } else {
            Api::namespaced(self.client.clone(), &self.namespace)
        }
    }

    /// For the sentence about an answer.
    pub(crate) fn ask<'a, K: Kind>(&'a self, verb: &'static str, name: Option<&'a str>) -> Ask<'a> {
        Ask {
            verb,
            resource: K::RESOURCE,
            name,
            namespace: Some(&self.namespace),
        }
    }

    /// An object by its name; where it is not there, the names that are.
    pub(crate) async fn get<K: Kind>(&self, name: &str) -> Result<K, Failure> {
        match self.api::<K>().get(name).await {
            Ok(object) => Ok(object),
            Err(error) => match self.ask::<K>("get", Some(name)).failed(&error) {
                Failure::NotFound(_) => Err(self.no_such::<K>(name).await),
                other => Err(other),
            },
        }
    }

    async fn no_such<K: Kind>(&self, name: &str) -> Failure {
        let kind = K::kind(&());
        let missing = format!("no {kind} is named {name:?} in namespace {}", self.namespace);
        let there = match self.api::<K>().list_metadata(&ListParams::default()).await {
            Err(_) => return Failure::NotFound(missing),
            Ok(list) => list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        };
        let shown = there.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        Failure::NotFound(match there.len() {
            0 => format!("{missing}; there is none. Another namespace is named with -n"),
            1..=NAMED => format!("{missing}; there is {shown}"),
            more => format!("{missing}; there is {shown} and {} more", more - NAMED),
        })
    }

    /// A kind's objects.
    pub(crate) async fn list<K: Kind>(
        &self,
        everywhere: bool,
        parameters: &ListParams,
    ) -> Result<Listed<K>, Failure> {
        let ask = Ask {
            namespace: (!everywhere).then_some(self.namespace.as_str()),
            ..self.ask::<K>("list", None)
        };
        let list = self.guarded::<K>(everywhere).list(parameters).await;
        Ok(Listed::of(list.map_err(|error| ask.failed(&error))?))
    }

    /// A workload's revisions, oldest first.
    pub(crate) async fn revisions(&self, name: &str) -> Result<Vec<ControllerRevision>, Failure> {
        let game: GameDeployment = self.get(name).await?;
        let revisions = self.list(false, &ListParams::default()).await?;
        Ok(Snapshot::of(game, vec![], Listed::default(), revisions.objects, &self.flags).revisions)
    }

    /// Everything about a workload.
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
