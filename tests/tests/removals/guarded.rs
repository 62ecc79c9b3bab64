//! Fleet with both operators in a namespace with the removal guard.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use operator_tests::fleet::{Fleet, GAME, game, hooked, until_empty};
use operator_tests::identity::WORKLOADS_USER;
use operator_tests::{SOON, merge};
use serde_json::{Value, json};
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_REQUESTED};
use shared_api::names::workload::DELETION_ALLOW;
use shared_api::removal_request::RemovalRequests;
use test_kit::node::Options;
use test_kit::process::output_of;
use test_kit::{ControlPlane, eventually};
use tokio::task::JoinHandle;

use crate::installation::{Installation, Replica};
use crate::{PROGRAMS, shared};

/// A fleet in a namespace with the removal guard. The webhook is installed in another one.
pub(crate) struct Guarded {
    pub(crate) fleet: Fleet<'static>,
    pub(crate) installation: Installation<'static>,
    /// The webhook; `None` while it is down.
    pub(crate) replica: Option<Replica>,
    /// Pods with a match, each with the time of its end.
    matches: Mutex<BTreeMap<String, Option<Instant>>>,
}

/// Returns a workload of guarded pods, with these changes to its spec.
pub(crate) fn guarded_game(replicas: usize, changes: Value) -> Value {
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "disruption": { "policy": "Ask" } }));
    merge(&mut spec, changes);
    game(replicas, spec)
}

/// Creates an Eviction. Returns the code of the response.
pub(crate) async fn evict(pods: &Api<Pod>, eviction: &Value) -> u16 {
    let pod = eviction["metadata"]["name"].as_str().unwrap();
    let params = PostParams::default();
    let evicted = pods.create_subresource::<Value, Value>("eviction", pod, &params, eviction);
    match evicted.await {
        Ok(_) => 201,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{pod}: {other}"),
    }
}

impl Guarded {
    pub(crate) async fn new(name: &str) -> Self {
        Self::on(shared().await, name).await
    }

    /// Returns a guarded fleet on another control plane.
    pub(crate) async fn on(control_plane: &'static ControlPlane, name: &str) -> Self {
        let guarded = Self::without_label_on(control_plane, name).await;
        guarded.label_namespace("Enabled");
        guarded
    }

    /// Returns a fleet whose namespace does not enable the guard.
    pub(crate) async fn without_label(name: &str) -> Self {
        Self::without_label_on(shared().await, name).await
    }

    async fn without_label_on(control_plane: &'static ControlPlane, name: &str) -> Self {
        let options = Options {
            nodes: 2,
            ..Options::default()
        };
        let fleet = Fleet::with(control_plane, PROGRAMS, name, options).await;
        let (installation, replica) =
            Installation::with_removal_guard(fleet.control_plane, WORKLOADS_USER).await;
        installation.watch_over(&fleet.namespace).await;
        fleet.hook("empty", until_empty()).await;
        Self {
            fleet,
            installation,
            replica: Some(replica),
            matches: Mutex::default(),
        }
    }

    /// Runs a workload of guarded pods on the first node, and waits until the API server calls the guard.
    pub(crate) async fn launch(&self, replicas: usize, strategy: Value) -> BTreeSet<String> {
        self.launch_with(replicas, json!({ "updateStrategy": strategy }))
            .await
    }

    /// Runs a workload like [`Guarded::launch`], with these changes to its spec.
    pub(crate) async fn launch_with(&self, replicas: usize, changes: Value) -> BTreeSet<String> {
        let [first, second] = self.nodes();
        assert!(self.kubectl(&["cordon", &second]).0);
        self.fleet.launch(&guarded_game(replicas, changes)).await;
        assert!(self.kubectl(&["uncordon", &second]).0);
        let pods = self.fleet.nodes.pods();
        assert!(pods.iter().all(|pod| pod.node.as_deref() == Some(first.as_str())));
        let names = self.fleet.names().await;
        let probe = names.first().unwrap();
        eventually(SOON, || async {
            let arguments = ["delete", "pod", probe, "--dry-run=server"];
            match self.kubectl(&arguments) {
                (false, output) if output.contains("denied the request") => Ok(()),
                other => Err(other),
            }
        })
        .await;
        names
    }

