//! Message about pods that end right after their start.

use shared_api::reason::WorkloadReason;

use super::Findings;
use super::name_list::join_first;
use crate::ended::{CrashLoopingPod, since, starting};
use crate::facts::Facts;
use crate::pod::CRASH_WINDOW;

/// Returns the reason and message, from the first such pod until the replacements have lived long enough.
pub(super) fn at_once(facts: &Facts<'_>, findings: &Findings<'_>) -> Option<(WorkloadReason, String)> {
    let (crash_looping, seconds) = (&findings.crash_looping, CRASH_WINDOW.as_secs());
    let message = if let Some(first) = crash_looping.first() {
        let words = |crash_looping: &CrashLoopingPod<'_>| {
            format!("pod {}: {}", crash_looping.pod.name, crash_looping.ending.why)
        };
        let until = shared_api::time::Time::new(first.until).timestamp();
        format!(
            "{} pods ended within {seconds} s of their start; the first is replaced at {until}: {}",
            crash_looping.len(),
            join_first(crash_looping, words)
        )
    } else {
        since(facts)?;
        starting(facts)?;
        format!("pods ended within {seconds} s of their start; the new ones have not run for {seconds} s yet")
    };
    Some((WorkloadReason::PodsEndAtOnce, message))
}
