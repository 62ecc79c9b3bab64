//! Removal guard: evictions and deletions that it denies and records, and those that it allows.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use operator_tests::fleet::{GAME, game, hooked};
use operator_tests::{SOON, assert_has, merge};
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK, REMOVAL_REQUESTED, SKIP_HOOK};
use shared_api::names::workload::{ASK_BEFORE_REMOVAL, DELETION_ALLOW};
use shared_api::removal_request::{RemovalRequest, RemovalRequests, RemovalType};
use test_kit::node::{Behaviour, Options, PodSelector};
use test_kit::process::output_of;
use test_kit::{Nodes, eventually};

use crate::installation::{Installation, Replica, run};
use crate::shared;

mod finalizers;
mod labels;
mod namespaces;
mod repetitions;

const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
const JANE: &str = "jane";
const EVICTION: &str = "admission webhook \"evictions.hookgate.tkex.tencent.com\" denied the request: ";
const DELETION: &str = "admission webhook \"removals.hookgate.tkex.tencent.com\" denied the request: ";

/// A GameDeployment without an operator, and a node for its pods, in a namespace with the removal guard.
struct Games<'i> {
    installation: &'i Installation<'static>,
    namespace: String,
    nodes: Nodes,
    /// Reference from a pod to the GameDeployment.
    owner: Value,
}

async fn installed() -> (Installation<'static>, Replica) {
    Installation::with_removal_guard(shared().await, OPERATOR).await
}

/// Returns the parameters of a deletion with this UID as precondition.
fn with_uid(pod: &Pod) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: pod.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}

/// Returns the status in the API server's response.
fn status(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}

