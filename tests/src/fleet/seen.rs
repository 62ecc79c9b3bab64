//! What a test sees of its fleet, and how it waits for it.

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
    /// Waits until the workload's status, of its newest generation, is as wanted.
    pub async fn until(&self, wanted: impl Fn(&GameDeploymentStatus) -> bool) -> GameDeploymentStatus {
        self.until_of(GAME, wanted).await
    }

    /// As [`Fleet::until`], of any workload.
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

    /// Waits until the workload, its spec too, is as wanted.
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

    /// Waits until the HookRuns are as wanted.
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

    /// The workload's pods by name, terminating ones included.
    pub async fn all_pods(&self) -> BTreeMap<String, Pod> {
        let list = self.pods().list(&ListParams::default()).await;
        let pods = list.map(|list| list.items).unwrap_or_default();
        pods.into_iter().map(|pod| (pod.name_any(), pod)).collect()
    }

    /// Waits until the pods are as wanted.
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

    /// Waits until everything is as it should be, with no HookRun and no mark left; then sees that the operator makes
    /// no further request.
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

    /// As [`Operator::metric`](crate::Operator::metric), of gamedeployment-operator.
    ///
    /// # Panics
    /// If it is down.
    pub async fn metric(&self, name: &str, labels: &str) -> u64 {
        let operator = self.workloads.as_ref();
        let operator = operator.unwrap_or_else(|| fail("gamedeployment-operator is down"));
        operator.metric(name, labels).await
    }

    /// 1 if a condition blocks the workload, as a gauge says it.
    pub async fn blocked(&self, kind: &str) -> u64 {
        let labels = format!("gamedeployment=\"{GAME}\",condition=\"{kind}\"");
        self.metric("hookgate_gamedeployment_blocked", &labels).await
    }

    /// How often the operator has decided; 0 while it is down.
    pub async fn decisions(&self) -> u64 {
        if self.workloads.is_none() {
            return 0;
        }
        self.metric("hookgate_gamedeployment_decisions_total", "").await
    }

    /// Waits until the operator, if it is up, has decided again.
    pub async fn decided_since(&self, before: u64) {
        if self.workloads.is_some() {
            eventually(SOON, || async { (self.decisions().await > before).then_some(()) }).await;
        }
    }

    /// Waits until the operator's requests come to rest: as many decisions as it takes, none of which writes. Whoever
    /// waits then, waits for a reason that the status names.
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

    /// Waits until so many pods are being asked, and no other run is there. Returns the pods by their runs' names.
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

    /// Waits until every HookRun that is there has succeeded.
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

    /// Waits until exactly these pods are marked as chosen to be deleted.
    pub async fn until_marked(&self, names: &BTreeSet<String>) {
        eventually(SOON, || async {
            let marked = self.marked().await;
            if marked == *names { Ok(()) } else { Err(marked) }
        })
        .await;
    }

    /// Waits until a condition is there no more.
    pub async fn cleared(&self, kind: &str) {
        self.until(|status| condition(status, kind).is_none()).await;
    }

    /// Names of the pods that are there and not terminating.
    pub async fn names(&self) -> BTreeSet<String> {
        let pods = self.all_pods().await.into_iter();
        let alive = pods.filter(|(_, pod)| pod.metadata.deletion_timestamp.is_none());
        alive.map(|(name, _)| name).collect()
    }

    /// The images that the pods are to run, each once.
    pub async fn images(&self) -> BTreeSet<String> {
        images_of(self.all_pods().await.values())
    }

    /// Names of the pods that are marked as chosen to be deleted.
    pub async fn marked(&self) -> BTreeSet<String> {
        let pods = self.all_pods().await.into_iter();
        let marked = pods.filter(|(_, pod)| pod.annotations().contains_key(shared_api::names::pod::DELETING));
        marked.map(|(name, _)| name).collect()
    }

    /// Waits until all pods that are there have this image and no other, and are ready.
    pub async fn all_run(&self, image: &str, count: usize) {
        self.until_pods(|pods| {
            pods.len() == count && images_of(pods.values()) == BTreeSet::from([image.to_owned()])
        })
        .await;
    }

    /// Notes of the events about the workload, each with its reason.
    pub async fn events(&self) -> Vec<String> {
        self.events_that(|_| true).await
    }

    /// As [`Fleet::events`], of warnings alone.
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

    /// Waits for an event that holds these words.
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

/// Status, reason and message of a condition.
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

/// Name of the pod that a run asks about.
pub fn pod_of(run: &HookRun) -> String {
    let mut args = run.spec.args.iter().flatten();
    let name = args.find(|arg| arg.name == argument::POD_NAME);
    name.and_then(|arg| arg.value.clone()).unwrap_or_default()
}

/// The images that pods are to run, each once.
fn images_of<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> BTreeSet<String> {
    let specs = pods.into_iter().filter_map(|pod| pod.spec.as_ref());
    let containers = specs.flat_map(|spec| &spec.containers);
    containers
        .filter_map(|container| container.image.clone())
        .collect()
}
