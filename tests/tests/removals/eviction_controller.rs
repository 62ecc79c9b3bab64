//! Stand-in for Kubernetes' eviction request controller and its default responder, on servers that lack them. It does
//! what `pkg/controller/evictionrequest` of Kubernetes 1.37 does, except that it writes no status of `EvictionRequests`
//! and ignores pods that have ended. Pods of these servers have no `evictionResponders`, so it takes those that
//! gamedeployment-operator registers.
//!
//! It keeps every version of each Eviction, to check what the operator wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Resource, ResourceExt};
use operator_tests::SOON;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared_api::names::eviction::{PRIORITY, RESPONDER};
use test_kit::eventually;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::guarded::{Guarded, evict};
use crate::lifecycle_crds::{
    self, ACTIVE, CANCELED, COMPLETED, Condition, Eviction, EvictionRequest, EvictionStatus, FAILED,
    INACTIVE, INTENT_EVICTION, INTENT_WITHDRAWN, INTERRUPTED, PodReference, Requester, TARGET_EVICTED,
    TargetResponder, eviction_manifest, eviction_request_manifest, revision,
};

/// Default responder, which calls `pods/eviction`.
pub(crate) const EVICTOR: &str = "imperative-eviction.k8s.io/evictor";
/// User of the default responder.
pub(crate) const EVICTOR_USER: &str =
    "system:serviceaccount:kube-system:imperative-eviction-responder-controller";
/// Time for which the controller waits for the completion after the pod is gone.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Responders of every pod with their priorities, highest first.
const RESPONDERS: [(&str, i32); 2] = [(RESPONDER, PRIORITY), (EVICTOR, 100)];
// Field managers of the controller and of the default responder.
const CONTROLLER: &str = "evictionrequest-controller";
const EVICTOR_MANAGER: &str = "imperative-evictor";
/// Time between two passes without an event.
const TICK: Duration = Duration::from_millis(500);
/// Time between two evictions by the default responder.
const RETRY: Duration = Duration::from_millis(500);
/// Shortest time between two heartbeats.
const HEARTBEAT: SignedDuration = SignedDuration::from_secs(20);

/// Running controller. It ends when it is dropped.
pub(crate) struct EvictionController {
    inner: Arc<Controller>,
    _tasks: JoinSet<()>,
}

struct Controller {
    evictions: Api<DynamicObject>,
    requests: Api<DynamicObject>,
    pods: Api<Pod>,
    /// Pods, for the default responder.
    evictor: Api<Pod>,
    /// Time for which it waits for the completion after the pod is gone.
    grace: Duration,
    changed: Notify,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// Every version of each Eviction in order, and the time at which it was seen.
    versions: Vec<(Eviction, Timestamp)>,
    /// Revisions at which pods were deleted, by UID.
    deleted: BTreeMap<String, u64>,
    /// Times at which pods were first found to be gone, by UID.
    gone: BTreeMap<String, Instant>,
    /// Names of the pods whose responder counts as silent for 20 minutes.
    silent: BTreeSet<String>,
    /// Times of the last evictions by the default responder, by the UID of the pod.
    tried: BTreeMap<String, Instant>,
    /// Codes of the responses to these evictions, by the name of the pod.
    codes: BTreeMap<String, Vec<u16>>,
    /// Error of the last pass.
    error: Option<String>,
}

/// Situation of the target of an Eviction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// The pod is gone, and the active responder may still report its completion.
    AwaitingCompletion,
    /// The pod is gone.
    Gone,
    /// All requesters have withdrawn.
    Withdrawn,
    /// The pod exists, and the heartbeats of the active responder are in time.
    Requested,
    /// The pod exists, and the active responder has been silent for too long.
    Silent,
}

