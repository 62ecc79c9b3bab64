//! Message about pods that end right after their start.

use shared_api::reason::WorkloadReason;

use super::Findings;
use super::name_list::join_first;
use crate::ended::{DelayedReplacement, since, starting};
use crate::facts::Facts;
use crate::plural::{form, pods};
use crate::pod::CRASH_WINDOW;

/// Returns the reason and message, from the first such pod until the replacements have lived long enough.
pub(super) fn within_crash_window(
    facts: &Facts<'_>,
    findings: &Findings<'_>,
) -> Option<(WorkloadReason, String)> {
    let (delayed, seconds) = (&findings.delayed, CRASH_WINDOW.as_secs());
    let message = if let Some(first) = delayed.first() {
        let words =
            |delayed: &DelayedReplacement<'_>| format!("pod {}: {}", delayed.pod.name, delayed.ending.why);
        let until = shared_api::time::Time::new(first.until).timestamp();
        let the_first = form(delayed.len(), "it", "the first");
        format!(
            "{} exited within {seconds}s of starting; {the_first} will be replaced at {until}: {}",
            pods(delayed.len()),
            join_first(delayed, words)
        )
    } else {
        since(facts)?;
        starting(facts)?;
        format!(
            "pods exited within {seconds}s of starting; their replacements have not been running for {seconds}s yet"
        )
    };
    Some((WorkloadReason::PodsEndAtOnce, message))
}
