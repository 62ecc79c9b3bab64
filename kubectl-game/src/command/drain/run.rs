//! The drain of a node in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::ListParams;
use shared_api::GameDeployment;
use tokio::time::{Instant, sleep};

use super::plan::{Permits, Plan, PlannedPod, depends_on_game};
use super::progress::{PodState, Progress, Step, next_step};
use super::workload::{OwningGame, OwningGames, game_of};
use super::{is_cordoned, request};
use crate::cluster::{ClusterConnection, Eviction, Failure, ListResult};
use crate::command::skip::check_same;
use crate::command::{complain, print_lines};
use crate::draw::text::clean;

/// Time between two looks at the node.
const POLL: Duration = Duration::from_secs(2);
/// Time after which a look is abandoned: a connection may have been lost silently.
const LOOK_TIMEOUT: Duration = Duration::from_mins(2);
/// Number of looks, one after the other, that must find no pod. The scheduler may place one more pod on a node that
/// was cordoned a moment ago.
const EMPTY_LOOKS: usize = 2;
/// Time after which a denied eviction is repeated, as by `kubectl drain`.
const DENIED: Duration = Duration::from_secs(5);

/// A node to drain, and the user that drains it.
pub(super) struct Drainer<'c> {
    pub(super) cluster: &'c ClusterConnection,
    pub(super) node: &'c str,
    /// Label selector of the pods that must leave.
    pub(super) selector: Option<&'c str>,
    pub(super) permits: Permits,
    /// Name in removal requests.
    pub(super) requester: String,
}

/// Returns the pods on a node that match a label selector.
pub(super) async fn pods_on(
    cluster: &ClusterConnection,
    node: &str,
    selector: Option<&str>,
) -> Result<Vec<Pod>, Failure> {
    let mut parameters = ListParams::default().fields(&format!("spec.nodeName={node}"));
    parameters.label_selector = selector.map(str::to_owned);
    let ListResult { objects, unreadable } = cluster.list::<Pod>(true, &parameters).await?;
    if let Some(pod) = unreadable.first() {
        return Err(Failure::Other(format!(
            "pod {}/{} cannot be parsed: {}; fix the field with kubectl edit",
            pod.namespace, pod.name, pod.error
        )));
    }
    Ok(objects)
}

