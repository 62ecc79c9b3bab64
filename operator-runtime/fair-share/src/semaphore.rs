//! A semaphore that is fair between tenants: each waiter stands in the queue of its tenant, and the tenants
//! take turns. A tenant that wants a thousand permits at once delays others by one turn, not by a thousand.
//!
//! A turn comes when a permit is returned. If that may take an hour, [`FairSemaphore::with_reserve`] keeps
//! some permits free: a tenant may take a permit only while it holds fewer than are free. A single tenant
//! gets half, the next one half of the rest, and a newcomer finds room at once.
//!
//! Tenants are namespaces, so that none can take everything. A tenant that neither holds nor wants a permit
//! uses no memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A number of permits. Clones share them.
#[derive(Debug, Clone)]
pub struct FairSemaphore {
    queue: Arc<Mutex<Queue>>,
    all: usize,
}

/// Permit that is held, returned when dropped.
#[derive(Debug)]
pub struct Permit {
    semaphore: FairSemaphore,
    tenant: Arc<str>,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    keeps_reserve: bool,
    /// Number of permits held, by tenant; never zero.
    held: HashMap<Arc<str>, usize>,
    /// Waiters by tenant; no queue is empty.
    waiting: HashMap<Arc<str>, Waiters>,
    /// Waiting tenants in the order of their turns.
    turns: VecDeque<Arc<str>>,
}

/// Waiters of one tenant.
#[derive(Debug, Default)]
struct Waiters {
    callers: VecDeque<oneshot::Sender<Permit>>,
    /// Length of the queue at which cancelled waiters are removed.
    sweep_at: usize,
}

impl FairSemaphore {
    /// Creates a semaphore with `all` permits, at least one. One tenant may take them all.
    pub fn new(all: usize) -> Self {
        Self::with_capacity(all, false)
    }

    /// Creates a semaphore with `all` permits, at least one. A tenant may take a permit only while it holds
    /// fewer than are free.
    pub fn with_reserve(all: usize) -> Self {
        Self::with_capacity(all, true)
    }

    fn with_capacity(all: usize, keeps_reserve: bool) -> Self {
        let all = all.max(1);
        let queue = Queue {
            free: all,
            keeps_reserve,
            held: HashMap::new(),
            waiting: HashMap::new(),
            turns: VecDeque::new(),
        };
        Self {
            queue: Arc::new(Mutex::new(queue)),
            all,
        }
    }

    /// Number of permits that are taken.
    pub fn taken(&self) -> usize {
        self.all - self.queue().free
    }

    /// Waits for a permit for a tenant. Dropping the future stops waiting.
    pub async fn take(&self, tenant: &str) -> Permit {
        let turn = {
            let mut queue = self.queue();
            let tenant: Arc<str> = Arc::from(tenant);
            if queue.may_take(&tenant) {
                // A tenant that may take a permit has no waiters: they are served as soon as they may.
                queue.hand_out(&tenant);
                return self.permit(tenant);
            }
            queue.line_up(tenant)
        };
        match turn.await {
            Ok(permit) => permit,
            // The queue serves all waiters before it is dropped, and it cannot be dropped while `self`
            // exists.
            Err(_) => std::future::pending().await,
        }
    }

    fn permit(&self, tenant: Arc<str>) -> Permit {
        Permit {
            semaphore: self.clone(),
            tenant,
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn may_take(&self, tenant: &str) -> bool {
        let held = self.held.get(tenant).copied().unwrap_or_default();
        self.free > 0 && (!self.keeps_reserve || held < self.free)
    }

    fn hand_out(&mut self, tenant: &Arc<str>) {
        self.free -= 1;
        *self.held.entry(tenant.clone()).or_default() += 1;
    }

    fn take_back(&mut self, tenant: &str) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(tenant) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(tenant);
            }
        }
    }

    fn line_up(&mut self, tenant: Arc<str>) -> oneshot::Receiver<Permit> {
        let (caller, turn) = oneshot::channel();
        let queue = self.waiting.entry(tenant.clone()).or_default();
        if queue.callers.is_empty() {
            self.turns.push_back(tenant);
        }
        queue.push(caller);
        turn
    }

    /// Returns the next waiter in turn, after handing out its permit.
    fn next(&mut self) -> Option<(Arc<str>, oneshot::Sender<Permit>)> {
        loop {
            let at = self.turns.iter().position(|tenant| self.may_take(tenant))?;
            let tenant = self.turns.remove(at)?;
            let queue = self.waiting.get_mut(&tenant)?;
            let caller = queue.callers.pop_front();
            if queue.callers.is_empty() {
                self.waiting.remove(&tenant);
            } else {
                self.turns.push_back(tenant.clone());
            }
            // A cancelled waiter uses no turn.
            if let Some(caller) = caller.filter(|caller| !caller.is_closed()) {
                self.hand_out(&tenant);
                return Some((tenant, caller));
            }
        }
    }
}

