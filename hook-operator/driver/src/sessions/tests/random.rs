//! Tests with random events, against an API server of a few lines. However the watch, the reads and the sessions take
//! turns, no byte is lost, no namespace gets more than its share, and every run gets its session.

use std::collections::VecDeque;

use fastrand::Rng;
use shared_api::HookRunStatus;

use super::*;

const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 5] = ["1", "2", "3", "4", "5"];

/// News of the watch.
enum News {
    Apply(Arc<HookRun>),
    Delete(NamespacedName),
}

/// An API server, and a shell around the sessions.
struct World {
    rng: Rng,
    sessions: Sessions,
    stored: BTreeMap<NamespacedName, HookRun>,
    version: u32,
    news: VecDeque<News>,
    open: BTreeMap<NamespacedName, (SessionId, Arc<HookRun>)>,
    reads: BTreeMap<NamespacedName, SessionId>,
    /// Answers that come too late, or twice.
    late: Vec<(NamespacedName, SessionId)>,
    waited: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            sessions: Sessions::new(LIMITS),
            stored: BTreeMap::new(),
            version: 0,
            news: VecDeque::new(),
            open: BTreeMap::new(),
            reads: BTreeMap::new(),
            late: Vec::new(),
            waited: 0,
        }
    }

    fn any_key(&mut self) -> NamespacedName {
        let namespace = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        let name = NAMES[self.rng.usize(..NAMES.len())];
        (namespace.to_owned(), name.to_owned())
    }

    fn any_open(&mut self) -> Option<NamespacedName> {
        let keys: Vec<&NamespacedName> = self.open.keys().collect();
        (!keys.is_empty()).then(|| keys[self.rng.usize(..keys.len())].clone())
    }

    /// Stores a run; the watch will show it.
    fn store(&mut self, key: NamespacedName, mut run: HookRun) {
        self.version += 1;
        run.metadata.resource_version = Some(self.version.to_string());
        self.news.push_back(News::Apply(Arc::new(run.clone())));
        self.stored.insert(key, run);
    }

    fn remove(&mut self, key: &NamespacedName) {
        if self.stored.remove(key).is_some() {
            self.news.push_back(News::Delete(key.clone()));
        }
    }

    /// Creates or edits a run.
    fn edit(&mut self) {
        let key = self.any_key();
        let bytes = self.rng.usize(400..5000);
        let known = self.stored.get(&key).cloned();
        let mut run = known.unwrap_or_else(|| {
            let mut run = sized(&key.0, &key.1, 0, bytes);
            run.metadata.uid = Some(format!("{}-{}", key.1, self.version));
            run.spec.ttl_seconds_after_finished = self.rng.bool().then_some(1);
            run
        });
        run.spec.terminate = (self.rng.u8(..6) == 0).then_some(true);
        fill(&mut run, bytes);
        self.store(key, run);
    }

    fn follow(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Open(key, id, run) => {
                    self.reads.remove(&key);
                    self.open.insert(key, (id, run));
                }
                Change::Update(key, run) => {
                    let (_, latest) = self.open.get_mut(&key).unwrap();
                    assert_eq!(latest.metadata.uid, run.metadata.uid);
                    *latest = run;
                }
                Change::Close(key) => {
                    let ended = self.open.remove(&key).is_some();
                    let read = self.reads.remove(&key);
                    assert!(!ended || read.is_none());
                    self.late.extend(read.map(|id| (key, id)));
                }
                Change::Wait(key, _) => {
                    self.waited += 1;
                    assert!(!self.open.contains_key(&key) && !self.reads.contains_key(&key));
                }
                Change::Read(key, id) => {
                    assert!(!self.open.contains_key(&key));
                    assert!(self.reads.insert(key, id).is_none());
                }
            }
        }
        self.check();
    }

    fn check(&self) {
        check(&self.sessions);
        let entries = self.sessions.entries.iter();
        let open = entries.filter(|(_, entry)| matches!(entry, SessionEntry::Open(..)));
        let open: BTreeSet<&NamespacedName> = open.map(|(key, _)| key).collect();
        assert!(open.into_iter().eq(self.open.keys()));
        for namespace in NAMESPACES {
            for (purpose, most) in [
                (Purpose::Measure, LIMITS.of_namespace),
                (Purpose::Terminate, LIMITS.reserve),
            ] {
                let held = self.sessions.room.held_by(purpose, namespace);
                assert!(
                    held <= most || self.has_one(purpose, namespace),
                    "{namespace} {held}"
                );
            }
        }
    }

    /// Returns whether a namespace holds the room of one run only.
    fn has_one(&self, purpose: Purpose, namespace: &str) -> bool {
        let holds = |entry: &SessionEntry| match entry {
            SessionEntry::Open(_, _, need) | SessionEntry::Reading { need, .. } => need.purpose == purpose,
            SessionEntry::Waiting { .. } | SessionEntry::Ended { .. } => false,
        };
        let of_namespace = self.sessions.entries.iter().filter(|(key, _)| key.0 == namespace);
        of_namespace.filter(|(_, entry)| holds(entry)).count() <= 1
    }

    fn observe(&mut self, event: Event) {
        let changes = self.sessions.observe(event);
        self.follow(changes);
    }

    /// Delivers the next news of the watch. Returns whether there are any.
    fn deliver(&mut self) -> bool {
        let Some(news) = self.news.pop_front() else {
            return false;
        };
        self.observe(match news {
            News::Apply(run) => Event::Apply(run),
            News::Delete(key) => Event::Delete(key),
        });
        true
    }

    /// Starts the watch again, with a list.
    fn list(&mut self) {
        self.news.clear();
        self.observe(Event::Init);
        for run in self.stored.values().cloned().collect::<Vec<_>>() {
            self.observe(Event::InitApply(Arc::new(run)));
        }
        self.observe(Event::InitDone);
    }

    /// Answers a read. Returns whether there is one.
    fn answer(&mut self) -> bool {
        let Some((key, id)) = self.reads.pop_first() else {
            return false;
        };
        let run = match self.stored.get(&key) {
            Some(run) => ReadRun::Found(Arc::new(run.clone())),
            None => ReadRun::Gone,
        };
        self.late.push((key.clone(), id));
        self.observe(Event::Read(key, id, run));
        true
    }

    fn answer_late(&mut self) {
        if let Some((key, id)) = self.late.pop() {
            let run = if self.rng.bool() {
                ReadRun::Gone
            } else {
                ReadRun::Found(Arc::new(sized(&key.0, &key.1, 0, 300)))
            };
            self.observe(Event::Read(key, id, run));
        }
    }

    /// Lets an open session do its next step: record the verdict, or delete the run.
    fn step(&mut self, key: &NamespacedName) {
        let (id, known) = self.open[key].clone();
        let same = |run: &&HookRun| run.metadata.uid == known.metadata.uid;
        let end = match self.stored.get(key).filter(same).cloned() {
            None => End::Gone,
            Some(run) if run.status.is_some() => {
                self.remove(key);
                End::Gone
            }
            Some(mut run) => {
                run.status = Some(HookRunStatus {
                    phase: Phase::Successful,
                    ..HookRunStatus::default()
                });
                self.store(key.clone(), run.clone());
                if run.spec.ttl_seconds_after_finished.is_some() {
                    return;
                }
                End::Concluded(Version::of(&self.stored[key]))
            }
        };
        self.open.remove(key);
        let changes = self.sessions.ended(key.clone(), id, end);
        self.follow(changes);
    }

    fn act(&mut self) {
        match self.rng.u8(..16) {
            0..=4 => self.edit(),
            5 => {
                let key = self.any_key();
                self.remove(&key);
            }
            6..=9 => {
                self.deliver();
            }
            10..=11 => {
                self.answer();
            }
            12 => self.answer_late(),
            13..=14 => {
                if let Some(key) = self.any_open() {
                    self.step(&key);
                }
            }
            _ => match self.any_open() {
                Some(key) if self.rng.bool() => {
                    let (id, _) = self.open[&key];
                    let again = self.sessions.broken(&key, id);
                    self.follow(again.into_iter().collect());
                }
                Some(_) | None => self.list(),
            },
        }
    }

    /// Lets everything come to its end, while nobody creates or edits runs.
    fn settle(&mut self) {
        loop {
            let is_busy = self.deliver() | self.answer();
            match self.any_open() {
                Some(key) => self.step(&key),
                None if !is_busy => return,
                None => {}
            }
        }
    }
}

#[test]
fn no_byte_is_lost_and_every_run_gets_its_session() {
    let mut waited = 0;
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..200 {
            world.act();
        }
        world.settle();
        waited += world.waited;
        let without: Vec<&HookRun> = world.stored.values().filter(|run| run.status.is_none()).collect();
        assert!(without.is_empty(), "seed {seed}: {without:?}");
        assert_eq!(world.sessions.waiting(), 0, "seed {seed}");
        for purpose in [Purpose::Measure, Purpose::Terminate] {
            assert_eq!(world.sessions.room.held(purpose), 0, "seed {seed}");
        }
    }
    assert!(waited > 1000, "{waited}");
}
