//! Removal guard: removals of the finalizer of a GameDeployment that is being deleted.

use kube::api::{Api, Patch, PatchParams};
use operator_tests::fleet::{GAME, game, hooked};
use operator_tests::{SOON, merge};
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::workload::{ASK_BEFORE_REMOVAL, DELETION_ALLOW};
use test_kit::eventually;

use super::{Games, JANE, OPERATOR, installed, status};
use crate::installation::Installation;
use crate::shared;

fn denial() -> String {
    format!(
        "the finalizer tkex.tencent.com/ask-before-removal of GameDeployment {GAME} must not be removed while its pods \
         are being deleted, because they would be deleted without running their hooks; to do that, set \
         spec.disruption.policy to Unguarded"
    )
}

/// Returns a manifest with this policy. No manifest has the finalizer.
fn manifest(policy: &str) -> Value {
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "disruption": { "policy": policy } }));
    let mut manifest = game(0, spec);
    manifest["metadata"]["labels"][DELETION_ALLOW] = json!("Always");
    manifest
}

fn workloads(installation: &Installation<'_>) -> Api<GameDeployment> {
    Api::namespaced(installation.control_plane.client(), &installation.namespace)
}

async fn await_deleted(installation: &Installation<'_>) {
    eventually(SOON, || async {
        match workloads(installation).get_opt(GAME).await.unwrap() {
            None => Ok(()),
            Some(workload) => Err(workload.metadata),
        }
    })
    .await;
}

#[tokio::test]
async fn a_replacement_does_not_remove_the_finalizer_unless_it_changes_the_policy() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.delete_with_finalizers(&[ASK_BEFORE_REMOVAL]);
    let (asking, unguarded) = (manifest("Ask").to_string(), manifest("Unguarded").to_string());
    let replace = ["replace", "--filename", "-"];
    let dry_run = ["replace", "--dry-run=server", "--filename", "-"];
    for command in [&replace[..], &dry_run] {
        assert_eq!(installation.refused(command, &asking), denial());
    }
    let found = workloads(&installation).get(GAME).await.unwrap();
    assert_eq!(found.metadata.finalizers.unwrap(), [ASK_BEFORE_REMOVAL]);
    installation.must(&dry_run, &unguarded);
    installation.must(&replace, &unguarded);
    await_deleted(&installation).await;
}

#[tokio::test]
async fn the_finalizer_is_removed_by_the_operator_and_by_others_once_no_pod_is_left() {
    let (installation, _replica) = installed().await;
    let games = Games::new(&installation, &installation.namespace).await;
    games.delete_with_finalizers(&[ASK_BEFORE_REMOVAL]);
    let dry_run = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let remove = async |user: &str| {
        let workloads: Api<GameDeployment> = Api::namespaced(games.client(user), &games.namespace);
        let patched = workloads.patch(GAME, &dry_run, &released).await;
        patched.map(drop).map_err(status)
    };
    remove(OPERATOR).await.unwrap();
    for replicas in [None, Some(1), Some(0)] {
        if let Some(replicas) = replicas {
            let counted = Patch::Merge(json!({ "status": { "replicas": replicas } }));
            let params = PatchParams::default();
            let workloads = workloads(&installation);
            workloads.patch_status(GAME, &params, &counted).await.unwrap();
        }
        let removed = remove(JANE).await;
        if replicas == Some(0) {
            removed.unwrap();
        } else {
            let error = removed.unwrap_err();
            assert_eq!(error.code, 403, "{replicas:?}");
            assert!(error.message.ends_with(&denial()), "{}", error.message);
        }
    }
    games.set_finalizers(&[]);
    await_deleted(&installation).await;
}

#[tokio::test]
async fn without_the_removal_guard_a_replacement_removes_the_finalizer() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let asking = manifest("Ask");
    let mut held = asking.clone();
    held["metadata"]["finalizers"] = json!([ASK_BEFORE_REMOVAL]);
    installation.must(&["create", "--filename", "-"], &held.to_string());
    installation.must(&["delete", "gamedeployment", GAME, "--wait=false"], "");
    let found = workloads(&installation).get(GAME).await.unwrap();
    assert!(found.metadata.deletion_timestamp.is_some());
    installation.must(&["replace", "--filename", "-"], &asking.to_string());
    await_deleted(&installation).await;
}
