//! Check that a status was stored.

use hook_core::tally;
use shared_api::{HookRun, HookRunStatus};

/// Returns whether a run from the API server's answer has the status that was written. Fields that an older
/// CRD drops are not compared.
pub(crate) fn has_status(run: &HookRun, written: &HookRunStatus) -> bool {
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
