//! Removals of real pods under the removal guard. There is one node, so replacements wait until it is
//! uncordoned.

use std::collections::BTreeSet;
use std::time::Instant;

use kube::api::ListParams;
use serde_json::{Value, json};
use shared_api::names::hook_run_label::POD_UID;
use shared_api::{GameDeploymentStatus, HookRun};
use test_kit::real_node::NODE_NAME;
use test_kit::wait::within;

use super::workload::{Fleet, condition, create_template};
use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{Seen, ensure};
use crate::node_test::suite::{Check, check};
use crate::operator;
use crate::removal_guard::{RemovalGuard, operator_kubeconfig};

pub(super) const CHECKS: [Check; 3] = [
    check!(
        "a drain removes the idle pods at once, waits for the server with players, and ends after its match",
        drain
    ),
    check!(
        "a cordon drains the node of its idle pods, and after an uncordon the server with players is kept",
        cordon
    ),
    check!(
        "a drain that timed out removes no pod once its node is uncordoned, even after the match",
        timed_out_drain
    ),
];

/// Name of a pod, and its state before its removal was requested.
pub(super) type Server = (String, Seen);

/// A workload of guarded pods on an otherwise empty node.
pub(super) struct Guarded<'a> {
    pub(super) harness: &'a Harness<'a>,
    pub(super) fleet: Fleet<'a>,
    guard: RemovalGuard,
    replicas: usize,
}

