//! Events for pods blocked by a hook: each pod gets one event with the remedy. The workload gets events with
//! the number of pods, so that many blocked pods do not cause as many events.

use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::HookCondition;
use shared_api::reason::WorkloadReason;

use super::listed::named;
use super::waiting::{Entry, How, Waiting, is_not_taken_up, known};
use crate::hook_kind::HookKind;
use crate::plan::Warning;
use crate::workload::Workload;

/// Thresholds: the workload gets an event each time the number of blocked pods rises to one of these.
const GROUPS: [usize; 3] = [1, 10, 100];
/// Maximum length of a hook's message in characters: the remedy follows it and must not be cut off.
const LONGEST: usize = 500;

impl Waiting {
    /// Returns warnings about hook changes since the last status. Covers only pods listed in the status,
    /// since no others are known.
    pub(super) fn warnings(&self, workload: &Workload, old: &GameDeploymentStatus) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for entry in HookKind::ALL.into_iter().flat_map(|kind| self.shown(kind)) {
            let Some(reason) = reason(entry.how) else { continue };
            let message = entry.condition.message.as_deref();
            // A repeated hook run with the same message has another start time, though its run has the same
            // name.
            let told = known(old, entry.kind, &entry.condition.pod_name).is_some_and(|known| {
                known.message.as_deref() == message && known.start_time == entry.condition.start_time
            });
            if !told {
                warnings.push(Warning {
                    pod: Some(entry.pod.clone()),
                    reason,
                    message: of_pod(workload, entry),
                });
            }
        }
        for refused in [true, false] {
            let is_one = |entry: &&Entry| entry.how != How::Asking && (entry.how == How::Refused) == refused;
            let now: Vec<&Entry> = self.entries.iter().filter(is_one).collect();
            let before = held(old, refused);
            if GROUPS.iter().any(|group| before < *group && *group <= now.len()) {
                warnings.extend(of_group(workload, &now));
            }
        }
        warnings
    }
}

fn reason(how: How) -> Option<WorkloadReason> {
    match how {
        How::Asking => None,
        How::Refused => Some(WorkloadReason::HookUnsuccessful),
        How::Blocked(reason) => Some(reason),
    }
}

/// Number of pods blocked by a verdict or by a missing verdict, according to the status.
fn held(status: &GameDeploymentStatus, refused: bool) -> usize {
    let lists = [
        &status.pre_delete_hook_condition,
        &status.pre_inplace_hook_condition,
        &status.post_inplace_hook_condition,
    ];
    let is_one = |entry: &&HookCondition| match &entry.hook_run {
        Some(_) if entry.phase.is_final() => refused,
        Some(_) => !refused && is_not_taken_up(entry),
        None => !refused,
    };
    lists.into_iter().flatten().filter(is_one).count()
}

/// Truncates a message so that the remedy after it fits.
fn short(message: Option<&String>) -> String {
    let message = message.map_or("", String::as_str);
    if message.chars().count() > LONGEST {
        message.chars().take(LONGEST).chain(" …".chars()).collect()
    } else {
        message.to_owned()
    }
}

/// Formats why a pod is blocked and which command helps.
fn of_pod(workload: &Workload, entry: &Entry) -> String {
    let (name, namespace, pod) = (&workload.name, &workload.namespace, &entry.pod.name);
    let next = match entry.how {
        How::Refused => format!(
            "to ask again: kubectl game retry {name} -n {namespace} --hook {}, or kubectl patch gamedeployment {name} -n \
             {namespace} --type=merge -p '{{\"spec\":{{\"{}\":{{\"retry\":true}}}}}}'",
            entry.kind.word(),
            entry.kind.field()
        ),
        How::Asking | How::Blocked(_) => {
            format!(
                "it goes on by itself when that is mended; kubectl game why pod/{pod} -n {namespace} says more"
            )
        }
    };
    format!(
        "pod {pod}: {}. Next: {next}",
        short(entry.condition.message.as_ref())
    )
}

/// Formats how many pods are blocked and where to read more.
fn of_group(workload: &Workload, held: &[&Entry]) -> Option<Warning> {
    let first = held.first()?;
    let names: Vec<&str> = held.iter().map(|entry| entry.pod.name.as_str()).collect();
    let (name, namespace) = (&workload.name, &workload.namespace);
    let are = if names.len() == 1 { "pod is" } else { "pods are" };
    Some(Warning {
        pod: None,
        reason: reason(first.how)?,
        message: format!(
            "{} {are} held by a hook: {}. The first: {}. Next: kubectl game why {name} -n {namespace}",
            names.len(),
            named(&names),
            short(first.condition.message.as_ref())
        ),
    })
}
