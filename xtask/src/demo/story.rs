//! Story of the demo with eight game servers: a scale-down whose hook succeeds, one whose hook fails until it
//! is retried, and an in-place update in two batches.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun};
use test_kit::ControlPlane;
use test_kit::wait::within;

use super::Outcome;
use super::teller::Teller;

/// Timeout of any step on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

const GAME: &str = "arena";
/// Port of every game server.
pub(super) const PORT: u16 = 9091;
/// Condition that must fail while a server has players.
pub(super) const CONDITION: &str = "asInt(result) == 0";

/// Game servers of the story, simulated or real.
pub(crate) trait Servers {
    /// Returns the image for a version of the game.
    fn image(&self, version: &str) -> &'static str;
    /// Returns the path where a server reports its players.
    fn path(&self) -> &'static str;
    /// Sets the number of players on this pod, or on each.
    async fn set_players(&self, pod: Option<&str>, players: u64) -> Outcome<()>;
    /// Runs while a hook is running or has failed.
    async fn meanwhile(&self) -> Outcome<()>;
}

/// Control plane, servers and output of the demo.
pub(crate) struct Harness<'a, S> {
    pub(crate) control_plane: &'a ControlPlane,
    pub(crate) namespace: &'a str,
    pub(crate) servers: &'a S,
    pub(crate) teller: &'a Teller,
}

/// Name and UID of a game server's pod.
type Server = (String, String);