impl<'a> Guarded<'a> {
    /// Launches a workload with this `disruption`, and waits until its pods are guarded.
    pub(super) async fn launch(
        harness: &'a Harness<'a>,
        replicas: usize,
        disruption: Value,
    ) -> Outcome<Self> {
        harness.clear_node().await?;
        let control_plane = harness.node().control_plane();
        let guard = RemovalGuard::install(control_plane, harness.namespace()).await?;
        create_template(harness).await?;
        let kubeconfig = operator_kubeconfig(control_plane)?;
        let workloads = harness
            .start_operator_with(&kubeconfig, operator::WORKLOADS, &[])
            .await?;
        let extra = json!({
            "disruption": disruption,
            "preDeleteUpdateStrategy": { "hook": { "templateName": "empty" } },
            "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": replicas },
        });
        let fleet = Fleet::launch_under(workloads, harness, replicas, extra, &[]).await?;
        let is_guarded = |status: &GameDeploymentStatus| {
            condition(status, "RemovalsGuarded").is_some_and(|found| found.status == "True")
        };
        fleet.until("guarded pods", is_guarded).await?;
        Ok(Self {
            harness,
            fleet,
            guard,
            replicas,
        })
    }

    /// Puts two players on each of the first pods. Returns these pods, and the others.
    pub(super) async fn occupy(&self, count: usize) -> Outcome<(Vec<Server>, Vec<Server>)> {
        let mut busy = self.fleet.pods().await?;
        let idle = busy.split_off(count);
        for (name, _) in &busy {
            self.harness.set_players(name, 2)?;
        }
        Ok((busy, idle))
    }

    /// Waits until exactly these pods have a removal request, which is of this type, and a running hook.
    pub(super) async fn await_requests(&self, pods: &[Server], type_: &str) -> Outcome<()> {
        let wanted = pods.iter().map(|(name, _)| (name.as_str(), type_));
        let wanted: BTreeSet<(&str, &str)> = wanted.collect();
        let are_pending = |status: &GameDeploymentStatus| {
            let listed = status.removal_requests.iter();
            let listed = listed.map(|request| (request.pod_name.as_str(), request.type_.as_str()));
            let hooks = usize::try_from(status.hook_pending_replicas);
            listed.collect::<BTreeSet<_>>() == wanted && hooks == Ok(wanted.len())
        };
        let pending = self
            .fleet
            .until(&format!("requests {wanted:?}"), are_pending)
            .await;
        let explained = pending.map_err(|error| format!("{error}\n{}", self.guard.tail(20)));
        explained.map(drop).map_err(Into::into)
    }

    /// Waits until the pods are gone, and checks that their servers no longer respond. The kubelet deletes a
    /// pod only after its containers have ended.
    async fn await_gone(&self, pods: &[Server]) -> Outcome<()> {
        let gone = within(PATIENCE, || async {
            let mut left = self.fleet.pods().await.map_err(|error| error.to_string())?;
            left.retain(|(name, _)| pods.iter().any(|(gone, _)| gone == name));
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{left:#?}"))
            }
        });
        gone.await?;
        for (name, before) in pods {
            let answer = self.harness.ask_game(&before.ip).await.ok();
            ensure(
                answer.is_none(),
                format!("the server of {name} ended: {answer:?}"),
            )?;
        }
        Ok(())
    }

    /// Waits until the scheduler has found no node for this number of pods, and returns them.
    pub(super) async fn await_unschedulable(&self, count: usize) -> Outcome<Vec<Server>> {
        let found = within(PATIENCE, || async {
            let all = self.fleet.pods().await.map_err(|error| error.to_string())?;
            let waiting = all
                .iter()
                .filter(|(_, seen)| seen.condition("PodScheduled") == "False");
            let waiting: Vec<Server> = waiting.cloned().collect();
            if waiting.len() == count {
                Ok(waiting)
            } else {
                Err(format!("{all:#?}"))
            }
        });
        Ok(found.await?)
    }

    /// Checks that a server is ready in the same containers as before, and reports this number of players.
    async fn ensure_undisturbed(&self, (name, before): &Server, players: u32) -> Outcome<()> {
        let now = self.harness.see(name).await?;
        ensure(
            now.is_ready() && now.uid == before.uid && now.containers == before.containers,
            format!("{name} is undisturbed: {before:#?} {now:#?}"),
        )?;
        let answer = self.harness.ask_game(&now.ip).await?;
        ensure(
            answer["players"] == players && answer["phase"] == "serving",
            format!("{name} serves {players} players: {answer}"),
        )
    }

    /// Waits until all removal requests are withdrawn, and ends all matches. Checks that the pod is kept:
    /// another pod, whose deletion is requested after that, is replaced.
    async fn ensure_kept(&self, kept: &Server) -> Outcome<()> {
        self.await_requests(&[], "").await?;
        let runs = self.fleet.api::<HookRun>();
        let of_pod = ListParams::default().labels(&format!("{POD_UID}={}", kept.1.uid));
        let ended = within(PATIENCE, || async {
            let runs = runs.list(&of_pod).await.map_err(|error| error.to_string())?;
            let has_ended = |run: &HookRun| run.status.as_ref().is_some_and(|status| status.phase.is_final());
            if runs.iter().all(has_ended) {
                Ok(())
            } else {
                Err(format!("{:#?}", runs.items))
            }
        });
        ended.await?;
        self.fleet.all_updated(self.replicas).await?;
        let mut others = self.fleet.pods().await?;
        for (name, _) in &others {
            self.harness.set_players(name, 0)?;
        }
        others.retain(|(name, _)| *name != kept.0);
        others.truncate(1);
        let (other, _) = others.first().ok_or("there is no other pod")?;
        let deleted = self
            .harness
            .kubectl(&["delete", "pod", other, "--wait=false"])
            .map_err(|error| error.to_string());
        ensure(
            matches!(&deleted, Err(error) if error.contains("denied the request")),
            format!("the guard denies the deletion: {deleted:?}"),
        )?;
        self.await_gone(&others).await?;
        self.ensure_undisturbed(kept, 0).await
    }
}

/// Returns why the scheduler finds no node for these pods.
pub(super) fn why_pending(pods: &[Server]) -> String {
    let condition = pods
        .first()
        .and_then(|(_, seen)| seen.conditions.get("PodScheduled"));
    let message = condition.and_then(|condition| condition.message.as_deref());
    format!("Pending on the only node: {}", message.unwrap_or_default())
}

