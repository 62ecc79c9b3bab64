//! Writes to HookRuns, ControllerRevisions, workloads, templates and nodes.

use std::collections::BTreeMap;
use std::rc::Rc;

use gamedeployment_core::plan::NewRevision;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use shared_api::{GameDeployment, HookRun, HookRunStatus, HookTemplateSpec};

use super::{Refusal, Server, check, whole};
use crate::objects::{Identity, NodeObject, RevisionObject, RunObject, TemplateObject, WorkloadObject};

impl Server {
    pub fn create_run(&mut self, run: &HookRun, now: Timestamp) -> Result<Rc<RunObject>, Refusal> {
        if self.runs.get(run.metadata.name.as_deref().unwrap()).is_some() {
            return Err(Refusal::Conflict);
        }
        let mut run = run.clone();
        run.status = None;
        self.birth(&mut run.metadata, "run", now);
        let run = RunObject::new(run);
        self.runs.put(run.clone());
        Ok(run)
    }

    /// Replaces a run's status. Without a version, replaces any version.
    pub fn write_run_status(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
        status: HookRunStatus,
    ) -> Result<Rc<RunObject>, Refusal> {
        let known = check(self.runs.get(name), uid, version)?;
        if known.api.status.as_ref() == Some(&status) {
            return Ok(known);
        }
        let mut run = HookRun::clone(&known.api);
        run.status = Some(status);
        self.bump(&mut run.metadata);
        let run = RunObject::new(run);
        self.runs.put(run.clone());
        Ok(run)
    }

    /// Changes a run's spec or metadata, as a user would. Changes of the spec increment the generation.
    pub fn edit_run(&mut self, name: &str, change: impl FnOnce(&mut HookRun)) {
        let Some(known) = self.runs.get(name).cloned() else {
            return;
        };
        let mut run = HookRun::clone(&known.api);
        change(&mut run);
        if run != *known.api {
            if run.spec != known.api.spec {
                run.metadata.generation = run.metadata.generation.map(|generation| generation + 1);
            }
            self.bump(&mut run.metadata);
            self.runs.put(RunObject::new(run));
        }
    }

    /// Adds a finalizer to a run, which keeps it from being deleted.
    pub fn keep_run(&mut self, name: &str) {
        let stays = Some(vec!["example.com/stays".to_owned()]);
        self.edit_run(name, |run| run.metadata.finalizers = stays);
    }

    /// Removes the finalizers of every run; terminating runs then go away.
    pub fn release_runs(&mut self) {
        let kept = self
            .runs
            .iter()
            .filter(|run| run.api.metadata.finalizers.is_some());
        for run in kept.cloned().collect::<Vec<_>>() {
            self.edit_run(&run.id.name, |run| run.metadata.finalizers = None);
            if run.read.terminating {
                let _ = self.delete_run(&run.id.name, None, None);
            }
        }
    }

    /// Sets `terminate` of a run.
    pub fn terminate_run(&mut self, name: &str, uid: &str, version: &str) -> Result<Rc<RunObject>, Refusal> {
        check(self.runs.get(name), Some(uid), Some(version))?;
        self.edit_run(name, |run| run.spec.terminate = Some(true));
        self.runs.get(name).cloned().ok_or(Refusal::Gone)
    }

    pub fn delete_run(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
    ) -> Result<(), Refusal> {
        let known = check(self.runs.get(name), uid, version)?;
        let mut last = HookRun::clone(&known.api);
        if last.metadata.finalizers.is_none() {
            self.bump(&mut last.metadata);
            self.runs.remove(RunObject::new(last));
        } else if last.metadata.deletion_timestamp.is_none() {
            last.metadata.deletion_timestamp = last.metadata.creation_timestamp.clone();
            self.bump(&mut last.metadata);
            self.runs.put(RunObject::new(last));
        }
        Ok(())
    }

    pub fn create_revision(
        &mut self,
        new: &NewRevision,
        owner: OwnerReference,
        now: Timestamp,
    ) -> Result<Rc<RevisionObject>, Refusal> {
        if self.revisions.get(&new.name).is_some() {
            return Err(Refusal::Conflict);
        }
        self.deny(self.refuses.revisions)?;
        let mut object = ControllerRevision {
            data: Some(RawExtension(new.data.value())),
            revision: new.number,
            ..ControllerRevision::default()
        };
        object.metadata.name = Some(new.name.clone());
        object.metadata.labels = Some(new.labels.clone());
        object.metadata.owner_references = Some(vec![owner]);
        self.birth(&mut object.metadata, "revision", now);
        let object = RevisionObject::new(object);
        self.revisions.put(object.clone());
        Ok(object)
    }

