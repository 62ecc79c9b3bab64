//! Checks removal requests: a pod that is not surplus, not named in `podsToDelete` and not updated is deleted only for
//! a request that was valid in the version of the pod that the operator knew, and the status lists the valid requests.
//!
//! Requests are parsed and expire here by the documented rules, without the operator's code. The world has one clock,
//! and a write carries the version of the pod that its decision is based on, so that a request is judged as of the
//! decision: one that expires before the write arrives breaks no promise, and one that has been withdrawn lets the
//! write fail.

use std::collections::BTreeSet;
use std::rc::Rc;

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::Workload;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;
use shared_api::names::pod as names;
use shared_api::removal_request::{InvalidRequests, RemovalRequest, RemovalRequests};
use shared_api::time::Time;
use shared_api::{GameDeploymentSpec, GameDeploymentStatus};

use super::Acted;
use super::deletion::adjust;
use crate::games::Seen;
use crate::objects::{PodObject, is_deleting};
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

/// Returns the requests of a pod that are valid at this time.
fn valid_requests(pod: &api::Pod, spec: &GameDeploymentSpec, at: Timestamp) -> Vec<RemovalRequest> {
    let Some(Ok(requests)) = requests_of(pod).filter(|_| has_requests(spec)) else {
        return Vec::new();
    };
    let disruption = spec.disruption.as_ref();
    let seconds = disruption.and_then(|disruption| disruption.request_expiration_seconds);
    let valid_for = SignedDuration::from_secs(seconds.unwrap_or(VALID_FOR).into());
    let is_valid = |request: &&RemovalRequest| {
        let repeated = request.renew_time.unwrap_or(request.request_time);
        let implied = repeated.timestamp() + valid_for;
        at < request.expiration_time.map_or(implied, Time::timestamp)
    };
    requests.iter().filter(is_valid).cloned().collect()
}

/// Whether a pod has a valid request.
pub(super) fn has_valid_request(pod: &PodObject, spec: &GameDeploymentSpec, at: Timestamp) -> bool {
    !valid_requests(&pod.api, spec, at).is_empty()
}

/// Whether the removal of a pod was requested when the operator decided. The pod has the version that it knew.
pub fn is_requested(pod: &PodObject, seen: &Seen) -> bool {
    has_valid_request(pod, &seen.object().spec, seen.at)
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

/// Whether a write deletes a pod whose removal is requested.
pub fn is_on_request(action: &Action, acted: &Acted<'_>) -> bool {
    let deletes = matches!(action, Action::Gated(GatedWrite::DeletePod(delete)) if !delete.recreates());
    let mut pods = acted.before.iter();
    deletes && pods.any(|pod| pod.read.is_active() && is_requested(pod, acted.seen))
}

/// Checks that a pod is selected for deletion and deleted for a reason: there were too many pods, `podsToDelete` named
/// it, or its removal was requested. Updates have checks of their own.
pub(super) fn check_reason(action: &Action, acted: &Acted<'_>) {
    let Some(pod) = &acted.before else { return };
    let seen = acted.seen;
    let deletes = match action {
        Action::Gated(GatedWrite::DeletePod(delete)) => !delete.recreates() && pod.read.is_active(),
        Action::RecordSelection(_, text) => text.starts_with("delete@"),
        Action::ClearSelection(_) => {
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
fn entry(pod: &str, uid: &str, requester: &str, type_: &str, time: Time) -> String {
    format!("{pod} {uid} {requester} {type_} {}", time.timestamp())
}

impl World {
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
        let (mut valid, mut pending, mut unnamed) = (BTreeSet::new(), 0, 0);
        let label = has_requests(spec).then_some(names::REMOVAL_GUARD_ASK);
        for pod in &pods {
            let requests = valid_requests(&pod.api, spec, self.now);
            let (name, uid) = (&pod.id.name, &pod.id.uid);
            pending += i32::from(!requests.is_empty());
            valid.extend(requests.iter().map(|request| {
                let type_ = request.type_.as_str();
                entry(name, uid, &request.requester, type_, request.request_time)
            }));
            assert_eq!(
                pod.read.labels.get(names::REMOVAL_GUARD).map(String::as_str),
                label,
                "{:#?}",
                pod.read
            );
            let intent = pod.read.annotation(names::CHOSEN_FOR).unwrap_or_default();
            // An old pod may be selected for its update meanwhile.
            let is_unnamed = intent.starts_with("delete@")
                && requests.is_empty()
                && !wanted.pods_to_delete.contains(name)
                && !self.is_old(&status, pod.read.revision());
            unnamed += usize::from(is_unnamed);
        }
        let surplus = pods.len().saturating_sub(wanted.replicas);
        assert!(
            unnamed <= surplus,
            "{unnamed} pods stay selected, with {surplus} too many: {}",
            self.describe()
        );
        let listed = status.removal_requests.iter().map(|known| {
            let (requester, type_) = (&known.requester, &known.type_);
            entry(
                &known.pod_name,
                &known.pod_uid,
                requester,
                type_,
                known.request_time,
            )
        });
        let listed: BTreeSet<String> = listed.collect();
        assert!(
            listed.is_subset(&valid) && listed.len() == valid.len().min(LISTED),
            "listed: {listed:#?}, valid: {valid:#?}"
        );
        assert_eq!(status.removal_pending_replicas, pending, "{status:#?}");
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
