//! Scenarios of runs, written as measurements at given seconds.

use super::*;
use harness::{Harness, at, metric, none, run, verdict};

mod harness;
mod odd_statuses;
mod owner_missing;
mod properties;
mod trouble;

#[test]
fn one_measurement_is_one_write() {
    let mut harness = Harness::new(run(&[metric("webtest", none())], none()), &[]);
    harness.play(60_000);
    assert_eq!(harness.status.phase, Phase::Successful);
    assert_eq!(harness.writes, 1);
    assert_eq!(harness.started, [("webtest".to_owned(), 0, 0)]);
    assert_eq!(harness.plan().ended, Some(Cleanup::Keep));
    assert_eq!(harness.status.started_at.map(Time::timestamp), Some(at(0)));
    assert_eq!(harness.status.completed_at.map(Time::timestamp), Some(at(10)));
}

#[test]
fn the_users_failing_hook() {
    let spec = metric(
        "webtest",
        serde_json::json!({ "count": 3, "interval": "60s", "failureLimit": 2 }),
    );
    let mut harness = Harness::new(run(&[spec], none()), &[("webtest", "F")]);
    harness.play(600_000);
    assert_eq!(harness.status.phase, Phase::Failed);
    assert_eq!(
        harness.status.message.as_deref(),
        Some("metric webtest Failed: \"45\" does not satisfy asInt(result) < 30 (3 failed > failureLimit 2)")
    );
    assert_eq!(harness.status.reason.as_deref(), Some("FailureLimitExceeded"));
    let times: Vec<i64> = harness.started.iter().map(|(_, _, at)| *at).collect();
    assert_eq!(times, [0, 60_010, 120_020], "finish to start");
    assert_eq!(harness.writes, 3);
}

#[test]
fn a_run_in_trouble_says_so_before_it_ends() {
    let spec = metric(
        "webtest",
        serde_json::json!({ "interval": "5s", "successfulLimit": 1 }),
    );
    let mut harness = Harness::new(run(&[spec], none()), &[("webtest", "EEES")]);
    harness.play(10_500);
    assert_eq!(harness.status.phase, Phase::Running);
    let message = harness.status.message.clone().unwrap();
    assert_eq!(
        message,
        "metric webtest: last measurement Error: received status 503 (3 errors in a row)"
    );
    harness.play(60_000);
    assert_eq!(harness.status.phase, Phase::Successful);
}

#[test]
fn ordered_metrics_follow_one_another() {
    let first = metric("first", serde_json::json!({ "count": 2, "interval": "1s" }));
    let second = metric("second", serde_json::json!({ "initialDelay": "3s" }));
    let mut harness = Harness::new(
        run(&[first, second], serde_json::json!({ "policy": "Ordered" })),
        &[],
    );
    harness.play(60_000);
    assert_eq!(harness.status.phase, Phase::Successful);
    let starts: Vec<_> = harness
        .started
        .iter()
        .map(|(name, _, at)| (name.as_str(), *at))
        .collect();
    assert_eq!(starts, [("first", 0), ("first", 1_010), ("second", 4_020)]);
}

#[test]
fn a_failed_metric_stops_the_others_and_the_run_ends() {
    for (policy, delay) in [("Ordered", "0s"), ("Parallel", "1h")] {
        let bad = metric("bad", none());
        let later = metric("later", serde_json::json!({ "initialDelay": delay }));
        let mut harness = Harness::new(
            run(&[bad, later], serde_json::json!({ "policy": policy })),
            &[("bad", "F")],
        );
        harness.play(60_000);
        assert_eq!(harness.status.phase, Phase::Failed, "{policy}");
        assert_eq!(
            harness.summary(),
            [("bad", Phase::Failed, 1), ("later", Phase::Inconclusive, 0)],
            "{policy}"
        );
        let message = harness
            .status
            .metric_results
            .last()
            .and_then(|result| result.message.as_deref());
        assert_eq!(message, Some("stopped because metric bad is Failed"), "{policy}");
        assert!(
            harness
                .status
                .message
                .as_deref()
                .unwrap()
                .starts_with("metric bad Failed: "),
            "{policy}"
        );
    }
}