    pub(crate) fn nodes(&self) -> [String; 2] {
        self.fleet.nodes.node_names().try_into().unwrap()
    }

    /// Puts players on the first `count` pods. Returns these pods, and the idle ones.
    pub(crate) fn occupy(&self, pods: &BTreeSet<String>, count: usize) -> (Vec<String>, BTreeSet<String>) {
        let busy: Vec<String> = pods.iter().take(count).cloned().collect();
        for pod in &busy {
            self.begin_match(pod);
        }
        (busy, pods.iter().skip(count).cloned().collect())
    }

    /// Begins a match on a pod.
    pub(crate) fn begin_match(&self, pod: &str) {
        self.matches.lock().unwrap().insert(pod.to_owned(), None);
        self.fleet.nodes.pod(pod).set_players(2);
    }

    /// Ends the match on a pod, if it has not ended before.
    pub(crate) fn end_match(&self, pod: &str) {
        let mut matches = self.matches.lock().unwrap();
        matches
            .entry(pod.to_owned())
            .or_default()
            .get_or_insert_with(Instant::now);
        self.fleet.nodes.pod(pod).set_players(0);
    }

    /// Ends the matches on these pods, like [`Guarded::end_match`].
    pub(crate) fn end_matches(&self, pods: &[String]) {
        for pod in pods {
            self.end_match(pod);
        }
    }

    /// Checks that exactly these pods have ended, each once and as in [`Guarded::assert_after_hooks`].
    pub(crate) fn assert_ended_after_hooks(&self, pods: &BTreeSet<String>) {
        self.assert_ended_once(pods);
        self.assert_after_hooks(pods);
    }

    /// Checks that each of these pods that has ended did so after a request of its hook, which was sent after the match
    /// on the pod if there was one.
    pub(crate) fn assert_after_hooks(&self, pods: &BTreeSet<String>) {
        let matches = self.matches.lock().unwrap();
        let ends = self.fleet.nodes.terminations().into_iter();
        for end in ends.filter(|end| pods.contains(&end.pod)) {
            let ended = matches.get(&end.pod).copied();
            assert_ne!(ended, Some(None), "during its match: {end:?}");
            let after = ended.flatten();
            let requests = self.fleet.nodes.pod(&end.pod).requests();
            let mut times = requests.iter().map(|request| request.at);
            assert!(
                times.any(|at| at < end.at && after.is_none_or(|after| at > after)),
                "{end:?} {requests:?}"
            );
        }
    }

    /// Returns the names of the ready pods on a node.
    pub(crate) fn pods_on(&self, node: &str) -> BTreeSet<String> {
        let pods = self.fleet.nodes.pods().into_iter();
        let found = pods.filter(|pod| pod.node.as_deref() == Some(node) && pod.ready && !pod.terminating);
        found.map(|pod| pod.name).collect()
    }

    /// Returns a client of another administrator, which does not retry denied requests.
    pub(crate) fn client_as(&self, user: &str) -> Client {
        let mut config = self.fleet.control_plane.config();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Returns the API of pods, for a client as in [`Guarded::client_as`].
    pub(crate) fn pods_as(&self, user: &str) -> Api<Pod> {
        Api::namespaced(self.client_as(user), &self.fleet.namespace)
    }

    /// Runs kubectl in the namespace. Returns whether it succeeded, and both outputs.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> (bool, String) {
        run(self.command(arguments))
    }

    /// Runs kubectl beside the test.
    pub(crate) fn start_kubectl(&self, arguments: &[&str]) -> JoinHandle<(bool, String)> {
        let command = self.command(arguments);
        tokio::task::spawn_blocking(move || run(command))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.fleet.control_plane.kubectl();
        command
            .args(["--namespace", &self.fleet.namespace])
            .args(arguments);
        command
    }

    /// Deletes the workload beside the test, with its label that allows the deletion. kubectl waits until the workload
    /// no longer exists.
    pub(crate) fn start_deletion(&self, arguments: &[&str]) -> JoinHandle<(bool, String)> {
        let label = format!("{DELETION_ALLOW}=Always");
        let _ = self
            .fleet
            .kubectl(&["label", "gamedeployment", GAME, &label, "--overwrite"], "");
        let delete = ["delete", "gamedeployment", GAME, "--timeout=300s"];
        self.start_kubectl(&[&delete, arguments].concat())
    }

