//! A GameDeployment with real pods: updated in place, and deleted when their own server allows it.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun, HookTemplate};
use test_kit::Process;
use test_kit::real_node::samples::{GAME_PORT, GAME_V1, GAME_V1_RETAGGED, GAME_V2};
use test_kit::wait::within;

use crate::enclosed::Outcome;
use crate::node_test::harness::{Harness, PATIENCE};
use crate::node_test::pod::{GAME, SIDECAR, Seen, ensure, manifest};
use crate::node_test::suite::{Check, check};
use crate::operator;

pub(super) const CHECKS: [Check; 4] = [
    check!(
        "a workload's update in place keeps UID and address and restarts only the changed container",
        another_image
    ),
    check!(
        "a workload's update to another name of the same image comes to its end",
        another_name
    ),
    check!(
        "a workload's wrong image is reported with the kubelet's words, and going back recovers the same pod",
        wrong_image
    ),
    check!(
        "a pod of a workload goes when its own server allows it, drains first, and holds up nobody",
        gated_deletion
    ),
];

/// Name of the workload.
pub(super) const NAME: &str = "game";

/// A workload on the node, with both operators.
pub(super) struct Fleet<'a> {
    harness: &'a Harness<'a>,
    workloads: Process,
    _hooks: Process,
}

impl<'a> Fleet<'a> {
    /// Starts both operators, creates the workload, and waits until all pods are available.
    async fn launch(harness: &'a Harness<'a>, replicas: usize, extra: Value) -> Outcome<Self> {
        Self::launch_with(harness, replicas, extra, &[]).await
    }

    /// Launches a workload beside a hook-operator with these flags.
    pub(super) async fn launch_with(
        harness: &'a Harness<'a>,
        replicas: usize,
        extra: Value,
        hook_flags: &[&str],
    ) -> Outcome<Self> {
        let workloads = harness.start_operator(operator::WORKLOADS, &[]).await?;
        Self::launch_under(workloads, harness, replicas, extra, hook_flags).await
    }

    /// Launches a workload under this gamedeployment-operator, beside a hook-operator with these flags.
    pub(super) async fn launch_under(
        workloads: Process,
        harness: &'a Harness<'a>,
        replicas: usize,
        extra: Value,
        hook_flags: &[&str],
    ) -> Outcome<Self> {
        let mut template = manifest("unnamed");
        template["spec"]["containers"][0]["env"] = json!([{ "name": "DRAIN_SECONDS", "value": "2" }]);
        let mut spec = json!({
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "game" } },
            "template": { "metadata": { "labels": { "app": "game" } }, "spec": template["spec"].take() },
            "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": 1 },
        });
        if let (Value::Object(spec), Value::Object(extra)) = (&mut spec, extra) {
            spec.extend(extra);
        }
        let object = json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
            "metadata": { "name": NAME }, "spec": spec,
        });
        let hooks = harness.start_operator(operator::HOOKS, hook_flags).await?;
        let games: Api<GameDeployment> = Api::namespaced(harness.client(), harness.namespace());
        let game = serde_json::from_value(object)?;
        games.create(&PostParams::default(), &game).await?;
        let fleet = Self {
            harness,
            workloads,
            _hooks: hooks,
        };
        fleet.all_updated(replicas).await?;
        Ok(fleet)
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        let client: Client = self.harness.client();
        Api::namespaced(client, self.harness.namespace())
    }

    /// Waits until the status of the newest generation satisfies a predicate, and returns it.
    pub(super) async fn until(
        &self,
        what: &str,
        holds: impl Fn(&GameDeploymentStatus) -> bool,
    ) -> Outcome<GameDeploymentStatus> {
        let games = self.api::<GameDeployment>();
        let found = within(PATIENCE, || async {
            let game = games.get(NAME).await.map_err(|error| error.to_string())?;
            let generation = game.metadata.generation;
            let status = game.status.unwrap_or_default();
            if status.observed_generation == generation && holds(&status) {
                Ok(status)
            } else {
                Err(format!("{what}: {}\n{}", json!(status), self.workloads.tail(10)))
            }
        });
        Ok(found.await?)
    }

    pub(super) async fn all_updated(&self, count: usize) -> Outcome<()> {
        let count = i32::try_from(count)?;
        let all = |status: &GameDeploymentStatus| {
            (
                status.replicas,
                status.updated_ready_replicas,
                status.available_replicas,
            ) == (count, count, count)
        };
        self.until("all pods updated and available", all).await.map(drop)
    }

    /// Returns the workload's pods by name.
    pub(super) async fn pods(&self) -> Outcome<Vec<(String, Seen)>> {
        let list = self.api::<Pod>().list(&ListParams::default()).await?;
        let seen = list.into_iter().map(|pod| (pod.name_any(), Seen::of(pod)));
        Ok(seen.collect())
    }

    pub(super) fn set_image(&self, image: &str) -> Outcome<()> {
        let patch =
            json!([{ "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image }]);
        self.patch(&patch)
    }

    fn patch(&self, patch: &Value) -> Outcome<()> {
        let patch = format!("--patch={patch}");
        self.harness
            .kubectl(&["patch", "gamedeployment", NAME, "--type=json", &patch])?;
        Ok(())
    }
}

/// Creates the HookTemplate `empty`, which succeeds once nobody plays on the pod's server.
pub(super) async fn create_template(harness: &Harness<'_>) -> Outcome<()> {
    let url = format!("http://{{{{ args.PodIP }}}}:{GAME_PORT}/status.json");
    let template = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookTemplate", "metadata": { "name": "empty" },
        "spec": { "args": [{ "name": "PodIP" }], "metrics": [{
            "name": "players", "interval": "500ms", "successfulLimit": 1, "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": url, "jsonPath": "{$.players}" } },
        }] },
    });
    let templates: Api<HookTemplate> = Api::namespaced(harness.client(), harness.namespace());
    let template = serde_json::from_value(template)?;
    templates.create(&PostParams::default(), &template).await?;
    Ok(())
}

