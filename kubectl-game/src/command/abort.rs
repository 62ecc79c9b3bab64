//! `kubectl game abort`: aborts a rollout and takes its pods back to the last complete revision.

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::names::workload::{ABORT_REQUESTED, RETRY_REQUESTED};
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::promote::{hook_failed, resumed, step_number};
use super::template::update_type;
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::state::{held, rollback, unseen};
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
        let message = cluster
            .change(name, |game: &GameDeployment| {
                decide(game, Timestamp::now(), &cluster.flags)
            })
            .await?;
        print_answer(
            &message,
            &[format!("kubectl game get {name} -w{}", cluster.flags)],
        );
        DONE
    }
}

/// Returns the patch that requests the abort, and its message; or the reason why there is nothing to abort.
fn decide(game: &GameDeployment, now: Timestamp, flags: &str) -> Result<(Value, String), Failure> {
    let status = status_of(game);
    let (from, to) = revisions(game, &status, flags).map_err(Failure::Refused)?;
    let (mut patch, pause) = unpaused(game, flags);
    patch["metadata"] = json!({ "annotations": { ABORT_REQUESTED: format!("{from}={now}") } });
    let message = format!(
        "{}: the rollout to {from} is aborted; {}; spec.template stays.{pause}",
        game.name_any(),
        way_back(game, status.updated_replicas, to)
    );
    Ok((patch, message))
}

