//! Deletion of GameDeployments with guarded pods, and of their namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::Api;
use operator_tests::fleet::{Fleet, GAME, condition, game, hooked, pod_of, until_empty};
use operator_tests::{AuditedOrder, SOON, assert_has};
use serde_json::json;
use shared_api::names::workload::{ASK_BEFORE_REMOVAL, DELETION_ALLOW};
use shared_api::{GameDeployment, HookRun, Phase};
use test_kit::eventually;
use tokio::task::JoinHandle;

use crate::guarded::Guarded;
use crate::{PROGRAMS, shared};

fn has_finalizer(workload: &GameDeployment) -> bool {
    workload
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == ASK_BEFORE_REMOVAL)
}

fn phase(run: &HookRun) -> Option<Phase> {
    run.status.as_ref().map(|status| status.phase)
}

/// Ends the match on each of these pods in turn. `ended`: pods that have ended.
async fn end_matches(guarded: &Guarded, pods: &[String], ended: &mut BTreeSet<String>) {
    for pod in pods {
        guarded.end_match(pod);
        ended.insert(pod.clone());
        guarded.await_ended(ended).await;
    }
}

/// Checks that kubectl succeeds, and that the workload no longer exists.
async fn assert_deleted(guarded: &Guarded, deletion: JoinHandle<(bool, String)>) {
    let (succeeded, output) = deletion.await.unwrap();
    assert!(succeeded, "{output}");
    assert!(guarded.fleet.games().get_opt(GAME).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_takes_the_idle_pods_at_once_and_the_busy_ones_when_their_matches_end() {
    let guarded = Guarded::new("delete").await;
    let fleet = &guarded.fleet;
    let order = AuditedOrder::begin(fleet.control_plane, &fleet.namespace);
    let pods = guarded.launch(4, json!({ "maxUnavailable": 1 })).await;
    let patches = order.count_before_pods(0, |verb, resource, subresource| {
        (verb, resource, subresource) == ("patch", "gamedeployments", "")
    });
    assert_eq!(patches, 1, "the finalizer is set before the first pod exists");
    assert!(has_finalizer(&fleet.game().await));
    let (succeeded, output) = guarded.kubectl(&["delete", "gamedeployment", GAME, "--wait=false"]);
    assert!(!succeeded);
    assert_has(&output, "would be deleted once their PreDelete hooks succeed");
    let (busy, mut ended) = guarded.occupy(&pods, 2);
    let deletion = guarded.start_deletion(&[]);
    guarded.await_ended(&ended).await;
    fleet
        .until(|status| {
            let progressing = condition(status, "Progressing");
            status.replicas == 2
                && progressing.is_some_and(|(is_true, reason, message)| {
                    let words = "the GameDeployment is being deleted; 2 pods are left";
                    is_true == "True" && reason == "Deleting" && message.starts_with(words)
                })
        })
        .await;
    fleet.asked(2).await;
    fleet.quiet().await;
    let (succeeded, output) = guarded.kubectl(&["delete", "pod", &busy[0], "--wait=false"]);
    assert!(!succeeded);
    let words = format!("it is then deleted, because GameDeployment {GAME} is being deleted");
    assert_has(&output, &words);
    assert!(guarded.requesters(&busy[0]).await.is_empty());
    end_matches(&guarded, &busy, &mut ended).await;
    assert_deleted(&guarded, deletion).await;
    fleet.until_pods(BTreeMap::is_empty).await;
    fleet.until_runs(<[HookRun]>::is_empty).await;
    guarded.assert_ended_after_hooks(&pods);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_foreground_deletion_the_garbage_collector_ends_no_match_and_leaves_new_hook_runs_alone() {
    let guarded = Guarded::new("delete-foreground").await;
    let fleet = &guarded.fleet;
    let pods = guarded.launch(5, json!({})).await;
    let (busy, mut ended) = guarded.occupy(&pods, 3);
    let last = &busy[2];
    assert!(!guarded.kubectl(&["delete", "pod", last, "--wait=false"]).0);
    fleet.asked(1).await;
    let before = fleet.until_runs(|runs| runs.len() == 1).await.remove(0).uid();
    let replica = guarded.replica.as_ref().unwrap();
    let count_denials = async || {
        let labels = [
            "path=\"removals\"",
            "kind=\"Pod\"",
            "operation=\"delete\"",
            "outcome=\"refused\"",
        ];
        replica.metric("hookgate_admission_requests_total", &labels).await
    };
    let earlier = count_denials().await;
    let deletion = guarded.start_deletion(&["--cascade=foreground"]);
    guarded.await_ended(&ended).await;
    // No one else deletes pods.
    eventually(SOON, || async {
        match count_denials().await - earlier {
            denials @ 0..3 => Err(denials),
            _ => Ok(()),
        }
    })
    .await;
    fleet
        .until_runs(|runs| {
            let is_new = |run: &HookRun| run.uid() != before && phase(run) == Some(Phase::Running);
            runs.len() == 3 && runs.iter().all(is_new)
        })
        .await;
    end_matches(&guarded, &busy[..1], &mut ended).await;
    let run_of_last = async || {
        let runs = fleet
            .until_runs(|runs| runs.iter().any(|run| pod_of(run) == *last))
            .await;
        runs.iter().find(|run| pod_of(run) == *last).unwrap().uid()
    };
    let run = run_of_last().await;
    assert!(guarded.requesters(&busy[1]).await.is_empty());
    assert_eq!(guarded.requesters(last).await, ["admin"]);
    end_matches(&guarded, &busy[1..2], &mut ended).await;
    assert_eq!(run_of_last().await, run);
    end_matches(&guarded, &busy[2..], &mut ended).await;
    assert_deleted(&guarded, deletion).await;
    guarded.assert_ended_after_hooks(&pods);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphaning_deletion_leaves_the_pods_as_they_are() {
    let guarded = Guarded::new("delete-orphan").await;
    let fleet = &guarded.fleet;
    let pods = guarded.launch(2, json!({})).await;
    let uids = fleet.uids().await;
    assert_deleted(&guarded, guarded.start_deletion(&["--cascade=orphan"])).await;
    fleet.quiet().await;
    let left = fleet.all_pods().await;
    assert!(left.values().all(|pod| pod.owner_references().is_empty()));
    assert_eq!((fleet.uids().await, fleet.names().await), (uids, pods));
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphaning_deletion_keeps_the_pods_that_an_earlier_deletion_has_left() {
    let guarded = Guarded::new("orphan-late").await;
    let pods = guarded.launch(3, json!({})).await;
    let (busy, idle) = guarded.occupy(&pods, 2);
    let deletion = guarded.start_deletion(&[]);
    guarded.await_ended(&idle).await;
    let late = guarded.start_deletion(&["--cascade=orphan"]);
    assert_deleted(&guarded, deletion).await;
    assert_deleted(&guarded, late).await;
    // An empty pod would have been deleted by now.
    guarded.end_matches(&busy);
    guarded.fleet.quiet().await;
    let left = guarded.fleet.all_pods().await;
    assert!(left.values().all(|pod| pod.owner_references().is_empty()));
    assert_eq!(guarded.fleet.names().await, busy.into_iter().collect());
    guarded.assert_ended_after_hooks(&idle);
}

/// This is the way out of an emergency.
#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_is_being_deleted_is_deleted_with_its_busy_pods_once_its_policy_is_unguarded() {
    let guarded = Guarded::new("delete-unguarded").await;
    let pods = guarded.launch(2, json!({})).await;
    guarded.occupy(&pods, 2);
    let deletion = guarded.start_deletion(&[]);
    guarded.fleet.asked(2).await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), BTreeSet::new());
    let policy = r#"{"spec":{"disruption":{"policy":"Unguarded"}}}"#;
    let _ = guarded
        .fleet
        .kubectl(&["patch", "gd", GAME, "--type", "merge", "-p", policy], "");
    assert_deleted(&guarded, deletion).await;
    guarded.await_ended(&pods).await;
    guarded.assert_ended_once(&pods);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_during_a_deletion_continues_it_after_its_restart() {
    let mut guarded = Guarded::new("delete-restart").await;
    let pods = guarded.launch(3, json!({})).await;
    let (busy, mut ended) = guarded.occupy(&pods, 2);
    let deletion = guarded.start_deletion(&[]);
    guarded.await_ended(&ended).await;
    guarded.fleet.asked(2).await;
    guarded.fleet.kill_workloads();
    guarded.end_match(&busy[0]);
    guarded
        .fleet
        .until_runs(|runs| runs.iter().any(|run| phase(run) == Some(Phase::Successful)))
        .await;
    assert_eq!(guarded.fleet.nodes.terminated_pods(), ended);
    assert!(has_finalizer(&guarded.fleet.game().await));
    guarded.fleet.start_workloads().await;
    end_matches(&guarded, &busy, &mut ended).await;
    assert_deleted(&guarded, deletion).await;
    guarded.assert_ended_after_hooks(&pods);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_guarded_pods_is_kept_until_its_game_deployments_are_deleted() {
    let guarded = Guarded::new("namespace-kept").await;
    let fleet = &guarded.fleet;
    let pods = guarded.launch(2, json!({})).await;
    let uids = fleet.uids().await;
    let (busy, _) = guarded.occupy(&pods, 2);
    let namespace = &fleet.namespace;
    let delete = ["delete", "namespace", namespace, "--timeout=120s"];
    for command in [&delete, &["delete", "namespace", namespace, "--dry-run=server"]] {
        let (succeeded, output) = guarded.kubectl(command);
        assert!(!succeeded, "{output}");
        assert_has(
            &output,
            &format!("denied the request: namespace {namespace} has 2 guarded pods, for example {GAME}-"),
        );
        assert_has(
            &output,
            &format!(
                ", which would be deleted without running their PreDelete hooks. Delete the GameDeployments first: \
                 kubectl delete gamedeployments --all -n {namespace}; to delete the namespace without running the \
                 hooks: kubectl label namespace {namespace} tkex.tencent.com/removal-guard=Disabled --overwrite"
            ),
        );
    }
    let namespaces: Api<Namespace> = Api::all(fleet.client());
    let found = namespaces.get(namespace).await.unwrap().metadata;
    let template = fleet.templates().get("empty").await.unwrap().metadata;
    let workload = fleet.game().await.metadata;
    for metadata in [found, template, workload] {
        assert!(metadata.deletion_timestamp.is_none(), "{metadata:?}");
    }
    assert_eq!((fleet.uids().await, fleet.names().await), (uids, pods.clone()));
    for pod in &pods {
        assert!(guarded.requesters(pod).await.is_empty());
    }
    guarded.end_matches(&busy);
    let label = format!("{DELETION_ALLOW}=Always");
    let _ = fleet.kubectl(&["label", "gamedeployments", "--all", &label], "");
    let _ = fleet.kubectl(&["delete", "gamedeployments", "--all", "--timeout=120s"], "");
    let _ = fleet.kubectl(&delete, "");
    assert!(namespaces.get_opt(namespace).await.unwrap().is_none());
    guarded.await_ended(&pods).await;
    guarded.assert_ended_after_hooks(&pods);
}

/// The operator removes the finalizer once the namespace controller has deleted the pods.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_disables_the_guard_is_deleted_with_its_busy_pods() {
    let guarded = Guarded::new("namespace-disabled").await;
    let fleet = &guarded.fleet;
    let pods = guarded.launch(2, json!({})).await;
    guarded.occupy(&pods, 2);
    assert!(has_finalizer(&fleet.game().await));
    let delete = ["delete", "namespace", &fleet.namespace, "--wait=false"];
    assert!(!guarded.kubectl(&delete).0);
    guarded.disable();
    // The API server learns of the label through a watch.
    eventually(SOON, || async {
        let (succeeded, output) = guarded.kubectl(&delete);
        if succeeded { Ok(()) } else { Err(output) }
    })
    .await;
    let namespaces: Api<Namespace> = Api::all(fleet.client());
    eventually(Duration::from_mins(2), || async {
        match namespaces.get_opt(&fleet.namespace).await.unwrap() {
            None => Ok(()),
            Some(namespace) => Err(namespace.status),
        }
    })
    .await;
    guarded.await_ended(&pods).await;
    guarded.assert_ended_once(&pods);
}

#[tokio::test]
async fn only_a_workload_with_the_policy_ask_has_the_finalizer() {
    let fleet = Fleet::on(shared().await, PROGRAMS, "delete-policy").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    assert!(!has_finalizer(&fleet.game().await));
    fleet.set(json!({ "disruption": { "policy": "Ask" } })).await;
    fleet.until_game(has_finalizer).await;
    fleet
        .set(json!({ "disruption": { "policy": "Unguarded" } }))
        .await;
    fleet.until_game(|workload| !has_finalizer(workload)).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}
