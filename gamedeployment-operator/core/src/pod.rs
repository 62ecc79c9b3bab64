//! Cached facts about a pod, and what follows from them: whether it serves and whether it can have players.
//!
//! [`Pod`] keeps a hundredth of the object. With thousands of pods it dominates the operator's memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use shared_api::names;

mod container;
mod termination;
mod toleration;

pub use container::{Container, ContainerState};
pub use termination::{CRASH_WINDOW, Termination};
pub use toleration::{Tolerance, Tolerations};

/// Annotations that decisions use; others are dropped.
const KEPT: [&str; 18] = [
    names::pod::DELETING,
    names::pod::CHOSEN_FOR,
    names::pod::QUESTION,
    names::pod::IN_PLACE_STATE,
    names::pod::IN_PLACE_GRACE,
    names::pod::HOT_PATCH_STATE,
    names::pod::HOT_PATCH_CONTAINER,
    names::pod::CONFIRMED,
    names::pod::SKIP_HOOK,
    names::pod::SKIP_HOOK_REASON,
    names::pod::SKIP_HOOK_BY,
    names::pod::REMOVAL_REQUESTED,
    names::pod::SAFE_TO_EVICT,
    names::pod::DO_NOT_DISRUPT,
    names::pod::AUTOSCALER_ANNOTATIONS,
    names::pod::DRAINING_LABELS,
    names::pod::DELETION_COST,
    names::pod::INDEX,
];

/// Phase of a pod, as reported by the kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodPhase {
    /// Not all containers have been started.
    Pending,
    /// The phase is unknown.
    Unknown,
    /// Bound to a node, containers started.
    Running,
    /// All containers ended successfully and are not restarted.
    Succeeded,
    /// All containers ended and at least one of them failed, or the pod was evicted.
    Failed,
}

/// The condition `InPlaceUpdateReady` of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InPlaceCondition {
    /// Whether the condition is True.
    pub ready: bool,
    /// Message of the condition: while it is False, the revision that an update in progress goes to; once it
    /// is True, the mark of a finished update of a pod without the readiness gate.
    pub target: String,
    /// Time of its last transition.
    pub since: Option<Timestamp>,
}

/// Cached facts about a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// `metadata.name`.
    pub name: String,
    /// UID. A pod of the same name with another UID is a different pod.
    pub uid: String,
    /// Resource version of the cached object.
    pub resource_version: String,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Whether the pod is being deleted.
    pub terminating: bool,
    /// Start of the deletion.
    pub ending_since: Option<Timestamp>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations that decisions use.
    pub annotations: BTreeMap<String, String>,
    /// UID of its controller.
    pub controller: Option<String>,
    /// Phase.
    pub phase: PodPhase,
    /// How it ended, if it has ended for good.
    pub ended: Option<Box<Termination>>,
    /// Name of its node.
    pub node: Option<String>,
    /// Tolerations for taints with the effect `NoExecute`.
    pub tolerations: Tolerations,
    /// Whether a pod like it can be scheduled to a node that is cordoned, or that an autoscaler is about to remove.
    pub may_return: bool,
    /// Reason why it is not scheduled, in its scheduler's words.
    pub unschedulable: Option<String>,
    /// Pod IP.
    pub ip: Option<String>,
    /// IP of its node.
    pub host_ip: Option<String>,
    /// Time when the kubelet accepted it.
    pub started: Option<Timestamp>,
    /// Start of its current ready period, if it is ready.
    pub ready_since: Option<Timestamp>,
    /// Start of its current unready period, if it is unready.
    pub unready_since: Option<Timestamp>,
    /// Whether the pod's spec has the readiness gate `InPlaceUpdateReady`.
    pub has_readiness_gate: bool,
    /// The condition `InPlaceUpdateReady`, if present.
    pub in_place: Option<InPlaceCondition>,
    /// Its containers, in the spec's order.
    pub containers: Vec<Container>,
    /// Its init containers that run as long as the pod (native sidecars).
    pub sidecars: Vec<Container>,
    /// Time of the kubelet's last report on its containers, by the API server's clock. Kept only while
    /// [`Self::never_started`]: decisions use it only then.
    pub reported: Option<Timestamp>,
}