impl EvictionController {
    /// Starts the controller in the namespace of a fleet, on a server that serves the API from then on. `grace`: time
    /// for which it waits for the completion after a pod is gone; the real one waits [`GRACE`].
    pub(crate) async fn start(guarded: &Guarded, grace: Duration) -> Self {
        let fleet = &guarded.fleet;
        lifecycle_crds::serve(fleet.control_plane).await;
        let inner = Arc::new(Controller {
            evictions: lifecycle_crds::evictions(fleet),
            requests: lifecycle_crds::eviction_requests(fleet),
            pods: fleet.pods(),
            evictor: guarded.pods_as(EVICTOR_USER),
            grace,
            changed: Notify::new(),
            memory: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        let controller = Arc::clone(&inner);
        let version = current_version(&inner.evictions).await;
        let keep = move |event| controller.keep_eviction(event);
        tasks.spawn(follow(inner.evictions.clone(), version, keep));
        let controller = Arc::clone(&inner);
        let version = current_version(&inner.pods).await;
        let keep = move |event| controller.keep_pod(event);
        tasks.spawn(follow(inner.pods.clone(), version, keep));
        let controller = Arc::clone(&inner);
        let version = current_version(&inner.requests).await;
        let wake = move |_: WatchEvent<DynamicObject>| controller.changed.notify_one();
        tasks.spawn(follow(inner.requests.clone(), version, wake));
        tasks.spawn(Arc::clone(&inner).run());
        Self { inner, _tasks: tasks }
    }

    /// Requests the eviction of a pod.
    pub(crate) async fn request(&self, pod: &str, requester: &str) {
        let found = self.inner.pods.get(pod).await.unwrap();
        let request = eviction_request_manifest(json!({
            "metadata": { "name": request_name(pod, requester) },
            "spec": {
                "intent": INTENT_EVICTION,
                "requester": requester,
                "target": { "pod": { "name": pod, "uid": found.uid() } },
            },
        }));
        let request: DynamicObject = serde_json::from_value(request).unwrap();
        let params = PostParams::default();
        self.inner.requests.create(&params, &request).await.unwrap();
    }

    /// Withdraws the request of a requester, which continues to exist.
    pub(crate) async fn withdraw(&self, pod: &str, requester: &str) {
        self.set_intent(pod, requester, INTENT_WITHDRAWN).await;
    }

    /// Requests the eviction again with a request that was withdrawn.
    pub(crate) async fn renew(&self, pod: &str, requester: &str) {
        self.set_intent(pod, requester, INTENT_EVICTION).await;
    }

    async fn set_intent(&self, pod: &str, requester: &str, intent: &str) {
        let patch = Patch::Merge(json!({ "spec": { "intent": intent } }));
        let (name, params) = (request_name(pod, requester), PatchParams::default());
        self.inner.requests.patch(&name, &params, &patch).await.unwrap();
    }

    /// Deletes the request of a requester, which withdraws it.
    pub(crate) async fn delete_request(&self, pod: &str, requester: &str) {
        let (name, params) = (request_name(pod, requester), DeleteParams::default());
        let _ = self.inner.requests.delete(&name, &params).await.unwrap();
    }

    /// Makes the controller treat gamedeployment-operator as silent about this pod for 20 minutes.
    pub(crate) fn declare_silent(&self, pod: &str) {
        self.inner.memory().silent.insert(pod.to_owned());
        self.inner.changed.notify_one();
    }

    /// Returns the codes of the responses to the default responder's evictions of a pod.
    pub(crate) fn codes(&self, pod: &str) -> Vec<u16> {
        self.inner.memory().codes.get(pod).cloned().unwrap_or_default()
    }

    /// Returns the Evictions of pods with this name, oldest first.
    pub(crate) async fn of(&self, pod: &str) -> Vec<Eviction> {
        let list = self.inner.evictions.list(&ListParams::default()).await.unwrap();
        let evictions = list.items.iter().map(Eviction::of);
        let mut found: Vec<Eviction> = evictions.filter(|eviction| eviction.pod.name == pod).collect();
        found.sort_by_key(|eviction| number(eviction, pod));
        found
    }

    /// Returns the newest Eviction of pods with this name.
    pub(crate) async fn newest(&self, pod: &str) -> Option<Eviction> {
        self.of(pod).await.pop()
    }

    /// Waits until the newest Eviction of pods with this name satisfies the predicate.
    pub(crate) async fn until(&self, pod: &str, wanted: impl Fn(&Eviction) -> bool) -> Eviction {
        eventually(SOON, || async {
            match self.newest(pod).await {
                Some(eviction) if wanted(&eviction) => Ok(eviction),
                other => Err((other, self.inner.memory().error.clone())),
            }
        })
        .await
    }

    /// Checks that every change of an Eviction follows the rules of the API, and that gamedeployment-operator completed
    /// none before its pod was deleted. `handed_over`: pods whose Eviction it may complete earlier.
    pub(crate) async fn assert_valid(&self, handed_over: &[&str]) {
        eventually(SOON, || async {
            let list = self.inner.evictions.list(&ListParams::default()).await;
            let list = list.map_err(|error| error.to_string())?;
            let newest: Vec<Eviction> = list.items.iter().map(Eviction::of).collect();
            let unseen = self.inner.unseen(&newest);
            if unseen.is_empty() {
                Ok(())
            } else {
                Err(unseen.join(", "))
            }
        })
        .await;
        let broken = self.inner.broken_rules();
        assert!(broken.is_empty(), "{broken:#?}");
        // The watch of pods may be behind that of Evictions.
        eventually(SOON, || async {
            let early = self.inner.completed_early(handed_over);
            if early.is_empty() { Ok(()) } else { Err(early) }
        })
        .await;
    }
}

impl Controller {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap()
    }

    fn keep_eviction(&self, event: WatchEvent<DynamicObject>) {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
            let version = (Eviction::of(&object), Timestamp::now());
            self.memory().versions.push(version);
        }
        self.changed.notify_one();
    }

