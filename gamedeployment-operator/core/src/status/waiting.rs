//! Pods that wait for a hook, with the start and the reason of the wait.

use jiff::Timestamp;
use shared_api::game_deployment::HookCondition;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeploymentStatus, Phase};

use super::Findings;
use crate::facts::Facts;
use crate::gate::{GateState, Intent, Run};
use crate::hook_kind::HookKind;
use crate::plan::HookWaits;
use crate::pod::Pod;
use crate::user_text::bounded;

/// Maximum number of entries of a kind in the status; `hookPendingReplicas` counts all.
const MAX_ENTRIES: usize = 100;

/// State of a waiting pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitState {
    /// Its hook has no verdict yet.
    Running,
    /// Its hook did not succeed.
    Unsuccessful,
    /// Its hook cannot run, or nothing measures it.
    Blocked(WorkloadReason),
    /// Its hook runs, but keeps failing with errors or cannot succeed.
    Erroring(WorkloadReason),
}

impl WaitState {
    /// Returns the reason for the wait, if it is longer than a verdict takes.
    pub(super) fn reason(self) -> Option<WorkloadReason> {
        match self {
            Self::Running => None,
            Self::Unsuccessful => Some(WorkloadReason::HookUnsuccessful),
            Self::Blocked(reason) | Self::Erroring(reason) => Some(reason),
        }
    }
}

/// A waiting pod.
pub(super) struct WaitingPod<'a> {
    pub(super) pod: &'a Pod,
    pub(super) kind: HookKind,
    pub(super) state: WaitState,
    /// Whether the pod is selected for deletion, as surplus or because the user named it, not for an update.
    pub(super) scales: bool,
    pub(super) condition: HookCondition,
}

impl WaitingPod<'_> {
    /// Sort key: longest wait first.
    fn key(&self) -> (Option<shared_api::time::Time>, &str) {
        (self.condition.start_time, &self.condition.pod_name)
    }
}

/// All pods that wait for a hook, longest wait first.
pub(super) struct Waiting<'a> {
    pub(super) entries: Vec<WaitingPod<'a>>,
}

impl<'a> Waiting<'a> {
    pub(super) fn gather(facts: &Facts<'a>, findings: &Findings<'a>, old: &GameDeploymentStatus) -> Self {
        let mut entries = Vec::new();
        for pod in &findings.pods {
            let Some(kind) = pod.intent.hook(facts.workload) else {
                continue;
            };
            entries.extend(waiting_pod(
                facts,
                pod.facts.pod,
                kind,
                &pod.intent,
                &pod.gate_state,
                old,
            ));
        }
        for confirmation in &findings.confirmations {
            let intent = Intent::Confirm(confirmation.pod.revision().to_owned());
            entries.extend(waiting_pod(
                facts,
                confirmation.pod,
                HookKind::PostInplace,
                &intent,
                &confirmation.gate_state,
                old,
            ));
        }
        entries.sort_by(|a, b| a.key().cmp(&b.key()));
        Self { entries }
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Returns the status entries of a kind, at most [`MAX_ENTRIES`]. Those that need a person come first.
    pub(super) fn entries(&self, kind: HookKind) -> Vec<HookCondition> {
        self.shown(kind).map(|entry| entry.condition.clone()).collect()
    }

    pub(super) fn shown(&self, kind: HookKind) -> impl Iterator<Item = &WaitingPod<'a>> {
        let of_kind = move |asking: bool| {
            let entries = self.entries.iter().filter(move |entry| entry.kind == kind);
            entries.filter(move |entry| (entry.state == WaitState::Running) == asking)
        };
        of_kind(false).chain(of_kind(true)).take(MAX_ENTRIES)
    }

    /// Whether the pods behind a condition get their own events. Pods waiting for a canary step's hook do
    /// not.
    pub(super) fn gets_own_event(&self, condition: &str) -> bool {
        let scales = condition == WorkloadCondition::ScaleBlocked.as_str();
        let mut entries = self.entries.iter();
        if condition == WorkloadCondition::HooksResolved.as_str() {
            return entries.any(|entry| matches!(entry.state, WaitState::Blocked(_)));
        }
        entries.any(|entry| entry.scales == scales && entry.state != WaitState::Running)
    }

    /// Waiting pods by hook, for hooks that are configured or waited for.
    pub(super) fn gauges(&self, is_set: impl Fn(HookKind) -> bool) -> [Option<HookWaits>; 3] {
        HookKind::ALL.map(|kind| {
            let mut waits = is_set(kind).then(HookWaits::default);
            for entry in self.entries.iter().filter(|entry| entry.kind == kind) {
                let waits = waits.get_or_insert_default();
                let group = match entry.state {
                    WaitState::Running => &mut waits.asking,
                    WaitState::Unsuccessful => &mut waits.refused,
                    WaitState::Blocked(_) => &mut waits.blocked,
                    WaitState::Erroring(_) => &mut waits.erroring,
                };
                group.join(entry.condition.start_time.map(shared_api::time::Time::timestamp));
            }
            waits
        })
    }
}

