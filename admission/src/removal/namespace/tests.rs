use serde_json::{Value, json};
use shared_api::names::pod::SKIP_HOOK;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use super::*;

const EXIT: &str = "to delete the namespace without running the hooks: kubectl label namespace games \
                    tkex.tencent.com/removal-guard=Disabled --overwrite";

/// Returns a pod of the list, which has neither a spec nor a status, with these changes of its metadata.
fn listed(changes: Value) -> GuardedPod {
    let owner = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": "arena", "uid": "owner",
        "controller": true,
    });
    let mut metadata = json!({ "name": "arena-1", "uid": "pod", "ownerReferences": [owner] });
    for (field, value) in changes.as_object().unwrap() {
        metadata[field] = value.clone();
    }
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn decided(found: Result<KeptPods, &str>) -> AdmissionDecision {
    NamespaceDeletion::new("games").decide(&found.map_err(str::to_owned))
}

#[test]
fn a_listed_pod_depends_on_its_game_deployment_unless_it_is_terminating_or_skips_its_hooks() {
    for (changes, is_kept) in [
        (json!({}), true),
        (json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), false),
        (json!({ "annotations": { SKIP_HOOK: "pod" } }), false),
        (json!({ "annotations": { SKIP_HOOK: "other" } }), true),
        (json!({ "annotations": { SKIP_HOOK: "" } }), true),
        (json!({ "ownerReferences": null }), false),
        (json!({ "ownerReferences": [] }), false),
    ] {
        let pod = listed(changes.clone());
        let owner = keeper(&pod).map(|owner| owner.name.as_str());
        assert_eq!(owner, is_kept.then_some("arena"), "{changes}");
    }
}

/// Returns a GameDeployment with these finalizers, perhaps while it is being deleted.
fn workload(finalizers: &[&str], is_terminating: bool) -> KeepingWorkload {
    let deletion_timestamp = is_terminating.then_some("2026-01-01T00:00:00Z");
    let metadata = json!({ "finalizers": finalizers, "deletionTimestamp": deletion_timestamp });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// Returns kept pods of these GameDeployments, two each.
fn kept(workloads: &[(&str, KeepingWorkload)], is_complete: bool) -> KeptPods {
    let pods = ["arena-1", "arena-2"].map(|name| listed(json!({ "name": name })));
    let pods: Vec<&GuardedPod> = pods.iter().collect();
    let mut kept = KeptPods {
        is_complete,
        ..KeptPods::default()
    };
    for (name, workload) in workloads {
        kept.add(&pods, name, workload);
    }
    kept
}

/// Returns the message of the denial, up to the way out of it.
fn denial(kept: KeptPods) -> String {
    let AdmissionDecision::Forbidden(message) = decided(Ok(kept)) else {
        panic!("not denied");
    };
    message.strip_suffix(&format!("; {EXIT}")).unwrap().to_owned()
}

#[test]
fn a_namespace_with_kept_pods_is_not_deleted_and_the_message_counts_them() {
    assert_eq!(
        decided(Ok(KeptPods::default())),
        AdmissionDecision::Allowed(Vec::new())
    );
    for (count, is_complete, pods) in [
        (
            1,
            true,
            "1 guarded pod, arena-1, which would be deleted without running its PreDelete hook",
        ),
        (
            1,
            false,
            "at least 1 guarded pod, arena-1, which would be deleted without running its PreDelete hook",
        ),
        (
            12,
            true,
            "12 guarded pods, for example arena-1, which would be deleted without running their PreDelete hooks",
        ),
        (
            540,
            false,
            "at least 540 guarded pods, for example arena-1, which would be deleted without running their PreDelete \
             hooks",
        ),
    ] {
        let mut kept = kept(&[("arena", workload(&[ASK_BEFORE_REMOVAL], false))], is_complete);
        assert_eq!((kept.count, kept.first.as_str()), (2, "arena-1"));
        kept.count = count;
        let message = denial(kept);
        let beginning = format!("namespace games has {pods}. Delete the GameDeployments first: ");
        assert!(message.starts_with(&beginning), "{message}");
    }
}

#[test]
fn the_remedy_is_a_deletion_of_game_deployments_that_are_known_to_run_the_hooks() {
    let held = || workload(&["example.com/kept", ASK_BEFORE_REMOVAL], false);
    let free = || workload(&["example.com/kept"], false);
    let delete = "Delete the GameDeployments first: kubectl delete gamedeployments";
    let scale = |name: &str| {
        format!(
            "gamedeployment-operator has not set the finalizer of GameDeployment {name} yet, and its deletion would \
             not run the hooks without it. Scale it to 0, and wait until its pods are gone: kubectl scale \
             gamedeployment {name} --replicas 0 -n games"
        )
    };
    for (workloads, is_complete, remedy) in [
        (vec![("arena", held())], true, format!("{delete} --all -n games")),
        (
            vec![("lobby", held()), ("arena", held())],
            true,
            format!("{delete} --all -n games"),
        ),
        (
            vec![("lobby", held()), ("arena", held())],
            false,
            format!("{delete} arena lobby -n games"),
        ),
        (vec![("arena", free())], true, scale("arena")),
        (
            vec![("arena", held()), ("lobby", free()), ("match", free())],
            false,
            scale("lobby"),
        ),
        // It gets no finalizer any more.
        (
            vec![("arena", workload(&[], true))],
            true,
            format!("{delete} --all -n games"),
        ),
    ] {
        let message = denial(kept(&workloads, is_complete));
        assert!(message.ends_with(&format!(". {remedy}")), "{message}");
    }
}

#[test]
fn a_check_that_failed_after_it_found_a_pod_denies_the_deletion_because_of_this_pod() {
    let late = || Err("no response within 4s".to_owned());
    let some = || kept(&[("arena", workload(&[], false))], false);
    for (found, checked, wanted) in [
        (some(), late(), Ok(some())),
        (some(), Ok(()), Ok(some())),
        (KeptPods::default(), Ok(()), Ok(KeptPods::default())),
        (
            KeptPods::default(),
            late(),
            Err("no response within 4s".to_owned()),
        ),
    ] {
        assert_eq!(found.after(checked), wanted);
    }
}

#[test]
fn a_namespace_whose_pods_are_not_known_is_not_deleted() {
    let message = format!(
        "failed to check whether namespace games has guarded pods (no response within 4s); run the command again; \
         {EXIT}"
    );
    assert_eq!(
        decided(Err("no response within 4s")),
        AdmissionDecision::Forbidden(message)
    );
}

#[test]
fn a_namespace_is_terminating_only_if_it_has_a_deletion_timestamp() {
    let read = |text: &str| serde_json::from_str::<NamespaceObject>(text).ok();
    for (text, wanted) in [
        (
            r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#,
            Some(true),
        ),
        (r#"{"metadata":{"deletionTimestamp":null}}"#, Some(false)),
        (r#"{"metadata":{}}"#, Some(false)),
        ("{}", Some(false)),
        (r#"{"metadata":{"deletionTimestamp":1}}"#, None),
        (r#"{"metadata":null}"#, None),
    ] {
        let found = read(text).map(|namespace| namespace.is_terminating());
        assert_eq!(found, wanted, "{text}");
    }
}
