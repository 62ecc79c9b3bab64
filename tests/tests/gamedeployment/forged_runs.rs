//! Only a measured success opens a gate: neither a status nor a label does.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use operator_tests::fleet::{game, hooked, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::{Value, json};
use shared_api::hook_run::HookRunSpec;
use shared_api::{HookRun, Phase};

use crate::fleet;

/// Sets a run's status to Successful, as a user with permission for its status could.
async fn forge(fleet: &Fleet<'_>, name: &str) {
    let status = json!({ "status": { "phase": "Successful", "completedAt": "2026-01-01T00:00:00Z" } });
    fleet
        .runs()
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

#[tokio::test]
async fn successful_without_a_measurement_opens_nothing() {
    let mut fleet = fleet("forged-runs").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    // Without hook-operator, nothing is measured.
    fleet.hooks = None;
    fleet.scale(1);
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    forge(&fleet, &run.name_any()).await;
    let message = fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    assert!(
        message.contains("is Successful but does not count: it has no measured success"),
        "{message}"
    );
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.start_hooks().await;
    fleet.retry("preDeleteUpdateStrategy");
    fleet.asked(1).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

/// Creates the operator's run, without the annotations that record its purpose.
async fn by_hand(fleet: &Fleet<'_>, made: &HookRun, name: &str) {
    let spec: HookRunSpec =
        serde_json::from_value(json!({ "metrics": made.spec.metrics, "args": made.spec.args })).unwrap();
    let mut run = HookRun::new(name, spec);
    run.metadata.labels.clone_from(&made.metadata.labels);
    run.metadata
        .owner_references
        .clone_from(&made.metadata.owner_references);
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
}

#[tokio::test]
async fn a_run_made_by_hand_with_the_right_labels_opens_nothing() {
    let mut fleet = fleet("forged-runs").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(1).await;
    let made = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    // Next to the operator's run: the operator removes it.
    by_hand(&fleet, &made, "by-hand").await;
    let left = fleet.until_runs(|runs| runs.len() == 1).await;
    assert_eq!(left[0].metadata.uid, made.metadata.uid);
    // In its place, and successfully measured by the real operator: the hook runs again.
    fleet.kill_workloads();
    fleet.delete_run(&made.name_any()).await;
    fleet.until_runs(<[_]>::is_empty).await;
    fleet.nodes.every_pod().set_players(0);
    by_hand(&fleet, &made, &made.name_any()).await;
    let forged = fleet
        .until_runs(|runs| {
            runs.iter().any(|run| {
                run.status
                    .as_ref()
                    .is_some_and(|status| status.phase == Phase::Successful)
            })
        })
        .await
        .remove(0);
    fleet.nodes.every_pod().set_players(1);
    fleet.start_workloads().await;
    fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.uid != forged.metadata.uid)
        .await;
    fleet.asked(1).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

const EDITED: &str = "its spec differs from the one that the operator wrote";

/// Builds a run that the operator would not create: every measurement succeeds.
fn softened(made: &HookRun) -> HookRunSpec {
    let mut spec = made.spec.clone();
    spec.metrics[0].success_condition = Some("asInt(result) >= 0".to_owned());
    spec
}

/// Returns a fleet where the hook runs for one pod, with players on every pod, and its run.
async fn asked() -> (Fleet<'static>, HookRun) {
    let fleet = fleet("forged-runs").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(7);
    fleet.scale(1);
    fleet.asked(1).await;
    let made = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    (fleet, made)
}

/// Returns such a fleet without its operator and without the run, as it was.
async fn asked_then_stopped() -> (Fleet<'static>, HookRun) {
    let (mut fleet, made) = asked().await;
    fleet.kill_workloads();
    fleet.delete_run(&made.name_any()).await;
    fleet.until_runs(<[_]>::is_empty).await;
    (fleet, made)
}

/// Edits a run.
async fn edit(fleet: &Fleet<'_>, name: &str, patch: Value) {
    let runs = fleet.runs();
    runs.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// Creates a run that claims everything that the operator's run has.
async fn copied(fleet: &Fleet<'_>, made: &HookRun, name: &str, spec: HookRunSpec) {
    let mut run = HookRun::new(name, spec);
    run.metadata.labels.clone_from(&made.metadata.labels);
    run.metadata.annotations.clone_from(&made.metadata.annotations);
    let owners = &made.metadata.owner_references;
    run.metadata.owner_references.clone_from(owners);
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
}

/// Waits until a run is Successful.
async fn succeeded(fleet: &Fleet<'_>, name: &str) {
    let is_successful = |run: &HookRun| {
        let status = run.status.as_ref();
        run.name_any() == name && status.is_some_and(|status| status.phase == Phase::Successful)
    };
    fleet.until_runs(|runs| runs.iter().any(is_successful)).await;
}

#[tokio::test]
async fn an_edited_run_opens_nothing_and_says_so() {
    let (fleet, made) = asked().await;
    let softened = json!({ "spec": { "metrics": softened(&made).metrics } });
    edit(&fleet, &made.name_any(), softened).await;
    fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.uid != made.metadata.uid)
        .await;
    fleet.told(EDITED).await;
    fleet.asked(1).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
}

#[tokio::test]
async fn a_run_with_copied_annotations_and_another_spec_opens_nothing() {
    let (mut fleet, made) = asked_then_stopped().await;
    copied(&fleet, &made, &made.name_any(), softened(&made)).await;
    fleet.approved().await;
    fleet.start_workloads().await;
    fleet.told(EDITED).await;
    fleet.asked(1).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
}

/// Somebody takes the name of the operator's run, so that it cannot be created, and has others measured.
#[tokio::test]
async fn a_run_under_another_name_opens_nothing_while_its_name_is_taken() {
    let (mut fleet, made) = asked_then_stopped().await;
    let taken = HookRun::new(&made.name_any(), made.spec.clone());
    fleet.runs().create(&PostParams::default(), &taken).await.unwrap();
    copied(&fleet, &made, "softened", softened(&made)).await;
    succeeded(&fleet, "softened").await;
    fleet.nodes.every_pod().set_players(0);
    copied(&fleet, &made, "same", made.spec.clone()).await;
    succeeded(&fleet, "same").await;
    fleet.nodes.every_pod().set_players(7);
    fleet.start_workloads().await;
    let message = fleet.says("ScaleBlocked", "HookRunNameInvalid").await;
    assert_has(&message, "does not belong to this workload; delete it");
    let left = fleet.until_runs(|runs| runs.len() == 1).await;
    assert_eq!(left[0].name_any(), made.name_any());
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.delete_run(&made.name_any()).await;
    fleet.asked(1).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
}

/// The API server counts one generation for a write that sets `terminate` and restores the real spec.
#[tokio::test]
async fn an_edit_that_also_sets_terminate_opens_nothing() {
    for terminate in [false, true] {
        let (mut fleet, made) = asked_then_stopped().await;
        let name = made.name_any();
        let run = HookRun::new(&name, softened(&made));
        fleet.runs().create(&PostParams::default(), &run).await.unwrap();
        succeeded(&fleet, &name).await;
        let metadata = json!({
            "labels": made.metadata.labels, "annotations": made.metadata.annotations,
            "ownerReferences": made.metadata.owner_references,
        });
        let spec = json!({ "metrics": made.spec.metrics, "terminate": terminate });
        edit(&fleet, &name, json!({ "metadata": metadata, "spec": spec })).await;
        fleet.start_workloads().await;
        if terminate {
            let message = fleet.says("ScaleBlocked", "HookUnsuccessful").await;
            assert_has(&message, "is Successful but does not count: it was terminated");
            fleet.quiet().await;
            fleet.retry("preDeleteUpdateStrategy");
        } else {
            fleet.told(EDITED).await;
        }
        let unmeasured = |run: &HookRun| run.metadata.generation == Some(1);
        fleet
            .until_runs(|runs| runs.len() == 1 && runs.iter().all(unmeasured))
            .await;
        fleet.quiet().await;
        assert_eq!(fleet.nodes.terminations().len(), 0);
        fleet.nodes.every_pod().set_players(0);
        fleet.settled(1).await;
    }
}
