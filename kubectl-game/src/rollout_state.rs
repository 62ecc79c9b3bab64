//! State of a rollout or scale change: complete, in progress, or blocked until a person acts. Used by
//! `status`. Pure.

use gamedeployment_core::hook_kind::HookKind;
use shared_api::game_deployment::HookStrategy;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use crate::view::state::{condition, held, unresolved, unseen};
use crate::view::waits::{Cause, causes, is_about, message_of, summary};
use crate::view::{PodCounts, status_of};

/// State of a workload, for a caller that waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RolloutState {
    /// The workload matches its spec.
    Complete(String),
    /// The workload continues automatically, or after it is resumed. Hooks with errors may recover.
    Waiting(String),
    /// A person must act, or the workload is being deleted.
    Blocked(String),
}

impl RolloutState {
    /// Returns the state of a workload.
    pub(crate) fn of(game: &GameDeployment) -> Self {
        if let Some(words) = being_deleted(game) {
            return Self::Blocked(words);
        }
        if let Some(message) = unseen(game) {
            return Self::Waiting(format!("Unseen: {message}"));
        }
        if let Some(kind) = HookKind::ALL
            .into_iter()
            .find(|kind| strategy(game, *kind).is_some_and(retries))
        {
            return Self::Waiting(format!(
                "the {} hooks are about to be rerun",
                crate::view::hook_name(kind)
            ));
        }
        let status = status_of(game);
        if let Some(blocked) = blocked(&status, &causes(game)) {
            return blocked;
        }
        let Some(progressing) = condition(&status, WorkloadCondition::Progressing) else {
            return Self::Waiting("Unseen: gamedeployment-operator has not reported a status yet".to_owned());
        };
        let words = format!("{}: {}", progressing.reason, progressing.message);
        match WorkloadReason::named(&progressing.reason) {
            Some(WorkloadReason::RolloutComplete) => complete(game, words),
            _ => Self::Waiting(words),
        }
    }
}

/// Returns a message if the workload is being deleted: it will never match its spec.
fn being_deleted(game: &GameDeployment) -> Option<String> {
    game.metadata.deletion_timestamp.as_ref()?;
    let status = status_of(game);
    let deleting = WorkloadReason::Deleting.as_str();
    let reported =
        condition(&status, WorkloadCondition::Progressing).filter(|found| found.reason == deleting);
    let message = reported.map_or("the GameDeployment is being deleted", |found| {
        found.message.as_str()
    });
    Some(format!("{deleting}: {message}"))
}

/// Returns the state that the conditions of a blocked workload report, if any. Waits only if that may end every one of
/// them.
fn blocked(status: &GameDeploymentStatus, causes: &[Cause]) -> Option<RolloutState> {
    let mut waiting = None;
    for kind in [
        WorkloadCondition::InvalidSpec,
        WorkloadCondition::ScaleBlocked,
        WorkloadCondition::UpdateBlocked,
    ] {
        let Some(found) = held(status, kind) else { continue };
        // A condition has the reason of one pod only.
        let cause = causes
            .iter()
            .find(|cause| !cause.reason.is_some_and(is_retried))
            .filter(|_| is_about(found, causes));
        if let Some(cause) = cause {
            let reason = match cause.reason {
                Some(reason) => reason.as_str(),
                None => found.reason.as_str(),
            };
            return Some(RolloutState::Blocked(format!("{reason}: {}", summary(causes))));
        }
        let words = format!("{}: {}", found.reason, message_of(found, causes));
        if !WorkloadReason::named(&found.reason).is_some_and(is_retried) {
            return Some(RolloutState::Blocked(words));
        }
        waiting.get_or_insert(RolloutState::Waiting(words));
    }
    waiting
}

