//! Revisions that nothing uses are forgotten, beyond the history limit.

use std::collections::BTreeSet;

use crate::claim::Claim;
use crate::facts::Facts;
use crate::plan::{Action, Plan, RevisionRef};
use crate::revision::{self, Revision};

/// Forgets. Only where nothing else is to be done: a view that is old may not know the pods of a revision that was
/// taken up again, but then it was renumbered, and its deletion is refused.
pub fn trim(facts: &Facts<'_>, claimed: &Claim<'_>, plan: &mut Plan) {
    if !plan.actions.is_empty() {
        return;
    }
    let history = &facts.history;
    let mut live: BTreeSet<&str> = claimed.all.iter().map(|pod| pod.revision()).collect();
    live.extend([history.update.name.as_str(), history.current.name.as_str()]);
    let owned: Vec<&Revision> = history
        .revisions()
        .filter(|revision| revision.orphan.is_none())
        .collect();
    for surplus in revision::surplus(&owned, &live, facts.workload.history_limit) {
        plan.actions
            .push(Action::DeleteRevision(RevisionRef::of(surplus)));
    }
}