impl Waiters {
    /// Adds a waiter. Removes cancelled waiters now and then, because a turn may be an hour away.
    fn push(&mut self, caller: oneshot::Sender<Permit>) {
        if self.callers.len() >= self.sweep_at {
            self.callers.retain(|caller| !caller.is_closed());
            self.sweep_at = 2 * self.callers.len() + 64;
        }
        self.callers.push_back(caller);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let called = {
            let mut queue = self.semaphore.queue();
            queue.take_back(&self.tenant);
            // One more free permit may allow several tenants to take one.
            std::iter::from_fn(|| queue.next()).collect::<Vec<_>>()
        };
        for (tenant, caller) in called {
            // If the waiter is cancelled at this moment, dropping the permit returns it.
            drop(caller.send(self.semaphore.permit(tenant)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiter<'s> = Pin<Box<dyn Future<Output = Permit> + 's>>;

    /// Takes a permit if one is free.
    fn poll(waiter: &mut Waiter<'_>) -> Option<Permit> {
        match waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    fn waiter<'s>(semaphore: &'s FairSemaphore, tenant: &'s str) -> Waiter<'s> {
        let mut waiter: Waiter<'s> = Box::pin(semaphore.take(tenant));
        assert!(poll(&mut waiter).is_none());
        waiter
    }

    #[test]
    fn parties_take_turns_however_many_each_sends() {
        let semaphore = FairSemaphore::new(1);
        let mut held = poll(&mut (Box::pin(semaphore.take("crowd")) as Waiter<'_>));
        let mut waiters: Vec<(&str, Waiter<'_>)> = Vec::new();
        for tenant in ["crowd", "crowd", "crowd", "few", "other"] {
            waiters.push((tenant, waiter(&semaphore, tenant)));
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
        assert_eq!(semaphore.taken(), 0);
        assert!(semaphore.queue().waiting.is_empty() && semaphore.queue().turns.is_empty());
    }

    #[test]
    fn who_goes_away_loses_nothing_for_others() {
        let semaphore = FairSemaphore::new(1);
        let first = poll(&mut (Box::pin(semaphore.take("a")) as Waiter<'_>)).unwrap();
        let gone = waiter(&semaphore, "a");
        let mut stays = waiter(&semaphore, "a");
        drop(gone);
        drop(first);
        let second = poll(&mut stays).unwrap();
        // This waiter got a permit and is dropped before it notices.
        let called = waiter(&semaphore, "b");
        let mut last = waiter(&semaphore, "c");
        drop(second);
        drop(called);
        assert!(poll(&mut last).is_some());
        drop(last);
        assert_eq!(semaphore.taken(), 0);
    }

    #[test]
    fn there_is_always_a_slot() {
        assert!(poll(&mut (Box::pin(FairSemaphore::new(0).take("a")) as Waiter<'_>)).is_some());
        assert!(poll(&mut (Box::pin(FairSemaphore::with_reserve(0).take("a")) as Waiter<'_>)).is_some());
    }

    fn take_all(semaphore: &FairSemaphore, tenant: &str) -> Vec<Permit> {
        std::iter::from_fn(|| poll(&mut (Box::pin(semaphore.take(tenant)) as Waiter<'_>))).collect()
    }

    #[test]
    fn who_comes_next_finds_room_however_long_the_others_hold_theirs() {
        let semaphore = FairSemaphore::with_reserve(4096);
        let mut held = Vec::new();
        for tenant in 0..8 {
            let got = take_all(&semaphore, &format!("crowd-{tenant}"));
            // The first tenant has half, and each further one half of the rest.
            assert_eq!(got.len(), 2048 >> tenant);
            held.push(got);
        }
        assert_eq!(take_all(&semaphore, "few").len(), 8);
        drop(held);
        assert_eq!(semaphore.taken(), 0);
        assert!(semaphore.queue().held.is_empty());
    }

    #[test]
    fn room_that_becomes_free_goes_to_everybody_who_may_have_it() {
        let semaphore = FairSemaphore::with_reserve(8);
        let (mut many, few) = (take_all(&semaphore, "many"), take_all(&semaphore, "few"));
        assert_eq!((many.len(), few.len()), (4, 2));
        let (mut more, mut others) = (waiter(&semaphore, "many"), waiter(&semaphore, "few"));
        // Two permits were free, and now a third is: `few` holds 2 and may take a third, `many` still holds
        // too many.
        many.pop();
        assert!(poll(&mut more).is_none());
        let third = poll(&mut others).unwrap();
        drop((few, third));
        assert!(poll(&mut more).is_some());
    }

    #[test]
    fn those_who_gave_up_are_not_kept() {
        let semaphore = FairSemaphore::with_reserve(2);
        let _held = take_all(&semaphore, "a");
        for _ in 0..10_000 {
            drop(waiter(&semaphore, "a"));
        }
        let waiting = semaphore.queue().waiting["a"].callers.len();
        assert!(waiting < 100, "{waiting}");
    }
}
