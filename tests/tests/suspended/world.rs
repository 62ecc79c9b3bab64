//! Workloads whose hook asks a webhook, and the judgement of what happens to their pods.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use operator_tests::fleet::{Who, game, pod_of};
use operator_tests::{Fleet, GROUPS, SOON, Start};
use serde_json::{Value, json};
use shared_api::HookRun;
use test_kit::api_proxy::Entry;
use test_kit::tls_gate::TlsGate;
use test_kit::{ApiProxy, ControlPlane, eventually};

use crate::PROGRAMS;
use crate::players::{HeldAnswer, Players};

/// User of gamedeployment-operator.
const WORKLOADS_USER: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
/// Time for which a success counts: the least that a spec may say.
const FRESH_SECONDS: u64 = 5;
/// Answers that a hook gets before the test believes that nothing else happens.
const ANSWERS: usize = 10;

/// Strategy that guards deletions.
pub(crate) const PRE_DELETE: &str = "preDeleteUpdateStrategy";
/// Strategy that guards updates in place.
pub(crate) const PRE_IN_PLACE: &str = "preInplaceUpdateStrategy";

/// Returns a fleet on the shared control plane.
pub(crate) async fn fleet(name: &str) -> Fleet<'static> {
    Fleet::on(ControlPlane::shared(shared_api::crd::all).await, PROGRAMS, name).await
}

/// Launches a workload with players, and with a hook that asks for them. A success counts for the shortest time.
pub(crate) async fn launch(fleet: &Fleet<'_>, players: &Players, replicas: usize, strategy: &str) {
    players.set(1);
    fleet.hook("players", players.hook()).await;
    let guard = json!({ "hook": { "templateName": "players" }, "freshForSeconds": FRESH_SECONDS });
    fleet.launch(&game(replicas, json!({ strategy: guard }))).await;
}

/// Pod that an operator may not touch without a success of its hook.
#[derive(Debug, Clone)]
pub(crate) struct Victim {
    pub(crate) name: String,
    uid: String,
}

impl Victim {
    /// Waits until a hook is asked for a pod, and no other run exists. Returns the pod and the run.
    pub(crate) async fn asked_for(fleet: &Fleet<'_>, players: &Players, before: usize) -> (Self, HookRun) {
        eventually(SOON, || async {
            keep_running(fleet);
            (players.asked() > before).then_some(())
        })
        .await;
        let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
        let pod = fleet.pods().get(&pod_of(&run)).await.unwrap();
        let victim = Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap(),
        };
        (victim, run)
    }

    /// Returns the pod.
    ///
    /// # Panics
    /// If it is gone, is being deleted, or another one has its name.
    pub(crate) async fn alive(&self, fleet: &Fleet<'_>) -> Pod {
        let pod = fleet.pods().get_opt(&self.name).await.unwrap();
        let pod = pod.unwrap_or_else(|| panic!("pod {} is gone", self.name));
        assert_eq!(pod.uid().as_ref(), Some(&self.uid), "another pod of that name");
        assert_eq!(pod.metadata.deletion_timestamp, None, "{} is deleted", self.name);
        pod
    }

    /// Returns the pod's version on the API server.
    pub(crate) async fn version(&self, fleet: &Fleet<'_>) -> u64 {
        version_of(self.alive(fleet).await.resource_version())
    }

    /// Waits until the pod lives through further questions since the first `asked`, to which the hook says no.
    /// Whatever was decided on an earlier yes has lost its chance by then. An operator that ends is started again, as
    /// by its kubelet.
    pub(crate) async fn lives_while_asked(&self, fleet: &Fleet<'_>, players: &Players, asked: usize) {
        eventually(SOON, || async {
            self.alive(fleet).await;
            keep_running(fleet);
            let more = players.asked() - asked;
            if more >= ANSWERS {
                return Ok(());
            }
            let workloads = fleet.operator(Who::Workloads);
            let said = workloads.map(|operator| operator.process.tail(10));
            Err(format!("{more} questions: {}", said.unwrap_or_default()))
        })
        .await;
    }

    /// Lets the players leave, and waits until the pod is gone.
    pub(crate) async fn goes(&self, fleet: &Fleet<'_>, players: &Players) {
        players.set(0);
        fleet
            .until_pods(|pods| !pods.values().any(|pod| pod.uid().as_ref() == Some(&self.uid)))
            .await;
    }

    /// Returns the deletions of the pod that have arrived at a proxy.
    pub(crate) fn deletions(&self, proxy: &ApiProxy) -> Vec<Entry> {
        let entries = proxy.requests().into_iter();
        let deletes = |entry: &Entry| entry.call.verb == "delete" && entry.call.resource == "pods";
        entries
            .filter(|entry| deletes(entry) && entry.call.name == self.name)
            .collect()
    }
}

