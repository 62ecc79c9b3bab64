//! Status that a kubelet reports, and the check whether the API server already has it.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::behaviour::Images;
use super::container::{Container, Ended, State};
use super::machine::{Machine, PodEnd};

/// Status to report.
#[derive(Debug)]
pub(super) struct Report {
    conditions: Vec<Value>,
    rest: Value,
}

/// Place where a pod runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) pod_ip: &'a str,
    pub(super) host_ip: &'a str,
}

impl Report {
    /// Builds the status of a pod with a node.
    pub(super) fn running(pod: &Pod, machine: &Machine, place: Place<'_>, images: &Images) -> Self {
        let spec_image = |name: &str| {
            let mut spec = pod.spec.iter().flat_map(|spec| &spec.containers);
            let found = spec.find(|one| one.name == name);
            found.and_then(|one| one.image.as_deref()).unwrap_or_default()
        };
        let containers: Vec<_> = machine
            .containers
            .iter()
            .map(|one| container_status(one, spec_image(&one.name), images))
            .collect();
        let (phase, reason, message) = match machine.end {
            Some(PodEnd::Evicted) => (
                "Failed",
                Some("Evicted"),
                Some("The node was low on resource: memory."),
            ),
            Some(PodEnd::Succeeded) => ("Succeeded", None, None),
            _ if machine.containers.iter().all(|one| one.id.is_some()) => ("Running", None, None),
            _ => ("Pending", None, None),
        };
        Self {
            conditions: conditions(pod, machine),
            rest: json!({
                "phase": phase,
                "reason": reason,
                "message": message,
                "hostIP": place.host_ip,
                "podIP": place.pod_ip,
                "podIPs": [{"ip": place.pod_ip}],
                "startTime": time(machine.since),
                "containerStatuses": containers,
            }),
        }
    }

    /// Builds the status of a pod without a node.
    pub(super) fn unschedulable(pod: &Pod, nodes: usize) -> Self {
        let message = format!("0/{nodes} nodes are available: {nodes} Insufficient memory.");
        Self {
            conditions: vec![condition(
                pod,
                "PodScheduled",
                Err(("Unschedulable", message.as_str())),
            )],
            rest: json!({"phase": "Pending"}),
        }
    }

    /// Whether the pod's status in the API already contains this report.
    pub(super) fn is_in(&self, pod: &Pod) -> bool {
        let Ok(status) = serde_json::to_value(pod.status.clone().unwrap_or_default()) else {
            return false;
        };
        let has = |wanted: &Value| {
            let all = status["conditions"].as_array().into_iter().flatten();
            let mut same = all.filter(|one| one["type"] == wanted["type"]);
            same.any(|one| covers(one, wanted))
        };
        covers(&status, &self.rest) && self.conditions.iter().all(has)
    }

    /// Builds a strategic merge patch for exactly this pod. It keeps the conditions of other writers.
    pub(super) fn patch(mut self, uid: &str) -> Value {
        if let Some(addresses) = self.rest.get_mut("podIPs").and_then(Value::as_array_mut) {
            addresses.insert(0, json!({"$patch": "replace"}));
        }
        self.rest["conditions"] = Value::Array(self.conditions);
        json!({"metadata": {"uid": uid}, "status": self.rest})
    }
}

fn container_status(container: &Container, spec_image: &str, images: &Images) -> Value {
    let image = container.image.as_deref();
    let state = match &container.state {
        State::Waiting { reason, message, .. } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        State::Running { since, .. } => json!({"running": {"startedAt": time(*since)}}),
        State::Ended(ended) => json!({"terminated": terminated(ended)}),
    };
    let last = match (&container.state, &container.last) {
        (State::Ended(_), _) | (_, None) => json!({}),
        (_, Some(ended)) => json!({"terminated": terminated(ended)}),
    };
    json!({
        "name": container.name,
        "image": images.name(image.unwrap_or(spec_image)),
        "imageID": image.map(|image| images.id(image)).unwrap_or_default(),
        "containerID": container.id,
        "ready": container.ready,
        "started": container.runs(),
        "restartCount": container.restarts,
        "state": state,
        "lastState": last,
    })
}

fn terminated(ended: &Ended) -> Value {
    json!({
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": time(ended.started),
        "finishedAt": time(ended.finished),
        "containerID": ended.id,
    })
}

fn conditions(pod: &Pod, machine: &Machine) -> Vec<Value> {
    let unready: Vec<_> = machine
        .containers
        .iter()
        .filter(|one| !one.ready)
        .map(|one| one.name.as_str())
        .collect();
    let unready = format!("containers with unready status: [{}]", unready.join(" "));
    let containers = match machine.end {
        Some(PodEnd::Succeeded) => Err(("PodCompleted", "")),
        Some(PodEnd::Evicted | PodEnd::Known) => Err(("PodFailed", "")),
        None if machine.all_ready() => Ok(()),
        None => Err(("ContainersNotReady", unready.as_str())),
    };
    let gates = closed_gates(pod);
    let ready = match containers {
        Ok(()) if !gates.is_empty() => Err(("ReadinessGatesNotReady", gates.as_str())),
        other => other,
    };
    vec![
        condition(pod, "PodScheduled", Ok(())),
        condition(pod, "Initialized", Ok(())),
        condition(pod, "ContainersReady", containers),
        condition(pod, "Ready", ready),
    ]
}

/// Lists the readiness gates that are not True; empty if all are.
fn closed_gates(pod: &Pod) -> String {
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.readiness_gates.iter().flatten());
    let closed = gates.filter_map(|gate| {
        let kind = gate.condition_type.as_str();
        match find(pod, kind) {
            Some(found) if found.status == "True" => None,
            Some(_) => Some(format!(
                "the status of pod readiness gate \"{kind}\" is not \"True\""
            )),
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{kind}\" does not exist."
            )),
        }
    });
    closed.collect::<Vec<_>>().join(", ")
}

fn find<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let mut conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|one| one.type_ == kind)
}

/// Builds a condition, with a transition time only if its status changes.
fn condition(pod: &Pod, kind: &str, holds: Result<(), (&str, &str)>) -> Value {
    let status = if holds.is_ok() { "True" } else { "False" };
    let (reason, message) = holds.err().unzip();
    let mut condition = json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message.filter(|text| !text.is_empty()),
    });
    if find(pod, kind).is_none_or(|found| found.status != status) {
        condition["lastTransitionTime"] = time(Timestamp::now()).into();
    }
    condition
}

/// Whether `actual` contains everything in `wanted`. Null means absent.
fn covers(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| covers(actual.get(key).unwrap_or(&Value::Null), wanted)),
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len() && actual.iter().zip(wanted).all(|(one, other)| covers(one, other))
        }
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        // The API server treats an absent and an empty text the same.
        (Value::Null, Value::String(wanted)) => wanted.is_empty(),
        (Value::String(actual), Value::Null) => actual.is_empty(),
        (Value::String(actual), Value::String(wanted)) => actual == wanted || same_time(actual, wanted),
        (actual, wanted) => actual == wanted,
    }
}

fn same_time(one: &str, other: &str) -> bool {
    let parse = |text: &str| text.parse::<Timestamp>().ok();
    parse(one).is_some_and(|time| Some(time) == parse(other))
}

/// Formats a time as the API server does, in seconds.
pub(super) fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