impl Pod {
    /// Extracts the needed facts from a pod.
    pub fn read(pod: &api::Pod) -> Self {
        let ObjectMeta {
            name,
            uid,
            resource_version,
            creation_timestamp,
            deletion_timestamp,
            deletion_grace_period_seconds: grace,
            ..
        } = pod.metadata.clone();
        let status = pod.status.as_ref();
        let spec = pod.spec.as_ref();
        let phase = phase_of(status.and_then(|status| status.phase.as_deref()));
        let has_ended = matches!(phase, PodPhase::Succeeded | PodPhase::Failed);
        let annotations = pod.metadata.annotations.iter().flatten();
        let mut gates = spec
            .and_then(|spec| spec.readiness_gates.as_ref())
            .into_iter()
            .flatten();
        let text = |value: Option<&String>| value.filter(|text| !text.is_empty()).cloned();
        let read = Self {
            name: name.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
            resource_version: resource_version.unwrap_or_default(),
            created: creation_timestamp.map(|Time(at)| at),
            terminating: deletion_timestamp.is_some(),
            ending_since: deletion_timestamp.and_then(|Time(end)| begun(end, grace)),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            annotations: annotations
                .filter(|(key, _)| KEPT.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            controller: controller_of(&pod.metadata),
            phase,
            ended: has_ended.then(|| Box::new(Termination::read(pod))),
            node: text(spec.and_then(|spec| spec.node_name.as_ref())),
            tolerations: Tolerations::read(spec),
            may_return: toleration::may_return(spec),
            unschedulable: condition(status, "PodScheduled")
                .filter(|condition| condition.status == "False")
                .and_then(|condition| text(condition.message.as_ref())),
            ip: text(status.and_then(|status| status.pod_ip.as_ref())),
            host_ip: text(status.and_then(|status| status.host_ip.as_ref())),
            started: status
                .and_then(|status| status.start_time.as_ref())
                .map(|Time(at)| *at),
            ready_since: ready_since(status, creation_of(&pod.metadata)),
            unready_since: condition(status, "Ready")
                .filter(|condition| condition.status != "True")
                .and_then(|condition| condition.last_transition_time.as_ref())
                .map(|Time(at)| *at),
            has_readiness_gate: gates.any(|gate| gate.condition_type == names::pod::IN_PLACE_READY),
            in_place: in_place_of(status),
            containers: container::read_all(spec, status),
            sidecars: container::read_sidecars(spec, status),
            reported: None,
        };
        let reported = read.never_started().then(|| reported(&pod.metadata)).flatten();
        Self { reported, ..read }
    }

    /// Keeps only what is needed of a pod with another controller: its name is in use. In most clusters these
    /// are the majority.
    #[must_use]
    pub fn of_others(self) -> Self {
        Self {
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            tolerations: Tolerations::DEFAULT,
            unschedulable: None,
            ended: None,
            in_place: None,
            containers: Vec::new(),
            sidecars: Vec::new(),
            ..self
        }
    }

    /// Returns the containers that run as long as the pod does.
    pub fn lasting(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(&self.sidecars)
    }

    /// Returns the name of its revision, or an empty string.
    pub fn revision(&self) -> &str {
        self.labels.get(names::pod::REVISION).map_or("", String::as_str)
    }

    /// Returns its instance id: the label, or the last part of its name.
    pub fn instance(&self) -> &str {
        let label = self.labels.get(names::pod::INSTANCE).map(String::as_str);
        label.unwrap_or_else(|| self.name.rsplit('-').next().unwrap_or_default())
    }

    /// Returns the value of the guard label.
    pub fn guard_label(&self) -> Option<&str> {
        self.labels.get(names::pod::REMOVAL_GUARD).map(String::as_str)
    }

    /// Returns an annotation that decisions use.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Returns whether its hooks are skipped: the annotation contains its own UID.
    pub fn skips_hooks(&self) -> bool {
        self.annotation(names::pod::SKIP_HOOK) == Some(self.uid.as_str())
    }

    /// Returns whether the pod counts as a replica: neither finished nor terminating.
    pub fn is_active(&self) -> bool {
        !self.terminating && !self.is_finished()
    }

    /// Whether all its containers have ended for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Returns whether the pod is running and ready, as counted in the columns READY and `UPDATED_READY`.
    pub fn is_ready(&self) -> bool {
        self.phase == PodPhase::Running && self.ready_since.is_some()
    }

    /// Returns whether the pod's condition `InPlaceUpdateReady` keeps it out of service.
    pub fn is_out_of_service(&self) -> bool {
        self.in_place.as_ref().is_some_and(|condition| !condition.ready)
    }

    /// Returns when it becomes available if nothing changes; `None` while it is unready, out of service or
    /// terminating.
    pub fn available_from(&self, min_ready_seconds: i64) -> Option<Timestamp> {
        if !self.is_ready() || self.is_out_of_service() || self.terminating {
            return None;
        }
        let wait = jiff::SignedDuration::from_secs(min_ready_seconds.max(0));
        self.ready_since
            .map(|since| since.checked_add(wait).unwrap_or(Timestamp::MAX))
    }

    /// Returns whether the pod is available: in service and ready for at least `min_ready_seconds`.
    pub fn is_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        self.available_from(min_ready_seconds)
            .is_some_and(|from| from <= now)
    }

