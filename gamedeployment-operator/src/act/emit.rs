//! Events on the workload about completed actions: `kubectl describe` cannot show the events of a pod that is
//! gone.

use gamedeployment_driver::request::ReconcileTarget;
use k8s_openapi::api::core::v1::ObjectReference;
use shared_api::reason::WorkloadReason;

use super::{Caller, reference};

/// Largest number of names in one event.
const MAX_NAMES: usize = 5;

impl Caller {
    /// Emits one event for each kind of action, with the names of its first objects. Beyond the limit of
    /// `EventAggregator`, one event reports the number of objects.
    pub fn emit_events(&self, target: &ReconcileTarget, done: Vec<(WorkloadReason, String)>) {
        let kinds = [
            (WorkloadReason::PodsCreated, "Create", "created"),
            (WorkloadReason::HooksAsked, "Ask", "HookRuns created"),
            (WorkloadReason::PodsDeleted, "Delete", "deleted"),
            (WorkloadReason::PodsAdopted, "Adopt", "adopted"),
            (
                WorkloadReason::PodsReleased,
                "Release",
                "released (no longer matched by the selector)",
            ),
        ];
        for (reason, action, verb) in kinds {
            let names = done.iter().filter(|(known, _)| *known == reason);
            let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let note = format!("{verb}: {}", listed(&names));
            let rest = move |more| format!("{verb}: {more} more");
            self.emit_limited(
                target,
                (reason, action),
                (reference(target), names.len()),
                &note,
                rest,
            );
        }
    }

    /// Emits a normal event about some objects. Beyond the limit of `EventAggregator`, one event on the workload
    /// reports the others when the window ends: `rest` returns its note for the number of their objects.
    pub(super) fn emit_limited(
        &self,
        target: &ReconcileTarget,
        (reason, action): (WorkloadReason, &'static str),
        (about, objects): (ObjectReference, usize),
        note: &str,
        rest: impl FnOnce(usize) -> String + Send + 'static,
    ) {
        let (events, workload) = (self.events.clone(), reference(target));
        self.aggregator.emit(
            &target.key,
            reason,
            objects,
            || self.events.normal(about, reason.as_str(), action, note),
            move |more| events.normal(workload, reason.as_str(), action, &rest(more)),
        );
    }
}

/// Returns the first few names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let shown = names
        .iter()
        .take(MAX_NAMES)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_the_first_are_named() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "a, b, c, d, e");
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 more"
        );
    }
}