impl<'i> Games<'i> {
    async fn new(installation: &'i Installation<'static>, namespace: &str) -> Self {
        let control_plane = installation.control_plane;
        installation.watch_over(namespace).await;
        let label = format!("{REMOVAL_GUARD}={REMOVAL_GUARD_ENABLED}");
        installation.must(&["label", "namespace", namespace, &label], "");
        let nodes = Nodes::start(control_plane, namespace, Options::default())
            .await
            .unwrap();
        let mut spec = hooked("empty");
        merge(&mut spec, json!({ "disruption": { "policy": "Ask" } }));
        let workload = game(0, spec);
        let workload: GameDeployment = serde_json::from_value(workload).unwrap();
        let workloads: Api<GameDeployment> = Api::namespaced(control_plane.client(), namespace);
        let workload = workloads.create(&PostParams::default(), &workload).await.unwrap();
        let owner = json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": GAME,
            "uid": workload.metadata.uid, "controller": true, "blockOwnerDeletion": true,
        });
        let games = Self {
            installation,
            namespace: namespace.to_owned(),
            nodes,
            owner,
        };
        games.await_guard().await;
        games
    }

    /// Waits until the API server calls the webhooks for this namespace: it learns of labels through a watch.
    async fn await_guard(&self) {
        let unschedulable = Behaviour::Unschedulable;
        self.nodes.behave(PodSelector::pod("probe"), unschedulable);
        self.create(&self.pod("probe")).await;
        let dry_run = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let unlabelled = json!({ "metadata": { "labels": { REMOVAL_GUARD: null } } });
        eventually(SOON, || async {
            let patch = Patch::Merge(&unlabelled);
            match self.pods(JANE).patch("probe", &dry_run, &patch).await {
                Ok(_) => Err("not denied"),
                Err(_) => Ok(()),
            }
        })
        .await;
        self.delete(JANE, "probe", &DeleteParams::default())
            .await
            .unwrap();
        self.await_deleted("probe").await;
    }

    /// Returns the client of a user who may do everything.
    fn client(&self, user: &str) -> Client {
        let mut config = self.installation.control_plane.config();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
        // Otherwise the client would retry after 429.
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Returns the pods of the namespace, for such a client.
    fn pods(&self, user: &str) -> Api<Pod> {
        Api::namespaced(self.client(user), &self.namespace)
    }

    /// Returns a guarded pod of the GameDeployment.
    fn pod(&self, name: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "labels": { "app": GAME, REMOVAL_GUARD: REMOVAL_GUARD_ASK },
                "ownerReferences": [self.owner],
            },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }], "terminationGracePeriodSeconds": 5 },
        })
    }

    async fn create(&self, pod: &Value) -> Pod {
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        let created = self.pods(JANE).create(&PostParams::default(), &pod).await;
        created.unwrap()
    }

    /// Removes a pod, which is "evicted" or "deleted", and waits until it is gone.
    async fn remove(&self, removal: &str, name: &str) {
        let removed = match removal {
            "evicted" => self.evict(JANE, name).await,
            "deleted" => self.delete(JANE, name, &DeleteParams::default()).await,
            other => panic!("{other}"),
        };
        removed.unwrap();
        self.await_deleted(name).await;
    }

    /// Creates a pod, and waits until it is ready.
    async fn run(&self, pod: &Value) -> Pod {
        let name = self.create(pod).await.metadata.name.unwrap();
        let ready = self.nodes.pod(&name).await_that(SOON, |pod| pod.ready).await;
        ready.unwrap();
        self.get(&name).await
    }

    async fn get(&self, name: &str) -> Pod {
        self.pods(JANE).get(name).await.unwrap()
    }

    async fn delete(&self, user: &str, name: &str, params: &DeleteParams) -> Result<(), Status> {
        let deleted = self.pods(user).delete(name, params).await;
        deleted.map(drop).map_err(status)
    }

    async fn evict(&self, user: &str, name: &str) -> Result<(), Status> {
        self.evict_with(user, name, false, json!({})).await
    }

    /// Evicts a pod, perhaps as a dry run, with these options in the Eviction.
    async fn evict_with(&self, user: &str, name: &str, dry_run: bool, options: Value) -> Result<(), Status> {
        let version = if self.installation.control_plane.minor_version() < 22 {
            "policy/v1beta1"
        } else {
            "policy/v1"
        };
        let eviction = json!({
            "apiVersion": version, "kind": "Eviction", "metadata": { "name": name }, "deleteOptions": options,
        });
        let params = PostParams {
            dry_run,
            ..PostParams::default()
        };
        let pods = self.pods(user);
        let evicted = pods.create_subresource::<Value, Value>("eviction", name, &params, &eviction);
        evicted.await.map(drop).map_err(status)
    }

    async fn patch(&self, user: &str, name: &str, metadata: Value) -> Result<(), Status> {
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let patched = self.pods(user).patch(name, &PatchParams::default(), &patch).await;
        patched.map(drop).map_err(status)
    }

    async fn await_deleted(&self, name: &str) {
        eventually(SOON, || async {
            match self.pods(JANE).get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(pod) => Err(pod.metadata),
            }
        })
        .await;
    }

    /// Returns the recorded requests for a pod.
    async fn requests(&self, name: &str) -> Vec<RemovalRequest> {
        let annotations = self.get(name).await.metadata.annotations.unwrap_or_default();
        let Some(text) = annotations.get(REMOVAL_REQUESTED) else {
            return Vec::new();
        };
        RemovalRequests::parse(text).unwrap().iter().cloned().collect()
    }

    /// Deletes the namespace, perhaps as a dry run.
    async fn delete_namespace(&self, dry_run: bool) -> Result<(), Status> {
        let params = DeleteParams {
            dry_run,
            ..DeleteParams::default()
        };
        let namespaces: Api<Namespace> = Api::all(self.client(JANE));
        let deleted = namespaces.delete(&self.namespace, &params).await;
        deleted.map(drop).map_err(status)
    }

    /// Starts the deletion of the GameDeployment, which these finalizers keep.
    fn delete_with_finalizers(&self, finalizers: &[&str]) {
        self.patch_workload(&json!({ "metadata": { "labels": { DELETION_ALLOW: "Always" } } }));
        self.set_finalizers(finalizers);
        self.kubectl(&["delete", "gamedeployment", GAME, "--wait=false"])
            .unwrap();
    }

    /// Sets the finalizers of the GameDeployment, as its operator may.
    fn set_finalizers(&self, finalizers: &[&str]) {
        let user = ["--as", OPERATOR, "--as-group=system:masters"];
        self.patch_workload_with(&json!({ "metadata": { "finalizers": finalizers } }), &user);
    }

    /// Changes the spec of the GameDeployment.
    fn change(&self, spec: &Value) {
        self.patch_workload(&json!({ "spec": spec }));
    }

    fn patch_workload(&self, patch: &Value) {
        self.patch_workload_with(patch, &[]);
    }

    fn patch_workload_with(&self, patch: &Value, flags: &[&str]) {
        let patch = patch.to_string();
        let command = ["patch", "gamedeployment", GAME, "--type=merge", "--patch", &patch];
        self.kubectl(&[&command[..], flags].concat()).unwrap();
    }

    /// Returns the sentence about a pod that is kept.
    fn kept(&self, pod: &str) -> String {
        format!(
            "pod {pod} is kept until its PreDelete hook succeeds; it is then deleted and replaced. Details: kubectl \
             game why pod/{pod} -n {}",
            self.namespace
        )
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.installation.control_plane.kubectl();
        command.args(["--namespace", &self.namespace]).args(arguments);
        run(command, "")
    }
}

