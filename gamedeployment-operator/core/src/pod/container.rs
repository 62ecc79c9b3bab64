//! What is known of one container of a pod.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Reasons of a waiting container whose image or configuration keeps it from starting at all.
const CANNOT_START: [&str; 8] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// What a container does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The kubelet has not said anything of it.
    Unknown,
    /// It runs.
    Running {
        /// When it was started, by its kubelet.
        since: Option<Timestamp>,
    },
    /// It is to be started.
    Waiting {
        /// The kubelet's word, such as `ImagePullBackOff`.
        reason: String,
        /// The kubelet's sentence.
        message: String,
    },
    /// It has ended.
    Terminated,
}

/// What is known of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// As the pod's spec names it.
    pub name: String,
    /// The image that the pod's spec asks for.
    pub image: String,
    /// The image that the kubelet reports.
    pub running_image: String,
    /// The image's digest that the kubelet reports.
    pub image_id: String,
    /// The container's id; it changes with every start.
    pub container_id: String,
    /// How often it was restarted.
    pub restarts: i32,
    /// Whether it is ready.
    pub ready: bool,
    /// What it does.
    pub state: State,
}

impl Container {
    /// Whether it was never started, or waits for an image or a configuration that it does not get.
    pub fn cannot_have_players(&self) -> bool {
        match &self.state {
            State::Running { .. } | State::Terminated | State::Unknown => false,
            State::Waiting { reason, .. } => {
                self.container_id.is_empty() && self.restarts == 0 || CANNOT_START.contains(&reason.as_str())
            }
        }
    }

    /// Whether it runs now.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Why it does not start, as the kubelet says it; none while there is nothing to complain of.
    pub fn complaint(&self) -> Option<String> {
        match &self.state {
            State::Waiting { reason, message } if !HARMLESS.contains(&reason.as_str()) => {
                let colon = if message.is_empty() { "" } else { ": " };
                Some(format!(
                    "container {} is waiting: {reason}{colon}{message}",
                    self.name
                ))
            }
            State::Waiting { .. } | State::Running { .. } | State::Unknown | State::Terminated => None,
        }
    }
}

/// Reasons of waiting that pass by themselves.
const HARMLESS: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

pub(super) fn read_all(spec: Option<&api::PodSpec>, status: Option<&api::PodStatus>) -> Vec<Container> {
    let statuses = status.and_then(|status| status.container_statuses.as_deref());
    let containers = spec.map(|spec| spec.containers.iter());
    read_each(containers.into_iter().flatten(), statuses)
}

/// An init container that is restarted is one that stays.
pub(super) fn read_sidecars(spec: Option<&api::PodSpec>, status: Option<&api::PodStatus>) -> Vec<Container> {
    let statuses = status.and_then(|status| status.init_container_statuses.as_deref());
    let containers = spec.and_then(|spec| spec.init_containers.as_ref());
    let stays = |container: &&api::Container| container.restart_policy.as_deref() == Some("Always");
    read_each(containers.into_iter().flatten().filter(stays), statuses)
}

fn read_each<'a>(
    containers: impl Iterator<Item = &'a api::Container>,
    statuses: Option<&[api::ContainerStatus]>,
) -> Vec<Container> {
    let read = containers.map(|container| {
        let status = statuses
            .into_iter()
            .flatten()
            .find(|status| status.name == container.name);
        read(container, status)
    });
    read.collect()
}

fn read(container: &api::Container, status: Option<&api::ContainerStatus>) -> Container {
    Container {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        running_image: status.map(|status| status.image.clone()).unwrap_or_default(),
        image_id: status.map(|status| status.image_id.clone()).unwrap_or_default(),
        container_id: status
            .and_then(|status| status.container_id.clone())
            .unwrap_or_default(),
        restarts: status.map_or(0, |status| status.restart_count),
        ready: status.is_some_and(|status| status.ready),
        state: status
            .and_then(|status| status.state.as_ref())
            .map_or(State::Unknown, state_of),
    }
}

fn state_of(state: &api::ContainerState) -> State {
    if let Some(running) = &state.running {
        let since = running.started_at.as_ref().map(|Time(at)| *at);
        return State::Running { since };
    }
    if state.terminated.is_some() {
        return State::Terminated;
    }
    match &state.waiting {
        Some(waiting) => State::Waiting {
            reason: waiting.reason.clone().unwrap_or_default(),
            message: waiting.message.clone().unwrap_or_default(),
        },
        // A report that names no state means waiting.
        None => State::Waiting {
            reason: String::new(),
            message: String::new(),
        },
    }
}
