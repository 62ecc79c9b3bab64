//! Room for the specs of open runs, and the runs that wait for it.
//!
//! The runs of one namespace get room in the order of their arrival: a small one does not pass a large one, which would
//! otherwise wait for ever. Namespaces do not wait for each other: a run that fits passes those of other namespaces.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use shared_api::HookRun;

use crate::NamespacedName;
use crate::spec_budget::{Shortage, SpecBudget, SpecLimits, bytes_of};

/// Place of a run in the order of arrival.
pub(super) type Place = u64;

/// Purpose of a session, by which it gets its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Measures.
    Measure,
    /// Ends a run with `spec.terminate`. It gets room of its own, so that a namespace without room can end its runs.
    /// This room is the reserve, because such runs may be as many and as large as others.
    Terminate,
    /// Waits for the end of a finished run's time to live. It needs no spec and so no room.
    CleanUp,
}

/// Room that the session of a run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// Purpose of the session.
    pub(super) purpose: Purpose,
    /// Bytes of the spec.
    pub(super) bytes: usize,
}

impl Need {
    pub(super) fn of(run: &HookRun) -> Self {
        if run.status.as_ref().is_some_and(|status| status.phase.is_final()) {
            return Self {
                purpose: Purpose::CleanUp,
                bytes: 0,
            };
        }
        let purpose = if run.spec.terminate == Some(true) {
            Purpose::Terminate
        } else {
            Purpose::Measure
        };
        Self {
            purpose,
            bytes: bytes_of(&run.spec),
        }
    }
}

/// Room of all namespaces.
#[derive(Debug)]
pub(super) struct Room {
    measure: Pool,
    terminate: Pool,
    arrived: Place,
    /// Whether a run that waits may fit since the last look.
    is_stirred: bool,
}

/// Room for one purpose, and the runs that wait for it.
#[derive(Debug)]
struct Pool {
    budget: SpecBudget,
    /// Waiting runs by namespace; no queue is empty.
    queues: HashMap<String, BTreeMap<Place, Waiter>>,
}

/// Run that waits.
#[derive(Debug)]
struct Waiter {
    name: String,
    bytes: usize,
}

impl Room {
    pub(super) fn new(limits: SpecLimits) -> Self {
        Self {
            measure: Pool::new(limits),
            terminate: Pool::new(limits.of_reserve()),
            arrived: 0,
            is_stirred: false,
        }
    }

    /// Returns the place of a run that arrives now.
    pub(super) fn next_place(&mut self) -> Place {
        self.arrived += 1;
        self.arrived
    }

    /// Number of runs that wait.
    pub(super) fn waiting(&self) -> usize {
        let queues = self.measure.queues.values().chain(self.terminate.queues.values());
        queues.map(BTreeMap::len).sum()
    }

    /// Returns whether a run at this place gets room now: there is enough, and no other one of its namespace has waited
    /// longer.
    pub(super) fn fits(&self, namespace: &str, need: Need, place: Place) -> bool {
        self.pool(need.purpose)
            .is_none_or(|pool| !pool.is_behind(namespace, place) && pool.budget.fits(namespace, need.bytes))
    }

    pub(super) fn take(&mut self, namespace: &str, need: Need) {
        if let Some(pool) = self.pool_mut(need.purpose) {
            pool.budget.take(namespace, need.bytes);
        }
    }

    pub(super) fn give_back(&mut self, namespace: &str, need: Need) {
        self.is_stirred = true;
        if let Some(pool) = self.pool_mut(need.purpose) {
            pool.budget.give_back(namespace, need.bytes);
        }
    }

    /// Changes the room of an open session to what it needs now, and returns what it holds then. Returns `None`, and
    /// changes nothing, if there is not enough. A session that measured ends its run in the room that it has.
    pub(super) fn resize(&mut self, namespace: &str, held: Need, needed: Need) -> Option<Need> {
        let purpose = match (held.purpose, needed.purpose) {
            (Purpose::Measure, Purpose::Terminate) => Purpose::Measure,
            (_, purpose) => purpose,
        };
        let needed = Need { purpose, ..needed };
        if needed == held {
            return Some(held);
        }
        let was_stirred = self.is_stirred;
        self.give_back(namespace, held);
        let shrinks = purpose == held.purpose && needed.bytes < held.bytes;
        let pool = self.pool(purpose);
        if shrinks || pool.is_none_or(|pool| pool.budget.fits(namespace, needed.bytes)) {
            self.take(namespace, needed);
            Some(needed)
        } else {
            self.take(namespace, held);
            self.is_stirred = was_stirred;
            None
        }
    }

    /// Lets a run wait at a place.
    pub(super) fn enqueue(&mut self, (namespace, name): &NamespacedName, need: Need, place: Place) {
        let waiter = Waiter {
            name: name.clone(),
            bytes: need.bytes,
        };
        if let Some(pool) = self.pool_mut(need.purpose) {
            let queue = pool.queues.entry(namespace.clone()).or_default();
            queue.insert(place, waiter);
        }
    }