#[tokio::test]
async fn an_eviction_is_denied_with_429_and_recorded_once_although_it_is_repeated() {
    let (installation, replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    let mut versions = Vec::new();
    for _ in 0..3 {
        let error = games.evict(JANE, "arena-0").await.unwrap_err();
        assert_eq!(error.message, format!("{EVICTION}{}", games.kept("arena-0")));
        assert_eq!((error.code, error.reason.as_str()), (429, "TooManyRequests"));
        let seconds = error.details.map_or(0, |details| details.retry_after_seconds);
        assert_eq!(seconds, 0, "kubectl drain would repeat the eviction in silence");
        versions.push(games.get("arena-0").await.metadata.resource_version);
    }
    assert!(
        versions.iter().all(|version| *version == versions[0]),
        "{versions:?}"
    );
    let requests = games.requests("arena-0").await;
    assert_eq!(requests.len(), 1, "{requests:?}");
    let request = &requests[0];
    assert_eq!(
        (request.requester.as_str(), request.type_),
        (JANE, RemovalType::Eviction)
    );
    assert_eq!((request.renew_time, request.expiration_time), (None, None));
    let labels = [
        "path=\"removals\"",
        "kind=\"Eviction\"",
        "operation=\"create\"",
        "outcome=\"pending\"",
    ];
    assert_eq!(
        replica.metric("hookgate_admission_requests_total", &labels).await,
        3
    );
}

#[tokio::test]
async fn a_deletion_is_denied_with_403_and_recorded_once() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let pod = games.run(&games.pod("arena-0")).await;
    let kept = games.kept("arena-0");
    let message =
        format!("{DELETION}{kept}. The request is recorded, and expires within 15m unless it is repeated");
    let at_once = DeleteParams::default().grace_period(0);
    let mut versions = Vec::new();
    for params in [DeleteParams::default(), at_once, with_uid(&pod)] {
        let error = games.delete(JANE, "arena-0", &params).await.unwrap_err();
        assert_eq!((error.code, &error.message), (403, &message));
        versions.push(games.get("arena-0").await.metadata.resource_version);
    }
    assert!(
        versions.iter().all(|version| *version == versions[0]),
        "{versions:?}"
    );
    // The reviews of a collection have no name.
    let collection = games.pods("collector");
    let deleted = collection
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    assert_eq!(deleted.map(drop).map_err(status).unwrap_err().message, message);
    let requests = games.requests("arena-0").await;
    let found: Vec<_> = requests
        .iter()
        .map(|request| (request.requester.as_str(), request.type_, request.renew_time))
        .collect();
    let deletion = RemovalType::Delete;
    assert_eq!(found, [(JANE, deletion, None), ("collector", deletion, None)]);
}

#[tokio::test]
async fn dry_runs_are_denied_and_not_recorded() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    let kept = games.kept("arena-0");
    for (in_query, options) in [(true, json!({})), (false, json!({ "dryRun": ["All"] }))] {
        let error = games
            .evict_with(JANE, "arena-0", in_query, options)
            .await
            .unwrap_err();
        assert_eq!((error.code, error.message), (429, format!("{EVICTION}{kept}")));
    }
    let params = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    let error = games.delete(JANE, "arena-0", &params).await.unwrap_err();
    assert_eq!((error.code, error.message), (403, format!("{DELETION}{kept}")));
    assert!(games.requests("arena-0").await.is_empty());
}

/// The operator may not have set the label yet.
#[tokio::test]
async fn an_eviction_of_a_pod_without_the_label_is_denied_unless_the_policy_allows_it() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let mut unlabelled = games.pod("arena-0");
    unlabelled["metadata"]["labels"] = json!({ "app": GAME });
    games.run(&unlabelled).await;
    let error = games.evict(JANE, "arena-0").await.unwrap_err();
    assert_eq!(
        (error.code, error.message),
        (429, format!("{EVICTION}{}", games.kept("arena-0")))
    );
    assert_eq!(games.requests("arena-0").await.len(), 1);
    games.change(&json!({ "disruption": { "policy": "Unguarded" } }));
    games.evict(JANE, "arena-0").await.unwrap();
    games.await_deleted("arena-0").await;
}

