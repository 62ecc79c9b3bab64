//! `kubectl game scale`: sets the number of pods, and reports which hook runs before a pod is deleted.

use clap::Args;
use gamedeployment_core::workload::{SelectionPolicy, Workload};
use kube::ResourceExt;
use shared_api::GameDeployment;

use super::outlook::{Answer, Outlook};
use super::{DONE, Outcome, print_answer};
use crate::cluster::{Failure, Flags, name_of};
use crate::view::state::unseen;
use crate::view::status_of;

/// Sets the number of pods.
#[derive(Debug, Clone, Args)]
pub(crate) struct Scale {
    /// Name of the GameDeployment
    name: String,

    /// Desired number of pods
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..=2_147_483_647))]
    replicas: u32,

    /// Scale only if spec.replicas currently has this value
    #[arg(long, value_name = "NUMBER")]
    current_replicas: Option<u32>,

    #[command(flatten)]
    flags: Flags,
}

impl Scale {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let name = name_of::<GameDeployment>(&self.name)?;
        let answer = cluster
            .scale(name, |game: &GameDeployment| {
                let now = number(game.spec.replicas.unwrap_or(1));
                if let Some(expected) = self.current_replicas.filter(|expected| *expected != now) {
                    let words =
                        format!("spec.replicas of {name} is {now}, not {expected}; nothing was changed");
                    return Err(Failure::Refused(words));
                }
                let answer = decide(game, now, self.replicas, &cluster.flags)?;
                Ok((self.replicas, answer))
            })
            .await?;
        print_answer(&answer.message, &answer.next);
        DONE
    }
}

/// Returns what happens after a change of the number of pods; or why nothing changes.
fn decide(game: &GameDeployment, now: u32, then: u32, flags: &str) -> Result<Answer, Failure> {
    let name = game.name_any();
    if now == then {
        return Err(Failure::Refused(format!(
            "spec.replicas of {name} is already {now}"
        )));
    }
    let pods = if then == 1 { "pod" } else { "pods" };
    let message = format!("{name}: {now} → {then} {pods}. {}", consequence(game, now, then));
    let next = vec![Outlook::of(game, flags).progress("wait until it is complete")];
    Ok(Answer { message, next })
}

/// Describes which pods are created, kept or deleted.
fn consequence(game: &GameDeployment, now: u32, then: u32) -> String {
    if then > now {
        return kept(game);
    }
    let existing = existing(game).unwrap_or(now);
    let fewer = (now - then).min(existing.saturating_sub(then));
    let (pods, each, whose) = match fewer {
        0 => {
            let exist = if existing == 1 { "exists" } else { "exist" };
            return format!("No pods will be deleted: only {existing} of {now} {exist}.");
        }
        1 => ("1 pod will be deleted".to_owned(), "", "its"),
        fewer => (format!("{fewer} pods will be deleted"), ", each", "their"),
    };
    let strategy = game.spec.pre_delete_update_strategy.as_ref();
    match strategy.and_then(|strategy| strategy.hook.as_ref()) {
        // The operator runs no hook for a pod that cannot have players.
        Some(hook) => format!(
            "{pods}{each} once its PreDelete hook (HookTemplate {}) succeeds; pods that are known never to \
             have run are deleted immediately.{}",
            hook.template_name,
            selection(game, then)
        ),
        None => format!("{pods}. No PreDelete hook is configured, so {whose} players will be disconnected."),
    }
}

/// Describes which pods are selected for deletion, if it depends on their hooks; empty otherwise, and if no pod stays.
fn selection(game: &GameDeployment, then: u32) -> &'static str {
    let (workload, _) = Workload::examine(game);
    match workload.selection {
        SelectionPolicy::FirstIdle { .. } if then > 0 => {
            " The hook first runs for candidates, and those whose hook succeeds first are selected (selectionPolicy \
             FirstIdle)."
        }
        SelectionPolicy::FirstIdle { .. } | SelectionPolicy::Ranked => "",
    }
}

/// Describes which pods a higher number of replicas keeps.
fn kept(game: &GameDeployment) -> String {
    let kept =
        "Pods that are waiting to be deleted are kept first; new pods are created only if more are needed.";
    let strategy = game.spec.scale_strategy.as_ref();
    let named = strategy.and_then(|strategy| strategy.pods_to_delete.as_ref());
    if named.is_some_and(|named| !named.is_empty()) {
        format!("{kept} Pods in spec.scaleStrategy.podsToDelete are still deleted.")
    } else {
        kept.to_owned()
    }
}

