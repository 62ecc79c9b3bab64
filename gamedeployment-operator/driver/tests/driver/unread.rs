//! Objects that cannot be read back after a write with an unknown outcome: the role lacks `get`, or the answer
//! cannot be parsed.

use std::collections::BTreeMap;

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::pod::{InPlaceCondition, Pod};
use gamedeployment_driver::request::{ApiCall, DriverOutput, Object, ObjectKind, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput};
use shared_api::GameDeployment;

use crate::kit::*;

/// API server that stores what it is sent, and refuses to show pods to `get`.
struct Server {
    driver: Driver,
    fleet: GameDeployment,
    pods: BTreeMap<String, Pod>,
    revision: Option<Response>,
    version: u64,
    /// Whether pods can be read.
    shows_pods: bool,
    /// Number of the next creations whose answers are lost.
    lost_creations: usize,
    /// Pod to which no write is answered.
    mute: Option<String>,
    /// Whether the first pod that is put into service becomes [`Self::mute`].
    mutes_first: bool,
    /// Seconds at which a pod was read.
    reads: Vec<u64>,
    /// Objects that the driver reported as unread.
    unread: Vec<String>,
    deleted: Vec<String>,
}

impl Server {
    fn new(replicas: i32) -> Self {
        Self {
            driver: driver(replicas),
            fleet: fleet(replicas),
            pods: BTreeMap::new(),
            revision: None,
            version: 10,
            shows_pods: false,
            lost_creations: 0,
            mute: None,
            mutes_first: false,
            reads: Vec::new(),
            unread: Vec::new(),
            deleted: Vec::new(),
        }
    }

    fn workload(&mut self) -> Workload {
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
            ApiCall::Act(Action::CreateRevision(_)) => {
                let made = made(call);
                self.revision = Some(made.clone());
                Ok(made)
            }
            ApiCall::Read(ObjectKind::Revision, _) => self.revision.clone().ok_or(RequestError::Gone),
            ApiCall::Read(ObjectKind::Workload, _) => {
                let workload = Workload::new(self.fleet.clone());
                Ok(Response::Object(Object::Workload(key("fleet"), workload)))
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

    /// Plays until this second, with a watch that shows no pod by itself.
    fn play(&mut self, from: u64, to: u64) {
        for second in from..to {
            while let Some(output) = self.driver.poll(at(second)) {
                match output {
                    DriverOutput::Send(request) => {
                        let answer = self.answer(&request.call, second);
                        self.driver
                            .handle(DriverInput::Response(request.id, answer), at(second));
                    }
                    DriverOutput::Unread { key, .. } => self.unread.push(key.1),
                    _ => {}
                }
            }
        }
    }

    fn condition(&self, kind: &str) -> Option<(String, String)> {
        let status = self.fleet.status.as_ref()?;
        let mut conditions = status.conditions.iter();
        let known = conditions.find(|known| known.type_ == kind && known.status == "True")?;
        Some((known.reason.clone(), known.message.clone()))
    }

    fn show(&mut self, name: &str) {
        let event = Event::Apply(key(name), self.pods[name].clone());
        self.driver
            .handle(DriverInput::Watch(WatchEvent::Pod(event)), at(1));
    }
}

#[test]
fn a_pod_that_cannot_be_read_back_is_named_and_holds_up_no_other() {
    let mut server = Server::new(3);
    server.lost_creations = 1;
    server.play(2, 9);
    assert_eq!(server.pods.len(), 3, "the others are created");
    let lost = server.unread.clone();
    assert_eq!(lost.len(), 1, "{lost:?}");
    let (reason, message) = server.condition("ScaleBlocked").unwrap();
    assert_eq!(reason, "WriteFailed");
    assert!(
        message.contains(&lost[0]) && message.contains("pods is forbidden (403)"),
        "{message}"
    );
    server.play(9, 600);
    // Reads at 0, 1, 3, 7, 15 and 31 s, then one every 30 s. Another lost answer would add reads of others.
    let of_minute = |minute: u64| server.reads.iter().filter(|at| **at / 60 == minute).count();
    assert!(of_minute(0) <= 8 + 12, "{:?}", server.reads);
    assert_eq!(server.unread.len(), 1, "reported once: {:?}", server.unread);
    assert!(server.condition("ScaleBlocked").is_some());
    // The permission is granted.
    server.shows_pods = true;
    server.play(600, 640);
    assert_eq!(server.condition("ScaleBlocked"), None);
    assert_eq!(server.pods.len(), 3);
}

#[test]
fn a_pod_that_the_watch_shows_is_no_longer_uncertain() {
    let mut server = Server::new(2);
    server.lost_creations = 1;
    server.play(2, 9);
    assert!(server.condition("ScaleBlocked").is_some());
    let lost = server.unread[0].clone();
    server.show(&lost);
    server.play(9, 60);
    assert_eq!(server.condition("ScaleBlocked"), None);
    assert_eq!(server.pods.len(), 2);
}

#[test]
fn another_pod_goes_instead_of_one_that_cannot_be_read() {
    let mut server = Server::new(3);
    server.mutes_first = true;
    server.play(2, 9);
    let mute = server.mute.clone().unwrap();
    assert_eq!(server.unread, std::slice::from_ref(&mute));
    let (reason, message) = server.condition("UpdateBlocked").unwrap();
    assert!(reason == "WriteFailed" && message.contains(&mute), "{message}");
    server.fleet.spec.replicas = Some(1);
    server.fleet.metadata.generation = Some(2);
    let event = Event::Apply(key("fleet"), server.workload());
    server
        .driver
        .handle(DriverInput::Watch(WatchEvent::Workload(event)), at(9));
    server.play(9, 20);
    assert_eq!(server.pods.keys().collect::<Vec<_>>(), [&mute]);
    // Every pod must go now, but nothing can be done to this one.
    server.fleet.spec.replicas = Some(0);
    server.fleet.metadata.generation = Some(3);
    let event = Event::Apply(key("fleet"), server.workload());
    server
        .driver
        .handle(DriverInput::Watch(WatchEvent::Workload(event)), at(20));
    server.play(20, 100);
    assert_eq!(server.deleted.len(), 2, "{:?}", server.deleted);
    server.shows_pods = true;
    server.play(100, 140);
    assert_eq!(server.deleted.len(), 3, "{:?}", server.deleted);
}
