//! Causes for which pods wait for their hooks, from the entries of the status. A cause of many pods is reported once.

use gamedeployment_core::hook_kind::HookKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shared_api::game_deployment::HookCondition;
use shared_api::reason::{WorkloadCondition, WorkloadReason};
use shared_api::{GameDeployment, GameDeploymentStatus};

use super::state::{held, unresolved};
use super::{entries, status_of};

/// Maximum number of pods named in a message.
const MAX_NAMES: usize = 5;

/// State of a hook that a pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The hook runs without trouble.
    Running,
    /// The hook needs attention; `None` if only the message of the entry names the reason.
    Blocked(Option<WorkloadReason>),
}

impl Wait {
    /// Returns the state that an entry reports.
    pub(crate) fn of(status: &GameDeploymentStatus, entry: &HookCondition) -> Self {
        if let Some(word) = &entry.reason {
            return Self::Blocked(WorkloadReason::named(word));
        }
        // Older operators record no reason.
        if entry.phase.is_final() {
            Self::Blocked(Some(WorkloadReason::HookUnsuccessful))
        } else if entry.hook_run.is_none() {
            Self::Blocked(reason_of_conditions(status))
        } else {
            Self::Running
        }
    }
}

/// Returns the reason in the conditions why a hook cannot run.
fn reason_of_conditions(status: &GameDeploymentStatus) -> Option<WorkloadReason> {
    let blocked = [WorkloadCondition::ScaleBlocked, WorkloadCondition::UpdateBlocked];
    let blocked = blocked.into_iter().filter_map(|kind| held(status, kind));
    let mut reasons = blocked
        .chain(unresolved(status))
        .filter_map(|found| WorkloadReason::named(&found.reason));
    reasons.find(|reason| {
        matches!(
            reason,
            WorkloadReason::HookTemplateMissing
                | WorkloadReason::HookTemplateInvalid
                | WorkloadReason::HookArgumentsUnresolved
                | WorkloadReason::HookRunNameInvalid
                | WorkloadReason::PodAddressMissing
                | WorkloadReason::HookRunTerminating
        )
    })
}

/// Cause for which pods wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Hook of the pods.
    pub(crate) kind: HookKind,
    /// Reason; `None` if only the message names it.
    pub(crate) reason: Option<WorkloadReason>,
    /// Names of the pods.
    pub(crate) pods: Vec<String>,
    /// Message of the first pod.
    pub(crate) message: String,
    /// Whether all pods have the same message.
    pub(crate) is_shared: bool,
}

/// Returns the causes for which pods wait and that need attention.
pub(crate) fn causes(game: &GameDeployment) -> Vec<Cause> {
    let status = status_of(game);
    let mut causes: Vec<Cause> = Vec::new();
    for kind in HookKind::ALL {
        for entry in entries(&status, kind) {
            let Wait::Blocked(reason) = Wait::of(&status, entry) else {
                continue;
            };
            let (pod, message) = (entry.pod_name.clone(), entry.message.clone().unwrap_or_default());
            let mut known = causes.iter_mut();
            match known.find(|cause| (cause.kind, cause.reason) == (kind, reason)) {
                Some(cause) => {
                    cause.is_shared &= cause.message == message;
                    cause.pods.push(pod);
                }
                None => causes.push(Cause {
                    kind,
                    reason,
                    pods: vec![pod],
                    message,
                    is_shared: true,
                }),
            }
        }
    }
    causes
}

/// Returns whether a condition is about the hooks of pods, with one of these causes. Hooks of the rollout share the
/// reasons; the condition of pods quotes an entry.
pub(crate) fn is_about(condition: &Condition, causes: &[Cause]) -> bool {
    let reason = WorkloadReason::named(&condition.reason);
    let quotes = |cause: &&Cause| cause.reason == reason && condition.message.contains(&cause.message);
    reason.is_some() && causes.iter().any(|cause| quotes(&cause))
}

/// Returns the message of a condition. For hooks of pods it is made of the causes, each of which it names once.
pub(crate) fn message_of(condition: &Condition, causes: &[Cause]) -> String {
    if is_about(condition, causes) {
        summary(causes)
    } else {
        condition.message.clone()
    }
}

/// Formats the causes, each with its pods.
pub(crate) fn summary(causes: &[Cause]) -> String {
    summaries(causes).join("; ")
}

/// Formats each cause, with its pods.
pub(crate) fn summaries(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(Cause::summary).collect()
}