    pub fn patch_revision(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
        change: impl FnOnce(&mut ControllerRevision),
    ) -> Result<Rc<RevisionObject>, Refusal> {
        let known = check(self.revisions.get(name), uid, version)?;
        let mut object = known.api.clone();
        change(&mut object);
        if object == known.api {
            return Ok(known);
        }
        self.bump(&mut object.metadata);
        let object = RevisionObject::new(object);
        self.revisions.put(object.clone());
        Ok(object)
    }

    pub fn delete_revision(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
    ) -> Result<(), Refusal> {
        let known = check(self.revisions.get(name), uid, version)?;
        let mut last = known.api.clone();
        self.bump(&mut last.metadata);
        self.revisions.remove(RevisionObject::new(last));
        Ok(())
    }

    pub fn create_workload(&mut self, mut object: GameDeployment, now: Timestamp) {
        self.birth(&mut object.metadata, "workload", now);
        self.workloads.put(WorkloadObject::new(object));
    }

    /// Changes a workload. Changes of the spec increment the generation. One that is being deleted gets no further
    /// finalizer.
    pub fn patch_workload(
        &mut self,
        name: &str,
        uid: Option<&str>,
        version: Option<&str>,
        change: impl FnOnce(&mut GameDeployment),
    ) -> Result<Rc<WorkloadObject>, Refusal> {
        let known = check(self.workloads.get(name), uid, version)?;
        let mut object = GameDeployment::clone(&known.api);
        change(&mut object);
        let same_spec = object.spec == known.api.spec;
        if same_spec && object.status == known.api.status && object.metadata == known.api.metadata {
            return Ok(known);
        }
        let mut finalizers = object.metadata.finalizers.iter().flatten();
        if known.api.metadata.deletion_timestamp.is_some()
            && finalizers.any(|finalizer| !known.has_finalizer(finalizer))
        {
            return Err(Refusal::Invalid);
        }
        if !same_spec {
            object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
        }
        Ok(self.put_workload(object))
    }

    pub fn put_template(&mut self, name: &str, spec: HookTemplateSpec) {
        let version = self.number().to_string();
        let known = self.templates.get(name).map(|known| known.id.uid.clone());
        let uid = known.unwrap_or_else(|| format!("template-{version}"));
        let id = Identity {
            name: name.to_owned(),
            uid,
            version,
            owner: None,
        };
        self.templates.put(Rc::new(TemplateObject { id, spec }));
    }

    pub fn remove_template(&mut self, name: &str) {
        let Some(known) = self.templates.get(name).cloned() else {
            return;
        };
        let version = self.number().to_string();
        let id = Identity {
            version,
            ..known.id.clone()
        };
        let spec = known.spec.clone();
        self.templates.remove(Rc::new(TemplateObject { id, spec }));
    }

    /// Adds a node; it stays until it is removed.
    pub fn add_node(&mut self, now: Timestamp) -> String {
        let name = format!("node-{}", self.number());
        self.put_node(name.clone(), now);
        name
    }

    /// Registers a node, as its kubelet does.
    pub fn put_node(&mut self, name: String, now: Timestamp) {
        let version = self.number().to_string();
        let id = Identity {
            uid: format!("{name}-{version}"),
            name,
            version,
            owner: None,
        };
        self.nodes.put(Rc::new(NodeObject {
            id,
            since: now,
            ready: true,
            transition: whole(now),
            cordoned: false,
            doomed: false,
            taints: BTreeMap::new(),
        }));
    }

    /// Changes a node. Returns whether that changed it.
    pub fn change_node(&mut self, name: &str, change: impl FnOnce(&mut NodeObject)) -> bool {
        let Some(known) = self.nodes.get(name).cloned() else {
            return false;
        };
        let mut node = NodeObject::clone(&known);
        change(&mut node);
        if node == *known {
            return false;
        }
        node.id.version = self.number().to_string();
        self.nodes.put(Rc::new(node));
        true
    }

    /// Sets the condition Ready of a node. Returns whether that changed it.
    pub fn set_node_ready(&mut self, name: &str, ready: bool, now: Timestamp) -> bool {
        self.change_node(name, |node| {
            if node.ready != ready {
                (node.ready, node.transition) = (ready, whole(now));
            }
        })
    }

    pub fn remove_node(&mut self, name: &str) {
        if let Some(known) = self.nodes.get(name).cloned() {
            let mut last = NodeObject::clone(&known);
            last.id.version = self.number().to_string();
            self.nodes.remove(Rc::new(last));
        }
    }
}