    fn keep_pod(&self, event: WatchEvent<Pod>) {
        if let WatchEvent::Deleted(pod) = event {
            // This is the revision of the deletion, and not that of the last state.
            let revision = revision(&pod);
            self.memory().deleted.insert(pod.uid().unwrap(), revision);
            self.changed.notify_one();
        }
    }

    /// Returns the names of the Evictions whose version has not been kept yet.
    fn unseen(&self, newest: &[Eviction]) -> Vec<String> {
        let memory = self.memory();
        let is_kept = |eviction: &&Eviction| {
            let mut kept = memory.versions.iter().map(|(kept, _)| kept);
            kept.any(|kept| kept.uid == eviction.uid && kept.revision >= eviction.revision)
        };
        let unseen = newest.iter().filter(|eviction| !is_kept(eviction));
        unseen.map(|eviction| eviction.name.clone()).collect()
    }

    /// Returns the rules that changes of Evictions broke.
    fn broken_rules(&self) -> Vec<String> {
        let memory = self.memory();
        let initial = EvictionStatus::default();
        let mut last: BTreeMap<&str, &EvictionStatus> = BTreeMap::new();
        let mut broken = Vec::new();
        for (eviction, at) in &memory.versions {
            let known = last.insert(&eviction.uid, &eviction.status).unwrap_or(&initial);
            let rules = EvictionStatus::broken_rules(known, &eviction.status, *at);
            broken.extend(
                rules
                    .iter()
                    .map(|rule| format!("{} at {at}: {rule}", eviction.name)),
            );
        }
        broken
    }

