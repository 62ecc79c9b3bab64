//! `kubectl game pause` and `resume`: control an update.

use clap::Args;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::promote::{hook_failed, resumed, step_number};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::state::rollback;
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
        let told = cluster
            .change(name, |game: &GameDeployment| decide(game, act))
            .await?;
        let next = match act {
            Act::Pause => format!("kubectl game resume {name}{}", cluster.flags),
            Act::Resume => format!("kubectl game status {name}{}", cluster.flags),
        };
        print_answer(&told, &[next]);
        DONE
    }
}

fn decide(game: &GameDeployment, act: Act) -> Result<(Value, String), Failure> {
    let name = game.name_any();
    let refused = |words: String| Err(Failure::Refused(words));
    match (act, is_paused(game)) {
        (Act::Pause, true) => refused(format!("{name} is paused already")),
        (Act::Pause, false) => Ok((
            json!({ "spec": { "updateStrategy": { "paused": true } } }),
            format!(
                "{name} is paused: no update of a pod begins, one that has begun is brought to its end. Pods are still \
                 created, healed and scaled."
            ),
        )),
        (Act::Resume, false) => refused(format!("{name} is not paused")),
        (Act::Resume, true) if hook_failed(game) => Ok((
            resumed(),
            format!(
                "{name} is resumed: the hook of canary step {} runs again.",
                step_number(game)
            ),
        )),
        (Act::Resume, true) => Ok((resumed(), format!("{name} is resumed: {}.", continued(game)))),
    }
}

/// Describes the update of pods that a pause has stopped.
fn continued(game: &GameDeployment) -> String {
    let status = status_of(game);
    rollback(&status).map_or_else(
        || "its update goes on".to_owned(),
        |rollback| format!("pods of its aborted rollout go back to {}", rollback.to_revision),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn answer(game: &GameDeployment, act: Act) -> Result<Value, String> {
        let decided = decide(game, act).map_err(|failure| failure.to_string());
        decided.map(|(patch, _)| patch["spec"]["updateStrategy"]["paused"].clone())
    }

    #[test]
    fn what_is_so_already_is_refused() {
        let going = samples::refused().game;
        assert_eq!(answer(&going, Act::Pause), Ok(json!(true)));
        assert_eq!(answer(&going, Act::Resume), Err("arena is not paused".to_owned()));
        let paused = samples::paused().game;
        assert_eq!(
            answer(&paused, Act::Pause),
            Err("arena is paused already".to_owned())
        );
        assert_eq!(answer(&paused, Act::Resume), Ok(Value::Null));
    }

    #[test]
    fn pods_of_an_aborted_rollout_go_back_when_it_is_resumed() {
        let mut game = samples::rolled_back().game;
        game.spec.update_strategy.get_or_insert_default().paused = Some(true);
        let (_, message) = decide(&game, Act::Resume).unwrap();
        assert_eq!(
            message,
            "arena is resumed: pods of its aborted rollout go back to arena-5f6d8b."
        );
    }
}