/// Whether a reason is about a pod's hook. Canary steps share these reasons.
pub(super) fn is_about_pods(reason: WorkloadReason) -> bool {
    matches!(
        reason,
        WorkloadReason::HookUnsuccessful
            | WorkloadReason::HookTemplateMissing
            | WorkloadReason::HookTemplateInvalid
            | WorkloadReason::HookArgumentsUnresolved
            | WorkloadReason::HookRunNameInvalid
            | WorkloadReason::PodAddressMissing
            | WorkloadReason::HookRunTerminating
            | WorkloadReason::HookNotTakenUp
            | WorkloadReason::HookErrors
            | WorkloadReason::HookCannotSucceed
    )
}

pub(super) fn known<'a>(
    old: &'a GameDeploymentStatus,
    kind: HookKind,
    pod: &str,
) -> Option<&'a HookCondition> {
    let entries = match kind {
        HookKind::PreDelete => &old.pre_delete_hook_condition,
        HookKind::PreInplace => &old.pre_inplace_hook_condition,
        HookKind::PostInplace => &old.post_inplace_hook_condition,
    };
    entries.iter().find(|entry| entry.pod_name == pod)
}

fn waiting_pod<'a>(
    facts: &Facts<'_>,
    pod: &'a Pod,
    kind: HookKind,
    intent: &Intent,
    gate_state: &GateState<'_>,
    old: &GameDeploymentStatus,
) -> Option<WaitingPod<'a>> {
    let mut conflicting_run = None;
    let (state, phase, run, message) = match gate_state {
        GateState::Running(run) => {
            let (state, message) = without_verdict(run, &facts.workload.namespace, facts.now);
            (state, run.phase, Some(*run), message)
        }
        GateState::Unsuccessful(run) => (WaitState::Unsuccessful, run.phase, Some(*run), refused(run, kind)),
        GateState::Blocked(blocker) => {
            conflicting_run.clone_from(&blocker.conflicting_run);
            let message = format!("its hook cannot run, because {}", bounded(&blocker.message));
            (WaitState::Blocked(blocker.reason), Phase::Pending, None, message)
        }
        GateState::Stale(run, stale_reason) if stale_reason.is_stuck() => {
            let message = format!(
                "its hook cannot run, because HookRun {} is stuck terminating; fix the controller that owns its \
                 finalizers, or remove the finalizers",
                run.name
            );
            (
                WaitState::Blocked(WorkloadReason::HookRunTerminating),
                Phase::Pending,
                None,
                message,
            )
        }
        GateState::Open(_) | GateState::Consumed(_) | GateState::NotRun(_) | GateState::Stale(..) => {
            return None;
        }
    };
    let before = known(old, kind, &pod.name)
        .filter(|known| known.hook_run.is_none())
        .and_then(|known| known.start_time);
    let start = match run {
        Some(run) => run.started,
        None => Some(before.map_or(facts.now, shared_api::time::Time::timestamp)),
    };
    let message = earlier_message(known(old, kind, &pod.name), run, state).unwrap_or(message);
    let condition = HookCondition {
        pod_name: pod.name.clone(),
        phase: if phase.is_unset() { Phase::Pending } else { phase },
        start_time: start.map(whole_seconds),
        hook_run: run.map(|run| run.name.clone()),
        hook_run_uid: run
            .filter(|_| state != WaitState::Running)
            .map(|run| run.uid.as_str().into()),
        reason: state.reason().map(|reason| reason.to_string()),
        conflicting_hook_run: conflicting_run,
        message: Some(message),
    };
    Some(WaitingPod {
        pod,
        kind,
        state,
        scales: *intent == Intent::Delete,
        condition,
    })
}

/// Returns the state of a pod whose run has no verdict, and its message.
fn without_verdict(run: &Run, namespace: &str, now: Timestamp) -> (WaitState, String) {
    if let Some(blocker) = run.not_taken_up(namespace, now) {
        (WaitState::Blocked(blocker.reason), blocker.message)
    } else if let Some(blocker) = run.troubled() {
        (WaitState::Erroring(blocker.reason), blocker.message)
    } else {
        (WaitState::Running, asking(&run.name))
    }
}

/// Truncates to whole seconds, as the original operator does.
fn whole_seconds(at: Timestamp) -> shared_api::time::Time {
    Timestamp::from_second(at.as_second()).unwrap_or(at).into()
}

/// Message while nothing prevents the verdict.
fn asking(run: &str) -> String {
    format!("waiting for the verdict of HookRun {run}")
}

/// Returns the recorded message about a run that keeps failing with errors. It stays, because the texts of errors may
/// differ with each measurement, and each new one would be a write of the whole status.
fn earlier_message(known: Option<&HookCondition>, run: Option<&Run>, state: WaitState) -> Option<String> {
    let WaitState::Erroring(reason) = state else {
        return None;
    };
    let known = known.filter(|known| known.reason.as_deref() == Some(reason.as_str()))?;
    let is_same_run = known.hook_run_uid.as_deref() == run.map(|run| run.uid.as_str());
    known.message.clone().filter(|_| is_same_run)
}

fn refused(run: &Run, kind: HookKind) -> String {
    let said = bounded(&run.verdict());
    let consequence = match kind {
        HookKind::PreDelete | HookKind::PreInplace => "the pod is kept",
        HookKind::PostInplace => "no further pods are updated",
    };
    format!("HookRun {} {said}; {consequence}", run.name)
}
