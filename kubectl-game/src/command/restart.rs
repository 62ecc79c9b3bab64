//! `kubectl game restart`: replaces all pods by new ones from the same template.

use clap::Args;
use gamedeployment_core::workload::Workload;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::template::RESTARTED_AT;

use super::outlook::{Answer, Outlook, Target};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};

/// Restarts all pods.
#[derive(Debug, Clone, Args)]
pub(crate) struct Restart {
    /// Name of the GameDeployment
    name: String,

    #[command(flatten)]
    flags: Flags,
}

impl Restart {
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

/// Returns the patch that requests new pods, and what happens then; or why the update cannot replace pods.
fn decide(game: &GameDeployment, now: Timestamp, flags: &str) -> Result<(Value, Answer), Failure> {
    let name = game.name_any();
    let (workload, _) = Workload::examine(game);
    if workload.update.is_in_place() && !workload.recreate_fallback {
        return Err(Failure::Refused(format!(
            "{name} updates its pods in place, so a container is restarted only if its image changes; to allow pods to \
             be replaced, set spec.updateStrategy.inPlaceUpdateStrategy.fallback to Recreate"
        )));
    }
    let sentence =
        format!("{name}: restart requested; pods will be replaced with new ones from the same template.");
    let answer = Outlook::of(game, flags).update(Target::Restart);
    // Seconds are the precision of `kubectl rollout restart`.
    let at = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let annotations = json!({ RESTARTED_AT: at.to_string() });
    Ok((
        json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } }),
        answer.after(&sentence),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    fn game(type_: &str, fallback: Option<&str>) -> GameDeployment {
        let mut game = samples::complete().game;
        let update = json!({ "type": type_, "inPlaceUpdateStrategy": { "fallback": fallback } });
        game.spec.update_strategy = serde_json::from_value(update).unwrap();
        game
    }

    fn of(type_: &str, fallback: Option<&str>) -> Result<(Value, Answer), Failure> {
        decide(&game(type_, fallback), samples::now(), " -n games")
    }

    #[test]
    fn the_annotation_has_the_time_in_seconds() {
        let (patch, answer) = of("RollingUpdate", None).unwrap();
        let annotations = json!({ "kubectl.kubernetes.io/restartedAt": "2026-01-02T10:00:00Z" });
        assert_eq!(
            patch,
            json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } })
        );
        assert_eq!(
            answer.message,
            "arena: restart requested; pods will be replaced with new ones from the same template. Each pod is \
             replaced once its hook succeeds and maxUnavailable allows it."
        );
    }

    #[test]
    fn pods_that_are_updated_in_place_are_replaced_with_the_fallback_alone() {
        for type_ in ["InplaceUpdate", "HotPatchUpdate"] {
            let refused = of(type_, None).unwrap_err().to_string();
            assert!(refused.ends_with("fallback to Recreate"), "{refused}");
            let (_, answer) = of(type_, Some("Recreate")).unwrap();
            let words = "Each pod is replaced once its hook succeeds";
            assert!(answer.message.contains(words), "{answer:?}");
        }
        let (_, answer) = of("OnDelete", None).unwrap();
        let words = "a pod is replaced only when a user deletes it";
        assert!(answer.message.contains(words), "{answer:?}");
    }
}