    /// Disables the guard for the namespace.
    pub(crate) fn disable(&self) {
        self.label_namespace("Disabled");
    }

    /// Sets the namespace's label.
    pub(crate) fn label_namespace(&self, value: &str) {
        let label = format!("{REMOVAL_GUARD}={value}");
        let namespace = &self.fleet.namespace;
        let _ = self
            .fleet
            .kubectl(&["label", "namespace", namespace, &label, "--overwrite"], "");
    }

    /// Waits until exactly these pods have ended.
    pub(crate) async fn await_ended(&self, pods: &BTreeSet<String>) {
        eventually(SOON, || async {
            let found = self.fleet.nodes.terminated_pods();
            if found == *pods { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Waits until exactly these pods have ended, and enough pods are available.
    pub(crate) async fn await_replaced(&self, ended: &BTreeSet<String>, replicas: usize) {
        self.await_ended(ended).await;
        self.fleet
            .until(|status| usize::try_from(status.available_replicas).is_ok_and(|count| count >= replicas))
            .await;
    }

    /// Returns the requesters that are recorded on a pod.
    pub(crate) async fn requesters(&self, pod: &str) -> Vec<String> {
        let pod = self.fleet.pods().get(pod).await.unwrap();
        let annotations = pod.metadata.annotations.unwrap_or_default();
        let requests = annotations
            .get(REMOVAL_REQUESTED)
            .map(|text| RemovalRequests::parse(text).unwrap());
        let requests = requests.unwrap_or_default();
        requests.iter().map(|request| request.requester.clone()).collect()
    }

    /// Waits until no request is recorded on a pod.
    pub(crate) async fn await_withdrawn(&self, pod: &str) {
        eventually(SOON, || async {
            let requesters = self.requesters(pod).await;
            if requesters.is_empty() {
                Ok(())
            } else {
                Err(requesters)
            }
        })
        .await;
    }

    /// Waits until `status.removalRequests` lists exactly these requests, each with its pod, type and requester.
    pub(crate) async fn await_requests(&self, wanted: &[(&str, &str, &str)]) {
        self.fleet
            .until(|status| {
                let listed = status.removal_requests.iter();
                let listed = listed.map(|one| (&*one.pod_name, &*one.type_, &*one.requester));
                listed.eq(wanted.iter().copied())
            })
            .await;
    }

    /// Returns the number of requests that the webhook has reviewed, with all these labels of the metric.
    pub(crate) async fn count_reviews(&self, labels: &[&str]) -> u64 {
        let replica = self.replica.as_ref().unwrap();
        replica.metric("hookgate_admission_requests_total", labels).await
    }

    /// Requests the deletion of an idle pod, and checks that it is replaced after its hook and that no other pod ends.
    /// `ended`: pods that ended before; the pod is added.
    pub(crate) async fn replace(&self, pod: &str, ended: &mut BTreeSet<String>, replicas: usize) {
        assert!(!self.kubectl(&["delete", "pod", pod, "--wait=false"]).0);
        ended.insert(pod.to_owned());
        self.await_replaced(ended, replicas).await;
        self.fleet.settled(replicas).await;
        self.assert_ended_after_hooks(ended);
    }

    /// Ends the match on a pod, and checks that the pod is kept: another one is replaced after this.
    pub(crate) async fn assert_kept(&self, pod: &str, ended: &mut BTreeSet<String>, replicas: usize) {
        self.end_match(pod);
        let names = self.fleet.names().await;
        let other = names.iter().find(|name| *name != pod).unwrap();
        self.replace(other, ended, replicas).await;
    }

    /// Checks that the containers of these pods ended once, and no others.
    pub(crate) fn assert_ended_once(&self, pods: &BTreeSet<String>) {
        let ends = self.fleet.nodes.terminations();
        assert_eq!(self.fleet.nodes.terminated_pods(), *pods);
        assert_eq!(ends.len(), pods.len(), "{ends:#?}");
    }
}

fn run(mut command: Command) -> (bool, String) {
    let output = output_of(&mut command, "").unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}
