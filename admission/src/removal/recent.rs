//! Deletions that were denied a short time ago. They are denied again without looking anything up, because some clients
//! repeat a deletion all the time: to preempt a pod, the scheduler sends about 50 a second.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use shared_api::removal_request::{MAX_REQUESTER_BYTES, RemovalRequests};

use super::{GuardedPod, Keeping, Recording, Removal, is_due};

/// Time after which a denial depends on lookups again.
const RECENT: SignedDuration = SignedDuration::from_secs(15);
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
    /// Returns the record of the denial, if the same deletion was denied a short time ago, and either the pod of the
    /// review has the request, which need not be recorded again yet, or its GameDeployment is being deleted.
    pub fn recording(&self, removal: &Removal, pod: &GuardedPod, now: Timestamp) -> Option<Recording> {
        match self.keeping(&Key::of(removal, pod), now)? {
            Keeping::BeingDeleted => Some(Recording::BeingDeleted(pod.controller()?.name.clone())),
            Keeping::Recorded(validity) => {
                let requests = RemovalRequests::parse(pod.requests()?).ok()?;
                let known = requests.of(&removal.requester)?;
                let is_repeated = !removal.is_dry_run && !is_due(known, now, validity);
                is_repeated.then_some(Recording::Recorded(validity))
            }
        }
    }

    /// Returns how the pod of a recent denial is kept.
    fn keeping(&self, key: &Key, now: Timestamp) -> Option<Keeping> {
        let denials = self.denials();
        let denial = denials.get(key).filter(|denial| denial.is_recent(now))?;
        Some(denial.keeping)
    }

    /// Records the denial of a deletion. Its request is on the pod, unless the GameDeployment is being deleted.
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
            denials.insert(Key::of(removal, pod), Denial { at: now, keeping });
        }
    }

    fn denials(&self) -> MutexGuard<'_, HashMap<Key, Denial>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