#[test]
fn termination_is_never_a_success() {
    let forever = metric("forever", serde_json::json!({ "interval": "1s" }));
    let mut harness = Harness::new(run(&[forever], none()), &[]);
    harness.play(5_000);
    assert_eq!(harness.status.phase, Phase::Running);
    harness.spec.as_mut().unwrap().terminate = true;
    harness.play(60_000);
    assert_eq!(harness.status.phase, Phase::Inconclusive);
    assert_eq!(
        harness.status.message.as_deref(),
        Some("metric forever Inconclusive: terminated")
    );
    assert_eq!(harness.status.reason.as_deref(), Some("Terminated"));

    let mut unmeasured = Harness::new(
        run(&[metric("a", none())], serde_json::json!({ "terminate": true })),
        &[],
    );
    unmeasured.play(60_000);
    assert_eq!(
        (unmeasured.status.phase, unmeasured.started.len()),
        (Phase::Inconclusive, 0)
    );
}

#[test]
fn a_run_that_takes_too_long_is_in_error() {
    let forever = metric("forever", serde_json::json!({ "interval": "1s" }));
    let mut harness = Harness::new(run(&[forever], serde_json::json!({ "timeoutSeconds": 4 })), &[]);
    harness.play(60_000);
    assert_eq!(harness.status.phase, Phase::Error);
    assert_eq!(
        harness.status.message.as_deref(),
        Some("metric forever Error: run timed out")
    );
    assert_eq!(harness.status.completed_at.map(Time::timestamp), Some(at(4_000)));
}

#[test]
fn an_invalid_spec_ends_in_error_with_every_problem() {
    let bad = metric("", serde_json::json!({ "interval": "60", "count": -1 }));
    let mut harness = Harness::new(run(&[bad], serde_json::json!({ "policy": "ordered" })), &[]);
    harness.play(60_000);
    assert_eq!(harness.status.phase, Phase::Error);
    let message = harness.status.message.as_deref().unwrap();
    assert!(message.starts_with("hook spec invalid: "), "{message}");
    for path in [
        "policy",
        "metrics[0].name",
        "metrics[0].interval",
        "metrics[0].count",
    ] {
        assert!(message.contains(path), "{path} in {message}");
    }
}

#[test]
fn an_outcome_whose_slot_is_recorded_already_is_dropped() {
    let mut harness = Harness::new(
        run(
            &[metric("m", serde_json::json!({ "count": 2, "interval": "1s" }))],
            none(),
        ),
        &[],
    );
    harness.play(5);
    harness.step();
    let late = MeasurementOutcome {
        key: MeasurementKey {
            metric: "m".into(),
            number: 0,
        },
        started_at: at(0),
        finished_at: at(10),
        verdict: verdict(b'F'),
    };
    assert_eq!(harness.status.metric_results[0].count, 1);
    harness.outcomes = vec![late];
    let plan = harness.plan();
    assert_eq!(plan.record, None, "{:?}", plan.record);
}

#[test]
fn a_slow_first_measurement_shows_as_running_after_a_second() {
    let harness = Harness::new(run(&[metric("m", none())], none()), &[]);
    let key = MeasurementKey {
        metric: "m".into(),
        number: 0,
    };
    let input = DecisionInput {
        in_flight: &[key],
        ..harness.input()
    };
    assert_eq!(decide(&input, at(500)).wake_at, Some(at(1_000)));
    let shown = decide(&input, at(1_000)).record.unwrap();
    assert_eq!((shown.phase, shown.metric_results.len()), (Phase::Running, 0));
    let after = decide(
        &DecisionInput {
            status: &shown,
            ..input
        },
        at(1_000),
    );
    assert_eq!((after.record, after.wake_at, after.cancel), (None, None, vec![]));
}

#[test]
fn an_invalid_run_has_its_time_to_live_too() {
    let mut harness = Harness::new(
        run(&[], serde_json::json!({ "ttlSecondsAfterFinished": 30 })),
        &[],
    );
    while harness.status.phase != Phase::Error {
        harness.step();
    }
    assert_eq!(harness.plan().ended, Some(Cleanup::DeleteLater));
}

#[test]
fn a_finished_run_is_deleted_when_its_time_has_passed() {
    let mut harness = Harness::new(
        run(
            &[metric("m", none())],
            serde_json::json!({ "ttlSecondsAfterFinished": 30 }),
        ),
        &[],
    );
    while harness.status.phase != Phase::Successful {
        harness.step();
    }
    assert_eq!(
        (harness.plan().ended, harness.plan().wake_at),
        (Some(Cleanup::DeleteLater), Some(at(30_010)))
    );
    harness.now = 30_010;
    assert_eq!(harness.plan().ended, Some(Cleanup::Delete));
}