/// Returns a condition of the status.
pub(super) fn condition(status: &GameDeploymentStatus, type_: &str) -> Option<Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|condition| condition.type_ == type_).cloned()
}

/// Checks that the pods are the same, with a new game container and an unchanged sidecar.
fn ensure_updated(before: &[(String, Seen)], after: &[(String, Seen)]) -> Outcome<()> {
    for ((name, before), (also, after)) in before.iter().zip(after) {
        ensure(
            name == also && before.uid == after.uid,
            format!("{name} is the same pod"),
        )?;
        ensure(before.ip == after.ip, format!("{name} has the same address"))?;
        let (old, new) = (before.container(SIDECAR), after.container(SIDECAR));
        ensure(
            old == new,
            format!("{name}: the sidecar went on: {old:?} {new:?}"),
        )?;
        let (old, new) = (before.container(GAME), after.container(GAME));
        ensure(
            old.container_id != new.container_id && new.restarts == old.restarts + 1,
            format!("{name}: the game restarted once: {old:?} {new:?}"),
        )?;
    }
    ensure(before.len() == after.len(), "there are as many pods as before")
}

async fn another_image(harness: &Harness<'_>) -> Outcome<()> {
    let fleet = Fleet::launch(harness, 2, json!({})).await?;
    let before = fleet.pods().await?;
    fleet.set_image(GAME_V2)?;
    fleet.all_updated(2).await?;
    let after = fleet.pods().await?;
    ensure_updated(&before, &after)?;
    for (name, seen) in &after {
        let answer = harness.ask_game(&seen.ip).await?;
        ensure(answer["version"] == "v2", format!("{name} serves v2: {answer}"))?;
    }
    Ok(())
}

async fn another_name(harness: &Harness<'_>) -> Outcome<()> {
    let fleet = Fleet::launch(harness, 1, json!({})).await?;
    for image in [GAME_V1_RETAGGED, GAME_V1] {
        let before = fleet.pods().await?;
        fleet.set_image(image)?;
        fleet.all_updated(1).await?;
        ensure_updated(&before, &fleet.pods().await?)?;
    }
    Ok(())
}

