//! Leads of other layouts. Shards of one COUNT have each namespace once. Two layouts, and that of a process without
//! `--shard` is one, have it twice: they must not work at the same time. So a process works only when, after it has taken
//! its own Lease, it has seen that no other layout's is held. Of two that come at once, each sees the other's, or one of
//! them does: both may give way, but never neither.
//!
//! A lead that has lapsed, if only for a moment, may have been taken for one that has ended. It is looked around again
//! before it goes on. Pure, as [`crate::candidate`] is.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::candidate::{Found, Terms};
use crate::shard::Shard;

/// A lead of another layout, which must end first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Who waits: none is a process without `--shard`.
    pub own: Option<Shard>,
    /// For whom.
    pub other: Option<Shard>,
    /// Who holds the other's Lease.
    pub leader: String,
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |shard: Option<Shard>| {
            shard.map_or("a process without --shard".to_owned(), |shard| {
                format!("shard {shard}")
            })
        };
        write!(
            formatter,
            "waits for {}, led by {}, to end: this is {}, and two layouts never work at once; start all processes with \
             one COUNT",
            named(self.other),
            self.leader,
            named(self.own)
        )
    }
}

/// What is known of the program's Leases that are of other layouts than one's own.
#[derive(Debug, Clone)]
pub struct Layouts {
    program: &'static str,
    own: Option<Shard>,
    terms: Terms,
    /// What was read last of each that is held, and since when it has been so.
    seen: BTreeMap<String, (Found, Duration)>,
    wait: Option<Wait>,
    alone: bool,
}

impl Layouts {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(program: &'static str, own: Option<Shard>, terms: Terms) -> Self {
        Self {
            program,
            own,
            terms,
            seen: BTreeMap::new(),
            wait: None,
            alone: false,
        }
    }

    /// Whether no other layout has been at work since the own Lease was taken.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.alone
    }

    /// For whom it has to wait, as far as is known.
    #[must_use]
    pub fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// Another process of one's own layout leads: there is nothing to wait for but that.
    pub fn led(&mut self) {
        self.alone = false;
        self.wait = None;
    }

    /// It is this time, and one leads until then, if one does.
    pub fn at(&mut self, now: Duration, until: Option<Duration>) {
        // Whoever looked in between may have seen a lease that nobody renews.
        if until.is_none_or(|until| until <= now) {
            self.alone = false;
        }
    }

    /// Leases were listed by a call that began and ended at these times, while the own one was held or before.
    pub fn read(&mut self, found: Vec<(String, Found)>, began: Duration, ended: Duration, held: bool) {
        // What is not listed any more stays: it was deleted under its holder, who may not know yet.
        for (lease, found) in found {
            let known = self.seen.get(&lease).is_some_and(|(known, _)| *known == found);
            if !known && self.is_other(&lease) {
                self.seen.insert(lease, (found, ended));
            }
        }
        // What the answer shows may be as old as the question.
        let live = |found: &Found, since: Duration| {
            !found.holder.is_empty() && began.saturating_sub(since) < found.lease.max(self.terms.lease)
        };
        let live = { self.seen.iter() }.find(|(_, (found, since))| live(found, *since));
        self.wait = live.map(|(lease, (found, _))| Wait {
            own: self.own,
            other: Shard::of_lease(self.program, lease),
            leader: found.holder.clone(),
        });
        self.alone = held && self.wait.is_none();
    }

    /// Whether this is a Lease of the program, and of another layout.
    fn is_other(&self, lease: &str) -> bool {
        let count = |shard: Option<Shard>| shard.map(Shard::count);
        let other = Shard::of_lease(self.program, lease);
        (other.is_some() || lease == self.program) && count(other) != count(self.own)
    }
}

#[cfg(test)]
mod tests;
