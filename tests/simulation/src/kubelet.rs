//! Real state of nodes and containers, and the kubelet's reports of it.

use std::rc::Rc;

use gamedeployment_core::pod::{Container as Shown, ContainerState};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, Time};
use serde_json::json;
use shared_api::names::pod::IN_PLACE_READY;

use crate::objects::{NodeObject, PodObject};
use crate::server::whole;
use crate::taints::accepts;
use crate::world::World;

/// Real state of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Process {
    /// Runs nothing, so no player can be connected.
    None,
    /// Cannot pull its image.
    NoImage,
    /// Runs this image.
    Runs {
        image: String,
        ready: bool,
        since: Timestamp,
    },
    /// Crashed; players may reconnect to it.
    Crashed,
}

#[derive(Debug, Clone)]
pub struct Container {
    pub process: Process,
    pub id: String,
    pub image: String,
    pub restarts: i32,
}

impl Container {
    fn runs(&self) -> bool {
        matches!(self.process, Process::Runs { .. })
    }
}

/// Real state of a pod's containers, in spec order.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    pub node: Option<String>,
    pub containers: Vec<Container>,
    /// Containers as the kubelet last reported them.
    pub reported: Vec<Container>,
    /// Time when its images are pulled.
    pub pulled_at: Timestamp,
    /// Whether the pod is not ready, or does not become ready.
    pub sick: bool,
    /// Whether the pod has been ready with its images long enough to be observed.
    pub served: bool,
}

impl Machine {
    /// Whether the pod may have players.
    pub fn has_players(&self) -> bool {
        let busy =
            |container: &Container| matches!(container.process, Process::Runs { .. } | Process::Crashed);
        self.node.is_some() && self.containers.iter().any(busy)
    }

    /// Whether any of its containers runs.
    pub fn runs(&self) -> bool {
        self.containers.iter().any(Container::runs)
    }

    /// Returns the processes that are reported to run.
    pub fn processes(&self) -> Vec<String> {
        let running = self.reported.iter().filter(|container| container.runs());
        running.map(|container| container.id.clone()).collect()
    }

    /// Returns whether the pod is reported to run the images of its spec.
    pub fn runs_its_images(&self, pod: &api::Pod) -> bool {
        let wanted = pod.spec.iter().flat_map(|spec| &spec.containers);
        self.reported.len() == wanted.clone().count()
            && self
                .reported
                .iter()
                .zip(wanted)
                .all(|(container, wanted)| match &container.process {
                    Process::Runs { image, .. } => Some(image) == wanted.image.as_ref(),
                    _ => false,
                })
    }

    /// Returns whether the pod is reported to run the images of its spec, or will again by itself.
    pub fn keeps_its_images(&self, pod: &api::Pod) -> bool {
        let wanted = pod.spec.iter().flat_map(|spec| &spec.containers);
        let kept = |(container, wanted): (&Container, &api::Container)| match &container.process {
            Process::Runs { image, .. } => Some(image) == wanted.image.as_ref(),
            Process::Crashed => Some(&container.image) == wanted.image.as_ref(),
            Process::None | Process::NoImage => false,
        };
        self.reported.len() == wanted.clone().count() && self.reported.iter().zip(wanted).all(kept)
    }

    /// Prepares the containers, which start once their images are pulled.
    fn accept(&mut self, pod: &api::Pod, pulled_at: Timestamp) {
        let none = Container {
            process: Process::None,
            id: String::new(),
            image: String::new(),
            restarts: 0,
        };
        self.containers = vec![none; pod.spec.as_ref().unwrap().containers.len()];
        self.pulled_at = pulled_at;
    }

    fn advance(&mut self, pod: &api::Pod, number: u64, now: Timestamp, every_image_exists: bool) -> bool {
        if now < self.pulled_at {
            return false;
        }
        let wanted = &pod.spec.as_ref().unwrap().containers;
        let mut changed = false;
        for (container, wanted) in self.containers.iter_mut().zip(wanted) {
            let wanted = wanted.image.clone().unwrap();
            let missing = wanted.ends_with("bad") && !every_image_exists;
            let next = match &container.process {
                Process::NoImage if missing => continue,
                Process::None | Process::Crashed if missing => Process::NoImage,
                Process::NoImage | Process::None | Process::Crashed => {
                    container.restarts += i32::from(!container.id.is_empty());
                    container.id = format!("docker://{number}-{wanted}");
                    container.image.clone_from(&wanted);
                    Process::Runs {
                        image: wanted,
                        ready: false,
                        since: whole(now),
                    }
                }
                Process::Runs { image, .. } if *image != wanted => Process::None,
                Process::Runs { ready, .. } if *ready != self.sick => continue,
                Process::Runs { image, since, .. } => Process::Runs {
                    image: image.clone(),
                    ready: !self.sick,
                    since: *since,
                },
            };
            container.process = next;
            changed = true;
        }
        changed
    }

