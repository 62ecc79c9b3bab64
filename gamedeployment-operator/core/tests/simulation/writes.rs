//! What an API server does with the writes of a plan, and what its admission, garbage collector and hook-operator do.

use std::rc::Rc;

use gamedeployment_core::gate::{Delete, HookKind, NewRun, PodRef, Run, Update, owner};
use gamedeployment_core::plan::{Action, NewPod, NewRevision, PodChange, RevisionRef};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use shared_api::Phase;
use shared_api::hook_run::MetricResult;
use shared_api::names::pod as names;

use crate::kubelet::{Machine, set_condition};
use crate::setup::strategy_of;
use crate::world::{Cell, RunCell, Snapshot, World};

impl World {
    /// Does a write as an API server would: one whose preconditions do not hold is refused. Says whether it takes a
    /// pod that serves.
    pub fn write(&mut self, action: &Action, seen: &Snapshot, fresh: bool) -> bool {
        match action {
            Action::CreateRevision(new) => self.create_revision(new),
            Action::AdoptRevision(at) => panic!("{at:?} has an owner"),
            Action::RenumberRevision(at, number) => self.change_revision(at, Some(*number)),
            Action::DeleteRevision(at) => self.change_revision(at, None),
            Action::CreatePod(new) => self.create_pod(new, seen, fresh),
            Action::TryPod(_, revision) => self.accepted = Some(revision.clone()),
            Action::CreateRun(new) => self.create_run(new),
            Action::DeleteRun(at) => {
                if self.runs.get(&at.name).is_some_and(|run| run.read.uid == at.uid) {
                    self.runs.remove(&at.name);
                }
            }
            Action::ResetRetry(kinds) => {
                let object = Rc::make_mut(&mut self.object);
                for kind in kinds {
                    strategy_of(&mut object.spec, *kind).as_mut().unwrap().retry = Some(false);
                }
                self.edited();
            }
            Action::Pause => {
                let strategy = Rc::make_mut(&mut self.object)
                    .spec
                    .update_strategy
                    .as_mut()
                    .unwrap();
                assert_ne!(strategy.paused, Some(true), "paused already");
                strategy.paused = Some(true);
                self.edited();
            }
            Action::DeletePod(delete) => return self.delete_pod(delete, seen),
            Action::TakeOut(update, _) => return self.take_out(update, seen),
            Action::WriteUpdate(update, change) => return self.write_update(update, change, seen),
            Action::Adopt(at) | Action::Release(at) | Action::Unmark(at) | Action::PutIn(at, _) => {
                self.change_pod(at, action);
            }
            Action::Mark(at, _) => self.change_pod(at, action),
            Action::Confirm(confirmed) => self.change_pod(confirmed.pod(), action),
        }
        false
    }

    pub fn edited(&mut self) {
        let metadata = &mut Rc::make_mut(&mut self.object).metadata;
        metadata.generation = metadata.generation.map(|generation| generation + 1);
    }

    fn create_revision(&mut self, new: &NewRevision) {
        let version = self.next();
        if self.objects.contains_key(&new.name) {
            return;
        }
        let mut object = ControllerRevision {
            data: Some(RawExtension(new.data.clone())),
            revision: new.number,
            ..ControllerRevision::default()
        };
        object.metadata.name = Some(new.name.clone());
        object.metadata.uid = Some(format!("revision-{version}"));
        object.metadata.resource_version = Some(version.to_string());
        object.metadata.owner_references = Some(vec![owner("fleet", "gd-uid")]);
        self.objects.insert(new.name.clone(), object);
        self.read_revisions();
    }

    fn change_revision(&mut self, at: &RevisionRef, number: Option<i64>) {
        let version = self.next();
        let Some(object) = self.objects.get_mut(&at.name) else {
            return;
        };
        if object.metadata.resource_version.as_deref() != Some(&at.resource_version) {
            return;
        }
        if let Some(number) = number {
            object.revision = number;
            object.metadata.resource_version = Some(version.to_string());
        } else {
            let used = self.pods.values().any(|cell| cell.read.revision() == at.name);
            assert!(!used, "revision {} is in use", at.name);
            self.objects.remove(&at.name);
        }
        self.read_revisions();
    }

    fn read_revisions(&mut self) {
        self.revisions = Rc::new(
            self.objects
                .values()
                .map(|object| Revision::read(object).unwrap())
                .collect(),
        );
    }

    fn create_pod(&mut self, new: &NewPod, seen: &Snapshot, fresh: bool) {
        let version = self.next();
        if self.pods.contains_key(&new.name) {
            return;
        }
        let mut pod: api::Pod = serde_json::from_value(new.manifest.clone()).unwrap();
        pod.metadata.uid = Some(format!("pod-{version}"));
        pod.metadata.resource_version = Some(version.to_string());
        pod.metadata.creation_timestamp = Some(Time(self.now));
        let read = Rc::new(Pod::read(&pod));
        self.pods.insert(
            new.name.clone(),
            Cell {
                api: pod,
                read,
                machine: Machine::default(),
            },
        );
        let wanted = gamedeployment_core::workload::Workload::read(&seen.object).unwrap();
        let most = wanted.replicas + wanted.max_surge;
        let active = self.active();
        // On an old view a hole may be filled that is filled already; the operator does not decide on one, because it
        // knows its own writes at once.
        assert!(!fresh || active <= most, "{active} pods of at most {most}");
    }

    fn create_run(&mut self, new: &NewRun) {
        let version = self.next();
        let mut run = new.run.clone();
        let name = run.metadata.name.clone().unwrap();
        if self.runs.contains_key(&name) {
            return;
        }
        run.metadata.uid = Some(format!("run-{version}"));
        run.metadata.resource_version = Some(version.to_string());
        run.metadata.creation_timestamp = Some(Time(self.now));
        let read = Rc::new(Run::read(&run));
        self.referee.asked(&read, self.pods.values(), version);
        self.runs.insert(name, RunCell { api: run, read });
    }

