//! Hooks of a rollout in real pods: their program is that of the new image.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use shared_api::GameDeploymentStatus;
use test_kit::real_node::samples::{GAME_MISSING, GAME_V1, GAME_V2};
use test_kit::wait::within;

use super::workload::{Fleet, condition};
use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{GAME, ensure};
use crate::node_test::suite::{Check, check};

/// Grants that hooks with Jobs need in their namespace.
const GRANT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/hookgate-hooks.yaml");

pub(super) const CHECKS: [Check; 4] = [
    check!(
        "lifecycle: a hook runs the new image before the first pod is updated, and exit code 3 ends the rollout",
        exit_code
    ),
    check!(
        "lifecycle: a hook that hangs is stopped with its pod after timeoutSeconds",
        hang
    ),
    check!(
        "lifecycle: a hook whose image cannot be pulled is explained, and the way back ends it",
        no_image
    ),
    check!(
        "lifecycle: with Recreate a hook runs while no game server does",
        between
    ),
];

/// Hook that runs this script in the new image. It fails in no rollout to v1.
fn hook(type_: &str, script: &str) -> Value {
    let script = format!("if [ \"$(cat /version)\" = v2 ]; then {script}; fi");
    json!({
        "name": "suite", "trigger": { "type": type_ }, "failurePolicy": "Abort",
        "execNewPod": { "containerName": GAME, "command": ["sh", "-ec", script] },
    })
}

async fn launch<'a>(harness: &'a Harness<'a>, hook: Value, update: Value) -> Outcome<Fleet<'a>> {
    harness.kubectl(&["apply", "-f", GRANT])?;
    let extra = json!({ "lifecycleHooks": [hook], "updateStrategy": update });
    Fleet::launch_with(harness, 2, extra, &["--provider-job"]).await
}

/// Images of the workload's pods, without those of Jobs.
async fn images(fleet: &Fleet<'_>) -> Outcome<Vec<String>> {
    let pods: Api<Pod> = fleet.api();
    let pods = pods.list(&ListParams::default()).await?.into_iter();
    let servers = pods.filter(|pod| !pod.labels().contains_key("job-name"));
    let image = |pod: Pod| pod.spec?.containers.first()?.image.clone();
    Ok(servers.filter_map(image).collect())
}

/// Waits until no Job and no pod of one is left.
async fn no_jobs(fleet: &Fleet<'_>) -> Outcome<()> {
    let (jobs, pods): (Api<Job>, Api<Pod>) = (fleet.api(), fleet.api());
    let found = within(PATIENCE, || async {
        let all = ListParams::default();
        let jobs = jobs.list(&all).await.map_err(|error| error.to_string())?;
        let pods = pods.list(&all.labels("job-name")).await;
        let pods = pods.map_err(|error| error.to_string())?;
        let names = jobs.iter().map(ResourceExt::name_any);
        let names: Vec<String> = names.chain(pods.iter().map(ResourceExt::name_any)).collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(names.join(", "))
        }
    });
    Ok(found.await?)
}

/// Waits until the rollout is aborted, and returns why.
async fn aborted(fleet: &Fleet<'_>) -> Outcome<String> {
    let why = |status: &GameDeploymentStatus| {
        let found = condition(status, "UpdateBlocked")?;
        (found.reason == "LifecycleHookAborted").then_some(found.message)
    };
    let status = fleet
        .until("an aborted rollout", |status| why(status).is_some())
        .await?;
    Ok(why(&status).unwrap_or_default())
}

async fn exit_code(harness: &Harness<'_>) -> Outcome<()> {
    let fleet = launch(harness, hook("Pre", "exit 3"), json!({ "maxUnavailable": 2 })).await?;
    fleet.set_image(GAME_V2)?;
    let why = aborted(&fleet).await?;
    harness.note(&why);
    ensure(why.contains("exit code 3"), "the message names the exit code")?;
    ensure(images(&fleet).await? == [GAME_V1; 2], "no pod was updated")
}

async fn hang(harness: &Harness<'_>) -> Outcome<()> {
    let mut hook = hook("Pre", "sleep 86400");
    hook["timeoutSeconds"] = json!(10);
    let fleet = launch(harness, hook, json!({ "maxUnavailable": 2 })).await?;
    fleet.set_image(GAME_V2)?;
    let why = aborted(&fleet).await?;
    harness.note(&why);
    ensure(why.contains("timeoutSeconds"), "the message names the limit")?;
    no_jobs(&fleet).await?;
    ensure(images(&fleet).await? == [GAME_V1; 2], "no pod was updated")
}

async fn no_image(harness: &Harness<'_>) -> Outcome<()> {
    let fleet = launch(harness, hook("Pre", "true"), json!({ "maxUnavailable": 2 })).await?;
    fleet.set_image(GAME_MISSING)?;
    let why = |status: &GameDeploymentStatus| {
        let found = condition(status, "Progressing").filter(|found| found.message.contains("ImagePull"));
        found.map(|found| found.message)
    };
    let status = fleet
        .until("the kubelet's reason", |status| why(status).is_some())
        .await?;
    harness.note(why(&status).unwrap_or_default());
    ensure(images(&fleet).await? == [GAME_V1; 2], "no pod was updated")?;
    fleet.set_image(GAME_V1)?;
    fleet.all_updated(2).await?;
    no_jobs(&fleet).await?;
    ensure(images(&fleet).await? == [GAME_V1; 2], "the pods are as before")
}

async fn between(harness: &Harness<'_>) -> Outcome<()> {
    let fleet = launch(harness, hook("Mid", "sleep 5"), json!({ "type": "Recreate" })).await?;
    fleet.set_image(GAME_V2)?;
    let pods: Api<Pod> = fleet.api();
    let of_jobs = ListParams::default().labels("job-name");
    let runs = within(PATIENCE, || async {
        let pods = pods.list(&of_jobs).await.map_err(|error| error.to_string())?;
        let is_running = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
            phase == Some("Running") && container.is_some_and(|one| one.image.as_deref() == Some(GAME_V2))
        };
        if pods.iter().any(is_running) {
            Ok(())
        } else {
            Err(format!("{} pods of Jobs", pods.items.len()))
        }
    });
    runs.await?;
    ensure(
        images(&fleet).await?.is_empty(),
        "no game server runs during the hook",
    )?;
    fleet.all_updated(2).await?;
    ensure(images(&fleet).await? == [GAME_V2; 2], "both pods are new")
}
