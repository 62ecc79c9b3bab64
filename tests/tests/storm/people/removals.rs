//! Removals of guarded pods. The webhook is not installed: users write removal requests to the pods.

use std::collections::BTreeMap;

use fastrand::Rng;
use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use operator_tests::SOON;
use operator_tests::fleet::GAME;
use serde_json::json;
use shared_api::HookRun;
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::removal_request::{RemovalRequests, RemovalType};
use test_kit::eventually;

use super::People;

impl People<'_> {
    pub(super) async fn act_on_removals(&mut self, rng: &mut Rng) {
        match rng.u8(0..100) {
            0..30 => self.end_matches(rng),
            30..50 => self.request_removal(rng).await,
            50..60 => self.withdraw_requests(rng).await,
            60..80 => self.cordon(rng),
            80..90 if self.is_deleted => self.kill(rng),
            _ if self.is_deleted => self.cut_watches(rng),
            _ => self.delete_workload().await,
        }
    }

    /// Ends the matches on about half of the pods, for good.
    pub(super) fn end_matches(&mut self, rng: &mut Rng) {
        self.assert_no_match_cut_off();
        for pod in self.fleet.nodes.pods() {
            if rng.bool() {
                self.fleet.nodes.pod(&pod.name).set_players(0);
                self.matches_over.insert(pod.name);
            }
        }
    }

    /// Checks that no container has ended during a match.
    pub(super) fn assert_no_match_cut_off(&self) {
        let ended = self.fleet.nodes.terminated_pods();
        let cut_off: Vec<&String> = ended.difference(&self.matches_over).collect();
        assert!(
            cut_off.is_empty(),
            "{cut_off:?} ended during their matches\n{}",
            self.logs()
        );
    }

    pub(super) async fn request_removal(&mut self, rng: &mut Rng) {
        let mut requests = RemovalRequests::default();
        let requester = rng.choice(["ann", "bob"]).unwrap_or("ann");
        let recorded = requests.record(requester, RemovalType::Manual, Timestamp::now());
        recorded.unwrap();
        self.write_requests(rng, &requests).await;
    }

    async fn withdraw_requests(&mut self, rng: &mut Rng) {
        self.write_requests(rng, &RemovalRequests::default()).await;
    }

    /// Replaces the removal requests of a pod.
    async fn write_requests(&mut self, rng: &mut Rng, requests: &RemovalRequests) {
        let pods = self.fleet.nodes.pods();
        let Some(pod) = rng.choice(&pods) else { return };
        let annotations = json!({ REMOVAL_REQUESTED: requests.annotation() });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let params = PatchParams::default();
        // It may be gone already.
        let _ = self.fleet.pods().patch(&pod.name, &params, &patch).await;
        self.removals += 1;
    }

    /// Cordons or uncordons a node.
    fn cordon(&mut self, rng: &mut Rng) {
        let nodes = self.fleet.nodes.node_names();
        let node = &nodes[rng.usize(0..nodes.len())];
        let verb = if rng.bool() { "cordon" } else { "uncordon" };
        let _ = self.fleet.kubectl(&[verb, node], "");
        self.removals += 1;
    }

    async fn delete_workload(&mut self) {
        let deleted = self.fleet.games().delete(GAME, &DeleteParams::default()).await;
        let _ = deleted.unwrap();
        self.is_deleted = true;
        self.removals += 1;
    }

    /// Uncordons all nodes. If the workload is being deleted, waits until nothing is left of it, and creates it again.
    pub(super) async fn finish_removals(&mut self) {
        let fleet = self.fleet;
        for node in fleet.nodes.node_names() {
            let _ = fleet.kubectl(&["uncordon", &node], "");
        }
        if !self.is_deleted {
            return;
        }
        eventually(SOON, || async {
            match fleet.games().get_opt(GAME).await {
                Ok(None) => Ok(()),
                other => Err(format!("{other:#?}\n{}", self.logs())),
            }
        })
        .await;
        fleet.until_pods(BTreeMap::is_empty).await;
        fleet.until_runs(<[HookRun]>::is_empty).await;
        self.workload.create_again(fleet, self.replicas, self.image);
        self.is_deleted = false;
    }
}
