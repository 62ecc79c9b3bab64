//! Revisions that nothing uses are forgotten, beyond the history limit.

use std::collections::BTreeSet;

use crate::claim::Claim;
use crate::facts::Facts;
use crate::plan::{Action, RevisionRef};
use crate::revision::{self, Revision};

/// What is forgotten. To be done only where nothing else is: a view that is old may not know the pods of a revision that
/// was taken up again, but then it was renumbered, and its deletion is refused.
#[must_use]
pub fn forget(facts: &Facts<'_>, claimed: &Claim<'_>) -> Vec<Action> {
    let history = &facts.history;
    let mut live: BTreeSet<&str> = claimed.all.iter().map(|pod| pod.revision()).collect();
    live.extend([history.update.name.as_str(), history.current.name.as_str()]);
    let owned = history.revisions().filter(|revision| revision.orphan.is_none());
    let owned: Vec<&Revision> = owned.collect();
    let surplus = revision::surplus(&owned, &live, facts.workload.history_limit).into_iter();
    surplus
        .map(|revision| Action::DeleteRevision(RevisionRef::of(revision)))
        .collect()
}
