//! HookRuns that have lost their owner: a backup was restored, or their workload was deleted with `--cascade=orphan`.
//! They are not measured, and hold up no pod.

use kube::ResourceExt;
use kube::api::PostParams;
use operator_tests::fleet::{GAME, game, hooked, pod_of, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::json;
use shared_api::names::hook_run_label::EXCLUDE_FROM_BACKUP;
use shared_api::{HookRun, HookRunStatus, Phase};

use crate::fleet;

/// Path that only restored HookRuns would call.
const PATH: &str = "/restored";

/// Creates a HookRun as Velero restores it: with another UID, without its owner and its status.
async fn restore(fleet: &Fleet<'_>, of_backup: &HookRun) {
    let mut spec = json!(of_backup.spec);
    spec["metrics"][0]["provider"]["web"]["url"] = json!(format!("http://{{{{ args.PodIP }}}}:9091{PATH}"));
    let mut run = HookRun::new(&of_backup.name_any(), serde_json::from_value(spec).unwrap());
    run.metadata.labels.clone_from(&of_backup.metadata.labels);
    run.metadata
        .annotations
        .clone_from(&of_backup.metadata.annotations);
    let labels = run.metadata.labels.get_or_insert_default();
    labels.insert("velero.io/backup-name".to_owned(), "nightly".to_owned());
    fleet.runs().create(&PostParams::default(), &run).await.unwrap();
}

fn status(run: &HookRun) -> HookRunStatus {
    run.status.clone().unwrap_or_default()
}

fn has_ended_without_owner(run: &HookRun) -> bool {
    let status = status(run);
    (status.phase, status.reason.as_deref()) == (Phase::Error, Some("OwnerMissing"))
}

fn is_owned(run: &HookRun) -> bool {
    run.owner_references()
        .iter()
        .any(|owner| owner.controller == Some(true))
}

#[tokio::test]
async fn restored_runs_call_nobody_and_hold_up_no_pod() {
    let fleet = fleet("restored").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    let pods = fleet.names().await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(0);
    fleet.asked(2).await;
    let backup = fleet.until_runs(|runs| runs.len() == 2).await;
    for run in &backup {
        assert_eq!(run.labels()[EXCLUDE_FROM_BACKUP], "true", "backups leave it out");
        assert!(is_owned(run));
    }
    fleet.scale(2);
    fleet.settled(2).await;

    for run in &backup {
        restore(&fleet, run).await;
    }
    let restored = fleet
        .until_runs(|runs| runs.len() == 2 && runs.iter().all(has_ended_without_owner))
        .await;
    for run in &restored {
        assert_has(&status(run).message.unwrap(), "delete it");
        assert_eq!(status(run).metric_results, []);
    }
    fleet
        .told("Next: if it still has no owner, run: kubectl delete hookrun")
        .await;
    fleet.quiet().await;

    // The pod that is selected needs the name of one of them.
    fleet.scale(1);
    let is_asked = |run: &HookRun| is_owned(run) && status(run).phase == Phase::Running;
    let runs = fleet
        .until_runs(|runs| runs.len() == 2 && runs.iter().filter(|run| is_asked(run)).count() == 1)
        .await;
    let asked = runs.iter().find(|run| is_asked(run)).unwrap();
    let replaced = restored
        .iter()
        .find(|run| run.name_any() == asked.name_any())
        .unwrap();
    assert_ne!(asked.metadata.uid, replaced.metadata.uid);
    let event = format!("HookRunEdited HookRun {} has no owner", asked.name_any());
    fleet.told(&event).await;
    let other = runs.iter().find(|run| !is_owned(run)).unwrap();
    assert!(has_ended_without_owner(other), "nobody needs its name: {other:?}");
    fleet.delete_run(&other.name_any()).await;
    fleet.asked(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    let victim = pod_of(asked);
    fleet.nodes.pod(&victim).set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), [victim].into());
    for pod in pods {
        assert_eq!(fleet.nodes.pod(&pod).counts(PATH).received, 0, "{pod}");
    }
}

/// Neither operator has seen them before: both start after the restore.
#[tokio::test]
async fn operators_that_start_after_a_restore_do_the_same() {
    let mut fleet = fleet("restored").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    let pod = fleet.names().await.pop_first().unwrap();
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(0);
    fleet.asked(1).await;
    let backup = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    fleet.kill_workloads();
    fleet.hooks = None;
    fleet.delete_run(&backup.name_any()).await;
    fleet.until_runs(<[_]>::is_empty).await;
    restore(&fleet, &backup).await;
    fleet.start_hooks().await;
    fleet
        .until_runs(|runs| runs.iter().all(has_ended_without_owner))
        .await;
    fleet.start_workloads().await;
    fleet
        .until_runs(|runs| runs.len() == 1 && is_owned(&runs[0]))
        .await;
    fleet.asked(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(0).await;
    assert_eq!(fleet.nodes.terminated_pods(), [pod.clone()].into());
    assert_eq!(fleet.nodes.pod(&pod).counts(PATH).received, 0);
}

#[tokio::test]
async fn a_workload_that_is_made_anew_asks_anew_for_the_pods_that_it_takes_over() {
    let fleet = fleet("restored").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(1).await;
    let before = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    let _ = fleet.kubectl(&["delete", "gamedeployment", GAME, "--cascade=orphan"], "");
    fleet
        .until_runs(|runs| runs.len() == 1 && has_ended_without_owner(&runs[0]))
        .await;
    fleet.apply(&game(1, hooked("empty")));
    fleet
        .until_runs(|runs| runs.len() == 1 && is_owned(&runs[0]) && runs[0].uid() != before.uid())
        .await;
    fleet.asked(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}
