//! View of the lifecycle hooks of a rollout, in the order of their points.

use gamedeployment_core::lifecycle::Point;
use gamedeployment_core::workload::{Amount, Trigger};
use jiff::Timestamp;
use serde::Serialize;
use shared_api::game_deployment::{LifecycleHook, LifecycleHookPhase, LifecycleHookStatus};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::{PodCounts, status_of};

/// View of a lifecycle hook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LifecycleHookView {
    pub(crate) name: String,
    /// Point at which it runs: `Pre`, `Mid`, `50%`, `3 pods` or `Post`; `?` if the operator refuses it.
    pub(crate) point: String,
    #[serde(skip)]
    pub(crate) trigger: Option<Trigger>,
    /// Number of updated pods that the point needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pods: Option<usize>,
    /// State of the hook.
    pub(crate) phase: LifecycleHookPhase,
    /// Number of attempts begun.
    pub(crate) attempts: i32,
    /// Start of the first attempt, or of the first one after a requested retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<Timestamp>,
    /// Reason why it waits, or how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// HookRun of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hook_run: Option<String>,
}

impl LifecycleHookView {
    /// Builds the view of a hook. A hook without an entry in the status is `Waiting`.
    fn of(hook: &LifecycleHook, entry: Option<&LifecycleHookStatus>, replicas: usize) -> Self {
        let entry = entry.cloned().unwrap_or_default();
        let trigger = Trigger::of(&hook.trigger);
        Self {
            name: hook.name.clone(),
            point: words(trigger),
            trigger,
            pods: trigger.map(|trigger| Point::of(trigger, replicas).pods(replicas)),
            phase: entry.phase,
            attempts: entry.attempts,
            started: entry.start_time.map(shared_api::time::Time::timestamp),
            message: entry.message,
            hook_run: entry.hook_run,
        }
    }
}

/// Returns the hooks of the spec, in the order of their points.
pub(super) fn all(game: &GameDeployment) -> Vec<LifecycleHookView> {
    let status = status_of(game);
    let replicas = usize::try_from(PodCounts::of(game).desired).unwrap_or_default();
    let hooks = game.spec.lifecycle_hooks.as_deref().unwrap_or_default();
    let mut views: Vec<LifecycleHookView> = hooks
        .iter()
        .map(|hook| LifecycleHookView::of(hook, recorded(&status, &hook.name), replicas))
        .collect();
    // Invalid points come last.
    views.sort_by_key(|view| {
        let point = view.trigger.map(|trigger| Point::of(trigger, replicas));
        (point.is_none(), point)
    });
    views
}

/// Returns the entry of a hook. An entry for an earlier revision says nothing about this rollout.
fn recorded<'s>(status: &'s GameDeploymentStatus, hook: &str) -> Option<&'s LifecycleHookStatus> {
    let target = status.update_revision.as_ref();
    let mut entries = status.lifecycle_hooks.iter();
    entries.find(|entry| entry.name == hook && target.is_none_or(|target| *target == entry.revision))
}