/// Launches a workload and asks the hook for a pod that leaves in a scale-down. The hook succeeds, but its answer is
/// held back, and players join right after it was given. Nothing else is under way then.
pub(crate) async fn asked_and_held(fleet: &Fleet<'_>, players: &Players) -> (Victim, HeldAnswer) {
    launch(fleet, players, 2, PRE_DELETE).await;
    players.set(0);
    let answer = players.hold_next();
    fleet.scale(1);
    let (victim, _) = Victim::asked_for(fleet, players, 0).await;
    players.until_held().await;
    players.set(1);
    fleet.asked(1).await;
    fleet.quiet().await;
    (victim, answer)
}

/// Starts gamedeployment-operator again if it has ended by itself.
fn keep_running(fleet: &Fleet<'_>) {
    let Some(operator) = fleet.operator(Who::Workloads) else {
        return;
    };
    if let Some(status) = operator.process.exit_status().unwrap() {
        assert_eq!(status.code(), Some(1), "{}", operator.process.tail(5));
        operator.process.restart().unwrap();
    }
}

/// Returns the start of gamedeployment-operator behind a gate.
pub(crate) fn behind_gate(fleet: &Fleet<'_>, gate: &TlsGate) -> Start {
    let kubeconfig = gate.kubeconfig_as(WORKLOADS_USER, &GROUPS).unwrap();
    fleet.start_of(Who::Workloads, None).kubeconfig(&kubeconfig)
}

/// Waits until the success of the only run counts no more.
pub(crate) async fn expired(fleet: &Fleet<'_>) {
    let runs: Api<HookRun> = fleet.runs();
    eventually(SOON, || async {
        let runs = runs.list(&ListParams::default()).await;
        let runs = runs.map_err(|error| error.to_string())?.items;
        let status = runs.first().and_then(|run| run.status.as_ref());
        let ended = status.and_then(|status| status.completed_at);
        let ended = ended.ok_or_else(|| format!("{status:?}"))?.timestamp();
        let age = Timestamp::now().duration_since(ended).unsigned_abs();
        if age > Duration::from_secs(FRESH_SECONDS + 1) {
            Ok(())
        } else {
            Err(format!("{age:?}"))
        }
    })
    .await;
}

/// Checks that gamedeployment-operator wrote to a pod after this version of it and before it created a run: a write
/// that was decided on the earlier version meets a conflict from then on.
pub(crate) async fn assert_noted_before(fleet: &Fleet<'_>, victim: &Victim, version: u64, run: &HookRun) {
    let uid = json!(run.metadata.uid);
    // An answer may be in the log a moment after its client has it.
    eventually(SOON, || async {
        let writes = logged(fleet);
        let is_creation =
            |write: &&Value| write["verb"] == "create" && write["responseObject"]["metadata"]["uid"] == uid;
        let created = writes
            .iter()
            .find(is_creation)
            .ok_or("the run is not in the log")?;
        let created = logged_version(created);
        let about_pod = |write: &&Value| {
            let object = &write["objectRef"];
            object["resource"] == "pods"
                && object["name"] == victim.name.as_str()
                && write["impersonatedUser"]["username"] == WORKLOADS_USER
        };
        let written = writes.iter().filter(about_pod).map(logged_version);
        let mut noted = written.clone().filter(|at| (version + 1..created).contains(at));
        if noted.next().is_some() {
            return Ok(());
        }
        let written: Vec<u64> = written.collect();
        Err(format!("pod {version}, writes {written:?}, run {created}"))
    })
    .await;
}

/// Returns the successful writes to a namespace in the audit log.
fn logged(fleet: &Fleet<'_>) -> Vec<Value> {
    let log = std::fs::read_to_string(fleet.control_plane.audit_log().unwrap()).unwrap();
    let here = |line: &&str| line.contains(&fleet.namespace);
    let entries = log
        .lines()
        .filter(here)
        .filter_map(|line| serde_json::from_str(line).ok());
    let written = |entry: &Value| {
        let code = entry["responseStatus"]["code"].as_u64();
        entry["stage"] == "ResponseComplete"
            && entry["objectRef"]["namespace"] == fleet.namespace.as_str()
            && code.is_some_and(|code| code < 300)
    };
    entries.filter(written).collect()
}

fn logged_version(entry: &Value) -> u64 {
    let version = entry["responseObject"]["metadata"]["resourceVersion"].as_str();
    version_of(version.map(str::to_owned))
}

/// Reads a resource version. In the tests' etcd it is the revision of the whole store, so versions of different objects
/// tell their order.
fn version_of(text: Option<String>) -> u64 {
    text.unwrap_or_default().parse().unwrap_or_default()
}
