//! Runs that go on without a verdict: repeated errors, and hooks that can never succeed.

use serde_json::{Value, json};
use shared_api::reason::HookRunReason;

use super::harness::{Harness, at, metric, none, run};
use super::*;
use crate::decide::{Delay, DelayCause};

/// Plays a polling metric that is measured once a second, and returns the reason after each measurement.
fn reasons(extra: Value, letters: &'static str) -> Vec<String> {
    let mut over = json!({ "interval": "1s" });
    over.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let mut harness = Harness::new(run(&[metric("players", over)], none()), &[("players", letters)]);
    let mut found = vec![];
    for number in 1..=letters.len() {
        while harness.writes < number && harness.step() {}
        found.push(harness.status.reason.clone().unwrap_or_default());
    }
    found
}

#[test]
fn five_errors_in_a_row_are_reported_until_an_answer_comes() {
    let poll = json!({ "successfulLimit": 1 });
    let (measuring, errors) = ("Measuring", "HookErrors");
    let table = [
        ("EEEE", vec![measuring; 4]),
        ("EEEEEE", [vec![measuring; 4], vec![errors; 2]].concat()),
        (
            "EEEEEFE",
            [vec![measuring; 4], vec![errors], vec![measuring; 2]].concat(),
        ),
        ("EEEEFEEEE", vec![measuring; 9]),
        (
            "EEEEES",
            [vec![measuring; 4], vec![errors, "AllMetricsSuccessful"]].concat(),
        ),
    ];
    for (letters, wanted) in table {
        assert_eq!(reasons(poll.clone(), letters), wanted, "{letters}");
    }
}

#[test]
fn a_metric_without_an_end_cannot_succeed_from_its_first_measurement_on() {
    for letters in ["S", "E", "SSEEEE"] {
        let found = reasons(none(), letters);
        assert_eq!(found, vec!["HookCannotSucceed"; letters.len()], "{letters}");
    }
    assert_eq!(
        reasons(none(), "SF"),
        ["HookCannotSucceed", "FailureLimitExceeded"]
    );
    for end in ["count", "successfulLimit", "consecutiveSuccessfulLimit"] {
        assert_eq!(reasons(json!({ end: 5 }), "S"), ["Measuring"], "{end}");
    }
}

#[test]
fn an_address_that_is_forbidden_five_times_cannot_succeed_unless_it_answers_after_all() {
    let poll = json!({ "successfulLimit": 1 });
    let (measuring, impossible) = (["Measuring"; 4].as_slice(), "HookCannotSucceed");
    let after = |last: &[&'static str]| [measuring, last].concat();
    assert_eq!(
        reasons(poll.clone(), "NNNNNE"),
        after(&[impossible, "HookErrors"])
    );
    assert_eq!(
        reasons(poll.clone(), "NNNNNNS"),
        after(&[impossible, impossible, "AllMetricsSuccessful"])
    );
    assert_eq!(reasons(poll, "NNNNF"), after(&["Measuring"]));
}

#[test]
fn the_error_with_its_reason_stays_in_the_status() {
    let spec = metric("players", json!({ "interval": "1s", "successfulLimit": 1 }));
    let mut harness = Harness::new(run(&[spec], none()), &[("players", "N")]);
    harness.play(6_000);
    let erroring = harness.status.erroring_metric().unwrap();
    let last = erroring.last_error().unwrap();
    assert_eq!(last.reason.as_deref(), Some("Forbidden"));
    let message = harness.status.message.as_deref().unwrap();
    assert_eq!(
        message, "metric players: the egress policy forbids 10.0.0.7",
        "does not count the errors, so that it stays the same"
    );
}

#[test]
fn of_several_metrics_the_one_with_most_errors_is_reported() {
    let poll = || json!({ "interval": "1s", "successfulLimit": 100 });
    let specs = [metric("a", poll()), metric("b", poll()), metric("c", poll())];
    let script = [("a", "S"), ("b", "SE"), ("c", "E")];
    let mut harness = Harness::new(run(&specs, none()), &script);
    harness.play(4_500);
    assert_eq!(harness.status.reason.as_deref(), Some("HookErrors"));
    let message = harness.status.message.clone().unwrap();
    assert!(
        message.starts_with("metric c: last measurement Error: "),
        "{message}"
    );
    // Of several with five errors it is the first, however they take turns.
    harness.play(7_000);
    for _ in 0..20 {
        assert!(harness.step());
        assert_eq!(harness.status.erroring_metric().unwrap().name, "b");
    }
}

#[test]
fn a_delay_does_not_hide_errors() {
    let spec = metric("players", json!({ "interval": "1s", "successfulLimit": 1 }));
    let delay = Delay::new(DelayCause::NotAsked, "the namespace uses its share");
    for (letters, hidden) in [("EEEEE", true), ("EEEE", false), ("EEEEEF", false)] {
        let mut harness = Harness::new(run(std::slice::from_ref(&spec), none()), &[("players", letters)]);
        while harness.writes < letters.len() && harness.step() {}
        let input = DecisionInput {
            held_up: Some(&delay),
            ..harness.input()
        };
        let record = decide(&input, at(harness.now)).record;
        let status = record.unwrap();
        let reason = if hidden {
            HookRunReason::HookErrors
        } else {
            HookRunReason::NotAskedYet
        };
        assert_eq!(status.reason.as_deref(), Some(reason.as_str()), "{letters}");
        let message = status.message.clone().unwrap();
        assert!(message.starts_with("the namespace uses its share"), "{message}");
        assert_eq!(message.contains("received status 503"), hidden, "{message}");
        let input = DecisionInput {
            status: &status,
            ..input
        };
        assert_eq!(decide(&input, at(harness.now)).record, None, "recorded once");
    }
}
