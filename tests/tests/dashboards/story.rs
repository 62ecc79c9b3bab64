//! Run that exercises everything on the dashboards: pods leave, are held, are updated; hooks succeed, fail,
//! cannot be reached and cannot run.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use operator_tests::Fleet;
use operator_tests::fleet::{condition, empty_now, game, hooked, one_of, until_empty};
use operator_tests::merge;
use serde_json::{Value, json};
use test_kit::ControlPlane;
use test_kit::node::{Options, Timing};

use crate::PROGRAMS;

/// Slow enough to appear in the scrapes.
const TIMING: Timing = Timing {
    start: Duration::from_millis(300),
    image_change: Duration::from_millis(300),
    stop: Duration::from_millis(500),
    back_off: Duration::from_millis(50),
};

pub(crate) async fn fleet() -> Fleet<'static> {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let options = Options {
        timing: TIMING,
        ..Options::default()
    };
    Fleet::with(control_plane, PROGRAMS, "dashboards", options).await
}

/// Builds a workload with its own name.
fn named(name: &str, replicas: usize, extra: Value) -> Value {
    let mut manifest = game(replicas, extra);
    merge(
        &mut manifest,
        json!({
            "metadata": { "name": name, "labels": { "app": name } },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": { "metadata": { "labels": { "app": name } } }
            }
        }),
    );
    manifest
}

/// Builds a hook for an address without a listener, with endless retries.
fn unreachable() -> Value {
    json!({ "metrics": [{
        "name": "players", "interval": "200ms", "successfulLimit": 1, "successCondition": "true",
        "provider": { "web": { "url": "http://127.0.0.1:1", "jsonPath": "{$}" } }
    }] })
}

/// Builds a hook that queries this Prometheus twenty times.
fn measured_by(prometheus: &str) -> Value {
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": { "name": "by-hand" },
        "spec": { "metrics": [{
            "name": "answers", "interval": "200ms", "count": 20, "successCondition": "result[0] == 1",
            "provider": { "prometheus": { "address": prometheus, "query": "vector(1)" } }
        }] }
    })
}

async fn players(fleet: &Fleet<'_>, name: &str, players: u64) {
    let pods = ListParams::default().labels(&format!("app={name}"));
    for pod in fleet.pods().list(&pods).await.unwrap() {
        fleet.nodes.pod(&pod.name_any()).set_players(players);
    }
}

async fn change(fleet: &Fleet<'_>, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    fleet
        .games()
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Sets another image of the only container.
async fn update(fleet: &Fleet<'_>, name: &str) {
    let mut template = fleet.games().get(name).await.unwrap().spec.template.value();
    template["spec"]["containers"][0]["image"] = json!("game:v2");
    change(fleet, name, json!({ "template": template })).await;
}

fn hooks_of_an_update() -> Value {
    json!({
        "preInplaceUpdateStrategy": { "hook": { "templateName": "until-empty" } },
        "postInplaceUpdateStrategy": { "hook": { "templateName": "well" } },
        "updateStrategy": { "maxUnavailable": 1, "inPlaceUpdateStrategy": { "gracePeriodSeconds": 1 } }
    })
}

/// Plays the story up to the point where hooks hold pods back.
pub(crate) async fn tell(fleet: &Fleet<'_>, prometheus: &str) {
    fleet.hook("until-empty", until_empty()).await;
    fleet.hook("empty-now", empty_now()).await;
    fleet.hook("well", one_of("state", "well")).await;
    fleet.hook("unreachable", unreachable()).await;
    fleet.nodes.every_pod().set("state", json!("well"));
    fleet.launch(&named("lobby", 6, hooked("until-empty"))).await;
    fleet.launch(&named("arena", 5, hooked("empty-now"))).await;
    fleet.launch(&named("forge", 4, hooks_of_an_update())).await;
    let recreated = json!({ "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 1 } });
    fleet.launch(&named("market", 4, recreated)).await;
    fleet.launch(&named("island", 3, hooked("unreachable"))).await;
    fleet.launch(&named("cellar", 3, hooked("nowhere"))).await;
    players(fleet, "lobby", 2).await;
    players(fleet, "arena", 3).await;
    fleet.apply(&measured_by(prometheus));
    change(fleet, "lobby", json!({ "replicas": 3 })).await;
    change(fleet, "arena", json!({ "replicas": 3 })).await;
    update(fleet, "forge").await;
    fleet
        .until_of("arena", |status| {
            condition(status, "ScaleBlocked").is_some_and(|found| found.1 == "HookUnsuccessful")
        })
        .await;
    change(fleet, "island", json!({ "replicas": 1 })).await;
    players(fleet, "lobby", 0).await;
    fleet.until_of("lobby", |status| status.replicas == 3).await;
    change(fleet, "cellar", json!({ "replicas": 2 })).await;
    update(fleet, "market").await;
    for updated in ["forge", "market"] {
        fleet
            .until_of(updated, |status| {
                status.updated_ready_replicas == 4 && status.hook_pending_replicas == 0
            })
            .await;
    }
    fleet
        .until_of("cellar", |status| {
            condition(status, "ScaleBlocked").is_some_and(|found| found.1 == "HookTemplateMissing")
        })
        .await;
    fleet
        .until_of("island", |status| {
            condition(status, "ScaleBlocked").is_some_and(|found| found.1 == "HookErrors")
        })
        .await;
}
