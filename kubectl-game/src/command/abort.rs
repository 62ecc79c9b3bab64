//! `kubectl game abort`: aborts a rollout and rolls its pods back to the last completed revision.

use clap::Args;
use gamedeployment_core::workload::{UpdateType, Workload};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::names::workload::{ABORT_REQUESTED, RETRY_REQUESTED};
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::outlook::{Answer, Outlook, WATCH};
use super::promote::{hook_failed, resumed, step_number};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::state::{complete_revision, held, rollback, unseen};
use crate::view::status_of;
use crate::why::{is_paused, pauses_for_a_time};

/// Aborts a rollout.
#[derive(Debug, Clone, Args)]
pub(crate) struct Abort {
    /// Name of the GameDeployment
    name: String,

    #[command(flatten)]
    flags: Flags,
}

impl Abort {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let answer = cluster
            .change(name, |game: &GameDeployment| {
                decide(game, Timestamp::now(), &cluster.flags)
            })
            .await?;
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

/// Returns the patch that requests the abort, and what happens then; or the reason why there is nothing to abort.
fn decide(game: &GameDeployment, now: Timestamp, flags: &str) -> Result<(Value, Answer), Failure> {
    let status = status_of(game);
    let (workload, _) = Workload::examine(game);
    let (from, to) = revisions(game, &status, workload.update, flags).map_err(Failure::Refused)?;
    let outlook = Outlook::of(game, flags);
    let mut next = vec![outlook.watch(WATCH)];
    let (mut patch, pause) = if is_paused_by_step(game) {
        let words = format!(" The pause at canary step {} is lifted.", step_number(game));
        (resumed(), words)
    } else if is_paused(game) {
        next.insert(0, outlook.command("resume", "let the pods roll back"));
        let words = " Updates are paused: no pod is rolled back until they are resumed.".to_owned();
        (json!({}), words)
    } else {
        (json!({}), String::new())
    };
    patch["metadata"] = json!({ "annotations": { ABORT_REQUESTED: format!("{from}={now}") } });
    let message = format!(
        "{}: aborted the rollout to {from}; {}; spec.template is unchanged.{pause}",
        game.name_any(),
        way_back(&workload, status.updated_replicas, to)
    );
    Ok((patch, Answer { message, next }))
}

/// Returns the revision whose rollout is under way, and the revision to roll back to; or why no rollout can be aborted.
fn revisions<'s>(
    game: &GameDeployment,
    status: &'s GameDeploymentStatus,
    update: UpdateType,
    flags: &str,
) -> Result<(&'s str, &'s str), String> {
    let name = game.name_any();
    if let Some(words) = unseen(game) {
        return Err(format!(
            "the state of {name}'s rollout is not known yet; try again in a moment ({words})"
        ));
    }
    let Some(from) = status.update_revision.as_deref() else {
        return Err(format!(
            "gamedeployment-operator has not recorded a revision of {name} yet, so there is no rollout to abort; to \
             find out why: kubectl game why gd/{name}{flags}"
        ));
    };
    let Some(to) = complete_revision(status) else {
        return Err(format!(
            "{name} has no completed revision to roll back to: this is its first rollout; to stop it: kubectl game \
             pause {name}{flags}"
        ));
    };
    if from == to {
        return Err(format!(
            "{name} has no rollout to abort: its rollout to {from} is complete; to roll back: kubectl game undo \
             {name}{flags}"
        ));
    }
    if update == UpdateType::Recreate {
        return Err(format!(
            "{name} uses update type Recreate, and its new pods may have changed data that the old pods use; to roll \
             back with a new rollout that runs its own hooks: kubectl game undo {name}{flags}"
        ));
    }
    let requested = game.annotations().get(RETRY_REQUESTED);
    // A retry that the operator has not handled yet would restart the rollout.
    if let Some(rollback) = rollback(status).filter(|known| known.last_handled_retry.as_ref() == requested) {
        return Err(format!(
            "the rollout of {name} to {from} is already aborted, and its pods are being rolled back to {}; to restart \
             the rollout: kubectl game retry {name}{flags}",
            rollback.to_revision
        ));
    }
    match unrecorded(status) {
        Some(words) => Err(format!(
            "the spec of {name} cannot be rolled out: {words}; fix the spec, then run the command again"
        )),
        None => Ok((from, to)),
    }
}

