//! Deletion of workloads, and the garbage collector.

use std::rc::Rc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use shared_api::GameDeployment;
use shared_api::names::pod as names;

use super::{Server, whole};
use crate::objects::{
    FOREGROUND, Identity, ORPHAN, PodObject, WorkloadObject, is_deleting, remove_finalizer,
};

/// Handling of the dependents of a deleted workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cascade {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without an owner.
    Orphan,
}

impl Cascade {
    /// Returns the finalizer that a deletion of this kind sets.
    fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        }
    }
}

impl Server {
    /// Deletes a workload, which goes once it has no finalizer. Another deletion changes the handling of its
    /// dependents.
    pub fn delete_workload(&mut self, name: &str, cascade: Cascade, now: Timestamp) {
        let Some(known) = self.workloads.get(name).cloned() else {
            return;
        };
        self.ends.entry(known.id.uid.clone()).or_insert(now);
        if cascade == Cascade::Foreground && !known.has_finalizer(FOREGROUND) {
            let found = self.dependents(known.uid());
            self.doomed.extend(found);
        }
        let mut object = GameDeployment::clone(&known.api);
        let metadata = &mut object.metadata;
        remove_finalizer(metadata, FOREGROUND);
        remove_finalizer(metadata, ORPHAN);
        if let Some(finalizer) = cascade.finalizer() {
            metadata
                .finalizers
                .get_or_insert_default()
                .push(finalizer.to_owned());
        }
        if metadata.deletion_timestamp.is_none() {
            metadata.deletion_timestamp = Some(Time(whole(now)));
            metadata.generation = metadata.generation.map(|generation| generation + 1);
        }
        if object.metadata != known.api.metadata {
            self.put_workload(object);
        }
    }

    /// Returns the UIDs of the objects that a workload controls.
    fn dependents(&self, uid: &str) -> Vec<String> {
        let pods = self.pods.iter().map(|pod| &pod.id);
        let runs = self.runs.iter().map(|run| &run.id);
        let revisions = self.revisions.iter().map(|revision| &revision.id);
        let all = pods.chain(runs).chain(revisions);
        all.filter(|id| id.owner.as_deref() == Some(uid))
            .map(|id| id.uid.clone())
            .collect()
    }

    /// Stores a workload. One that is being deleted is gone without its last finalizer.
    pub(super) fn put_workload(&mut self, mut object: GameDeployment) -> Rc<WorkloadObject> {
        self.bump(&mut object.metadata);
        let is_held = object
            .metadata
            .finalizers
            .as_ref()
            .is_some_and(|held| !held.is_empty());
        let is_gone = object.metadata.deletion_timestamp.is_some() && !is_held;
        let object = WorkloadObject::new(object);
        if is_gone {
            self.workloads.remove(object.clone());
        } else {
            self.workloads.put(object.clone());
        }
        object
    }

    /// Performs one step of the garbage collector. Returns whether there was one.
    pub fn collect_garbage(&mut self, now: Timestamp) -> bool {
        let run = self
            .runs
            .iter()
            .find(|run| !run.read.terminating && self.is_garbage(&run.id, &run.api.metadata))
            .cloned();
        let pod = self
            .pods
            .iter()
            .find(|pod| {
                !pod.read.terminating && self.is_garbage(&pod.id, &pod.api.metadata) && !self.is_kept(pod)
            })
            .cloned();
        let revision = self
            .revisions
            .iter()
            .find(|revision| self.is_garbage(&revision.id, &revision.api.metadata))
            .cloned();
        if let Some(run) = run {
            let _ = self.delete_run(&run.id.name, None, None);
            return true;
        }
        if let Some(pod) = pod {
            let _ = self.delete_pod(&pod.id.name, None, None, now);
            return true;
        }
        if let Some(revision) = revision {
            let _ = self.delete_revision(&revision.id.name, None, None);
            return true;
        }
        self.advance_deletion()
    }

    /// Whether the collector deletes an object: its owner is gone, or a foreground deletion of its owner has found it
    /// or waits for it.
    fn is_garbage(&self, id: &Identity, metadata: &ObjectMeta) -> bool {
        let owner = id.owner.as_deref().filter(|owner| !owner.starts_with("other"));
        let Some(owner) = owner else { return false };
        if self.revisions.iter().any(|known| known.id.uid == owner) {
            return false;
        }
        let mut owners = metadata.owner_references.iter().flatten();
        let blocks = owners.any(|known| known.uid == owner && known.block_owner_deletion == Some(true));
        let mut workloads = self.workloads.iter();
        workloads
            .find(|known| known.uid() == owner)
            .is_none_or(|known| known.has_finalizer(FOREGROUND) && (blocks || self.doomed.contains(&id.uid)))
    }

    /// Whether the removal guard denies the deletion of a pod, because its hook has to succeed first.
    fn is_kept(&self, pod: &PodObject) -> bool {
        let read = &pod.read;
        let label = read.labels.get(names::REMOVAL_GUARD).map(String::as_str);
        let is_skipped = read.annotation(names::SKIP_HOOK) == Some(&pod.id.uid);
        let is_idle = read.is_finished() || read.node.is_none();
        let asks = |known: &Rc<WorkloadObject>| {
            let strategy = known.api.spec.pre_delete_update_strategy.as_ref();
            pod.id.owner.as_deref() == Some(known.uid())
                && is_deleting(&known.api)
                && strategy.is_some_and(|strategy| strategy.hook.is_some())
        };
        label == Some(names::REMOVAL_GUARD_ASK) && !is_skipped && !is_idle && self.workloads.iter().any(asks)
    }

    /// Performs one step of a deletion: orphans a dependent, or removes the collector's finalizer. A foreground
    /// deletion waits only for pods here, because a finalizer may keep runs for ever.
    fn advance_deletion(&mut self) -> bool {
        let is_ending = |known: &&Rc<WorkloadObject>| known.api.metadata.deletion_timestamp.is_some();
        let Some(ending) = self.workloads.iter().find(is_ending).cloned() else {
            return false;
        };
        let is_own = |id: &Identity| id.owner.as_deref() == Some(ending.uid());
        let pod = self.pods.iter().find(|pod| is_own(&pod.id)).cloned();
        let revision = self
            .revisions
            .iter()
            .find(|revision| is_own(&revision.id))
            .cloned();
        let finalizer = match (ending.has_finalizer(ORPHAN), pod, revision) {
            (true, Some(pod), _) => {
                let release =
                    |pod: &mut k8s_openapi::api::core::v1::Pod| pod.metadata.owner_references = None;
                return self.patch_pod(&pod.id.name, None, None, release).is_ok();
            }
            (true, None, Some(revision)) => {
                let release = |object: &mut ControllerRevision| object.metadata.owner_references = None;
                let name = &revision.id.name;
                return self.patch_revision(name, None, None, release).is_ok();
            }
            (true, None, None) => ORPHAN,
            (false, None, _) if ending.has_finalizer(FOREGROUND) => FOREGROUND,
            (false, ..) => return false,
        };
        let removed = self.patch_workload(&ending.id.name, None, None, |object| {
            remove_finalizer(&mut object.metadata, finalizer);
        });
        removed.is_ok()
    }
}
