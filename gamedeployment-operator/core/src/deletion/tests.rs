use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::game_deployment::GameDeploymentStatus;
use shared_api::hook_run::Phase;

use super::*;
use crate::decide::decide;
use crate::gate::Run;
use crate::plan::Plan;
use crate::samples::{
    FakeCluster, created_runs, decided, finish, names, now, object, pod, pod_to_delete, revisions, view,
};
use crate::view::WriteErrors;

const GUARDED: (&str, &str) = ("/metadata/labels/tkex.tencent.com~1removal-guard", "Ask");
const DELETED: &str = "/metadata/deletionTimestamp";
const FINALIZERS: &str = "/metadata/finalizers";
const POLICY: &str = "/spec/disruption/policy";

/// A workload with guarded pods and a hook that runs before a deletion.
fn guarded(over: &[(&str, Value)]) -> GameDeployment {
    let hook = json!({ "hook": { "templateName": "ask" } });
    let mut all = vec![
        ("/spec/replicas", json!(2)),
        (POLICY, json!("Ask")),
        ("/spec/preDeleteUpdateStrategy", hook),
        (FINALIZERS, json!([ASK_BEFORE_REMOVAL])),
    ];
    all.extend_from_slice(over);
    object(&all)
}

/// The same workload while it is being deleted.
fn deleted(over: &[(&str, Value)]) -> GameDeployment {
    let mut all = vec![(DELETED, json!("2024-05-31T00:00:00Z"))];
    all.extend_from_slice(over);
    guarded(&all)
}

fn guarded_pod(name: &str) -> Pod {
    pod(name, &[(GUARDED.0, json!(GUARDED.1))])
}

fn chosen_pod(name: &str) -> Pod {
    let mut chosen = pod_to_delete(name);
    let (_, key) = GUARDED.0.rsplit_once('/').unwrap();
    chosen.labels.insert(key.replace("~1", "/"), GUARDED.1.to_owned());
    chosen
}

fn status(plan: &Plan) -> &GameDeploymentStatus {
    plan.status.as_deref().unwrap()
}

fn condition(plan: &Plan, type_: &str) -> (String, String) {
    let conditions = &status(plan).conditions;
    let found = conditions.iter().find(|known| known.type_ == type_).unwrap();
    (
        format!("{} {}", found.status, found.reason),
        found.message.clone(),
    )
}

#[test]
fn the_finalizer_is_set_before_the_first_pod_is_created() {
    let without = guarded(&[(FINALIZERS, json!(null))]);
    assert_eq!(names(&decided(&without, &[], &[])), ["add_finalizer"]);
    let others = guarded(&[(FINALIZERS, json!(["example.com/backup"]))]);
    assert_eq!(names(&decided(&others, &[], &[])), ["add_finalizer"]);
    assert_eq!(
        names(&decided(&guarded(&[]), &[], &[])),
        ["create_pod", "create_pod"]
    );
}

#[test]
fn the_finalizer_follows_the_policy() {
    let pods = [guarded_pod("a"), guarded_pod("b")];
    for policy in [json!("Unguarded"), json!(null)] {
        let plan = decided(&guarded(&[(POLICY, policy.clone())]), &pods, &[]);
        assert!(names(&plan).contains(&"remove_finalizer"), "{policy}: {plan:#?}");
        let plan = decided(
            &guarded(&[(POLICY, policy), (FINALIZERS, json!(null))]),
            &pods,
            &[],
        );
        assert!(!names(&plan).contains(&"add_finalizer"), "{plan:#?}");
    }
    let removal = Action::RemoveFinalizer(FinalizerRemoval::Unasked);
    let plan = decided(&guarded(&[(POLICY, json!("Unguarded"))]), &[], &[]);
    assert!(plan.actions.contains(&removal));
}

#[test]
fn without_the_finalizer_a_deletion_is_left_to_the_garbage_collector() {
    let pods = [guarded_pod("a"), guarded_pod("b")];
    for finalizers in [json!(null), json!(["foregroundDeletion"])] {
        let plan = decided(&deleted(&[(FINALIZERS, finalizers)]), &pods, &[]);
        assert_eq!(plan, Plan::default());
    }
}

