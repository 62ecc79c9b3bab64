//! Users who change their minds, and the state that they finally want.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use kube::api::{DeleteParams, ListParams};
use operator_tests::fleet::{Who, condition};
use operator_tests::{Fleet, SOON};
use serde_json::json;
use shared_api::GameDeploymentStatus;
use test_kit::{ApiProxy, eventually};

use crate::workloads::Workload;

mod removals;

const IMAGES: [&str; 3] = ["game:v1", "game:v2", "game:v3"];

pub(crate) struct People<'s> {
    fleet: &'s Fleet<'s>,
    proxies: &'s [ApiProxy; 2],
    workload: &'s Workload,
    replicas: usize,
    image: &'static str,
    /// Pods whose matches are over, if the pods are guarded. Each had one match from its start on, and gets no other.
    matches_over: BTreeSet<String>,
    /// Whether the workload is being deleted.
    is_deleted: bool,
    pub(crate) kills: u64,
    /// Number of removal requests, withdrawals, cordons and deletions.
    pub(crate) removals: u64,
}

impl<'s> People<'s> {
    pub(crate) fn new(fleet: &'s Fleet<'s>, proxies: &'s [ApiProxy; 2], workload: &'s Workload) -> Self {
        if workload.is_guarded {
            fleet.nodes.every_pod().set_players(1);
        }
        Self {
            fleet,
            proxies,
            workload,
            replicas: 3,
            image: IMAGES[0],
            matches_over: BTreeSet::new(),
            is_deleted: false,
            kills: 0,
            removals: 0,
        }
    }

    /// Performs one action, then sleeps for a random time. The sleep waits for nothing: the next action may
    /// come at any time.
    pub(crate) async fn act(&mut self, rng: &mut Rng) {
        if self.is_deleted || self.workload.is_guarded && rng.bool() {
            self.act_on_removals(rng).await;
        } else {
            self.act_on_workload(rng).await;
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(0..900))).await;
    }

    async fn act_on_workload(&mut self, rng: &mut Rng) {
        let fleet = self.fleet;
        match rng.u8(0..100) {
            0..20 => {
                self.replicas = rng.usize(1..6);
                fleet.scale(self.replicas);
            }
            20..40 => {
                self.image = rng.choice(IMAGES).unwrap_or(IMAGES[0]);
                fleet.set_image(self.image).await;
            }
            40..45 if self.workload.partition => self.set(json!({ "partition": rng.u8(0..3) })).await,
            45..50 => self.set(json!({ "paused": rng.bool() })).await,
            50..65 if self.workload.is_guarded => self.end_matches(rng),
            50..65 => fleet.nodes.every_pod().set_players(u64::from(rng.bool())),
            65..70 => self.retry(),
            70..75 if self.workload.is_guarded => self.request_removal(rng).await,
            70..75 => self.take_a_pod_away(rng).await,
            75..80 => self.take_a_run_away(rng).await,
            80..92 => self.kill(rng),
            _ => self.cut_watches(rng),
        }
    }

    async fn set(&self, strategy: serde_json::Value) {
        self.fleet.set(json!({ "updateStrategy": strategy })).await;
    }

    fn retry(&self) {
        for strategy in self.workload.strategies() {
            self.fleet.retry(&strategy);
        }
    }

    /// May kill players: this counts as the user's action, not the operator's.
    async fn take_a_pod_away(&self, rng: &mut Rng) {
        let names: Vec<String> = self.fleet.all_pods().await.into_keys().collect();
        if let Some(name) = rng.choice(&names) {
            // It may be gone already.
            let _ = self.fleet.pods().delete(name, &DeleteParams::default()).await;
        }
    }

    async fn take_a_run_away(&self, rng: &mut Rng) {
        let runs = self
            .fleet
            .runs()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items;
        if let Some(name) = rng.choice(&runs).and_then(|run| run.metadata.name.as_ref()) {
            // It may be gone already.
            let _ = self.fleet.runs().delete(name, &DeleteParams::default()).await;
        }
    }

    fn kill(&mut self, rng: &mut Rng) {
        let who = if rng.bool() { Who::Workloads } else { Who::Hooks };
        self.fleet.operator(who).unwrap().process.restart().unwrap();
        self.kills += 1;
    }

    fn cut_watches(&self, rng: &mut Rng) {
        self.proxies[rng.usize(0..2)].cut_watches();
    }

    /// Removes all players, sets the final image and number of pods, and waits until they are reached.
    pub(crate) async fn come_to_an_end(&mut self) {
        let fleet = self.fleet;
        for who in [Who::Workloads, Who::Hooks] {
            fleet.operator(who).unwrap().ready().await;
        }
        if self.workload.is_guarded {
            self.assert_no_match_cut_off();
        }
        fleet.nodes.every_pod().set_players(0);
        if self.workload.is_guarded {
            self.finish_removals().await;
        }
        if self.workload.partition {
            self.set(json!({ "partition": 0 })).await;
        }
        self.set(json!({ "paused": false })).await;
        // The user on call sees which hooks have failed, and retries them.
        eventually(SOON, || async {
            let game = fleet.game().await;
            let status = game.status.unwrap_or_default();
            if is_refused(&status) {
                self.retry();
            }
            // A status from before the last change does not count.
            if status.observed_generation == game.metadata.generation && self.is_done(&status) {
                Ok(())
            } else {
                Err(format!("{status:#?}\n{}", self.logs()))
            }
        })
        .await;
        fleet.settled(self.replicas).await;
        let images = fleet.images().await;
        let status = fleet.status().await;
        assert_eq!(images, BTreeSet::from([self.image.to_owned()]), "{status:#?}");
    }

    fn is_done(&self, status: &GameDeploymentStatus) -> bool {
        let wanted = i32::try_from(self.replicas).unwrap_or(i32::MAX);
        let all = (
            status.replicas,
            status.available_replicas,
            status.updated_ready_replicas,
        );
        all == (wanted, wanted, wanted)
            && status.hook_pending_replicas == 0
            && status.removal_requests.is_empty()
    }

    fn logs(&self) -> String {
        [Who::Workloads, Who::Hooks]
            .map(|who| {
                self.fleet
                    .operator(who)
                    .map(|operator| operator.process.tail(15))
                    .unwrap_or_default()
            })
            .join("\n--\n")
    }
}

fn is_refused(status: &GameDeploymentStatus) -> bool {
    ["ScaleBlocked", "UpdateBlocked"].iter().any(|kind| {
        condition(status, kind)
            .is_some_and(|(state, reason, _)| state == "True" && reason == "HookUnsuccessful")
    })
}
