//! View of a workload, in the order in which users read it: state, revisions, pods, HookRuns. Pure:
//! builds a view from objects and a time. `draw` renders it as lines, `-o json` as JSON.
//!
//! | module | job |
//! | --- | --- |
//! | [`state`] | one word and one sentence about a workload |
//! | [`revision`] | revisions, their images and roles |
//! | [`pod`] | one word about a pod, and what it waits for |
//! | [`removal`] | removal requests of a pod |
//! | [`run`] | a HookRun with its measurements |
//! | [`search`] | searches for idle pods, and the hooks of their candidates |
//! | [`lifecycle`] | the hooks of a rollout, in the order of their points |
//! | [`execution`] | an ExecutionHook with its containers |
//! | [`waits`] | causes for which pods wait for their hooks |
//! | [`age`] | durations in kubectl's format |

pub(crate) mod age;
pub(crate) mod execution;
#[cfg(test)]
pub(crate) mod execution_samples;
pub(crate) mod lifecycle;
pub(crate) mod pod;
pub(crate) mod removal;
pub(crate) mod revision;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod state;
pub(crate) mod waits;

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::Pod;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde::Serialize;
use shared_api::game_deployment::HookCondition;
use shared_api::names::hook_run_label;
use shared_api::names::pod::DELETING;
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun};

use crate::cluster::Snapshot;
use crate::paint::Tone;
use crate::why::Next;
use lifecycle::LifecycleHookView;
use revision::RevisionView;
use run::{RunView, phase_of, scout_hook};
use state::{State, rollback};

/// View of a workload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GameView {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Time of its creation.
    pub(crate) created: Option<Timestamp>,
    /// State of the workload.
    pub(crate) state: State,
    /// Description of its update strategy.
    pub(crate) strategy: String,
    /// Revision that pods are rolled back to, if the rollout is aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rollback_to: Option<String>,
    /// Numbers of pods.
    pub(crate) counts: PodCounts,
    /// Lifecycle hooks of the current or last rollout, in the order of their points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lifecycle_hooks: Vec<LifecycleHookView>,
    /// Revisions, newest first. Revisions without pods are omitted, except the update revision and an aborted one.
    pub(crate) revisions: Vec<RevisionView>,
    /// HookRuns of canary steps, which belong to no pod.
    pub(crate) steps: Vec<RunView>,
    /// HookRuns that cannot be parsed, each with its error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<String>,
    /// Commands that may help now.
    pub(crate) next: Vec<Next>,
}

/// Numbers of pods.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodCounts {
    /// Desired pods.
    pub(crate) desired: i32,
    /// Existing pods.
    pub(crate) current: i32,
    pub(crate) ready: i32,
    /// Pods that have been ready for `minReadySeconds`.
    pub(crate) available: i32,
    /// Pods at the update revision. During a rollback, these pods are rolled back.
    pub(crate) updated: i32,
    /// Pods that wait for a hook.
    pub(crate) waiting: i32,
    /// Candidates, whose hook runs only to find out whether they are idle; `None` while idle pods are not searched for.
    /// A candidate of both searches counts twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) candidates: Option<i32>,
}

impl PodCounts {
    /// Reads the numbers from a workload.
    pub(crate) fn of(game: &GameDeployment) -> Self {
        let status = status_of(game);
        Self {
            desired: game.spec.replicas.unwrap_or(1),
            current: status.replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            updated: status.updated_replicas,
            waiting: status.hook_pending_replicas,
            candidates: search::candidates(&status),
        }
    }
}

impl GameView {
    /// Builds the view of a workload.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let game = &snapshot.game;
        let state = State::of(game);
        let next = crate::why::commands(snapshot);
        Self {
            name: game.name_any(),
            namespace: game.namespace().unwrap_or_default(),
            created: created(game),
            strategy: strategy(game),
            rollback_to: rollback(&status_of(game)).map(|rollback| rollback.to_revision.clone()),
            counts: PodCounts::of(game),
            lifecycle_hooks: lifecycle::all(game),
            revisions: revision::all(snapshot),
            steps: snapshot
                .runs
                .iter()
                .filter(|run| !run.labels().contains_key(hook_run_label::POD_UID))
                .map(RunView::of)
                .collect(),
            unreadable: snapshot
                .unreadable
                .iter()
                .map(|run| format!("HookRun {} cannot be parsed: {}", run.name, run.error))
                .collect(),
            next,
            state,
        }
    }

    /// Returns the word for [`PodCounts::updated`].
    pub(crate) fn updated_word(&self) -> &'static str {
        if self.rollback_to.is_some() {
            "to roll back"
        } else {
            "updated"
        }
    }
}