impl Drainer<'_> {
    /// Reads the pods on the node and their workloads. `before`: as in [`Plan::of`].
    pub(super) async fn survey(
        &self,
        before: Option<&BTreeSet<String>>,
    ) -> Result<(Plan, OwningGames), Failure> {
        let pods = pods_on(self.cluster, self.node, self.selector).await?;
        let mut games = OwningGames::new();
        for pod in pods.iter().filter(|pod| depends_on_game(pod)) {
            if let Some(owner) = game_of(pod)
                && !games.contains_key(&owner.uid)
            {
                let namespace = pod.namespace().unwrap_or_default();
                games.insert(owner.uid.clone(), self.game(&namespace, owner).await?);
            }
        }
        Ok((Plan::of(pods, &games, before), games))
    }

    async fn game(&self, namespace: &str, owner: &OwnerReference) -> Result<OwningGame, Failure> {
        let found = self.cluster.in_namespace(namespace);
        match found.get::<GameDeployment>(&owner.name).await {
            Ok(game) if game.uid().as_ref() == Some(&owner.uid) => Ok(OwningGame::read(&game)),
            Ok(_) | Err(Failure::NotFound(_)) => Ok(OwningGame::gone()),
            Err(failure) => Err(failure),
        }
    }

    /// Fails if pods on the node may not be evicted. `consequence`: state of the node.
    pub(super) fn check(&self, plan: &Plan, consequence: &str) -> Result<(), Failure> {
        let objections = plan.objections(self.permits);
        if objections.is_empty() {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "{consequence}, because these pods must not be evicted without a flag:\n- {}",
            objections.join("\n- ")
        )))
    }

    /// Removes the pods, and waits until they have left the node. Returns a description of the skipped ones.
    pub(super) async fn until_empty(&self, progress: &mut Progress) -> Result<Option<String>, Failure> {
        let mut before: Option<BTreeSet<String>> = None;
        let mut denied = BTreeMap::new();
        let mut trouble = None;
        let mut empty_looks = 0;
        loop {
            let look = self.look(before.as_ref(), progress, &mut denied);
            let look = tokio::time::timeout(LOOK_TIMEOUT, look).await;
            let seconds = LOOK_TIMEOUT.as_secs();
            match look.unwrap_or_else(|_| Err(Failure::Other(format!("no response within {seconds}s")))) {
                Ok(plan) => {
                    let is_empty = plan.leaving().next().is_none();
                    empty_looks = if is_empty { empty_looks + 1 } else { 0 };
                    if empty_looks >= EMPTY_LOOKS {
                        return Ok(plan.skipped());
                    }
                    before.get_or_insert_with(|| plan.uids());
                    trouble = None;
                }
                Err(Failure::Other(words)) => {
                    let words = Some(words);
                    if trouble != words {
                        complain(&format!("{}; retrying", words.as_deref().unwrap_or_default()));
                        trouble = words;
                    }
                }
                Err(failure) => return Err(failure),
            }
            sleep(POLL).await;
        }
    }

    /// Looks at the node once, and takes the next step for each pod.
    async fn look(
        &self,
        before: Option<&BTreeSet<String>>,
        progress: &mut Progress,
        denied: &mut BTreeMap<String, Instant>,
    ) -> Result<Plan, Failure> {
        let node = self.node;
        match self.cluster.node(node).await {
            Ok(found) if !is_cordoned(&found) => {
                return Err(Failure::Refused(format!(
                    "node/{node} has been uncordoned, so the drain has stopped"
                )));
            }
            // Its pods may still exist for a while.
            Ok(_) | Err(Failure::NotFound(_)) => {}
            Err(failure) => return Err(failure),
        }
        let (plan, games) = self.survey(before).await?;
        show(progress.take(&plan));
        self.check(&plan, &format!("the drain of node/{node} has stopped"))?;
        for pod in plan.leaving() {
            let now = Instant::now();
            let is_denied = denied.get(&pod.uid).is_some_and(|until| *until > now);
            let step = next_step(pod, &games, &self.requester, is_denied, Timestamp::now());
            let taken = match step {
                Step::Wait(state) => Ok(state),
                Step::Request(valid_for) => self.request(pod, valid_for).await,
                Step::Evict => self.evict(pod, denied).await,
            };
            let state = match taken {
                Ok(state) => state,
                Err(failure @ (Failure::Forbidden(_) | Failure::NotServed(_))) => return Err(failure),
                // The next look shows whether the pod has left.
                Err(Failure::NotFound(_)) => None,
                Err(Failure::Conflict(words) | Failure::Refused(words) | Failure::Other(words)) => {
                    Some(PodState::Waiting(words))
                }
            };
            show(state.and_then(|state| progress.set(&pod.uid, state)));
        }
        Ok(plan)
    }

    /// Records the request to remove a pod, or repeats it.
    async fn request(
        &self,
        pod: &PlannedPod,
        valid_for: SignedDuration,
    ) -> Result<Option<PodState>, Failure> {
        let pods = self.cluster.in_namespace(&pod.namespace);
        let record = |now: &Pod| {
            check_same(now, &pod.uid)?;
            if now.metadata.deletion_timestamp.is_some() {
                return Err(Failure::NotFound(format!("pod {} is terminating", pod.name)));
            }
            let patch = request::record(now, &self.requester, valid_for, Timestamp::now())?;
            Ok((patch, ()))
        };
        pods.change(&pod.name, record).await?;
        Ok(Some(PodState::Requested))
    }

    /// Evicts a pod. If that is denied, the time at which it is repeated is added to `denied`.
    async fn evict(
        &self,
        pod: &PlannedPod,
        denied: &mut BTreeMap<String, Instant>,
    ) -> Result<Option<PodState>, Failure> {
        let pods = self.cluster.in_namespace(&pod.namespace);
        let evicted = pods.evict(&pod.name, &pod.uid).await;
        let again = Instant::now() + DENIED;
        match evicted {
            Ok(Eviction::Accepted) => Ok(Some(PodState::Evicted)),
            Ok(Eviction::Gone) => Ok(None),
            Ok(Eviction::Denied(reason)) => {
                denied.insert(pod.uid.clone(), again);
                Ok(Some(PodState::Waiting(reason)))
            }
            Err(failure) => {
                denied.insert(pod.uid.clone(), again);
                Err(failure)
            }
        }
    }
}

/// Prints lines, which may quote messages of others.
pub(super) fn show(lines: impl IntoIterator<Item = String>) {
    let lines: Vec<String> = lines.into_iter().map(|line| clean(&line)).collect();
    if !lines.is_empty() {
        print_lines(&lines);
    }
}
