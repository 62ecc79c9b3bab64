//! Another attempt of a lifecycle hook, or of a rollout that was rolled back: the annotation that requests it.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::game_deployment::{LifecycleHookPhase as Phase, LifecycleHookStatus, RollbackStatus};
use shared_api::names::workload::RETRY_REQUESTED;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use crate::cluster::Failure;
use crate::view::state::{condition, rollback};
use crate::view::status_of;

/// Returns the patch that requests another attempt of this hook, and its message; or why none is possible. After a
/// rollback, the whole rollout is restarted.
pub(super) fn request(
    game: &GameDeployment,
    hook: &str,
    now: Timestamp,
    flags: &str,
) -> Result<(Value, String), Failure> {
    let name = game.name_any();
    let hooks = game.spec.lifecycle_hooks.as_deref().unwrap_or_default();
    if !hooks.iter().any(|known| known.name == hook) {
        let names: Vec<&str> = hooks.iter().map(|known| known.name.as_str()).collect();
        return Err(Failure::Refused(if names.is_empty() {
            format!("{name} has no lifecycle hooks")
        } else {
            format!(
                "{name} has no lifecycle hook {hook:?}; available lifecycle hooks: {}",
                names.join(", ")
            )
        }));
    }
    let status = status_of(game);
    let entry = status.lifecycle_hooks.iter().find(|entry| entry.name == hook);
    let patch = requested(&format!("lifecycle/{hook}={now}"));
    if let Some(rollback) = rollback(&status) {
        let has_aborted = entry.is_some_and(|entry| entry.phase.is_aborted());
        if !has_aborted {
            return Err(Failure::Refused(format!(
                "lifecycle hook {hook} of {name} did not abort the rollout; to restart the rollout: kubectl game retry \
                 {name}{flags}"
            )));
        }
        let message = restarting(&name, rollback);
        return Ok((
            patch,
            format!("{message} Lifecycle hook {hook} will run again when the rollout reaches its trigger."),
        ));
    }
    let why_not = match entry.map(|entry| (entry.phase, entry.attempts)) {
        Some((Phase::Failed | Phase::Error | Phase::Inconclusive, _) | (Phase::Waiting, 1..)) => None,
        None | Some((Phase::Waiting, _)) => {
            Some("has not started: the rollout has not reached its trigger yet")
        }
        Some((Phase::Running, _)) => Some("is running"),
        Some((Phase::Successful | Phase::Ignored, _)) => {
            Some("has already finished; it will run again in the next rollout")
        }
    };
    if let Some(why_not) = why_not {
        return Err(Failure::Refused(format!(
            "lifecycle hook {hook} of {name} {why_not}"
        )));
    }
    let message = format!("{name}: rerunning lifecycle hook {hook}.");
    Ok((patch, message))
}

/// Returns the patch that restarts an aborted rollout whose pods are being rolled back, and its message; `None` if no
/// pods are being rolled back.
pub(super) fn begin_again(game: &GameDeployment, now: Timestamp) -> Option<(Value, String)> {
    let status = status_of(game);
    let rollback = rollback(&status)?;
    let message = restarting(&game.name_any(), rollback);
    Some((requested(&format!("rollout={now}")), message))
}

/// Returns the patch that gives the whole time to a rollout that has exceeded its limit, and its message; `None` if none
/// has.
pub(super) fn restart_timer(game: &GameDeployment, now: Timestamp) -> Option<(Value, String)> {
    let status = status_of(game);
    let reason = WorkloadReason::ProgressDeadlineExceeded.as_str();
    let progressing = condition(&status, WorkloadCondition::Progressing);
    progressing.filter(|progressing| progressing.reason == reason)?;
    let message = format!(
        "{}: the rollout's timeout is restarted, and lifecycle hooks that it cut short will run again.",
        game.name_any()
    );
    Some((requested(&format!("rollout={now}")), message))
}

fn restarting(name: &str, rollback: &RollbackStatus) -> String {
    let revision = &rollback.from_revision;
    format!("{name}: restarting the rollout to {revision} from the beginning.")
}

/// Returns the patch with a request for a retry.
fn requested(text: &str) -> Value {
    json!({ "metadata": { "annotations": { RETRY_REQUESTED: text } } })
}

