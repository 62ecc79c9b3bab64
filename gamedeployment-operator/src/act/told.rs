//! What was done to a workload, told on the workload: its pods' own events go with them.

use std::time::Instant;

use gamedeployment_driver::request::Subject;
use shared_api::reason::WorkloadReason;

use super::throttle::Telling;
use super::{Caller, reference};

/// Names in one event.
const NAMED: usize = 5;

impl Caller {
    /// One event for each thing that was done, however many pods it was done to; few in a time.
    pub fn tell_done(&self, subject: &Subject, done: Vec<(WorkloadReason, String)>) {
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
            if self.throttle.one_more(&subject.key, reason, Instant::now()) == Telling::Named {
                let note = format!("{verb}: {}", listed(&names));
                self.events
                    .tell(reference(subject), reason.as_str(), action, &note);
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
