//! Eviction by the kubelet, which sends no request that the removal guard could deny.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use shared_api::HookRun;
use shared_api::names::pod::REMOVAL_REQUESTED;
use test_kit::wait::within;
use test_kit::whole;

use super::drain::{Guarded, Server, why_pending};
use super::workload::NAME;
use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::ensure;
use crate::node_test::suite::{Check, check};

/// The last check: it restarts the kubelet, which may then evict the pods of other checks.
pub(super) const CHECKS: [Check; 1] = [check!(
    "unlike a drain, the kubelet under memory pressure evicts a server with players, and no hook runs",
    eviction
)];

/// Finalizer that keeps the evicted pod, so that its state can be read: the operator deletes it at once.
const FINALIZER: &str = "hookgate.test/evicted";
/// Timeout of the eviction, after which the pressure ends in any case.
const EVICTED_IN: Duration = Duration::from_secs(150);

async fn eviction(harness: &Harness<'_>) -> Outcome<()> {
    let guarded = Guarded::launch(harness, 1, json!({ "policy": "Ask" })).await?;
    let (busy, _) = guarded.occupy(1).await?;
    let (name, _) = &busy[0];
    // Without the toleration, the restarted kubelet may reject the running pod before it evicts one.
    let toleration = json!({
        "key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule",
    });
    let changes = json!([
        { "op": "add", "path": "/spec/tolerations/-", "value": toleration },
        { "op": "add", "path": "/metadata/finalizers", "value": [FINALIZER] },
    ]);
    patch(harness, name, &changes)?;
    let evicted = tokio::time::timeout(EVICTED_IN, evict(&guarded, &busy[0]))
        .await
        .map_err(|_| format!("not done within {EVICTED_IN:?}"))
        .and_then(|evicted| evicted.map_err(|error| whole(error.as_ref())));
    let ended = harness.node().set_memory_pressure(false).await;
    evicted?;
    ended?;

    guarded.fleet.all_updated(1).await?;
    guarded.await_requests(&[], "").await?;
    let pods = guarded.fleet.pods().await?;
    for (name, seen) in pods {
        let answer = harness.ask_game(&seen.ip).await?;
        ensure(answer["phase"] == "serving", format!("{name} serves: {answer}"))?;
    }
    Ok(())
}

/// Puts the node under memory pressure, and checks what happens to the only pod.
async fn evict(guarded: &Guarded<'_>, (name, before): &Server) -> Outcome<()> {
    let harness = guarded.harness;
    harness.node().set_memory_pressure(true).await?;
    let pods = harness.pods();
    let failed = within(PATIENCE, || async {
        let pod = pods.get(name).await.map_err(|error| error.to_string())?;
        let status = pod.status.clone().unwrap_or_default();
        if status.phase.as_deref() == Some("Failed") {
            Ok((pod, status))
        } else {
            Err(format!("{status:?}"))
        }
    });
    let (pod, status) = failed.await?;
    ensure(
        status.reason.as_deref() == Some("Evicted"),
        format!("the kubelet evicted the pod: {status:?}"),
    )?;
    harness.note(format!("the kubelet: {}", status.message.unwrap_or_default()));
    ensure(
        !pod.annotations().contains_key(REMOVAL_REQUESTED),
        "no removal request is recorded",
    )?;
    let silent = within(PATIENCE, || async {
        match harness.ask_game(&before.ip).await {
            Ok(answer) => Err(answer.to_string()),
            Err(_) => Ok(()),
        }
    });
    silent.await?;
    let why = event(guarded, name, "PodDeleted").await?;
    harness.note(format!("the operator: {why}"));
    ensure(
        why.contains("the pod has ended"),
        format!("the operator replaces the pod without a verdict: {why}"),
    )?;
    let lost = event(guarded, NAME, "PodLostUngated").await?;
    harness.note(format!("the operator: {lost}"));
    ensure(
        lost.contains(name) && lost.contains("ended by the kubelet") && lost.contains("Evicted"),
        format!("the operator reports that the pod was lost: {lost}"),
    )?;
    let runs = guarded.fleet.api::<HookRun>();
    let runs = runs.list(&ListParams::default()).await?;
    ensure(runs.items.is_empty(), format!("no hook ran: {:?}", runs.items))?;
    patch(
        harness,
        name,
        &json!([{ "op": "remove", "path": "/metadata/finalizers" }]),
    )?;
    harness.note(why_pending(&guarded.await_unschedulable(1).await?));
    Ok(())
}

fn patch(harness: &Harness<'_>, pod: &str, changes: &Value) -> Outcome<()> {
    let changes = format!("--patch={changes}");
    harness.kubectl(&["patch", "pod", pod, "--type=json", &changes])?;
    Ok(())
}

/// Waits for an event of an object, and returns its message.
async fn event(guarded: &Guarded<'_>, name: &str, reason: &str) -> Outcome<String> {
    let events: Api<Event> = guarded.fleet.api();
    let wanted = ListParams::default().fields(&format!("involvedObject.name={name},reason={reason}"));
    let found = within(PATIENCE, || async {
        let found = events.list(&wanted).await.map_err(|error| error.to_string())?;
        let message = found.items.into_iter().find_map(|event| event.message);
        message.ok_or_else(|| format!("no event {reason}"))
    });
    Ok(found.await?)
}