/// A measurement that finds no capacity is reported once, does not count, and does not end the run.
#[test]
fn what_could_not_be_asked_is_told_and_is_no_measurement() {
    let harness = Harness::new(run(&[metric("m", none())], none()), &[]);
    let why = "metric m: not started yet: the share of this namespace is in use";
    let delay = Delay::new(DelayCause::NotAsked, why);
    let input = DecisionInput {
        held_up: Some(&delay),
        ..harness.input()
    };
    let told = decide(&input, at(30_000)).record.unwrap();
    assert_eq!((told.phase, told.message.as_deref()), (Phase::Running, Some(why)));
    assert_eq!(told.reason.as_deref(), Some("NotAskedYet"));
    assert!(told.metric_results.is_empty(), "{told:?}");
    let again = decide(
        &DecisionInput {
            status: &told,
            ..input
        },
        at(60_000),
    );
    assert_eq!((again.record, again.ended), (None, None));
    assert_eq!(again.start.len(), 1, "it is asked again");
}

/// The wait of a run for memory says nothing about its measurements, and the status says so until it goes on.
#[test]
fn a_run_that_has_waited_for_memory_goes_on_as_if_it_had_not() {
    let timeout = serde_json::json!({ "timeoutSeconds": 60 });
    let mut harness = Harness::new(run(&[metric("m", none())], timeout), &[]);
    harness.status.phase = Phase::Pending;
    harness.status.reason = Some("NoRoomForSpec".to_owned());
    let input = DecisionInput {
        taken_up_at: at(100_000),
        ..harness.input()
    };
    let begun = decide(&input, at(100_000)).record.unwrap();
    assert_eq!(
        begun.started_at,
        Some(at(100_000).into()),
        "the timeout counts from now"
    );
    assert_eq!(
        (begun.phase, begun.reason.as_deref()),
        (Phase::Running, Some("Measuring"))
    );
    // One that has measured before, and measures every hour.
    let often = metric("m", serde_json::json!({ "interval": "1h", "successfulLimit": 2 }));
    let mut harness = Harness::new(run(&[often], none()), &[]);
    harness.play(1000);
    let measured = harness.status.metric_results.clone();
    assert_eq!((harness.status.phase, measured.len()), (Phase::Running, 1));
    harness.status.reason = Some("NoRoomForSpec".to_owned());
    let since = |taken_up| DecisionInput {
        taken_up_at: at(taken_up),
        ..harness.input()
    };
    let early = decide(&since(5000), at(5000));
    assert_eq!((early.record, early.wake_at), (None, Some(at(6000))));
    let recorded = decide(&since(5000), at(6000)).record.unwrap();
    assert_eq!(
        (recorded.reason.as_deref(), recorded.metric_results),
        (Some("Measuring"), measured)
    );
    // If a measurement is due, its record says it.
    let due = decide(&since(5_000_000), at(5_000_100));
    assert_eq!((due.record, due.start.len(), due.wake_at), (None, 1, None));
    let in_flight = [due.start[0].key.clone()];
    let input = DecisionInput {
        in_flight: &in_flight,
        ..since(5_000_000)
    };
    let later = decide(&input, at(5_009_000));
    assert_eq!((later.record, later.start.len(), later.wake_at), (None, 0, None));
}

/// A Job may have ended while no operator ran, and a status may be recorded late. A gate must see that age.
#[test]
fn a_success_counts_from_the_end_of_its_last_measurement() {
    let harness = Harness::new(run(&[metric("a", none()), metric("b", none())], none()), &[]);
    let outcome = |metric: &str, started: i64, finished: i64, phase: &str| MeasurementOutcome {
        key: MeasurementKey {
            metric: metric.to_owned(),
            number: 0,
        },
        started_at: at(started),
        finished_at: at(finished),
        verdict: MeasurementResult {
            phase: Phase::from(phase.to_owned()),
            reason: None,
            value: None,
            message: None,
        },
    };
    for (phase, finished, completed) in [
        ("Successful", -20_000, -20_000),
        ("Successful", 70_000, 60_000),
        ("Failed", -20_000, 60_000),
    ] {
        let outcomes = [
            outcome("a", -90_000, -50_000, "Successful"),
            outcome("b", -80_000, finished, phase),
        ];
        let input = DecisionInput {
            outcomes: &outcomes,
            ..harness.input()
        };
        let status = decide(&input, at(60_000)).record.unwrap();
        assert_eq!(
            status.completed_at,
            Some(at(completed).into()),
            "{phase} at {finished}"
        );
        assert_eq!(
            status.started_at,
            Some(at(-90_000).into()),
            "the first of them began before this process"
        );
    }
}
