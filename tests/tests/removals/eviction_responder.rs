//! gamedeployment-operator as a responder of `lifecycle.k8s.io`: Evictions of busy and idle pods, withdrawals, restarts
//! and interruptions. There are stand-ins for the API and its controller.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use operator_tests::fleet::{Fleet, Who, empty_now, until_empty};
use operator_tests::identity::WORKLOADS_USER;
use operator_tests::{GROUPS, SOON};
use serde_json::{Value, json};
use shared_api::names::eviction::{GROUP, RESPONDER};
use test_kit::api_proxy::Outcome;
use test_kit::node::{PodHandle, PodView};
use test_kit::webhook::Script;
use test_kit::{Answer, ApiProxy, ControlPlane, Options, eventually};

use crate::eviction_controller::{EVICTOR, EVICTOR_USER, EvictionController, GRACE};
use crate::guarded::{Guarded, guarded_game};
use crate::lifecycle_crds::{ACTIVE, CANCELED, COMPLETED, Eviction, INACTIVE, INTERRUPTED};
use crate::{PROGRAMS, shared};

/// Flag under test.
const FLAG: &str = "--eviction-responder";
/// Type of the removal requests.
const TYPE: &str = "EvictionRequest";
// Requesters.
pub(crate) const ANN: &str = "drain.example.com/ann";
const BOB: &str = "scaler.example.com/bob";
// Messages of the operator.
const DELETED: &str = "the pod is deleted";
const NO_HOOK: &str = "the GameDeployment does not require a PreDelete hook for this pod";
const UNMANAGED: &str = "no GameDeployment manages this pod, so this responder sends no heartbeat";
/// Shortest time between two reports to an Eviction, in seconds.
const REPORT_INTERVAL: u64 = 20;

/// Starts the stand-in of the controller, and gamedeployment-operator as a responder. `grace`: see
/// [`EvictionController::start`].
pub(crate) async fn prepare(guarded: &mut Guarded, grace: Duration) -> EvictionController {
    grant(&guarded.fleet).await;
    let evictions = EvictionController::start(guarded, grace).await;
    respond(guarded, None).await;
    evictions
}

/// Starts gamedeployment-operator as a responder in place of the running one.
async fn respond(guarded: &mut Guarded, proxy: Option<&ApiProxy>) {
    let start = guarded.fleet.start_of(Who::Workloads, proxy).flags(&[FLAG]);
    guarded.fleet.start(Who::Workloads, &start).await;
}

