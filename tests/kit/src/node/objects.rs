//! Node objects.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::fleet::{Endpoint, Fleet, NodeState, Power};
use super::kubelet::Kubelet;
use super::status::time;
use super::{Error, api_error};
use crate::address::Address;
use crate::keeper::lock;

/// Heartbeat interval. The node lifecycle controller gives up on a node after 40 s without a heartbeat.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Time for which a new node claims to have been Ready. Operators wait for a node that became Ready lately.
const READY_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Creates a node with a unique name, without waiting for anything.
pub(super) async fn add(fleet: &Arc<Fleet>, number: usize) -> Result<(), Error> {
    let address = Address::claim()?;
    let kubelet = if fleet.options.kubelet {
        Some(Kubelet::listen(address.ip()).await?)
    } else {
        None
    };
    let endpoint = Endpoint {
        address: address.ip().to_string(),
        kubelet: kubelet.as_ref().map(|(kubelet, _)| kubelet.port()),
    };
    let mut number = number;
    loop {
        let name = format!("{}-{number}", fleet.namespace);
        let since = Timestamp::now() - READY_FOR;
        match create(fleet, &name, &endpoint, since).await {
            Ok(()) => {
                let kubelet = kubelet.map(|(kubelet, listener)| {
                    kubelet.serve(fleet, &name, listener);
                    Arc::new(kubelet)
                });
                lock(&fleet.nodes).push(NodeState {
                    name,
                    address,
                    power: Power::Up,
                    kubelet,
                });
                return Ok(());
            }
            // Left over from an unstopped simulation in this namespace, or a node of this one.
            Err(kube::Error::Api(status)) if status.code == 409 => number += 1,
            Err(source) => return Err(api_error("create a node", source)),
        }
    }
}

/// Creates a Node object and reports it ready since this time.
pub(super) async fn create(
    fleet: &Fleet,
    name: &str,
    endpoint: &Endpoint,
    since: Timestamp,
) -> Result<(), kube::Error> {
    let nodes = fleet.node_objects();
    let labels = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "made-by": "hookgate-test-kit",
    });
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}}))
        .map_err(kube::Error::SerdeError)?;
    nodes.create(&PostParams::default(), &node).await?;
    let room = json!({"cpu": "1000", "memory": "1000Gi", "pods": "10000"});
    let mut status = json!({
        "addresses": [
            {"type": "InternalIP", "address": endpoint.address},
            {"type": "Hostname", "address": name},
        ],
        "capacity": room,
        "allocatable": room,
        "conditions": [ready_condition("True", Some(since))],
    });
    if let Some(port) = endpoint.kubelet {
        status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": port}});
    }
    write(fleet, name, status).await?;
    // The API server taints every new node as not ready. Remove the taint, in case no controller does.
    let unmarked = Patch::Merge(json!({"spec": {"taints": null}}));
    nodes.patch(name, &PatchParams::default(), &unmarked).await?;
    Ok(())
}

/// Reports the condition Ready as `True` or `Unknown`.
pub(super) async fn set_ready(fleet: &Fleet, name: &str, status: &str) -> Result<(), kube::Error> {
    write(
        fleet,
        name,
        json!({"conditions": [ready_condition(status, Some(Timestamp::now()))]}),
    )
    .await
}

pub(super) async fn delete(fleet: &Fleet, name: &str) -> Result<(), kube::Error> {
    let deleted = fleet
        .node_objects()
        .delete(name, &DeleteParams::default().grace_period(0))
        .await;
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

/// Sends heartbeats for the nodes that are up, forever.
pub(super) async fn stay_alive(fleet: &Fleet) {
    loop {
        tokio::time::sleep(SIGN_OF_LIFE).await;
        let names: Vec<_> = {
            let nodes = lock(&fleet.nodes);
            let up = nodes.iter().filter(|node| node.power == Power::Up);
            up.map(|node| node.name.clone()).collect()
        };
        for name in names {
            // Checks again under the permit: a node that was lost meanwhile must stay lost.
            let Ok(_permit) = fleet.calls.acquire().await else {
                return;
            };
            if fleet.node(&name).is_some_and(|(power, _)| power == Power::Up) {
                let sign = json!({"conditions": [ready_condition("True", None)]});
                // Ignores errors: the next heartbeat is due soon.
                let _ = write(fleet, &name, sign).await;
            }
        }
    }
}

/// Returns the condition Ready, with the time of its transition if it changes.
fn ready_condition(status: &str, transition: Option<Timestamp>) -> Value {
    let (reason, message) = match status {
        "True" => ("KubeletReady", "the simulated kubelet is ready"),
        _ => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    };
    let mut condition = json!({"type": "Ready", "status": status, "reason": reason, "message": message});
    if status == "True" {
        condition["lastHeartbeatTime"] = time(Timestamp::now()).into();
    }
    if let Some(at) = transition {
        condition["lastTransitionTime"] = time(at).into();
    }
    condition
}

async fn write(fleet: &Fleet, name: &str, status: Value) -> Result<(), kube::Error> {
    let patch = Patch::Strategic(json!({"status": status}));
    let nodes = fleet.node_objects();
    nodes
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .map(drop)
}