    /// Describes the Evictions that gamedeployment-operator completed before their pod was deleted, without those of
    /// these pods.
    fn completed_early(&self, handed_over: &[&str]) -> Vec<String> {
        let memory = self.memory();
        let mut completed: BTreeMap<&str, &Eviction> = BTreeMap::new();
        for (eviction, _) in &memory.versions {
            let is_completed = eviction.own().completion_time.is_some();
            if is_completed && !handed_over.contains(&eviction.pod.name.as_str()) {
                completed.entry(&eviction.uid).or_insert(eviction);
            }
        }
        let deleted = |eviction: &Eviction| memory.deleted.get(&eviction.pod.uid).copied();
        let early = completed.values().filter(|eviction| {
            let deleted = deleted(eviction);
            deleted.is_none_or(|deleted| deleted >= eviction.revision)
        });
        let line = |eviction: &&Eviction| {
            let deleted = deleted(eviction);
            format!(
                "{} at {}, its pod at {deleted:?}",
                eviction.name, eviction.revision
            )
        };
        early.map(line).collect()
    }

    async fn run(self: Arc<Self>) {
        loop {
            let _ = tokio::time::timeout(TICK, self.changed.notified()).await;
            let error = self.step().await.err().map(|error| error.to_string());
            self.memory().error = error;
        }
    }

    /// Makes one pass over all requests and Evictions.
    async fn step(&self) -> kube::Result<()> {
        let all = ListParams::default();
        let requests = self.requests.list(&all).await?.items;
        let evictions = self.evictions.list(&all).await?.items;
        let pods = self.pods.list(&all).await?.items;
        let requests: Vec<EvictionRequest> = requests.iter().map(EvictionRequest::of).collect();
        let evictions: Vec<Eviction> = evictions.iter().map(Eviction::of).collect();
        let pods: BTreeMap<String, Pod> = pods.into_iter().map(|pod| (pod.name_any(), pod)).collect();
        self.create_evictions(&requests, &evictions, &pods).await?;
        for eviction in evictions
            .iter()
            .filter(|one| !one.is_evicted() && !one.is_failed())
        {
            let of_pod = requests.iter().filter(|request| request.pod == eviction.pod);
            let of_pod: Vec<&EvictionRequest> = of_pod.collect();
            let pod = pods.get(&eviction.pod.name);
            self.apply_metadata(eviction, &of_pod).await?;
            self.apply_status(eviction, &of_pod, pod).await?;
            self.act_as_default_responder(eviction, pod).await?;
        }
        Ok(())
    }

    /// Creates an Eviction for each pod whose eviction is wanted, unless it has one that has not failed.
    async fn create_evictions(
        &self,
        requests: &[EvictionRequest],
        evictions: &[Eviction],
        pods: &BTreeMap<String, Pod>,
    ) -> kube::Result<()> {
        let wanted = requests.iter().filter(|request| request.is_wanted);
        let wanted: BTreeMap<&PodReference, &EvictionRequest> =
            wanted.map(|request| (&request.pod, request)).collect();
        for (pod, request) in wanted {
            let mut of_pod = evictions.iter().filter(|eviction| eviction.pod == *pod);
            let exists = is_target(pods.get(&pod.name), pod);
            if !exists || !of_pod.all(Eviction::is_failed) {
                continue;
            }
            let numbers = evictions
                .iter()
                .filter_map(|eviction| number(eviction, &pod.name));
            let name = format!("pod-{}-{}", numbers.max().unwrap_or(0) + 1, pod.name);
            let labels = BTreeMap::from([(request.requester.as_str(), "requester")]);
            let manifest = eviction_manifest(json!({
                "metadata": { "name": name, "labels": labels, "ownerReferences": [request.owner] },
                "spec": { "target": { "pod": pod } },
            }));
            let (params, patch) = (PatchParams::apply(CONTROLLER).force(), Patch::Apply(&manifest));
            self.evictions.patch(&name, &params, &patch).await?;
        }
        Ok(())
    }

