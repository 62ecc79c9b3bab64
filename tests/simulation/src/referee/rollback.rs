//! Checks that no pod gets a revision whose rollout is aborted, and that only a person or another template ends this.

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::template::Template;
use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::RollbackStatus;
use shared_api::names::pod as names;
use shared_api::names::workload::{ABORT_REQUESTED, RETRY_REQUESTED};

use crate::games::Seen;

/// Returns the rollback that a decision saw, if it is about the newest template.
pub(super) fn in_force(seen: &Seen) -> Option<&RollbackStatus> {
    let rollback = seen.object().status.as_ref()?.rollback.as_ref()?;
    let template = Template::read(&seen.object().spec.template.value());
    let mut revisions = seen.revisions.iter();
    let is_newest = revisions.any(|known| known.name == rollback.from_revision && known.template == template);
    is_newest.then_some(rollback)
}

/// Names of the revisions that pods are updated to: those of the newest template, or the target of a rollback.
pub(super) fn targets(seen: &Seen) -> Vec<&str> {
    if let Some(rollback) = in_force(seen) {
        return vec![rollback.to_revision.as_str()];
    }
    let wanted = Template::read(&seen.object().spec.template.value());
    let revisions = seen.revisions.iter();
    let wanted = revisions.filter(|revision| revision.template == wanted);
    wanted.map(|revision| revision.name.as_str()).collect()
}

/// Checks that a write gives no pod an aborted revision.
pub(super) fn check_aborted(action: &Action, seen: &Seen) {
    let Some(rollback) = in_force(seen) else { return };
    let to = match action {
        Action::CreatePod(new) => new.manifest["metadata"]["labels"][names::REVISION].as_str(),
        Action::Gated(GatedWrite::SetNotReady(update, _) | GatedWrite::WriteUpdate(update, _)) => {
            Some(update.to())
        }
        _ => None,
    };
    assert_ne!(
        to,
        Some(rollback.from_revision.as_str()),
        "an aborted rollout goes on: {action:#?}"
    );
}

/// Whether a write takes a pod at the aborted revision back.
pub fn takes_back(action: &Action, revision: Option<&str>, seen: &Seen) -> bool {
    let is_aborted = in_force(seen).is_some_and(|rollback| revision == Some(&rollback.from_revision));
    let takes = matches!(
        action,
        Action::Gated(GatedWrite::DeletePod(_) | GatedWrite::WriteUpdate(..))
    );
    is_aborted && takes
}

/// Checks a status that was written. Returns whether it begins a rollback.
pub fn check_rollback(seen: &Seen, new: &GameDeploymentStatus) -> bool {
    let object = seen.object();
    let old = object.status.clone().unwrap_or_default();
    let annotation = |name: &str| object.metadata.annotations.as_ref()?.get(name).cloned();
    match (&old.rollback, &new.rollback) {
        (None, None) => false,
        (Some(known), Some(kept)) if known == kept => false,
        (Some(known), None) => {
            let requested = annotation(RETRY_REQUESTED)
                .filter(|text| text.starts_with("rollout=") || text.starts_with("lifecycle/"));
            let is_requested = requested.is_some() && requested != known.last_handled_retry;
            assert!(
                is_requested || new.update_revision.as_ref() != Some(&known.from_revision),
                "a rollback ends by itself: {old:#?}"
            );
            false
        }
        (_, Some(begun)) => {
            let request = annotation(ABORT_REQUESTED).unwrap_or_default();
            let mut hooks = new.lifecycle_hooks.iter();
            let by_hook =
                hooks.any(|entry| entry.phase.is_aborted() && entry.revision == begun.from_revision);
            assert!(
                by_hook
                    && ["LifecycleHookAborted", "ProgressDeadlineExceeded"].contains(&begun.reason.as_str())
                    || request.starts_with(&format!("{}=", begun.from_revision))
                        && old.last_handled_abort.as_ref() != Some(&request),
                "nobody has aborted the rollout: {request:?} {new:#?}"
            );
            assert_ne!(begun.from_revision, begun.to_revision);
            true
        }
    }
}