    /// Writes the status.
    fn report(&self, pod: &mut api::Pod, now: Timestamp) {
        let spec = pod.spec.as_ref().unwrap();
        let gated = spec
            .readiness_gates
            .as_ref()
            .is_some_and(|gates| !gates.is_empty());
        let pairs = self.containers.iter().zip(&spec.containers);
        let statuses: Vec<_> = pairs
            .map(|(container, wanted)| status_of(container, wanted))
            .collect();
        let is_ready = |container: &Container| matches!(container.process, Process::Runs { ready: true, .. });
        let ready = !self.containers.is_empty() && self.containers.iter().all(is_ready);
        let started = self.containers.iter().any(|container| !container.id.is_empty());
        let status = pod.status.get_or_insert_default();
        if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
            return;
        }
        let mut conditions = status.conditions.iter().flatten();
        let in_place = conditions.find(|condition| condition.type_ == IN_PLACE_READY);
        let open = in_place.map_or(!gated, |condition| condition.status == "True");
        status.phase = Some(if started { "Running" } else { "Pending" }.to_owned());
        if let Some(node) = &self.node {
            status.start_time.get_or_insert(Time(whole(now)));
            status
                .host_ip
                .get_or_insert_with(|| format!("10.0.0.{}", node.len()));
        }
        if !self.containers.is_empty() && status.pod_ip.is_none() {
            // Addresses are unique here, so that each endpoint identifies its pod.
            let number = pod
                .metadata
                .uid
                .as_deref()
                .unwrap_or_default()
                .replace("pod-", "");
            status.pod_ip = Some(address(number.parse().unwrap_or(0)));
        }
        status.container_statuses = (!statuses.is_empty()).then_some(statuses);
        set_condition(status, "Ready", ready && (open || !gated), None, now);
    }
}

/// Returns the API server's note of a kubelet's report.
fn report_at(now: Timestamp) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some("kubelet".to_owned()),
        time: Some(Time(whole(now))),
        fields_v1: Some(FieldsV1(json!({"f:status": {"f:containerStatuses": {}}}))),
        ..ManagedFieldsEntry::default()
    }
}

fn address(number: u64) -> String {
    format!(
        "10.{}.{}.{}",
        1 + number / 62500 % 250,
        number / 250 % 250,
        number % 250
    )
}

pub fn set_condition(
    status: &mut api::PodStatus,
    kind: &str,
    on: bool,
    message: Option<&str>,
    now: Timestamp,
) {
    let text = if on { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    let at = conditions.iter().position(|condition| condition.type_ == kind);
    let at = at.unwrap_or_else(|| {
        conditions.push(api::PodCondition {
            type_: kind.to_owned(),
            ..api::PodCondition::default()
        });
        conditions.len() - 1
    });
    let condition = &mut conditions[at];
    if condition.status != text {
        condition.last_transition_time = Some(Time(whole(now)));
    }
    text.clone_into(&mut condition.status);
    condition.message = message.map(str::to_owned);
}

fn status_of(container: &Container, wanted: &api::Container) -> api::ContainerStatus {
    let mut state = api::ContainerState::default();
    let waiting = |reason: &str| {
        Some(api::ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message: None,
        })
    };
    match &container.process {
        Process::None => state.waiting = waiting("ContainerCreating"),
        Process::NoImage => state.waiting = waiting("ImagePullBackOff"),
        Process::Crashed => state.waiting = waiting("CrashLoopBackOff"),
        Process::Runs { since, .. } => {
            state.running = Some(api::ContainerStateRunning {
                started_at: Some(Time(*since)),
            });
        }
    }
    let named = !container.image.is_empty();
    api::ContainerStatus {
        name: wanted.name.clone(),
        image: if named {
            container.image.clone()
        } else {
            wanted.image.clone().unwrap()
        },
        image_id: if named {
            format!("sha256:{}", container.image)
        } else {
            String::new()
        },
        container_id: (!container.id.is_empty()).then(|| container.id.clone()),
        restart_count: container.restarts,
        ready: matches!(container.process, Process::Runs { ready: true, .. }),
        state: Some(state),
        ..api::ContainerStatus::default()
    }
}

impl World {
    /// Advances a pod by one step: binds it, removes it once it terminates, or advances its containers and
    /// reports their state. A silent kubelet removes nothing and reports nothing.
    pub fn kubelet(&mut self, pod: &Rc<PodObject>) -> bool {
        let uid = &pod.id.uid;
        let gone = pod
            .read
            .node
            .as_ref()
            .is_some_and(|node| self.server.nodes.get(node).is_none());
        if self.is_silent(pod) {
            return !gone && self.go_on_unseen(pod);
        }
        if pod.read.terminating && !gone {
            self.foreign += 1;
            self.server.remove_pod(pod);
            self.machines.remove(uid);
            return true;
        }
        if gone || pod.read.is_finished() {
            return false;
        }
        let now = self.now;
        let number = self.server.number();
        let pull = self.pull_time(number);
        let machine = self.machines.entry(uid.clone()).or_default();
        if machine.node.is_none() {
            return self.bind(pod, number);
        }
        if machine.containers.is_empty() {
            if self.pods_end_at_once {
                self.end_pod(pod, "Failed");
                return true;
            }
            machine.accept(&pod.api, now + pull);
        } else {
            machine.advance(&pod.api, number, now, self.every_image_exists);
        }
        self.report(pod)
    }

