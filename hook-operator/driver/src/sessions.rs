//! Decides which runs have a session: every run without a verdict, as far as there is room for its spec, and no other.
//! Finished runs cost nothing.
//!
//! Contract with the shell for a run without room: [`Change::Wait`] asks to record that it waits, and nothing but its
//! key, its UID and its size stays in memory. When there is room, it is taken, and [`Change::Read`] asks to read the
//! run. The answer comes as [`Event::Read`]. A read that fails is repeated until it has an answer, or until
//! [`Change::Close`] ends it.
//!
//! | module | job |
//! | --- | --- |
//! | `room` | room for specs, and the order in which runs get it |

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use shared_api::reason::HookRunReason;
use shared_api::{HookRun, HookRunSpec, Phase};

use self::room::{Need, Place, Purpose, Room};
use crate::spec_budget::{Shortage, SpecLimits};
use crate::{End, NamespacedName, Version};

mod room;

/// Watch event of HookRuns, or the answer to a read.
#[derive(Debug)]
pub enum Event {
    /// Start of a list.
    Init,
    /// Run in the list.
    InitApply(Arc<HookRun>),
    /// Run that cannot be parsed, in the list or after a change.
    Unreadable(NamespacedName),
    /// End of a list.
    InitDone,
    /// Created or changed run.
    Apply(Arc<HookRun>),
    /// Deleted run.
    Delete(NamespacedName),
    /// Answer to [`Change::Read`].
    Read(NamespacedName, SessionId, ReadRun),
}

/// Run that has waited, as the API server shows it now.
#[derive(Debug)]
pub enum ReadRun {
    /// It exists, or another one of its name.
    Found(Arc<HookRun>),
    /// It cannot be parsed, as the watch will show.
    Unreadable,
    /// It is gone.
    Gone,
}

/// Identifies a session, or the read before it: a run may get a second one.
pub type SessionId = u64;

/// Change to a session.
#[derive(Debug)]
pub enum Change {
    /// Open a session for a run. Ends the recording of its wait.
    Open(NamespacedName, SessionId, Arc<HookRun>),
    /// Pass the new state to the session.
    Update(NamespacedName, Arc<HookRun>),
    /// End the session and cancel its calls, or end the read and the recording of a wait.
    Close(NamespacedName),
    /// Record that a run waits for memory.
    Wait(NamespacedName, WaitingRun),
    /// Read a run for which there is room now. Ends the recording of its wait.
    Read(NamespacedName, SessionId),
}

/// Facts for recording that a run waits for memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRun {
    /// UID of the run.
    pub uid: Option<String>,
    /// Resource version of the state that is shown.
    pub resource_version: Option<String>,
    /// Phase that is recorded.
    pub phase: Phase,
    /// Reason why it waits.
    pub why: Shortage,
}

/// State of a run's session.
#[derive(Debug)]
enum SessionEntry {
    /// The session is open; holds the last state from the watch, and the room of its spec.
    Open(SessionId, Arc<HookRun>, Need),
    /// Waits for room.
    Waiting {
        /// UID of the run.
        uid: String,
        /// Room that it needs.
        need: Need,
        /// Place in the order of arrival.
        place: Place,
    },
    /// Has room, and is being read.
    Reading {
        /// Identifies the read.
        id: SessionId,
        /// UID of the run.
        uid: String,
        /// Room that is taken for it.
        need: Need,
        /// Place in the order of arrival, where it waits again if it has grown.
        place: Place,
    },
    /// The session has ended, and the watch has not shown that yet. An older state that arrives now must not
    /// reopen the run: it would repeat a measurement that is already recorded.
    Ended {
        /// UID of the run.
        uid: String,
        /// End of the session.
        end: End,
    },
}

/// Sessions of one process.
#[derive(Debug)]
pub struct Sessions {
    entries: HashMap<NamespacedName, SessionEntry>,
    /// Runs seen so far in the list that is being read.
    listed: Option<HashSet<NamespacedName>>,
    opened: SessionId,
    room: Room,
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new(SpecLimits::default())
    }
}

impl Sessions {
    /// Creates sessions whose specs together stay within these limits.
    pub fn new(limits: SpecLimits) -> Self {
        Self {
            entries: HashMap::new(),
            listed: None,
            opened: 0,
            room: Room::new(limits),
        }
    }

    /// Returns the runs seen so far in the list that is being read, if one is.
    pub fn listed(&self) -> Option<&HashSet<NamespacedName>> {
        self.listed.as_ref()
    }

    /// Number of runs that wait for memory.
    pub fn waiting(&self) -> usize {
        self.room.waiting()
    }

    /// Applies an event.
    pub fn observe(&mut self, event: Event) -> Vec<Change> {
        let mut changes = self.apply_event(event);
        changes.extend(self.read_next());
        changes
    }

