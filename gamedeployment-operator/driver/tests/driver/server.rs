//! API server that stores what it is sent and answers at once.

use std::collections::BTreeMap;

use gamedeployment_core::gate::PodRef;
use gamedeployment_core::guard_check::GuardCheck;
use gamedeployment_core::plan::{Action, GatedWrite, MetadataPatch, NewPod};
use gamedeployment_core::pod::{InPlaceCondition, Pod};
use gamedeployment_driver::request::{
    ApiCall, DriverOutput, Object, ObjectKind, Request, RequestError, Response,
};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput};
use runtime_core::clock::Now;
use serde_json::Value;
use shared_api::GameDeployment;
use shared_api::names::pod as names;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use crate::eviction_api::EvictionApi;
use crate::kit::*;

/// Objects that the watches show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Those that a test lets them show.
    OnDemand,
    /// These, and each object that was written, at once.
    AllWrites,
}

/// A workload, its driver and its API server.
pub(crate) struct Server {
    pub(crate) driver: Driver,
    pub(crate) fleet: GameDeployment,
    pub(crate) pods: BTreeMap<String, Pod>,
    /// Manifests of the pods that were created, in this order.
    pub(crate) manifests: Vec<Value>,
    pub(crate) evictions: EvictionApi,
    pub(crate) shown: Shown,
    revision: Option<Response>,
    pub(crate) version: u64,
    /// Second at which the process started: its clocks show zero then.
    pub(crate) started: u64,
    /// Whether pods can be read.
    pub(crate) shows_pods: bool,
    /// Whether the workload cannot be read.
    pub(crate) hides_workload: bool,
    /// Workload that direct reads show in place of the present one.
    pub(crate) read_instead: Option<GameDeployment>,
    /// Reads of the workload without a response; `None` while they are answered at once.
    pub(crate) held: Option<Vec<Request>>,
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
    /// Label that a mutating webhook removes from the pods that are written.
    pub(crate) strips: Option<&'static str>,
    /// Number of corrections of draining labels.
    pub(crate) corrections: usize,
    /// Response to checks of the removal guard.
    pub(crate) guarded: Result<GuardCheck, RequestError>,
    /// Seconds at which the removal guard was checked.
    pub(crate) checks: Vec<u64>,
}