#[test]
fn hooks_run_for_all_pods_of_a_deleted_workload_and_none_is_created() {
    let pods = [guarded_pod("a"), guarded_pod("b")];
    for over in [
        json!({}),
        json!({ "type": "InplaceUpdate", "maxUnavailable": 0, "maxSurge": 2 }),
        json!({ "type": "Recreate", "timeoutSeconds": 60 }),
        json!({ "type": "RollingUpdate", "paused": true, "partition": 1 }),
    ] {
        let object = deleted(&[("/spec/updateStrategy", over)]);
        let plan = decided(&object, &pods, &[]);
        assert_eq!(names(&plan), ["mark_pod", "mark_pod"]);
        assert_eq!(status(&plan).replicas, 2);
        let (state, message) = condition(&plan, "Progressing");
        assert_eq!(state, "True Deleting");
        assert!(
            message.starts_with("the GameDeployment is being deleted; 2 pods are left"),
            "{message}"
        );
    }
    let plan = decided(&deleted(&[]), &[], &[]);
    assert_eq!(
        plan.actions,
        [Action::RemoveFinalizer(FinalizerRemoval::NoPods(
            "app=game".to_owned()
        ))]
    );
}

#[test]
fn a_pod_of_a_deleted_workload_is_deleted_once_its_hook_has_succeeded() {
    let object = deleted(&[]);
    let pods = [chosen_pod("a")];
    let plan = decided(&object, &pods, &[]);
    let mut run = created_runs(plan).next().unwrap();
    let owner = &run.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(owner.block_owner_deletion, Some(false));
    finish(&mut run, "healthy", Phase::Failed, 0);
    let plan = decided(&object, &pods, &[Run::read(&run)]);
    assert_eq!(names(&plan), [""; 0]);
    assert!(condition(&plan, "ScaleBlocked").0.starts_with("True "));
    finish(&mut run, "healthy", Phase::Successful, 1);
    run.status.get_or_insert_default().completed_at = Some(now().into());
    let plan = decided(&object, &pods, &[Run::read(&run)]);
    assert_eq!(names(&plan), ["delete_pod"]);
}

#[test]
fn a_deleted_workload_adopts_nothing_and_records_nothing() {
    let orphan = pod("c", &[("/metadata/ownerReferences", json!(null))]);
    let pods = [chosen_pod("a"), orphan];
    let (object, cluster) = (deleted(&[]), FakeCluster::with_hook());
    let pods: Vec<&Pod> = pods.iter().collect();
    // The garbage collector has deleted all revisions.
    let plan = decide(&view(&object, &pods, &[], &cluster), now());
    assert_eq!(names(&plan), ["create_hook_run"]);
    let revisions = revisions();
    let plan = decide(
        &view(&object, &pods, &revisions.iter().collect::<Vec<_>>(), &cluster),
        now(),
    );
    assert_eq!(names(&plan), ["create_hook_run"]);
}

#[test]
fn the_finalizer_is_removed_once_no_active_pod_is_left() {
    let terminating = pod("a", &[(DELETED, json!("2024-05-31T00:00:00Z"))]);
    let finished = pod("b", &[("/status/phase", json!("Succeeded"))]);
    let removal = Action::RemoveFinalizer(FinalizerRemoval::NoPods("app=game".to_owned()));
    for (gone, name) in [(terminating, "terminating"), (finished, "finished")] {
        let plan = decided(&deleted(&[]), &[gone], &[]);
        assert!(plan.actions.contains(&removal), "{name}: {plan:#?}");
    }
    let plan = decided(&deleted(&[]), &[guarded_pod("d")], &[]);
    assert!(!plan.actions.contains(&removal));
}

#[test]
fn no_hook_runs_if_the_policy_is_changed() {
    let pods = [chosen_pod("a"), guarded_pod("b")];
    for over in [(POLICY, json!("Unguarded")), ("/spec/disruption", json!(null))] {
        let plan = decided(&deleted(&[over]), &pods, &[]);
        assert_eq!(plan.actions, [Action::RemoveFinalizer(FinalizerRemoval::Unasked)]);
    }
}

#[test]
fn an_invalid_spec_keeps_the_pods_of_a_deleted_workload_and_says_so() {
    for (path, value) in [
        ("/spec/minReadySeconds", json!(-1)),
        (POLICY, json!("ask")),
        ("/spec/selector", json!({})),
    ] {
        let object = deleted(&[(path, value)]);
        let plan = decided(&object, &[chosen_pod("a")], &[]);
        assert_eq!(plan.actions, [], "{path}");
        assert_eq!(condition(&plan, "InvalidSpec").0, "True InvalidSpec");
        // All pods of the namespace are listed, since the selector may be the problem.
        let plan = decided(&object, &[], &[]);
        assert_eq!(
            plan.actions,
            [Action::RemoveFinalizer(FinalizerRemoval::NoPods(String::new()))]
        );
    }
    // An invalid template concerns no pod that exists.
    let object = deleted(&[("/spec/template/spec/containers", json!([]))]);
    let plan = decided(&object, &[chosen_pod("a")], &[]);
    assert_eq!(names(&plan), ["create_hook_run"]);
}

