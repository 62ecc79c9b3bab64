//! Keeps processes of different layouts from working at the same time. A layout is the number of shards that
//! the namespaces are divided into, the COUNT of `--shard`; a process without `--shard` is a layout of its
//! own. Within one layout each namespace belongs to one shard; in two layouts it belongs to two, and both
//! leaders would write.
//!
//! So a process works only if it listed the Leases after it acquired its own, and no Lease of another layout
//! was held. If two processes start at once, at least one of them sees the other's Lease: both may wait for a
//! while, but at least one always does.
//!
//! If its own Lease has expired, even for a moment, a process of another layout may have taken that as its
//! end. So the Leases are listed again before work continues. Pure, like [`crate::candidate`].

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::candidate::{LeaseRecord, Timing};
use crate::shard::Shard;

/// A Lease of another layout is held; its leader must stop first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Shard that waits; `None` for a process without `--shard`.
    pub own: Option<Shard>,
    /// Shard whose Lease is held; `None` for a process without `--shard`.
    pub other: Option<Shard>,
    /// Holder of the other Lease.
    pub leader: String,
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |shard: Option<Shard>, without: &str| {
            shard.map_or_else(|| without.to_owned(), |shard| format!("shard {shard}"))
        };
        write!(
            formatter,
            "waiting for {} (leader {}) to stop: this process is {}, and processes with different shard counts must \
             not run at the same time; use the same COUNT in --shard everywhere",
            named(self.other, "a process without --shard"),
            self.leader,
            named(self.own, "running without --shard")
        )
    }
}

/// Leases of the program that belong to other layouts.
#[derive(Debug, Clone)]
pub struct Layouts {
    program: &'static str,
    own: Option<Shard>,
    timing: Timing,
    /// Each held Lease as last read, and the time since which it has been unchanged.
    seen: BTreeMap<String, (LeaseRecord, Duration)>,
    wait: Option<Wait>,
    alone: bool,
}

impl Layouts {
    /// Creates the state before any Lease is known.
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

    /// Whether the process listed the Leases while it held its own, none of another layout was held, and its
    /// own has not expired since.
    pub fn alone(&self) -> bool {
        self.alone
    }

    /// Returns the Lease that must end first, as far as is known.
    pub fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// Resets the state because another process holds the Lease of this shard (or of the program, without
    /// `--shard`) and deals with other layouts.
    pub fn not_leading(&mut self) {
        self.alone = false;
        self.wait = None;
    }

    /// Must be called before and after each API call, with the time until which the own Lease is held, if it
    /// is. If it has expired by `now`, an earlier list no longer counts. Both are times of a clock that is never
    /// slow: others may have seen the Lease expire while this machine was suspended.
    pub fn check_lapse(&mut self, now: Duration, until: Option<Duration>) {
        // A process of another layout may have listed the Leases in between and seen this one as expired.
        if until.is_none_or(|until| until <= now) {
            self.alone = false;
        }
    }

    /// Applies a list of the Leases, by a call that began and ended at these times, which are those of a clock that
    /// is never fast. `held` is true if the process held its own Lease by then.
    pub fn read(&mut self, record: Vec<(String, LeaseRecord)>, began: Duration, ended: Duration, held: bool) {
        // Keep Leases that are no longer listed: such a Lease was deleted, but its holder may not know yet.
        for (lease, record) in record {
            let known = self.seen.get(&lease).is_some_and(|(known, _)| *known == record);
            if !known && self.is_other(&lease) {
                self.seen.insert(lease, (record, ended));
            }
        }
        // The answer may show the state at the beginning of the call, so only the time before that counts.
        let live = |record: &LeaseRecord, since: Duration| {
            !record.holder.is_empty()
                && began.saturating_sub(since) < record.lease.max(self.timing.lease_duration)
        };
        let live = self.seen.iter().find(|(_, (record, since))| live(record, *since));
        self.wait = live.map(|(lease, (record, _))| Wait {
            own: self.own,
            other: Shard::of_lease(self.program, lease),
            leader: record.holder.clone(),
        });
        self.alone = held && self.wait.is_none();
    }

    /// Whether this is a Lease of the program, in another layout.
    fn is_other(&self, lease: &str) -> bool {
        let count = |shard: Option<Shard>| shard.map(Shard::count);
        let other = Shard::of_lease(self.program, lease);
        (other.is_some() || lease == self.program) && count(other) != count(self.own)
    }
}

#[cfg(test)]
mod tests;