fn uids(pods: &[Server]) -> BTreeSet<&str> {
    pods.iter().map(|(_, seen)| seen.uid.as_str()).collect()
}

async fn drain(harness: &Harness<'_>) -> Outcome<()> {
    let guarded = Guarded::launch(harness, 3, json!({ "policy": "Ask" })).await?;
    let (busy, idle) = guarded.occupy(1).await?;
    let server = &busy[0];
    let drain = harness.start_kubectl(&["drain", NODE_NAME, "--ignore-daemonsets", "--timeout=180s"])?;
    guarded.await_gone(&idle).await?;
    guarded.await_requests(&busy, "Eviction").await?;
    drain
        .await_output("is kept until its PreDelete hook succeeds", PATIENCE)
        .await?;
    harness.note(why_pending(&guarded.await_unschedulable(2).await?));
    guarded.ensure_undisturbed(server, 2).await?;
    ensure(
        drain.exit_status()?.is_none(),
        format!("the drain waits for the match: {}", drain.tail(10)),
    )?;

    harness.set_players(&server.0, 0)?;
    let started = Instant::now();
    let status = drain.wait(PATIENCE).await?;
    ensure(
        status.success(),
        format!("the drain succeeds: {}", drain.tail(10)),
    )?;
    harness.note(format!(
        "the drain ended {:.1} s after the match",
        started.elapsed().as_secs_f64()
    ));
    let left = guarded.fleet.pods().await?;
    let on_node = left
        .iter()
        .find(|(_, seen)| seen.condition("PodScheduled") == "True");
    ensure(
        on_node.is_none(),
        format!("no pod is left on the node: {on_node:#?}"),
    )?;

    let waiting = guarded.await_unschedulable(3).await?;
    harness.kubectl(&["uncordon", NODE_NAME])?;
    guarded.fleet.all_updated(3).await?;
    guarded.await_requests(&[], "").await?;
    let replacements = guarded.fleet.pods().await?;
    ensure(
        uids(&replacements) == uids(&waiting),
        "the pods that waited are ready, and none was replaced",
    )?;
    for (name, seen) in &replacements {
        let restarts: i32 = seen.containers.values().map(|container| container.restarts).sum();
        ensure(
            restarts == 0 && seen.is_ready(),
            format!("{name} is undisturbed: {seen:#?}"),
        )?;
    }
    Ok(())
}

async fn cordon(harness: &Harness<'_>) -> Outcome<()> {
    let disruption = json!({ "policy": "Ask", "onCordon": "Ask" });
    let guarded = Guarded::launch(harness, 3, disruption).await?;
    let (busy, idle) = guarded.occupy(1).await?;
    harness.kubectl(&["cordon", NODE_NAME])?;
    guarded.await_gone(&idle).await?;
    guarded.await_requests(&busy, "Cordon").await?;
    guarded.await_unschedulable(2).await?;
    guarded.ensure_undisturbed(&busy[0], 2).await?;
    harness.kubectl(&["uncordon", NODE_NAME])?;
    guarded.ensure_kept(&busy[0]).await
}

async fn timed_out_drain(harness: &Harness<'_>) -> Outcome<()> {
    let guarded = Guarded::launch(harness, 2, json!({ "policy": "Ask" })).await?;
    let (busy, _) = guarded.occupy(2).await?;
    let drain = harness.start_kubectl(&["drain", NODE_NAME, "--ignore-daemonsets", "--timeout=8s"])?;
    guarded.await_requests(&busy, "Eviction").await?;
    let status = drain.wait(PATIENCE).await?;
    ensure(
        !status.success(),
        format!("the drain times out: {}", drain.tail(10)),
    )?;
    guarded.ensure_undisturbed(&busy[0], 2).await?;
    harness.kubectl(&["uncordon", NODE_NAME])?;
    guarded.ensure_kept(&busy[0]).await
}
