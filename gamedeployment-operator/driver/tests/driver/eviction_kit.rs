//! Fixtures of evictions: workloads with pods that are evicted, and what others do to them.

use gamedeployment_core::pod::{Pod, PodPhase};
use gamedeployment_driver::request::{RequestError, Response};
use gamedeployment_driver::watch_event::{Event, Eviction, Template, WatchEvent};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use serde_json::json;
use shared_api::game_deployment::RemovalRequestStatus;
use shared_api::names::pod as names;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use crate::eviction_api::Received;
use crate::kit::*;
use crate::server::{Server, Shown};

/// Name of the Eviction, if there is only one.
pub(crate) const EVICTION: &str = "pod-1-a";
pub(crate) const REQUESTER: &str = "acme.io/drain";
// Messages.
pub(crate) const REQUESTED: &str = "waiting for the GameDeployment to delete the pod; see its status";
pub(crate) const WITHDRAWN: &str = "all requesters have withdrawn their requests";
pub(crate) const BEING_DELETED: &str = "the pod is being deleted";
pub(crate) const DELETED: &str = "the pod is deleted";
pub(crate) const NO_HOOK: &str = "the GameDeployment does not require a PreDelete hook for this pod";
pub(crate) const UNMANAGED: &str = "no GameDeployment manages this pod, so this responder sends no heartbeat";

/// A workload with this policy and a hook that cannot run, because its template does not exist: a pod whose removal is
/// requested stays.
pub(crate) fn workload(replicas: i32, policy: &str) -> Server {
    let mut server = Server::new(replicas);
    server.shown = Shown::AllWrites;
    let fleet = &mut server.fleet;
    fleet.metadata.finalizers = (policy == "Ask").then(|| vec![ASK_BEFORE_REMOVAL.to_owned()]);
    fleet.spec.disruption = serde_json::from_value(json!({ "policy": policy })).unwrap();
    fleet.spec.pre_delete_update_strategy =
        serde_json::from_value(json!({ "hook": { "templateName": "ask" } })).unwrap();
    server
}

/// Lets the driver create the pods of the workload, and lets them serve players.
pub(crate) fn with_players(mut server: Server) -> Server {
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), server.fleet.clone());
    server.play(2, 6);
    for name in pods(&server) {
        let serve = |pod: &mut Pod| {
            pod.node = Some("node-1".to_owned());
            pod.phase = PodPhase::Running;
            pod.ready_since = Some(at(4).wall);
        };
        server.change_pod(&name, serve).unwrap();
        server.show(&name);
    }
    server.play(6, 9);
    server
}

/// A workload with the policy `Ask` and pods with players. Evictions are not listed yet.
pub(crate) fn guarded(replicas: i32) -> Server {
    with_players(workload(replicas, "Ask"))
}

/// Lists these Evictions.
pub(crate) fn list(server: &mut Server, evictions: &[&str], second: u64) {
    let stored = &server.evictions.stored;
    let evictions = evictions.iter().map(|name| (key(name), stored[*name].clone()));
    for event in listed(evictions.collect(), WatchEvent::Eviction) {
        server.watch(event, second);
    }
}

/// A workload like [`guarded`], before its first Eviction.
pub(crate) fn responding(replicas: i32) -> Server {
    let mut server = guarded(replicas);
    list(&mut server, &[], 9);
    server
}

/// The names of the pods.
pub(crate) fn pods(server: &Server) -> Vec<String> {
    server.pods.keys().cloned().collect()
}

/// Returns an Eviction whose active responder is the operator since this second.
pub(crate) fn eviction_of(pod: &Pod, second: u64) -> Eviction {
    Eviction {
        uid: format!("eviction-of-{}-{second}", pod.uid),
        pod_name: pod.name.clone(),
        pod_uid: pod.uid.clone(),
        is_active: true,
        requesters: vec![REQUESTER.to_owned()],
        started: Some(at(second).wall),
        heartbeat: None,
        message: None,
    }
}

/// Creates or replaces an Eviction, and lets the watch show it.
pub(crate) fn store(server: &mut Server, name: &str, eviction: Eviction, second: u64) {
    server.evictions.stored.insert(name.to_owned(), eviction);
    let event = server.evictions.event(name);
    server.watch(event, second);
}

/// Changes an Eviction, and lets the watch show it.
pub(crate) fn update(server: &mut Server, name: &str, second: u64, change: impl FnOnce(&mut Eviction)) {
    change(server.evictions.stored.get_mut(name).unwrap());
    let event = server.evictions.event(name);
    server.watch(event, second);
}