    /// A run comes to an end, or is taken up.
    pub fn verdict(&mut self, name: &str, phase: Phase, measured: bool) {
        let version = self.next();
        let Some(run) = self.runs.get_mut(name) else {
            return;
        };
        if run.read.phase.is_final() {
            return;
        }
        let status = run.api.status.get_or_insert_default();
        status.phase = phase;
        status.started_at = Some(self.now.into());
        status.completed_at = Some(self.now.into()).filter(|_| phase.is_final());
        status.message = Some(format!("is {phase}"));
        let successful = i64::from(phase == Phase::Successful && measured);
        status.metric_results = vec![MetricResult {
            name: "players".to_owned(),
            phase,
            successful,
            ..MetricResult::default()
        }];
        run.refresh(version);
        self.referee.answered(&run.read);
    }

    fn found(&mut self, at: &PodRef) -> Option<&mut Cell> {
        let cell = self.pods.get_mut(&at.name)?;
        (cell.read.uid == at.uid && cell.read.resource_version == at.resource_version).then_some(cell)
    }

    fn serves(&self, name: &str) -> bool {
        let wait = self.object.spec.min_ready_seconds.unwrap_or(0);
        self.pods[name].serves(wait, self.now)
    }

    fn delete_pod(&mut self, delete: &Delete, seen: &Snapshot) -> bool {
        let at = delete.pod();
        if self.found(at).is_none() {
            return false;
        }
        let took = self.serves(&at.name);
        self.referee.deletes(&self.pods[&at.name], delete, seen);
        self.end_pod(&at.name);
        took
    }

    /// A pod begins to end; one that was never bound is gone at once.
    pub fn end_pod(&mut self, name: &str) {
        let (version, now) = (self.next(), self.now);
        let Some(cell) = self.pods.get_mut(name) else {
            return;
        };
        if cell.machine.node.is_none() {
            self.pods.remove(name);
            return;
        }
        cell.api.metadata.deletion_timestamp = Some(Time(now));
        cell.refresh(version);
    }

    fn take_out(&mut self, update: &Update, seen: &Snapshot) -> bool {
        if self.found(update.pod()).is_none() {
            return false;
        }
        let name = update.pod().name.clone();
        let took = self.serves(&name);
        self.referee.takes_out(&self.pods[&name], update, seen);
        let (version, now) = (self.next(), self.now);
        let cell = self.pods.get_mut(&name).unwrap();
        set_condition(
            cell.api.status.get_or_insert_default(),
            names::IN_PLACE_READY,
            false,
            Some(update.to()),
            now,
        );
        cell.report(now);
        cell.refresh(version);
        took
    }

    fn write_update(&mut self, update: &Update, change: &PodChange, seen: &Snapshot) -> bool {
        if self.found(update.pod()).is_none() {
            return false;
        }
        let name = update.pod().name.clone();
        // New labels take nobody out of service.
        let took = self.serves(&name) && !change.images.is_empty();
        self.referee.updates(&self.pods[&name], update, change, seen);
        let (version, now) = (self.next(), self.now);
        let cell = self.pods.get_mut(&name).unwrap();
        for container in &mut cell.api.spec.as_mut().unwrap().containers {
            if let Some(image) = change.images.get(&container.name) {
                container.image = Some(image.clone());
            }
        }
        for (map, changes) in [
            (&mut cell.api.metadata.labels, &change.labels),
            (&mut cell.api.metadata.annotations, &change.annotations),
        ] {
            let map = map.get_or_insert_default();
            for (key, value) in changes {
                match value {
                    Some(value) => drop(map.insert(key.clone(), value.clone())),
                    None => drop(map.remove(key)),
                }
            }
        }
        cell.report(now);
        cell.refresh(version);
        took
    }

    fn change_pod(&mut self, at: &PodRef, action: &Action) {
        let (version, now) = (self.next(), self.now);
        let owner = gamedeployment_core::gate::owner("fleet", "gd-uid");
        let Some(cell) = self.found(at) else { return };
        let notes = cell.api.metadata.annotations.get_or_insert_default();
        match action {
            Action::Adopt(_) => cell.api.metadata.owner_references = Some(vec![owner]),
            Action::Release(_) => cell.api.metadata.owner_references = None,
            Action::Unmark(_) => {
                notes.remove(names::DELETING);
                notes.remove(names::CHOSEN_FOR);
            }
            Action::Mark(_, text) => {
                notes.insert(names::DELETING.to_owned(), "true".to_owned());
                notes.insert(names::CHOSEN_FOR.to_owned(), text.clone());
            }
            Action::Confirm(confirmed) => {
                drop(notes.insert(names::CONFIRMED.to_owned(), confirmed.revision().to_owned()));
            }
            Action::PutIn(_, finished) => {
                let status = cell.api.status.get_or_insert_default();
                let mark = finished.as_ref().map(|finished| finished.mark.as_str());
                set_condition(status, names::IN_PLACE_READY, true, mark, now);
                cell.report(now);
            }
            other => panic!("not about a pod: {other:?}"),
        }
        cell.refresh(version);
        let cell = &self.pods[&at.name];
        self.referee.changed(cell, action, version);
    }
}

/// The hook of a kind of the pods' life, where one is set.
pub fn has_hook(seen: &Snapshot, kind: HookKind) -> bool {
    let mut spec = seen.object.spec.clone();
    strategy_of(&mut spec, kind)
        .as_ref()
        .is_some_and(|strategy| strategy.hook.is_some())
}
