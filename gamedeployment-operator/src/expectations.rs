//! What this operator has done, or may have done, and has not seen yet.
//!
//! What a write returned is known at once, and nothing waits for the watch. Two things remain: a write whose answer
//! was lost, and a write that the watch does not show within [`DEADLINE`]. In both cases the object is read directly,
//! so that no expectation can outlive the truth; while an answer is lost, nothing is decided for its workload.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use operator_runtime::calls::{CallError, Calls};
use operator_runtime::watch::Key;
use serde::de::DeserializeOwned;
use shared_api::{GameDeployment, HookRun};

use crate::act::{Effect, Kind};
use crate::index::Index;

/// How long a write may stay unseen by the watch before its object is read.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Objects of workloads whose state is not certain.
#[derive(Debug, Default)]
pub struct Expectations {
    uncertain: BTreeMap<Key, BTreeSet<(Kind, String)>>,
}

impl Expectations {
    /// Nobody knows what became of this object of this workload.
    pub fn doubt(&mut self, workload: &Key, kind: Kind, name: String) {
        self.uncertain
            .entry(workload.clone())
            .or_default()
            .insert((kind, name));
    }

    /// What is uncertain of a workload.
    #[must_use]
    pub fn of(&self, workload: &Key) -> Vec<(Kind, String)> {
        self.uncertain
            .get(workload)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// An object is certain again.
    pub fn settle(&mut self, workload: &Key, kind: Kind, name: &str) {
        if let Some(objects) = self.uncertain.get_mut(workload) {
            objects.remove(&(kind, name.to_owned()));
            if objects.is_empty() {
                self.uncertain.remove(workload);
            }
        }
    }

    /// The workload is gone.
    pub fn forget(&mut self, workload: &Key) {
        self.uncertain.remove(workload);
    }
}

/// Objects that were written and that the watch has not shown in time.
#[must_use]
pub fn overdue(index: &Index) -> Vec<(Kind, Key)> {
    let of = |kind: Kind, keys: Vec<Key>| keys.into_iter().map(move |key| (kind, key));
    of(Kind::Pod, index.pods.overdue(DEADLINE))
        .chain(of(Kind::Run, index.runs.overdue(DEADLINE)))
        .chain(of(Kind::Revision, index.revisions.overdue(DEADLINE)))
        .chain(of(Kind::Workload, index.workloads.overdue(DEADLINE)))
        .collect()
}

/// When the next object is overdue.
#[must_use]
pub fn next_overdue(index: &Index) -> Option<Instant> {
    [
        index.pods.next_overdue(DEADLINE),
        index.runs.next_overdue(DEADLINE),
        index.revisions.next_overdue(DEADLINE),
        index.workloads.next_overdue(DEADLINE),
    ]
    .into_iter()
    .flatten()
    .min()
}

/// Reads an object, not from a cache.
pub async fn read(
    client: &Client,
    calls: &Calls,
    kind: Kind,
    key: &Key,
) -> Result<Option<Effect>, CallError> {
    let (namespace, name) = key;
    let found = match kind {
        Kind::Workload => get::<GameDeployment>(client, calls, namespace, name)
            .await?
            .map(Effect::Workload),
        Kind::Pod => get::<Pod>(client, calls, namespace, name).await?.map(Effect::Pod),
        Kind::Revision => get::<ControllerRevision>(client, calls, namespace, name)
            .await?
            .map(Effect::Revision),
        Kind::Run => get::<HookRun>(client, calls, namespace, name)
            .await?
            .map(Effect::Run),
    };
    Ok(found)
}

async fn get<K>(
    client: &Client,
    calls: &Calls,
    namespace: &str,
    name: &str,
) -> Result<Option<Box<K>>, CallError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    match calls.call(namespace, "read an object", api.get(name)).await {
        Ok(object) => Ok(Some(Box::new(object))),
        Err(CallError::Gone) => Ok(None),
        Err(error) => Err(error),
    }
}