    /// Labels an Eviction with its requesters and responders, and adds its requests as owners.
    async fn apply_metadata(&self, eviction: &Eviction, requests: &[&EvictionRequest]) -> kube::Result<()> {
        let requesters = requests.iter().map(|request| request.requester.clone());
        let mut labels: BTreeMap<String, String> =
            requesters.map(|name| (name, "requester".to_owned())).collect();
        for (responder, _) in RESPONDERS {
            let role = if labels.contains_key(responder) {
                "requester-responder"
            } else {
                "responder"
            };
            labels.insert(responder.to_owned(), role.to_owned());
        }
        // The garbage collector deletes the Eviction after its last request. An owner is therefore never removed.
        let mut owners = eviction.owners.clone();
        for request in requests {
            if !owners.iter().any(|owner| owner.uid == request.owner.uid) {
                owners.push(request.owner.clone());
            }
        }
        if labels == eviction.labels && owners == eviction.owners {
            return Ok(());
        }
        let manifest = eviction_manifest(json!({
            "metadata": {
                "name": eviction.name, "uid": eviction.uid, "labels": labels, "ownerReferences": owners,
            },
            "spec": { "target": { "pod": eviction.pod } },
        }));
        let (params, patch) = (PatchParams::apply(CONTROLLER).force(), Patch::Apply(&manifest));
        let applied = self.evictions.patch(&eviction.name, &params, &patch);
        applied.await.map(drop)
    }

    /// Updates requesters, responders and conditions.
    async fn apply_status(
        &self,
        eviction: &Eviction,
        requests: &[&EvictionRequest],
        pod: Option<&Pod>,
    ) -> kube::Result<()> {
        let situation = self.situation(eviction, requests, pod);
        let mut status = eviction.status.clone();
        status.requesters = requesters(&status, requests);
        if status.target_responders.is_empty() && pod.is_some() {
            status.target_responders = RESPONDERS.map(inactive).to_vec();
        }
        let is_final = |target: &TargetResponder| ![INACTIVE, ACTIVE].contains(&target.state.as_str());
        let is_exhausted = status.target_responders.last().is_some_and(is_final);
        take_turns(&mut status, situation);
        let now = this_second();
        let conditions = conditions(&eviction.status, situation, is_exhausted, now);
        status.conditions = conditions.to_vec();
        let mut responders = Vec::new();
        let mut is_started = false;
        for target in &status.target_responders {
            let known = status.responder(&target.name);
            let started = known.and_then(|entry| entry.start_time);
            let starts = started.is_none() && target.state == ACTIVE;
            let mut entry = json!({ "name": target.name });
            if let Some(start) = started.or_else(|| starts.then_some(now)) {
                entry["startTime"] = json!(start);
            }
            is_started |= starts || known.is_none();
            responders.push(entry);
        }
        if status == eviction.status && !is_started {
            return Ok(());
        }
        let fields = json!({
            "observedGeneration": eviction.generation,
            "conditions": status.conditions,
            "requesters": status.requesters,
            "targetResponders": status.target_responders,
            "responders": responders,
        });
        self.patch_status(eviction, CONTROLLER, fields).await
    }

    async fn patch_status(&self, eviction: &Eviction, manager: &str, status: Value) -> kube::Result<()> {
        let manifest = eviction_manifest(json!({
            "metadata": { "name": eviction.name, "uid": eviction.uid }, "status": status,
        }));
        let (params, patch) = (PatchParams::apply(manager).force(), Patch::Apply(&manifest));
        let applied = self.evictions.patch_status(&eviction.name, &params, &patch);
        applied.await.map(drop)
    }

    fn situation(&self, eviction: &Eviction, requests: &[&EvictionRequest], pod: Option<&Pod>) -> Situation {
        let mut memory = self.memory();
        let active = active(&eviction.status);
        if !is_target(pod, &eviction.pod) {
            let first = memory.gone.entry(eviction.pod.uid.clone());
            let is_late = first.or_insert_with(Instant::now).elapsed() >= self.grace;
            let entry = active.and_then(|name| eviction.status.responder(name));
            let may_report = entry.is_some_and(|entry| entry.completion_time.is_none());
            return if may_report && !is_late {
                Situation::AwaitingCompletion
            } else {
                Situation::Gone
            };
        }
        if !requests.iter().any(|request| request.is_wanted) {
            Situation::Withdrawn
        } else if active == Some(RESPONDER) && memory.silent.contains(&eviction.pod.name) {
            Situation::Silent
        } else {
            Situation::Requested
        }
    }

