//! `kubectl game promote`: ends the pause of a canary step, or passes its failed hook with a recorded reason.

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::names::workload::{
    PROMOTE_DESPITE_FAILURE, PROMOTE_DESPITE_FAILURE_BY, PROMOTE_DESPITE_FAILURE_REASON,
};
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, HookRun};

use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::{age, status_of};
use crate::why::{is_paused, pauses_for_a_time};

/// Continues past the current canary step.
#[derive(Debug, Clone, Args)]
pub(crate) struct Promote {
    /// Name of the GameDeployment
    name: String,

    /// Pass the step even though its hook failed
    #[arg(long, requires = "reason")]
    despite_failure: bool,

    /// Why the failure is accepted; recorded on the GameDeployment, in the event and in the log
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
        let text = match &self.reason {
            None => {
                cluster
                    .change(name, |game: &GameDeployment| {
                        past_pause(game, Timestamp::now(), &cluster.flags)
                    })
                    .await?
            }
            Some(reason) if reason.trim().is_empty() => {
                return Err(Failure::Refused(
                    "--reason is empty: say why the failure is accepted".to_owned(),
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
                    .change(name, |game: &GameDeployment| past_failure(game, &accepted))
                    .await?
            }
        };
        print_answer(&text, &[format!("kubectl game status {name}{}", cluster.flags)]);
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
    let pauses = status_of(game).pause_conditions;
    let mut pauses = pauses.iter();
    pauses.any(|pause| pause.reason == WorkloadReason::PausedByStepBasedHook.as_str())
}

/// Returns the name of the failed HookRun of the current canary step.
fn failed_run(game: &GameDeployment) -> Result<String, Failure> {
    let canary = status_of(game).canary.filter(|_| hook_failed(game));
    canary
        .and_then(|canary| canary.current_step_hook_run)
        .ok_or_else(|| {
            Failure::Refused(format!(
                "no hook of a canary step of {} has failed: --despite-failure has nothing to pass",
                game.name_any()
            ))
        })
}

/// Passes the failed hook of the current canary step.
fn past_failure(game: &GameDeployment, accepted: &Accepted) -> Result<(Value, String), Failure> {
    let Accepted { run, uid, reason, by } = accepted;
    let (name, step) = (game.name_any(), step_number(game));
    if failed_run(game)? != *run {
        let text = format!(
            "the hook of canary step {step} of {name} has run again; look at it, then repeat the command"
        );
        return Err(Failure::Conflict(text));
    }
    let mut patch = resumed();
    patch["metadata"] = json!({ "annotations": {
        PROMOTE_DESPITE_FAILURE: uid, PROMOTE_DESPITE_FAILURE_REASON: reason, PROMOTE_DESPITE_FAILURE_BY: by
    } });
    let text = format!(
        "{name} continues past canary step {step} despite the failure of HookRun {run}. A Warning event \
         PromotedDespiteFailure names it, your reason and you."
    );
    Ok((patch, text))
}

/// Ends the pause of the current canary step.
fn past_pause(game: &GameDeployment, now: Timestamp, flags: &str) -> Result<(Value, String), Failure> {
    let (name, status, paused) = (game.name_any(), status_of(game), is_paused(game));
    let refused = |text: String| Err(Failure::Refused(text));
    let has_steps = game
        .spec
        .update_strategy
        .as_ref()
        .and_then(|strategy| strategy.canary.as_ref()?.steps.as_ref())
        .is_some_and(|steps| !steps.is_empty());
    if !has_steps {
        let remedy = if paused {
            format!("; it is paused: kubectl game resume {name}{flags}")
        } else {
            String::new()
        };
        return refused(format!(
            "{name} has no canary steps, so there is none to go past{remedy}"
        ));
    }
    let step = step_number(game);
    if hook_failed(game) {
        return refused(format!(
            "the hook of canary step {step} of {name} failed; to run it again: kubectl game retry {name}{flags}; to go on \
             despite the failure, add --despite-failure --reason 'WHY'"
        ));
    }
    let pause = status
        .pause_conditions
        .iter()
        .find(|pause| pause.reason == WorkloadReason::PausedByCanaryPauseStep.as_str());
    match (pause, paused) {
        (Some(_), true) => Ok((
            resumed(),
            format!("{name} goes on past the pause of canary step {step}."),
        )),
        // The operator writes the status before it pauses the workload.
        (Some(_), false) if !pauses_for_a_time(game) => refused(format!(
            "canary step {step} of {name} has just been reached, and the operator is about to pause it; repeat the command"
        )),
        (Some(pause), false) => {
            let since = pause
                .start_time
                .map(|since| age::between(since.timestamp(), now))
                .unwrap_or_default();
            refused(format!(
                "canary step {step} of {name} pauses for a time, {since} so far, and goes on by itself; to go on at once, \
                 take the step out of spec.updateStrategy.canary.steps"
            ))
        }
        (None, true) => refused(format!(
            "{name} was paused by somebody, not by a canary step: kubectl game resume {name}{flags}"
        )),
        (None, false) => refused(format!(
            "no canary step of {name} waits for somebody; it goes on by itself"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn pause(game: &GameDeployment) -> Result<Value, String> {
        let decided = past_pause(game, samples::now(), " -n games").map_err(|failure| failure.to_string());
        decided.map(|(patch, _)| patch)
    }

    #[test]
    fn promote_ends_the_pause_of_a_step_and_nothing_else() {
        let text = |game: &GameDeployment| pause(game).unwrap_err();
        assert!(text(&samples::paused().game).contains("no canary steps"));
        let paused = samples::canary("PausedByCanaryPauseStep", true).game;
        assert_eq!(pause(&paused), Ok(resumed()));
        let failed = text(&samples::canary("PausedByStepBasedHook", true).game);
        let remedies = ["kubectl game retry arena -n games", "--despite-failure --reason"];
        assert!(remedies.iter().all(|remedy| failed.contains(remedy)), "{failed}");
        let mut timed = samples::canary("PausedByCanaryPauseStep", false).game;
        assert!(text(&timed).contains("repeat the command"), "{}", text(&timed));
        let strategy = timed.spec.update_strategy.as_mut().unwrap();
        let steps = strategy.canary.as_mut().unwrap().steps.as_mut().unwrap();
        steps[1].pause.as_mut().unwrap().duration = Some(600);
        assert!(text(&timed).contains("goes on by itself"), "{}", text(&timed));
        let mut by_hand = samples::canary("PausedByCanaryPauseStep", true).game;
        by_hand.status.as_mut().unwrap().pause_conditions.clear();
        assert!(text(&by_hand).contains("kubectl game resume arena"));
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
        let (patch, text) = past_failure(&failed, &accepted(&run)).unwrap();
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
            text.contains("despite the failure of HookRun canary-arena-"),
            "{text}"
        );
        let text = past_failure(&failed, &accepted("another"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("has run again"), "{text}");
        let paused = samples::canary("PausedByCanaryPauseStep", true).game;
        let text = failed_run(&paused).unwrap_err().to_string();
        assert!(
            text.contains("no hook of a canary step of arena has failed"),
            "{text}"
        );
    }
}