/// Returns the number of pods that exist, if the operator has counted them for the newest spec.
fn existing(game: &GameDeployment) -> Option<u32> {
    let status = status_of(game);
    (game.status.is_some() && unseen(game).is_none()).then(|| number(status.replicas))
}

fn number(count: i32) -> u32 {
    u32::try_from(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples;

    /// Returns the message and the only command after a change from 3 replicas to this number.
    fn scaled(game: &GameDeployment, replicas: u32) -> (String, String) {
        let Answer { message, next } = decide(game, 3, replicas, " -n games").unwrap();
        assert_eq!(next.len(), 1, "{next:?}");
        (message, next[0].to_string())
    }

    #[test]
    fn the_message_says_when_pods_are_deleted() {
        let complete = samples::complete().game;
        let mut few = complete.clone();
        few.status.as_mut().unwrap().replicas = 1;
        let mut surging = complete.clone();
        surging.status.as_mut().unwrap().replicas = 4;
        let mut unseen = few.clone();
        unseen.metadata.generation = Some(4);
        let mut named = complete.clone();
        named.spec.scale_strategy =
            serde_json::from_value(json!({ "podsToDelete": ["arena-x7k2p"] })).unwrap();
        let mut emptied = complete.clone();
        emptied.spec.scale_strategy = serde_json::from_value(json!({ "podsToDelete": [] })).unwrap();
        let kept = "arena: 3 → 5 pods. Pods that are waiting to be deleted are kept first; new pods are created only \
                    if more are needed.";
        let still_deleted = format!("{kept} Pods in spec.scaleStrategy.podsToDelete are still deleted.");
        let one = "arena: 3 → 2 pods. 1 pod will be deleted once its PreDelete hook (HookTemplate empty) succeeds; \
                   pods that are known never to have run are deleted immediately.";
        let three = "arena: 3 → 0 pods. 3 pods will be deleted, each once its PreDelete hook (HookTemplate empty) \
                     succeeds; pods that are known never to have run are deleted immediately.";
        for (game, replicas, expected) in [
            (&complete, 2, one),
            (&surging, 2, one),
            (&complete, 0, three),
            (&unseen, 2, one),
            (
                &few,
                2,
                "arena: 3 → 2 pods. No pods will be deleted: only 1 of 3 exists.",
            ),
            (
                &samples::without_hook().game,
                2,
                "arena: 3 → 2 pods. 1 pod will be deleted. No PreDelete hook is configured, so its players will be \
                 disconnected.",
            ),
            (
                &samples::without_hook().game,
                0,
                "arena: 3 → 0 pods. 3 pods will be deleted. No PreDelete hook is configured, so their players will be \
                 disconnected.",
            ),
            (&complete, 5, kept),
            (&emptied, 5, kept),
            (&named, 5, still_deleted.as_str()),
        ] {
            assert_eq!(scaled(game, replicas).0, expected);
        }
    }

    #[test]
    fn the_message_says_that_idle_pods_are_selected_first() {
        let mut game = samples::complete().game;
        let words = " The hook first runs for candidates, and those whose hook succeeds first are selected \
                     (selectionPolicy FirstIdle).";
        assert!(!scaled(&game, 1).0.contains(words));
        let strategy = json!({ "selectionPolicy": "FirstIdle" });
        game.spec.scale_strategy = serde_json::from_value(strategy).unwrap();
        assert!(scaled(&game, 1).0.ends_with(words), "{}", scaled(&game, 1).0);
        assert!(!scaled(&game, 0).0.contains(words), "all pods go");
        game.spec.pre_delete_update_strategy = None;
        assert!(!scaled(&game, 1).0.contains(words), "no hook finds idle pods");
    }

    #[test]
    fn a_rollout_that_needs_a_person_is_watched() {
        let wait = "kubectl game status arena -n games  # wait until it is complete";
        let watch = "kubectl game get arena -w -n games  # watch";
        let mut paused_complete = samples::complete().game;
        paused_complete
            .spec
            .update_strategy
            .get_or_insert_default()
            .paused = Some(true);
        let mut canary = samples::canary("RollingOut", false).game;
        let status = canary.status.as_mut().unwrap();
        status.current_revision = Some("arena-5f6d8b".to_owned());
        let mut on_delete = samples::paused().game;
        on_delete.spec.update_strategy = serde_json::from_value(json!({ "type": "OnDelete" })).unwrap();
        for (game, expected) in [
            (samples::complete().game, wait),
            (samples::refused().game, wait),
            (paused_complete, wait),
            (samples::paused().game, watch),
            (canary, watch),
            (samples::rolled_back().game, watch),
            (on_delete, watch),
        ] {
            assert_eq!(scaled(&game, 5).1, expected, "{:?}", game.status);
        }
    }
}
