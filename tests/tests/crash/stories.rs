//! Stories of a workload, independent of the operator's progress.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use futures::future::{FutureExt, LocalBoxFuture};
use operator_tests::fleet::{empty_now, game, hooked, until_empty};
use operator_tests::{AuditedOrder, Fleet};
use serde_json::{Value, json};
use shared_api::HookRun;
use test_kit::{Answer, Webhook};

/// Part of a story.
type Part = for<'f> fn(&'f Fleet<'f>) -> LocalBoxFuture<'f, ()>;

/// Story and the expected final state.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    /// Part during which the operator does not die.
    pub(crate) prepare: Part,
    pub(crate) play: Part,
    pub(crate) end: Part,
}

pub(crate) const STORIES: &[Story] = &[
    Story {
        name: "scale-down",
        prepare: nothing,
        play: |fleet| scale_down(fleet).boxed_local(),
        end: |fleet| ends(fleet, 1, "game:v1", Some(2)).boxed_local(),
    },
    Story {
        name: "raised-again",
        prepare: nothing,
        play: |fleet| raised_again(fleet).boxed_local(),
        end: |fleet| ends(fleet, 3, "game:v1", Some(0)).boxed_local(),
    },
    Story {
        name: "refused-and-retried",
        prepare: nothing,
        play: |fleet| refused_and_retried(fleet).boxed_local(),
        end: |fleet| ends(fleet, 1, "game:v1", Some(1)).boxed_local(),
    },
    Story {
        name: "in-place",
        prepare: nothing,
        play: |fleet| in_place(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v3", None).boxed_local(),
    },
    Story {
        name: "rolling",
        prepare: nothing,
        play: |fleet| rolling(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v2", Some(2)).boxed_local(),
    },
    Story {
        name: "canary",
        prepare: nothing,
        play: |fleet| canary(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v2", Some(2)).boxed_local(),
    },
    Story {
        name: "rollout-hooks",
        prepare: nothing,
        play: |fleet| rollout_hooks(fleet).boxed_local(),
        end: |fleet| ends(fleet, 4, "game:v2", Some(4)).boxed_local(),
    },
    Story {
        name: "rolled-back",
        prepare: nothing,
        play: |fleet| rolled_back(fleet).boxed_local(),
        end: |fleet| ends(fleet, 4, "game:v2", Some(8)).boxed_local(),
    },
];

fn nothing<'f>(_: &'f Fleet<'f>) -> LocalBoxFuture<'f, ()> {
    std::future::ready(()).boxed_local()
}

/// Checks that everything is as if nothing had died. `terminations` counts containers, by the nodes' own
/// records.
pub(crate) async fn ends(fleet: &Fleet<'_>, replicas: usize, image: &str, terminations: Option<usize>) {
    fleet.workloads.as_ref().unwrap().ready().await;
    fleet.hooks.as_ref().unwrap().ready().await;
    fleet.settled(replicas).await;
    let images = fleet.images().await;
    assert_eq!(images, BTreeSet::from([image.to_owned()]));
    if let Some(wanted) = terminations {
        assert_eq!(fleet.nodes.terminations().len(), wanted);
    }
}

/// Waits until this many pods exist, all ready, with no hook running.
pub(crate) async fn quiet(fleet: &Fleet<'_>, replicas: usize) {
    let count = i32::try_from(replicas).unwrap();
    fleet
        .until(|status| {
            (
                status.replicas,
                status.available_replicas,
                status.updated_ready_replicas,
            ) == (count, count, count)
        })
        .await;
    fleet.until_runs(<[HookRun]>::is_empty).await;
}

async fn launched(fleet: &Fleet<'_>, hook: Value, replicas: usize, spec: Value) {
    fleet.hook("empty", hook).await;
    fleet.launch(&game(replicas, spec)).await;
}

async fn scale_down(fleet: &Fleet<'_>) {
    launched(fleet, until_empty(), 3, hooked("empty")).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.until_runs(|runs| runs.len() == 2).await;
    fleet.nodes.every_pod().set_players(0);
    quiet(fleet, 1).await;
}

async fn raised_again(fleet: &Fleet<'_>) {
    launched(fleet, until_empty(), 3, hooked("empty")).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.until_runs(|runs| runs.len() == 2).await;
    fleet.scale(3);
    quiet(fleet, 3).await;
}

async fn refused_and_retried(fleet: &Fleet<'_>) {
    launched(fleet, empty_now(), 2, hooked("empty")).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preDeleteUpdateStrategy");
    quiet(fleet, 1).await;
}

/// Changes the template again during the first update.
async fn in_place(fleet: &Fleet<'_>) {
    let mut spec = json!({ "preInplaceUpdateStrategy": { "hook": { "templateName": "empty" } } });
    spec["updateStrategy"] =
        json!({ "maxUnavailable": 1, "inPlaceUpdateStrategy": { "gracePeriodSeconds": 1 } });
    launched(fleet, until_empty(), 2, spec).await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.ready_replicas == 1).await;
    fleet.set_image("game:v3").await;
    quiet(fleet, 2).await;
}

async fn rolling(fleet: &Fleet<'_>) {
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "type": "RollingUpdate", "maxUnavailable": 0, "maxSurge": 1 });
    launched(fleet, until_empty(), 2, spec).await;
    fleet.set_image("game:v2").await;
    quiet(fleet, 2).await;
}

