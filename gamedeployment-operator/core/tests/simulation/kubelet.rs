//! What happens on nodes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shared_api::names::pod::IN_PLACE_READY;

use crate::world::{Cell, World};

/// A container, as it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Process {
    /// Nothing runs, and nobody can be connected.
    None,
    /// The image cannot be had.
    NoImage,
    /// It runs this image.
    Runs {
        image: String,
        ready: bool,
        since: Timestamp,
    },
    /// It crashed; players may come back to it.
    Crashed,
}

#[derive(Debug, Clone)]
pub struct Container {
    pub process: Process,
    pub id: String,
    pub image: String,
    pub restarts: i32,
}

/// A pod's containers in the spec's order, as they really are.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    pub node: Option<String>,
    pub containers: Vec<Container>,
}

impl Machine {
    /// Whether somebody may be playing.
    pub fn has_players(&self) -> bool {
        let busy =
            |container: &Container| matches!(container.process, Process::Runs { .. } | Process::Crashed);
        self.node.is_some() && self.containers.iter().any(busy)
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
}

impl World {
    /// One thing happens to a pod: it is bound, a container starts, gets ready, ends.
    pub fn kubelet(&mut self, name: &str) -> bool {
        let (version, now) = (self.next(), self.now);
        let Some(cell) = self.pods.get_mut(name) else {
            return false;
        };
        if cell.read.terminating {
            self.pods.remove(name);
            return true;
        }
        if cell
            .read
            .node
            .as_deref()
            .is_some_and(|node| self.gone.contains(node))
        {
            return false;
        }
        if !cell.advance(version, now, self.every_image_exists) {
            return false;
        }
        cell.report(now);
        cell.refresh(version);
        true
    }

    /// A container of a pod crashes.
    pub fn crash(&mut self, name: &str, at: usize) {
        let (version, now) = (self.next(), self.now);
        let Some(cell) = self.pods.get_mut(name) else {
            return;
        };
        if let Some(container) = cell.machine.containers.get_mut(at)
            && matches!(container.process, Process::Runs { .. })
        {
            container.process = Process::Crashed;
            cell.report(now);
            cell.refresh(version);
        }
    }
}

impl Cell {
    fn advance(&mut self, version: u64, now: Timestamp, every_image_exists: bool) -> bool {
        let spec = self.api.spec.as_mut().unwrap();
        if self.machine.node.is_none() {
            let node = format!("node-{version}");
            spec.node_name = Some(node.clone());
            self.machine.node = Some(node);
            return true;
        }
        if self.machine.containers.is_empty() {
            let none = Container {
                process: Process::None,
                id: String::new(),
                image: String::new(),
                restarts: 0,
            };
            self.machine.containers = vec![none; spec.containers.len()];
        }
        let mut changed = false;
        for (container, wanted) in self.machine.containers.iter_mut().zip(&spec.containers) {
            let wanted = wanted.image.clone().unwrap();
            let missing = wanted.ends_with("bad") && !every_image_exists;
            let next = match &container.process {
                Process::NoImage if missing => continue,
                Process::None | Process::Crashed if missing => Process::NoImage,
                Process::NoImage | Process::None | Process::Crashed => {
                    container.restarts += i32::from(!container.id.is_empty());
                    container.id = format!("docker://{version}-{wanted}");
                    container.image.clone_from(&wanted);
                    Process::Runs {
                        image: wanted,
                        ready: false,
                        since: now,
                    }
                }
                Process::Runs { image, .. } if *image != wanted => Process::None,
                Process::Runs { ready: true, .. } => continue,
                Process::Runs { image, since, .. } => Process::Runs {
                    image: image.clone(),
                    ready: true,
                    since: *since,
                },
            };
            container.process = next;
            changed = true;
        }
        changed
    }

    /// Writes the status.
    pub fn report(&mut self, now: Timestamp) {
        let spec = self.api.spec.as_ref().unwrap();
        let gated = spec
            .readiness_gates
            .as_ref()
            .is_some_and(|gates| !gates.is_empty());
        let machine = &self.machine;
        let statuses = machine
            .containers
            .iter()
            .zip(&spec.containers)
            .map(|(container, wanted)| status_of(container, wanted));
        let statuses: Vec<_> = statuses.collect();
        let all = |is: fn(&Process) -> bool| {
            !machine.containers.is_empty()
                && machine.containers.iter().all(|container| is(&container.process))
        };
        let ready = all(|process| matches!(process, Process::Runs { ready: true, .. }));
        let started = machine
            .containers
            .iter()
            .any(|container| !container.id.is_empty());
        let status = self.api.status.get_or_insert_default();
        let in_place = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == IN_PLACE_READY);
        let open = in_place.map_or(!gated, |condition| condition.status == "True");
        let ready = ready && (open || !gated);
        status.phase = Some(
            if started && status.phase.as_deref() != Some("Failed") {
                "Running"
            } else {
                "Pending"
            }
            .to_owned(),
        );
        if machine.node.is_some() && status.host_ip.is_none() {
            status.start_time = Some(Time(Timestamp::from_second(now.as_second()).unwrap()));
            status.host_ip = Some("10.0.0.1".to_owned());
        }
        if !statuses.is_empty() && status.pod_ip.is_none() {
            status.pod_ip = Some("10.1.0.1".to_owned());
        }
        status.container_statuses = (!statuses.is_empty()).then_some(statuses);
        set_condition(status, "Ready", ready, None, now);
    }
}

pub fn set_condition(
    status: &mut api::PodStatus,
    kind: &str,
    on: bool,
    message: Option<&str>,
    now: Timestamp,
) {
    let text = if on { "True" } else { "False" };
    let now = Timestamp::from_second(now.as_second()).unwrap();
    let conditions = status.conditions.get_or_insert_default();
    let at = conditions
        .iter()
        .position(|condition| condition.type_ == kind)
        .unwrap_or_else(|| {
            let fresh = api::PodCondition {
                type_: kind.to_owned(),
                ..api::PodCondition::default()
            };
            conditions.push(fresh);
            conditions.len() - 1
        });
    let condition = &mut conditions[at];
    if condition.status != text {
        condition.last_transition_time = Some(Time(now));
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
    api::ContainerStatus {
        name: wanted.name.clone(),
        image: if container.image.is_empty() {
            wanted.image.clone().unwrap()
        } else {
            container.image.clone()
        },
        image_id: if container.image.is_empty() {
            String::new()
        } else {
            format!("sha256:{}", container.image)
        },
        container_id: (!container.id.is_empty()).then(|| container.id.clone()),
        restart_count: container.restarts,
        ready: matches!(container.process, Process::Runs { ready: true, .. }),
        state: Some(state),
        ..api::ContainerStatus::default()
    }
}