/// Returns the revision whose rollout is under way, and the revision to go back to; or why no rollout can be aborted.
fn revisions<'s>(
    game: &GameDeployment,
    status: &'s GameDeploymentStatus,
    flags: &str,
) -> Result<(&'s str, &'s str), String> {
    let name = game.name_any();
    if let Some(words) = unseen(game) {
        return Err(format!(
            "the rollout of {name} is not known yet, so repeat the command in a moment: {words}"
        ));
    }
    let Some(from) = status.update_revision.as_deref() else {
        return Err(format!(
            "gamedeployment-operator has not recorded a revision of {name} yet, so there is no rollout to abort; find \
             out more with: kubectl game why gd/{name}{flags}"
        ));
    };
    let canary = || status.canary.as_ref()?.revision.as_deref();
    let Some(to) = status.current_revision.as_deref().or_else(canary) else {
        return Err(format!(
            "{name} has no complete revision to go back to: this is its first rollout; to stop it: kubectl game pause \
             {name}{flags}"
        ));
    };
    if from == to {
        return Err(format!(
            "{name} has no rollout to abort: its rollout to {from} is complete; to go back: kubectl game undo \
             {name}{flags}"
        ));
    }
    if update_type(game) == Some("Recreate") {
        return Err(format!(
            "{name} has the update type Recreate: its new pods may have changed data that old pods use; to go back by a \
             rollout with its own hooks: kubectl game undo {name}{flags}"
        ));
    }
    let requested = game.annotations().get(RETRY_REQUESTED);
    // A retry that the operator has not handled yet would begin the rollout again.
    if let Some(rollback) = rollback(status).filter(|known| known.last_handled_retry.as_ref() == requested) {
        return Err(format!(
            "the rollout of {name} to {from} is aborted already, and its pods go back to {}; to begin it again: kubectl \
             game retry {name}{flags}",
            rollback.to_revision
        ));
    }
    match unrecorded(status) {
        Some(words) => Err(format!(
            "the spec of {name} cannot be rolled out now: {words}; repeat the command when that is corrected"
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

/// Returns the patch that ends the pause of a canary step, or an empty one, and a sentence about the pause.
fn unpaused(game: &GameDeployment, flags: &str) -> (Value, String) {
    if is_paused_by_step(game) {
        let words = format!(" The pause of canary step {} ends.", step_number(game));
        return (resumed(), words);
    }
    let words = if is_paused(game) {
        format!(
            " It is paused, so no pod goes back until: kubectl game resume {}{flags}",
            game.name_any()
        )
    } else {
        String::new()
    };
    (json!({}), words)
}

/// Whether a canary step has paused the workload. Only a person sets `paused` during a pause for a limited time.
fn is_paused_by_step(game: &GameDeployment) -> bool {
    let waits_for_a_person = !status_of(game).pause_conditions.is_empty() && !pauses_for_a_time(game);
    is_paused(game) && (hook_failed(game) || waits_for_a_person)
}

/// Describes how the updated pods go back.
fn way_back(game: &GameDeployment, updated: i32, to: &str) -> String {
    let (one, each) = match update_type(game) {
        Some("OnDelete") => (" when somebody deletes it", ", each when somebody deletes it"),
        Some("HotPatchUpdate") => (" at once", " at once"),
        _ => (
            ", through its hook if there is one",
            ", each through its hook if there is one",
        ),
    };
    match updated {
        0 => format!("no pod has to go back to {to}"),
        1 => format!("1 pod goes back to {to}{one}"),
        more => format!("{more} pods go back to {to}{each}"),
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
        under_way(samples::told("Progressing", "True", "RollingOut", "2 of 3 pods are updated").game)
    }

    fn aborted(game: &GameDeployment) -> (Value, String) {
        decide(game, samples::now(), " -n games").unwrap()
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
            "arena: the rollout to arena-7d4b9c is aborted; 2 pods go back to arena-5f6d8b, each through its hook if there is \
             one; spec.template stays."
        );
    }

    #[test]
    fn the_message_says_how_many_pods_go_back_and_when() {
        let mut game = rolling_out();
        for (type_, updated, words) in [
            (
                "InplaceUpdate",
                1,
                "1 pod goes back to arena-5f6d8b, through its hook",
            ),
            ("InplaceUpdate", 0, "no pod has to go back to arena-5f6d8b"),
            ("HotPatchUpdate", 2, "2 pods go back to arena-5f6d8b at once"),
            (
                "OnDelete",
                2,
                "2 pods go back to arena-5f6d8b, each when somebody deletes it",
            ),
        ] {
            game.spec.update_strategy.get_or_insert_default().type_ = Some(type_.to_owned());
            game.status.get_or_insert_default().updated_replicas = updated;
            let (_, message) = aborted(&game);
            assert!(message.contains(words), "{type_} {updated}: {message}");
        }
    }

    #[test]
    fn the_pause_of_a_canary_step_ends_with_the_rollout() {
        for reason in ["PausedByCanaryPauseStep", "PausedByStepBasedHook"] {
            let game = under_way(samples::canary(reason, true).game);
            let (patch, message) = aborted(&game);
            assert_eq!(patch["spec"], resumed()["spec"], "{reason}");
            assert!(patch["metadata"]["annotations"][ABORT_REQUESTED].is_string());
            assert!(
                message.ends_with("spec.template stays. The pause of canary step 2 ends."),
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
                message.ends_with("so no pod goes back until: kubectl game resume arena -n games"),
                "{message}"
            );
        }
    }

    #[test]
    fn without_a_rollout_and_a_revision_to_go_back_to_it_is_refused_with_the_remedy() {
        let unseen = edited(|game| game.metadata.generation = Some(4));
        let repeat = "the rollout of arena is not known yet, so repeat the command in a moment: ";
        assert!(unseen.starts_with(repeat), "{unseen}");
        let unknown = edited(|game| game.status.as_mut().unwrap().update_revision = None);
        assert!(
            unknown.ends_with("find out more with: kubectl game why gd/arena -n games"),
            "{unknown}"
        );
        assert_eq!(
            edited(|game| game.status.as_mut().unwrap().current_revision = None),
            "arena has no complete revision to go back to: this is its first rollout; to stop it: kubectl game pause arena -n \
             games"
        );
        let complete = "arena has no rollout to abort: its rollout to arena-7d4b9c is complete; to go back: kubectl game undo \
                        arena -n games";
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
            recreate.ends_with("with its own hooks: kubectl game undo arena -n games"),
            "{recreate}"
        );
    }

    #[test]
    fn an_aborted_rollout_and_a_spec_that_cannot_be_rolled_out_are_refused() {
        assert_eq!(
            refused(&samples::rolled_back().game),
            "the rollout of arena to arena-7d4b9c is aborted already, and its pods go back to arena-5f6d8b; to begin it again: \
             kubectl game retry arena -n games"
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
            let game = under_way(samples::told(kind, "True", reason, "the cause").game);
            assert_eq!(
                refused(&game),
                "the spec of arena cannot be rolled out now: the cause; repeat the command when that is corrected"
            );
        }
        let other = under_way(samples::told("UpdateBlocked", "True", "InPlaceStalled", "the cause").game);
        assert!(decide(&other, samples::now(), "").is_ok());
    }
}
