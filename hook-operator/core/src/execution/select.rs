//! Selection of containers.

use k8s_openapi::api::core::v1::Pod;
use shared_api::execution_hook::{ALL_CONTAINERS, ContainerHookStatus, MAX_CONTAINERS, PodContainerNames};
use shared_api::reason::ExecutionReason;

/// Pod of the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPod {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Names of its containers, except for init containers and ephemeral ones.
    pub containers: Vec<String>,
    /// Names of its init containers and ephemeral ones, which are selected by name only.
    pub others: Vec<String>,
    /// Whether all of its containers have ended for good.
    pub has_ended: bool,
}

impl FoundPod {
    /// Describes a pod.
    pub fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let containers = spec.map(|spec| spec.containers.iter().map(|container| container.name.clone()));
        let init = spec
            .and_then(|spec| spec.init_containers.as_ref())
            .into_iter()
            .flatten();
        let ephemeral = spec
            .and_then(|spec| spec.ephemeral_containers.as_ref())
            .into_iter()
            .flatten();
        let others = init.map(|container| container.name.clone());
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            containers: containers.into_iter().flatten().collect(),
            others: others
                .chain(ephemeral.map(|container| container.name.clone()))
                .collect(),
            has_ended: matches!(phase, Some("Succeeded" | "Failed")),
        }
    }

    /// Returns whether it has a container of this name.
    pub fn has(&self, container: &String) -> bool {
        self.containers.contains(container) || self.others.contains(container)
    }
}

/// Selection that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectError {
    /// Reason.
    pub reason: ExecutionReason,
    /// Description.
    pub message: String,
}

/// Returns the containers of these pods. The pods are looked up later.
pub fn by_name(pods: &[PodContainerNames]) -> Vec<ContainerHookStatus> {
    let of_pod = |pod: &PodContainerNames| {
        let mut names = pod.container_names.clone().unwrap_or_default();
        if names.is_empty() {
            names.push(ALL_CONTAINERS.to_owned());
        }
        let pod_name = pod.pod_name.clone();
        let container = move |name| container(&pod_name, None, name);
        names.into_iter().map(container)
    };
    pods.iter().flat_map(of_pod).collect()
}

/// Returns the containers of these names in the pods, or all if there are no names. Pods that have ended have none.
///
/// # Errors
/// If no container is selected, if no pod has a container of some name, or if more are selected than a hook may have.
pub fn select(pods: &[FoundPod], names: &[String]) -> Result<Vec<ContainerHookStatus>, SelectError> {
    let nothing = |message| SelectError {
        reason: ExecutionReason::NothingSelected,
        message,
    };
    let running: Vec<&FoundPod> = pods.iter().filter(|pod| !pod.has_ended).collect();
    if running.is_empty() {
        let message = "no running pod matches spec.podSelection.podContainerSelector.podSelector";
        return Err(nothing(message.to_owned()));
    }
    let lacks = |name: &&String| running.iter().all(|pod| !pod.has(name));
    if let Some(name) = names.iter().find(lacks) {
        let lacking = match running.len() {
            1 => format!("the selected pod has no container {name}"),
            number => format!("none of the {number} selected pods has a container {name}"),
        };
        return Err(nothing(format!("{lacking}; fix containerList")));
    }
    let mut selected = Vec::new();
    for pod in running {
        let listed = pod
            .containers
            .iter()
            .chain(&pod.others)
            .filter(|name| names.contains(name));
        let all = pod.containers.iter().filter(|_| names.is_empty());
        selected.extend(
            listed
                .chain(all)
                .map(|name| container(&pod.name, Some(&pod.uid), name.clone())),
        );
    }
    if selected.len() > MAX_CONTAINERS {
        return Err(SelectError {
            reason: ExecutionReason::TooManyContainers,
            message: too_many(&selected.len().to_string()),
        });
    }
    Ok(selected)
}

/// Returns the message about this number of containers.
pub fn too_many(number: &str) -> String {
    format!(
        "{number} containers are selected, but the limit is {MAX_CONTAINERS}; create several ExecutionHooks"
    )
}

pub(super) fn container(pod: &str, uid: Option<&str>, name: String) -> ContainerHookStatus {
    ContainerHookStatus {
        pod_name: pod.to_owned(),
        pod_uid: uid.map(str::to_owned),
        container_name: name,
        ..ContainerHookStatus::default()
    }
}