/// Otherwise, the operator would delete the pod at once, and the budget would not count.
#[tokio::test]
async fn a_budget_alone_decides_on_the_evictions_of_pods_without_a_hook() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    for name in ["arena-0", "arena-1"] {
        games.run(&games.pod(name)).await;
    }
    games.change(&json!({ "preDeleteUpdateStrategy": null }));
    let selector = format!("--selector=app={GAME}");
    let budget = [
        "create",
        "poddisruptionbudget",
        "all",
        &selector,
        "--min-available=9",
    ];
    games.kubectl(&budget).unwrap();
    let error = games.evict(JANE, "arena-0").await.unwrap_err();
    assert_eq!(error.code, 429);
    assert_has(&error.message, "disruption budget");
    assert!(games.requests("arena-0").await.is_empty());
    games.kubectl(&["delete", "poddisruptionbudget", "all"]).unwrap();
    games.evict(JANE, "arena-0").await.unwrap();
    games.await_deleted("arena-0").await;
    games
        .delete(JANE, "arena-1", &DeleteParams::default())
        .await
        .unwrap();
    games.await_deleted("arena-1").await;
}

#[tokio::test]
async fn pods_without_a_game_deployment_are_removed_and_those_without_the_label_can_be_deleted() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    for removal in ["evicted", "deleted"] {
        let mut unlabelled = games.pod(&format!("unlabelled-{removal}"));
        unlabelled["metadata"]["labels"] = json!({ "app": GAME });
        let mut other = games.pod(&format!("other-value-{removal}"));
        other["metadata"]["labels"][REMOVAL_GUARD] = json!("Never");
        let mut orphan = games.pod(&format!("orphan-{removal}"));
        orphan["metadata"]["ownerReferences"] = json!([]);
        let removed = if removal == "evicted" {
            vec![orphan]
        } else {
            vec![unlabelled, other, orphan]
        };
        for pod in removed {
            let name = games.run(&pod).await.metadata.name.unwrap();
            games.remove(removal, &name).await;
        }
    }
}

#[tokio::test]
async fn pods_that_have_ended_have_no_node_or_skip_their_hooks_are_removed() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    for removal in ["evicted", "deleted"] {
        let [finished, unscheduled, skipped] =
            ["finished", "unscheduled", "skipped"].map(|name| format!("{name}-{removal}"));
        games.run(&games.pod(&finished)).await;
        games.nodes.pod(&finished).succeed();
        let succeeded = games.nodes.pod(&finished);
        succeeded
            .await_that(SOON, |pod| pod.phase == "Succeeded")
            .await
            .unwrap();
        games
            .nodes
            .behave(PodSelector::pod(&unscheduled), Behaviour::Unschedulable);
        games.create(&games.pod(&unscheduled)).await;
        let pod = games.run(&games.pod(&skipped)).await;
        let annotation = json!({ "annotations": { SKIP_HOOK: pod.metadata.uid } });
        games.patch(JANE, &skipped, annotation).await.unwrap();
        for name in [finished, unscheduled, skipped] {
            games.remove(removal, &name).await;
        }
    }
}

#[tokio::test]
async fn only_the_operator_deletes_a_guarded_pod_and_only_with_its_uid_as_precondition() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let mut pod = games.pod("arena-0");
    pod["metadata"]["finalizers"] = json!(["example.com/kept"]);
    let pod = games.run(&pod).await;
    for (user, params) in [(OPERATOR, DeleteParams::default()), (JANE, with_uid(&pod))] {
        let error = games.delete(user, "arena-0", &params).await.unwrap_err();
        assert_eq!(error.code, 403, "{user}: {}", error.message);
    }
    games.delete(OPERATOR, "arena-0", &with_uid(&pod)).await.unwrap();
    // A terminating pod may be removed again.
    games.evict(JANE, "arena-0").await.unwrap();
    games
        .delete(JANE, "arena-0", &DeleteParams::default())
        .await
        .unwrap();
    let changes = json!({ "finalizers": null, "labels": { REMOVAL_GUARD: null } });
    games.patch(JANE, "arena-0", changes).await.unwrap();
    games.await_deleted("arena-0").await;
}

