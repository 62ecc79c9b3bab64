//! Cache of one kind. Each entry is the newer of the watch's version and this operator's own write.
//!
//! The result of a write counts at once: the next decision does not wait for the watch, and an older event
//! that arrives later is ignored. An entry that no watch event has confirmed is an expectation; see
//! [`crate::expectations`].
//!
//! Versions start over when etcd is restored from a backup. So a list replaces everything that the watch has
//! confirmed, also by lower versions, and what a list contradicts is read directly; the answer to a direct
//! read replaces everything.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::NamespacedName;

/// Properties that a store needs from its objects.
pub trait StoredObject {
    /// UID.
    fn uid(&self) -> &str;
    /// Resource version.
    fn version(&self) -> &str;
    /// UID of the controller.
    fn owner(&self) -> Option<&str>;
}

/// Objects of one kind.
#[derive(Debug)]
pub struct Store<T> {
    held: HashMap<NamespacedName, Entry<T>>,
    by_owner: HashMap<String, BTreeSet<NamespacedName>>,
    /// Keys of objects without a controller, by namespace.
    orphans: HashMap<String, BTreeSet<NamespacedName>>,
    by_namespace: HashMap<String, usize>,
    /// Unconfirmed keys, oldest first: the oldest is looked up on every event.
    unconfirmed: BTreeSet<(Duration, NamespacedName)>,
    /// UIDs of objects that are certainly gone: an older event must not bring them back.
    gone: HashSet<String>,
    /// Objects that the watch recently reported as deleted, or that were missing in a list.
    ended: RecentlyDeleted,
    /// Keys in the list that is being read.
    listed: Option<HashSet<NamespacedName>>,
    /// Listed objects that were gone before: the list is outdated, or etcd was restored. The time is that of
    /// the list.
    doubted: HashMap<NamespacedName, Duration>,
    synced: bool,
}

/// Cached UID and version of a key at some time.
pub type SeenVersion = Option<(String, String)>;

#[derive(Debug)]
struct Entry<T> {
    value: T,
    /// Time since which the object waits for the watch to show it.
    unconfirmed: Option<Duration>,
    /// Older version that the watch has shown since.
    shown: Option<String>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            by_owner: HashMap::new(),
            orphans: HashMap::new(),
            by_namespace: HashMap::new(),
            unconfirmed: BTreeSet::new(),
            gone: HashSet::new(),
            ended: RecentlyDeleted::default(),
            listed: None,
            doubted: HashMap::new(),
            synced: false,
        }
    }
}

