//! `GameDeployment`s with pods on a node, as far as the drain depends on them.

use std::collections::BTreeMap;

use gamedeployment_core::deletion;
use gamedeployment_core::workload::{DisruptionPolicy, Workload};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use shared_api::GameDeployment;
use shared_api::names::GROUP;

/// Whether the hook of a pod runs before the pod is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    /// A removal request runs the hook. It is valid for this long.
    Asks(SignedDuration),
    /// The policy is `Unguarded`.
    Unguarded { has_hook: bool },
    /// The policy is `Ask`, but there is no PreDelete hook.
    WithoutHook,
    /// The `GameDeployment` is being deleted, with its pods.
    Deleted,
    /// The `GameDeployment` no longer exists.
    Gone,
}

/// A `GameDeployment` with pods on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwningGame {
    pub(super) protection: Protection,
    /// Reasons why pods whose removal is requested have not been deleted yet, by the UIDs of the pods.
    messages: BTreeMap<String, String>,
}

/// The `GameDeployment`s with pods on the node, by UID.
pub(super) type OwningGames = BTreeMap<String, OwningGame>;

impl OwningGame {
    pub(super) fn read(game: &GameDeployment) -> Self {
        let (workload, _) = Workload::examine(game);
        let has_hook = workload.pre_delete.step.is_some();
        let protection = if deletion::is_requested(game) {
            Protection::Deleted
        } else {
            match workload.disruption.policy {
                DisruptionPolicy::Ask if has_hook => Protection::Asks(workload.disruption.request_expiration),
                DisruptionPolicy::Ask => Protection::WithoutHook,
                DisruptionPolicy::Unguarded => Protection::Unguarded { has_hook },
            }
        };
        let entries = game.status.iter().flat_map(|status| &status.removal_requests);
        let message = |entry: &shared_api::game_deployment::RemovalRequestStatus| {
            Some((entry.pod_uid.clone(), entry.message.clone()?))
        };
        Self {
            protection,
            messages: entries.filter_map(message).collect(),
        }
    }

    /// Returns a `GameDeployment` that no longer exists.
    pub(super) fn gone() -> Self {
        Self {
            protection: Protection::Gone,
            messages: BTreeMap::new(),
        }
    }

    /// Returns why a pod whose removal is requested has not been deleted yet, if the status says so.
    pub(super) fn message(&self, pod_uid: &str) -> Option<&str> {
        self.messages.get(pod_uid).map(String::as_str)
    }
}

impl Protection {
    /// Describes why an eviction would disconnect players, and how to prevent it; nothing if pods are not evicted.
    pub(super) fn objection(self) -> Option<&'static str> {
        match self {
            Self::Asks(_) | Self::Deleted => None,
            Self::Unguarded { has_hook: true } => {
                Some("spec.disruption.policy is Unguarded; set it to Ask, so that the hook runs first")
            }
            Self::Unguarded { has_hook: false } => Some(
                "it has no PreDelete hook, and spec.disruption.policy is Unguarded; set \
                 spec.preDeleteUpdateStrategy.hook, and the policy to Ask",
            ),
            Self::WithoutHook => Some("it has no PreDelete hook; set spec.preDeleteUpdateStrategy.hook"),
            Self::Gone => Some("it no longer exists, so that no hook runs"),
        }
    }
}

/// Returns the controller of a pod.
pub(super) fn controller_of(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.owner_references().iter();
    owners.find(|owner| owner.controller == Some(true))
}

/// Returns the reference to the `GameDeployment` that controls a pod.
pub(super) fn game_of(pod: &Pod) -> Option<&OwnerReference> {
    controller_of(pod).filter(|owner| {
        let group = owner.api_version.split('/').next();
        owner.kind == "GameDeployment" && group == Some(GROUP)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::samples;

    fn with_policy(policy: &str, has_hook: bool) -> GameDeployment {
        let snapshot = if has_hook {
            samples::complete()
        } else {
            samples::without_hook()
        };
        let mut game = snapshot.game;
        let disruption = json!({ "policy": policy, "requestExpirationSeconds": 60 });
        game.spec.disruption = serde_json::from_value(disruption).unwrap();
        game
    }

    #[test]
    fn only_the_policy_ask_with_a_hook_protects_pods() {
        for (policy, has_hook, protection) in [
            ("Ask", true, Protection::Asks(SignedDuration::from_secs(60))),
            ("Ask", false, Protection::WithoutHook),
            ("Unguarded", true, Protection::Unguarded { has_hook: true }),
            ("Unguarded", false, Protection::Unguarded { has_hook: false }),
        ] {
            let game = with_policy(policy, has_hook);
            assert_eq!(
                OwningGame::read(&game).protection,
                protection,
                "{policy} {has_hook}"
            );
            let is_asked = policy == "Ask" && has_hook;
            assert_eq!(protection.objection().is_none(), is_asked, "{policy} {has_hook}");
        }
        let deleted = samples::being_deleted(samples::complete(), true).game;
        assert_eq!(OwningGame::read(&deleted).protection, Protection::Deleted);
    }

    #[test]
    fn messages_are_those_of_the_status() {
        let mut snapshot = samples::with_node_request(samples::complete(), "u-1", "Cordon");
        let status = snapshot.game.status.get_or_insert_default();
        status.removal_requests[0].message = Some("the hook is running".to_owned());
        let game = OwningGame::read(&snapshot.game);
        assert_eq!(game.message("u-1"), Some("the hook is running"));
        assert_eq!(game.message("u-2"), None);
    }
}
