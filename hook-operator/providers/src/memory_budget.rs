//! Limits the memory for requests and answers.
//!
//! A measurement reserves bytes before it has them. The length of an answer is not known in advance, so a
//! reservation can grow. One that finds no memory waits until others of its namespace return theirs. To avoid
//! a deadlock among reservations that hold much and want more, it also waits for one of a few large
//! reservations, each big enough for any measurement. The holder of a large reservation never waits again.

use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use fair_share::semaphore::{FairSemaphore, Permit};
use hook_core::answer::{MeasurementFailure, MeasurementReason};
use tokio::sync::Notify;

use crate::limits::{ProviderLimits, not_asked};

/// Size of a large reservation: the most that one measurement may hold, in bytes.
pub const MAX_RESERVATION: usize = 2 << 20;
/// Divisor of the whole budget that gives the share of large reservations.
const LARGE_FRACTION: usize = 8;

/// Memory for all measurements.
pub(crate) struct MemoryBudget {
    pool: Mutex<Pool>,
    of_one: usize,
    large: FairSemaphore,
    wait: Duration,
}

struct Pool {
    free: usize,
    /// Shares of the namespaces that hold bytes or wait for some.
    shares: HashMap<Arc<str>, Share>,
}

/// Share of one namespace.
#[derive(Default)]
struct Share {
    held: usize,
    /// Wakes a waiter after bytes are returned.
    returned: Arc<Notify>,
}

/// Memory reservation of one measurement, returned when dropped.
pub struct MemoryReservation {
    memory: Arc<MemoryBudget>,
    namespace: Arc<str>,
    held: usize,
    large: Option<Permit>,
    waits: Arc<AtomicBool>,
}

impl MemoryBudget {
    pub(crate) fn new(limits: ProviderLimits) -> Self {
        let large = (limits.bytes / LARGE_FRACTION / MAX_RESERVATION).max(1);
        let of_large = large * MAX_RESERVATION;
        Self {
            pool: Mutex::new(Pool {
                free: limits.bytes.saturating_sub(of_large),
                shares: HashMap::new(),
            }),
            // A namespace gets a quarter in all, including half of the large reservations.
            of_one: (limits.bytes / 4).saturating_sub(of_large / 2),
            large: FairSemaphore::with_reserve(large),
            wait: limits.wait,
        }
    }

    pub(crate) fn reserve(self: &Arc<Self>, namespace: &str) -> MemoryReservation {
        MemoryReservation {
            memory: Arc::clone(self),
            namespace: Arc::from(namespace),
            held: 0,
            large: None,
            waits: Arc::default(),
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Takes bytes for a namespace and returns whether they fit. A namespace holds at most its share, and
    /// never more than was free before.
    fn take(&mut self, namespace: &Arc<str>, more: usize, of_one: usize) -> bool {
        let held = self.shares.get(namespace).map_or(0, |share| share.held) + more;
        let fits = more <= self.free && held <= of_one && held <= self.free;
        if fits {
            self.free -= more;
            self.shares.entry(namespace.clone()).or_default().held = held;
        }
        fits
    }

    fn give_back(&mut self, namespace: &str, bytes: usize) {
        self.free += bytes;
        if let Some(share) = self.shares.get_mut(namespace) {
            share.held -= bytes;
            share.returned.notify_one();
        }
        self.forget(namespace);
    }

    /// Forgets a namespace that neither holds nor waits for bytes.
    fn forget(&mut self, namespace: &str) {
        let unused = |share: &Share| share.held == 0 && Arc::strong_count(&share.returned) == 1;
        if self.shares.get(namespace).is_some_and(unused) {
            self.shares.remove(namespace);
        }
    }
}

impl MemoryReservation {
    /// Grows the reservation to at least `bytes`. If they do not fit, waits until they do, or for a large
    /// reservation.
    ///
    /// # Errors
    /// [`OutOfMemory`] after the configured wait.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let more = bytes.saturating_sub(self.held);
        if more == 0 || self.large.is_some() {
            return Ok(());
        }
        if self.take(more) {
            self.held = bytes;
            return Ok(());
        }
        self.waits.store(true, Ordering::Relaxed);
        let found = async {
            tokio::select! {
                () = self.room(more) => None,
                large = self.memory.large.take(&self.namespace) => Some(large),
            }
        };
        let found = tokio::time::timeout(self.memory.wait, found).await;
        self.waits.store(false, Ordering::Relaxed);
        let found = found.map_err(|_| OutOfMemory(self.memory.wait))?;
        match found {
            None => self.held = bytes,
            Some(large) => {
                self.large = Some(large);
                self.hold_only(0);
            }
        }
        Ok(())
    }

    fn take(&self, more: usize) -> bool {
        let of_one = self.memory.of_one;
        self.memory.pool().take(&self.namespace, more, of_one)
    }

    /// Waits until the pool has room for more bytes, and takes them.
    async fn room(&self, more: usize) {
        let returned = {
            let mut pool = self.memory.pool();
            let share = pool.shares.entry(self.namespace.clone()).or_default();
            Arc::clone(&share.returned)
        };
        while !self.take(more) {
            returned.notified().await;
        }
        // The next waiter may find room, too.
        returned.notify_one();
    }

    /// Shrinks the reservation to at most `bytes`. A large reservation keeps its size.
    pub fn hold_only(&mut self, bytes: usize) {
        let less = self.held.saturating_sub(bytes);
        if less > 0 {
            self.held -= less;
            self.memory.pool().give_back(&self.namespace, less);
        }
    }

    /// Returns the reserved bytes. Those of a large reservation do not count.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns a flag that is set while the reservation waits, for a caller that cancels it by a timeout.
    pub(crate) fn waits(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.waits)
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.hold_only(0);
        self.memory.pool().forget(&self.namespace);
    }
}

