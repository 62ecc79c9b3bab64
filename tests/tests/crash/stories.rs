//! Stories of a workload, independent of the operator's progress.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use futures::future::{FutureExt, LocalBoxFuture};
use operator_tests::Fleet;
use operator_tests::fleet::{empty_now, game, hooked, until_empty};
use serde_json::{Value, json};
use shared_api::HookRun;
use test_kit::{Answer, Webhook};

/// Story and the expected final state.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) play: for<'f> fn(&'f Fleet<'f>) -> LocalBoxFuture<'f, ()>,
    pub(crate) end: for<'f> fn(&'f Fleet<'f>) -> LocalBoxFuture<'f, ()>,
}

pub(crate) const STORIES: &[Story] = &[
    Story {
        name: "scale-down",
        play: |fleet| scale_down(fleet).boxed_local(),
        end: |fleet| ends(fleet, 1, "game:v1", Some(2)).boxed_local(),
    },
    Story {
        name: "raised-again",
        play: |fleet| raised_again(fleet).boxed_local(),
        end: |fleet| ends(fleet, 3, "game:v1", Some(0)).boxed_local(),
    },
    Story {
        name: "refused-and-retried",
        play: |fleet| refused_and_retried(fleet).boxed_local(),
        end: |fleet| ends(fleet, 1, "game:v1", Some(1)).boxed_local(),
    },
    Story {
        name: "in-place",
        play: |fleet| in_place(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v3", None).boxed_local(),
    },
    Story {
        name: "rolling",
        play: |fleet| rolling(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v2", Some(2)).boxed_local(),
    },
    Story {
        name: "canary",
        play: |fleet| canary(fleet).boxed_local(),
        end: |fleet| ends(fleet, 2, "game:v2", Some(2)).boxed_local(),
    },
];

/// Checks that everything is as if nothing had died. `terminations` counts containers, by the nodes' own
/// records.
async fn ends(fleet: &Fleet<'_>, replicas: usize, image: &str, terminations: Option<usize>) {
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
async fn quiet(fleet: &Fleet<'_>, replicas: usize) {
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
