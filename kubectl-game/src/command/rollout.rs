//! `kubectl game pause` and `resume`: control an update.

use clap::Args;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::outlook::{Answer, Outlook};
use super::promote::{hook_failed, resumed, step_number};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::state::{rollback, unseen};
use crate::view::status_of;
use crate::why::is_paused;

/// Controls an update.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rollout {
    /// Name of the GameDeployment
    name: String,

    #[command(flatten)]
    flags: Flags,
}

/// Action on the update.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Pause,
    Resume,
}

impl Rollout {
    pub(crate) async fn main(&self, act: Act) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let answer = cluster
            .change(name, |game: &GameDeployment| decide(game, act, &cluster.flags))
            .await?;
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

/// Returns the patch, and what happens then; or why nothing changes.
fn decide(game: &GameDeployment, act: Act, flags: &str) -> Result<(Value, Answer), Failure> {
    let name = game.name_any();
    let outlook = Outlook::of(game, flags);
    let refused = |words: String| Err(Failure::Refused(words));
    match (act, is_paused(game)) {
        (Act::Pause, true) => refused(format!("{name} is already paused")),
        (Act::Pause, false) => {
            let message = format!(
                "{name} is paused: no new pod updates will start; those in progress will finish. Pods are still \
                 created, replaced and scaled."
            );
            let next = vec![outlook.command("resume", "continue the update")];
            let patch = json!({ "spec": { "updateStrategy": { "paused": true } } });
            Ok((patch, Answer { message, next }))
        }
        (Act::Resume, false) => refused(format!("{name} is not paused")),
        (Act::Resume, true) => {
            let effect = continued(game, &outlook);
            let answer = outlook.resumed(format!("{name} is resumed: {effect}."));
            Ok((resumed(), answer))
        }
    }
}

/// Describes the update that a pause has stopped. What the status says counts only for the newest spec.
fn continued(game: &GameDeployment, outlook: &Outlook<'_>) -> String {
    let status = status_of(game);
    let is_seen = unseen(game).is_none();
    match rollback(&status).filter(|_| is_seen) {
        Some(rollback) => format!(
            "pods of its aborted rollout are being rolled back to {}",
            rollback.to_revision
        ),
        None if outlook.is_complete() => "there is no update to continue".to_owned(),
        None if is_seen && hook_failed(game) => {
            format!("rerunning the hook of canary step {}", step_number(game))
        }
        None => "its update continues".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn answer(game: &GameDeployment, act: Act) -> Result<Value, String> {
        let decided = decide(game, act, "").map_err(|failure| failure.to_string());
        decided.map(|(patch, _)| patch["spec"]["updateStrategy"]["paused"].clone())
    }

    /// Returns the message and the only command of an answer.
    fn shown(game: &GameDeployment, act: Act) -> (String, String) {
        let (_, Answer { message, next }) = decide(game, act, " -n games").unwrap();
        assert_eq!(next.len(), 1, "{next:?}");
        (message, next[0].to_string())
    }

    #[test]
    fn what_is_so_already_is_refused() {
        let going = samples::refused().game;
        assert_eq!(answer(&going, Act::Pause), Ok(json!(true)));
        assert_eq!(answer(&going, Act::Resume), Err("arena is not paused".to_owned()));
        let paused = samples::paused().game;
        assert_eq!(
            answer(&paused, Act::Pause),
            Err("arena is already paused".to_owned())
        );
        assert_eq!(answer(&paused, Act::Resume), Ok(Value::Null));
    }

    #[test]
    fn pods_of_an_aborted_rollout_go_back_when_it_is_resumed() {
        let mut game = samples::rolled_back().game;
        game.spec.update_strategy.get_or_insert_default().paused = Some(true);
        let expected = (
            "arena is resumed: pods of its aborted rollout are being rolled back to arena-5f6d8b.",
            "kubectl game get arena -w -n games  # watch",
        );
        let (message, next) = shown(&game, Act::Resume);
        assert_eq!((message.as_str(), next.as_str()), expected);
    }

    #[test]
    fn a_pause_is_followed_by_its_end() {
        let (message, next) = shown(&samples::refused().game, Act::Pause);
        assert_eq!(
            message,
            "arena is paused: no new pod updates will start; those in progress will finish. Pods are still created, \
             replaced and scaled."
        );
        assert_eq!(next, "kubectl game resume arena -n games  # continue the update");
    }

    #[test]
    fn a_resumed_update_says_what_continues() {
        const STATUS: &str = "kubectl game status arena -n games  # wait until the rollout is complete";
        let mut complete = samples::complete().game;
        complete.spec.update_strategy.get_or_insert_default().paused = Some(true);
        let failed = samples::canary("PausedByStepBasedHook", true).game;
        let mut changed = failed.clone();
        changed.metadata.generation = Some(4);
        for (game, effect) in [
            (&complete, "there is no update to continue"),
            (&failed, "rerunning the hook of canary step 2"),
            (&samples::paused().game, "its update continues"),
        ] {
            let expected = format!("arena is resumed: {effect}.");
            assert_eq!(shown(game, Act::Resume), (expected, STATUS.to_owned()));
        }
        // The failure is of an earlier template.
        let (message, _) = shown(&changed, Act::Resume);
        assert_eq!(message, "arena is resumed: its update continues.");
    }

    #[test]
    fn a_resumed_canary_says_which_step_pauses_next() {
        let mut game = samples::canary("PausedByCanaryPauseStep", true).game;
        let status = game.status.as_mut().unwrap();
        status.current_revision = Some("arena-5f6d8b".to_owned());
        // A person has paused it before the step is reached.
        status.pause_conditions.clear();
        status.current_step_index = Some(0);
        let expected = (
            "arena is resumed: its update continues. The next pause is at step 2.",
            "kubectl game get arena -w -n games  # watch until the pause at step 2",
        );
        let (message, next) = shown(&game, Act::Resume);
        assert_eq!((message.as_str(), next.as_str()), expected);
    }
}
