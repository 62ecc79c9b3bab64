//! A number of slots, shared fairly: who waits, waits in the queue of his party, and the parties take turns. A party
//! that wants a thousand slots at once makes others wait for one turn, not for a thousand.
//!
//! Parties are namespaces, so that no tenant can take what all share. Nothing is known of a party that neither holds
//! nor wants a slot.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Slots. Clones are the same slots.
#[derive(Debug, Clone)]
pub struct Slots {
    desk: Arc<Mutex<Desk>>,
    all: usize,
}

/// The right to a slot, given back when dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Slots,
}

#[derive(Debug)]
struct Desk {
    free: usize,
    /// Those who wait, by party. No queue is empty.
    waiting: HashMap<String, VecDeque<oneshot::Sender<Slot>>>,
    /// The parties that wait, in the order of their turns.
    turns: VecDeque<String>,
}

impl Slots {
    /// So many slots; at least one.
    #[must_use]
    pub fn new(all: usize) -> Self {
        let all = all.max(1);
        let desk = Desk {
            free: all,
            waiting: HashMap::new(),
            turns: VecDeque::new(),
        };
        Self {
            desk: Arc::new(Mutex::new(desk)),
            all,
        }
    }

    /// Slots that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.all - self.desk().free
    }

    /// Waits for a slot, as one of a party. To stop waiting, drop the future.
    pub async fn take(&self, party: &str) -> Slot {
        let turn = {
            let mut desk = self.desk();
            if desk.free > 0 {
                // Whenever one is free, nobody waits.
                desk.free -= 1;
                return self.slot();
            }
            let (caller, turn) = oneshot::channel();
            if let Some(queue) = desk.waiting.get_mut(party) {
                queue.push_back(caller);
            } else {
                desk.waiting.insert(party.to_owned(), VecDeque::from([caller]));
                desk.turns.push_back(party.to_owned());
            }
            turn
        };
        match turn.await {
            Ok(slot) => slot,
            // The desk calls everybody before it goes, and it cannot go while `self` is here.
            Err(_) => std::future::pending().await,
        }
    }

    fn slot(&self) -> Slot {
        Slot { slots: self.clone() }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// The next one whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        loop {
            let party = self.turns.pop_front()?;
            let queue = self.waiting.get_mut(&party)?;
            let caller = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&party);
            } else {
                self.turns.push_back(party);
            }
            // Who has gone meanwhile has had no turn.
            if let Some(caller) = caller.filter(|caller| !caller.is_closed()) {
                return Some(caller);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut desk = self.slots.desk();
            let next = desk.next();
            if next.is_none() {
                desk.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // Who goes at this moment gives the slot back by dropping it.
            drop(next.send(self.slots.slot()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiter<'s> = Pin<Box<dyn Future<Output = Slot> + 's>>;

    /// Takes a slot if there is one.
    fn poll(waiter: &mut Waiter<'_>) -> Option<Slot> {
        match waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(slot) => Some(slot),
            Poll::Pending => None,
        }
    }

    fn waiter<'s>(slots: &'s Slots, party: &'s str) -> Waiter<'s> {
        let mut waiter: Waiter<'s> = Box::pin(slots.take(party));
        assert!(poll(&mut waiter).is_none());
        waiter
    }

    #[test]
    fn parties_take_turns_however_many_each_sends() {
        let slots = Slots::new(1);
        let mut held = poll(&mut (Box::pin(slots.take("crowd")) as Waiter<'_>));
        let mut waiters: Vec<(&str, Waiter<'_>)> = Vec::new();
        for party in ["crowd", "crowd", "crowd", "few", "other"] {
            waiters.push((party, waiter(&slots, party)));
        }
        let mut order = Vec::new();
        while !waiters.is_empty() {
            held = None;
            let served = waiters.iter_mut().position(|(_, waiter)| {
                held = poll(waiter);
                held.is_some()
            });
            order.push(waiters.remove(served.unwrap()).0);
        }
        drop(held);
        assert_eq!(order, ["crowd", "few", "other", "crowd", "crowd"]);
        assert_eq!(slots.taken(), 0);
        assert!(slots.desk().waiting.is_empty() && slots.desk().turns.is_empty());
    }

    #[test]
    fn who_goes_away_loses_nothing_for_others() {
        let slots = Slots::new(1);
        let first = poll(&mut (Box::pin(slots.take("a")) as Waiter<'_>)).unwrap();
        let gone = waiter(&slots, "a");
        let mut stays = waiter(&slots, "a");
        drop(gone);
        drop(first);
        let second = poll(&mut stays).unwrap();
        // This one has been called, and goes before he hears of it.
        let called = waiter(&slots, "b");
        let mut last = waiter(&slots, "c");
        drop(second);
        drop(called);
        assert!(poll(&mut last).is_some());
        drop(last);
        assert_eq!(slots.taken(), 0);
    }

    #[test]
    fn there_is_always_a_slot() {
        assert!(poll(&mut (Box::pin(Slots::new(0).take("a")) as Waiter<'_>)).is_some());
    }
}
