//! API server that stores what it is sent and answers at once.

use std::collections::BTreeMap;

use gamedeployment_core::gate::PodRef;
use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::pod::{InPlaceCondition, Pod};
use gamedeployment_driver::request::{ApiCall, DriverOutput, Object, ObjectKind, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput};
use runtime_core::clock::Now;
use shared_api::GameDeployment;
use shared_api::names::pod as names;

use crate::kit::*;

/// A workload, its driver and its API server. The watch shows only what a test lets it show.
pub(crate) struct Server {
    pub(crate) driver: Driver,
    pub(crate) fleet: GameDeployment,
    pub(crate) pods: BTreeMap<String, Pod>,
    revision: Option<Response>,
    pub(crate) version: u64,
    /// Whether pods can be read.
    pub(crate) shows_pods: bool,
    /// Whether the workload cannot be read.
    pub(crate) hides_workload: bool,
    /// Number of reads of the workload.
    pub(crate) workload_reads: usize,
    /// Number of lists of the pods.
    pub(crate) lists: usize,
    /// Number of the next creations whose answers are lost.
    pub(crate) lost_creations: usize,
    /// Pod to which no write is answered.
    pub(crate) mute: Option<String>,
    /// Whether the first pod that is put into service becomes [`Self::mute`].
    pub(crate) mutes_first: bool,
    /// Seconds at which a pod was read.
    pub(crate) reads: Vec<u64>,
    /// Objects that the driver reported as unread.
    pub(crate) unread: Vec<String>,
    pub(crate) deleted: Vec<String>,
    /// Response to checks of the removal guard.
    pub(crate) guarded: Result<bool, RequestError>,
    /// Seconds at which the removal guard was checked.
    pub(crate) checks: Vec<u64>,
}

impl Server {
    pub(crate) fn new(replicas: i32) -> Self {
        Self {
            driver: driver(replicas),
            fleet: fleet(replicas),
            pods: BTreeMap::new(),
            revision: None,
            version: 10,
            shows_pods: true,
            hides_workload: false,
            workload_reads: 0,
            lists: 0,
            lost_creations: 0,
            mute: None,
            mutes_first: false,
            reads: Vec::new(),
            unread: Vec::new(),
            deleted: Vec::new(),
            guarded: Ok(true),
            checks: Vec::new(),
        }
    }

    pub(crate) fn workload(&mut self) -> Workload {
        self.version += 1;
        self.fleet.metadata.resource_version = Some(self.version.to_string());
        Workload::new(self.fleet.clone())
    }

