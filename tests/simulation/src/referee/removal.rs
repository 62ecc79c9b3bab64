//! Checks removal requests: a pod that is not surplus, not named in `podsToDelete` and not updated is deleted only for
//! a request that was valid in the version of the pod that the operator knew, and the status lists the valid requests.
//!
//! Requests are parsed and expire here by the documented rules, without the operator's code. The world has one clock,
//! and a write carries the version of the pod that its decision is based on, so that a request is judged as of the
//! decision: one that expires before the write arrives breaks no promise, and one that has been withdrawn lets the
//! write fail.
//!
//! Nodes are judged as the watch of the process had shown them at the decision. This includes the time at which it has
//! seen a node being uncordoned: a process that starts later knows nothing of that, and counts the evictions before it.
//! So are Evictions: one requests the removal of its pod while the operator is its active responder.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::cluster::Taint;
use gamedeployment_core::guard_check;
use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::{DisruptionPolicy, Workload};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use shared_api::names::pod as names;
use shared_api::removal_request::{
    InvalidRequests, RemovalRequest, RemovalRequests, RemovalType, TAINT_CONTROLLERS,
};
use shared_api::time::Time;
use shared_api::{GameDeploymentSpec, GameDeploymentStatus};

use super::Acted;
use super::deletion::adjust;
use crate::games::{Known, KnownNode, Seen};
use crate::objects::{EvictionObject, NodeObject, PodObject, is_deleting};
use crate::process::Work;
use crate::taints::{Tolerance, tolerance, tolerates_all};
use crate::world::{FLEET, World};

/// Seconds for which a request is valid by default, as documented.
const VALID_FOR: i32 = 900;
/// Number of requests that a status lists, as documented.
const LISTED: usize = 100;

/// Parses the removal requests of a pod; `None` without the annotation.
pub fn requests_of(pod: &api::Pod) -> Option<Result<RemovalRequests, InvalidRequests>> {
    let text = pod.metadata.annotations.as_ref()?.get(names::REMOVAL_REQUESTED)?;
    Some(RemovalRequests::parse(text))
}

/// Whether removal requests have an effect.
pub fn has_requests(spec: &GameDeploymentSpec) -> bool {
    let disruption = spec.disruption.as_ref();
    disruption.is_some_and(|disruption| disruption.policy.as_deref() == Some("Ask"))
}

/// Types of the requests of nodes.
const TYPES_OF_NODES: [&str; 2] = ["Taint", "Cordon"];
/// Type of the requests of Evictions.
const TYPE_OF_EVICTIONS: &str = "EvictionRequest";

/// Valid request, as the status lists it.
#[derive(Debug)]
pub struct ValidRequest {
    requester: String,
    type_: &'static str,
    /// Time of the request; `None` if only the operator knows since when there is one.
    time: Option<Timestamp>,
}

impl ValidRequest {
    /// Whether the pod's node requests the removal.
    pub fn is_of_node(&self) -> bool {
        TYPES_OF_NODES.contains(&self.type_)
    }

    /// Whether an Eviction of the pod requests the removal.
    pub fn is_of_eviction(&self) -> bool {
        self.type_ == TYPE_OF_EVICTIONS
    }
}

/// Whether a pod may not stay on a node because of a taint, or no longer. If the taint has no time, nobody knows when a
/// limited toleration ends.
fn has_to_leave(pod: &api::Pod, taint: &Taint, at: Timestamp) -> bool {
    match tolerance(pod, &taint.key) {
        Tolerance::Never => true,
        Tolerance::For(time) => {
            let status = pod.status.as_ref();
            let started = status.and_then(|status| status.start_time.as_ref());
            let started = started.or(pod.metadata.creation_timestamp.as_ref()).unwrap().0;
            taint.added.is_some_and(|added| added.max(started) + time <= at)
        }
        Tolerance::Always => false,
    }
}

/// Returns the request of a pod's node. A pod that the scheduler would place on a cordoned node stays there.
fn request_of_node(
    pod: &api::Pod,
    spec: &GameDeploymentSpec,
    (name, node): (&str, &KnownNode),
    at: Timestamp,
) -> Option<ValidRequest> {
    let request = |type_, time| ValidRequest {
        requester: format!("node/{name}"),
        type_,
        time,
    };
    let taints = node.facts.taints.iter();
    let ended: Vec<_> = taints.filter(|taint| has_to_leave(pod, taint, at)).collect();
    if !ended.is_empty() {
        let added = ended.iter().filter_map(|taint| taint.added).min();
        return Some(request("Taint", added));
    }
    let disruption = spec.disruption.as_ref();
    let asks = disruption.is_some_and(|disruption| disruption.on_cordon.as_deref() == Some("Ask"));
    (asks && node.facts.is_cordoned && !tolerates_all(pod)).then(|| request("Cordon", None))
}

