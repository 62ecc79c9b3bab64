//! Real state of nodes and containers, and the kubelet's reports of it.

use std::rc::Rc;

use gamedeployment_core::pod::{Container as Shown, ContainerState};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shared_api::names::pod::IN_PLACE_READY;

use crate::objects::PodObject;
use crate::server::whole;
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

/// Real state of a pod's containers, in spec order.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    pub node: Option<String>,
    pub containers: Vec<Container>,
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

    /// Returns the running processes.
    pub fn processes(&self) -> Vec<String> {
        let runs = |container: &&Container| matches!(container.process, Process::Runs { .. });
        self.containers
            .iter()
            .filter(runs)
            .map(|container| container.id.clone())
            .collect()
    }

    pub fn runs_its_images(&self, pod: &api::Pod) -> bool {
        let wanted = pod.spec.iter().flat_map(|spec| &spec.containers);
        self.containers.len() == wanted.clone().count()
            && self
                .containers
                .iter()
                .zip(wanted)
                .all(|(container, wanted)| match &container.process {
                    Process::Runs { image, .. } => Some(image) == wanted.image.as_ref(),
                    _ => false,
                })
    }

    /// Returns whether the pod runs the images of its spec, or will again by itself.
    pub fn keeps_its_images(&self, pod: &api::Pod) -> bool {
        let wanted = pod.spec.iter().flat_map(|spec| &spec.containers);
        let kept = |(container, wanted): (&Container, &api::Container)| match &container.process {
            Process::Runs { image, .. } => Some(image) == wanted.image.as_ref(),
            Process::Crashed => Some(&container.image) == wanted.image.as_ref(),
            Process::None | Process::NoImage => false,
        };
        self.containers.len() == wanted.clone().count() && self.containers.iter().zip(wanted).all(kept)
    }

    fn advance(&mut self, pod: &api::Pod, number: u64, now: Timestamp, every_image_exists: bool) -> bool {
        let wanted = &pod.spec.as_ref().unwrap().containers;
        if self.containers.is_empty() {
            let none = Container {
                process: Process::None,
                id: String::new(),
                image: String::new(),
                restarts: 0,
            };
            self.containers = vec![none; wanted.len()];
        }
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
        if started && status.pod_ip.is_none() {
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
    /// reports their state.
    pub fn kubelet(&mut self, pod: &Rc<PodObject>) -> bool {
        let (name, uid) = (&pod.id.name, &pod.id.uid);
        let gone = pod
            .read
            .node
            .as_ref()
            .is_some_and(|node| self.server.nodes.get(node).is_none());
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
        let machine = self.machines.entry(uid.clone()).or_default();
        if machine.node.is_none() {
            let at = usize::try_from(number).unwrap();
            let node = match self.server.nodes.nth(at) {
                Some(node) => node.id.name.clone(),
                None => self.server.add_node(self.now),
            };
            machine.node = Some(node.clone());
            self.foreign += 1;
            let bound = self.server.patch_pod(name, None, None, |pod| {
                pod.spec.as_mut().unwrap().node_name = Some(node);
            });
            return bound.is_ok();
        }
        if self.pods_end_at_once && machine.containers.is_empty() {
            self.end_pod(pod, "Failed");
            return true;
        }
        machine.advance(&pod.api, number, now, self.every_image_exists);
        let machine = machine.clone();
        self.report(pod, &machine)
    }

    fn report(&mut self, pod: &PodObject, machine: &Machine) -> bool {
        let now = self.now;
        let before = self.server.version();
        let reported = self
            .server
            .patch_pod(&pod.id.name, None, None, |pod| machine.report(pod, now));
        let stopped = pod.read.is_ready() && reported.is_ok_and(|pod| !pod.read.is_ready());
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
            let seen = || pod.read.containers.iter().zip(&machine.containers).all(seen);
            let served = machine.served || stopped && seen();
            machine.served = machine.keeps_its_images(&pod.api) && served;
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
            let machine = machine.clone();
            self.report(pod, &machine);
        }
    }

    /// Ends a pod for good: by eviction, or because all its containers have ended.
    pub fn end_pod(&mut self, pod: &Rc<PodObject>, phase: &str) {
        if pod.read.terminating || pod.read.node.is_none() {
            return;
        }
        if let Some(machine) = self.machines.get_mut(&pod.id.uid) {
            for container in &mut machine.containers {
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
