//! Cached facts about a container of a pod.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Waiting reasons for an image that the kubelet cannot get, so that a container does not start at all.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
];

/// Waiting reasons for a configuration that keeps a container from starting at all.
const NO_CONFIGURATION: [&str; 2] = ["CreateContainerConfigError", "CreateContainerError"];

/// State of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerState {
    /// The kubelet has not reported it.
    Unknown,
    /// Running.
    Running {
        /// Start time, as reported by the kubelet.
        since: Option<Timestamp>,
    },
    /// Waiting to start.
    Waiting {
        /// Reason from the kubelet, such as `ImagePullBackOff`.
        reason: String,
        /// Message from the kubelet.
        message: String,
    },
    /// Ended.
    Terminated,
}

/// Cached facts about a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Name in the pod's spec.
    pub name: String,
    /// Image in the pod's spec.
    pub image: String,
    /// Image that the kubelet reports.
    pub running_image: String,
    /// Image digest that the kubelet reports.
    pub image_id: String,
    /// Container ID; it changes with every start.
    pub container_id: String,
    /// Number of restarts.
    pub restarts: i32,
    /// Whether the container is ready.
    pub ready: bool,
    /// State.
    pub state: ContainerState,
}

impl Container {
    /// Returns whether the container was never started, or waits for an image or a configuration that is
    /// unavailable.
    pub fn cannot_have_players(&self) -> bool {
        match &self.state {
            ContainerState::Running { .. } | ContainerState::Terminated | ContainerState::Unknown => false,
            ContainerState::Waiting { reason, .. } => {
                let was_never_started = self.container_id.is_empty() && self.restarts == 0;
                was_never_started || self.lacks_image() || NO_CONFIGURATION.contains(&reason.as_str())
            }
        }
    }

    /// Returns whether the container waits for an image that the kubelet cannot get.
    pub fn lacks_image(&self) -> bool {
        matches!(&self.state, ContainerState::Waiting { reason, .. } if NO_IMAGE.contains(&reason.as_str()))
    }

    /// Returns whether the container is running.
    pub fn is_running(&self) -> bool {
        matches!(self.state, ContainerState::Running { .. })
    }

    /// Returns why it does not start, in the kubelet's words; `None` if there is no error.
    pub fn complaint(&self) -> Option<String> {
        match &self.state {
            ContainerState::Waiting { reason, message } if !HARMLESS.contains(&reason.as_str()) => {
                let colon = if message.is_empty() { "" } else { ": " };
                Some(format!(
                    "container {} is waiting: {reason}{colon}{message}",
                    self.name
                ))
            }
            ContainerState::Waiting { .. }
            | ContainerState::Running { .. }
            | ContainerState::Unknown
            | ContainerState::Terminated => None,
        }
    }
}

/// Waiting reasons that resolve by themselves.
const HARMLESS: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

pub(super) fn read_all(spec: Option<&api::PodSpec>, status: Option<&api::PodStatus>) -> Vec<Container> {
    let statuses = status.and_then(|status| status.container_statuses.as_deref());
    let containers = spec.map(|spec| spec.containers.iter());
    read_each(containers.into_iter().flatten(), statuses)
}

/// Reads the native sidecars: the init containers with the restart policy `Always`.
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
            .map_or(ContainerState::Unknown, state_of),
    }
}

fn state_of(state: &api::ContainerState) -> ContainerState {
    if let Some(running) = &state.running {
        let since = running.started_at.as_ref().map(|Time(at)| *at);
        return ContainerState::Running { since };
    }
    if state.terminated.is_some() {
        return ContainerState::Terminated;
    }
    match &state.waiting {
        Some(waiting) => ContainerState::Waiting {
            reason: waiting.reason.clone().unwrap_or_default(),
            message: waiting.message.clone().unwrap_or_default(),
        },
        // A report without a state means waiting.
        None => ContainerState::Waiting {
            reason: String::new(),
            message: String::new(),
        },
    }
}