async fn wrong_image(harness: &Harness<'_>) -> Outcome<()> {
    let fleet = Fleet::launch(harness, 2, json!({})).await?;
    let before = fleet.pods().await?;
    fleet.set_image("hookgate.test/game:missing")?;
    let blocked = |status: &GameDeploymentStatus| condition(status, "UpdateBlocked");
    let says_why = |status: &GameDeploymentStatus| {
        blocked(status).is_some_and(|condition| condition.message.contains("ImagePull"))
    };
    let status = fleet.until("the kubelet's reason", says_why).await?;
    harness.note(
        blocked(&status)
            .map(|condition| condition.message)
            .unwrap_or_default(),
    );
    ensure(status.ready_replicas == 1, "the other pod serves")?;

    fleet.set_image(GAME_V1)?;
    fleet.all_updated(2).await?;
    fleet
        .until("nothing is blocked", |status| blocked(status).is_none())
        .await?;
    let after = fleet.pods().await?;
    let restarts = |pods: &[(String, Seen)]| {
        pods.iter()
            .map(|(_, seen)| seen.container(GAME).restarts)
            .sum::<i32>()
    };
    ensure(
        restarts(&after) <= restarts(&before) + 1,
        "only one container was touched",
    )?;
    let same = before
        .iter()
        .zip(&after)
        .all(|(before, after)| before.1.uid == after.1.uid);
    ensure(same, "the pods are the same")
}

async fn gated_deletion(harness: &Harness<'_>) -> Outcome<()> {
    create_template(harness).await?;
    let gate = json!({ "preDeleteUpdateStrategy": { "hook": { "templateName": "empty" } } });
    let fleet = Fleet::launch(harness, 3, gate).await?;
    for (name, _) in fleet.pods().await? {
        harness.set_players(&name, 2)?;
    }
    fleet.patch(&json!([{ "op": "replace", "path": "/spec/replicas", "value": 1 }]))?;
    let status = fleet
        .until("two pods are asked about", |status| {
            status.hook_pending_replicas == 2
        })
        .await?;
    let asked: Vec<String> = status
        .pre_delete_hook_condition
        .iter()
        .map(|entry| entry.pod_name.clone())
        .collect();
    let runs = fleet.api::<HookRun>();
    let measured = within(PATIENCE, || async {
        let runs = runs
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let values = runs.iter().filter_map(|run| {
            let status = run.status.as_ref()?;
            status.metric_results.first()?.measurements.last()?.value.clone()
        });
        let values: Vec<String> = values.collect();
        if values == ["2", "2"] {
            Ok(())
        } else {
            Err(format!("{values:?}"))
        }
    });
    measured.await?;
    ensure(fleet.pods().await?.len() == 3, "who plays is not thrown out")?;

    let (first, second) = (&asked[0], &asked[1]);
    let started = std::time::Instant::now();
    harness.set_players(first, 0)?;
    let (pods, ip) = (harness.pods(), harness.see(first).await?.ip);
    let drained = AtomicBool::new(false);
    let gone = within(PATIENCE, || async {
        let answer = harness.ask_game(&ip).await.unwrap_or_default();
        drained.fetch_or(answer["phase"] == "draining", Ordering::Relaxed);
        match pods.get_opt(first).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    gone.await?;
    ensure(drained.load(Ordering::Relaxed), "it had time to drain")?;
    harness.note(format!(
        "{first} was gone {:.1} s after its last player",
        started.elapsed().as_secs_f64()
    ));
    ensure(harness.see(second).await?.is_ready(), "the other one goes on")?;
    ensure(fleet.pods().await?.len() == 2, "two are left")?;
    fleet.patch(&json!([{ "op": "replace", "path": "/spec/replicas", "value": 2 }]))?;
    fleet
        .until("nobody is asked", |status| status.hook_pending_replicas == 0)
        .await?;
    fleet.all_updated(2).await?;
    ensure(
        harness.see(second).await?.is_ready(),
        "a pod that is wanted again stays",
    )
}
