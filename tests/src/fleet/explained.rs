//! Checks that nothing waits silently: for every waiting pod, the status has a message that names it and a
//! way out.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;
use shared_api::game_deployment::HookCondition;
use shared_api::names::pod::{DELETING, IN_PLACE_READY, REVISION};
use shared_api::{GameDeployment, GameDeploymentStatus};
use test_kit::eventually;

use super::seen::condition;
use super::{Fleet, GAME};
use crate::SOON;

/// Allowed phrases about a pod selected for deletion.
const TO_BE_DELETED: [&str; 6] = [
    "waiting for the verdict of HookRun",
    "retry to true",
    "cannot run, because ",
    "keeps failing with errors: ",
    "cannot succeed: ",
    "waiting because maxUnavailable is reached",
];
/// Allowed phrases about a pod out of service.
const OUT_OF_SERVICE: [&str; 6] = [
    "its images will be updated",
    "its images are about to be updated",
    "is being updated",
    "back into service",
    "fix the image",
    "check its containers",
];
/// Allowed phrases about a pod that is not updated.
const NOT_UPDATED: [&str; 9] = [
    "paused to false",
    "held back by spec.updateStrategy.partition",
    "when they are deleted",
    "when it is deleted",
    "canary step",
    "lifecycle hook ",
    "pods are updated",
    "creating ",
    "deleting ",
];

impl Fleet<'_> {
    /// Waits until the status explains every waiting pod. Call it while nothing is in progress: the status
    /// must then explain them all.
    pub async fn explained(&self) {
        if self.workloads.is_none() {
            return;
        }
        eventually(SOON, || async {
            let pods = self.all_pods().await;
            let game = self
                .games()
                .get_opt(GAME)
                .await
                .map_err(|error| error.to_string())?;
            let Some(game) = game else { return Ok(()) };
            let silent: Vec<String> = pods.values().filter_map(|pod| silence(&game, pod)).collect();
            let entries = unexplained_entries(&game);
            if silent.is_empty() && entries.is_empty() {
                Ok(())
            } else {
                Err(format!("{silent:?} {entries:?}: {}", json!(game.status)))
            }
        })
        .await;
    }
}

/// Returns the missing explanation of a pod, if there is one.
fn silence(game: &GameDeployment, pod: &Pod) -> Option<String> {
    let status = game.status.clone().unwrap_or_default();
    let ours = pod
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == game.metadata.uid.as_ref());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let finished = matches!(phase, Some("Succeeded" | "Failed"));
    let invalid = condition(&status, "InvalidSpec").is_some();
    if !ours || finished || invalid || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let name = pod.name_any();
    let marked = pod.annotations().contains_key(DELETING);
    let mut conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let out = conditions.any(|known| known.type_ == IN_PLACE_READY && known.status == "False");
    let revision = pod.labels().get(REVISION);
    let old = match &status.rollback {
        Some(rollback) => revision != Some(&rollback.to_revision),
        None => revision != status.update_revision.as_ref() && status.updated_replicas < status.replicas,
    };
    let blocked = condition(&status, "UpdateBlocked").is_some_and(|found| !found.2.is_empty());
    let said = |words: &[&str]| is_said(&status, &name, words);
    let update_explained = said(&NOT_UPDATED) || said(&TO_BE_DELETED) || blocked && said(&[""]);
    if marked {
        (!said(&TO_BE_DELETED)).then(|| format!("{name} is marked"))
    } else if out {
        (!said(&OUT_OF_SERVICE)).then(|| format!("{name} is out of service"))
    } else {
        (old && !update_explained).then(|| format!("{name} is not updated"))
    }
}

/// Whether a message about this pod, or about more pods than it names, contains one of these phrases.
fn is_said(status: &GameDeploymentStatus, pod: &str, words: &[&str]) -> bool {
    let has = |text: &str| words.iter().any(|words| text.contains(words));
    let conditions = status
        .conditions
        .iter()
        .map(|condition| condition.message.as_str());
    let named = |text: &&str| text.contains(pod) || text.contains(" more");
    let entry = |entry: &&HookCondition| entry.pod_name == pod;
    conditions.filter(named).any(has)
        || entries(status)
            .filter(entry)
            .any(|entry| entry.message.as_deref().is_some_and(has))
}

/// Returns the hook conditions without a message or a start time.
fn unexplained_entries(game: &GameDeployment) -> Vec<HookCondition> {
    let status = game.status.clone().unwrap_or_default();
    let silent = |entry: &&HookCondition| {
        entry.message.as_deref().unwrap_or_default().is_empty() || entry.start_time.is_none()
    };
    entries(&status).filter(silent).cloned().collect()
}

fn entries(status: &GameDeploymentStatus) -> impl Iterator<Item = &HookCondition> {
    let lists = [
        &status.pre_delete_hook_condition,
        &status.pre_inplace_hook_condition,
        &status.post_inplace_hook_condition,
    ];
    lists.into_iter().flatten()
}