    /// Advances the containers of a pod whose kubelet is silent, as far as it knows of the pod.
    fn go_on_unseen(&mut self, pod: &PodObject) -> bool {
        let silence = pod.read.node.as_ref().and_then(|node| self.silences.get(node));
        let known = silence.and_then(|silence| silence.pods.get(&pod.id.uid)).cloned();
        let number = self.server.number();
        let (Some(known), Some(machine)) = (known, self.machines.get_mut(&pod.id.uid)) else {
            return false;
        };
        let ends = known.read.terminating || known.read.is_finished() || machine.containers.is_empty();
        !ends && machine.advance(&known.api, number, self.now, self.every_image_exists)
    }

    /// Returns the time that a new pod's images take to be pulled.
    fn pull_time(&self, number: u64) -> SignedDuration {
        let slow = self.profile.trouble > 0;
        SignedDuration::from_secs(if slow {
            [0, 3, 40, 100][(number % 4) as usize]
        } else {
            0
        })
    }

    /// Binds a pod to a node that accepts it, as the scheduler does. If there is none, an autoscaler adds one.
    fn bind(&mut self, pod: &PodObject, number: u64) -> bool {
        let fits = |node: &&Rc<NodeObject>| accepts(node, &pod.api);
        let fitting: Vec<_> = self.server.nodes.iter().filter(fits).collect();
        let at = usize::try_from(number).unwrap() % fitting.len().max(1);
        let node = match fitting.get(at) {
            Some(node) => node.id.name.clone(),
            None => self.server.add_node(self.now),
        };
        if let Some(machine) = self.machines.get_mut(&pod.id.uid) {
            machine.node = Some(node.clone());
        }
        self.foreign += 1;
        let bound = self.server.patch_pod(&pod.id.name, None, None, |pod| {
            pod.spec.as_mut().unwrap().node_name = Some(node);
        });
        bound.is_ok()
    }

    /// Reports the state of a pod's containers. Returns whether that changed the pod.
    pub(crate) fn report(&mut self, pod: &PodObject) -> bool {
        let Some(machine) = self.machines.get(&pod.id.uid).cloned() else {
            return false;
        };
        self.unreported.remove(&pod.id.uid);
        let now = self.now;
        let changed = self.write_status(pod, |pod| {
            let before = pod.status.clone();
            machine.report(pod, now);
            if pod.status != before {
                pod.metadata.managed_fields = Some(vec![report_at(now)]);
            }
        });
        if let Some(known) = self.machines.get_mut(&pod.id.uid) {
            known.reported.clone_from(&machine.containers);
            known.served &= known.keeps_its_images(&pod.api);
        }
        changed
    }

    /// Writes a pod's status, and notes whether the pod has served until then. Returns whether it changed.
    pub(crate) fn write_status(&mut self, pod: &PodObject, write: impl FnOnce(&mut api::Pod)) -> bool {
        let now = self.now;
        let before = self.server.version();
        let written = self.server.patch_pod(&pod.id.name, None, None, write);
        let stopped = pod.read.is_ready() && written.is_ok_and(|pod| !pod.read.is_ready());
        if let Some(machine) = self.machines.get_mut(&pod.id.uid) {
            // With new images, it has to serve again. Object times are whole seconds, so anything shorter is
            // unobservable.
            let seen = |(shown, real): (&Shown, &Container)| {
                let since = match &shown.state {
                    ContainerState::Running { since } => *since,
                    _ => None,
                };
                shown.running_image == real.image && since.is_some_and(|since| since < whole(now))
            };
            let seen = || pod.read.containers.iter().zip(&machine.reported).all(seen);
            machine.served |= stopped && seen();
        }
        let changed = self.server.version() > before;
        self.foreign += u64::from(changed);
        changed
    }

    /// Crashes a container of a pod.
    pub fn crash_container(&mut self, pod: &Rc<PodObject>, at: usize) {
        if pod.read.is_finished() {
            return;
        }
        let Some(machine) = self.machines.get_mut(&pod.id.uid) else {
            return;
        };
        let count = machine.containers.len().max(1);
        if let Some(container) = machine.containers.get_mut(at % count)
            && matches!(container.process, Process::Runs { .. })
        {
            container.process = Process::Crashed;
            if !self.is_silent(pod) {
                self.report(pod);
            }
        }
    }

    /// Ends a pod: by eviction, or because all its containers have ended. A silent kubelet ends no pod.
    pub fn end_pod(&mut self, pod: &Rc<PodObject>, phase: &str) {
        if pod.read.terminating || pod.read.node.is_none() || self.is_silent(pod) {
            return;
        }
        if let Some(machine) = self.machines.get_mut(&pod.id.uid) {
            for container in machine.containers.iter_mut().chain(&mut machine.reported) {
                container.process = Process::None;
            }
        }
        self.foreign += 1;
        let now = self.now;
        let _ = self.server.patch_pod(&pod.id.name, None, None, |pod| {
            let status = pod.status.get_or_insert_default();
            status.phase = Some(phase.to_owned());
            set_condition(status, "Ready", false, None, now);
        });
    }
}