impl<S: Servers> Harness<'_, S> {
    pub(crate) async fn play(&self) -> Outcome<()> {
        let all = self.launch().await?;
        self.empty_servers_leave().await?;
        let first = self.left_of(&all).await?;
        self.busy_server_stays().await?;
        let second = self.left_of(&all).await?;
        self.update_in_two_batches().await?;
        self.check(&all, &first, &second).await
    }

    /// Starts the servers, and returns them.
    async fn launch(&self) -> Outcome<BTreeSet<Server>> {
        self.teller
            .chapter("Eight game servers, and a hook that succeeds for a server without players");
        self.apply(&template(self.servers.path()))?;
        self.apply(&workload(self.servers.image("v1")))?;
        self.until("eight servers are ready", |status| status.available_replicas == 8)
            .await?;
        self.servers.set_players(None, 0).await?;
        self.table()?;
        let pods = self.pods().await?;
        Ok(pods.iter().map(server).collect())
    }

    /// Scales down with a hook that succeeds.
    async fn empty_servers_leave(&self) -> Outcome<()> {
        self.teller
            .chapter("Scale down to seven: the hook of one server succeeds, and the server is deleted");
        self.kubectl(&["scale", "--replicas=7", "gamedeployment/arena"], None)?;
        self.until("a hook runs", |status| {
            status.hook_pending_replicas == 1 || status.replicas == 7
        })
        .await?;
        self.table()?;
        self.servers.meanwhile().await?;
        self.until("seven servers are left", |status| {
            status.replicas == 7 && status.hook_pending_replicas == 0
        })
        .await?;
        self.gone(7).await?;
        self.table()
    }

    /// Scales down with a hook that fails until it is retried.
    async fn busy_server_stays(&self) -> Outcome<()> {
        self.teller
            .chapter("Players join everywhere. Scale down to six: the hook fails, and the server stays");
        self.servers.set_players(None, 5).await?;
        self.kubectl(&["scale", "--replicas=6", "gamedeployment/arena"], None)?;
        let refused = |status: &GameDeploymentStatus| {
            status
                .pre_delete_hook_condition
                .iter()
                .any(|entry| entry.phase == shared_api::Phase::Failed)
        };
        let status = self.until("the hook has failed", refused).await?;
        self.table()?;
        let path = "jsonpath={.status.conditions[?(@.type==\"ScaleBlocked\")].message}{\"\\n\"}";
        self.kubectl(&["get", "gamedeployment", GAME, "-o", path], None)?;
        self.servers.meanwhile().await?;
        let waiting = status.pre_delete_hook_condition.first();
        let entry = waiting
            .map(|entry| entry.pod_name.clone())
            .ok_or("no pod waits")?;
        self.teller.chapter(&format!(
            "The match on {entry} ends. After a retry, the hook succeeds"
        ));
        self.servers.set_players(Some(&entry), 0).await?;
        let retry =
            "--patch=[{\"op\":\"replace\",\"path\":\"/spec/preDeleteUpdateStrategy/retry\",\"value\":true}]";
        self.kubectl(&["patch", "gamedeployment", GAME, "--type=json", retry], None)?;
        self.until("six servers are left", |status| {
            status.replicas == 6 && status.hook_pending_replicas == 0
        })
        .await?;
        self.gone(6).await?;
        self.table()
    }

    async fn update_in_two_batches(&self) -> Outcome<()> {
        self.teller
            .chapter("A new image for four of six servers, in place, two at a time, each after its hook");
        self.servers.set_players(None, 0).await?;
        let image = json!([{
            "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": self.servers.image("v2")
        }]);
        let image = format!("--patch={image}");
        self.kubectl(&["patch", "gamedeployment", GAME, "--type=json", &image], None)?;
        for updated in [2, 4] {
            let what = format!("{updated} servers run the new image");
            self.until(&what, |status| status.updated_ready_replicas >= updated)
                .await?;
            self.table()?;
        }
        let done = |status: &GameDeploymentStatus| {
            status.updated_ready_replicas == 4 && status.available_replicas == 6
        };
        self.until("all servers are available", done).await?;
        self.kubectl(&["get", "pods", "-o", "wide"], None)
    }

    /// Checks that the outcome matches what was printed.
    async fn check(
        &self,
        all: &BTreeSet<Server>,
        first: &BTreeSet<Server>,
        second: &BTreeSet<Server>,
    ) -> Outcome<()> {
        self.teller.chapter("Checked");
        let pods = self.pods().await?;
        let restarted = pods.iter().filter(|pod| restarts(pod) == 1).count();
        let unharmed = pods.iter().filter(|pod| restarts(pod) == 0).count();
        let runs: Api<HookRun> = Api::namespaced(self.control_plane.client(), self.namespace);
        let left = runs.list(&ListParams::default()).await?.items.len();
        let facts = [
            (
                "one server was deleted after its hook succeeded",
                first.len() == 1,
            ),
            (
                "a second server was deleted, only after the retry",
                second.len() == 2 && first.is_subset(second),
            ),
            (
                "four servers restarted once, with the new image",
                restarted == 4 && unharmed == 2,
            ),
            (
                "six servers are running, none of them new",
                pods.len() == 6 && pods.iter().all(|pod| all.contains(&server(pod))),
            ),
            ("no HookRun is left", left == 0),
        ];
        self.teller.facts(&facts)
    }

    /// Returns the name of an updated pod, which a scale-down can select, and the address of its game server.
    pub(crate) async fn a_server(&self) -> Outcome<(String, String)> {
        let updated = self.pods().await?.into_iter().find(|pod| restarts(pod) == 1);
        let pod = updated.ok_or("no pod was updated")?;
        let status = pod.status.as_ref();
        let ip = status
            .and_then(|status| status.pod_ip.clone())
            .ok_or("the pod has no IP")?;
        Ok((pod.name_any(), format!("{ip}:{PORT}")))
    }

    async fn pods(&self) -> Outcome<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.control_plane.client(), self.namespace);
        Ok(pods.list(&ListParams::default()).await?.items)
    }

    /// Returns those servers that no longer exist.
    async fn left_of(&self, all: &BTreeSet<Server>) -> Outcome<BTreeSet<Server>> {
        let now: BTreeSet<Server> = self.pods().await?.iter().map(server).collect();
        Ok(all.difference(&now).cloned().collect())
    }

    /// Prints the workload, its pods and its HookRuns, with reasons.
    fn table(&self) -> Outcome<()> {
        self.kubectl(&["get", "gamedeployment", "-o", "wide"], None)?;
        self.kubectl(&["get", "hookrun", "-o", "wide"], None)?;
        self.kubectl(&["get", "pods"], None)
    }

    /// Waits until the deleted pods are gone.
    async fn gone(&self, left: usize) -> Outcome<()> {
        within(PATIENCE, || async {
            let pods = self.pods().await.map_err(|error| error.to_string())?;
            let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
            if names.len() == left {
                Ok(())
            } else {
                Err(format!("pods that exist: {names:?}"))
            }
        })
        .await?;
        let runs: Api<HookRun> = Api::namespaced(self.control_plane.client(), self.namespace);
        within(PATIENCE, || async {
            let list = runs.list(&ListParams::default()).await.ok()?;
            list.items.is_empty().then_some(())
        })
        .await?;
        Ok(())
    }

    async fn until(
        &self,
        what: &str,
        wanted: impl Fn(&GameDeploymentStatus) -> bool,
    ) -> Outcome<GameDeploymentStatus> {
        let games: Api<GameDeployment> = Api::namespaced(self.control_plane.client(), self.namespace);
        let status = await_status(&games, GAME, wanted).await?;
        self.teller.say(what);
        Ok(status)
    }

    fn apply(&self, manifest: &Value) -> Outcome<()> {
        let text = serde_saphyr::to_string(&manifest)?;
        self.kubectl(&["apply", "-f", "-"], Some(&text))
    }

    /// Runs the real kubectl and prints its output.
    fn kubectl(&self, arguments: &[&str], input: Option<&str>) -> Outcome<()> {
        let input = input.unwrap_or_default();
        self.teller
            .kubectl(self.control_plane, self.namespace, arguments, input)
    }
}