impl<T: StoredObject> Store<T> {
    /// Whether a list has been read to its end.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Returns the object of this key.
    pub fn get(&self, key: &NamespacedName) -> Option<&T> {
        self.held.get(key).map(|held| &held.value)
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (&NamespacedName, &T)> {
        self.held.iter().map(|(key, held)| (key, &held.value))
    }

    /// Objects whose controller has this UID, ordered by name.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &T> {
        let keys = self.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.get(key))
    }

    /// Objects of a namespace without a controller.
    pub fn orphans_in(&self, namespace: &str) -> impl Iterator<Item = &T> {
        self.orphan_keys_in(namespace).filter_map(|key| self.get(key))
    }

    /// Keys of objects of a namespace without a controller.
    pub fn orphan_keys_in(&self, namespace: &str) -> impl Iterator<Item = &NamespacedName> {
        self.orphans.get(namespace).into_iter().flatten()
    }

    /// Number of objects in a namespace.
    pub fn count_in(&self, namespace: &str) -> usize {
        self.by_namespace.get(namespace).copied().unwrap_or(0)
    }

    /// Starts a list.
    pub fn begin_list(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// Ends a list. Returns the objects that it lacks: they were deleted while the watch was interrupted.
    pub fn end_list(&mut self, now: Duration) -> Vec<(NamespacedName, T)> {
        self.synced = true;
        let Some(listed) = self.listed.take() else {
            return Vec::new();
        };
        self.gone.clear();
        self.doubted.retain(|key, _| listed.contains(key));
        self.doubted.values_mut().for_each(|since| *since = now);
        let absent = |(key, held): (&NamespacedName, &Entry<T>)| {
            // A recent write may be newer than the list.
            (!listed.contains(key) && held.unconfirmed.is_none()).then(|| key.clone())
        };
        let absent: Vec<NamespacedName> = self.held.iter().filter_map(absent).collect();
        let mut gone = Vec::new();
        for key in absent {
            if let Some(value) = self.take(&key) {
                self.ended.insert(value.uid(), now);
                gone.push((key, value));
            }
        }
        gone
    }

    /// Stores an object from the watch unless it is outdated. Returns the previous object, and whether the
    /// new one was stored.
    pub fn observe(&mut self, key: NamespacedName, value: T) -> (Option<T>, bool) {
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        let lists = self.listed.is_some();
        if self.gone.contains(value.uid()) {
            if lists {
                self.doubted.insert(key, Duration::MAX);
            }
            return (None, false);
        }
        self.ended.remove(value.uid());
        if let Some(held) = self.held.get_mut(&key)
            && is_older(value.version(), held.value.version())
        {
            let same = held.value.uid() == value.uid();
            if held.unconfirmed.is_some() {
                // The watch may still have to show how another object of this name ended, and then the one
                // that a write or a direct read returned.
                held.shown = same.then(|| value.version().to_owned());
                return (None, false);
            }
            if same && !lists {
                return (None, false);
            }
        }
        (self.put(key, value, None), true)
    }

    /// Applies a deletion from the watch. Returns the object, if it was cached.
    pub fn forget(&mut self, key: &NamespacedName, uid: &str, now: Duration) -> Option<T> {
        self.gone.remove(uid);
        self.doubted.remove(key);
        self.ended.insert(uid, now);
        if self.get(key).is_some_and(|held| held.uid() != uid) {
            // Another object already has its name.
            return None;
        }
        self.take(key)
    }

    /// Stores an object that a write or a direct read returned, unless the cached one is as new or the object
    /// is gone.
    pub fn apply_write(&mut self, key: NamespacedName, value: T, now: Duration) {
        let newer = self
            .get(&key)
            .is_none_or(|held| held.uid() != value.uid() || is_older(held.version(), value.version()));
        let ended = self.gone.contains(value.uid()) || self.ended.contains(value.uid());
        if newer && !ended {
            self.put(key, value, Some(now));
        }
    }

    /// Stores an object that a direct read returned. The caller has checked that the cached version has not
    /// changed since the request, so the answer is newer than everything cached, whatever its version.
    pub fn apply_read(&mut self, key: NamespacedName, value: T, now: Duration) {
        self.gone.remove(value.uid());
        self.ended.remove(value.uid());
        let held = self.held.get(&key);
        if held.is_some_and(|held| held.value.uid() == value.uid() && held.value.version() == value.version())
        {
            return;
        }
        let shown = held.is_some_and(|held| held.shown.as_deref() == Some(value.version()));
        self.put(key, value, (!shown).then_some(now));
    }

    fn put(&mut self, key: NamespacedName, value: T, unconfirmed: Option<Duration>) -> Option<T> {
        let before = self.take(&key);
        match value.owner() {
            Some(owner) => self
                .by_owner
                .entry(owner.to_owned())
                .or_default()
                .insert(key.clone()),
            None => self.orphans.entry(key.0.clone()).or_default().insert(key.clone()),
        };
        *self.by_namespace.entry(key.0.clone()).or_default() += 1;
        self.unconfirmed
            .extend(unconfirmed.map(|since| (since, key.clone())));
        self.doubted.remove(&key);
        let entry = Entry {
            value,
            unconfirmed,
            shown: None,
        };
        self.held.insert(key, entry);
        before
    }

    fn take(&mut self, key: &NamespacedName) -> Option<T> {
        let held = self.held.remove(key)?;
        if let Some(since) = held.unconfirmed {
            self.unconfirmed.remove(&(since, key.clone()));
        }
        if let Some(count) = self.by_namespace.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.by_namespace.remove(&key.0);
            }
        }
        let (index, at) = match held.value.owner() {
            Some(owner) => (&mut self.by_owner, owner),
            None => (&mut self.orphans, key.0.as_str()),
        };
        if let Some(keys) = index.get_mut(at) {
            keys.remove(key);
            if keys.is_empty() {
                index.remove(at);
            }
        }
        Some(held.value)
    }
}

/// Operations that are the same for every kind.
pub trait ObjectStore {
    /// Cached version of a key, for [`ObjectStore::is_still`].
    fn seen_version(&self, key: &NamespacedName) -> SeenVersion;