/// Returns the time of an object's creation.
pub(crate) fn created(object: &impl kube::Resource) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|time| time.0)
}

/// Returns the status of a workload, or an empty one.
pub(crate) fn status_of(game: &GameDeployment) -> GameDeploymentStatus {
    game.status.clone().unwrap_or_default()
}

pub(crate) fn entries(status: &GameDeploymentStatus, kind: HookKind) -> &[HookCondition] {
    match kind {
        HookKind::PreDelete => &status.pre_delete_hook_condition,
        HookKind::PreInplace => &status.pre_inplace_hook_condition,
        HookKind::PostInplace => &status.post_inplace_hook_condition,
    }
}

/// Returns the name of the hook for users.
pub(crate) fn hook_name(kind: HookKind) -> &'static str {
    shared_api::names::hook_kind::old_name(kind.label())
}

/// Returns the runs of a pod.
pub(crate) fn runs_of<'s>(snapshot: &'s Snapshot, uid: &str) -> impl Iterator<Item = &'s HookRun> {
    let about =
        move |run: &&HookRun| run.labels().get(hook_run_label::POD_UID).map(String::as_str) == Some(uid);
    snapshot.runs.iter().filter(about)
}

/// Returns the scouts of a pod that is a candidate, each with its hook; none for other pods, and once the pod is
/// selected for deletion.
pub(crate) fn scouts_of<'s>(
    snapshot: &'s Snapshot,
    pod: &Pod,
) -> impl Iterator<Item = (HookKind, &'s HookRun)> {
    let is_candidate = pod.is_active() && pod.annotation(DELETING) != Some("true");
    runs_of(snapshot, &pod.uid)
        .filter(move |run| is_candidate && run.metadata.deletion_timestamp.is_none())
        .filter_map(|run| Some((scout_hook(run)?, run)))
}

/// Returns the scout of a pod that is a candidate; of several, the most urgent one.
pub(crate) fn scout_of<'s>(snapshot: &'s Snapshot, pod: &Pod) -> Option<&'s HookRun> {
    let scouts = scouts_of(snapshot, pod).map(|(_, run)| run);
    scouts.min_by_key(|run| Tone::from(phase_of(run)).urgency())
}

/// Describes how a workload is updated: its type, and the numbers that are set. During a rollback, no canary step
/// counts.
pub(crate) fn strategy(game: &GameDeployment) -> String {
    let strategy = game.spec.update_strategy.clone().unwrap_or_default();
    let mut words = vec![strategy.type_.unwrap_or_else(|| "RollingUpdate".to_owned())];
    let amounts = [
        ("partition", &strategy.partition),
        ("maxUnavailable", &strategy.max_unavailable),
        ("maxSurge", &strategy.max_surge),
    ];
    for (name, amount) in amounts {
        if let Some(amount) = amount.as_ref().filter(|amount| **amount != IntOrString::Int(0)) {
            words.push(format!("{name} {}", shown(amount)));
        }
    }
    let steps = strategy
        .canary
        .and_then(|canary| canary.steps)
        .map_or(0, |steps| steps.len());
    let status = status_of(game);
    if let Some(rollback) = rollback(&status) {
        words.push(format!("rolling back to {}", rollback.to_revision));
    } else if steps > 0 {
        let done = status.current_step_index.unwrap_or_default();
        let done = usize::try_from(done).unwrap_or_default();
        words.push(match steps {
            _ if done < steps => format!("canary step {} of {steps}", done + 1),
            1 => "1 canary step complete".to_owned(),
            _ => format!("{steps} canary steps complete"),
        });
    }
    if strategy.paused == Some(true) {
        words.push("paused".to_owned());
    }
    words.join(", ")
}

fn shown(amount: &IntOrString) -> String {
    match amount {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

#[cfg(test)]
pub(crate) mod samples;
