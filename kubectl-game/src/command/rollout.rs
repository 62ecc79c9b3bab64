//! `kubectl game pause`, `resume` and `promote`: control an update.

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::reason::WorkloadReason;

use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::{age, status_of};
use crate::why::{is_paused, pauses_for_a_time};

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
    Promote,
}

impl Rollout {
    pub(crate) async fn main(&self, act: Act) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let told = cluster
            .change(name, |game: &GameDeployment| decide(game, act, Timestamp::now()))
            .await?;
        let next = match act {
            Act::Pause => format!("kubectl game resume {name}{}", cluster.flags),
            Act::Resume | Act::Promote => format!("kubectl game status {name}{}", cluster.flags),
        };
        print_answer(&told, &[next]);
        DONE
    }
}

fn decide(game: &GameDeployment, act: Act, now: Timestamp) -> Result<(Value, String), Failure> {
    let name = game.name_any();
    let patch = |value: bool| json!({ "spec": { "updateStrategy": { "paused": value } } });
    let refused = |words: String| Err(Failure::Refused(words));
    match (act, is_paused(game)) {
        (Act::Pause, true) => refused(format!("{name} is paused already")),
        (Act::Pause, false) => Ok((
            patch(true),
            format!(
                "{name} is paused: no update of a pod begins, one that has begun is brought to its end. Pods are still \
                 created, healed and scaled."
            ),
        )),
        (Act::Resume, false) => refused(format!("{name} is not paused")),
        (Act::Resume, true) => Ok((patch(false), format!("{name} is resumed: its update goes on."))),
        (Act::Promote, paused) => promote(game, paused, now).map(|words| (patch(false), words)),
    }
}

/// Continues past the pause or the failed hook of a canary step. Returns the message for the user.
fn promote(game: &GameDeployment, paused: bool, now: Timestamp) -> Result<String, Failure> {
    let (name, status) = (game.name_any(), status_of(game));
    let refused = |words: String| Err(Failure::Refused(words));
    let has_steps = game
        .spec
        .update_strategy
        .as_ref()
        .and_then(|strategy| strategy.canary.as_ref()?.steps.as_ref())
        .is_some_and(|steps| !steps.is_empty());
    if !has_steps {
        let remedy = if paused {
            format!("; it is paused: kubectl game resume {name}")
        } else {
            String::new()
        };
        return refused(format!(
            "{name} has no canary steps, so there is none to go past{remedy}"
        ));
    }
    let step = status.current_step_index.unwrap_or_default() + 1;
    let by = |reason: WorkloadReason| {
        status
            .pause_conditions
            .iter()
            .find(|pause| pause.reason == reason.as_str())
    };
    let hook = by(WorkloadReason::PausedByStepBasedHook);
    let pause = by(WorkloadReason::PausedByCanaryPauseStep);
    match (hook, pause, paused) {
        (Some(_), _, true) => Ok(format!(
            "{name} goes on past the hook of canary step {step}, which did not say yes."
        )),
        (None, Some(_), true) => Ok(format!("{name} goes on past the pause of canary step {step}.")),
        // The operator writes the status before it pauses the workload.
        (None, Some(_), false) if !pauses_for_a_time(game) => refused(format!(
            "canary step {step} of {name} has just been reached, and the operator is about to pause it; repeat the command"
        )),
        (None, Some(pause), false) => {
            let since = pause
                .start_time
                .map(|since| age::between(since.timestamp(), now))
                .unwrap_or_default();
            refused(format!(
                "canary step {step} of {name} pauses for a time, {since} so far, and goes on by itself; to go on at once, \
                 take the step out of spec.updateStrategy.canary.steps"
            ))
        }
        (None, None, true) => refused(format!(
            "{name} was paused by somebody, not by a canary step: kubectl game resume {name}"
        )),
        (_, _, false) => refused(format!(
            "no canary step of {name} waits for somebody; it goes on by itself"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn answer(game: &GameDeployment, act: Act) -> Result<bool, String> {
        let now = samples::now();
        let decided = decide(game, act, now).map_err(|failure| failure.to_string());
        decided.map(|(patch, _)| patch["spec"]["updateStrategy"]["paused"].as_bool().unwrap())
    }

    #[test]
    fn what_is_so_already_is_refused() {
        let going = samples::refused().game;
        assert_eq!(answer(&going, Act::Pause), Ok(true));
        assert_eq!(answer(&going, Act::Resume), Err("arena is not paused".to_owned()));
        let paused = samples::paused().game;
        assert_eq!(
            answer(&paused, Act::Pause),
            Err("arena is paused already".to_owned())
        );
        assert_eq!(answer(&paused, Act::Resume), Ok(false));
    }

    #[test]
    fn promote_goes_past_a_step_that_waits_for_somebody_and_past_nothing_else() {
        let words = |game: &GameDeployment| answer(game, Act::Promote).unwrap_err();
        assert!(words(&samples::paused().game).contains("no canary steps"));
        assert_eq!(
            answer(
                &samples::canary("PausedByCanaryPauseStep", true).game,
                Act::Promote
            ),
            Ok(false)
        );
        assert_eq!(
            answer(&samples::canary("PausedByStepBasedHook", true).game, Act::Promote),
            Ok(false)
        );
        let mut timed = samples::canary("PausedByCanaryPauseStep", false).game;
        assert!(words(&timed).contains("repeat the command"), "{}", words(&timed));
        let strategy = timed.spec.update_strategy.as_mut().unwrap();
        let steps = strategy.canary.as_mut().unwrap().steps.as_mut().unwrap();
        steps[1].pause.as_mut().unwrap().duration = Some(600);
        assert!(words(&timed).contains("goes on by itself"), "{}", words(&timed));
        let mut by_hand = samples::canary("PausedByCanaryPauseStep", true).game;
        by_hand.status.as_mut().unwrap().pause_conditions.clear();
        assert!(words(&by_hand).contains("kubectl game resume arena"));
    }
}