    fn apply_event(&mut self, event: Event) -> Vec<Change> {
        match event {
            Event::Init => {
                self.listed = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(run) | Event::Apply(run) => {
                let key = key_of(&run);
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                self.apply(key, run)
            }
            Event::Unreadable(key) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                self.close(key)
            }
            Event::Delete(key) => self.close(key),
            // A run that was deleted while the watch was interrupted is missing from the list.
            Event::InitDone => {
                let Some(listed) = self.listed.take() else {
                    return Vec::new();
                };
                let gone = self.entries.keys().filter(|key| !listed.contains(*key));
                let gone: BTreeSet<NamespacedName> = gone.cloned().collect();
                gone.into_iter().flat_map(|key| self.close(key)).collect()
            }
            Event::Read(key, id, run) => self.read(key, id, run),
        }
    }

    fn apply(&mut self, key: NamespacedName, run: Arc<HookRun>) -> Vec<Change> {
        if run.metadata.deletion_timestamp.is_some() {
            return self.close(key);
        }
        match self.entries.get(&key) {
            Some(SessionEntry::Open(_, latest, held)) if uid_of(latest) == uid_of(&run) => {
                // A direct read may have shown a newer state than the watch has reached.
                if Version::of(&run).is_older_than(Version::of(latest)) {
                    return Vec::new();
                }
                let held = *held;
                self.update(key, run, held)
            }
            Some(SessionEntry::Ended { uid, end }) if uid == uid_of(&run) && end.is_stale(&run) => Vec::new(),
            _ if is_over(&run) => self.close(key),
            Some(SessionEntry::Waiting { place, .. }) => {
                let place = *place;
                self.forget(&key);
                self.enter(key, run, place).into_iter().collect()
            }
            // It is shown meanwhile, so it need not be read.
            Some(SessionEntry::Reading { need, place, .. }) => {
                let (held, place) = (*need, *place);
                let mut changes = vec![Change::Close(key.clone())];
                changes.extend(self.enter_with_room(key, run, held, place));
                changes
            }
            Some(SessionEntry::Open(..) | SessionEntry::Ended { .. }) | None => self.replace(key, run),
        }
    }

    /// Passes the new state to an open session. If its spec has grown, and there is no room, the session ends, and the
    /// run waits: what it has measured is recorded, or is measured again.
    fn update(&mut self, key: NamespacedName, run: Arc<HookRun>, held: Need) -> Vec<Change> {
        let Some(need) = self.room.resize(&key.0, held, Need::of(&run)) else {
            return self.replace(key, run);
        };
        let run = match need.purpose {
            Purpose::Measure | Purpose::Terminate => run,
            Purpose::CleanUp => without_spec(&run),
        };
        if let Some(SessionEntry::Open(_, latest, held)) = self.entries.get_mut(&key) {
            latest.clone_from(&run);
            *held = need;
        }
        vec![Change::Update(key, run)]
    }

    /// Closes what there is, and lets the run enter as one that arrives now.
    fn replace(&mut self, key: NamespacedName, run: Arc<HookRun>) -> Vec<Change> {
        let mut changes = self.close(key.clone());
        let place = self.room.next_place();
        changes.extend(self.enter(key, run, place));
        changes
    }

    /// Opens a session for a run that has room. If it has grown meanwhile, and there is not enough, it waits again.
    fn enter_with_room(
        &mut self,
        key: NamespacedName,
        run: Arc<HookRun>,
        held: Need,
        place: Place,
    ) -> Option<Change> {
        let Some(need) = self.room.resize(&key.0, held, Need::of(&run)) else {
            self.forget(&key);
            return self.enter(key, run, place);
        };
        Some(self.open(key, run, need))
    }

    /// Opens a session for a run if there is room. Otherwise the run waits at this place, and the shell records that,
    /// unless the status says it already.
    fn enter(&mut self, key: NamespacedName, run: Arc<HookRun>, place: Place) -> Option<Change> {
        let need = Need::of(&run);
        if self.room.fits(&key.0, need, place) {
            self.room.take(&key.0, need);
            return Some(self.open(key, run, need));
        }
        let change = match need.purpose {
            Purpose::Measure if !says_no_room(&run) => {
                let waiting = WaitingRun {
                    uid: run.metadata.uid.clone(),
                    resource_version: run.metadata.resource_version.clone(),
                    phase: run.status.as_ref().map_or(Phase::Unset, |status| status.phase),
                    why: self.room.shortage(&key.0, need, place),
                };
                Some(Change::Wait(key.clone(), waiting))
            }
            // A run that is terminated waits until others are, which takes no longer than to record this.
            Purpose::Measure | Purpose::Terminate | Purpose::CleanUp => None,
        };
        self.room.enqueue(&key, need, place);
        let uid = uid_of(&run).to_owned();
        self.entries
            .insert(key, SessionEntry::Waiting { uid, need, place });
        change
    }

    fn open(&mut self, key: NamespacedName, run: Arc<HookRun>, need: Need) -> Change {
        let run = match need.purpose {
            Purpose::Measure | Purpose::Terminate => run,
            Purpose::CleanUp => without_results(&run),
        };
        self.opened += 1;
        self.entries
            .insert(key.clone(), SessionEntry::Open(self.opened, run.clone(), need));
        Change::Open(key, self.opened, run)
    }