/// Returns a server whose responses satisfy every hook.
fn judge() -> &'static Webhook {
    static JUDGE: OnceLock<Webhook> = OnceLock::new();
    JUDGE.get_or_init(|| {
        let server = Webhook::start().unwrap();
        server.on("/", Answer::json(json!({ "well": 1 })));
        server
    })
}

async fn canary(fleet: &Fleet<'_>) {
    let steps = json!([
        { "partition": 1 }, { "pause": { "duration": 1 } }, { "hook": { "templateName": "well" } }
    ]);
    let well = json!({ "metrics": [{
        "name": "well", "successCondition": "result == 1",
        "provider": { "web": { "url": judge().url("/"), "jsonPath": "{$.well}" } }
    }] });
    let spec = json!({ "updateStrategy": { "canary": { "steps": steps } } });
    fleet.hook("well", well).await;
    fleet.launch(&game(2, spec)).await;
    fleet.set_image("game:v2").await;
    quiet(fleet, 2).await;
}

/// Creates the HookTemplate `ask`, whose verdict its argument gives: `yes` or `no`.
async fn asks(fleet: &Fleet<'_>) {
    static SERVER: OnceLock<Webhook> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let server = Webhook::start().unwrap();
        for answer in ["yes", "no"] {
            server.on(&format!("/{answer}"), Answer::json(json!({ "answer": answer })));
        }
        server
    });
    let ask = json!({ "args": [{ "name": "answer" }], "metrics": [{
        "name": "answer", "successCondition": "result == \"yes\"",
        "provider": { "web": { "url": server.url("/{{ args.answer }}"), "jsonPath": "{$.answer}" } }
    }] });
    fleet.hook("ask", ask).await;
}

fn lifecycle_hook(name: &str, trigger: Value, answer: &str) -> Value {
    let args = [json!({ "name": "answer", "value": answer })];
    json!({
        "name": name, "trigger": trigger, "hook": { "templateName": "ask", "args": args },
        "failurePolicy": "Abort", "abortAction": "Rollback"
    })
}

fn at_share(point: &str) -> Value {
    json!({ "type": "ProgressAvailable", "progressAvailableParams": { "progressPoint": point } })
}

/// Three hooks at two points, and one before and one after all pods.
async fn rollout_hooks(fleet: &Fleet<'_>) {
    let order = AuditedOrder::begin(fleet.control_plane, &fleet.namespace);
    asks(fleet).await;
    let hooks = [
        lifecycle_hook("before", json!({ "type": "Pre" }), "yes"),
        lifecycle_hook("half", at_share("50%"), "yes"),
        lifecycle_hook("half-too", at_share("50%"), "yes"),
        lifecycle_hook("more", at_share("75%"), "yes"),
        lifecycle_hook("after", json!({ "type": "Post" }), "yes"),
    ];
    let update = json!({ "maxUnavailable": 4 });
    fleet
        .launch(&game(
            4,
            json!({ "lifecycleHooks": hooks, "updateStrategy": update }),
        ))
        .await;
    fleet.says("Progressing", "RolloutComplete").await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_ready_replicas == 4).await;
    fleet.says("Progressing", "RolloutComplete").await;
    quiet(fleet, 4).await;
    let attempts = fleet.status().await.lifecycle_hooks;
    assert!(attempts.iter().all(|hook| hook.attempts == 1), "{attempts:?}");
    let needed = [
        ("before", 0),
        ("half", 2),
        ("half-too", 2),
        ("more", 3),
        ("after", 4),
    ];
    let passed = order.check(&needed);
    assert!(
        passed.iter().all(|passed| passed.len() == needed.len()),
        "{passed:?}"
    );
}

/// A failed check takes the pods back; the rollout begins again after its correction.
async fn rolled_back(fleet: &Fleet<'_>) {
    let order = AuditedOrder::begin(fleet.control_plane, &fleet.namespace);
    asks(fleet).await;
    let smoke = |answer: &str| json!([lifecycle_hook("smoke", at_share("50%"), answer)]);
    let mut spec = json!({ "lifecycleHooks": smoke("yes"), "updateStrategy": { "maxUnavailable": 4 } });
    spec["preInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "empty" } });
    launched(fleet, until_empty(), 4, spec).await;
    fleet.says("Progressing", "RolloutComplete").await;
    fleet.set(json!({ "lifecycleHooks": smoke("no") })).await;
    fleet.set_image("game:v2").await;
    fleet
        .until(|status| {
            status.rollback.is_some() && status.updated_replicas == 0 && status.available_replicas == 4
        })
        .await;
    fleet.all_run("game:v1", 4).await;
    fleet.set(json!({ "lifecycleHooks": smoke("yes") })).await;
    let request = json!({ "tkex.tencent.com/retry-requested": "rollout=1" });
    fleet
        .patch(json!({ "metadata": { "annotations": request } }))
        .await;
    fleet.until(|status| status.updated_ready_replicas == 4).await;
    fleet.says("Progressing", "RolloutComplete").await;
    // The failed attempt stays until its revision is deleted.
    for run in fleet.until_runs(|runs| runs.len() == 1).await {
        fleet.delete_run(run.metadata.name.as_deref().unwrap()).await;
    }
    quiet(fleet, 4).await;
    let _ = order.check(&[("smoke", 2)]);
}