    /// Whether the cached version of a key is still the same. Otherwise the answer to a direct read is
    /// worthless: it may be older, and could revive a deleted object or remove a new one for good.
    fn is_still(&self, key: &NamespacedName, seen: &SeenVersion) -> bool {
        self.seen_version(key) == *seen
    }

    /// Removes the object of this UID after a write or a direct read showed that it is gone.
    fn removed(&mut self, key: &NamespacedName, uid: &str);

    /// Removes the object of this key after a direct read did not find it.
    fn absent(&mut self, key: &NamespacedName) {
        if let Some((uid, _)) = self.seen_version(key) {
            self.removed(key, &uid);
        }
    }

    /// Restarts the watch's deadline after a direct read. A list that is older than the read must not remove
    /// the object.
    fn restart_deadline(&mut self, key: &NamespacedName, now: Duration);

    /// Restarts the deadline after a direct read that failed.
    fn postpone(&mut self, key: &NamespacedName, now: Duration);

    /// Keys of objects that the watch has not shown within `after` of their write, and of objects that a list
    /// showed `after` ago although they were gone.
    fn overdue(&self, after: Duration, now: Duration) -> Vec<NamespacedName>;

    /// Time at which the next object is overdue.
    fn next_overdue(&self, after: Duration) -> Option<Duration>;
}

impl<T: StoredObject> ObjectStore for Store<T> {
    fn seen_version(&self, key: &NamespacedName) -> SeenVersion {
        let held = self.get(key)?;
        Some((held.uid().to_owned(), held.version().to_owned()))
    }

    fn removed(&mut self, key: &NamespacedName, uid: &str) {
        if self.get(key).is_some_and(|held| held.uid() == uid) {
            self.take(key);
            self.gone.insert(uid.to_owned());
        }
    }

    fn restart_deadline(&mut self, key: &NamespacedName, now: Duration) {
        self.doubted.remove(key);
        self.postpone(key, now);
    }

    fn postpone(&mut self, key: &NamespacedName, now: Duration) {
        if let Some(since) = self.doubted.get_mut(key) {
            *since = now;
        }
        if let Some(held) = self.held.get_mut(key)
            && let Some(since) = held.unconfirmed
        {
            held.unconfirmed = Some(now);
            self.unconfirmed.remove(&(since, key.clone()));
            self.unconfirmed.insert((now, key.clone()));
        }
    }

    fn overdue(&self, after: Duration, now: Duration) -> Vec<NamespacedName> {
        let late = self
            .unconfirmed
            .iter()
            .take_while(|(since, _)| *since + after <= now);
        let doubted = self
            .doubted
            .iter()
            .filter(|(_, since)| since.saturating_add(after) <= now);
        let doubted = doubted.map(|(key, _)| key.clone());
        late.map(|(_, key)| key.clone()).chain(doubted).collect()
    }

    fn next_overdue(&self, after: Duration) -> Option<Duration> {
        let unconfirmed = self.unconfirmed.first().map(|(since, _)| since);
        let next = unconfirmed.into_iter().chain(self.doubted.values()).min()?;
        next.checked_add(after)
    }
}

/// UIDs of recently deleted objects. The answer to a write may arrive after the watch has reported that the
/// object is gone, and must not bring it back.
#[derive(Debug, Default)]
struct RecentlyDeleted {
    in_order: VecDeque<(Duration, String)>,
    uids: HashMap<String, Duration>,
}

impl RecentlyDeleted {
    /// Must exceed `--api-timeout`, the longest time that an answer takes.
    const RETENTION: Duration = Duration::from_mins(5);

    fn insert(&mut self, uid: &str, now: Duration) {
        while let Some((since, _)) = self.in_order.front()
            && now.saturating_sub(*since) > Self::RETENTION
            && let Some((since, old)) = self.in_order.pop_front()
        {
            if self.uids.get(&old) == Some(&since) {
                self.uids.remove(&old);
            }
        }
        self.uids.insert(uid.to_owned(), now);
        self.in_order.push_back((now, uid.to_owned()));
    }

    /// Removes the UID of an object that exists after all, because the list was outdated.
    fn remove(&mut self, uid: &str) {
        self.uids.remove(uid);
    }

    fn contains(&self, uid: &str) -> bool {
        self.uids.contains_key(uid)
    }
}

/// Whether `version` precedes `than`. Versions are numbers in practice but not by contract; other values
/// count as newer.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