/// Grants gamedeployment-operator in the namespace exactly the permissions of `deploy/rbac-evictions.yaml`.
async fn grant(fleet: &Fleet<'_>) {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let (name, metadata) = ("eviction-responder", json!({ "name": "eviction-responder" }));
    let role = json!({ "apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules() });
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": { "apiGroup": group, "kind": "Role", "name": name },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": WORKLOADS_USER }],
    });
    fleet.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [role, binding] }));
    let review = json!({
        "metadata": {},
        "spec": { "user": WORKLOADS_USER, "groups": GROUPS, "resourceAttributes": {
            "namespace": fleet.namespace, "group": GROUP,
            "verb": "patch", "resource": "evictions", "subresource": "status",
        } },
    });
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(fleet.client());
    // The API server learns of roles through a watch.
    eventually(SOON, || async {
        let answer = reviews.create(&PostParams::default(), &review).await;
        let status = answer.map_err(|error| error.to_string())?.status;
        match status {
            Some(status) if status.allowed => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Returns the rules that the responder needs.
fn rules() -> Value {
    let manifest = include_str!("../../../deploy/rbac-evictions.yaml");
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
    let mut roles = documents
        .iter()
        .filter(|document| document["kind"] == "ClusterRole");
    let role = roles.next().unwrap();
    assert!(roles.next().is_none(), "{manifest}");
    role["rules"].clone()
}

/// Returns the strategy of a workload whose pods may all be unavailable at once.
fn all_at_once(replicas: usize) -> Value {
    json!({ "maxUnavailable": replicas })
}

/// Returns changes to a workload: its hook runs only once for each attempt, and all pods may be unavailable at once.
fn single_attempts(replicas: usize) -> Value {
    let hook = json!({ "hook": { "templateName": "empty-now" } });
    json!({ "preDeleteUpdateStrategy": hook, "updateStrategy": all_at_once(replicas) })
}

fn only(pod: &str) -> BTreeSet<String> {
    BTreeSet::from([pod.to_owned()])
}

/// Waits until the Eviction shows the reason why a pod stays, as the status of the workload has it.
async fn await_reason(guarded: &Guarded, evictions: &EvictionController, pod: &str) {
    eventually(SOON, || async {
        let status = guarded.fleet.status().await;
        let mut entries = status.removal_requests.iter();
        let reason = entries.find(|entry| entry.pod_name == pod);
        let reason = reason.and_then(|entry| entry.message.clone());
        let shown = evictions.newest(pod).await;
        let shown = shown.and_then(|eviction| eviction.own().message);
        if reason.is_some() && reason == shown {
            Ok(())
        } else {
            Err((reason, shown))
        }
    })
    .await;
}

/// Waits until the status shows that a hook has found this number of players on a pod.
async fn await_refusal(guarded: &Guarded, pod: &str, players: u64) {
    let found = format!("\"{players}\" does not satisfy");
    guarded
        .fleet
        .until(|status| {
            let entry = status.removal_requests.iter().find(|entry| entry.pod_name == pod);
            let message = entry.and_then(|entry| entry.message.as_ref());
            message.is_some_and(|message| message.contains(&found))
        })
        .await;
}

/// Reruns hooks that did not succeed, and waits until the operator has taken note.
async fn retry(guarded: &Guarded) {
    guarded.fleet.retry("preDeleteUpdateStrategy");
    guarded
        .fleet
        .until_game(|game| {
            let strategy = game.spec.pre_delete_update_strategy.as_ref();
            strategy.and_then(|strategy| strategy.retry) == Some(false)
        })
        .await;
}

/// Checks how an Eviction ended whose pod the operator deleted.
fn assert_deleted_by_responder(eviction: &Eviction) {
    let own = eviction.own();
    assert_eq!(eviction.state(RESPONDER), COMPLETED, "{eviction:#?}");
    assert_eq!(eviction.state(EVICTOR), INACTIVE, "{eviction:#?}");
    assert_eq!(own.message.as_deref(), Some(DELETED));
    assert!(own.completion_time >= own.heartbeat_time && own.completion_time.is_some());
}

/// Match on a pod, with a record of what the game server answered.
#[derive(Clone, Default)]
struct Match {
    players: Arc<AtomicU64>,
    answers: Arc<Mutex<Vec<(Instant, u64)>>>,
}

impl Match {
    /// Begins a match with two players.
    fn begin(pod: &PodHandle<'_>) -> Self {
        let begun = Self::default();
        begun.players.store(2, Ordering::SeqCst);
        let server = begun.clone();
        pod.otherwise(Script::by(move |_| server.answer()));
        begun
    }

    fn answer(&self) -> Answer {
        let players = self.players.load(Ordering::SeqCst);
        self.answers.lock().unwrap().push((Instant::now(), players));
        Answer::json(json!({ "players": players }))
    }

    fn end(&self) {
        self.players.store(0, Ordering::SeqCst);
    }

    /// Returns the last answer before a moment.
    fn last_answer(&self, moment: Instant) -> Option<u64> {
        let answers = self.answers.lock().unwrap();
        let last = answers.iter().rfind(|(at, _)| *at < moment);
        last.map(|(_, players)| *players)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_of_a_busy_pod_shows_why_it_waits_and_is_completed_once_the_pod_is_deleted() {
    let mut guarded = Guarded::new("evict-busy").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(3, all_at_once(3)).await;
    let pod = pods.first().unwrap().as_str();
    let game = guarded.fleet.nodes.pod(pod);
    let played = Match::begin(&game);
    evictions.request(pod, ANN).await;
    guarded.await_requests(&[(pod, TYPE, ANN)]).await;
    guarded
        .fleet
        .until(|status| status.removal_pending_replicas == 1)
        .await;
    guarded.fleet.until_marked(&only(pod)).await;
    await_reason(&guarded, &evictions, pod).await;
    let active = evictions.until(pod, Eviction::is_answered).await;
    assert_eq!(active.state(RESPONDER), ACTIVE);
    assert!(active.own().completion_time.is_none());
    assert!(
        guarded.requesters(pod).await.is_empty(),
        "the request is not recorded"
    );
    // The hook goes on, and the pod stays.
    let further = game.counts("/").received + 3;
    game.await_requests("/", further, SOON).await.unwrap();
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());

    played.end();
    guarded.await_replaced(&only(pod), 3).await;
    let ended = evictions.until(pod, Eviction::is_evicted).await;
    assert_deleted_by_responder(&ended);
    let ends = game.terminations();
    assert_eq!(played.last_answer(ends[0].at), Some(0));
    guarded.await_requests(&[]).await;
    guarded.fleet.settled(3).await;
    guarded.assert_ended_once(&only(pod));
    assert!(evictions.codes(pod).is_empty());
    assert_eq!(guarded.count_reviews(&["kind=\"Eviction\""]).await, 0);
    evictions.assert_valid(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_kept_after_its_eviction_is_withdrawn_or_its_request_deleted() {
    let mut guarded = Guarded::new("evict-withdrawn").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(3, all_at_once(3)).await;
    let (busy, idle) = guarded.occupy(&pods, 2);
    for pod in &busy {
        evictions.request(pod, ANN).await;
    }
    guarded.fleet.until_marked(&busy.iter().cloned().collect()).await;
    for pod in &busy {
        evictions.until(pod, Eviction::is_answered).await;
    }
    evictions.withdraw(&busy[0], ANN).await;
    evictions.delete_request(&busy[1], ANN).await;
    guarded.await_requests(&[]).await;
    guarded.fleet.until_marked(&BTreeSet::new()).await;
    guarded
        .fleet
        .until(|status| status.removal_pending_replicas == 0)
        .await;
    let canceled = evictions.until(&busy[0], Eviction::is_failed).await;
    assert_eq!(canceled.state(RESPONDER), CANCELED);
    // The garbage collector may delete an Eviction after its last request.
    eventually(SOON, || async {
        match evictions.newest(&busy[1]).await {
            Some(eviction) if !eviction.is_failed() => Err(eviction),
            _ => Ok(()),
        }
    })
    .await;

    // A later success has no effect: while another pod is deleted and replaced, these two are kept.
    for pod in &busy {
        guarded.fleet.nodes.pod(pod).set_players(0);
    }
    let uids = guarded.fleet.uids().await;
    let mut ended = BTreeSet::new();
    guarded.replace(idle.first().unwrap(), &mut ended, 3).await;
    let later = guarded.fleet.uids().await;
    assert!(busy.iter().all(|pod| later[pod] == uids[pod]));
    evictions.assert_valid(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_requesters_of_an_eviction_are_listed_and_one_of_them_is_enough() {
    let mut guarded = Guarded::new("evict-both").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(2, all_at_once(2)).await;
    let (busy, _) = guarded.occupy(&pods, 1);
    let pod = busy[0].as_str();
    evictions.request(pod, ANN).await;
    evictions.request(pod, BOB).await;
    guarded
        .await_requests(&[(pod, TYPE, ANN), (pod, TYPE, BOB)])
        .await;
    evictions.withdraw(pod, ANN).await;
    guarded.await_requests(&[(pod, TYPE, BOB)]).await;
    guarded.fleet.until_marked(&only(pod)).await;
    assert_eq!(evictions.of(pod).await.len(), 1);
    guarded.fleet.nodes.pod(pod).set_players(0);
    guarded.await_replaced(&only(pod), 2).await;
    assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    guarded.fleet.settled(2).await;
    guarded.assert_ended_once(&only(pod));
    evictions.assert_valid(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_that_was_withdrawn_can_be_requested_again() {
    let mut guarded = Guarded::new("evict-again").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(2, all_at_once(2)).await;
    let (busy, _) = guarded.occupy(&pods, 1);
    let pod = busy[0].as_str();
    evictions.request(pod, ANN).await;
    let first = evictions.until(pod, Eviction::is_answered).await;
    evictions.withdraw(pod, ANN).await;
    let first = evictions
        .until(pod, |eviction| eviction.uid == first.uid && eviction.is_failed())
        .await;
    guarded.await_requests(&[]).await;
    guarded.fleet.until_marked(&BTreeSet::new()).await;

    evictions.renew(pod, ANN).await;
    guarded.await_requests(&[(pod, TYPE, ANN)]).await;
    evictions
        .until(pod, |eviction| {
            eviction.uid != first.uid && eviction.is_answered()
        })
        .await;
    guarded.fleet.until_marked(&only(pod)).await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
    guarded.fleet.nodes.pod(pod).set_players(0);
    guarded.await_replaced(&only(pod), 2).await;
    assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    let all = evictions.of(pod).await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].status, first.status);
    guarded.fleet.settled(2).await;
    guarded.assert_ended_once(&only(pod));
    evictions.assert_valid(&[]).await;
}

/// The guard is disabled, so that a pod can be deleted while the operator is down.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_operator_completes_the_eviction_of_a_deleted_pod_and_continues_that_of_another() {
    let mut guarded = Guarded::without_label("evict-restart").await;
    let evictions = prepare(&mut guarded, SOON).await;
    guarded.fleet.hook("empty-now", empty_now()).await;
    guarded.fleet.launch(&guarded_game(3, single_attempts(3))).await;
    let (busy, _) = guarded.occupy(&guarded.fleet.names().await, 2);
    let (deleted, kept) = (busy[0].as_str(), busy[1].as_str());
    for pod in [deleted, kept] {
        evictions.request(pod, ANN).await;
        evictions.until(pod, Eviction::is_answered).await;
        await_refusal(&guarded, pod, 2).await;
        await_reason(&guarded, &evictions, pod).await;
    }
    let earlier = evictions.newest(kept).await.unwrap().own();
    guarded.fleet.kill_workloads();
    guarded.fleet.delete_pod(deleted).await;
    guarded.fleet.until_pods(|pods| !pods.contains_key(deleted)).await;
    let open = evictions.newest(deleted).await.unwrap();
    assert!(open.own().completion_time.is_none() && !open.is_evicted());

    respond(&mut guarded, None).await;
    assert_deleted_by_responder(&evictions.until(deleted, Eviction::is_evicted).await);
    let is_reported = |eviction: &Eviction| eviction.own().heartbeat_time > earlier.heartbeat_time;
    let unchanged = evictions.until(kept, is_reported).await.own();
    assert_eq!(unchanged.message, earlier.message);
    guarded.fleet.nodes.pod(kept).set_players(3);
    retry(&guarded).await;
    await_refusal(&guarded, kept, 3).await;
    await_reason(&guarded, &evictions, kept).await;
    let later = evictions.newest(kept).await.unwrap().own();
    assert!(later.heartbeat_time > unchanged.heartbeat_time);
    assert_eq!(guarded.fleet.nodes.terminated_pods(), only(deleted));

    guarded.fleet.nodes.pod(kept).set_players(0);
    retry(&guarded).await;
    guarded.await_replaced(&busy.iter().cloned().collect(), 3).await;
    assert_deleted_by_responder(&evictions.until(kept, Eviction::is_evicted).await);
    guarded.fleet.settled(3).await;
    evictions.assert_valid(&[]).await;
}

/// Returns a pod that looks like another one of the same name.
fn twin(pod: &Pod) -> Pod {
    let spec = pod.spec.clone().unwrap();
    let game = Container {
        name: spec.containers[0].name.clone(),
        image: spec.containers[0].image.clone(),
        ..Container::default()
    };
    Pod {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            labels: pod.metadata.labels.clone(),
            owner_references: pod.metadata.owner_references.clone(),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![game],
            readiness_gates: spec.readiness_gates,
            ..PodSpec::default()
        }),
        status: None,
    }
}

/// The guard is disabled, so that a pod can be deleted while the operator is down.
#[tokio::test(flavor = "multi_thread")]
async fn the_eviction_of_an_earlier_pod_does_not_touch_its_successor_of_the_same_name() {
    let mut guarded = Guarded::without_label("evict-successor").await;
    let evictions = prepare(&mut guarded, SOON).await;
    let workload = guarded_game(2, json!({ "updateStrategy": all_at_once(2) }));
    guarded.fleet.launch(&workload).await;
    let (busy, _) = guarded.occupy(&guarded.fleet.names().await, 1);
    let pod = busy[0].as_str();
    evictions.request(pod, ANN).await;
    evictions.until(pod, Eviction::is_answered).await;
    guarded.fleet.kill_workloads();
    let pods = guarded.fleet.pods();
    let earlier = pods.get(pod).await.unwrap();
    let params = DeleteParams::default().grace_period(0);
    let _ = pods.delete(pod, &params).await.unwrap();
    guarded.fleet.until_pods(|pods| !pods.contains_key(pod)).await;
    let successor = pods
        .create(&PostParams::default(), &twin(&earlier))
        .await
        .unwrap();
    assert_ne!(successor.uid(), earlier.uid());

    respond(&mut guarded, None).await;
    assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    guarded.fleet.nodes.pod(pod).set_players(0);
    guarded.fleet.settled(2).await;
    guarded.await_requests(&[]).await;
    assert_eq!(guarded.fleet.uids().await[pod], successor.uid());
    assert_eq!(guarded.fleet.nodes.pod(pod).terminations().len(), 1);
    evictions.assert_valid(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_interruption_the_guard_denies_the_eviction_by_the_default_responder() {
    let mut guarded = Guarded::new("evict-interrupted").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(2, all_at_once(2)).await;
    let (busy, _) = guarded.occupy(&pods, 1);
    let pod = busy[0].as_str();
    evictions.request(pod, ANN).await;
    evictions.until(pod, Eviction::is_answered).await;
    guarded.fleet.kill_workloads();
    evictions.declare_silent(pod);
    let interrupted = evictions
        .until(pod, |eviction| eviction.state(EVICTOR) == ACTIVE)
        .await;
    assert_eq!(interrupted.state(RESPONDER), INTERRUPTED);
    eventually(SOON, || async {
        evictions.codes(pod).contains(&429).then_some(())
    })
    .await;
    assert_eq!(guarded.requesters(pod).await, [EVICTOR_USER]);
    respond(&mut guarded, None).await;
    guarded.await_requests(&[(pod, "Eviction", EVICTOR_USER)]).await;
    guarded.fleet.asked(1).await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());

    guarded.fleet.nodes.pod(pod).set_players(0);
    guarded.await_replaced(&only(pod), 2).await;
    let ended = evictions.until(pod, Eviction::is_evicted).await;
    assert_eq!(ended.state(EVICTOR), COMPLETED);
    assert_eq!(ended.own(), interrupted.own());
    let codes = evictions.codes(pod);
    assert!(
        codes.iter().all(|code| [201, 404, 429].contains(code)),
        "{codes:?}"
    );
    guarded.fleet.settled(2).await;
    guarded.assert_ended_once(&only(pod));
    evictions.assert_valid(&[]).await;
}

/// Checks that a busy pod is handed over to the default responder, which evicts it, once this change to the spec has
/// made its hook unnecessary.
async fn assert_handed_over(name: &str, change: Value) {
    let mut guarded = Guarded::new(name).await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(2, all_at_once(2)).await;
    let (busy, _) = guarded.occupy(&pods, 1);
    let pod = busy[0].as_str();
    evictions.request(pod, ANN).await;
    let active = evictions.until(pod, Eviction::is_answered).await;
    assert!(active.own().completion_time.is_none(), "{active:#?}");
    assert_eq!(active.state(RESPONDER), ACTIVE);
    guarded.fleet.set(change).await;
    let completed = evictions
        .until(pod, |eviction| eviction.state(EVICTOR) != INACTIVE)
        .await;
    assert_eq!(completed.state(RESPONDER), COMPLETED);
    assert_eq!(completed.own().message.as_deref(), Some(NO_HOOK));
    guarded.await_replaced(&only(pod), 2).await;
    let ended = evictions.until(pod, Eviction::is_evicted).await;
    assert_eq!(ended.state(EVICTOR), COMPLETED);
    assert_eq!(ended.own(), completed.own());
    assert!(evictions.codes(pod).contains(&201), "{:?}", evictions.codes(pod));
    guarded.fleet.settled(2).await;
    guarded.assert_ended_once(&only(pod));
    evictions.assert_valid(&[pod]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_policy_has_become_unguarded_is_left_to_the_next_responder() {
    assert_handed_over(
        "evict-unguarded",
        json!({ "disruption": { "policy": "Unguarded" } }),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_hook_has_been_removed_is_left_to_the_next_responder() {
    assert_handed_over("evict-no-hook", json!({ "preDeleteUpdateStrategy": null })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_a_game_deployment_is_left_to_the_next_responder_without_a_heartbeat() {
    let mut guarded = Guarded::new("evict-orphan").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let pods = guarded.launch(2, all_at_once(2)).await;
    let alone = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alone" },
        "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
    });
    guarded.fleet.apply(&alone);
    let is_ready = |pod: &PodView| pod.ready;
    guarded
        .fleet
        .nodes
        .pod("alone")
        .await_that(SOON, is_ready)
        .await
        .unwrap();
    evictions.request("alone", ANN).await;
    let declined = evictions
        .until("alone", |eviction| eviction.own().message.is_some())
        .await;
    assert_eq!(declined.own().message.as_deref(), Some(UNMANAGED));

    // Meanwhile, the Eviction of a pod of the workload begins and ends.
    let pod = pods.first().unwrap();
    evictions.request(pod, ANN).await;
    assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    let later = evictions.newest("alone").await.unwrap();
    assert_eq!((later.own(), later.state(RESPONDER)), (declined.own(), ACTIVE));
    assert!(!later.is_answered() && later.own().completion_time.is_none());

    evictions.declare_silent("alone");
    let ended = evictions.until("alone", Eviction::is_evicted).await;
    assert_eq!(ended.state(RESPONDER), INTERRUPTED);
    assert_eq!(ended.own(), declined.own());
    assert!(evictions.codes("alone").contains(&201));
    guarded.fleet.settled(2).await;
    evictions.assert_valid(&[]).await;
}

/// Returns the paths of the requests about the API of Evictions, and their outcomes.
fn calls_about_evictions(proxy: &ApiProxy) -> Vec<(String, Outcome)> {
    let requests = proxy.requests().into_iter();
    let about = requests.filter(|entry| entry.call.path.contains(GROUP));
    about.map(|entry| (entry.call.path, entry.outcome)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_flag_the_operator_sends_no_request_about_evictions() {
    let mut guarded = Guarded::new("evict-off").await;
    let evictions = EvictionController::start(&guarded, GRACE).await;
    let proxy = ApiProxy::start(shared().await).unwrap();
    guarded.fleet.start_behind(&proxy, Who::Workloads).await;
    let pods = guarded.launch(2, all_at_once(2)).await;
    let (busy, idle) = guarded.occupy(&pods, 1);
    let pod = busy[0].as_str();
    evictions.request(pod, ANN).await;
    evictions
        .until(pod, |eviction| eviction.state(RESPONDER) == ACTIVE)
        .await;
    // Until the other pod has been replaced, the operator has decided many times.
    guarded
        .replace(idle.first().unwrap(), &mut BTreeSet::new(), 2)
        .await;
    guarded.await_requests(&[]).await;
    let calls = calls_about_evictions(&proxy);
    assert!(calls.is_empty(), "{calls:?}");
    let ignored = evictions.newest(pod).await.unwrap().own();
    assert!(ignored.message.is_none() && ignored.heartbeat_time.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_server_without_the_api_the_operator_queries_discovery_once_and_creates_pods_as_usual() {
    let options = Options {
        crds: shared_api::crd::all(),
        audit: true,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await.unwrap();
    let mut fleet = Fleet::on(&control_plane, PROGRAMS, "evict-unserved").await;
    let proxy = ApiProxy::start(&control_plane).unwrap();
    let start = fleet.start_of(Who::Workloads, Some(&proxy)).flags(&[FLAG]);
    fleet.start(Who::Workloads, &start).await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&guarded_game(2, json!({}))).await;
    let is_answered = |calls: &[(String, Outcome)]| calls.iter().all(|(_, one)| *one != Outcome::Pending);
    eventually(SOON, || async {
        let calls = calls_about_evictions(&proxy);
        if !calls.is_empty() && is_answered(&calls) {
            Ok(())
        } else {
            Err(calls)
        }
    })
    .await;
    fleet.scale(3);
    fleet.settled(3).await;
    let path = format!("/apis/{GROUP}/v1alpha1");
    assert_eq!(calls_about_evictions(&proxy), [(path, Outcome::Status(404))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_costs_at_most_one_report_in_20_seconds_and_its_completion() {
    let mut guarded = Guarded::new("evict-cost").await;
    let evictions = prepare(&mut guarded, GRACE).await;
    let proxy = ApiProxy::start(guarded.fleet.control_plane).unwrap();
    respond(&mut guarded, Some(&proxy)).await;
    guarded.fleet.hook("empty-now", empty_now()).await;
    let pods = guarded.launch_with(2, single_attempts(2)).await;
    let pod = pods.first().unwrap();
    let reports = || {
        let requests = proxy.requests().into_iter();
        let sent = requests.filter(|entry| entry.call.resource == "evictions/status");
        sent.map(|entry| entry.at).collect::<Vec<Instant>>()
    };
    // The message changes with each attempt, several times within the interval.
    let mut players = 1;
    guarded.fleet.nodes.pod(pod).set_players(players);
    evictions.request(pod, ANN).await;
    await_refusal(&guarded, pod, players).await;
    while reports().len() < 2 {
        players += 1;
        assert!(players < 500, "no second report");
        guarded.fleet.nodes.pod(pod).set_players(players);
        retry(&guarded).await;
        await_refusal(&guarded, pod, players).await;
    }
    assert!(players > 2, "the message changed only once");
    guarded.fleet.nodes.pod(pod).set_players(0);
    retry(&guarded).await;
    guarded.await_replaced(&only(pod), 2).await;
    assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    guarded.fleet.settled(2).await;
    let sent = reports();
    let (completion, heartbeats) = sent.split_last().unwrap();
    let elapsed = completion.duration_since(heartbeats[0]).as_secs();
    let count = u64::try_from(heartbeats.len()).unwrap();
    assert!(count <= 1 + elapsed / REPORT_INTERVAL, "{count} in {elapsed} s");
    let others = ["get", "create", "update", "delete"].map(|verb| proxy.count(verb, "evictions"));
    assert_eq!(others, [0; 4]);
    evictions.assert_valid(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_pods_that_are_evicted_at_once_the_busy_ones_stay_until_their_matches_end() {
    let mut guarded = Guarded::new("evict-fifty").await;
    let evictions = prepare(&mut guarded, SOON).await;
    let pods = guarded.launch(50, all_at_once(50)).await;
    let (busy, idle) = guarded.occupy(&pods, 3);
    join_all(pods.iter().map(|pod| evictions.request(pod, ANN))).await;
    guarded.await_replaced(&idle, 50).await;
    for pod in &idle {
        assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    }
    let waiting: BTreeSet<String> = busy.iter().cloned().collect();
    guarded.fleet.until_marked(&waiting).await;
    guarded
        .fleet
        .until(|status| {
            let listed = status.removal_requests.iter();
            let listed: BTreeSet<String> = listed.map(|entry| entry.pod_name.clone()).collect();
            listed == waiting && status.removal_pending_replicas == 3
        })
        .await;
    for pod in &busy {
        await_reason(&guarded, &evictions, pod).await;
    }
    guarded.assert_ended_once(&idle);

    for pod in &busy {
        guarded.fleet.nodes.pod(pod).set_players(0);
    }
    guarded.await_replaced(&pods, 50).await;
    for pod in &busy {
        assert_deleted_by_responder(&evictions.until(pod, Eviction::is_evicted).await);
    }
    guarded.fleet.settled(50).await;
    guarded.assert_ended_once(&pods);
    evictions.assert_valid(&[]).await;
}