    /// Returns whether the pod is or was ready. A kubelet reports a pod as unready when it accepts it, so a
    /// later transition means that the pod was ready in between.
    pub fn has_served(&self) -> bool {
        let since = |(started, since): (Timestamp, Timestamp)| since > started;
        self.is_ready() || self.started.zip(self.unready_since).is_some_and(since)
    }

    /// Returns whether the pod is ready, or was ready and may recover by itself.
    pub fn may_come_back(&self) -> bool {
        self.is_active()
            && !self.is_out_of_service()
            && self.has_served()
            && !self.lasting().any(Container::cannot_have_players)
    }

    /// Returns why it does not start, in the words of its scheduler or kubelet.
    pub fn complaint(&self) -> Option<String> {
        let unschedulable = self.unschedulable.as_ref().filter(|_| self.node.is_none());
        let no_node = unschedulable.map(|why| format!("cannot be scheduled: {why}"));
        no_node.or_else(|| self.containers.iter().find_map(Container::complaint))
    }

    /// Returns whether the pod's kubelet reported of every container that it has never run its current image.
    /// A crashed container does not count: it will run again. Nor does one without a report: an unreachable
    /// node may be running it. The report may be old: the gate also asks whether the kubelet still reports.
    pub fn never_started(&self) -> bool {
        match self.phase {
            PodPhase::Pending | PodPhase::Running => {
                !self.containers.is_empty() && self.lasting().all(Container::cannot_have_players)
            }
            PodPhase::Unknown | PodPhase::Succeeded | PodPhase::Failed => false,
        }
    }
}

/// Time of the last write of the container statuses. Only kubelets write them, under names that differ between
/// distributions.
fn reported(metadata: &ObjectMeta) -> Option<Timestamp> {
    let entries = metadata.managed_fields.iter().flatten();
    let reports = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0["f:status"]["f:containerStatuses"].is_object())
    });
    reports.filter_map(|entry| Some(entry.time.as_ref()?.0)).max()
}

/// UID of the owner that is marked as controller.
pub fn controller_of(metadata: &ObjectMeta) -> Option<String> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners
        .find(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.clone())
}

fn creation_of(metadata: &ObjectMeta) -> Option<Timestamp> {
    metadata.creation_timestamp.as_ref().map(|Time(at)| *at)
}

/// Computes when a deletion started: the API server records its end and its grace period.
fn begun(end: Timestamp, grace: Option<i64>) -> Option<Timestamp> {
    let grace = jiff::SignedDuration::from_secs(grace.unwrap_or_default());
    end.checked_sub(grace).ok()
}

fn phase_of(text: Option<&str>) -> PodPhase {
    match text {
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some("Unknown") => PodPhase::Unknown,
        // A pod without a status was just created.
        Some(_) | None => PodPhase::Pending,
    }
}

fn condition<'a>(status: Option<&'a api::PodStatus>, kind: &str) -> Option<&'a api::PodCondition> {
    status?
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == kind)
}

fn ready_since(status: Option<&api::PodStatus>, created: Option<Timestamp>) -> Option<Timestamp> {
    let ready = condition(status, "Ready").filter(|condition| condition.status == "True")?;
    let since = ready.last_transition_time.as_ref().map(|Time(at)| *at);
    // Ready without a transition time: the creation time is the latest known time without a clock.
    since.or(created)
}

fn in_place_of(status: Option<&api::PodStatus>) -> Option<InPlaceCondition> {
    let condition = condition(status, names::pod::IN_PLACE_READY)?;
    Some(InPlaceCondition {
        ready: condition.status == "True",
        target: condition.message.clone().unwrap_or_default(),
        since: condition.last_transition_time.as_ref().map(|Time(at)| *at),
    })
}
