//! Real game servers: containers on the node, in one namespace.

use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use test_kit::RealNode;
use test_kit::real_node::samples::{GAME_V1, GAME_V2};
use test_kit::wait::within;

use super::release::{OPERATORS, Release};
use crate::demo::story::{PATIENCE, Servers};
use crate::enclosed::Outcome;

/// Game servers on the node; also removes the operators' leaders while a hook runs or has failed.
pub(super) struct RealServers<'a> {
    node: &'a RealNode,
    release: &'a Release<'a>,
    namespace: &'static str,
    lost: AtomicUsize,
}

impl<'a> RealServers<'a> {
    /// Creates the namespace.
    pub(super) async fn new(
        node: &'a RealNode,
        release: &'a Release<'a>,
        namespace: &'static str,
    ) -> Outcome<Self> {
        let namespaces: Api<Namespace> = Api::all(release.client());
        let named = serde_json::from_value(json!({ "metadata": { "name": namespace } }))?;
        namespaces.create(&PostParams::default(), &named).await?;
        Ok(Self {
            node,
            release,
            namespace,
            lost: AtomicUsize::new(0),
        })
    }

    pub(super) fn namespace(&self) -> &'static str {
        self.namespace
    }

    /// Returns the number of lost leaders.
    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the servers by UID, with their restart counts.
    pub(super) async fn pods(&self) -> Outcome<Vec<(String, i32)>> {
        let pods: Api<Pod> = Api::namespaced(self.release.client(), self.namespace);
        let pods = pods.list(&ListParams::default()).await?.items;
        let restarts = |pod: &Pod| {
            let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
            Some(containers.iter().map(|container| container.restart_count).sum())
        };
        Ok(pods
            .iter()
            .map(|pod| (pod.uid().unwrap_or_default(), restarts(pod).unwrap_or_default()))
            .collect())
    }

    fn kubectl(&self, arguments: &[&str]) -> std::io::Result<Output> {
        let mut kubectl = self.node.control_plane().kubectl();
        kubectl
            .args(["--namespace", self.namespace])
            .args(arguments)
            .output()
    }
}

impl Servers for RealServers<'_> {
    fn image(&self, version: &str) -> &'static str {
        if version == "v1" { GAME_V1 } else { GAME_V2 }
    }

    fn path(&self) -> &'static str {
        "/status.json"
    }

    async fn set_players(&self, pod: Option<&str>, players: u64) -> Outcome<()> {
        let all: Api<Pod> = Api::namespaced(self.release.client(), self.namespace);
        let all = all.list(&ListParams::default()).await?.items;
        let names = all.iter().map(ResourceExt::name_any);
        for name in names.filter(|name| pod.is_none_or(|pod| pod == name)) {
            within(PATIENCE, || async {
                let told = self.kubectl(&[
                    "exec",
                    &name,
                    "--",
                    "game-server",
                    "players",
                    &players.to_string(),
                ]);
                let told = told.map_err(|error| error.to_string())?;
                let complaint = || String::from_utf8_lossy(&told.stderr).into_owned();
                if told.status.success() {
                    Ok(())
                } else {
                    Err(complaint())
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Removes both leaders: first by a kill that they cannot notice, then by deleting their pods.
    async fn meanwhile(&self) -> Outcome<()> {
        for operator in OPERATORS {
            if self.lost.fetch_add(1, Ordering::Relaxed) < OPERATORS.len() {
                self.release.kill_leader(operator).await?;
            } else {
                self.release.delete_leader(operator).await?;
            }
        }
        Ok(())
    }
}