#[tokio::test]
async fn pods_are_removed_once_their_game_deployment_is_deleted_without_the_finalizer() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    for name in ["arena-0", "arena-1", "arena-2"] {
        games.run(&games.pod(name)).await;
        assert_eq!(games.evict(JANE, name).await.unwrap_err().code, 429);
    }
    games.delete_with_finalizers(&["example.com/kept"]);
    games.remove("evicted", "arena-0").await;
    games.remove("deleted", "arena-1").await;
    // The garbage collector deletes the last pod once the GameDeployment is gone.
    games.set_finalizers(&[]);
    games.await_deleted("arena-2").await;
}

/// The operator runs their hooks anyway.
#[tokio::test]
async fn removals_of_pods_whose_game_deployment_is_deleted_with_the_finalizer_are_denied_and_not_recorded() {
    let (installation, replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    for name in ["arena-0", "arena-1", "arena-2"] {
        games.run(&games.pod(name)).await;
    }
    games.delete_with_finalizers(&[ASK_BEFORE_REMOVAL]);
    let kept = format!(
        "pod arena-0 is kept until its PreDelete hook succeeds; it is then deleted, because GameDeployment {GAME} is \
         being deleted. Details: kubectl game why pod/arena-0 -n {}",
        games.namespace
    );
    for dry_run in [true, false] {
        let error = games.evict_with(JANE, "arena-0", dry_run, json!({})).await;
        let error = error.unwrap_err();
        assert_eq!((error.code, error.message), (429, format!("{EVICTION}{kept}")));
        let params = DeleteParams {
            dry_run,
            ..DeleteParams::default()
        };
        let error = games.delete(JANE, "arena-0", &params).await.unwrap_err();
        assert_eq!((error.code, error.message), (403, format!("{DELETION}{kept}")));
    }
    let count_lookups = async || {
        let labels = ["resource=\"gamedeployments\""];
        replica.metric("hookgate_api_requests_total", &labels).await
    };
    let before = count_lookups().await;
    assert!(before > 0);
    for _ in 0..10 {
        let params = DeleteParams::default();
        let error = games.delete(JANE, "arena-0", &params).await.unwrap_err();
        assert_eq!((error.code, error.message), (403, format!("{DELETION}{kept}")));
    }
    let repeated = count_lookups().await - before;
    assert!(repeated < 10, "{repeated} lookups of the GameDeployment");
    let pod = games.get("arena-0").await;
    assert!(games.requests("arena-0").await.is_empty());
    games.delete(OPERATOR, "arena-0", &with_uid(&pod)).await.unwrap();
    games.await_deleted("arena-0").await;
    // Without a hook, nothing keeps the pods.
    games.change(&json!({ "preDeleteUpdateStrategy": null }));
    games.remove("evicted", "arena-1").await;
    games.remove("deleted", "arena-2").await;
}

#[tokio::test]
async fn only_the_operator_removes_the_label_of_a_guarded_pod() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    for value in [Value::Null, json!("Never")] {
        let error = games
            .patch(JANE, "arena-0", json!({ "labels": { REMOVAL_GUARD: value } }))
            .await
            .unwrap_err();
        assert_eq!(error.code, 403);
        assert_eq!(
            error.message,
            "admission webhook \"removal-guard-labels.hookgate.tkex.tencent.com\" denied the request: the label \
             tkex.tencent.com/removal-guard of pod arena-0 must not be changed, because it guards the pod against \
             removal; to remove it from all pods of the GameDeployment, set spec.disruption.policy to Unguarded"
        );
    }
    let other = json!({ "labels": { "team": "arena" }, "annotations": { "room": "7" } });
    games.patch(JANE, "arena-0", other).await.unwrap();
    let unlabelled = json!({ "labels": { REMOVAL_GUARD: null } });
    games.patch(OPERATOR, "arena-0", unlabelled).await.unwrap();
    games
        .delete(JANE, "arena-0", &DeleteParams::default())
        .await
        .unwrap();
    games.await_deleted("arena-0").await;
}

#[tokio::test]
async fn an_annotation_that_cannot_be_parsed_is_replaced() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let mut pod = games.pod("arena-0");
    merge(
        &mut pod,
        json!({ "metadata": { "annotations": { REMOVAL_REQUESTED: "{" } } }),
    );
    games.run(&pod).await;
    let error = games.evict(JANE, "arena-0").await.unwrap_err();
    assert_eq!(error.message, format!("{EVICTION}{}", games.kept("arena-0")));
    assert_eq!(games.requests("arena-0").await.len(), 1);
}

