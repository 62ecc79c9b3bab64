//! Pods of game servers, and their state as reported by the kubelet.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_kit::real_node::samples::{GAME_PORT, GAME_V1};
use test_kit::wait::within;

use super::harness::{Harness, PATIENCE};
use crate::enclosed::Outcome;

/// Name of the updated container.
pub(super) const GAME: &str = "game";
/// Name of the container that stays unchanged.
pub(super) const SIDECAR: &str = "sidecar";
/// Port of the sidecar.
pub(super) const SIDECAR_PORT: u16 = 9092;

/// Builds a pod with a game server of version `v1` and a sidecar.
pub(super) fn manifest(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "game" } },
        "spec": {
            "terminationGracePeriodSeconds": 30,
            "containers": [
                {
                    "name": GAME,
                    "image": GAME_V1,
                    "readinessProbe": {
                        "httpGet": { "path": "/status.json", "port": GAME_PORT }, "periodSeconds": 1
                    },
                },
                {
                    "name": SIDECAR,
                    "image": GAME_V1,
                    "env": [{ "name": "PORT", "value": SIDECAR_PORT.to_string() }],
                },
            ],
        },
    })
}

/// State of a pod at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) uid: String,
    /// IP address; empty if it has none yet.
    pub(super) ip: String,
    /// Conditions by type.
    pub(super) conditions: BTreeMap<String, PodCondition>,
    /// Containers by name.
    pub(super) containers: BTreeMap<String, ContainerSeen>,
}

/// State of a container at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ContainerSeen {
    pub(super) image: String,
    pub(super) image_id: String,
    pub(super) container_id: String,
    pub(super) restarts: i32,
    pub(super) ready: bool,
    /// `running`, `terminated`, or the reason why it waits.
    pub(super) state: String,
}

impl Seen {
    /// Reads a pod.
    pub(super) fn of(pod: Pod) -> Self {
        let status = pod.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let containers = status.container_statuses.unwrap_or_default().into_iter();
        Self {
            uid: pod.metadata.uid.unwrap_or_default(),
            ip: status.pod_ip.unwrap_or_default(),
            conditions: conditions.map(|one| (one.type_.clone(), one)).collect(),
            containers: containers
                .map(|one| (one.name.clone(), ContainerSeen::of(one)))
                .collect(),
        }
    }

    /// Returns the status of a condition; empty if the pod has no condition of that type.
    pub(super) fn condition(&self, kind: &str) -> &str {
        self.conditions.get(kind).map_or("", |one| one.status.as_str())
    }

    /// Returns whether the condition `Ready` is true.
    pub(super) fn is_ready(&self) -> bool {
        self.condition("Ready") == "True"
    }

    pub(super) fn container(&self, name: &str) -> ContainerSeen {
        self.containers.get(name).cloned().unwrap_or_default()
    }
}

impl ContainerSeen {
    fn of(status: ContainerStatus) -> Self {
        let state = status.state.unwrap_or_default();
        let waiting = state.waiting.map(|waiting| waiting.reason.unwrap_or_default());
        let state = match (state.running, state.terminated) {
            (Some(_), _) => "running".to_owned(),
            (_, Some(_)) => "terminated".to_owned(),
            _ => waiting.unwrap_or_else(|| "unknown".to_owned()),
        };
        Self {
            image: status.image,
            image_id: status.image_id,
            container_id: status.container_id.unwrap_or_default(),
            restarts: status.restart_count,
            ready: status.ready,
            state,
        }
    }

    /// Formats the state in one short line.
    pub(super) fn line(&self) -> String {
        let short = |id: &str| {
            let id = id.rsplit(':').next().unwrap_or_default();
            id.trim_start_matches("containerd://")
                .trim_start_matches('/')
                .chars()
                .take(8)
                .collect::<String>()
        };
        format!(
            "{} ready={} restarts={} image={} imageID=…{} containerID=…{}",
            self.state,
            self.ready,
            self.restarts,
            self.image.rsplit('/').next().unwrap_or_default(),
            short(&self.image_id),
            short(&self.container_id)
        )
    }
}

