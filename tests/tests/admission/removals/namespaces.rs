//! Removal guard: deletions of namespaces that it denies because of their guarded pods, and those that it allows.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, PostParams};
use operator_tests::fleet::{GAME, game, hooked};
use operator_tests::{SOON, assert_has, merge};
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::pod::{REMOVAL_GUARD, SKIP_HOOK};
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use test_kit::eventually;
use test_kit::node::{Behaviour, PodSelector};

use super::{Games, JANE, OPERATOR, installed, with_uid};
use crate::installation::{Installation, Replica};

const DENIAL: &str = "admission webhook \"namespaces.hookgate.tkex.tencent.com\" denied the request: ";
/// Remedy if the GameDeployment has the finalizer.
const DELETE: &str = "Delete the GameDeployments first: kubectl delete gamedeployments --all";
const NEEDS_HOOK: &str = "which would be deleted without running its PreDelete hook";
const NEED_HOOKS: &str = "which would be deleted without running their PreDelete hooks";

impl Games<'_> {
    /// Returns the message of the denial if the namespace has these pods, with this remedy.
    fn denial(&self, pods: &str, remedy: &str) -> String {
        let namespace = &self.namespace;
        format!(
            "{DENIAL}namespace {namespace} has {pods}. {remedy} -n {namespace}; {}",
            self.exit()
        )
    }

    /// Returns the end of each message.
    fn exit(&self) -> String {
        format!(
            "to delete the namespace without running the hooks: kubectl label namespace {} \
             tkex.tencent.com/removal-guard=Disabled --overwrite",
            self.namespace
        )
    }

    /// Checks that the namespace cannot be deleted, because of the pod `arena-0` alone. The finalizer is not set.
    async fn assert_kept(&self) {
        self.assert_kept_with(&scale()).await;
    }

    /// Checks the same, with this remedy.
    async fn assert_kept_with(&self, remedy: &str) {
        let error = self.delete_namespace(true).await.unwrap_err();
        let message = self.denial(&format!("1 guarded pod, arena-0, {NEEDS_HOOK}"), remedy);
        assert_eq!((error.code, error.message), (403, message));
    }

    /// Checks that the namespace could be deleted.
    async fn assert_free(&self) {
        self.delete_namespace(true).await.unwrap();
    }

    /// Waits until the namespace is gone.
    async fn await_end(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client(JANE));
        eventually(SOON, || async {
            match namespaces.get_opt(&self.namespace).await.unwrap() {
                None => Ok(()),
                Some(namespace) => Err(namespace.status),
            }
        })
        .await;
    }

    /// Creates another GameDeployment, and returns its UID.
    async fn create_workload(&self, name: &str, spec: &Value) -> String {
        let mut workload = game(0, spec.clone());
        workload["metadata"]["name"] = json!(name);
        let workload: GameDeployment = serde_json::from_value(workload).unwrap();
        let workloads: Api<GameDeployment> = Api::namespaced(self.client(JANE), &self.namespace);
        let created = workloads.create(&PostParams::default(), &workload).await;
        created.unwrap().metadata.uid.unwrap()
    }

    /// Creates a guarded pod of the GameDeployment with this name and UID, on a node.
    async fn create_scheduled(&self, name: &str, (owner, uid): (String, &str)) {
        let mut pod = self.pod(name);
        pod["metadata"]["ownerReferences"][0]["name"] = json!(owner);
        pod["metadata"]["ownerReferences"][0]["uid"] = json!(uid);
        pod["spec"]["nodeName"] = json!(self.nodes.node_names()[0]);
        self.create(&pod).await;
    }

    async fn skip_hooks(&self, uid: Value) {
        let annotation = json!({ "annotations": { SKIP_HOOK: uid } });
        self.patch(JANE, "arena-0", annotation).await.unwrap();
    }
}

/// Returns the remedy if the GameDeployment has no finalizer.
fn scale() -> String {
    format!(
        "gamedeployment-operator has not set the finalizer of GameDeployment {GAME} yet, and its deletion would not \
         run the hooks without it. Scale it to 0, and wait until its pods are gone: kubectl scale gamedeployment \
         {GAME} --replicas 0"
    )
}

/// Returns an installation, and the name of a namespace to delete.
async fn installed_beside() -> (Installation<'static>, Replica, String) {
    let (installation, replica) = installed().await;
    let namespace = installation.control_plane.namespace("admission-ends").await;
    (installation, replica, namespace)
}

