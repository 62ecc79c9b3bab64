//! Decides which runs have a session: every run without a verdict and no other. Finished runs cost nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use shared_api::HookRun;

use crate::{End, NamespacedName};

/// Watch event of HookRuns.
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
}

/// Identifies a session: a run may get a second one.
pub type SessionId = u64;

/// Change to a session.
#[derive(Debug)]
pub enum Change {
    /// Open a session for a run.
    Open(NamespacedName, SessionId, Arc<HookRun>),
    /// Pass the new state to the session.
    Update(NamespacedName, Arc<HookRun>),
    /// End the session and cancel its calls.
    Close(NamespacedName),
}

/// State of a run's session.
#[derive(Debug)]
enum SessionEntry {
    /// The session is open; holds the last state from the watch.
    Open(SessionId, Arc<HookRun>),
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
#[derive(Debug, Default)]
pub struct Sessions {
    entries: HashMap<NamespacedName, SessionEntry>,
    /// Runs seen so far in the list that is being read.
    listed: Option<HashSet<NamespacedName>>,
    opened: SessionId,
}

impl Sessions {
    /// Returns the runs seen so far in the list that is being read, if one is.
    pub fn listed(&self) -> Option<&HashSet<NamespacedName>> {
        self.listed.as_ref()
    }

    /// Applies a watch event.
    pub fn observe(&mut self, event: Event) -> Vec<Change> {
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
        }
    }

    fn apply(&mut self, key: NamespacedName, run: Arc<HookRun>) -> Vec<Change> {
        if run.metadata.deletion_timestamp.is_some() {
            return self.close(key);
        }
        match self.entries.get_mut(&key) {
            Some(SessionEntry::Open(_, latest)) if uid_of(latest) == uid_of(&run) => {
                latest.clone_from(&run);
                vec![Change::Update(key, run)]
            }
            Some(SessionEntry::Ended { uid, end }) if uid == uid_of(&run) && end.is_stale(&run) => Vec::new(),
            _ if is_over(&run) => self.close(key),
            _ => {
                let mut changes = self.close(key.clone());
                changes.push(self.open(key, run));
                changes
            }
        }
    }

    fn open(&mut self, key: NamespacedName, run: Arc<HookRun>) -> Change {
        self.opened += 1;
        self.entries
            .insert(key.clone(), SessionEntry::Open(self.opened, run.clone()));
        Change::Open(key, self.opened, run)
    }

    fn close(&mut self, key: NamespacedName) -> Vec<Change> {
        match self.entries.remove(&key) {
            Some(SessionEntry::Open(..)) => vec![Change::Close(key)],
            Some(SessionEntry::Ended { .. }) | None => Vec::new(),
        }
    }

    /// Handles the end of a session. Remembers it until the watch shows it.
    pub fn ended(&mut self, key: NamespacedName, id: SessionId, end: End) -> Vec<Change> {
        let latest = match self.entries.get(&key) {
            Some(SessionEntry::Open(taken, latest)) if *taken == id => latest.clone(),
            _ => return Vec::new(),
        };
        if end.is_stale(&latest) {
            let uid = uid_of(&latest).to_owned();
            self.entries.insert(key, SessionEntry::Ended { uid, end });
            return Vec::new();
        }
        // The watch has already shown the end, and no session has seen what came after it.
        self.entries.remove(&key);
        if end.is_older_than(&latest) {
            self.apply(key, latest)
        } else {
            Vec::new()
        }
    }

