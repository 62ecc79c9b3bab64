//! Limits concurrent calls. A call takes a slot of its host first and an overall slot second, so calls that
//! queue for a hanging host hold nothing that calls to other hosts need. Namespaces share both fairly, and
//! some slots stay free: a call may hang for as long as its metric allows, and others must not wait for it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fair_share::semaphore::{FairSemaphore, Permit};
use hook_core::answer::{MeasurementFailure, MeasurementReason};
use tokio::time::{Instant, timeout_at};

/// Limits on concurrent calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderLimits {
    /// Calls overall; at least 1.
    pub overall: usize,
    /// Calls to one host and port; at least 1.
    pub per_host: usize,
    /// Longest wait of a measurement for a slot or for memory before that is reported. It does not count
    /// towards the call's own timeout.
    pub wait: Duration,
    /// Memory for requests and answers, in bytes.
    pub bytes: usize,
}

impl Default for ProviderLimits {
    fn default() -> Self {
        Self {
            overall: 4096,
            per_host: 256,
            wait: Duration::from_secs(30),
            bytes: 64 << 20,
        }
    }
}

/// Slots for calls.
pub(crate) struct ProviderLimiter {
    limits: ProviderLimits,
    overall: FairSemaphore,
    waiting: AtomicUsize,
    /// Hosts that have a call or a waiter; no others.
    hosts: Mutex<HashMap<String, Host>>,
}

struct Host {
    slots: FairSemaphore,
    /// Number of calls and waiters.
    users: usize,
}

/// Permission to make one call, returned when dropped.
pub(crate) struct CallPermit {
    // Dropped in this order: the permits before the host can be forgotten.
    _overall: Permit,
    _host: Permit,
    _guard: HostGuard,
}

/// Keeps a host's slots while they are in use.
struct HostGuard {
    slots: Arc<ProviderLimiter>,
    host: String,
}

/// Counts a waiter until it gets its slot, gives up or is dropped.
struct WaiterCount<'a>(&'a AtomicUsize);

impl ProviderLimiter {
    pub(crate) fn new(limits: ProviderLimits) -> Self {
        Self {
            limits,
            overall: FairSemaphore::with_reserve(limits.overall),
            waiting: AtomicUsize::new(0),
            hosts: Mutex::default(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.overall.taken()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a slot for a namespace, at most for [`ProviderLimits::wait`].
    pub(crate) async fn take(
        self: &Arc<Self>,
        namespace: &str,
        host: &str,
    ) -> Result<CallPermit, MeasurementFailure> {
        let _waiting = WaiterCount::begin(&self.waiting);
        let deadline = Instant::now() + self.limits.wait;
        let (guard, slots) = HostGuard::take(self, host);
        let in_use = format!("concurrent calls to {host} (limit {})", self.limits.per_host);
        let host_permit = self.wait(&slots, namespace, deadline, &in_use).await?;
        let in_use = format!("concurrent calls (limit {})", self.limits.overall);
        let overall = self.wait(&self.overall, namespace, deadline, &in_use).await?;
        Ok(CallPermit {
            _overall: overall,
            _host: host_permit,
            _guard: guard,
        })
    }

    async fn wait(
        &self,
        slots: &FairSemaphore,
        namespace: &str,
        deadline: Instant,
        in_use: &str,
    ) -> Result<Permit, MeasurementFailure> {
        timeout_at(deadline, slots.take(namespace)).await.map_err(|_| {
            not_asked(&format!(
                "waited {:?} for a free slot, because this namespace has used up its share of {in_use}",
                self.limits.wait
            ))
        })
    }
}

/// Builds the failure for a call that was not made because capacity ran out. It does not count as a
/// measurement.
pub(crate) fn not_asked(why: &str) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::NotAsked, format!("not started yet: {why}"))
}

impl HostGuard {
    fn take(slots: &Arc<ProviderLimiter>, name: &str) -> (Self, FairSemaphore) {
        let mut hosts = slots.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let host = hosts.entry(name.to_owned()).or_insert_with(|| Host {
            slots: FairSemaphore::with_reserve(slots.limits.per_host),
            users: 0,
        });
        host.users += 1;
        let guard = Self {
            slots: Arc::clone(slots),
            host: name.to_owned(),
        };
        (guard, host.slots.clone())
    }
}

impl Drop for HostGuard {
    fn drop(&mut self) {
        let mut hosts = self.slots.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get_mut(&self.host) {
            host.users = host.users.saturating_sub(1);
            if host.users == 0 {
                hosts.remove(&self.host);
            }
        }
    }
}

impl<'a> WaiterCount<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaiterCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(overall: usize, per_host: usize) -> Arc<ProviderLimiter> {
        let wait = Duration::from_secs(3);
        Arc::new(ProviderLimiter::new(ProviderLimits {
            overall,
            per_host,
            wait,
            ..ProviderLimits::default()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_host_makes_its_own_callers_wait_and_no_others() {
        let slots = slots(9, 1);
        let held = slots.take("games", "slow:80").await.unwrap();
        let failure = slots.take("games", "slow:80").await.err().unwrap();
        assert_eq!(failure.kind, MeasurementReason::NotAsked);
        assert_eq!(
            failure.message,
            "not started yet: waited 3s for a free slot, because this namespace has used up its share of concurrent \
             calls to slow:80 (limit 1)"
        );
        assert!(slots.take("games", "other:80").await.is_ok());
        assert_eq!((slots.in_flight(), slots.waiting()), (1, 0));
        drop(held);
        assert!(slots.take("games", "slow:80").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_for_a_full_host_hold_nothing_of_the_whole() {
        let slots = slots(4, 1);
        let _held = slots.take("games", "slow:80").await.unwrap();
        let waiters: Vec<_> = (0..5)
            .map(|_| {
                let slots = Arc::clone(&slots);
                tokio::spawn(async move { slots.take("games", "slow:80").await.is_ok() })
            })
            .collect();
        while slots.waiting() < 5 {
            tokio::task::yield_now().await;
        }
        assert!(slots.take("games", "other:80").await.is_ok());
        for waiter in waiters {
            assert!(!waiter.await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_whole_is_bounded_too() {
        let slots = slots(1, 9);
        let _held = slots.take("games", "a:80").await.unwrap();
        let failure = slots.take("games", "b:80").await.err().unwrap();
        assert!(
            failure.message.ends_with("share of concurrent calls (limit 1)"),
            "{failure}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_forgotten_with_its_last_user() {
        let slots = slots(9, 1);
        let first = slots.take("games", "a:80").await.unwrap();
        assert!(slots.take("games", "a:80").await.is_err());
        assert_eq!(slots.hosts.lock().unwrap().len(), 1);
        drop(first);
        assert_eq!(slots.hosts.lock().unwrap().len(), 0);
        assert_eq!((slots.in_flight(), slots.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn a_limit_of_none_still_lets_one_call_run() {
        assert!(slots(0, 0).take("games", "a:80").await.is_ok());
    }
}
