//! What is known of a workload, put in the order in which people ask: its state, its revisions, their pods, their
//! HookRuns. Pure: objects and a moment go in, a picture comes out, which `draw` turns to lines and `-o json` to JSON.
//!
//! | module | job |
//! | --- | --- |
//! | [`state`] | one word and one sentence about a workload |
//! | [`revision`] | revisions, their images, and which of them counts |
//! | [`pod`] | one word about a pod, and what it waits for |
//! | [`run`] | a HookRun with its measurements |
//! | [`age`] | spans of time as kubectl writes them |

pub(crate) mod age;
pub(crate) mod pod;
pub(crate) mod revision;
pub(crate) mod run;
pub(crate) mod state;

use gamedeployment_core::hook_kind::HookKind;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde::Serialize;
use shared_api::game_deployment::HookCondition;
use shared_api::names::hook_run_label;
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun};

use crate::cluster::Snapshot;
use revision::RevisionView;
use run::RunView;
use state::State;

/// A workload, as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GameView {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// Where it stands.
    pub(crate) state: State,
    /// How it is updated, in words.
    pub(crate) strategy: String,
    /// Numbers of pods.
    pub(crate) counts: Counts,
    /// Its revisions, newest first; those without pods only where they count.
    pub(crate) revisions: Vec<RevisionView>,
    /// HookRuns that are about no pod: those of canary steps.
    pub(crate) steps: Vec<RunView>,
    /// HookRuns that cannot be read, each with what is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<String>,
    /// Commands that may help now.
    pub(crate) next: Vec<String>,
}

/// Numbers of pods.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    /// That there should be.
    pub(crate) desired: i32,
    /// That there are.
    pub(crate) current: i32,
    pub(crate) ready: i32,
    /// Ready for `minReadySeconds`.
    pub(crate) available: i32,
    /// At the update revision.
    pub(crate) updated: i32,
    /// That wait for a hook.
    pub(crate) waiting: i32,
}

impl Counts {
    /// Reads them off a workload.
    pub(crate) fn of(game: &GameDeployment) -> Self {
        let status = status_of(game);
        Self {
            desired: game.spec.replicas.unwrap_or(1),
            current: status.replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            updated: status.updated_replicas,
            waiting: status.hook_pending_replicas,
        }
    }
}

impl GameView {
    /// The picture of a workload.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let game = &snapshot.game;
        let state = State::of(game);
        let next = crate::why::commands(snapshot);
        Self {
            name: game.name_any(),
            namespace: game.namespace().unwrap_or_default(),
            created: created(game),
            strategy: strategy(game),
            counts: Counts::of(game),
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
                .map(|run| format!("HookRun {} cannot be read: {}", run.name, run.error))
                .collect(),
            next,
            state,
        }
    }
}

/// When an object was created.
pub(crate) fn created(object: &impl kube::Resource) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|time| time.0)
}

/// A workload's status, empty where there is none.
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

/// The hook's name as people write it.
pub(crate) fn hook_name(kind: HookKind) -> &'static str {
    shared_api::names::hook_kind::old_name(kind.label())
}

/// The runs about a pod.
pub(crate) fn runs_of<'s>(snapshot: &'s Snapshot, uid: &str) -> impl Iterator<Item = &'s HookRun> {
    let about =
        move |run: &&HookRun| run.labels().get(hook_run_label::POD_UID).map(String::as_str) == Some(uid);
    snapshot.runs.iter().filter(about)
}

/// How a workload is updated: its type, and the numbers that were set.
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
    if steps > 0 {
        let done = status_of(game).current_step_index.unwrap_or_default();
        let done = usize::try_from(done).unwrap_or_default();
        words.push(if done < steps {
            format!("canary step {} of {steps}", done + 1)
        } else {
            format!("{steps} canary steps done")
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