    /// Opens a new session for a run whose session panicked.
    pub fn broken(&mut self, key: &NamespacedName, id: SessionId) -> Option<Change> {
        match self.entries.get(key) {
            Some(SessionEntry::Open(taken, latest)) if *taken == id => {
                let latest = latest.clone();
                Some(self.open(key.clone(), latest))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Version;

    fn run(uid: &str, version: u32, phase: &str) -> Arc<HookRun> {
        let run = json!({
            "apiVersion": "tkex.tencent.com/v1alpha1",
            "kind": "HookRun",
            "metadata": { "namespace": "games", "name": "run", "uid": uid, "resourceVersion": version.to_string() },
            "spec": { "metrics": [] },
            "status": { "phase": phase },
        });
        Arc::new(serde_json::from_value(run).unwrap())
    }

    fn key() -> NamespacedName {
        ("games".to_owned(), "run".to_owned())
    }

    /// Returns the changes in short form.
    fn words(changes: Vec<Change>) -> Vec<String> {
        let words = changes.into_iter().map(|change| match change {
            Change::Open(_, id, run) => format!("open {id} {}", uid_of(&run)),
            Change::Update(_, run) => format!("tell {}", uid_of(&run)),
            Change::Close(_) => "close".to_owned(),
        });
        words.collect()
    }

    fn concluded(version: u32) -> End {
        End::Concluded(Version::of(&run("", version, "Running")))
    }

    #[test]
    fn a_run_without_a_verdict_has_a_session_until_it_has_one() {
        let mut sessions = Sessions::default();
        let mut apply = |run| words(sessions.observe(Event::Apply(run)));
        assert_eq!(apply(run("a", 1, "Running")), ["open 1 a"]);
        assert_eq!(apply(run("a", 2, "Running")), ["tell a"]);
        assert_eq!(
            apply(run("b", 3, "Running")),
            ["close", "open 2 b"],
            "another one of its name"
        );
        assert_eq!(
            apply(run("c", 4, "Failed")),
            ["close"],
            "it has ended before anybody looked"
        );
        assert!(words(sessions.observe(Event::Delete(key()))).is_empty());
    }

    #[test]
    fn an_end_is_remembered_until_the_watch_shows_it() {
        let mut sessions = Sessions::default();
        sessions.observe(Event::Apply(run("a", 1, "Running")));
        assert!(sessions.ended(key(), 1, concluded(5)).is_empty());
        let mut apply = |run| words(sessions.observe(Event::Apply(run)));
        assert!(apply(run("a", 3, "Running")).is_empty(), "it comes back to life");
        assert!(apply(run("a", 5, "Successful")).is_empty());
        assert_eq!(
            apply(run("a", 6, "Running")),
            ["open 2 a"],
            "somebody has taken the verdict back"
        );
    }

    #[test]
    fn what_came_while_a_session_ended_is_not_lost() {
        let mut sessions = Sessions::default();
        sessions.observe(Event::Apply(run("a", 1, "Running")));
        sessions.observe(Event::Apply(run("a", 9, "Running")));
        assert_eq!(words(sessions.ended(key(), 1, concluded(5))), ["open 2 a"]);
    }

    #[test]
    fn the_end_of_a_session_is_no_other_ones() {
        let mut sessions = Sessions::default();
        sessions.observe(Event::Apply(run("a", 1, "Running")));
        sessions.observe(Event::Unreadable(key()));
        assert_eq!(
            words(sessions.observe(Event::Apply(run("a", 3, "Running")))),
            ["open 2 a"]
        );
        assert!(sessions.ended(key(), 1, End::Gone).is_empty());
        assert_eq!(
            words(sessions.observe(Event::Apply(run("a", 4, "Running")))),
            ["tell a"]
        );
        let again = sessions.broken(&key(), 2);
        assert_eq!(words(again.into_iter().collect()), ["open 3 a"]);
    }

    #[test]
    fn a_run_that_is_being_deleted_has_no_session() {
        let mut sessions = Sessions::default();
        sessions.observe(Event::Apply(run("a", 1, "Running")));
        // A finalizer still holds it.
        let mut ends = Arc::unwrap_or_clone(run("a", 2, "Running"));
        ends.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("1970-01-01T00:00:02Z")).unwrap());
        let ends = Arc::new(ends);
        assert_eq!(words(sessions.observe(Event::Apply(ends.clone()))), ["close"]);
        assert!(words(sessions.observe(Event::Apply(ends))).is_empty());
    }

    #[test]
    fn what_no_list_holds_is_closed() {
        let mut sessions = Sessions::default();
        sessions.observe(Event::Apply(run("a", 1, "Running")));
        sessions.observe(Event::Init);
        assert_eq!(words(sessions.observe(Event::InitDone)), ["close"]);
    }
}
