//! Objects of one kind, and the history that watches deliver.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::objects::Object;

/// Number of changes that a watch may lag behind before it expires.
const REMEMBERED: usize = 60;

/// Item of a watch.
#[derive(Debug)]
pub enum WatchEvent<T> {
    /// All objects at one moment.
    List(Vec<Rc<T>>),
    /// Current state of an object.
    Apply(Rc<T>),
    /// Last state of a deleted object.
    Delete(Rc<T>),
}

impl<T> Clone for WatchEvent<T> {
    fn clone(&self) -> Self {
        match self {
            Self::List(all) => Self::List(all.clone()),
            Self::Apply(object) => Self::Apply(object.clone()),
            Self::Delete(object) => Self::Delete(object.clone()),
        }
    }
}

/// Reader of one kind.
#[derive(Debug, Default)]
pub enum Watch<T> {
    /// Has not requested the list yet.
    #[default]
    Closed,
    /// Has a list in flight.
    Listed(Vec<Rc<T>>, u64),
    /// Streams the changes from here on.
    Streaming(u64),
}

/// Objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    live: BTreeMap<String, Rc<T>>,
    log: VecDeque<WatchEvent<T>>,
    /// Number of the oldest remembered change.
    first: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            live: BTreeMap::new(),
            log: VecDeque::new(),
            first: 0,
        }
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            live: self.live.clone(),
            log: self.log.clone(),
            first: self.first,
        }
    }
}

impl<T: Object> Table<T> {
    /// Drops the history: no watch goes on from an earlier change.
    pub fn forget_changes(&mut self) {
        self.first = self.end();
        self.log.clear();
    }

    pub fn get(&self, name: &str) -> Option<&Rc<T>> {
        self.live.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.live.values()
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Returns an object by position, for random choices.
    pub fn nth(&self, at: usize) -> Option<&Rc<T>> {
        self.live.values().nth(at % self.live.len().max(1))
    }

    pub fn put(&mut self, object: Rc<T>) {
        self.live.insert(object.id().name.clone(), object.clone());
        self.note(WatchEvent::Apply(object));
    }

    /// Removes an object. `last` is its state in the delete event, with its own version.
    pub fn remove(&mut self, last: Rc<T>) {
        self.live.remove(&last.id().name);
        self.note(WatchEvent::Delete(last));
    }

    fn note(&mut self, news: WatchEvent<T>) {
        self.log.push_back(news);
        if self.log.len() > REMEMBERED {
            self.log.pop_front();
            self.first += 1;
        }
    }

    fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Whether this watch has something left to deliver.
    pub fn has_events(&self, watch: &Watch<T>) -> bool {
        // After a restore, a watch may be ahead of the history.
        !matches!(watch, Watch::Streaming(at) if *at >= self.end())
    }

    /// Returns the next item of a watch. A closed or expired watch lists first and delivers the list the next
    /// time. Also returns whether it had expired.
    pub fn next(&self, watch: &mut Watch<T>) -> (Option<WatchEvent<T>>, bool) {
        match std::mem::take(watch) {
            Watch::Closed => {
                *watch = Watch::Listed(self.live.values().cloned().collect(), self.end());
                (None, false)
            }
            Watch::Listed(all, at) => {
                *watch = Watch::Streaming(at);
                (Some(WatchEvent::List(all)), false)
            }
            Watch::Streaming(at) if at < self.first => (None, true),
            Watch::Streaming(at) => {
                let index = usize::try_from(at - self.first).unwrap();
                let news = self.log.get(index).cloned();
                *watch = Watch::Streaming(at + u64::from(news.is_some()));
                (news, false)
            }
        }
    }
}