/// Lets the pod of a workload serve players, and evicts it from second 10. Returns its name.
pub(crate) fn evict(server: Server) -> (Server, String) {
    let mut server = with_players(server);
    list(&mut server, &[], 9);
    let pod = pods(&server).remove(0);
    let eviction = eviction_of(&server.pods[&pod], 10);
    store(&mut server, EVICTION, eviction, 10);
    server.workload_reads = 0;
    (server, pod)
}

/// A workload with the policy `Ask` whose only pod is evicted from second 10, and the name of this pod.
pub(crate) fn evicted() -> (Server, String) {
    evict(workload(1, "Ask"))
}

/// A workload without desired pods. Its pod is shown later.
pub(crate) fn with_a_hidden_pod() -> (Server, Pod) {
    let mut server = workload(0, "Ask");
    let mut pod = pod_with_a_player("5", &json!({}));
    let guard = (
        names::REMOVAL_GUARD.to_owned(),
        names::REMOVAL_GUARD_ASK.to_owned(),
    );
    pod.labels.extend([guard]);
    server.pods.insert(pod.name.clone(), pod.clone());
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), server.fleet.clone());
    server.play(2, 9);
    list(&mut server, &[], 9);
    (server, pod)
}

/// Plays these seconds, as far as the driver has work to do by its own account.
pub(crate) fn play(server: &mut Server, from: u64, to: u64) {
    let mut second = from;
    while second < to {
        server.play_at(server.now(second));
        second = server.deadline().unwrap_or(to).max(second + 1);
    }
}

/// Deletes a pod, and lets the watch show it.
pub(crate) fn delete(server: &mut Server, pod: &str, second: u64) {
    let gone = server.pods.remove(pod).unwrap();
    let event = Event::Delete(key(pod), gone.uid);
    server.watch(WatchEvent::Pod(event), second);
}

/// Lets the watch show a pod.
pub(crate) fn show_pod(server: &mut Server, pod: &str, second: u64) {
    let event = Event::Apply(key(pod), server.pods[pod].clone());
    server.watch(WatchEvent::Pod(event), second);
}

/// Changes the reason why the hook cannot run.
pub(crate) fn change_problem(server: &mut Server, problem: &str, second: u64) {
    server.version += 1;
    let (uid, version) = ("t".to_owned(), server.version.to_string());
    let template = Template::new(uid, version, Err(problem.to_owned()), None);
    server.watch(WatchEvent::Template(Event::Apply(key("ask"), template)), second);
}

pub(crate) fn set_replicas(server: &mut Server, replicas: i32, second: u64) {
    server.fleet.spec.replicas = Some(replicas);
    server.fleet.metadata.generation = server.fleet.metadata.generation.map(|known| known + 1);
    let workload = server.workload();
    server.watch(WatchEvent::Workload(Event::Apply(key("fleet"), workload)), second);
}

/// Returns the requests in the status.
pub(crate) fn requests_in_status(server: &Server) -> &[RemovalRequestStatus] {
    let status = server.fleet.status.as_ref();
    let requests = status.map(|status| status.removal_requests.as_slice());
    requests.unwrap_or_default()
}

/// Returns the reason in the status why the first pod with a request stays.
pub(crate) fn reason(server: &Server) -> String {
    let requests = requests_in_status(server);
    requests[0].message.clone().unwrap_or_default()
}

/// Whether a pod is selected for deletion.
pub(crate) fn is_selected(server: &Server, pod: &str) -> bool {
    server.pods[pod].annotation(names::DELETING) == Some("true")
}

/// Asserts that a report without a completion has this message and a heartbeat at the time of the report.
#[track_caller]
pub(crate) fn assert_heartbeat(received: &Received, message: &str) {
    let report = &received.report;
    assert_eq!(report.message, message);
    assert_eq!(report.heartbeat, Some(at(received.second).wall));
    assert_eq!(report.completion, None);
}

/// Asserts that a completion with this message has arrived within this many seconds.
#[track_caller]
pub(crate) fn assert_completion(received: &Received, message: &str, from: u64, within: u64) {
    let report = &received.report;
    assert_eq!(report.message, message);
    assert!(
        (from..=from + within).contains(&received.second),
        "{received:?} instead of {from}"
    );
    assert_eq!(report.completion, Some(at(received.second).wall));
}

/// Asserts that no report has completed an Eviction.
#[track_caller]
pub(crate) fn assert_not_completed(server: &Server) {
    let completions = server.evictions.completions();
    assert!(completions.is_empty(), "{completions:#?}");
}

/// Answers the reports that wait for a response.
pub(crate) fn respond(server: &mut Server, response: &Result<Response, RequestError>, second: u64) {
    let now = server.now(second);
    for id in std::mem::take(&mut server.evictions.pending) {
        let response = DriverInput::Response(id, response.clone());
        server.driver.handle(response, now);
    }
}