/// No memory was free for a reservation within this time.
#[derive(Debug)]
pub struct OutOfMemory(Duration);

impl OutOfMemory {
    pub(crate) fn after(wait: Duration) -> Self {
        Self(wait)
    }

    fn why(&self) -> String {
        format!(
            "waited {:?} for memory for the response, because this namespace has used up its share of \
             --max-answer-bytes",
            self.0
        )
    }

    /// Returns the failure if the request was sent already. One that is not `repeatable` may have changed
    /// something on its server and is not sent again at once: its measurement failed.
    pub(crate) fn during_answer(self, repeatable: bool) -> MeasurementFailure {
        if repeatable {
            return self.into();
        }
        let message = format!(
            "the request was sent, but the response was not read: {}",
            self.why()
        );
        MeasurementFailure::new(MeasurementReason::AnswerDropped, message)
    }
}

impl From<OutOfMemory> for MeasurementFailure {
    fn from(full: OutOfMemory) -> Self {
        not_asked(&full.why())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn memory(bytes: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(ProviderLimits {
            bytes,
            wait: Duration::from_secs(3),
            ..ProviderLimits::default()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn one_namespace_holds_a_quarter_and_others_find_room() {
        let memory = memory(64 * MIB);
        let mut crowd = Vec::new();
        let refused = loop {
            let mut reservation = memory.reserve("crowd");
            match reservation.grow_to(MIB).await {
                Ok(()) => crowd.push(reservation),
                Err(full) => break MeasurementFailure::from(full),
            }
        };
        assert_eq!(refused.kind, MeasurementReason::NotAsked);
        // 12 MiB of the pool and two large reservations of 2 MiB each.
        assert_eq!(crowd.len(), 14);
        let mut few = memory.reserve("few");
        few.grow_to(MIB).await.unwrap();
        assert!(few.large.is_none());
        drop((crowd, few));
        let pool = memory.pool();
        assert_eq!(
            (pool.free, pool.shares.len(), memory.large.taken()),
            (56 * MIB, 0, 0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_are_returned_are_those_of_the_next_waiters() {
        let memory = memory(16 * MIB);
        // 3 MiB of the pool, and the large reservation.
        let mut held = Vec::new();
        for _ in 0..4 {
            let mut reservation = memory.reserve("games");
            reservation.grow_to(MIB).await.unwrap();
            held.push(reservation);
        }
        assert_eq!(memory.large.taken(), 1);
        let waiters: Vec<_> = (0..64)
            .map(|_| {
                let memory = memory.clone();
                tokio::spawn(async move {
                    let mut reservation = memory.reserve("games");
                    reservation.grow_to(MIB / 64).await.map(|()| reservation)
                })
            })
            .collect();
        tokio::task::yield_now().await;
        // One return makes room for all of them.
        drop(held.remove(0));
        for waiter in waiters {
            let reservation = waiter.await.unwrap().unwrap();
            assert!(reservation.large.is_none());
            held.push(reservation);
        }
        let mut late = memory.reserve("games");
        assert!(late.grow_to(1).await.is_err());
        drop((held, late));
        assert!(memory.pool().shares.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn claims_that_grow_do_not_wait_for_each_other() {
        let memory = memory(16 * MIB);
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let memory = memory.clone();
                tokio::spawn(async move {
                    let mut reservation = memory.reserve("games");
                    for bytes in [1 << 10, 1 << 14, 1 << 17, MIB] {
                        while reservation.grow_to(bytes).await.is_err() {}
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            let end = tokio::time::timeout(Duration::from_mins(10), task).await;
            end.unwrap().unwrap();
        }
    }
}
