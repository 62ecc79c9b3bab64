//! Whether what was written is there.

use hook_core::tally;
use shared_api::{HookRun, HookRunStatus};

/// Whether a run as it was answered holds the status that was written. Fields that an older definition of the kind
/// does not know are lost on the way and not missed.
pub(crate) fn keeps(run: &HookRun, written: &HookRunStatus) -> bool {
    let counted = |status: &HookRunStatus| -> Vec<_> {
        let results = status.metric_results.iter();
        results
            .map(|result| (result.name.clone(), result.phase, tally::taken(result)))
            .collect()
    };
    run.status.as_ref().is_some_and(|kept| {
        (kept.phase, kept.started_at) == (written.phase, written.started_at)
            && counted(kept) == counted(written)
    })
}
