//! `kubectl game restart`: replaces all pods by new ones of the same template.

use clap::Args;
use gamedeployment_core::workload::Workload;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::template::RESTARTED_AT;

use super::template::consequence;
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::why::is_paused;

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
        let message = cluster
            .change(name, |game: &GameDeployment| decide(game, Timestamp::now()))
            .await?;
        print_answer(
            &message,
            &[format!("kubectl game status {name}{}", cluster.flags)],
        );
        DONE
    }
}

/// Returns the patch that requests new pods, and its message; or why the update cannot replace pods.
fn decide(game: &GameDeployment, now: Timestamp) -> Result<(Value, String), Failure> {
    let name = game.name_any();
    let (workload, _) = Workload::examine(game);
    let in_place = workload.update.is_in_place();
    if in_place && !workload.recreate_fallback {
        return Err(Failure::Refused(format!(
            "{name} updates its pods in place, where a container starts anew only with another image; let the update \
             replace pods: set spec.updateStrategy.inPlaceUpdateStrategy.fallback to Recreate"
        )));
    }
    let effect = if in_place && !is_paused(game) {
        "Each pod is replaced when its PreDelete hook succeeds, if there is one, and enough others are available.".to_owned()
    } else {
        consequence(game)
    };
    // Seconds are the precision of `kubectl rollout restart`.
    let at = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let annotations = json!({ RESTARTED_AT: at.to_string() });
    Ok((
        json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } }),
        format!("{name}: all pods are replaced by new ones of the same template. {effect}"),
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

    fn of(type_: &str, fallback: Option<&str>) -> Result<(Value, String), Failure> {
        decide(&game(type_, fallback), samples::now())
    }

    #[test]
    fn the_annotation_has_the_time_in_seconds() {
        let (patch, message) = of("RollingUpdate", None).unwrap();
        let annotations = json!({ "kubectl.kubernetes.io/restartedAt": "2026-01-02T10:00:00Z" });
        assert_eq!(
            patch,
            json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } })
        );
        assert!(
            message.starts_with("arena: all pods are replaced by new ones of the same template. Each pod"),
            "{message}"
        );
    }

    #[test]
    fn pods_that_are_updated_in_place_are_replaced_with_the_fallback_alone() {
        for type_ in ["InplaceUpdate", "HotPatchUpdate"] {
            let refused = of(type_, None).unwrap_err().to_string();
            assert!(refused.ends_with("fallback to Recreate"), "{refused}");
            let (_, message) = of(type_, Some("Recreate")).unwrap();
            assert!(message.contains("when its PreDelete hook succeeds"), "{message}");
        }
        let (_, message) = of("OnDelete", None).unwrap();
        assert!(message.contains("when somebody deletes it"), "{message}");
    }
}