    /// Ends the wait of a run. Others may have waited behind it.
    pub(super) fn dequeue(&mut self, namespace: &str, need: Need, place: Place) {
        self.is_stirred = true;
        if let Some(pool) = self.pool_mut(need.purpose) {
            pool.remove(namespace, place);
        }
    }

    /// Returns why a run at this place waits.
    pub(super) fn shortage(&self, namespace: &str, need: Need, place: Place) -> Shortage {
        let pool = &self.measure;
        let is_behind = pool.is_behind(namespace, place);
        pool.budget.shortage(namespace, need.bytes, is_behind)
    }

    /// Takes the room for all waiting runs that get it now, and returns these runs, the oldest first.
    pub(super) fn admit(&mut self) -> Vec<NamespacedName> {
        if !std::mem::take(&mut self.is_stirred) {
            return Vec::new();
        }
        let mut admitted = self.terminate.admit();
        admitted.extend(self.measure.admit());
        admitted
    }

    /// Returns the room for a purpose; `None` for one that needs no room.
    fn pool(&self, purpose: Purpose) -> Option<&Pool> {
        match purpose {
            Purpose::Measure => Some(&self.measure),
            Purpose::Terminate => Some(&self.terminate),
            Purpose::CleanUp => None,
        }
    }

    fn pool_mut(&mut self, purpose: Purpose) -> Option<&mut Pool> {
        match purpose {
            Purpose::Measure => Some(&mut self.measure),
            Purpose::Terminate => Some(&mut self.terminate),
            Purpose::CleanUp => None,
        }
    }
}

impl Pool {
    fn new(limits: SpecLimits) -> Self {
        Self {
            budget: SpecBudget::new(limits),
            queues: HashMap::new(),
        }
    }

    /// Returns whether another run of the namespace has waited longer than one at this place.
    fn is_behind(&self, namespace: &str, place: Place) -> bool {
        self.head(namespace).is_some_and(|(first, _)| first < place)
    }

    /// Returns the run of a namespace that has waited longest.
    fn head(&self, namespace: &str) -> Option<(Place, &Waiter)> {
        let queue = self.queues.get(namespace)?;
        queue.first_key_value().map(|(place, waiter)| (*place, waiter))
    }

    fn remove(&mut self, namespace: &str, place: Place) -> Option<Waiter> {
        let queue = self.queues.get_mut(namespace)?;
        let waiter = queue.remove(&place);
        if queue.is_empty() {
            self.queues.remove(namespace);
        }
        waiter
    }

    /// Takes the room for the waiting runs that get it now. Looks at all namespaces that wait; they are few, because
    /// each of them holds much.
    fn admit(&mut self) -> Vec<NamespacedName> {
        let mut heads: BTreeSet<(Place, String)> = BTreeSet::new();
        for namespace in self.queues.keys() {
            heads.extend(self.admissible(namespace));
        }
        let mut admitted = Vec::new();
        while let Some((place, namespace)) = heads.pop_first() {
            // Another namespace may have taken the room meanwhile.
            if self.admissible(&namespace).is_none() {
                continue;
            }
            let Some(Waiter { name, bytes }) = self.remove(&namespace, place) else {
                continue;
            };
            self.budget.take(&namespace, bytes);
            heads.extend(self.admissible(&namespace));
            admitted.push((namespace, name));
        }
        admitted
    }

    /// Returns the head of a namespace's queue if there is room for it.
    fn admissible(&self, namespace: &str) -> Option<(Place, String)> {
        let (place, waiter) = self.head(namespace)?;
        let fits = self.budget.fits(namespace, waiter.bytes);
        fits.then(|| (place, namespace.to_owned()))
    }
}

#[cfg(test)]
impl Room {
    /// Returns the bytes that a namespace holds for a purpose.
    pub(super) fn held_by(&self, purpose: Purpose, namespace: &str) -> usize {
        self.pool(purpose)
            .map_or(0, |pool| pool.budget.held_by(namespace))
    }

    /// Returns the bytes that all namespaces hold for a purpose.
    pub(super) fn held(&self, purpose: Purpose) -> usize {
        self.pool(purpose).map_or(0, |pool| pool.budget.held())
    }

    /// Returns whether no run waits although it would fit.
    pub(super) fn is_settled(&self) -> bool {
        [&self.measure, &self.terminate].into_iter().all(|pool| {
            let mut namespaces = pool.queues.keys();
            namespaces.all(|namespace| pool.admissible(namespace).is_none())
        })
    }

    /// Returns the waiting runs of a purpose, in the order of their places.
    pub(super) fn queue(&self, purpose: Purpose, namespace: &str) -> Vec<(Place, String, usize)> {
        let queue = self.pool(purpose).and_then(|pool| pool.queues.get(namespace));
        let waiters = queue.into_iter().flatten();
        waiters
            .map(|(place, waiter)| (*place, waiter.name.clone(), waiter.bytes))
            .collect()
    }
}
