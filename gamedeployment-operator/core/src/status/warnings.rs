//! Events for pods blocked by a hook: each pod gets one event with the remedy. The workload gets a few events
//! with the number of pods instead of one for each pod.

use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::HookCondition;
use shared_api::reason::WorkloadReason;

use super::name_list::join_names;
use super::waiting::{WaitState, Waiting, WaitingPod, known};
use crate::gate::PodRef;
use crate::hook_kind::HookKind;
use crate::plan::Warning;
use crate::plural::pods_are;
use crate::user_text::cut;
use crate::workload::Workload;

/// Thresholds: the workload gets an event each time the number of blocked pods rises to one of these.
const GROUP_THRESHOLDS: [usize; 3] = [1, 10, 100];
/// Maximum length of a hook's message in bytes: the remedy follows it and must not be cut off.
const MAX_MESSAGE_BYTES: usize = 500;

impl Waiting<'_> {
    /// Returns warnings about hook changes since the last status. Covers only pods listed in the status,
    /// since no others are known.
    pub(super) fn warnings(&self, workload: &Workload, old: &GameDeploymentStatus) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for entry in HookKind::ALL.into_iter().flat_map(|kind| self.shown(kind)) {
            let Some(reason) = entry.state.reason() else {
                continue;
            };
            // The HookRun of a hook that ran again has the same name, and may have the same message and start
            // time, but never the same UID. Earlier releases recorded none.
            let is_reported = known(old, entry.kind, &entry.condition.pod_name).is_some_and(|known| {
                match &known.hook_run_uid {
                    Some(uid) => {
                        entry.condition.hook_run_uid.as_ref() == Some(uid) && has_same_cause(known, entry)
                    }
                    None => known.message == entry.condition.message,
                }
            });
            if !is_reported {
                warnings.push(Warning {
                    pod: Some(PodRef::of(entry.pod)),
                    reason,
                    message: of_pod(workload, entry),
                });
            }
        }
        for refused in [true, false] {
            let is_one = |entry: &&WaitingPod<'_>| {
                entry.state != WaitState::Running && (entry.state == WaitState::Unsuccessful) == refused
            };
            let now: Vec<&WaitingPod<'_>> = self.entries.iter().filter(is_one).collect();
            let before = held(old, refused);
            if GROUP_THRESHOLDS
                .iter()
                .any(|group| before < *group && *group <= now.len())
            {
                warnings.extend(of_group(workload, &now));
            }
        }
        warnings
    }
}

/// Returns true if the cause of a wait for the same HookRun was reported before. A verdict never changes. An older CRD
/// drops the reason.
fn has_same_cause(known: &HookCondition, entry: &WaitingPod<'_>) -> bool {
    match entry.state {
        WaitState::Unsuccessful => known.phase == entry.condition.phase,
        WaitState::Erroring(_) => known.reason.is_none() || known.reason == entry.condition.reason,
        WaitState::Running | WaitState::Blocked(_) => known.message == entry.condition.message,
    }
}

/// Number of pods blocked by a verdict (`refused`) or by the lack of one, according to the status.
fn held(status: &GameDeploymentStatus, refused: bool) -> usize {
    let lists = [
        &status.pre_delete_hook_condition,
        &status.pre_inplace_hook_condition,
        &status.post_inplace_hook_condition,
    ];
    let is_one = |entry: &&HookCondition| match &entry.hook_run {
        Some(_) if entry.phase.is_final() => refused,
        Some(_) => !refused && entry.hook_run_uid.is_some(),
        None => !refused,
    };
    lists.into_iter().flatten().filter(is_one).count()
}

/// Returns the message of an entry, short enough for the remedy after it.
fn short(entry: &HookCondition) -> String {
    cut(entry.message.clone().unwrap_or_default(), MAX_MESSAGE_BYTES)
}

/// Formats why a pod is blocked and which command helps.
fn of_pod(workload: &Workload, entry: &WaitingPod<'_>) -> String {
    let (name, namespace, pod) = (&workload.name, &workload.namespace, &entry.pod.name);
    let next = match entry.state {
        WaitState::Unsuccessful => format!(
            "To rerun the hook: kubectl game retry {name} -n {namespace} --hook {} (or kubectl patch gamedeployment \
             {name} -n {namespace} --type=merge -p '{{\"spec\":{{\"{}\":{{\"retry\":true}}}}}}')",
            entry.kind.word(),
            entry.kind.field()
        ),
        WaitState::Erroring(reason) => {
            let step = workload.hook(entry.kind).step.as_ref();
            let template = step.map_or_else(
                || "the hook".to_owned(),
                |step| format!("HookTemplate {}", step.template_name),
            );
            let or = if reason == WorkloadReason::HookErrors {
                " or its endpoint"
            } else {
                ""
            };
            format!(
                "Continues automatically once {template}{or} is fixed. Next: kubectl game why pod/{pod} -n {namespace}"
            )
        }
        WaitState::Running | WaitState::Blocked(_) => {
            format!(
                "Continues automatically once the cause is fixed. Next: kubectl game why pod/{pod} -n {namespace}"
            )
        }
    };
    format!("pod {pod}: {}. {next}", short(&entry.condition))
}

/// Formats how many pods are blocked and where to read more.
fn of_group(workload: &Workload, held: &[&WaitingPod<'_>]) -> Option<Warning> {
    let first = held.first()?;
    let names: Vec<&str> = held.iter().map(|entry| entry.pod.name.as_str()).collect();
    let (name, namespace) = (&workload.name, &workload.namespace);
    Some(Warning {
        pod: None,
        reason: first.state.reason()?,
        message: format!(
            "{} blocked by a hook: {}. First error: {}. Next: kubectl game why {name} -n {namespace}",
            pods_are(names.len()),
            join_names(&names),
            short(&first.condition)
        ),
    })
}