/// Whether the cause of a recorded request still exists, as far as the node shows. A deletion because of a taint ends
/// with the taint, and the request of the node takes its place.
fn is_supported(request: &RemovalRequest, pod: &api::Pod, node: &KnownNode, at: Timestamp) -> bool {
    let taints = &node.facts.taints;
    match request.type_ {
        RemovalType::Eviction => {
            let repeated = request.renew_time.unwrap_or(request.request_time);
            node.released
                .is_none_or(|released| repeated.timestamp() >= released)
        }
        RemovalType::Delete if TAINT_CONTROLLERS.contains(&request.requester.as_str()) => {
            let has_unknown_end = |taint: &Taint| {
                taint.added.is_none() && matches!(tolerance(pod, &taint.key), Tolerance::For(_))
            };
            taints.iter().any(has_unknown_end) && !taints.iter().any(|taint| has_to_leave(pod, taint, at))
        }
        RemovalType::Delete | RemovalType::Manual => true,
    }
}

/// Returns the requests of a pod that are valid at this time.
fn valid_requests(
    pod: &api::Pod,
    spec: &GameDeploymentSpec,
    known: &Known,
    at: Timestamp,
) -> Vec<ValidRequest> {
    if !has_requests(spec) {
        return Vec::new();
    }
    let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let node = name.and_then(|name| Some((name, known.nodes.get(name)?)));
    let disruption = spec.disruption.as_ref();
    let seconds = disruption.and_then(|disruption| disruption.request_expiration_seconds);
    let valid_for = SignedDuration::from_secs(seconds.unwrap_or(VALID_FOR).into());
    let is_valid = |request: &&RemovalRequest| {
        let repeated = request.renew_time.unwrap_or(request.request_time);
        let implied = repeated.timestamp() + valid_for;
        let is_expired = at >= request.expiration_time.map_or(implied, Time::timestamp);
        !is_expired && node.is_none_or(|(_, node)| is_supported(request, pod, node, at))
    };
    let recorded = requests_of(pod).and_then(Result::ok).unwrap_or_default();
    let recorded = recorded.iter().filter(is_valid).map(|request| ValidRequest {
        requester: request.requester.clone(),
        type_: request.type_.as_str(),
        time: Some(request.request_time.timestamp()),
    });
    let by_node = node.and_then(|node| request_of_node(pod, spec, node, at));
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    // Without a hook, the next responder gets its turn.
    let strategy = spec.pre_delete_update_strategy.as_ref();
    let responds = strategy.is_some_and(|strategy| strategy.hook.is_some());
    let active = known.evictions.active_of(uid).into_iter().filter(|_| responds);
    let by_eviction = active.flat_map(|eviction| {
        let requesters = eviction.requesters.iter();
        requesters.map(move |requester| ValidRequest {
            requester: requester.clone(),
            type_: TYPE_OF_EVICTIONS,
            time: eviction.started,
        })
    });
    recorded.chain(by_node).chain(by_eviction).collect()
}

/// Whether a pod has a valid request.
pub(super) fn has_valid_request(
    pod: &PodObject,
    spec: &GameDeploymentSpec,
    known: &Known,
    at: Timestamp,
) -> bool {
    !valid_requests(&pod.api, spec, known, at).is_empty()
}

/// Whether the removal of a pod was requested when the operator decided. The pod has the version that it knew.
pub fn is_requested(pod: &PodObject, seen: &Seen) -> bool {
    has_valid_request(pod, &seen.object().spec, &seen.known, seen.at)
}

/// Returns the number of requests of nodes that a status lists and the one before it does not.
pub fn new_requests_of_nodes(seen: &Seen, status: &GameDeploymentStatus) -> u64 {
    let of_nodes = |status: &GameDeploymentStatus| -> BTreeSet<(String, String)> {
        let entries = status.removal_requests.iter();
        let entries = entries.filter(|entry| TYPES_OF_NODES.contains(&entry.type_.as_str()));
        entries
            .map(|entry| (entry.pod_uid.clone(), entry.type_.clone()))
            .collect()
    };
    let before = seen.object().status.as_ref().map(of_nodes).unwrap_or_default();
    of_nodes(status).difference(&before).count() as u64
}

