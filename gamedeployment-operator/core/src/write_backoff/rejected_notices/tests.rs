use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::hook_run::HookRunSpec;

use super::*;
use crate::gate::NewRun;
use crate::plan::{Action, Plan, WriteKind};
use crate::write_backoff::WriteBackoff;

const SECOND: Duration = Duration::from_secs(1);
const NOTICE: &str = "notice-hook-old-a-bye-0011";
const HOOK: &str = "pre-delete-hook-old-a-ask";

fn run(name: &str) -> NewRun {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    NewRun::with_own_spec(metadata, HookRunSpec::default())
}

fn plan(runs: impl IntoIterator<Item = NewRun>) -> Plan {
    let runs = runs.into_iter();
    Plan {
        actions: runs.map(|run| Action::CreateRun(Box::new(run))).collect(),
        ..Plan::default()
    }
}

fn result(name: &str, failure: Option<WriteFailure>) -> WriteResult {
    WriteResult {
        kind: WriteKind::CreateRun,
        object: name.to_owned(),
        scales: true,
        failure,
    }
}

fn rejected(name: &str) -> WriteResult {
    result(name, Some(WriteFailure::Rejected("quota (403)".to_owned())))
}

fn lasts(backoff: &WriteBackoff, now: Duration) -> Option<i64> {
    let rejected = backoff.rejected_notice(NOTICE, now)?;
    assert_eq!(rejected.answer, "quota (403)");
    Some(rejected.lasts.as_secs())
}

#[test]
fn the_time_begins_with_the_first_rejection_and_an_edit_of_the_spec_does_not_restart_it() {
    let mut backoff = WriteBackoff::default();
    backoff.observe_generation(Some(1));
    let unanswered = || result(NOTICE, Some(WriteFailure::Unanswered("timeout".to_owned())));
    backoff.record(vec![unanswered()], SECOND);
    assert_eq!(lasts(&backoff, SECOND), None, "it may exist");
    backoff.record(vec![rejected(NOTICE)], SECOND * 2);
    backoff.record(vec![unanswered()], SECOND * 3);
    backoff.record(vec![rejected(NOTICE)], SECOND * 4);
    backoff.observe_generation(Some(2));
    let _ = backoff.retain_planned(&plan([run(NOTICE)]), SECOND * 12);
    assert_eq!(lasts(&backoff, SECOND * 12), Some(10));
    assert_eq!(backoff.next_end_of_wait(SECOND * 12), Some(SECOND * 32));
    assert_eq!(
        backoff.next_end_of_wait(SECOND * 32),
        Some(SECOND * 4 + REMEMBERED),
        "then it is forgotten"
    );
    assert_eq!(backoff.next_end_of_wait(SECOND * 4 + REMEMBERED), None);
}

/// The pod loses its turn for a moment, again and again.
#[test]
fn plans_without_the_notice_restart_neither_its_time_nor_its_back_off() {
    let mut backoff = WriteBackoff::default();
    let mut tries = Vec::new();
    for tenth in 0..300 {
        let now = SECOND / 10 * tenth;
        let mut wanted = plan((tenth % 2 == 0).then(|| run(NOTICE)));
        let _ = backoff.retain_planned(&wanted, now);
        backoff.remove_backed_off(&mut wanted, now);
        if !wanted.actions.is_empty() {
            backoff.record(vec![rejected(NOTICE)], now);
            tries.push(tenth);
        }
    }
    // The back-off ends at 0.25, 0.9, 2, 4, 8 and 16 s, but every second plan has no notice.
    assert_eq!(tries, [0, 4, 10, 20, 40, 80, 160]);
    assert_eq!(lasts(&backoff, SECOND * 30), Some(30));
}

#[test]
fn a_rejection_is_forgotten_a_minute_after_the_last_one() {
    let mut backoff = WriteBackoff::default();
    backoff.record(vec![rejected(NOTICE)], Duration::ZERO);
    backoff.record(vec![rejected(NOTICE)], SECOND * 10);
    let without = plan([run(HOOK)]);
    assert!(
        backoff.retain_planned(&without, SECOND * 30),
        "it is no longer reported"
    );
    assert_eq!((backoff.write_errors(), backoff.next_retry()), (None, None));
    // The hook is rejected as well.
    backoff.record(vec![rejected(HOOK)], SECOND * 30);
    assert!(!backoff.retain_planned(&without, SECOND * 40));
    assert_eq!(lasts(&backoff, SECOND * 40), Some(40));
    assert_eq!(backoff.rejected_notice(HOOK, SECOND * 40), None);
    // The hook runs.
    backoff.record(vec![result(HOOK, None)], SECOND * 40);
    let _ = backoff.retain_planned(&Plan::default(), SECOND * 40);
    let end = backoff.next_end_of_wait(SECOND * 40);
    assert_eq!(end, Some(SECOND * 10 + REMEMBERED));
    let end = end.unwrap();
    assert!(backoff.has_failures() && lasts(&backoff, end.saturating_sub(SECOND)).is_some());
    assert_eq!(lasts(&backoff, end), None, "also before the cleanup");
    assert!(!backoff.retain_planned(&Plan::default(), end) && backoff.is_empty());
}

/// Nothing else is left of notices whose pods no longer exist.
#[test]
fn old_rejections_are_dropped_when_others_are_recorded() {
    let mut backoff = WriteBackoff::default();
    backoff.record(vec![rejected(NOTICE)], Duration::ZERO);
    backoff.record(vec![rejected("notice-hook-old-b-bye-0011")], REMEMBERED);
    assert!(!backoff.rejected_notices.contains(NOTICE));
    backoff.record(vec![rejected(NOTICE)], REMEMBERED);
    assert_eq!(lasts(&backoff, REMEMBERED), Some(0), "a new time");
}

#[test]
fn a_notice_that_exists_is_not_rejected() {
    for outcome in [None, Some(WriteFailure::NotStored("changed".to_owned()))] {
        let mut backoff = WriteBackoff::default();
        backoff.record(vec![rejected(NOTICE)], Duration::ZERO);
        backoff.record(vec![result(NOTICE, outcome)], SECOND);
        assert_eq!(lasts(&backoff, SECOND), None);
    }
}

#[test]
fn rejected_notices_hold_back_neither_hooks_nor_notices_that_were_not_tried() {
    let [a, b, c] = ["a", "b", "c"].map(|pod| format!("notice-hook-old-{pod}-bye-0011"));
    let mut backoff = WriteBackoff::default();
    backoff.record(vec![rejected(&a), rejected(&b)], Duration::ZERO);
    let mut wanted = plan([a.as_str(), &b, &c, HOOK].map(run));
    let _ = backoff.retain_planned(&wanted, SECOND / 10);
    backoff.remove_backed_off(&mut wanted, SECOND / 10);
    let left: Vec<&str> = wanted.actions.iter().filter_map(Action::object).collect();
    assert_eq!(left, [c.as_str(), HOOK]);
}
