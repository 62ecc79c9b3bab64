//! Tests: which runs have a session.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::spec_budget::bytes_of;

mod random;
mod waiting;

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
        Change::Wait(..) => "wait".to_owned(),
        Change::Read(_, id) => format!("read {id}"),
    });
    words.collect()
}

/// Limits for tests with small specs.
const LIMITS: SpecLimits = SpecLimits {
    total: 12_000,
    of_namespace: 4_000,
    reserve: 2_000,
};

/// Returns a run whose spec counts for these bytes, at least a few hundred; its UID is its name.
fn sized(namespace: &str, name: &str, version: u32, bytes: usize) -> HookRun {
    let run = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "HookRun",
        "metadata": { "namespace": namespace, "name": name, "uid": name, "resourceVersion": version.to_string() },
        "spec": { "metrics": [{ "name": "", "provider": {} }] },
    });
    let mut run = serde_json::from_value(run).unwrap();
    fill(&mut run, bytes);
    run
}

/// Pads the spec so that it counts for these bytes.
fn fill(run: &mut HookRun, bytes: usize) {
    run.spec.metrics[0].name.clear();
    let padding = bytes - bytes_of(&run.spec);
    run.spec.metrics[0].name = "x".repeat(padding);
    assert_eq!(bytes_of(&run.spec), bytes);
}

/// Checks that the room which is taken is that of the entries, and that nobody waits without need.
fn check(sessions: &Sessions) {
    let mut waiting = 0;
    for purpose in [Purpose::Measure, Purpose::Terminate] {
        let mut held: BTreeMap<&str, usize> = BTreeMap::new();
        let mut queues: BTreeMap<&str, Vec<(Place, String, usize)>> = BTreeMap::new();
        for ((namespace, name), entry) in &sessions.entries {
            let queue = queues.entry(namespace).or_default();
            let held = held.entry(namespace).or_default();
            match entry {
                SessionEntry::Open(_, run, need) if need.purpose == purpose => {
                    assert_eq!(need.bytes, bytes_of(&run.spec), "{name}");
                    *held += need.bytes;
                }
                SessionEntry::Reading { need, .. } if need.purpose == purpose => *held += need.bytes,
                SessionEntry::Waiting { need, place, .. } if need.purpose == purpose => {
                    queue.push((*place, name.clone(), need.bytes));
                    waiting += 1;
                }
                SessionEntry::Open(..)
                | SessionEntry::Reading { .. }
                | SessionEntry::Waiting { .. }
                | SessionEntry::Ended { .. } => {}
            }
        }
        for (namespace, mut queue) in queues {
            queue.sort_unstable();
            assert_eq!(
                sessions.room.queue(purpose, namespace),
                queue,
                "{purpose:?} {namespace}"
            );
        }
        for (namespace, held) in &held {
            assert_eq!(
                sessions.room.held_by(purpose, namespace),
                *held,
                "{purpose:?} {namespace}"
            );
        }
        assert_eq!(
            sessions.room.held(purpose),
            held.values().sum::<usize>(),
            "{purpose:?}"
        );
    }
    assert_eq!(sessions.waiting(), waiting);
    assert!(sessions.room.is_settled(), "a run waits that fits");
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
    ends.metadata.deletion_timestamp = Some(serde_json::from_value(json!("1970-01-01T00:00:02Z")).unwrap());
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
