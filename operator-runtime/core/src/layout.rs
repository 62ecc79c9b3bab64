//! Keeps processes of different layouts from working at the same time. A layout is the number of shards that the
//! namespaces are divided into, the COUNT of `--shard`; a process without `--shard` is a layout of its own. Within one
//! layout each namespace belongs to one shard; in two layouts it belongs to two, whose leaders would both write.
//!
//! So a process works only if it has listed the Leases after it took its own, and none of another layout was held. If two
//! processes start at once, at least one of them sees the other's Lease: both may wait for a while, but never neither.
//!
//! When the own Lease has lapsed, if only for a moment, a process of another layout may have taken that for its end.
//! So the Leases are listed again before work goes on. Pure, as [`crate::candidate`] is.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::candidate::{Found, Timing};
use crate::shard::Shard;

/// A Lease of another layout is held; its leader must end first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Who waits: none is a process without `--shard`.
    pub own: Option<Shard>,
    /// Whose Lease is held: none is a process without `--shard`.
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

/// What is known of the program's Leases that belong to other layouts than the process's own.
#[derive(Debug, Clone)]
pub struct Layouts {
    program: &'static str,
    own: Option<Shard>,
    timing: Timing,
    /// What was read last of each that is held, and since when it has been so.
    seen: BTreeMap<String, (Found, Duration)>,
    wait: Option<Wait>,
    alone: bool,
}

impl Layouts {
    /// Nothing is known yet.
    pub fn new(program: &'static str, own: Option<Shard>, timing: Timing) -> Self {
        Self {
            program,
            own,
            timing,
            seen: BTreeMap::new(),
            wait: None,
            alone: false,
        }
    }

    /// Whether the Leases were listed while the own one was held, and no other layout's was, and the own one has not
    /// lapsed since.
    pub fn alone(&self) -> bool {
        self.alone
    }

    /// The Lease that has to end first, as far as is known.
    pub fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// Another process has the own Lease: other layouts are its concern.
    pub fn not_leading(&mut self) {
        self.alone = false;
        self.wait = None;
    }

    /// To be called before and after each call of the API server, with the time until which the own Lease is held, if it
    /// is. If it has lapsed by `now`, what was listed earlier does not count any more.
    pub fn check_lapse(&mut self, now: Duration, until: Option<Duration>) {
        // A process of another layout may have listed the Leases in between, and seen this one as lapsed.
        if until.is_none_or(|until| until <= now) {
            self.alone = false;
        }
    }

    /// The Leases were listed by a call that began and ended at these times. `held`: the own one was held by then.
    pub fn read(&mut self, found: Vec<(String, Found)>, began: Duration, ended: Duration, held: bool) {
        // What is not listed any more is kept: it was deleted, and its holder may not know that yet.
        for (lease, found) in found {
            let known = self.seen.get(&lease).is_some_and(|(known, _)| *known == found);
            if !known && self.is_other(&lease) {
                self.seen.insert(lease, (found, ended));
            }
        }
        // The answer may show the state at the beginning of the call, so only the time before that counts.
        let live = |found: &Found, since: Duration| {
            !found.holder.is_empty()
                && began.saturating_sub(since) < found.lease.max(self.timing.lease_duration)
        };
        let live = self.seen.iter().find(|(_, (found, since))| live(found, *since));
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