/// The update is complete. Checks the rest: as many pods exist and are available as desired, none waits for a hook, and
/// every hook can run.
fn complete(game: &GameDeployment, words: String) -> RolloutState {
    let counts = PodCounts::of(game);
    if counts.waiting > 0 {
        return RolloutState::Waiting(match counts.waiting {
            1 => "1 pod is waiting for a hook".to_owned(),
            waiting => format!("{waiting} pods are waiting for a hook"),
        });
    }
    let (current, available, desired) = (counts.current, counts.available, counts.desired);
    if available < desired {
        let exist = if current == 1 {
            "1 exists".to_owned()
        } else {
            format!("{current} exist")
        };
        return RolloutState::Waiting(format!("{available} of {desired} pods are available ({exist})"));
    }
    if current != desired {
        return RolloutState::Waiting(format!("pods: {desired} desired, {current} current"));
    }
    match unresolved(&status_of(game)) {
        Some(found) => RolloutState::Blocked(format!("{}: {}", found.reason, found.message)),
        None => RolloutState::Complete(words),
    }
}

/// Returns whether the operators retry automatically, so that waiting makes sense.
fn is_retried(reason: WorkloadReason) -> bool {
    matches!(
        reason,
        WorkloadReason::WriteFailed
            | WorkloadReason::RevisionNotRecorded
            | WorkloadReason::PodAddressMissing
            | WorkloadReason::HookErrors
    )
}

fn retries(strategy: &HookStrategy) -> bool {
    strategy.retry == Some(true)
}