#[tokio::test]
async fn a_namespace_with_guarded_pods_is_kept_until_its_label_disables_the_guard() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    let mut pods = Vec::new();
    for name in ["arena-0", "arena-1"] {
        pods.push(games.run(&games.pod(name)).await);
    }
    let scale = scale();
    for (finalizers, remedy) in [(&[ASK_BEFORE_REMOVAL][..], DELETE), (&[][..], scale.as_str())] {
        games.set_finalizers(finalizers);
        let pods = format!("2 guarded pods, for example arena-0, {NEED_HOOKS}");
        let message = games.denial(&pods, remedy);
        for dry_run in [true, false] {
            let error = games.delete_namespace(dry_run).await.unwrap_err();
            assert_eq!((error.code, &error.message), (403, &message));
            assert_eq!(error.reason, "Forbidden");
        }
    }
    for pod in &pods {
        let now = games.get(pod.metadata.name.as_deref().unwrap()).await;
        assert_eq!(now.metadata.annotations, pod.metadata.annotations);
        assert_eq!(now.metadata.deletion_timestamp, None);
    }
    games
        .delete(OPERATOR, "arena-1", &with_uid(&pods[1]))
        .await
        .unwrap();
    games.await_deleted("arena-1").await;
    games.assert_kept().await;
    let label = format!("{REMOVAL_GUARD}=Disabled");
    games
        .kubectl(&["label", "namespace", &namespace, &label, "--overwrite"])
        .unwrap();
    // The API server learns of the label through a watch.
    eventually(SOON, || async {
        let deleted = games.delete_namespace(false).await;
        deleted.map_err(|error| error.message)
    })
    .await;
    games.await_end().await;
}

#[tokio::test]
async fn a_namespace_whose_pods_need_no_hook_is_deleted() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    games.assert_free().await;
    let mut pod = games.pod("arena-0");
    pod["metadata"]["finalizers"] = json!(["example.com/kept"]);
    let pod = games.run(&pod).await;
    games.assert_kept().await;
    for (change, restored) in [
        (
            json!({ "disruption": { "policy": "Unguarded" } }),
            json!({ "disruption": { "policy": "Ask" } }),
        ),
        (json!({ "preDeleteUpdateStrategy": null }), hooked("empty")),
    ] {
        games.change(&change);
        games.assert_free().await;
        games.change(&restored);
        games.assert_kept().await;
    }
    games.skip_hooks(json!(pod.metadata.uid)).await;
    games.assert_free().await;
    games.skip_hooks(json!("other")).await;
    games.assert_kept().await;
    games.delete(OPERATOR, "arena-0", &with_uid(&pod)).await.unwrap();
    // It is terminating.
    games.assert_free().await;
    games
        .patch(JANE, "arena-0", json!({ "finalizers": null }))
        .await
        .unwrap();
    games.await_deleted("arena-0").await;
    let mut unlabelled = games.pod("unlabelled");
    unlabelled["metadata"]["labels"] = json!({ "app": GAME });
    let mut orphan = games.pod("orphan");
    orphan["metadata"]["ownerReferences"] = json!([]);
    for pod in [unlabelled, orphan, games.pod("arena-0")] {
        games.run(&pod).await;
    }
    games.assert_kept().await;
    games.nodes.pod("arena-0").succeed();
    let succeeded = games.nodes.pod("arena-0");
    succeeded
        .await_that(SOON, |pod| pod.phase == "Succeeded")
        .await
        .unwrap();
    let unscheduled = PodSelector::pod("unscheduled");
    games.nodes.behave(unscheduled, Behaviour::Unschedulable);
    games.create(&games.pod("unscheduled")).await;
    games.delete_namespace(false).await.unwrap();
    games.await_end().await;
}

/// No HookRun can be created once the namespace is terminating, even if the operator would run the hooks before.
#[tokio::test]
async fn a_namespace_is_kept_while_its_game_deployment_is_being_deleted() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    games.run(&games.pod("arena-0")).await;
    games.delete_with_finalizers(&[ASK_BEFORE_REMOVAL, "example.com/kept"]);
    games.assert_kept_with(DELETE).await;
    games.set_finalizers(&["example.com/kept"]);
    games.assert_kept_with(DELETE).await;
    games.set_finalizers(&[]);
    games.await_deleted("arena-0").await;
    games.delete_namespace(false).await.unwrap();
    games.await_end().await;
}

