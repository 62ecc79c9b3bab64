//! Deletions that were denied a short time ago. They are denied again without looking anything up, because some clients
//! repeat a deletion all the time: to preempt a pod, the scheduler of Kubernetes 1.33 or newer sends about 50 a second.
//! After some denials, the response makes client libraries wait before they repeat the deletion.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use shared_api::removal_request::{MAX_REQUESTER_BYTES, RemovalRequests};

use super::{GuardedPod, Keeping, Recording, Removal};

/// Time after which a denial depends on lookups again.
pub(super) const RECENT: SignedDuration = SignedDuration::from_secs(15);
/// Maximum number of denials within this time that do not make the client wait. A scheduler before Kubernetes 1.33
/// would place no other pod while it waits, so the number must be larger than those of its denials: it repeats each
/// preemption two or three times, and several pods may select the same victim. Reviews are counted: Kubernetes 1.20
/// reviews each denied deletion twice.
pub(super) const MAX_FORBIDDEN: u32 = 100;
/// Time for which client libraries wait after each further denial, in seconds.
pub(super) const RETRY_AFTER_SECONDS: u32 = 5;
/// Maximum number of known denials.
const MAX_DENIALS: usize = 1024;

/// Recent denials of deletions whose requests are recorded, or need not be.
#[derive(Debug, Default)]
pub struct RecentDenials(Mutex<HashMap<Key, Denial>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    pod_uid: String,
    requester: String,
}

#[derive(Debug)]
struct Denial {
    at: Timestamp,
    /// How the pod is kept. A recorded request has the validity that applies to its requester.
    keeping: Keeping,
    /// Number of denials since then, including the first one.
    count: u32,
}

/// Repetition of a deletion that was denied a short time ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    /// How the request is recorded.
    pub recording: Recording,
    /// Whether the deletion was denied so often that the client must wait before the next repetition.
    pub is_too_frequent: bool,
}

impl Key {
    fn of(removal: &Removal, pod: &GuardedPod) -> Self {
        Self {
            pod_uid: pod.metadata.uid.clone(),
            requester: removal.requester.clone(),
        }
    }
}

impl Denial {
    fn is_recent(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.at);
        // The clock may have been set back.
        !age.is_negative() && age < RECENT
    }
}

impl RecentDenials {
    /// Returns the repetition, if the same deletion was denied a short time ago, and either the pod of the review has
    /// the request, which need not be recorded again yet, or its GameDeployment is being deleted. Counts repetitions of
    /// recorded requests; dry runs are not counted.
    pub fn repetition(&self, removal: &Removal, pod: &GuardedPod, now: Timestamp) -> Option<Repetition> {
        let key = Key::of(removal, pod);
        match self.keeping(&key, now)? {
            // A foreground deletion makes the garbage collector delete the pods. It repeats denied deletions with
            // increasing delays, and would wait in one of its few workers, which all workloads share.
            Keeping::BeingDeleted => Some(Repetition {
                recording: Recording::BeingDeleted(pod.controller()?.name.clone()),
                is_too_frequent: false,
            }),
            Keeping::Recorded(validity) => {
                let requests = RemovalRequests::parse(pod.requests()?).ok()?;
                let known = requests.of(&removal.requester)?;
                let is_replaced = known.is_replaced_by(removal.type_);
                if removal.is_dry_run || is_replaced || known.is_repetition_due(now, validity) {
                    return None;
                }
                Some(Repetition {
                    recording: Recording::Recorded(validity),
                    is_too_frequent: self.count(&key) > MAX_FORBIDDEN,
                })
            }
        }
    }

    /// Counts a denial, and returns the number of denials so far.
    fn count(&self, key: &Key) -> u32 {
        let mut denials = self.denials();
        let Some(denial) = denials.get_mut(key) else {
            return 1;
        };
        denial.count = denial.count.saturating_add(1);
        denial.count
    }

    /// Returns how the pod of a recent denial is kept.
    fn keeping(&self, key: &Key, now: Timestamp) -> Option<Keeping> {
        let denials = self.denials();
        let denial = denials.get(key).filter(|denial| denial.is_recent(now))?;
        Some(denial.keeping)
    }

    /// Records the denial of a deletion, as the first one that is counted. Its request is on the pod, unless the
    /// GameDeployment is being deleted.
    pub fn record(&self, removal: &Removal, pod: &GuardedPod, now: Timestamp, keeping: Keeping) {
        // Evictions are reviewed without their pod.
        if removal.is_eviction() || removal.requester.len() > MAX_REQUESTER_BYTES {
            return;
        }
        let mut denials = self.denials();
        if denials.len() >= MAX_DENIALS {
            denials.retain(|_, denial| denial.is_recent(now));
        }
        if denials.len() < MAX_DENIALS {
            let denial = Denial {
                at: now,
                keeping,
                count: 1,
            };
            denials.insert(Key::of(removal, pod), denial);
        }
    }

    fn denials(&self) -> MutexGuard<'_, HashMap<Key, Denial>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
