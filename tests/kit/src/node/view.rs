//! Views of the simulated pods.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;

use super::fleet::Record;
use super::machine::Machine;

/// Current state of a simulated pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Node; `None` before it is bound.
    pub node: Option<String>,
    /// Address; `None` before it is reported.
    pub ip: Option<IpAddr>,
    /// Reported phase: `Pending`, `Running`, `Succeeded` or `Failed`.
    pub phase: String,
    /// Reported condition Ready.
    pub ready: bool,
    /// Whether the pod is deleted but its node has yet to end it.
    pub terminating: bool,
    /// Containers; empty before it has a node.
    pub containers: Vec<ContainerView>,
}

/// Current state of a simulated container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerView {
    /// Name.
    pub name: String,
    /// Image that it runs, or ran last.
    pub image: Option<String>,
    /// Id of the run; `None` before the first one.
    pub container_id: Option<String>,
    /// Number of restarts.
    pub restarts: i32,
    /// Whether the container runs.
    pub running: bool,
    /// Whether the container is ready.
    pub ready: bool,
}

impl PodView {
    pub(super) fn of(record: &Record, pod: &Pod, machine: Option<&Machine>) -> Self {
        let status = pod.status.as_ref();
        let containers = machine.into_iter().flat_map(|machine| &machine.containers);
        Self {
            name: record.name.clone(),
            uid: record.uid.clone(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            ip: status
                .and_then(|status| status.pod_ip.as_deref())
                .and_then(|ip| ip.parse().ok()),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            ready: status
                .into_iter()
                .flat_map(|status| status.conditions.iter().flatten())
                .any(|one| one.type_ == "Ready" && one.status == "True"),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            containers: containers
                .map(|one| ContainerView {
                    name: one.name.clone(),
                    image: one.image.clone(),
                    container_id: one.id.clone(),
                    restarts: one.restarts,
                    running: one.runs(),
                    ready: one.ready,
                })
                .collect(),
        }
    }
}
