use std::collections::BTreeSet;

use super::*;
use crate::plan::RevisionRef;

const SECOND: Duration = Duration::from_secs(1);

/// A plan with one write to each of these.
fn plan<'a>(names: impl IntoIterator<Item = &'a str>) -> Plan {
    let write = |name: &str| {
        Action::DeleteRevision(RevisionRef {
            name: name.to_owned(),
            uid: String::new(),
            resource_version: String::new(),
        })
    };
    Plan {
        actions: names.into_iter().map(write).collect(),
        ..Plan::default()
    }
}

/// An API server that rejects writes to some objects, and a workload with a watch event every 100 ms.
struct Story {
    write_backoff: WriteBackoff,
    left: BTreeSet<&'static str>,
    now: Duration,
    /// Number of calls, and of those that were rejected.
    calls: usize,
    refused: usize,
    messages: BTreeSet<String>,
}

impl Story {
    fn new(names: &[&'static str]) -> Self {
        Self {
            write_backoff: WriteBackoff::default(),
            left: names.iter().copied().collect(),
            now: Duration::ZERO,
            calls: 0,
            refused: 0,
            messages: BTreeSet::new(),
        }
    }

    fn go_on(&mut self, time: Duration, is_protected: impl Fn(&str) -> bool) {
        let end = self.now + time;
        while self.now < end {
            let mut plan = plan(self.left.iter().copied());
            let _ = self.write_backoff.retain_planned(&plan, self.now);
            self.write_backoff.remove_backed_off(&mut plan, self.now);
            let tried = plan.actions.iter().map(|action| {
                let object = action.object().unwrap().to_owned();
                let failure = is_protected(&object).then(|| format!("{object} is protected"));
                WriteResult {
                    kind: action.kind(),
                    object,
                    scales: action.scales(),
                    failure: failure.map(WriteFailure::Rejected),
                }
            });
            let tried: Vec<_> = tried.collect();
            self.calls += tried.len();
            for one in &tried {
                match one.failure {
                    Some(_) => self.refused += 1,
                    None => drop(self.left.remove(one.object.as_str())),
                }
            }
            self.write_backoff.record(tried, self.now);
            let write_errors = self.write_backoff.write_errors();
            self.messages
                .extend(write_errors.and_then(|errors| errors.updating));
            self.now += SECOND / 10;
        }
    }
}

const SIX: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[test]
fn news_shorten_no_pause_and_many_objects_cost_few_calls() {
    let mut story = Story::new(&SIX);
    story.go_on(SECOND * 30, |_| true);
    // Calls at 0, 0.25, 0.75, 1.75, 3.75, 7.75 and 15.75 s: all six objects first, then two at a time.
    assert_eq!(story.refused, 6 + 6 * PROBES);
    assert_eq!(story.messages.len(), 1, "{:?}", story.messages);
    story.go_on(SECOND * 300, |_| true);
    assert_eq!(story.refused, 6 + 16 * PROBES, "every 30 s");
    story.go_on(MAX_BACKOFF + SECOND, |_| false);
    assert!(
        story.left.is_empty() && story.write_backoff.is_empty(),
        "{:?}",
        story.left
    );
}

#[test]
fn one_that_is_refused_holds_up_no_other() {
    let mut story = Story::new(&SIX);
    story.go_on(SECOND / 10, |name| name == "b");
    assert_eq!(story.left, BTreeSet::from(["b"]), "the others are done at once");
    story.go_on(SECOND * 30, |name| name == "b");
    assert_eq!(story.refused, 7);
    story.left.extend(["x", "y"]);
    story.go_on(SECOND / 5, |name| name == "b");
    assert_eq!(story.left, BTreeSet::from(["b"]), "nor those that come later");
}

#[test]
fn among_many_that_are_refused_those_that_are_not_are_found() {
    let mut story = Story::new(&SIX);
    story.go_on(SECOND, |_| true);
    story.go_on(SECOND * 90, |name| name != "f");
    assert!(!story.left.contains("f"), "each has its turn");
}

#[test]
fn an_edit_of_the_spec_ends_every_pause() {
    let mut story = Story::new(&SIX);
    story.write_backoff.observe_generation(Some(1));
    story.go_on(SECOND * 60, |_| true);
    story.write_backoff.observe_generation(Some(1));
    story.go_on(SECOND / 10, |_| false);
    assert_eq!(story.left.len(), 6);
    story.write_backoff.observe_generation(Some(2));
    story.go_on(SECOND / 10, |_| false);
    assert!(story.left.is_empty());
}

#[test]
fn what_is_not_to_be_done_any_more_is_forgotten_and_a_status_waits_too() {
    let mut write_backoff = WriteBackoff::default();
    let refused = |kind, object: &str| WriteResult {
        kind,
        object: object.to_owned(),
        scales: true,
        failure: Some(WriteFailure::Rejected("no".to_owned())),
    };
    write_backoff.record(
        vec![
            refused(WriteKind::DeleteRevision, "a"),
            refused(WriteKind::Status, ""),
        ],
        Duration::ZERO,
    );
    assert_eq!(write_backoff.next_retry(), Some(INITIAL_BACKOFF));
    let mut full = plan(["a", "b"]);
    full.status = Some(Box::default());
    assert!(!write_backoff.retain_planned(&full, Duration::ZERO));
    write_backoff.remove_backed_off(&mut full, SECOND / 10);
    assert_eq!((full.actions.len(), full.status.is_none()), (1, true));
    assert!(write_backoff.retain_planned(&plan(["b"]), Duration::ZERO) && write_backoff.is_empty());
    assert_eq!(write_backoff.write_errors(), None);
}

/// The verdict expires while the deletion that it permits is rejected, so the hook runs again in the
/// meantime.
#[test]
fn what_is_refused_is_still_told_while_the_pod_is_asked_again() {
    let mut write_backoff = WriteBackoff::default();
    let refused = || WriteResult {
        kind: WriteKind::DeleteRevision,
        object: "a".to_owned(),
        scales: false,
        failure: Some(WriteFailure::Rejected("it is protected".to_owned())),
    };
    for _ in 0..12 {
        write_backoff.record(vec![refused()], Duration::ZERO);
    }
    let granting = Plan {
        granted: ["a".to_owned()].into(),
        ..Plan::default()
    };
    assert!(!write_backoff.retain_planned(&granting, Duration::ZERO) && write_backoff.has_failures());
    assert!(write_backoff.write_errors().is_some(), "it is told");
    assert_eq!(
        write_backoff.next_retry(),
        None,
        "nothing is to be tried before it is answered"
    );
    let mut answered = plan(["a"]);
    assert!(!write_backoff.retain_planned(&answered, Duration::ZERO));
    assert_eq!(write_backoff.next_retry(), Some(MAX_BACKOFF));
    write_backoff.remove_backed_off(&mut answered, MAX_BACKOFF.saturating_sub(SECOND));
    assert!(answered.actions.is_empty(), "its pause goes on");
    assert!(write_backoff.retain_planned(&Plan::default(), Duration::ZERO) && !write_backoff.has_failures());
}

/// Results of writes that set again what another client has changed.
fn repeated(names: impl IntoIterator<Item = String>) -> Vec<WriteResult> {
    let results = names.into_iter().map(|object| WriteResult {
        kind: WriteKind::DeleteRevision,
        object,
        scales: false,
        failure: Some(WriteFailure::Repeated("another client".to_owned())),
    });
    results.collect()
}

/// A user edits the labels in the spec while the hooks of a thousand pods run.
#[test]
fn many_writes_that_repeat_an_earlier_one_delay_no_others_and_are_not_reported() {
    let mut write_backoff = WriteBackoff::default();
    let names: Vec<String> = (0..1000).map(|number| format!("pod-{number:04}")).collect();
    let all = Plan {
        granted: names.iter().cloned().collect(),
        ..Plan::default()
    };
    for (at, batch) in names.chunks(100).enumerate() {
        let now = SECOND / 10 * u32::try_from(at).unwrap();
        let mut left = plan(names[100 * at..].iter().map(String::as_str));
        left.granted.clone_from(&all.granted);
        let _ = write_backoff.retain_planned(&left, now);
        write_backoff.remove_backed_off(&mut left, now);
        assert_eq!(left.actions.len(), 1000 - 100 * at, "nothing is held back");
        write_backoff.record(repeated(batch.to_vec()), now);
        assert_eq!(write_backoff.write_errors(), None);
    }
    let _ = write_backoff.retain_planned(&all, SECOND);
    assert_eq!(
        (write_backoff.write_errors(), write_backoff.next_retry()),
        (None, None)
    );
    let _ = write_backoff.retain_planned(&all, SECOND * 2 + REMEMBERED);
    assert!(write_backoff.is_empty());
}

#[test]
fn a_fight_with_another_client_is_reported_only_while_it_lasts() {
    let mut write_backoff = WriteBackoff::default();
    let (mut written, mut now) = (0, Duration::ZERO);
    while now < SECOND * 600 {
        let mut wanted = plan(["a"]);
        let _ = write_backoff.retain_planned(&wanted, now);
        write_backoff.remove_backed_off(&mut wanted, now);
        if !wanted.actions.is_empty() {
            write_backoff.record(repeated(["a".to_owned()]), now);
            written += 1;
        }
        assert_eq!(write_backoff.write_errors().is_some(), written > 1);
        now += SECOND / 10;
    }
    assert_eq!(written, 8 + 18);
    // The other client stops, while the hook of the pod runs for hours.
    let granting = Plan {
        granted: ["a".to_owned()].into(),
        ..Plan::default()
    };
    assert!(write_backoff.retain_planned(&granting, now));
    assert_eq!(write_backoff.write_errors(), None);
}

/// A webhook changes each new HookRun, so that it is deleted and created again.
#[test]
fn a_write_that_is_never_stored_as_written_backs_off_although_other_writes_come_between() {
    let mut write_backoff = WriteBackoff::default();
    let (mut created, mut exists, mut now) = (0, false, Duration::ZERO);
    let end = SECOND * 600;
    while now < end {
        // The write is wanted only while the object does not exist.
        let mut wanted = plan((!exists).then_some("a"));
        let _ = write_backoff.retain_planned(&wanted, now);
        if exists {
            assert_eq!(write_backoff.write_errors(), None, "it is not due");
            assert_eq!(write_backoff.next_retry(), None);
            exists = false;
        }
        write_backoff.remove_backed_off(&mut wanted, now);
        if wanted.actions.pop().is_some() {
            created += 1;
            exists = true;
            let result = WriteResult {
                kind: WriteKind::DeleteRevision,
                object: "a".to_owned(),
                scales: false,
                failure: Some(WriteFailure::NotStored("not there".to_owned())),
            };
            write_backoff.record(vec![result], now);
            assert!(write_backoff.write_errors().is_some());
        }
        now += SECOND / 10;
    }
    // At 0, 0.25, 0.75, 1.75, 3.75, 7.75, 15.75 and 31.75 s, then every 30 s.
    assert_eq!(created, 8 + 18);
    // It is forgotten a minute after its back-off.
    let _ = write_backoff.retain_planned(&Plan::default(), end + MAX_BACKOFF + REMEMBERED);
    assert!(write_backoff.is_empty());
}
