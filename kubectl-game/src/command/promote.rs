//! `kubectl game promote`: ends the pause of a canary step, or continues past its failed hook with a recorded reason.

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::game_deployment::PauseCondition;
use shared_api::names::workload::{
    PROMOTE_DESPITE_FAILURE, PROMOTE_DESPITE_FAILURE_BY, PROMOTE_DESPITE_FAILURE_REASON,
};
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::time::Time;
use shared_api::{GameDeployment, HookRun};

use super::outlook::{Answer, Outlook};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::state::{condition, pause, unseen};
use crate::view::{age, status_of};
use crate::why::{is_paused, pauses_for_a_time};

/// Continues past the current canary step.
#[derive(Debug, Clone, Args)]
pub(crate) struct Promote {
    /// Name of the GameDeployment
    name: String,

    /// Continue past the step even though its hook failed
    #[arg(long, requires = "reason")]
    despite_failure: bool,

    /// Reason for accepting the failure; recorded on the GameDeployment, in an event and in the log
    #[arg(long, value_name = "TEXT", requires = "despite_failure")]
    reason: Option<String>,

    #[command(flatten)]
    flags: Flags,
}

/// Failed HookRun that the user accepts.
struct Accepted {
    run: String,
    uid: String,
    reason: String,
    by: String,
}