impl Server {
    pub(crate) fn new(replicas: i32) -> Self {
        Self {
            driver: driver(replicas),
            fleet: fleet(replicas),
            pods: BTreeMap::new(),
            manifests: Vec::new(),
            evictions: EvictionApi::default(),
            shown: Shown::OnDemand,
            revision: None,
            version: 10,
            started: 0,
            shows_pods: true,
            hides_workload: false,
            read_instead: None,
            held: None,
            workload_reads: 0,
            lists: 0,
            lost_creations: 0,
            mute: None,
            mutes_first: false,
            reads: Vec::new(),
            unread: Vec::new(),
            deleted: Vec::new(),
            strips: None,
            corrections: 0,
            guarded: Ok(GuardCheck::Guarded),
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
            ApiCall::Act(Action::CreatePod(new)) => self.create_pod(call, new),
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
                let condition = InPlaceCondition {
                    ready: true,
                    target: String::new(),
                    since: None,
                };
                self.change_pod(&at.name, |pod| pod.in_place = Some(condition))
            }
            ApiCall::Act(
                action @ (Action::RecordSelection(..)
                | Action::ClearSelection(..)
                | Action::SetDrainingLabels(..)
                | Action::SetGuardLabel(..)
                | Action::SetAutoscalerAnnotations(..)),
            ) => self.patch_metadata(action),
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
                let found = self.read_instead.as_ref().unwrap_or(&self.fleet);
                let workload = Workload::new(found.clone());
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
            ApiCall::Act(Action::AddFinalizer) => {
                self.fleet.metadata.finalizers = Some(vec![ASK_BEFORE_REMOVAL.to_owned()]);
                Ok(Response::Object(Object::Workload(key("fleet"), self.workload())))
            }
            ApiCall::Act(Action::RemoveFinalizer(_)) => {
                self.fleet.metadata.finalizers = None;
                Ok(Response::Object(Object::Workload(key("fleet"), self.workload())))
            }
            ApiCall::WriteStatus(status) => {
                self.fleet.status = Some((**status).clone());
                Ok(Response::Object(Object::Workload(key("fleet"), self.workload())))
            }
            ApiCall::Read(ObjectKind::Pod, read) => {
                self.reads.push(second);
                if !self.shows_pods {
                    return Err(RequestError::Refused("pods is forbidden (403)".to_owned()));
                }
                let pod = self.pods.get(&read.1).filter(|pod| *read == key(&pod.name));
                let pod = pod.ok_or(RequestError::Gone)?;
                Ok(Response::Object(Object::Pod(read.clone(), Box::new(pod.clone()))))
            }
            ApiCall::ReportUnreadable(..) => Ok(Response::Done),
            other => panic!("{other:?}"),
        }
    }

    /// Creates a pod. Its UID differs from that of an earlier pod with its name.
    fn create_pod(&mut self, call: &ApiCall, new: &NewPod) -> Result<Response, RequestError> {
        if self.pods.contains_key(&new.name) {
            return Err(RequestError::Conflict);
        }
        let Response::Object(Object::Pod(_, mut pod)) = made(call) else {
            panic!("{call:?}")
        };
        self.manifests.push(new.manifest.clone());
        pod.uid = format!("{}-{}", new.name, self.manifests.len());
        self.pods.insert(new.name.clone(), (*pod).clone());
        if self.lost_creations > 0 {
            self.lost_creations -= 1;
            return Err(RequestError::Unknown("no answer".to_owned()));
        }
        Ok(Response::Object(Object::Pod(key(&new.name), pod)))
    }

    /// Changes labels and annotations of a pod.
    fn patch_metadata(&mut self, action: &Action) -> Result<Response, RequestError> {
        let set = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
        let (at, patch) = match action {
            Action::RecordSelection(at, text, labels) => {
                let marks = [
                    set(names::DELETING, Some("true")),
                    set(names::CHOSEN_FOR, Some(text)),
                ];
                let mut patch = labels.clone();
                patch.annotations.extend(marks);
                (at, patch)
            }
            Action::ClearSelection(at, labels) => {
                let mut patch = labels.clone();
                let marks = [names::DELETING, names::CHOSEN_FOR];
                patch.annotations.extend(marks.map(|key| set(key, None)));
                (at, patch)
            }
            Action::SetDrainingLabels(at, patch) => {
                self.corrections += 1;
                (at, patch.clone())
            }
            Action::SetGuardLabel(at, is_set) => {
                let value = is_set.then_some(names::REMOVAL_GUARD_ASK);
                let mut patch = MetadataPatch::default();
                patch.labels.extend([set(names::REMOVAL_GUARD, value)]);
                (at, patch)
            }
            Action::SetAutoscalerAnnotations(at, patch) => (at, patch.clone()),
            other => panic!("{other:?}"),
        };
        let stripped = self.strips;
        self.change_pod(&at.name, |pod| {
            for (map, changes) in [
                (&mut pod.labels, patch.labels),
                (&mut pod.annotations, patch.annotations),
            ] {
                for (key, value) in changes {
                    map.remove(&key);
                    map.extend(value.map(|value| (key, value)));
                }
            }
            pod.labels.retain(|key, _| Some(key.as_str()) != stripped);
        })
    }

    /// Changes a pod, without showing it.
    pub(crate) fn change_pod(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Pod),
    ) -> Result<Response, RequestError> {
        self.version += 1;
        let pod = self.pods.get_mut(name).ok_or(RequestError::Gone)?;
        pod.resource_version = self.version.to_string();
        change(pod);
        Ok(Response::Object(Object::Pod(key(name), Box::new(pod.clone()))))
    }

    fn check_guard(&mut self, at: &PodRef, second: u64) -> Result<Response, RequestError> {
        self.checks.push(second);
        let pod = self.pods.get(&at.name).ok_or(RequestError::Gone)?;
        if pod.resource_version != at.resource_version {
            return Err(RequestError::Conflict);
        }
        self.guarded.clone().map(Response::Guarded)
    }

    /// Returns the clocks of the process at this second.
    pub(crate) fn now(&self, second: u64) -> Now {
        Now {
            wall: at(second).wall,
            ..at(second - self.started)
        }
    }

    /// Plays these seconds.
    pub(crate) fn play(&mut self, from: u64, to: u64) {
        for second in from..to {
            self.play_at(self.now(second));
        }
    }

    /// Returns the second at which the driver has work by its own account.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let due = self.driver.deadline()?;
        Some(self.started + due.as_secs())
    }

    /// Plays everything that is due at this time.
    pub(crate) fn play_at(&mut self, now: Now) {
        let second = self.second(now);
        // More outputs than any test here needs.
        for _ in 0..10_000 {
            let Some(output) = self.driver.poll(now) else {
                return;
            };
            self.evictions.observe(&output, second);
            match output {
                DriverOutput::Send(request) => self.serve(request, now),
                DriverOutput::Unread { key, .. } => self.unread.push(key.1),
                _ => {}
            }
        }
        panic!("no end: {}", self.driver.describe())
    }

    /// Returns the second of a time of the process.
    fn second(&self, now: Now) -> u64 {
        self.started + now.elapsed.as_secs()
    }

    /// Answers a request, and lets the watches show its effect if they show all writes.
    fn serve(&mut self, request: Request, now: Now) {
        let second = self.second(now);
        if let Some(held) = &mut self.held
            && matches!(request.call, ApiCall::Read(ObjectKind::Workload, _))
        {
            return held.push(request);
        }
        let answer = match &request.call {
            ApiCall::ReportEviction(..) => {
                let Some(answer) = self.evictions.receive(&request, second) else {
                    return;
                };
                answer
            }
            call => self.answer(call, second),
        };
        let event = effect(&request.call, &answer).filter(|_| self.shown == Shown::AllWrites);
        let event = event.or_else(|| self.evictions.effect(&request.call, &answer));
        self.driver.handle(DriverInput::Response(request.id, answer), now);
        if let Some(event) = event {
            self.driver.handle(DriverInput::Watch(event), now);
        }
    }

    /// Answers the reads of the workload that were held, and all later ones at once.
    pub(crate) fn answer_held(&mut self, second: u64) {
        for request in self.held.take().unwrap_or_default() {
            self.serve(request, self.now(second));
        }
    }

    /// Lets a watch show an event.
    pub(crate) fn watch(&mut self, event: WatchEvent, second: u64) {
        let now = self.now(second);
        self.driver.handle(DriverInput::Watch(event), now);
    }

    /// Replaces the process by one with this driver, which starts at this second and lists everything but Evictions.
    pub(crate) fn restart(&mut self, driver: Driver, second: u64) {
        self.driver = driver;
        self.started = second;
        let workloads = vec![(key("fleet"), Workload::new(self.fleet.clone()))];
        let pods = self.pods.values().map(|pod| (key(&pod.name), pod.clone()));
        let revision = match &self.revision {
            Some(Response::Object(Object::Revision(at, revision))) => {
                Some((at.clone(), (**revision).clone()))
            }
            _ => None,
        };
        let lists = [
            listed(workloads, WatchEvent::Workload),
            listed(pods.collect(), WatchEvent::Pod),
            listed(revision.into_iter().collect(), WatchEvent::Revision),
            listed(Vec::new(), |event| WatchEvent::Run(event, None)),
            listed(Vec::new(), WatchEvent::Template),
        ];
        for event in lists.into_iter().flatten() {
            self.watch(event, second);
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

/// Returns the watch event for a write that succeeded.
fn effect(call: &ApiCall, answer: &Result<Response, RequestError>) -> Option<WatchEvent> {
    match (call, answer) {
        (ApiCall::Act(Action::Gated(GatedWrite::DeletePod(delete))), Ok(Response::Gone)) => {
            let pod = delete.pod();
            Some(WatchEvent::Pod(Event::Delete(key(&pod.name), pod.uid.clone())))
        }
        (ApiCall::Act(_) | ApiCall::WriteStatus(_), Ok(Response::Object(object))) => Some(shown(object)),
        _ => None,
    }
}