/// Returns the strategy of a hook from the spec.
pub(crate) fn strategy(game: &GameDeployment, kind: HookKind) -> Option<&HookStrategy> {
    let spec = &game.spec;
    match kind {
        HookKind::PreDelete => spec.pre_delete_update_strategy.as_ref(),
        HookKind::PreInplace => spec.pre_inplace_update_strategy.as_ref(),
        HookKind::PostInplace => spec.post_inplace_update_strategy.as_ref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn judged(game: &GameDeployment) -> (&'static str, String) {
        match RolloutState::of(game) {
            RolloutState::Complete(words) => ("complete", words),
            RolloutState::Waiting(words) => ("waiting", words),
            RolloutState::Blocked(words) => ("blocked", words),
        }
    }

    #[test]
    fn a_search_for_idle_pods_is_in_progress() {
        let words = "Scaling: deleting 2 pods; running the hook of arena-x7k2p; waiting for 1 more idle pod: running \
                     the hooks of 2 candidates";
        let game = samples::searching().game;
        assert_eq!(RolloutState::of(&game), RolloutState::Waiting(words.to_owned()));
    }

    #[test]
    fn a_complete_workload_has_the_desired_pods_and_waits_for_no_hook() {
        let complete = samples::complete().game;
        assert_eq!(judged(&complete).0, "complete");
        let mut game = complete.clone();
        game.status.as_mut().unwrap().available_replicas = 2;
        assert_eq!(
            judged(&game),
            ("waiting", "2 of 3 pods are available (3 exist)".to_owned())
        );
        let mut game = complete.clone();
        game.status.as_mut().unwrap().replicas = 4;
        assert_eq!(
            judged(&game),
            ("waiting", "pods: 3 desired, 4 current".to_owned())
        );
        for (waiting, words) in [
            (1, "1 pod is waiting for a hook"),
            (2, "2 pods are waiting for a hook"),
        ] {
            let mut game = complete.clone();
            game.status.as_mut().unwrap().hook_pending_replicas = waiting;
            assert_eq!(judged(&game), ("waiting", words.to_owned()));
        }
        let mut game = complete;
        game.metadata.generation = Some(4);
        assert!(
            judged(&game).1.starts_with("Unseen: "),
            "a status of an older spec says nothing"
        );
    }

    #[test]
    fn a_state_that_needs_a_person_is_blocked_and_any_other_waits() {
        assert_eq!(judged(&samples::refused().game).0, "blocked");
        assert_eq!(judged(&samples::blocked().game).0, "blocked");
        assert_eq!(
            judged(&samples::because("PodAddressMissing", "no address").game).0,
            "waiting"
        );
        assert_eq!(judged(&samples::running().game).0, "waiting");
        assert_eq!(judged(&samples::paused().game).0, "waiting");
        let aborted = judged(&samples::rolled_back().game);
        assert_eq!(aborted.0, "blocked");
        assert!(aborted.1.starts_with("RolloutAborted: "), "{aborted:?}");
        let mut all_back = samples::rolled_back().game;
        all_back.status.as_mut().unwrap().updated_replicas = 0;
        assert_eq!(
            judged(&all_back).0,
            "blocked",
            "spec.template is still not rolled out"
        );
        let mut retried = samples::refused().game;
        let strategy = retried.spec.pre_delete_update_strategy.as_mut().unwrap();
        strategy.retry = Some(true);
        assert_eq!(
            judged(&retried),
            ("waiting", "the PreDelete hooks are about to be rerun".to_owned()),
            "the status is about the run before"
        );
    }

    #[test]
    fn errors_of_a_hook_are_waited_for_and_a_hook_that_cannot_succeed_is_not() {
        let error = "connection refused by 10.0.0.7:9091";
        let game = |reason| samples::erroring(reason, "Unreachable", error).game;
        let (state, words) = judged(&game("HookErrors"));
        assert_eq!(state, "waiting");
        assert!(
            words.starts_with("HookErrors: pod arena-x7k2p: HookRun ") && words.ends_with(error),
            "{words}"
        );
        let (state, words) = judged(&game("HookCannotSucceed"));
        assert_eq!(state, "blocked");
        assert!(words.starts_with("HookCannotSucceed: "), "{words}");
        assert_eq!(judged(&game("Measuring")).0, "waiting");
    }

    #[test]
    fn one_pod_that_needs_a_person_is_enough() {
        let mut game = samples::erroring("HookErrors", "Unreachable", "connection refused").game;
        let refused = samples::refused().game.status.unwrap();
        let entries = &mut game.status.as_mut().unwrap().pre_delete_hook_condition;
        let mut entry = refused.pre_delete_hook_condition[0].clone();
        entry.pod_name = "arena-b4n8c".to_owned();
        entries.push(entry);
        let (state, words) = judged(&game);
        assert_eq!(state, "blocked");
        assert!(words.starts_with("HookUnsuccessful: "), "{words}");
        assert!(words.contains("; pod arena-b4n8c: HookRun "), "{words}");
    }

    #[test]
    fn a_workload_that_is_being_deleted_is_never_complete() {
        let before = "Deleting: the GameDeployment is being deleted".to_owned();
        for snapshot in [samples::complete(), samples::refused()] {
            assert_eq!(
                judged(&samples::being_deleted(snapshot, true).game),
                ("blocked", before.clone()),
                "the status is of the time before"
            );
        }
        let words = "the GameDeployment is being deleted; 1 pod is left; running the hook of arena-x7k2p";
        let reported = samples::with_condition("Progressing", "True", "Deleting", words);
        let mut game = samples::being_deleted(reported, true).game;
        assert_eq!(judged(&game), ("blocked", format!("Deleting: {words}")));
        game.metadata.generation = Some(4);
        assert_eq!(judged(&game).0, "blocked", "no operator is needed to see it");
    }

    #[test]
    fn a_complete_rollout_with_a_hook_that_cannot_run_needs_a_person() {
        let mut game = samples::unresolved("HookTemplateMissing").game;
        let (state, words) = judged(&game);
        assert_eq!(state, "blocked");
        assert!(words.starts_with("HookTemplateMissing: spec."), "{words}");
        game.status.as_mut().unwrap().available_replicas = 2;
        assert_eq!(judged(&game).0, "waiting", "a pod is missing");
    }

    #[test]
    fn the_words_hold_the_cause_without_remedies() {
        let (_, words) = judged(&samples::refused().game);
        assert!(words.ends_with("; the pod is kept"), "{words}");
    }
}
