//! Checks the time limit of rollouts: none ends before its time has passed, and once it has ended, no further pod gets
//! its revision until a person acts.

use gamedeployment_core::plan::{Action, GatedWrite};
use jiff::{SignedDuration, Timestamp};
use shared_api::GameDeploymentStatus;
use shared_api::names::workload::RETRY_REQUESTED;

use super::Referee;
use super::lifecycle::gets;
use super::rollback::{in_force, targets};
use crate::games::Seen;

/// Time of the rollout that a status records.
#[derive(Debug, Default, Clone)]
pub(super) struct Time {
    /// UID of the workload, revision, and request with which the time began.
    rollout: (String, Option<String>, Option<String>),
    began: Timestamp,
}

impl Referee {
    /// Follows a status that was written. Returns whether it ends a rollout for its time.
    pub fn check_timer(&mut self, seen: &Seen, new: &GameDeploymentStatus) -> bool {
        let timer = new.rollout_timer.as_ref();
        let request = timer.and_then(|timer| timer.last_handled_retry.clone());
        let revision = timer.map(|timer| timer.revision.clone());
        let rollout = (seen.uid().to_owned(), revision, request);
        if self.time.rollout != rollout {
            self.time = Time {
                rollout,
                began: seen.at,
            };
        }
        let old = seen.object().status.as_ref();
        if !is_exceeded(new) || old.is_some_and(is_exceeded) || new.rollback.is_some() {
            return false;
        }
        let limit = limit(seen).unwrap_or(SignedDuration::MAX);
        assert!(
            seen.at.duration_since(self.time.began) >= limit,
            "a rollout that began at {} has exceeded {limit} at {}: {new:#?}",
            self.time.began,
            seen.at
        );
        true
    }
}

/// Checks that a write gives no pod the revision of a rollout whose time has passed. A pod may get the only revision
/// that there is.
pub(super) fn check_exceeded(action: &Action, seen: &Seen) {
    let object = seen.object();
    let Some(status) = object.status.as_ref().filter(|status| is_exceeded(status)) else {
        return;
    };
    let is_only = status.current_revision.is_none() || status.current_revision == status.update_revision;
    if is_only || !is_over(seen) || in_force(seen).is_some() {
        return;
    }
    let strategy = object.spec.update_strategy.as_ref();
    let is_recreate = strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"));
    let goes_on = match action {
        // A surplus pod may have been selected for a recreation before: then the hook of the update runs for it.
        Action::Gated(GatedWrite::DeletePod(delete)) => {
            let replicas = usize::try_from(object.spec.replicas.unwrap_or(1)).unwrap_or(0);
            delete.recreates() && seen.active <= replicas
        }
        // Without old pods there is nothing else to create.
        Action::CreatePod(_) if is_recreate => false,
        _ => gets(action).is_some_and(|to| targets(seen).contains(&to)),
    };
    assert!(
        !goes_on,
        "a rollout goes on whose time has passed: {action:#?} {status:#?}"
    );
}

/// Whether the time of the rollout has passed, as the recorded timer says.
pub(super) fn is_over(seen: &Seen) -> bool {
    let object = seen.object();
    let annotations = object.metadata.annotations.as_ref();
    let requested = annotations.and_then(|annotations| annotations.get(RETRY_REQUESTED));
    let timer = object
        .status
        .as_ref()
        .and_then(|status| status.rollout_timer.as_ref());
    timer.zip(limit(seen)).is_some_and(|(timer, limit)| {
        let is_restarted = requested.is_some() && requested != timer.last_handled_retry.as_ref();
        let running = timer
            .running_since
            .map(|since| seen.at.duration_since(since.timestamp()));
        let passed = SignedDuration::from_millis(timer.elapsed_milliseconds) + running.unwrap_or_default();
        let is_newest = targets(seen).contains(&timer.revision.as_str());
        is_newest && !is_restarted && passed >= limit
    })
}

fn is_exceeded(status: &GameDeploymentStatus) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|known| known.type_ == "Progressing" && known.reason == "ProgressDeadlineExceeded")
}

fn limit(seen: &Seen) -> Option<SignedDuration> {
    let strategy = seen.object().spec.update_strategy.as_ref()?;
    Some(SignedDuration::from_secs(strategy.timeout_seconds?.into()))
}
