//! Deletion of unused revisions beyond the history limit.

use std::collections::BTreeSet;

use crate::claim::Claim;
use crate::facts::Facts;
use crate::plan::{Action, RevisionRef};
use crate::revision::{self, Revision};

/// Returns the deletions. Call it only if there is nothing else to do: a stale view may miss the pods of a
/// revision that was reused, but such a revision was renumbered, so its deletion conflicts.
#[must_use]
pub fn delete_surplus(facts: &Facts<'_>, claimed: &Claim<'_>) -> Vec<Action> {
    let history = &facts.history;
    let mut live: BTreeSet<&str> = claimed.all.iter().map(|pod| pod.revision()).collect();
    live.extend([history.spec, history.update, history.current].map(|revision| revision.name.as_str()));
    // The recorded rollback is recognized by the template of this revision.
    let status = facts.view.object.status.as_ref();
    let rollback = status.and_then(|status| status.rollback.as_ref());
    live.extend(rollback.map(|rollback| rollback.from_revision.as_str()));
    let owned = history.revisions().filter(|revision| revision.orphan.is_none());
    let owned: Vec<&Revision> = owned.collect();
    let surplus = revision::surplus(&owned, &live, facts.workload.history_limit).into_iter();
    surplus
        .map(|revision| Action::DeleteRevision(RevisionRef::of(revision)))
        .collect()
}