impl Cause {
    fn summary(&self) -> String {
        let message = &self.message;
        match self.pods.as_slice() {
            [pod] => format!("pod {pod}: {message}"),
            pods => {
                let first = pods.first().filter(|_| !self.is_shared);
                let first = first.map(|pod| format!("pod {pod}: ")).unwrap_or_default();
                format!("{} pods ({}): {first}{message}", pods.len(), some(pods))
            }
        }
    }
}

/// Formats the first few names and the number of others.
pub(crate) fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let shown = shown.join(", ");
    match names.len().checked_sub(MAX_NAMES) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;
    use crate::view::state::condition;

    /// Returns the reason of the only entry of a workload, as read from it.
    fn wait(game: &GameDeployment) -> Wait {
        let status = status_of(game);
        Wait::of(&status, &status.pre_delete_hook_condition[0])
    }

    #[test]
    fn an_entry_says_whether_its_hook_needs_attention() {
        let blocked = |reason| Wait::Blocked(Some(reason));
        let table = [
            (samples::running(), Wait::Running),
            (samples::refused(), blocked(WorkloadReason::HookUnsuccessful)),
            (samples::blocked(), blocked(WorkloadReason::HookTemplateMissing)),
            (
                samples::erroring("HookErrors", "Unreachable", "connection refused"),
                blocked(WorkloadReason::HookErrors),
            ),
        ];
        for (snapshot, expected) in table {
            assert_eq!(wait(&snapshot.game), expected);
        }
    }

    #[test]
    fn an_older_operator_records_no_reason() {
        let old = |mut game: GameDeployment| {
            let status = game.status.as_mut().unwrap();
            status.pre_delete_hook_condition[0].reason = None;
            wait(&game)
        };
        let reason = WorkloadReason::HookUnsuccessful;
        assert_eq!(old(samples::refused().game), Wait::Blocked(Some(reason)));
        let reason = WorkloadReason::HookTemplateMissing;
        assert_eq!(old(samples::blocked().game), Wait::Blocked(Some(reason)));
        let unknown = samples::because("SomethingNew", "its hook cannot run");
        assert_eq!(wait(&unknown.game), Wait::Blocked(None));
        assert_eq!(old(unknown.game), Wait::Blocked(None));
        assert_eq!(old(samples::running().game), Wait::Running);
    }

    #[test]
    fn a_cause_of_many_pods_is_named_once() {
        let one = samples::blocked().game;
        let words = "its hook cannot run, because HookTemplate empty does not exist; create it";
        assert_eq!(summary(&causes(&one)), format!("pod arena-x7k2p: {words}"));

        let mut six = one;
        let entries = &mut six.status.as_mut().unwrap().pre_delete_hook_condition;
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        for pod_name in names {
            let entry = HookCondition {
                pod_name,
                ..entries[0].clone()
            };
            entries.push(entry);
        }
        let list = "6 pods (arena-x7k2p, a, b, c, d and 1 more)";
        assert_eq!(summary(&causes(&six)), format!("{list}: {words}"));

        let entries = &mut six.status.as_mut().unwrap().pre_delete_hook_condition;
        entries[3].message = Some("another".to_owned());
        assert_eq!(
            summary(&causes(&six)),
            format!("{list}: pod arena-x7k2p: {words}")
        );
        let entries = &mut six.status.as_mut().unwrap().pre_delete_hook_condition;
        entries[3].reason = Some("PodAddressMissing".to_owned());
        assert_eq!(
            summary(&causes(&six)),
            format!("5 pods (arena-x7k2p, a, b, d, e): {words}; pod c: another")
        );
    }

    #[test]
    fn a_condition_of_pods_is_rendered_from_their_entries() {
        let game = samples::refused().game;
        let (status, causes) = (status_of(&game), causes(&game));
        let found = held(&status, WorkloadCondition::ScaleBlocked).unwrap();
        assert!(found.message.contains("To rerun the hook"), "{found:?}");
        let message = message_of(found, &causes);
        assert!(!message.contains("To rerun the hook"), "{message}");
        assert!(message.ends_with("; the pod is kept"), "{message}");
        let of_canary = Condition {
            message: "canary step 2: HookTemplate alerts does not exist; create it".to_owned(),
            ..found.clone()
        };
        assert_eq!(message_of(&of_canary, &causes), of_canary.message);
        let other = condition(&status, WorkloadCondition::Progressing).unwrap();
        assert_eq!(message_of(other, &causes), other.message);
    }
}