/// Whether `podsToDelete` named a pod when the operator decided.
fn is_listed(pod: &PodObject, seen: &Seen) -> bool {
    let lists = seen.object().spec.scale_strategy.iter();
    let mut listed = lists.flat_map(|scale| scale.pods_to_delete.iter().flatten());
    listed.any(|name| *name == pod.id.name)
}

/// Whether the operator had to delete and replace a pod: `podsToDelete` named it, or its removal was requested.
pub(super) fn is_named(pod: &PodObject, seen: &Seen) -> bool {
    is_listed(pod, seen) || is_requested(pod, seen)
}

/// Returns the valid requests of a pod that a write deletes and replaces; none for any other write.
pub fn requests_behind(action: &Action, acted: &Acted<'_>) -> Vec<ValidRequest> {
    let deletes = matches!(action, Action::Gated(GatedWrite::DeletePod(delete)) if !delete.recreates());
    let before = acted.before.as_ref();
    let Some(pod) = before.filter(|pod| deletes && pod.read.is_active()) else {
        return Vec::new();
    };
    let seen = acted.seen;
    valid_requests(&pod.api, &seen.object().spec, &seen.known, seen.at)
}

/// Checks that a pod is selected for deletion and deleted for a reason: there were too many pods, `podsToDelete` named
/// it, or its removal was requested. Updates have checks of their own.
pub(super) fn check_reason(action: &Action, acted: &Acted<'_>) {
    let Some(pod) = &acted.before else { return };
    let seen = acted.seen;
    let deletes = match action {
        Action::Gated(GatedWrite::DeletePod(delete)) => !delete.recreates() && pod.read.is_active(),
        Action::RecordSelection(_, text, _) => text.starts_with("delete@"),
        Action::ClearSelection(..) => {
            assert!(
                !pod.read.is_active() || !is_requested(pod, seen),
                "a pod is kept despite its removal request: {:#?}",
                pod.read
            );
            false
        }
        _ => false,
    };
    let replicas = usize::try_from(seen.object().spec.replicas.unwrap_or(1)).unwrap();
    let replicas = if is_deleting(seen.object()) { 0 } else { replicas };
    assert!(
        !deletes || seen.active > replicas || is_named(pod, seen),
        "for nothing: {} pods of {replicas} wanted, and no valid request at {}: {action:#?} {:#?} {:?}",
        seen.active,
        seen.at,
        pod.read,
        seen.object().spec.disruption
    );
}

/// Formats an entry for a comparison.
fn entry(pod: &str, uid: &str, requester: &str, type_: &str) -> String {
    format!("{pod} {uid} {requester} {type_}")
}

impl World {
    /// Returns the nodes and Evictions as the leader knows them while nothing happens: as they are.
    pub(super) fn known_at_rest(&self) -> Known {
        let leader = self.processes.iter().find_map(|process| match &process.work {
            Work::Games(games) => Some(games.known().clone()),
            Work::None | Work::Hooks(_) => None,
        });
        let known = leader.unwrap_or_default();
        let is_known = |node: &Rc<NodeObject>| {
            let shown = known.nodes.get(&node.id.name);
            shown.is_some_and(|shown| shown.facts == node.facts())
        };
        assert!(
            !self.watches_nodes || self.server.nodes.iter().all(is_known),
            "the watch of nodes is late: {known:#?}"
        );
        // The watch may not have shown the last report yet.
        let is_shown = |eviction: &Rc<EvictionObject>| {
            let facts = eviction.facts();
            let shown = known.evictions.get(&eviction.id.name);
            shown.is_some_and(|shown| {
                (&shown.uid, &shown.requesters, shown.started)
                    == (&facts.uid, &facts.requesters, facts.started)
                    && (shown.is_active == facts.is_active || eviction.completed.is_some())
            })
        };
        assert!(
            self.server.evictions.iter().all(is_shown),
            "the watch of Evictions is late: {known:#?}"
        );
        known
    }