    fn close(&mut self, key: NamespacedName) -> Vec<Change> {
        if self.forget(&key) {
            vec![Change::Close(key)]
        } else {
            Vec::new()
        }
    }

    /// Removes an entry and returns its room. Returns whether the shell does something for it.
    fn forget(&mut self, key: &NamespacedName) -> bool {
        match self.entries.remove(key) {
            Some(SessionEntry::Open(_, _, need) | SessionEntry::Reading { need, .. }) => {
                self.room.give_back(&key.0, need);
                true
            }
            Some(SessionEntry::Waiting { need, place, .. }) => {
                self.room.dequeue(&key.0, need, place);
                true
            }
            Some(SessionEntry::Ended { .. }) | None => false,
        }
    }

    /// Takes the room that is free for waiting runs, which are then read.
    fn read_next(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for key in self.room.admit() {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            if let SessionEntry::Waiting { uid, need, place } = entry {
                self.opened += 1;
                *entry = SessionEntry::Reading {
                    id: self.opened,
                    uid: std::mem::take(uid),
                    need: *need,
                    place: *place,
                };
                changes.push(Change::Read(key, self.opened));
            }
        }
        changes
    }

    /// Handles the answer to a read, unless the watch has shown something meanwhile.
    fn read(&mut self, key: NamespacedName, id: SessionId, run: ReadRun) -> Vec<Change> {
        let (uid, held, place) = match self.entries.get(&key) {
            Some(SessionEntry::Reading {
                id: asked,
                uid,
                need,
                place,
            }) if *asked == id => (uid.clone(), *need, *place),
            _ => return Vec::new(),
        };
        let end = match run {
            ReadRun::Found(run) if uid_of(&run) != uid => Some(End::Gone),
            // The watch may still show states before the end.
            ReadRun::Found(run) if run.metadata.deletion_timestamp.is_some() || is_over(&run) => {
                Some(End::Concluded(Version::of(&run)))
            }
            ReadRun::Found(run) => {
                let entered = self.enter_with_room(key, run, held, place);
                return entered.into_iter().collect();
            }
            ReadRun::Unreadable => None,
            ReadRun::Gone => Some(End::Gone),
        };
        self.forget(&key);
        if let Some(end) = end {
            self.entries.insert(key, SessionEntry::Ended { uid, end });
        }
        Vec::new()
    }

    /// Handles the end of a session. Remembers it until the watch shows it.
    pub fn ended(&mut self, key: NamespacedName, id: SessionId, end: End) -> Vec<Change> {
        let latest = match self.entries.get(&key) {
            Some(SessionEntry::Open(taken, latest, _)) if *taken == id => latest.clone(),
            _ => return Vec::new(),
        };
        self.forget(&key);
        if end.is_stale(&latest) {
            let uid = uid_of(&latest).to_owned();
            self.entries.insert(key, SessionEntry::Ended { uid, end });
            return self.read_next();
        }
        // The watch has already shown the end, and no session has seen what came after it.
        let mut changes = Vec::new();
        if end.is_older_than(&latest) {
            changes = self.apply(key, latest);
        }
        changes.extend(self.read_next());
        changes
    }

    /// Opens a new session for a run whose session panicked.
    pub fn broken(&mut self, key: &NamespacedName, id: SessionId) -> Option<Change> {
        match self.entries.get(key) {
            Some(SessionEntry::Open(taken, latest, held)) if *taken == id => {
                let (latest, held) = (latest.clone(), *held);
                Some(self.open(key.clone(), latest, held))
            }
            _ => None,
        }
    }
}

fn key_of(run: &HookRun) -> NamespacedName {
    let metadata = &run.metadata;
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

fn uid_of(run: &HookRun) -> &str {
    run.metadata.uid.as_deref().unwrap_or_default()
}

/// Returns whether nothing is left to do for a run.
fn is_over(run: &HookRun) -> bool {
    let ended = run.status.as_ref().is_some_and(|status| status.phase.is_final());
    ended && run.spec.ttl_seconds_after_finished.is_none()
}

/// Returns whether the status already says that the run waits for memory. The numbers in the message may be old.
fn says_no_room(run: &HookRun) -> bool {
    let reason = run.status.as_ref().and_then(|status| status.reason.as_deref());
    reason == Some(HookRunReason::NoRoomForSpec.as_str())
}

/// Returns a finished run without what only measurements need.
fn without_spec(run: &HookRun) -> Arc<HookRun> {
    let spec = HookRunSpec {
        ttl_seconds_after_finished: run.spec.ttl_seconds_after_finished,
        ..HookRunSpec::default()
    };
    let mut finished = HookRun::new("", spec);
    finished.metadata = run.metadata.clone();
    finished.status.clone_from(&run.status);
    Arc::new(finished)
}

/// Returns a finished run without what only measurements, and the session that recorded the verdict, need.
fn without_results(run: &HookRun) -> Arc<HookRun> {
    let mut finished = Arc::unwrap_or_clone(without_spec(run));
    if let Some(status) = &mut finished.status {
        status.metric_results.clear();
    }
    Arc::new(finished)
}

#[cfg(test)]
mod tests;
