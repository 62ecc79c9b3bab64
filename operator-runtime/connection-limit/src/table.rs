//! Connections by address, and the choice of the one that makes room for the next.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Identifier of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(u64);

/// Open connections, each with a value of its owner.
#[derive(Debug)]
pub struct Table<T> {
    max: usize,
    /// Counts connections and their progress, in place of a clock.
    now: u64,
    entries: BTreeMap<Id, Entry<T>>,
    /// Number of connections by address; never zero.
    counts: BTreeMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Entry<T> {
    peer: IpAddr,
    /// Time of the last progress.
    progress: u64,
    /// Whether a response is being prepared.
    is_busy: bool,
    value: T,
}

impl<T> Table<T> {
    /// Creates a table for this many connections.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self {
            max,
            now: 0,
            entries: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a connection. If the table is full, another one is removed, and its value returned. Returns `None` if
    /// the new one has to go instead.
    pub fn admit(&mut self, peer: IpAddr, value: T) -> Option<(Id, Option<T>)> {
        // An IPv4 client of an IPv6 socket.
        let peer = peer.to_canonical();
        let removed = if self.entries.len() < self.max {
            None
        } else {
            let victim = self.victim(peer)?;
            self.remove(victim)
        };
        let now = self.tick();
        let id = Id(now);
        *self.counts.entry(peer).or_default() += 1;
        let entry = Entry {
            peer,
            progress: now,
            is_busy: false,
            value,
        };
        self.entries.insert(id, entry);
        Some((id, removed))
    }

    /// Removes a connection, unless it is removed already.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let entry = self.entries.remove(&id)?;
        if let Some(count) = self.counts.get_mut(&entry.peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&entry.peer);
            }
        }
        Some(entry.value)
    }

    /// Notes that a connection made progress, and whether a response is being prepared.
    pub fn progress(&mut self, id: Id, is_busy: bool) {
        let now = self.tick();
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.progress = now;
            entry.is_busy = is_busy;
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Returns the connection that makes room for one of `newcomer`: the one that has waited longest at the address
    /// with the most connections. Addresses with fewer connections than `newcomer` lose none. A response that is being
    /// prepared is given up only for an address with fewer connections.
    fn victim(&self, newcomer: IpAddr) -> Option<Id> {
        let share = |peer: IpAddr| {
            let count = self.counts.get(&peer).copied().unwrap_or_default();
            count + usize::from(peer == newcomer)
        };
        let own = share(newcomer);
        let choose = |is_busy: bool| {
            self.entries
                .iter()
                .filter(|(_, entry)| entry.is_busy == is_busy)
                .map(|(id, entry)| (share(entry.peer), Reverse(entry.progress), *id))
                .max()
        };
        let waiting = choose(false).filter(|(share, ..)| *share >= own);
        let victim = waiting.or_else(|| choose(true).filter(|(share, ..)| *share > own));
        victim.map(|(.., id)| id)
    }
}

#[cfg(test)]
mod tests;
