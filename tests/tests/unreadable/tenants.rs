//! Work of other tenants: runs get their verdict, and a pod goes when its hook has allowed it, and not before.

use std::collections::BTreeSet;

use kube::api::{Api, PostParams};
use operator_tests::SOON;
use operator_tests::fleet::hooked;
use serde_json::{Value, json};
use shared_api::hook_run::HookRunSpec;
use shared_api::{HookRun, Phase};
use test_kit::{Answer, eventually};

use crate::api::{Id, Kind};
use crate::manifests::{asking, named_game};
use crate::world::World;

/// Makes a metric ask until the answer is good.
pub(crate) fn until_good() -> Value {
    json!({ "interval": "100ms", "successfulLimit": 1 })
}

/// Whether a pod belongs to a workload.
fn is_of(pod: &str, workload: &str) -> bool {
    pod.strip_prefix(workload).is_some_and(|id| id.starts_with('-'))
}

impl World<'_> {
    /// Creates a template that asks the server about each pod, at the path of this name.
    pub(crate) async fn hook(&self, name: &str, more: Value) {
        let url = self.server.url(&format!("/{name}?pod={{{{ args.PodName }}}}"));
        let spec = json!({ "args": [{ "name": "PodName" }], "metrics": [asking(&url, more)] });
        self.fleet.hook(name, spec).await;
    }

    /// Launches a workload behind a hook of its name.
    pub(crate) async fn launch(&self, name: &str, pods: usize, more: Value) {
        self.hook(name, more).await;
        self.fleet.launch(&named_game(name, pods, hooked(name))).await;
    }

    /// Returns the workload of this name.
    pub(crate) fn game(&self, name: &str) -> Id {
        Id::new(Kind::GameDeployment, &self.fleet.namespace, name)
    }

    /// Makes the server refuse what is asked at this path.
    pub(crate) fn refuse(&self, path: &str) {
        self.server.on(path, Answer::json(json!({ "age": 1 })));
    }

    /// Makes the server allow what is asked at this path.
    pub(crate) fn allow(&self, path: &str) {
        self.server.on(path, Answer::json(json!({ "age": 45 })));
    }

    pub(crate) async fn scale(&self, name: &str, pods: usize) {
        let patch = json!({ "spec": { "replicas": pods } });
        self.api.merge(&self.game(name), &patch.to_string()).await;
    }

    /// Waits until a workload has this many pods and nothing waits.
    pub(crate) async fn has(&self, name: &str, pods: usize) {
        let count = i32::try_from(pods).unwrap();
        let is_done = |status: &shared_api::GameDeploymentStatus| {
            (status.replicas, status.ready_replicas) == (count, count) && status.hook_pending_replicas == 0
        };
        self.fleet.until_of(name, is_done).await;
        self.fleet
            .until_pods(|all| all.keys().filter(|pod| is_of(pod, name)).count() == pods)
            .await;
    }

    /// Returns the pods of a workload that are not terminating.
    pub(crate) async fn pods_of(&self, name: &str) -> BTreeSet<String> {
        let pods = self.fleet.names().await.into_iter();
        pods.filter(|pod| is_of(pod, name)).collect()
    }

    /// Returns the pods of a workload in which a container ever ended.
    pub(crate) fn ended_pods_of(&self, name: &str) -> BTreeSet<String> {
        let pods = self.fleet.nodes.terminated_pods().into_iter();
        pods.filter(|pod| is_of(pod, name)).collect()
    }

    /// Returns the queries of the questions at a path, without the first ones.
    pub(crate) fn questions(&self, path: &str, first: usize) -> Vec<String> {
        let questions = self.server.requests(path).into_iter().skip(first);
        questions.map(|question| question.query).collect()
    }

    /// Scales a workload whose hook asks once down by one pod, and up again. Exactly one question is asked, about the
    /// pod that goes.
    pub(crate) async fn scales_down(&self, name: &str) {
        let path = format!("/{name}");
        let (before, asked) = (self.pods_of(name).await, self.server.counts(&path).received);
        self.scale(name, before.len() - 1).await;
        self.has(name, before.len() - 1).await;
        let left = self.pods_of(name).await;
        let gone: Vec<String> = before.difference(&left).map(|pod| format!("pod={pod}")).collect();
        assert_eq!(gone.len(), 1, "{before:?} {left:?}");
        assert_eq!(self.questions(&path, asked), gone);
        self.scale(name, before.len()).await;
        self.has(name, before.len()).await;
    }

    /// Creates a run that asks at this path.
    pub(crate) async fn create_run(&self, name: &str, path: &str, more: Value) {
        let spec = json!({ "metrics": [asking(&self.server.url(path), more)] });
        let spec: HookRunSpec = serde_json::from_value(spec).unwrap();
        let run = HookRun::new(name, spec);
        let runs = self.runs_api();
        runs.create(&PostParams::default(), &run).await.unwrap();
    }

    fn runs_api(&self) -> Api<HookRun> {
        Api::namespaced(self.fleet.client(), &self.runs)
    }

    /// Waits until a run has its verdict, which must be a success.
    pub(crate) async fn succeeds(&self, name: &str) {
        let runs = self.runs_api();
        let status = eventually(SOON, || async {
            let run = runs.get(name).await.map_err(|error| error.to_string())?;
            let status = run.status.unwrap_or_default();
            if status.phase.is_final() {
                Ok(status)
            } else {
                let operator = self.fleet.hooks.as_ref();
                let said = operator.map(|operator| operator.process.tail(5));
                Err(format!("{name}: {status:?} {said:?}"))
            }
        })
        .await;
        assert_eq!(status.phase, Phase::Successful, "{status:?}");
    }

    /// Checks that other tenants are served: a new run, and the workload `brisk`.
    pub(crate) async fn goes_on(&self) {
        let name = self.new_name("run");
        let path = format!("/{name}");
        self.create_run(&name, &path, json!({})).await;
        self.succeeds(&name).await;
        assert_eq!(self.server.counts(&path).received, 1, "{name}");
        self.scales_down("brisk").await;
    }

    /// Launches the workload that [`World::goes_on`] scales.
    pub(crate) async fn launch_brisk(&self) {
        self.launch("brisk", 2, json!({})).await;
    }

    /// Begins a scale-down of the workload `held` and the run `in-flight`, which the server refuses. Returns the pods.
    pub(crate) async fn begin_held(&self) -> BTreeSet<String> {
        self.launch("held", 2, until_good()).await;
        let pods = self.pods_of("held").await;
        self.refuse("/held");
        self.refuse("/in-flight");
        self.scale("held", 1).await;
        self.create_run("in-flight", "/in-flight", until_good()).await;
        for path in ["/held", "/in-flight"] {
            self.server.await_requests(path, 1, SOON).await.unwrap();
        }
        pods
    }

    /// Checks that the scale-down of `held` is under way and has removed no pod.
    pub(crate) async fn is_held(&self, pods: &BTreeSet<String>) {
        // The second of two more questions is asked after the first one was refused.
        let asked = self.server.counts("/held").received;
        self.server
            .await_requests("/held", asked + 2, SOON)
            .await
            .unwrap();
        assert_eq!(self.pods_of("held").await, *pods);
        assert_eq!(self.ended_pods_of("held"), BTreeSet::new());
    }

    /// Lets the scale-down of `held` end: the pod goes that was asked about all the time.
    pub(crate) async fn opens(&self, pods: &BTreeSet<String>) {
        self.allow("/held");
        self.has("held", 1).await;
        let left = self.pods_of("held").await;
        let gone = pods.difference(&left).map(|pod| format!("pod={pod}"));
        let asked = self.questions("/held", 0).into_iter();
        assert_eq!(asked.collect::<BTreeSet<_>>(), gone.collect::<BTreeSet<_>>());
    }
}