    fn answer(&mut self, call: &ApiCall, second: u64) -> Result<Response, RequestError> {
        match call {
            ApiCall::Act(Action::CreatePod(new)) => {
                if self.pods.contains_key(&new.name) {
                    return Err(RequestError::Conflict);
                }
                let Response::Object(Object::Pod(_, pod)) = made(call) else {
                    panic!("{call:?}")
                };
                self.pods.insert(new.name.clone(), (*pod).clone());
                if self.lost_creations > 0 {
                    self.lost_creations -= 1;
                    return Err(RequestError::Unknown("no answer".to_owned()));
                }
                Ok(Response::Object(Object::Pod(key(&new.name), pod)))
            }
            ApiCall::Act(Action::Gated(GatedWrite::DeletePod(delete))) => {
                self.deleted.push(delete.pod().name.clone());
                self.pods.remove(&delete.pod().name);
                Ok(Response::Gone)
            }
            ApiCall::Act(Action::SetReady(at, _)) => {
                if self.mute.is_none() && self.mutes_first {
                    self.mute = Some(at.name.clone());
                }
                if self.mute.as_ref() == Some(&at.name) {
                    return Err(RequestError::Unknown("no answer".to_owned()));
                }
                self.version += 1;
                let pod = self.pods.get_mut(&at.name).ok_or(RequestError::Gone)?;
                pod.resource_version = self.version.to_string();
                pod.in_place = Some(InPlaceCondition {
                    ready: true,
                    target: String::new(),
                    since: None,
                });
                Ok(Response::Object(Object::Pod(
                    key(&at.name),
                    Box::new(pod.clone()),
                )))
            }
            ApiCall::Act(Action::RecordSelection(at, text)) => {
                self.version += 1;
                let pod = self.pods.get_mut(&at.name).ok_or(RequestError::Gone)?;
                pod.resource_version = self.version.to_string();
                let marks = [(names::DELETING, "true"), (names::CHOSEN_FOR, text)];
                let marks = marks.map(|(key, value)| (key.to_owned(), value.to_owned()));
                pod.annotations.extend(marks);
                Ok(Response::Object(Object::Pod(
                    key(&at.name),
                    Box::new(pod.clone()),
                )))
            }
            ApiCall::Act(Action::CreateRevision(_)) => {
                let made = made(call);
                self.revision = Some(made.clone());
                Ok(made)
            }
            ApiCall::Read(ObjectKind::Revision, _) => self.revision.clone().ok_or(RequestError::Gone),
            ApiCall::Read(ObjectKind::Workload, _) if self.hides_workload => Err(RequestError::Refused(
                "gamedeployments is forbidden (403)".to_owned(),
            )),
            ApiCall::Read(ObjectKind::Workload, _) => {
                self.workload_reads += 1;
                let workload = Workload::new(self.fleet.clone());
                Ok(Response::Object(Object::Workload(key("fleet"), workload)))
            }
            ApiCall::CheckGuard(_, at) => self.check_guard(at, second),
            ApiCall::FindPod(_) => {
                self.lists += 1;
                if !self.shows_pods {
                    return Err(RequestError::Refused("pods is forbidden (403)".to_owned()));
                }
                let found = self.pods.values().next().map(|pod| {
                    let key = key(&pod.name);
                    Response::Object(Object::Pod(key, Box::new(pod.clone())))
                });
                Ok(found.unwrap_or(Response::Gone))
            }
            ApiCall::Act(Action::RemoveFinalizer(_)) => {
                self.fleet.metadata.finalizers = None;
                Ok(Response::Object(Object::Workload(key("fleet"), self.workload())))
            }
            ApiCall::WriteStatus(status) => {
                self.fleet.status = Some((**status).clone());
                Ok(Response::Object(Object::Workload(key("fleet"), self.workload())))
            }
            ApiCall::Read(ObjectKind::Pod, (_, name)) => {
                self.reads.push(second);
                if !self.shows_pods {
                    return Err(RequestError::Refused("pods is forbidden (403)".to_owned()));
                }
                let pod = self.pods.get(name).ok_or(RequestError::Gone)?;
                Ok(Response::Object(Object::Pod(key(name), Box::new(pod.clone()))))
            }
            other => panic!("{other:?}"),
        }
    }

    fn check_guard(&mut self, at: &PodRef, second: u64) -> Result<Response, RequestError> {
        self.checks.push(second);
        let pod = self.pods.get(&at.name).ok_or(RequestError::Gone)?;
        if pod.resource_version != at.resource_version {
            return Err(RequestError::Conflict);
        }
        self.guarded.clone().map(Response::Guarded)
    }

    /// Plays these seconds.
    pub(crate) fn play(&mut self, from: u64, to: u64) {
        for second in from..to {
            self.play_at(at(second));
        }
    }

    /// Plays everything that is due at this time.
    pub(crate) fn play_at(&mut self, now: Now) {
        while let Some(output) = self.driver.poll(now) {
            match output {
                DriverOutput::Send(request) => {
                    let answer = self.answer(&request.call, now.elapsed.as_secs());
                    self.driver.handle(DriverInput::Response(request.id, answer), now);
                }
                DriverOutput::Unread { key, .. } => self.unread.push(key.1),
                _ => {}
            }
        }
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<(String, String)> {
        let status = self.fleet.status.as_ref()?;
        let mut conditions = status.conditions.iter();
        let known = conditions.find(|known| known.type_ == kind && known.status == "True")?;
        Some((known.reason.clone(), known.message.clone()))
    }

    /// Lets the watches show everything that was written.
    pub(crate) fn show_all(&mut self) {
        for name in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.show(&name);
        }
        let workload = Object::Workload(key("fleet"), Workload::new(self.fleet.clone()));
        let revision = match &self.revision {
            Some(Response::Object(revision)) => Some(revision.clone()),
            _ => None,
        };
        for object in revision.into_iter().chain([workload]) {
            self.driver.handle(DriverInput::Watch(shown(&object)), at(1));
        }
    }

    pub(crate) fn show(&mut self, name: &str) {
        let event = Event::Apply(key(name), self.pods[name].clone());
        self.driver
            .handle(DriverInput::Watch(WatchEvent::Pod(event)), at(1));
    }
}
