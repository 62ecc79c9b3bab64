//! What the simulation shows of its pods.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;

use super::fleet::Record;
use super::machine::Machine;

/// A pod as the simulation has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its node; nothing if it has none yet.
    pub node: Option<String>,
    /// Its address; nothing before it has been reported.
    pub ip: Option<IpAddr>,
    /// `Pending`, `Running`, `Succeeded` or `Failed`, as reported.
    pub phase: String,
    /// The condition Ready, as reported.
    pub ready: bool,
    /// Whether it was deleted and its node has yet to end it.
    pub terminating: bool,
    /// Its containers; none before it has a node.
    pub containers: Vec<ContainerView>,
}

/// A container as the simulation has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerView {
    /// Its name.
    pub name: String,
    /// The image that it runs, or ran last.
    pub image: Option<String>,
    /// The id of the run; nothing before the first one.
    pub container_id: Option<String>,
    /// How often it was started again.
    pub restarts: i32,
    /// Whether it runs.
    pub running: bool,
    /// Whether it is ready.
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
