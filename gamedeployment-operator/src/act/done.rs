//! What was done to a workload, told on the workload: its pods' own events go with them.

use std::time::Instant;

use gamedeployment_core::plan::Action;
use shared_api::reason::WorkloadReason;

use super::crowd::Telling;
use super::{Hands, Subject};

/// Names in one event.
const NAMED: usize = 5;

/// What people are told of an action that was carried out, and the name of its object.
pub(super) fn news_of(action: &Action) -> Option<(WorkloadReason, String)> {
    match action {
        Action::CreatePod(pod) => Some((WorkloadReason::PodsCreated, pod.name.clone())),
        Action::DeletePod(delete) => Some((WorkloadReason::PodsDeleted, delete.pod().name.clone())),
        Action::Adopt(pod) => Some((WorkloadReason::PodsAdopted, pod.name.clone())),
        Action::Release(pod) => Some((WorkloadReason::PodsReleased, pod.name.clone())),
        Action::CreateRun(run) => {
            let name = run.run.metadata.name.clone().unwrap_or_default();
            Some((WorkloadReason::HooksAsked, name))
        }
        _ => None,
    }
}

impl Hands {
    /// One event for each thing that was done, however many pods it was done to; few in a time.
    pub(super) fn tell_done(&self, subject: &Subject, done: Vec<(WorkloadReason, String)>) {
        let kinds = [
            (WorkloadReason::PodsCreated, "Create", "created"),
            (WorkloadReason::HooksAsked, "Ask", "asked by HookRuns"),
            (WorkloadReason::PodsDeleted, "Delete", "deleted"),
            (WorkloadReason::PodsAdopted, "Adopt", "adopted"),
            (
                WorkloadReason::PodsReleased,
                "Release",
                "released, since the selector finds them no more",
            ),
        ];
        for (reason, action, verb) in kinds {
            let names = done.iter().filter(|(known, _)| *known == reason);
            let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            if self.crowds.one_more(&subject.key, reason, Instant::now()) == Telling::Named {
                let note = format!("{verb}: {}", listed(&names));
                self.events
                    .tell(subject.as_reference(), reason.as_str(), action, &note);
            }
        }
    }
}

/// The first few names, and how many more.
fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
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
