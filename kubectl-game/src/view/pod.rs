//! View of a pod: one word, and what it waits for.

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::pod::{ContainerState, Pod, PodPhase};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use kube::ResourceExt;
use serde::Serialize;
use shared_api::game_deployment::HookCondition;
use shared_api::names::pod::{DELETING, SKIP_HOOK};
use shared_api::{HookRun, Phase};

use super::removal::RemovalView;
use super::run::{RunView, phase_of};
use super::waits::Wait;
use super::{entries, hook_name, runs_of, scout_of, status_of};
use crate::cluster::Snapshot;
use crate::paint::Tone;

/// View of a pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodView {
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) revision: String,
    /// Time of its creation.
    pub(crate) created: Option<Timestamp>,
    /// State, in a word.
    pub(crate) word: String,
    /// Significance of the word.
    pub(crate) tone: Tone,
    /// Number of ready containers, and of all containers.
    pub(crate) ready: (usize, usize),
    /// Number of restarts of its containers.
    pub(crate) restarts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Whether the pod's hooks are skipped.
    pub(crate) skips: bool,
    /// Removal requests of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removal: Option<RemovalView>,
    /// Whether the pod waits for a hook.
    pub(crate) waits: bool,
    /// Name of the HookRun that the pod waits for, or else of its scout.
    #[serde(skip)]
    pub(crate) waits_for: Option<String>,
    /// Reason why its hook needs attention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Reason why it waits or does not start; `None` if there is none, or a HookRun shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// HookRuns of the pod.
    pub(crate) runs: Vec<RunView>,
}

impl PodView {
    pub(super) fn of(snapshot: &Snapshot, object: &api::Pod) -> Self {
        let pod = Pod::read(object);
        let waiting = waiting(snapshot, &pod.name);
        let runs: Vec<RunView> = runs_of(snapshot, &pod.uid).map(RunView::of).collect();
        let state = waiting
            .as_ref()
            .map(|(kind, entry)| (*kind, tone(snapshot, entry)));
        let scout = scout_of(snapshot, &pod);
        let (word, tone) = word(&pod, state, scout);
        // The message of a run is more precise than the entry in the status.
        let of_hook = waiting
            .as_ref()
            .filter(|(_, entry)| entry.hook_run.is_none() || runs.is_empty())
            .and_then(|(_, entry)| entry.message.clone());
        let in_place = pod.in_place.as_ref().filter(|condition| !condition.ready);
        let message = of_hook
            .or_else(|| in_place.is_none().then(|| pod.complaint()).flatten())
            .filter(|message| !message.is_empty());
        Self {
            created: pod.created,
            ready: (
                pod.containers.iter().filter(|container| container.ready).count(),
                pod.containers.len(),
            ),
            restarts: pod.containers.iter().map(|container| container.restarts).sum(),
            node: pod.node.clone(),
            skips: pod.annotation(SKIP_HOOK) == Some(pod.uid.as_str()),
            removal: RemovalView::of(snapshot, &pod),
            waits: waiting.is_some(),
            waits_for: match &waiting {
                Some((_, entry)) => entry.hook_run.clone(),
                None => scout.map(ResourceExt::name_any),
            },
            reason: waiting.as_ref().and_then(|(_, entry)| reason(snapshot, entry)),
            revision: object
                .labels()
                .get(shared_api::names::pod::REVISION)
                .cloned()
                .unwrap_or_else(|| "unknown".to_owned()),
            name: pod.name,
            word,
            tone,
            message,
            runs,
        }
    }
}

/// Returns the status entry of a pod, and the hook that it waits for.
pub(crate) fn waiting(snapshot: &Snapshot, pod: &str) -> Option<(HookKind, HookCondition)> {
    let status = status_of(&snapshot.game);
    HookKind::ALL.into_iter().find_map(|kind| {
        let entry = entries(&status, kind)
            .iter()
            .find(|entry| entry.pod_name == pod)?;
        Some((kind, entry.clone()))
    })
}

impl PodView {
    /// Returns whether the pod is ready, and neither waits nor skips its hooks. The status names only 100 pods that wait,
    /// so that others are recognized by their HookRuns.
    pub(crate) fn is_quiet(&self) -> bool {
        let runs_nothing = self.runs.iter().all(|run| run.phase == Phase::Successful);
        self.tone == Tone::Good && !self.waits && !self.skips && self.message.is_none() && runs_nothing
    }
}

/// Returns the reason why the hook of an entry needs attention, if it does.
fn reason(snapshot: &Snapshot, entry: &HookCondition) -> Option<String> {
    match Wait::of(&status_of(&snapshot.game), entry) {
        Wait::Blocked(Some(reason)) => Some(reason.to_string()),
        Wait::Blocked(None) => entry.reason.clone(),
        Wait::Running => None,
    }
}

/// Returns the significance of a wait.
fn tone(snapshot: &Snapshot, entry: &HookCondition) -> Tone {
    let phase = entry.phase;
    match Wait::of(&status_of(&snapshot.game), entry) {
        // A success that does not open the gate had no successful measurement.
        Wait::Blocked(_) if !phase.is_final() || Tone::from(phase) == Tone::Good => Tone::Bad,
        Wait::Blocked(_) | Wait::Running => phase.into(),
    }
}

fn word(pod: &Pod, waiting: Option<(HookKind, Tone)>, scout: Option<&HookRun>) -> (String, Tone) {
    let word = |word: &str, tone| (word.to_owned(), tone);
    if pod.terminating {
        return word("Terminating", Tone::Gone);
    }
    match pod.phase {
        PodPhase::Succeeded => return word("Succeeded", Tone::Gone),
        PodPhase::Failed => return word("Failed", Tone::Bad),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => {}
    }
    if let Some((kind, tone)) = waiting {
        return word(hook_name(kind), tone);
    }
    if pod.annotation(DELETING) == Some("true") {
        return word("Selected", Tone::Busy);
    }
    let stuck = pod
        .containers
        .iter()
        .find_map(|container| match &container.state {
            ContainerState::Waiting { reason, .. } if container.complaint().is_some() => Some(reason.clone()),
            _ => None,
        });
    if let Some(reason) = stuck {
        return (reason, Tone::Bad);
    }
    if pod.is_out_of_service() {
        return word("Updating", Tone::Busy);
    }
    match (&pod.phase, pod.is_ready()) {
        (PodPhase::Pending, _) => word("Pending", Tone::Busy),
        (_, true) => scout.map_or_else(|| word("Ready", Tone::Good), |scout| candidate(phase_of(scout))),
        (_, false) => word("NotReady", Tone::Warn),
    }
}

/// Returns the word of a candidate whose hook has this phase. A hook that ended without success is not rerun
/// automatically.
fn candidate(phase: Phase) -> (String, Tone) {
    if phase.is_final() && phase != Phase::Successful {
        (format!("Hook{phase}"), phase.into())
    } else {
        ("Candidate".to_owned(), Tone::Busy)
    }
}