/// Describes a point in words.
fn words(trigger: Option<Trigger>) -> String {
    match trigger {
        Some(Trigger::Pre) => "Pre".to_owned(),
        Some(Trigger::Mid) => "Mid".to_owned(),
        Some(Trigger::Progress(Amount::Count(1))) => "1 pod".to_owned(),
        Some(Trigger::Progress(Amount::Count(count))) => format!("{count} pods"),
        Some(Trigger::Progress(Amount::Percent(percent))) => format!("{percent}%"),
        Some(Trigger::Post) => "Post".to_owned(),
        None => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::view::GameView;
    use crate::view::samples::{self, at, lifecycle_entry as entry, lifecycle_hook as hook, lifecycle_hooks};

    /// Returns the name, the point and the pods of each hook.
    fn points(hooks: &Value, replicas: i32) -> Vec<(String, String, Option<usize>)> {
        let mut game = lifecycle_hooks(hooks, &json!([])).game;
        game.spec.replicas = Some(replicas);
        let views = all(&game).into_iter();
        views.map(|view| (view.name, view.point, view.pods)).collect()
    }

    fn point(name: &str, point: &str, pods: Option<usize>) -> (String, String, Option<usize>) {
        (name.to_owned(), point.to_owned(), pods)
    }

    #[test]
    fn a_workload_without_lifecycle_hooks_has_no_list() {
        let emptied = lifecycle_hooks(&json!([]), &json!([entry("removed", "Failed", json!({}))]));
        for snapshot in [samples::complete(), samples::rolled_back(), emptied] {
            let view = GameView::of(&snapshot);
            assert!(view.lifecycle_hooks.is_empty());
            let fields = serde_json::to_value(&view).unwrap();
            assert_eq!(fields.get("lifecycleHooks"), None);
        }
    }

    #[test]
    fn hooks_come_in_the_order_of_their_points() {
        let hooks = json!([
            hook("later", json!({ "type": "Later" })),
            hook("post", json!({ "type": "Post" })),
            hook("many", at(json!(12))),
            hook("half", at(json!("50%"))),
            hook("third", at(json!("33%"))),
            hook("three", at(json!("3"))),
            hook("one", at(json!(1))),
            hook("zero", at(json!(0))),
            hook("mid", json!({ "type": "Mid" })),
            hook("pre", json!({ "type": "Pre" })),
        ]);
        let expected = [
            point("zero", "Pre", Some(0)),
            point("pre", "Pre", Some(0)),
            point("mid", "Mid", Some(0)),
            point("one", "1 pod", Some(1)),
            point("three", "3 pods", Some(3)),
            point("third", "33%", Some(4)),
            point("half", "50%", Some(5)),
            point("many", "12 pods", Some(10)),
            point("post", "Post", Some(10)),
            point("later", "?", None),
        ];
        assert_eq!(points(&hooks, 10), expected);
    }

    #[test]
    fn two_points_on_the_same_pod_keep_their_order() {
        let hooks = json!([
            hook("second", at(json!("60%"))),
            hook("none", at(json!("0%"))),
            hook("first", at(json!("50%"))),
        ]);
        for (replicas, pods) in [(1, 1), (0, 0)] {
            let expected = [
                point("none", "Pre", Some(0)),
                point("first", "50%", Some(pods)),
                point("second", "60%", Some(pods)),
            ];
            assert_eq!(points(&hooks, replicas), expected);
        }
    }

    #[test]
    fn each_hook_has_its_phase_and_its_hook_run() {
        let hooks = json!([
            hook("announce", json!({ "type": "Post" })),
            hook("smoke-test", at(json!("50%"))),
        ]);
        let running = json!({
            "attempts": 2, "startTime": "2026-01-02T09:58:00Z", "message": "waiting for its verdict",
            "hookRun": "lifecycle-arena-7d4b9c-2-smoke-test-2"
        });
        let entries = json!([
            entry("removed", "Failed", json!({})),
            entry("smoke-test", "Running", running),
        ]);
        let view = GameView::of(&lifecycle_hooks(&hooks, &entries));
        let fields = serde_json::to_value(&view).unwrap();
        assert_eq!(
            fields["lifecycleHooks"],
            json!([
                {
                    "name": "smoke-test", "point": "50%", "pods": 5, "phase": "Running", "attempts": 2,
                    "started": "2026-01-02T09:58:00Z", "message": "waiting for its verdict",
                    "hookRun": "lifecycle-arena-7d4b9c-2-smoke-test-2"
                },
                { "name": "announce", "point": "Post", "pods": 10, "phase": "Waiting", "attempts": 0 }
            ])
        );
    }

    #[test]
    fn the_success_of_an_earlier_rollout_does_not_count() {
        let hooks = json!([hook("smoke-test", at(json!("50%")))]);
        let phase = |revision: &str| {
            let old = entry("smoke-test", "Successful", json!({ "revision": revision }));
            let views = all(&lifecycle_hooks(&hooks, &json!([old])).game);
            views.into_iter().map(|view| view.phase).next()
        };
        assert_eq!(phase("arena-5f6d8b"), Some(LifecycleHookPhase::Waiting));
        assert_eq!(phase("arena-7d4b9c"), Some(LifecycleHookPhase::Successful));
    }

    #[test]
    fn a_rollback_keeps_the_phases_of_its_hooks() {
        let hooks = json!([
            hook("migrate", json!({ "type": "Pre" })),
            hook("smoke-test", at(json!("50%"))),
            hook("announce", json!({ "type": "Post" })),
        ]);
        let entries = json!([
            entry("migrate", "Successful", json!({})),
            entry("smoke-test", "Inconclusive", json!({})),
            entry("announce", "Waiting", json!({})),
        ]);
        let mut snapshot = lifecycle_hooks(&hooks, &entries);
        let status = snapshot.game.status.get_or_insert_default();
        status.rollback = samples::rolled_back().game.status.unwrap().rollback;
        let view = GameView::of(&snapshot);
        let phases: Vec<_> = view.lifecycle_hooks.iter().map(|hook| hook.phase).collect();
        assert_eq!(
            phases,
            [
                LifecycleHookPhase::Successful,
                LifecycleHookPhase::Inconclusive,
                LifecycleHookPhase::Waiting
            ]
        );
        assert_eq!(view.updated_word(), "to roll back");
    }
}
