//! Message about pods that end right after their start.

use shared_api::reason::WorkloadReason;

use super::Findings;
use super::listed::some;
use crate::ended::{Held, since, starting};
use crate::facts::Facts;
use crate::pod::AT_ONCE;

/// Returns the message from the first such pod on, until its replacements have lived long enough.
pub(super) fn at_once(facts: &Facts<'_>, findings: &Findings<'_>) -> Option<(WorkloadReason, String)> {
    let (held, seconds) = (&findings.held, AT_ONCE.as_secs());
    let message = if let Some(first) = held.first() {
        let words = |held: &Held<'_>| format!("pod {}: {}", held.pod.name, held.ending.why);
        let until = shared_api::time::Time::new(first.until).timestamp();
        format!(
            "{} pods ended within {seconds} s of their start; the first is replaced at {until}: {}",
            held.len(),
            some(held, words)
        )
    } else {
        since(facts)?;
        starting(facts)?;
        format!("pods ended within {seconds} s of their start; the new ones have not run for {seconds} s yet")
    };
    Some((WorkloadReason::PodsEndAtOnce, message))
}