    /// Evicts the pod while it is the default responder's turn.
    async fn act_as_default_responder(&self, eviction: &Eviction, pod: Option<&Pod>) -> kube::Result<()> {
        let entry = eviction.status.responder(EVICTOR);
        let is_open = entry.is_some_and(|entry| entry.completion_time.is_none());
        let target = &eviction.pod;
        if !is_open || eviction.state(EVICTOR) != ACTIVE {
            return Ok(());
        }
        let now = this_second();
        if !is_target(pod, target) {
            let report = json!({
                "name": EVICTOR, "heartbeatTime": now, "completionTime": now,
                "message": "the pod was evicted",
            });
            let reports = json!({ "responders": [report] });
            return self.patch_status(eviction, EVICTOR_MANAGER, reports).await;
        }
        if !self.is_eviction_due(&target.uid) {
            return Ok(());
        }
        let manifest = json!({
            "metadata": { "name": target.name }, "deleteOptions": { "preconditions": { "uid": target.uid } },
        });
        let code = evict(&self.evictor, &manifest).await;
        let name = target.name.clone();
        self.memory().codes.entry(name).or_default().push(code);
        let last = entry.and_then(|entry| entry.heartbeat_time);
        if last.is_some_and(|last| now.duration_since(last) < HEARTBEAT) {
            return Ok(());
        }
        let message = format!("the eviction was answered with {code}");
        let report = json!({ "name": EVICTOR, "heartbeatTime": now, "message": message });
        let reports = json!({ "responders": [report] });
        self.patch_status(eviction, EVICTOR_MANAGER, reports).await
    }

    fn is_eviction_due(&self, uid: &str) -> bool {
        let mut memory = self.memory();
        let last = memory.tried.get(uid);
        let is_due = last.is_none_or(|last| last.elapsed() >= RETRY);
        if is_due {
            memory.tried.insert(uid.to_owned(), Instant::now());
        }
        is_due
    }
}

/// Returns the present time as the API shows it: in whole seconds.
fn this_second() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap()
}

/// Returns the name of a requester's request for a pod.
fn request_name(pod: &str, requester: &str) -> String {
    format!("{pod}-{}", requester.replace(['/', '.'], "-"))
}

/// Returns the number in the name of an Eviction of pods with this name.
fn number(eviction: &Eviction, pod: &str) -> Option<u32> {
    let rest = eviction.name.strip_prefix("pod-")?;
    rest.strip_suffix(pod)?.strip_suffix('-')?.parse().ok()
}

/// Whether a pod is the target, and not another one of the same name.
fn is_target(pod: Option<&Pod>, target: &PodReference) -> bool {
    pod.is_some_and(|pod| pod.uid().as_ref() == Some(&target.uid))
}

fn inactive((name, priority): (&str, i32)) -> TargetResponder {
    TargetResponder {
        name: name.to_owned(),
        priority,
        state: INACTIVE.to_owned(),
    }
}

/// Returns the name of the active responder.
fn active(status: &EvictionStatus) -> Option<&str> {
    let mut targets = status.target_responders.iter();
    let target = targets.find(|target| target.state == ACTIVE)?;
    Some(&target.name)
}

/// Returns the requesters: those with a request, and earlier ones, which have withdrawn theirs.
fn requesters(status: &EvictionStatus, requests: &[&EvictionRequest]) -> Vec<Requester> {
    let earlier = status.requesters.iter().map(|requester| (&requester.name, false));
    let mut wants: BTreeMap<&String, bool> = earlier.collect();
    for request in requests {
        *wants.entry(&request.requester).or_default() |= request.is_wanted;
    }
    let requester = |(name, is_wanted): (&String, bool)| Requester {
        name: name.clone(),
        intent: if is_wanted {
            INTENT_EVICTION
        } else {
            INTENT_WITHDRAWN
        }
        .to_owned(),
    };
    wants.into_iter().map(requester).collect()
}