    /// Checks, while nothing happens, that the status lists exactly the valid requests, that pods carry the label of
    /// their policy, and that no pod stays selected for a request that is not valid any more.
    pub fn check_removals(&self) {
        let Some(object) = self.server.workloads.get(FLEET) else {
            return;
        };
        let Ok(mut wanted) = Workload::read(&object.api) else {
            return;
        };
        adjust(&mut wanted, &object.api);
        let (spec, status) = (&object.api.spec, object.api.status.clone().unwrap_or_default());
        let own =
            |pod: &&Rc<PodObject>| pod.id.owner.as_deref() == Some(object.uid()) && pod.read.is_active();
        let pods: Vec<_> = self.server.pods.iter().filter(own).collect();
        let known = self.known_at_rest();
        let (mut valid, mut pending, mut unnamed) = (BTreeMap::new(), 0, 0);
        let label = has_requests(spec).then_some(names::REMOVAL_GUARD_ASK);
        for pod in &pods {
            let requests = valid_requests(&pod.api, spec, &known, self.now);
            let (name, uid) = (&pod.id.name, &pod.id.uid);
            pending += i32::from(!requests.is_empty());
            valid.extend(requests.iter().map(|request| {
                let key = entry(name, uid, &request.requester, request.type_);
                (key, request.time)
            }));
            assert_eq!(
                pod.read.labels.get(names::REMOVAL_GUARD).map(String::as_str),
                label,
                "{:#?}",
                pod.read
            );
            let intent = pod.read.annotation(names::CHOSEN_FOR).unwrap_or_default();
            let is_named = !requests.is_empty() || wanted.pods_to_delete.contains(name);
            // An old pod may be selected for its update meanwhile.
            let is_unnamed =
                intent.starts_with("delete@") && !is_named && !self.is_old(&status, pod.read.revision());
            unnamed += usize::from(is_unnamed);
        }
        let surplus = pods.len().saturating_sub(wanted.replicas);
        assert!(
            unnamed <= surplus,
            "{unnamed} pods stay selected, with {surplus} too many: {}",
            self.describe()
        );
        let listed = status.removal_requests.iter().map(|known| {
            let key = entry(&known.pod_name, &known.pod_uid, &known.requester, &known.type_);
            (key, known.request_time.timestamp())
        });
        let listed: BTreeMap<String, Timestamp> = listed.collect();
        let is_valid = |(key, time): (&String, &Timestamp)| {
            let known: Option<&Option<Timestamp>> = valid.get(key);
            known.is_some_and(|known| known.map_or(*time <= self.now, |known| known == *time))
        };
        assert!(
            listed.iter().all(is_valid) && listed.len() == valid.len().min(LISTED),
            "listed: {listed:#?}, valid: {valid:#?}"
        );
        assert_eq!(status.removal_pending_replicas, pending, "{status:#?}");
        self.check_guard(&wanted, &status);
    }

    /// Checks that the status does not report a guard that is not in effect, or the reverse.
    fn check_guard(&self, wanted: &Workload, status: &GameDeploymentStatus) {
        let mut conditions = status.conditions.iter();
        let found = conditions.find(|known| known.type_ == "RemovalsGuarded");
        let is_guarded = self.server.guards && guard_check::is_expected(wanted);
        match found.map(|found| (found.status.as_str(), found.reason.as_str())) {
            Some(("True", "RemovalsGuarded")) => assert!(is_guarded, "{status:#?}"),
            Some(("False", "RemovalsNotGuarded")) => assert!(!is_guarded, "{status:#?}"),
            Some(("Unknown", "GuardNotChecked")) => {}
            None => assert!(
                wanted.disruption.policy == DisruptionPolicy::Unguarded
                    || status.replicas == 0
                    || self.is_deleting(),
                "{status:#?}"
            ),
            Some(other) => panic!("{other:?}: {status:#?}"),
        }
    }

    /// Whether the update still has to change pods of a revision, or leaves them at it.
    pub(super) fn is_old(&self, status: &GameDeploymentStatus, name: &str) -> bool {
        let back = status
            .rollback
            .as_ref()
            .map(|rollback| rollback.to_revision.as_str());
        let update = back.or(status.update_revision.as_deref()).unwrap_or_default();
        let meaning = |name: &str| {
            let revision = self.server.revisions.get(name);
            revision.map(|revision| &revision.read.template)
        };
        name != update && meaning(name) != meaning(update)
    }
}