#[test]
fn a_rejected_removal_of_the_finalizer_is_reported() {
    let errors = WriteErrors {
        scaling: Some("failed to remove the finalizer: denied".to_owned()),
        ..WriteErrors::default()
    };
    let cluster = FakeCluster::with_hook();
    for over in [(POLICY, json!("Ask")), (POLICY, json!("Unguarded"))] {
        let object = deleted(&[over]);
        let view = View {
            write_errors: Some(&errors),
            ..view(&object, &[], &[], &cluster)
        };
        let plan = decide(&view, now());
        assert_eq!(names(&plan), ["remove_finalizer"]);
        let (state, message) = condition(&plan, "ScaleBlocked");
        assert_eq!(state, "True WriteFailed");
        assert_eq!(message, "failed to remove the finalizer: denied");
    }
}

#[test]
fn hooks_of_a_deleted_workload_can_be_retried_and_skipped() {
    let object = deleted(&[("/spec/preDeleteUpdateStrategy/retry", json!(true))]);
    let plan = decided(&object, &[chosen_pod("a")], &[]);
    assert_eq!(names(&plan), ["create_hook_run", "reset_retry"]);
    let mut skipped = chosen_pod("a");
    let key = shared_api::names::pod::SKIP_HOOK.to_owned();
    skipped.annotations.insert(key, skipped.uid.clone());
    assert_eq!(names(&decided(&deleted(&[]), &[skipped], &[])), ["delete_pod"]);
}

#[test]
fn without_a_hook_the_pods_of_a_deleted_workload_are_deleted_at_once() {
    let object = deleted(&[("/spec/preDeleteUpdateStrategy", json!(null))]);
    let plan = decided(&object, &[chosen_pod("a"), chosen_pod("b")], &[]);
    assert_eq!(names(&plan), ["delete_pod", "delete_pod"]);
}

#[test]
fn no_hook_runs_if_the_pods_are_orphaned() {
    // A second deletion in the background would delete the pods that still have their owner.
    let object = deleted(&[(FINALIZERS, json!([ASK_BEFORE_REMOVAL, "orphan"]))]);
    let plan = decided(&object, &[chosen_pod("a"), guarded_pod("b")], &[]);
    assert_eq!(plan, Plan::default());
    let left = pod("a", &[("/metadata/ownerReferences", json!(null))]);
    let plan = decided(&object, &[left], &[]);
    assert_eq!(names(&plan), ["remove_finalizer"]);
}

#[test]
fn an_invalid_spec_gets_the_finalizer_too() {
    for (path, value) in [
        ("/spec/minReadySeconds", json!(-1)),
        ("/spec/template/spec/containers", json!([])),
    ] {
        let object = guarded(&[(path, value), (FINALIZERS, json!(null))]);
        let plan = decided(&object, &[guarded_pod("a"), guarded_pod("b")], &[]);
        assert!(plan.actions.contains(&Action::AddFinalizer), "{path}: {plan:#?}");
    }
    // No revision is recorded yet.
    let (object, cluster) = (guarded(&[(FINALIZERS, json!(null))]), FakeCluster::with_hook());
    let plan = decide(&view(&object, &[], &[], &cluster), now());
    assert_eq!(names(&plan), ["add_finalizer", "create_revision"]);
}

#[test]
fn no_pod_is_adopted_before_the_finalizer_is_set() {
    let orphan = pod("c", &[("/metadata/ownerReferences", json!(null))]);
    let without = guarded(&[(FINALIZERS, json!(null))]);
    let plan = decided(&without, std::slice::from_ref(&orphan), &[]);
    assert_eq!(names(&plan), ["add_finalizer"]);
    let plan = decided(&guarded(&[]), &[orphan], &[]);
    assert_eq!(names(&plan), ["adopt_pod", "create_pod"]);
}

#[test]
fn the_finalizer_comes_before_all_other_writes() {
    let without = guarded(&[(FINALIZERS, json!(null))]);
    let plan = decided(&without, &["a", "b", "c"].map(guarded_pod), &[]);
    assert_eq!(plan.actions.first(), Some(&Action::AddFinalizer));
    assert!(plan.actions.len() > 1, "{plan:#?}");
}

#[test]
fn the_hook_of_a_pod_that_the_selector_no_longer_matches_runs_too() {
    let mut other = chosen_pod("a");
    other.labels.insert("app".to_owned(), "other".to_owned());
    assert_eq!(names(&decided(&deleted(&[]), &[other], &[])), ["create_hook_run"]);
}