/// Ends the turn of the active responder, and begins that of the next one, as the situation requires.
fn take_turns(status: &mut EvictionStatus, situation: Situation) {
    let targets = &status.target_responders;
    let with_state = |state: &str| targets.iter().position(|target| target.state == state);
    let active = with_state(ACTIVE);
    let next = match situation {
        Situation::Requested | Situation::Silent => active.or_else(|| with_state(INACTIVE)),
        Situation::AwaitingCompletion | Situation::Gone | Situation::Withdrawn => active,
    };
    let Some(index) = next else { return };
    let entry = status.responder(&targets[index].name);
    let is_completed = entry.is_some_and(|entry| entry.completion_time.is_some());
    let state = match (situation, is_completed) {
        (Situation::Withdrawn, _) => CANCELED,
        (
            Situation::AwaitingCompletion | Situation::Gone | Situation::Requested | Situation::Silent,
            true,
        ) => COMPLETED,
        (Situation::Gone | Situation::Silent, false) => INTERRUPTED,
        (Situation::AwaitingCompletion | Situation::Requested, false) => ACTIVE,
    };
    state.clone_into(&mut status.target_responders[index].state);
    let hands_over = matches!(situation, Situation::Requested | Situation::Silent) && state != ACTIVE;
    if let Some(following) = status.target_responders.get_mut(index + 1)
        && hands_over
    {
        ACTIVE.clone_into(&mut following.state);
    }
}

/// Returns the conditions. `is_exhausted`: whether the last responder has ended.
fn conditions(
    known: &EvictionStatus,
    situation: Situation,
    is_exhausted: bool,
    now: Timestamp,
) -> [Condition; 2] {
    let failed = |reason| [(FAILED, true, reason), (TARGET_EVICTED, false, "EvictionFailed")];
    let wanted = match situation {
        Situation::Gone => [(FAILED, false, "Succeeded"), (TARGET_EVICTED, true, "PodDeleted")],
        Situation::Withdrawn => failed("CanceledDueToNoRequesters"),
        Situation::Requested | Situation::Silent if is_exhausted => failed("NoFurtherResponder"),
        Situation::AwaitingCompletion | Situation::Requested | Situation::Silent => {
            [FAILED, TARGET_EVICTED].map(|type_| (type_, false, "AwaitingEviction"))
        }
    };
    wanted.map(|(type_, is_true, reason)| {
        let status = if is_true { "True" } else { "False" };
        let mut conditions = known.conditions.iter();
        let same = conditions.find(|one| one.type_ == type_ && one.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            // Server-side apply turns an empty text into null in Kubernetes 1.20.
            message: reason.to_owned(),
            last_transition_time: same.map_or(now, |same| same.last_transition_time),
        }
    })
}

/// Returns the current resource version of a list.
async fn current_version<K>(api: &Api<K>) -> String
where
    K: Clone + DeserializeOwned + Debug,
{
    let list = api.list(&ListParams::default().limit(1)).await.unwrap();
    list.metadata.resource_version.unwrap()
}

/// Passes on every event about objects of a kind since a version.
async fn follow<K>(api: Api<K>, mut version: String, take: impl Fn(WatchEvent<K>) + Send)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let params = WatchParams::default().timeout(290);
    loop {
        let mut watch = api.watch(&params, &version).await.unwrap().boxed();
        while let Ok(Some(event)) = watch.try_next().await {
            match &event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    version = object.resource_version().unwrap();
                }
                WatchEvent::Bookmark(bookmark) => version.clone_from(&bookmark.metadata.resource_version),
                WatchEvent::Error(_) => {}
            }
            take(event);
        }
    }
}