/// Returns why the operator does not work on the present template, if so. It handles no request until then.
fn unrecorded(status: &GameDeploymentStatus) -> Option<&str> {
    let refused = held(status, WorkloadCondition::UpdateBlocked)
        .filter(|found| found.reason == WorkloadReason::RevisionNotRecorded.as_str());
    let found = held(status, WorkloadCondition::InvalidSpec).or(refused)?;
    Some(found.message.as_str())
}

/// Returns whether a canary step has paused the workload. During a pause for a limited time, only a person sets
/// `paused`.
fn is_paused_by_step(game: &GameDeployment) -> bool {
    let waits_for_a_person = !status_of(game).pause_conditions.is_empty() && !pauses_for_a_time(game);
    is_paused(game) && (hook_failed(game) || waits_for_a_person)
}

/// Describes how the updated pods are rolled back.
fn way_back(workload: &Workload, updated: i32, to: &str) -> String {
    let how = match workload.update {
        UpdateType::OnDelete => "when a user deletes it",
        UpdateType::HotPatch if workload.recreate_fallback => {
            "by a hot patch while in service, or by replacement once its hook, if any, succeeds"
        }
        UpdateType::HotPatch => "by a hot patch while in service, without running a hook",
        UpdateType::Rolling | UpdateType::InPlace | UpdateType::Recreate => "once its hook, if any, succeeds",
    };
    match updated {
        0 => format!("no pods need to be rolled back to {to}"),
        1 => format!("1 pod will be rolled back to {to} {how}"),
        more => format!("{more} pods will be rolled back to {to}, each {how}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    /// Returns the workload with its rollout under way.
    fn under_way(mut game: GameDeployment) -> GameDeployment {
        game.status.get_or_insert_default().current_revision = Some("arena-5f6d8b".to_owned());
        game
    }

    fn rolling_out() -> GameDeployment {
        under_way(
            samples::with_condition("Progressing", "True", "RollingOut", "2 of 3 pods are updated").game,
        )
    }

    fn aborted(game: &GameDeployment) -> (Value, String) {
        let (patch, answer) = decide(game, samples::now(), " -n games").unwrap();
        let mut commands = answer.next.iter().rev().map(ToString::to_string);
        let watch = "kubectl game get arena -w -n games  # watch";
        assert_eq!(commands.next().as_deref(), Some(watch));
        let resume = "kubectl game resume arena -n games  # let the pods roll back";
        let is_held = answer
            .message
            .ends_with("no pod is rolled back until they are resumed.");
        assert_eq!(commands.next().as_deref(), is_held.then_some(resume));
        (patch, answer.message)
    }

    fn refused(game: &GameDeployment) -> String {
        decide(game, samples::now(), " -n games").unwrap_err().to_string()
    }

    /// Returns why a changed workload is refused.
    fn edited(edit: fn(&mut GameDeployment)) -> String {
        let mut game = rolling_out();
        edit(&mut game);
        refused(&game)
    }

    #[test]
    fn the_rollout_of_this_revision_is_aborted() {
        let (patch, message) = aborted(&rolling_out());
        let request = "arena-7d4b9c=2026-01-02T10:00:00Z";
        assert_eq!(
            patch,
            json!({ "metadata": { "annotations": { ABORT_REQUESTED: request } } })
        );
        assert_eq!(
            message,
            "arena: aborted the rollout to arena-7d4b9c; 2 pods will be rolled back to arena-5f6d8b, each once its \
             hook, if any, succeeds; spec.template is unchanged."
        );
    }

    #[test]
    fn the_message_says_how_many_pods_are_rolled_back_and_when() {
        let mut game = rolling_out();
        for (type_, updated, words) in [
            (
                "InplaceUpdate",
                1,
                "1 pod will be rolled back to arena-5f6d8b once its hook, if any, succeeds;",
            ),
            (
                "InplaceUpdate",
                0,
                "no pods need to be rolled back to arena-5f6d8b;",
            ),
            (
                "HotPatchUpdate",
                2,
                "2 pods will be rolled back to arena-5f6d8b, each by a hot patch while in service, without running a \
                 hook;",
            ),
            (
                "OnDelete",
                2,
                "2 pods will be rolled back to arena-5f6d8b, each when a user deletes it;",
            ),
            (
                "OnDelete",
                1,
                "1 pod will be rolled back to arena-5f6d8b when a user deletes it;",
            ),
        ] {
            game.spec.update_strategy.get_or_insert_default().type_ = Some(type_.to_owned());
            game.status.get_or_insert_default().updated_replicas = updated;
            let (_, message) = aborted(&game);
            assert!(message.contains(words), "{type_} {updated}: {message}");
        }
        let fallback =
            json!({ "type": "HotPatchUpdate", "inPlaceUpdateStrategy": { "fallback": "Recreate" } });
        game.spec.update_strategy = serde_json::from_value(fallback).unwrap();
        let (_, message) = aborted(&game);
        let words = "1 pod will be rolled back to arena-5f6d8b by a hot patch while in service, or by replacement once \
                     its hook, if any, succeeds;";
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn the_pause_of_a_canary_step_ends_with_the_rollout() {
        for reason in ["PausedByCanaryPauseStep", "PausedByStepBasedHook"] {
            let game = under_way(samples::canary(reason, true).game);
            let (patch, message) = aborted(&game);
            assert_eq!(patch["spec"], resumed()["spec"], "{reason}");
            assert!(patch["metadata"]["annotations"][ABORT_REQUESTED].is_string());
            assert!(
                message.ends_with("spec.template is unchanged. The pause at canary step 2 is lifted."),
                "{message}"
            );
            let (patch, _) = aborted(&under_way(samples::canary(reason, false).game));
            assert_eq!(patch.get("spec"), None, "{reason}");
        }
    }

    #[test]
    fn the_pause_of_a_person_stays() {
        let by_hand = under_way(samples::paused().game);
        let mut timed = under_way(samples::canary("PausedByCanaryPauseStep", true).game);
        let strategy = timed.spec.update_strategy.as_mut().unwrap();
        let steps = strategy.canary.as_mut().unwrap().steps.as_mut().unwrap();
        steps[1].pause.as_mut().unwrap().duration = Some(600);
        for game in [by_hand, timed] {
            let (patch, message) = aborted(&game);
            assert_eq!(patch.get("spec"), None);
            assert!(
                message.ends_with("Updates are paused: no pod is rolled back until they are resumed."),
                "{message}"
            );
        }
    }

    #[test]
    fn without_a_rollout_and_a_revision_to_roll_back_to_it_is_refused_with_the_remedy() {
        let unseen = edited(|game| game.metadata.generation = Some(4));
        let again = "the state of arena's rollout is not known yet; try again in a moment (";
        assert!(unseen.starts_with(again), "{unseen}");
        let unknown = edited(|game| game.status.as_mut().unwrap().update_revision = None);
        assert!(
            unknown.ends_with("to find out why: kubectl game why gd/arena -n games"),
            "{unknown}"
        );
        assert_eq!(
            edited(|game| game.status.as_mut().unwrap().current_revision = None),
            "arena has no completed revision to roll back to: this is its first rollout; to stop it: kubectl game \
             pause arena -n games"
        );
        let complete = "arena has no rollout to abort: its rollout to arena-7d4b9c is complete; to roll back: kubectl \
                        game undo arena -n games";
        assert_eq!(refused(&samples::complete().game), complete);
        let mut of_canary = rolling_out();
        let status = of_canary.status.as_mut().unwrap();
        status.current_revision = None;
        status.canary = Some(serde_json::from_value(json!({ "revision": "arena-7d4b9c" })).unwrap());
        assert_eq!(refused(&of_canary), complete);
        let recreate = edited(|game| {
            game.spec.update_strategy.as_mut().unwrap().type_ = Some("Recreate".to_owned());
        });
        assert!(
            recreate.ends_with("that runs its own hooks: kubectl game undo arena -n games"),
            "{recreate}"
        );
    }

    #[test]
    fn an_aborted_rollout_and_a_spec_that_cannot_be_rolled_out_are_refused() {
        assert_eq!(
            refused(&samples::rolled_back().game),
            "the rollout of arena to arena-7d4b9c is already aborted, and its pods are being rolled back to \
             arena-5f6d8b; to restart the rollout: kubectl game retry arena -n games"
        );
        let mut retried = samples::rolled_back().game;
        let request = (RETRY_REQUESTED.to_owned(), "rollout=1".to_owned());
        retried
            .metadata
            .annotations
            .get_or_insert_default()
            .extend([request]);
        assert!(decide(&retried, samples::now(), "").is_ok());
        for (kind, reason) in [
            ("InvalidSpec", "InvalidSpec"),
            ("UpdateBlocked", "RevisionNotRecorded"),
        ] {
            let game = under_way(samples::with_condition(kind, "True", reason, "the cause").game);
            assert_eq!(
                refused(&game),
                "the spec of arena cannot be rolled out: the cause; fix the spec, then run the command again"
            );
        }
        let other =
            under_way(samples::with_condition("UpdateBlocked", "True", "InPlaceStalled", "the cause").game);
        assert!(decide(&other, samples::now(), "").is_ok());
    }
}