impl Promote {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let answer = match &self.reason {
            None => {
                cluster
                    .change(name, |game: &GameDeployment| {
                        past_pause(game, Timestamp::now(), &cluster.flags)
                    })
                    .await?
            }
            Some(reason) if reason.trim().is_empty() => {
                return Err(Failure::Refused(
                    "--reason must not be empty; state why the failure is accepted".to_owned(),
                ));
            }
            Some(reason) => {
                let game: GameDeployment = cluster.get(name).await?;
                let run: HookRun = cluster.get(&failed_run(&game)?).await?;
                let accepted = Accepted {
                    run: run.name_any(),
                    uid: run.uid().unwrap_or_default(),
                    reason: reason.clone(),
                    by: cluster.who().await,
                };
                cluster
                    .change(name, |game: &GameDeployment| {
                        past_failure(game, &accepted, &cluster.flags)
                    })
                    .await?
            }
        };
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

/// Patch that ends a pause. It removes the field instead of setting it to false, so that the manifest remains
/// the only place that can set it.
pub(super) fn resumed() -> Value {
    json!({ "spec": { "updateStrategy": { "paused": null } } })
}

/// Number of the current canary step, from 1.
pub(super) fn step_number(game: &GameDeployment) -> i32 {
    status_of(game).current_step_index.unwrap_or_default() + 1
}

/// Returns whether the hook of the current canary step has failed, according to the status.
pub(super) fn hook_failed(game: &GameDeployment) -> bool {
    pause(&status_of(game), WorkloadReason::PausedByStepBasedHook).is_some()
}

/// Returns the name of the failed HookRun of the current canary step.
fn failed_run(game: &GameDeployment) -> Result<String, Failure> {
    let canary = status_of(game).canary.filter(|_| hook_failed(game));
    canary
        .and_then(|canary| canary.current_step_hook_run)
        .ok_or_else(|| {
            Failure::Refused(format!(
                "no canary hook of {} has failed; remove --despite-failure and --reason",
                game.name_any()
            ))
        })
}

/// Continues past the failed hook of the current canary step.
fn past_failure(game: &GameDeployment, accepted: &Accepted, flags: &str) -> Result<(Value, Answer), Failure> {
    let Accepted { run, uid, reason, by } = accepted;
    let (name, step) = (game.name_any(), step_number(game));
    if failed_run(game)? != *run {
        let text = format!(
            "the hook of canary step {step} of {name} has been rerun; check its result, then run the command again"
        );
        return Err(Failure::Conflict(text));
    }
    let mut patch = resumed();
    patch["metadata"] = json!({ "annotations": {
        PROMOTE_DESPITE_FAILURE: uid, PROMOTE_DESPITE_FAILURE_REASON: reason, PROMOTE_DESPITE_FAILURE_BY: by
    } });
    let message = format!(
        "{name}: continuing past canary step {step} despite the failure of HookRun {run}. A Warning event \
         PromotedDespiteFailure will record the HookRun, your reason and your user name."
    );
    Ok((patch, Outlook::of(game, flags).resumed(message)))
}

/// Ends the pause of the current canary step.
fn past_pause(game: &GameDeployment, now: Timestamp, flags: &str) -> Result<(Value, Answer), Failure> {
    let name = game.name_any();
    let refused = |text: String| Err(Failure::Refused(text));
    if !has_steps(game) {
        let remedy = if is_paused(game) {
            format!("; to resume its paused update: kubectl game resume {name}{flags}")
        } else {
            String::new()
        };
        return refused(format!("nothing to promote: {name} has no canary steps{remedy}"));
    }
    if let Some(words) = unseen(game) {
        return refused(format!(
            "the current canary step of {name} is not known yet; try again in a moment ({words})"
        ));
    }
    let step = step_number(game);
    if hook_failed(game) {
        return refused(format!(
            "the hook of canary step {step} of {name} failed; to rerun it: kubectl game retry {name}{flags}; to \
             continue despite the failure, add --despite-failure --reason 'WHY'"
        ));
    }
    // Only a user sets `paused` during a pause for a limited time.
    let is_timed = pauses_for_a_time(game);
    match (pause_of_step(game), is_paused(game)) {
        (Some(_), true) if !is_timed => {
            let message = format!("{name}: continuing past the pause at canary step {step}.");
            Ok((resumed(), Outlook::of(game, flags).resumed(message)))
        }
        (Some(_) | None, true) => refused(format!(
            "nothing to promote: {name} was paused by a user, not by a canary step; to resume it: kubectl game resume \
             {name}{flags}"
        )),
        (Some(pause), false) if is_timed => {
            let since = pause.start_time.map(Time::timestamp);
            refused(format!(
                "canary step {step} of {name} pauses for a limited time ({} so far) and then continues automatically; \
                 to continue now, remove the step from spec.updateStrategy.canary.steps, which restarts the canary \
                 from the first step",
                age::of(since, now)
            ))
        }
        (Some(_) | None, false) if is_reached(game) => refused(format!(
            "canary step {step} of {name} has just been reached, and its pause is not recorded yet; try again in \
             a moment"
        )),
        (Some(_) | None, false) => refused(format!(
            "nothing to promote: no canary step of {name} is waiting to be promoted"
        )),
    }
}

fn has_steps(game: &GameDeployment) -> bool {
    let strategy = game.spec.update_strategy.as_ref();
    let steps = strategy.and_then(|strategy| strategy.canary.as_ref()?.steps.as_ref());
    steps.is_some_and(|steps| !steps.is_empty())
}

/// Returns the recorded pause of the current canary step.
fn pause_of_step(game: &GameDeployment) -> Option<PauseCondition> {
    pause(&status_of(game), WorkloadReason::PausedByCanaryPauseStep).cloned()
}

/// Returns whether the rollout waits at the pause of a canary step. The operator reports this before it pauses the
/// workload.
fn is_reached(game: &GameDeployment) -> bool {
    let reason = WorkloadReason::PausedByCanaryPauseStep.as_str();
    let status = status_of(game);
    condition(&status, WorkloadCondition::Progressing).is_some_and(|found| found.reason == reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn pause(game: &GameDeployment) -> Result<Value, String> {
        let decided = past_pause(game, samples::now(), " -n games").map_err(|failure| failure.to_string());
        decided.map(|(patch, _)| patch)
    }

    /// Returns the workload with a limited pause at its current step.
    fn timed(mut game: GameDeployment) -> GameDeployment {
        let strategy = game.spec.update_strategy.as_mut().unwrap();
        let steps = strategy.canary.as_mut().unwrap().steps.as_mut().unwrap();
        steps[1].pause.as_mut().unwrap().duration = Some(600);
        game
    }

    #[test]
    fn promote_ends_the_pause_of_a_step_and_nothing_else() {
        let text = |game: &GameDeployment| pause(game).unwrap_err();
        assert_eq!(
            text(&samples::paused().game),
            "nothing to promote: arena has no canary steps; to resume its paused update: kubectl game resume arena -n \
             games"
        );
        let paused = samples::canary("PausedByCanaryPauseStep", true).game;
        assert_eq!(pause(&paused), Ok(resumed()));
        let failed = text(&samples::canary("PausedByStepBasedHook", true).game);
        let remedies = ["kubectl game retry arena -n games", "--despite-failure --reason"];
        assert!(remedies.iter().all(|remedy| failed.contains(remedy)), "{failed}");
        let reached = samples::canary("PausedByCanaryPauseStep", false).game;
        assert!(
            text(&reached).contains("try again in a moment"),
            "{}",
            text(&reached)
        );
        let mut changed = paused.clone();
        changed.metadata.generation = Some(4);
        let again = "the current canary step of arena is not known yet; try again in a moment (";
        assert!(text(&changed).starts_with(again), "{}", text(&changed));
        let for_a_time = text(&timed(reached));
        assert!(
            for_a_time.contains("pauses for a limited time (2m so far) and then continues automatically"),
            "{for_a_time}"
        );
        let mut by_hand = paused.clone();
        by_hand.status.as_mut().unwrap().pause_conditions.clear();
        for game in [by_hand, timed(paused)] {
            assert_eq!(
                text(&game),
                "nothing to promote: arena was paused by a user, not by a canary step; to resume it: kubectl game \
                 resume arena -n games"
            );
        }
        let mut rolling = samples::canary("RollingOut", false).game;
        rolling.status.as_mut().unwrap().pause_conditions.clear();
        assert_eq!(
            text(&rolling),
            "nothing to promote: no canary step of arena is waiting to be promoted"
        );
    }

    #[test]
    fn promote_says_which_step_pauses_next() {
        let mut game = samples::canary("PausedByCanaryPauseStep", true).game;
        game.status.as_mut().unwrap().current_revision = Some("arena-5f6d8b".to_owned());
        let shown = |game: &GameDeployment| {
            let (_, answer) = past_pause(game, samples::now(), " -n games").unwrap();
            assert_eq!(answer.next.len(), 1, "{answer:?}");
            (answer.message, answer.next[0].to_string())
        };
        let message = "arena: continuing past the pause at canary step 2.";
        let status = "kubectl game status arena -n games  # wait until the rollout is complete";
        assert_eq!(shown(&game), (message.to_owned(), status.to_owned()));
        let strategy = game.spec.update_strategy.as_mut().unwrap();
        let steps = strategy.canary.as_mut().unwrap().steps.as_mut().unwrap();
        steps.push(steps[1].clone());
        let watch = "kubectl game get arena -w -n games  # watch until the pause at step 4";
        let message = format!("{message} The next pause is at step 4.");
        assert_eq!(shown(&game), (message, watch.to_owned()));
    }

    #[test]
    fn a_failure_is_passed_by_the_uid_of_the_run_that_the_user_saw() {
        let failed = samples::canary("PausedByStepBasedHook", true).game;
        let run = failed_run(&failed).unwrap();
        let accepted = |run: &str| Accepted {
            run: run.to_owned(),
            uid: "7".to_owned(),
            reason: "known fault".to_owned(),
            by: "ann".to_owned(),
        };
        let (patch, Answer { message, .. }) = past_failure(&failed, &accepted(&run), "").unwrap();
        assert_eq!(patch["spec"], resumed()["spec"]);
        assert_eq!(
            patch["metadata"]["annotations"],
            json!({
                "tkex.tencent.com/promote-despite-failure": "7",
                "tkex.tencent.com/promote-despite-failure-reason": "known fault",
                "tkex.tencent.com/promote-despite-failure-by": "ann",
            })
        );
        assert!(
            message.contains("despite the failure of HookRun canary-arena-"),
            "{message}"
        );
        let text = past_failure(&failed, &accepted("another"), "")
            .unwrap_err()
            .to_string();
        assert!(text.contains("has been rerun"), "{text}");
        let paused = samples::canary("PausedByCanaryPauseStep", true).game;
        let text = failed_run(&paused).unwrap_err().to_string();
        assert!(text.contains("no canary hook of arena has failed"), "{text}");
    }
}