impl Harness<'_> {
    /// Creates a pod and waits until it is ready.
    pub(super) async fn ready_pod(&self, name: &str) -> Outcome<Seen> {
        self.create(&manifest(name)).await?;
        self.until(name, Seen::is_ready).await
    }

    /// Creates a pod.
    pub(super) async fn create(&self, manifest: &Value) -> Outcome<()> {
        let pod: Pod = serde_json::from_value(manifest.clone())?;
        self.pods().create(&PostParams::default(), &pod).await?;
        Ok(())
    }

    /// Returns the current state of the pod.
    pub(super) async fn see(&self, name: &str) -> Outcome<Seen> {
        Ok(Seen::of(self.pods().get(name).await?))
    }

    /// Waits until the pod satisfies a predicate.
    pub(super) async fn until(&self, name: &str, holds: impl Fn(&Seen) -> bool) -> Outcome<Seen> {
        self.until_within(PATIENCE, name, holds).await
    }

    /// Like [`until`](Self::until), within this time.
    pub(super) async fn until_within(
        &self,
        patience: Duration,
        name: &str,
        holds: impl Fn(&Seen) -> bool,
    ) -> Outcome<Seen> {
        let pods = self.pods();
        let found = within(patience, || async {
            let seen = Seen::of(pods.get(name).await.map_err(|error| error.to_string())?);
            if holds(&seen) {
                Ok(seen)
            } else {
                Err(format!("{seen:#?}"))
            }
        });
        Ok(found.await?)
    }

    /// Like [`until`](Self::until), but records every state of the game's container and the time of its first
    /// observation.
    pub(super) async fn watch(&self, name: &str, holds: impl Fn(&Seen) -> bool) -> Outcome<Seen> {
        let states = std::sync::Mutex::new(Vec::new());
        let started = Instant::now();
        let pods = self.pods();
        let seen = within(PATIENCE, || async {
            let seen = Seen::of(pods.get(name).await.map_err(|error| error.to_string())?);
            let game = seen.container(GAME);
            if let Ok(mut states) = states.lock()
                && states.last().is_none_or(|(_, last)| *last != game)
            {
                states.push((started.elapsed(), game));
            }
            if holds(&seen) {
                Ok(seen)
            } else {
                Err(format!("{seen:#?}"))
            }
        })
        .await;
        for (after, game) in states.into_inner().unwrap_or_default() {
            self.note(format!("{:4.1} s  {}", after.as_secs_f64(), game.line()));
        }
        Ok(seen?)
    }

    /// Changes the image of the game's container, like an in-place update.
    pub(super) async fn set_image(&self, name: &str, image: &str) -> Outcome<()> {
        let patch = json!({ "spec": { "containers": [{ "name": GAME, "image": image }] } });
        let patch = Patch::Strategic(patch);
        self.pods().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Sets the number of players on the pod's server, by the program of the game.
    pub(super) fn set_players(&self, name: &str, players: u32) -> Outcome<()> {
        let players = players.to_string();
        self.kubectl(&["exec", name, "-c", GAME, "--", "game-server", "players", &players])?;
        Ok(())
    }

    /// Sets one condition of the pod, like an operator; the others are left to the kubelet.
    pub(super) async fn set_condition(&self, name: &str, kind: &str, status: bool) -> Outcome<()> {
        let status = if status { "True" } else { "False" };
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = json!({
            "type": kind, "status": status, "reason": "Test", "message": format!("set to {status}"),
            "lastTransitionTime": now,
        });
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        self.pods()
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }
}

/// Returns an error with the text unless the fact holds.
pub(super) fn ensure(holds: bool, fact: impl Into<String>) -> Outcome<()> {
    if holds {
        Ok(())
    } else {
        Err(format!("this should hold and does not: {}", fact.into()).into())
    }
}
