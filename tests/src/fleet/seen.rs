//! Observes a fleet and waits for its states.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use shared_api::names::argument;
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun, Phase};
use test_kit::eventually;

use super::{Fleet, GAME};
use crate::{SOON, fail};

impl Fleet<'_> {
    /// Waits until the workload's status for its newest generation satisfies the predicate.
    pub async fn until(&self, wanted: impl Fn(&GameDeploymentStatus) -> bool) -> GameDeploymentStatus {
        self.until_of(GAME, wanted).await
    }

    /// Waits like [`Fleet::until`], for any workload.
    pub async fn until_of(
        &self,
        name: &str,
        wanted: impl Fn(&GameDeploymentStatus) -> bool,
    ) -> GameDeploymentStatus {
        let games = self.games();
        eventually(SOON, || async {
            let game = games.get(name).await.map_err(|error| error.to_string())?;
            let status = game.status.unwrap_or_default();
            if status.observed_generation == game.metadata.generation && wanted(&status) {
                Ok(status)
            } else {
                Err(format!("{}\n{}", json!(status), self.last_words()))
            }
        })
        .await
    }

    /// Waits until the workload, including its spec, satisfies the predicate.
    pub async fn until_game(&self, wanted: impl Fn(&GameDeployment) -> bool) -> GameDeployment {
        let games = self.games();
        eventually(SOON, || async {
            let game = games.get(GAME).await.map_err(|error| error.to_string())?;
            if wanted(&game) {
                Ok(game)
            } else {
                Err(json!(game).to_string())
            }
        })
        .await
    }

    fn last_words(&self) -> String {
        self.workloads
            .as_ref()
            .map(|operator| operator.process.tail(15))
            .unwrap_or_default()
    }

    /// Waits until the HookRuns satisfy the predicate.
    pub async fn until_runs(&self, wanted: impl Fn(&[HookRun]) -> bool) -> Vec<HookRun> {
        let runs = self.runs();
        eventually(SOON, || async {
            let list = runs
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            if wanted(&list.items) {
                Ok(list.items)
            } else {
                let seen: Vec<_> = list
                    .items
                    .iter()
                    .map(|run| (run.name_any(), run.status.clone().map(|s| s.phase)))
                    .collect();
                Err(format!("{seen:?}\n{}", self.last_words()))
            }
        })
        .await
    }

    /// Returns the namespace's pods by name, including terminating ones.
    pub async fn all_pods(&self) -> BTreeMap<String, Pod> {
        let list = self.pods().list(&ListParams::default()).await;
        let pods = list.map(|list| list.items).unwrap_or_default();
        pods.into_iter().map(|pod| (pod.name_any(), pod)).collect()
    }

    /// Waits until the pods satisfy the predicate.
    pub async fn until_pods(&self, wanted: impl Fn(&BTreeMap<String, Pod>) -> bool) -> BTreeMap<String, Pod> {
        eventually(SOON, || async {
            let pods = self.all_pods().await;
            if wanted(&pods) {
                Ok(pods)
            } else {
                Err(format!("{:?}\n{}", pods.keys(), self.last_words()))
            }
        })
        .await
    }

    /// Waits until this many pods are ready and nothing is in progress, with no HookRun left; then checks that
    /// the operator's requests settle and that no mark is left.
    ///
    /// # Panics
    /// If something else happens.
    pub async fn settled(&self, replicas: usize) -> GameDeploymentStatus {
        let wanted = i32::try_from(replicas).unwrap_or(i32::MAX);
        let status = self
            .until(|status| {
                status.replicas == wanted
                    && status.ready_replicas == wanted
                    && status.hook_pending_replicas == 0
                    && condition(status, "Progressing")
                        .is_some_and(|(_, reason, _)| reason != "Scaling" && reason != "RollingOut")
            })
            .await;
        self.until_runs(<[HookRun]>::is_empty).await;
        self.until_pods(|pods| pods.len() == replicas).await;
        self.quiet().await;
        for (name, pod) in self.all_pods().await {
            let marked = pod.annotations().contains_key(shared_api::names::pod::DELETING);
            assert!(!marked, "pod {name} is still marked");
        }
        status
    }

    /// Returns a metric of gamedeployment-operator, like [`Operator::metric`](crate::Operator::metric).
    ///
    /// # Panics
    /// If it is down.
    pub async fn metric(&self, name: &str, labels: &str) -> u64 {
        let operator = self.workloads.as_ref();
        let operator = operator.unwrap_or_else(|| fail("gamedeployment-operator is down"));
        operator.metric(name, labels).await
    }

    /// Returns the number of writes of this kind by gamedeployment-operator that the API server has stored.
    ///
    /// # Panics
    /// If it is down.
    pub async fn written(&self, action: &str) -> u64 {
        let name = "hookgate_gamedeployment_actions_total";
        let mut written = 0;
        for outcome in ["done", "repeated"] {
            let labels = format!("action=\"{action}\",outcome=\"{outcome}\"");
            written += self.metric(name, &labels).await;
        }
        written
    }

    /// Returns the gauge for a condition: 1 if the condition blocks the workload.
    pub async fn blocked(&self, kind: &str) -> u64 {
        let labels = format!("gamedeployment=\"{GAME}\",condition=\"{kind}\"");
        self.metric("hookgate_gamedeployment_blocked", &labels).await
    }

    /// Returns the operator's number of decisions; 0 while it is down.
    pub async fn decisions(&self) -> u64 {
        if self.workloads.is_none() {
            return 0;
        }
        self.metric("hookgate_gamedeployment_decisions_total", "").await
    }

    /// Waits until the operator, if it is up, has made another decision.
    pub async fn decided_since(&self, before: u64) {
        if self.workloads.is_some() {
            eventually(SOON, || async { (self.decisions().await > before).then_some(()) }).await;
        }
    }

    /// Waits until the operator's requests settle, over as many decisions as that takes. Then every waiting
    /// pod has a reason in the status.
    pub async fn quiet(&self) {
        self.at_rest().await;
        self.explained().await;
    }

    async fn at_rest(&self) {
        if self.workloads.is_none() {
            return;
        }
        let before = std::cell::Cell::new(None);
        eventually(SOON, || async {
            let now = self.metric("hookgate_api_requests_total", "").await;
            let decisions = self.decisions().await;
            if before.replace(Some((now, decisions))) == Some((now, decisions)) {
                Ok(())
            } else {
                Err(format!("{now} requests, {decisions} decisions"))
            }
        })
        .await;
    }

    /// Waits until hooks run for exactly `count` pods, and no other run exists. Returns the pods by the names
    /// of their runs.
    pub async fn asked(&self, count: usize) -> BTreeMap<String, String> {
        let running = |run: &HookRun| {
            run.status
                .as_ref()
                .is_some_and(|status| status.phase == Phase::Running)
        };
        let runs = self
            .until_runs(|runs| runs.len() == count && runs.iter().all(running))
            .await;
        runs.iter().map(|run| (run.name_any(), pod_of(run))).collect()
    }

    /// Waits until every HookRun has succeeded.
    pub async fn approved(&self) {
        let successful = |run: &HookRun| {
            let status = run.status.as_ref();
            status.is_some_and(|status| status.phase == Phase::Successful)
        };
        self.until_runs(|runs| runs.iter().all(successful)).await;
    }

    /// Waits until a condition has this reason, and returns its message.
    pub async fn says(&self, kind: &str, reason: &str) -> String {
        let holds =
            |status: &GameDeploymentStatus| condition(status, kind).is_some_and(|found| found.1 == reason);
        let status = self.until(holds).await;
        condition(&status, kind).map(|found| found.2).unwrap_or_default()
    }

    /// Waits until a condition's message has these words, and returns it.
    pub async fn until_message(&self, kind: &str, words: &str) -> String {
        let holds = |status: &GameDeploymentStatus| {
            condition(status, kind).is_some_and(|found| found.2.contains(words))
        };
        let status = self.until(holds).await;
        condition(&status, kind).map(|found| found.2).unwrap_or_default()
    }

    /// Waits until exactly these pods are marked for deletion.
    pub async fn until_marked(&self, names: &BTreeSet<String>) {
        eventually(SOON, || async {
            let marked = self.marked().await;
            if marked == *names { Ok(()) } else { Err(marked) }
        })
        .await;
    }

    /// Waits until a condition is gone.
    pub async fn cleared(&self, kind: &str) {
        self.until(|status| condition(status, kind).is_none()).await;
    }

    /// Returns the names of the non-terminating pods.
    pub async fn names(&self) -> BTreeSet<String> {
        let pods = self.all_pods().await.into_iter();
        let alive = pods.filter(|(_, pod)| pod.metadata.deletion_timestamp.is_none());
        alive.map(|(name, _)| name).collect()
    }

    /// Returns the UIDs of all pods by name.
    pub async fn uids(&self) -> BTreeMap<String, Option<String>> {
        let pods = self.all_pods().await.into_iter();
        pods.map(|(name, pod)| (name, pod.uid())).collect()
    }

    /// Returns the distinct images of the pods' specs.
    pub async fn images(&self) -> BTreeSet<String> {
        images_of(self.all_pods().await.values())
    }

    /// Returns the names of the pods that are marked for deletion.
    pub async fn marked(&self) -> BTreeSet<String> {
        let pods = self.all_pods().await.into_iter();
        let marked = pods.filter(|(_, pod)| pod.annotations().contains_key(shared_api::names::pod::DELETING));
        marked.map(|(name, _)| name).collect()
    }

    /// Waits until exactly `count` pods exist, whose specs have this image only.
    pub async fn all_run(&self, image: &str, count: usize) {
        self.until_pods(|pods| {
            pods.len() == count && images_of(pods.values()) == BTreeSet::from([image.to_owned()])
        })
        .await;
    }

    /// Returns the notes of the workload's events, each with its reason.
    pub async fn events(&self) -> Vec<String> {
        self.events_that(|_| true).await
    }

    /// Returns only the warnings, like [`Fleet::events`].
    pub async fn warnings(&self) -> Vec<String> {
        self.events_that(|event| event.type_.as_deref() == Some("Warning"))
            .await
    }

    async fn events_that(&self, wanted: impl Fn(&Event) -> bool) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client(), &self.namespace);
        let list = events.list(&ListParams::default()).await;
        let list = list.map(|list| list.items).unwrap_or_default();
        let text = |event: Event| {
            let (reason, note) = (event.reason.unwrap_or_default(), event.note.unwrap_or_default());
            format!("{reason} {note}")
        };
        list.into_iter().filter(wanted).map(text).collect()
    }

    /// Waits for an event that contains these words.
    pub async fn told(&self, words: &str) {
        eventually(SOON, || async {
            let events = self.events().await;
            if events.iter().any(|event| event.contains(words)) {
                Ok(())
            } else {
                Err(events)
            }
        })
        .await;
    }
}

/// Returns status, reason and message of a condition.
pub fn condition(status: &GameDeploymentStatus, kind: &str) -> Option<(String, String, String)> {
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == kind)?;
    Some((
        condition.status.clone(),
        condition.reason.clone(),
        condition.message.clone(),
    ))
}

/// Returns the name of the pod that a HookRun belongs to.
pub fn pod_of(run: &HookRun) -> String {
    let mut args = run.spec.args.iter().flatten();
    let name = args.find(|arg| arg.name == argument::POD_NAME);
    name.and_then(|arg| arg.value.clone()).unwrap_or_default()
}

/// Returns the distinct images of the pods' specs.
fn images_of<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> BTreeSet<String> {
    let specs = pods.into_iter().filter_map(|pod| pod.spec.as_ref());
    let containers = specs.flat_map(|spec| &spec.containers);
    containers
        .filter_map(|container| container.image.clone())
        .collect()
}