/// Waits until a workload has a status that satisfies a predicate, and returns the status.
pub(super) async fn await_status(
    games: &Api<GameDeployment>,
    name: &str,
    wanted: impl Fn(&GameDeploymentStatus) -> bool,
) -> Outcome<GameDeploymentStatus> {
    let status = within(PATIENCE, || async {
        let game = games.get(name).await.map_err(|error| error.to_string())?;
        let status = game.status.clone().unwrap_or_default();
        if status.observed_generation == game.metadata.generation && wanted(&status) {
            Ok(status)
        } else {
            Err(format!(
                "{} is not in the wanted state: {}",
                game.name_any(),
                json!(status)
            ))
        }
    });
    Ok(status.await?)
}

fn server(pod: &Pod) -> Server {
    (pod.name_any(), pod.uid().unwrap_or_default())
}

fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_ref());
    containers
        .into_iter()
        .flatten()
        .map(|container| container.restart_count)
        .sum()
}

fn template(path: &str) -> Value {
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookTemplate",
        "metadata": { "name": "nobody-plays" },
        "spec": {
            "args": [{ "name": "PodIP" }],
            "metrics": [{
                "name": "players", "count": 2, "interval": "500ms", "successCondition": CONDITION,
                "provider": { "web": { "url": format!("http://{{{{ args.PodIP }}}}:{PORT}{path}"), "jsonPath": "{$.players}" } }
            }]
        }
    })
}

fn workload(image: &str) -> Value {
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": { "name": GAME },
        "spec": {
            "replicas": 8,
            "selector": { "matchLabels": { "app": GAME } },
            "template": {
                "metadata": { "labels": { "app": GAME } },
                "spec": { "containers": [{ "name": "game", "image": image, "ports": [{ "containerPort": PORT }] }] }
            },
            "preDeleteUpdateStrategy": { "hook": { "templateName": "nobody-plays" } },
            "updateStrategy": { "type": "InplaceUpdate", "partition": 2, "maxUnavailable": 2 }
        }
    })
}