#[tokio::test]
async fn concurrent_evictions_by_several_users_are_each_recorded_once() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    let users = ["autoscaler", "descheduler", "jane", "joe"];
    let evictions = users
        .iter()
        .cycle()
        .take(20)
        .map(|user| games.evict(user, "arena-0"));
    for evicted in join_all(evictions).await {
        let error = evicted.unwrap_err();
        assert_eq!(
            (error.code, error.message),
            (429, format!("{EVICTION}{}", games.kept("arena-0")))
        );
    }
    let requests = games.requests("arena-0").await;
    let mut found: Vec<&str> = requests
        .iter()
        .map(|request| request.requester.as_str())
        .collect();
    found.sort_unstable();
    assert_eq!(found, users);
    assert!(
        requests.iter().all(|request| request.renew_time.is_none()),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_ninth_requester_is_denied_and_not_recorded() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    for number in 0..8 {
        games
            .evict(&format!("drain-{number}"), "arena-0")
            .await
            .unwrap_err();
    }
    let error = games.evict(JANE, "arena-0").await.unwrap_err();
    let kept = games.kept("arena-0");
    let others =
        "This request is not recorded, because 8 others have already requested the removal of this pod";
    assert_eq!(
        (error.code, error.message),
        (429, format!("{EVICTION}{kept}. {others}"))
    );
    assert_eq!(games.requests("arena-0").await.len(), 8);
}

#[tokio::test]
async fn a_request_that_cannot_be_recorded_is_denied_with_the_reason() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    installation.must(&["delete", "clusterrolebinding", &installation.name], "");
    // The API server learns of it through a watch.
    let error = eventually(SOON, || async {
        let error = games.evict(JANE, "arena-0").await.unwrap_err();
        if error.message.contains("not recorded") {
            Ok(error)
        } else {
            Err(error.message)
        }
    })
    .await;
    assert_eq!(error.code, 429);
    let beginning = "pod arena-0 is kept, and the request is not recorded (failed to read the pod: ";
    assert_has(&error.message, &format!("{EVICTION}{beginning}"));
    let end = " (403)); kubectl drain repeats it, and other clients must send it again";
    assert!(error.message.ends_with(end), "{}", error.message);
    let error = games
        .delete(JANE, "arena-0", &DeleteParams::default())
        .await
        .unwrap_err();
    assert_eq!(error.code, 403);
    assert_has(&error.message, &format!("{DELETION}{beginning}"));
    assert!(
        error.message.ends_with(" (403)); run the command again"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_drain_prints_the_sentence_and_ends_when_the_operator_deletes_the_pod() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    let pod = games.run(&games.pod("arena-0")).await;
    let mut drain = installation.control_plane.kubectl();
    let flags = ["--force", "--ignore-daemonsets", "--timeout=60s"];
    drain.arg("drain").args(flags).arg(&games.nodes.node_names()[0]);
    let drain = tokio::task::spawn_blocking(move || output_of(&mut drain, "").unwrap());
    eventually(SOON, || async {
        match games.requests("arena-0").await.len() {
            1 => Ok(()),
            other => Err(other),
        }
    })
    .await;
    games.delete(OPERATOR, "arena-0", &with_uid(&pod)).await.unwrap();
    let output = drain.await.unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{text}");
    assert_has(&text, &games.kept("arena-0"));
    assert_has(&text, "will retry after 5s");
    games.await_deleted("arena-0").await;
}

/// This is the way out of an emergency.
#[tokio::test]
async fn the_label_of_the_namespace_disables_the_guard_even_while_the_webhook_is_down() {
    let (installation, replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.run(&games.pod("arena-0")).await;
    drop(replica);
    let params = DeleteParams::default();
    let error = games.delete(JANE, "arena-0", &params).await.unwrap_err();
    assert_eq!(error.code, 500, "{}", error.message);
    let error = games.delete_namespace(true).await.unwrap_err();
    assert_eq!(error.code, 500, "{}", error.message);
    let label = format!("{REMOVAL_GUARD}=Disabled");
    games
        .kubectl(&["label", "namespace", &games.namespace, &label, "--overwrite"])
        .unwrap();
    eventually(SOON, || async {
        let deleted = games.delete(JANE, "arena-0", &params).await;
        deleted.map_err(|error| error.message)
    })
    .await;
    games.await_deleted("arena-0").await;
}