/// Returns the lifecycle hooks that aborted the rollout.
pub(super) fn aborted(game: &GameDeployment) -> Vec<LifecycleHookStatus> {
    let entries = status_of(game).lifecycle_hooks.into_iter();
    entries.filter(|entry| entry.phase.is_aborted()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn game(phase: &str, attempts: i32) -> GameDeployment {
        let mut game = samples::refused().game;
        let hooks = json!([
            { "name": "smoke", "trigger": { "type": "Post" }, "hook": { "templateName": "ask" } },
            { "name": "other", "trigger": { "type": "Post" }, "hook": { "templateName": "ask" } },
        ]);
        game.spec.lifecycle_hooks = serde_json::from_value(hooks).unwrap();
        let entries = json!([{ "name": "smoke", "revision": "r", "phase": phase, "attempts": attempts }]);
        game.status.get_or_insert_default().lifecycle_hooks = serde_json::from_value(entries).unwrap();
        game
    }

    #[test]
    fn a_hook_without_success_runs_again() {
        let now: Timestamp = "2024-06-01T00:00:00Z".parse().unwrap();
        for (phase, attempts) in [("Failed", 1), ("Error", 2), ("Inconclusive", 1), ("Waiting", 3)] {
            let (patch, message) = request(&game(phase, attempts), "smoke", now, "").unwrap();
            let text = "lifecycle/smoke=2024-06-01T00:00:00Z";
            assert_eq!(
                patch,
                json!({ "metadata": { "annotations": { RETRY_REQUESTED: text } } })
            );
            assert_eq!(message, "arena: rerunning lifecycle hook smoke.");
        }
    }

    #[test]
    fn a_rollout_that_a_hook_aborted_begins_again_as_a_whole_after_a_rollback() {
        let now: Timestamp = "2024-06-01T00:00:00Z".parse().unwrap();
        let rolled_back = |phase: &str| {
            let mut game = game(phase, 1);
            let rollback = samples::rolled_back().game.status.unwrap().rollback;
            game.status.get_or_insert_default().rollback = rollback;
            game
        };
        let (patch, message) = request(&rolled_back("Failed"), "smoke", now, "").unwrap();
        assert_eq!(patch, requested("lifecycle/smoke=2024-06-01T00:00:00Z"));
        assert_eq!(
            message,
            "arena: restarting the rollout to arena-7d4b9c from the beginning. Lifecycle hook smoke will run again \
             when the rollout reaches its trigger."
        );
        let (patch, _) = begin_again(&rolled_back("Failed"), now).unwrap();
        assert_eq!(patch, requested("rollout=2024-06-01T00:00:00Z"));
        assert_eq!(begin_again(&game("Failed", 1), now), None);
        // The operator handles no request about them then.
        for phase in ["Waiting", "Successful"] {
            let refused = request(&rolled_back(phase), "smoke", now, " -n games").unwrap_err();
            assert_eq!(
                refused.to_string(),
                "lifecycle hook smoke of arena did not abort the rollout; to restart the rollout: kubectl game retry \
                 arena -n games"
            );
        }
    }

    #[test]
    fn a_request_without_effect_is_refused_in_words() {
        let refused = |game: &GameDeployment, hook: &str| {
            let refused = request(game, hook, Timestamp::UNIX_EPOCH, "").unwrap_err();
            refused.to_string()
        };
        for (phase, words) in [
            ("Running", "is running"),
            ("Successful", "has already finished"),
            ("Ignored", "has already finished"),
        ] {
            let message = refused(&game(phase, 1), "smoke");
            assert!(
                message.starts_with(&format!("lifecycle hook smoke of arena {words}")),
                "{message}"
            );
        }
        let early = "has not started: the rollout has not reached its trigger yet";
        assert!(refused(&game("Waiting", 0), "smoke").ends_with(early));
        assert!(refused(&game("Failed", 1), "other").ends_with(early));
        assert_eq!(
            refused(&game("Failed", 1), "smok"),
            "arena has no lifecycle hook \"smok\"; available lifecycle hooks: smoke, other"
        );
        assert_eq!(
            refused(&samples::refused().game, "smoke"),
            "arena has no lifecycle hooks"
        );
    }
}
