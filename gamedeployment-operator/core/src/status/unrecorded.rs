//! Reports about an invalid spec and about a template without a recorded revision, and what continues
//! nevertheless.

use jiff::Timestamp;
use shared_api::GameDeploymentStatus;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::condition::Conditions;
use super::{conclude, number};
use crate::deadline;
use crate::deletion;
use crate::facts::Facts;
use crate::history::Unrecorded;
use crate::lifecycle;
use crate::plan::{Gauges, StatusReport};
use crate::plural::pods_are;
use crate::pod::Pod;
use crate::view::View;
use crate::workload::{self, FieldError};

/// Reports why nothing is done: the spec has `problems`, or the first revision is rejected. Pods are counted
/// but left unchanged.
pub fn refuse(view: &View<'_>, problems: &[FieldError], now: Timestamp) -> StatusReport {
    let old = view.object.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(&old.conditions, view.object.metadata.generation, now);
    conditions.keep(WorkloadCondition::Available);
    conditions.keep(WorkloadCondition::RemovalsGuarded);
    let unscaled = view.write_errors.and_then(|errors| errors.scaling.clone());
    let mut stopped = |kind, reason, see: String, message| {
        conditions.set(WorkloadCondition::Progressing, false, reason, see);
        conditions.set(kind, true, reason, message);
    };
    if !problems.is_empty() {
        let see = "the spec is invalid; see InvalidSpec".to_owned();
        let (kind, reason) = (WorkloadCondition::InvalidSpec, WorkloadReason::InvalidSpec);
        stopped(kind, reason, see, workload::sentence(problems));
        if let Some(refused) = unscaled {
            let (kind, reason) = (WorkloadCondition::ScaleBlocked, WorkloadReason::WriteFailed);
            conditions.set(kind, true, reason, refused);
        }
    } else if let Some(refused) = view.write_errors.and_then(|errors| errors.revision.as_ref()) {
        let see = "the revision of spec.template has not been recorded; see ScaleBlocked".to_owned();
        let message =
            format!("failed to record the revision of spec.template, so no pods are created: {refused}");
        let (kind, reason) = (
            WorkloadCondition::ScaleBlocked,
            WorkloadReason::RevisionNotRecorded,
        );
        stopped(kind, reason, see, message);
    } else if let Some(refused) = unscaled {
        let see = if deletion::is_requested(view.object) {
            "the GameDeployment is being deleted; see ScaleBlocked"
        } else {
            "no pods are created; see ScaleBlocked"
        };
        let see = see.to_owned();
        let (kind, reason) = (WorkloadCondition::ScaleBlocked, WorkloadReason::WriteFailed);
        stopped(kind, reason, see, refused);
    } else {
        // The revision is being recorded, or the finalizer removed.
        return StatusReport::default();
    }
    let uid = view.object.metadata.uid.as_deref();
    let own = |pod: &&&Pod| pod.is_active() && uid.is_some() && pod.controller.as_deref() == uid;
    let active: Vec<&&Pod> = view.pods.iter().filter(own).collect();
    let status = GameDeploymentStatus {
        observed_generation: view.object.metadata.generation,
        replicas: number(active.len()),
        ready_replicas: number(active.iter().filter(|pod| pod.is_ready()).count()),
        conditions: conditions.finish(),
        rollout_timer: old
            .rollout_timer
            .clone()
            .map(|timer| deadline::advanced(timer, false, now)),
        ..old.clone()
    };
    let (status, warnings) = conclude(old, status, |_| false);
    StatusReport {
        status,
        warnings,
        gauges: Some(Gauges::default()),
        wake: None,
    }
}

/// Reports the problems of an invalid template.
pub(super) fn invalid_spec(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    if let Some(Unrecorded::Invalid(problems)) = &facts.history.unrecorded {
        let message = format!("{}; {}", workload::sentence(problems), meanwhile(facts));
        let (kind, reason) = (WorkloadCondition::InvalidSpec, WorkloadReason::InvalidSpec);
        conditions.set(kind, true, reason, message);
    }
}

/// Returns why the API server rejects the template's revision.
pub(super) fn refused(facts: &Facts<'_>) -> Option<(WorkloadReason, String)> {
    match facts.history.unrecorded.as_ref()? {
        Unrecorded::Invalid(_) | Unrecorded::BeingDeleted => None,
        Unrecorded::Refused(why) => {
            let meanwhile = meanwhile(facts);
            let message = format!("failed to record the revision of spec.template: {why}; {meanwhile}");
            Some((WorkloadReason::RevisionNotRecorded, message))
        }
    }
}

/// Returns whether the workload progresses although its template is not recorded, and why.
pub(super) fn progressing(facts: &Facts<'_>) -> Option<(bool, WorkloadReason, String)> {
    let (progress, reason, message) = match facts.history.unrecorded.as_ref()? {
        Unrecorded::Invalid(_) => (
            false,
            WorkloadReason::InvalidSpec,
            "spec.template is invalid; see InvalidSpec".to_owned(),
        ),
        Unrecorded::Refused(_) => (
            false,
            WorkloadReason::RevisionNotRecorded,
            "the revision of spec.template has not been recorded; see UpdateBlocked".to_owned(),
        ),
        Unrecorded::BeingDeleted => {
            let left = pods_are(facts.pods.len());
            let message = format!("the GameDeployment is being deleted; {left} left");
            (true, WorkloadReason::Deleting, message)
        }
    };
    Some((progress, reason, message))
}

fn meanwhile(facts: &Facts<'_>) -> String {
    if lifecycle::holds_first_rollout(facts) {
        return "until this is fixed, no pods are created or updated, because lifecycle hooks of the first rollout \
                have not finished"
            .to_owned();
    }
    let current = &facts.history.current.name;
    format!("until this is fixed, no pods are updated, and new pods use revision {current}")
}
