//! The objects of one kind, and what watches show of their past.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::objects::Object;

/// How many changes a watch may lag behind before it is told that it is too old.
const REMEMBERED: usize = 60;

/// What a watch shows.
#[derive(Debug)]
pub enum News<T> {
    /// Everything there was at one moment.
    List(Vec<Rc<T>>),
    /// It is so now.
    Apply(Rc<T>),
    /// It was so at last, and is gone.
    Delete(Rc<T>),
}

impl<T> Clone for News<T> {
    fn clone(&self) -> Self {
        match self {
            Self::List(all) => Self::List(all.clone()),
            Self::Apply(object) => Self::Apply(object.clone()),
            Self::Delete(object) => Self::Delete(object.clone()),
        }
    }
}

/// A reader of one kind.
#[derive(Debug, Default)]
pub enum Watch<T> {
    /// The list was not asked for yet.
    #[default]
    Closed,
    /// The list was answered and is on its way.
    Listed(Vec<Rc<T>>, u64),
    /// Changes from here on.
    Streaming(u64),
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    live: BTreeMap<String, Rc<T>>,
    log: VecDeque<News<T>>,
    /// The number of the first change that is still known.
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

impl<T: Object> Table<T> {
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

    /// The object at some place, for choices.
    pub fn nth(&self, at: usize) -> Option<&Rc<T>> {
        self.live.values().nth(at % self.live.len().max(1))
    }

    pub fn put(&mut self, object: Rc<T>) {
        self.live.insert(object.id().name.clone(), object.clone());
        self.note(News::Apply(object));
    }

    /// `last` is the object as its end is told: with a version of its own.
    pub fn remove(&mut self, last: Rc<T>) {
        self.live.remove(&last.id().name);
        self.note(News::Delete(last));
    }

    fn note(&mut self, news: News<T>) {
        self.log.push_back(news);
        if self.log.len() > REMEMBERED {
            self.log.pop_front();
            self.first += 1;
        }
    }

    fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Whether there is something that this watch has not shown.
    pub fn has_news(&self, watch: &Watch<T>) -> bool {
        !matches!(watch, Watch::Streaming(at) if *at == self.end())
    }

    /// The next thing that a watch shows. One that was closed or is too old lists anew first, and shows that the time
    /// after. Says also whether it was too old.
    pub fn next(&self, watch: &mut Watch<T>) -> (Option<News<T>>, bool) {
        match std::mem::take(watch) {
            Watch::Closed => {
                *watch = Watch::Listed(self.live.values().cloned().collect(), self.end());
                (None, false)
            }
            Watch::Listed(all, at) => {
                *watch = Watch::Streaming(at);
                (Some(News::List(all)), false)
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