#[tokio::test]
async fn a_kept_pod_is_found_behind_a_hundred_pods_that_need_no_hook() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    let spec = json!({ "disruption": { "policy": "Ask" } });
    let mut uids = Vec::new();
    for number in 0..20 {
        uids.push(games.create_workload(&format!("hookless-{number}"), &spec).await);
    }
    let creations = (0..120).map(async |number| {
        let owner = number % uids.len();
        let owner = (format!("hookless-{owner}"), uids[owner].as_str());
        games.create_scheduled(&format!("a-{number}"), owner).await;
    });
    join_all(creations).await;
    games.assert_free().await;
    games.run(&games.pod("arena-0")).await;
    games.assert_kept().await;
}

/// The check takes few reads in a namespace of any size.
#[tokio::test]
async fn a_few_game_deployments_with_kept_pods_are_enough_for_a_denial() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "disruption": { "policy": "Ask" } }));
    for number in 0..9 {
        let name = format!("lobby-{number}");
        let uid = games.create_workload(&name, &spec).await;
        games.create_scheduled(&name, (name.clone(), uid.as_str())).await;
    }
    let message = async || {
        let error = games.delete_namespace(true).await.unwrap_err();
        assert_eq!(error.code, 403);
        error.message
    };
    let beginning = format!("{DENIAL}namespace {namespace} has at least 8 guarded pods, for example lobby-");
    let found = message().await;
    assert_has(&found, &beginning);
    assert_has(&found, "has not set the finalizer of GameDeployment lobby-");
    let finalizer = json!({ "metadata": { "finalizers": [ASK_BEFORE_REMOVAL] } }).to_string();
    let patch = ["patch", "gamedeployment", "--type=merge", "--patch", &finalizer];
    let names: Vec<String> = (0..8).map(|number| format!("lobby-{number}")).collect();
    for name in &names {
        games.kubectl(&[&patch[..], &[name]].concat()).unwrap();
    }
    let found = message().await;
    assert_has(&found, &beginning);
    // The finalizer of the last one is not known.
    let command = format!(
        "kubectl delete gamedeployments {} -n {namespace}; ",
        names.join(" ")
    );
    assert_has(&found, &command);
}

#[tokio::test]
async fn a_namespace_whose_pods_cannot_be_listed_is_kept() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    games.assert_free().await;
    installation.must(&["delete", "clusterrolebinding", &installation.name], "");
    // The API server learns of it through a watch.
    let error = eventually(SOON, || async {
        games
            .delete_namespace(true)
            .await
            .map_or_else(Ok, |()| Err("allowed"))
    })
    .await;
    assert_eq!(error.code, 403);
    let beginning = format!(
        "{DENIAL}failed to check whether namespace {namespace} has guarded pods (failed to list the guarded pods: "
    );
    assert_has(&error.message, &beginning);
    let end = format!(" (403)); run the command again; {}", games.exit());
    assert!(error.message.ends_with(&end), "{}", error.message);
}

/// No HookRun can be created in it.
#[tokio::test]
async fn guarded_pods_do_not_keep_a_namespace_that_is_being_deleted() {
    let (installation, _replica, namespace) = installed_beside().await;
    let games = Games::new(&installation, &namespace).await;
    games.run(&games.pod("arena-0")).await;
    let configurations = installation.configurations();
    eventually(SOON, || async {
        let mut found = configurations.get(&installation.name).await.unwrap();
        let webhooks = found.webhooks.as_mut().unwrap();
        webhooks.retain(|webhook| !webhook.name.starts_with("namespaces."));
        let params = PostParams::default();
        let replaced = configurations.replace(&installation.name, &params, &found);
        replaced.await.map(drop)
    })
    .await;
    eventually(SOON, || async {
        let deleted = games.delete_namespace(true).await;
        deleted.map_err(|error| error.message)
    })
    .await;
    let params = DeleteParams::default();
    let error = games.delete(JANE, "arena-0", &params).await.unwrap_err();
    assert_eq!(error.code, 403, "{}", error.message);
    games.delete_namespace(false).await.unwrap();
    games.await_end().await;
}
