//! Heartbeats to Evictions (`lifecycle.k8s.io`): when they are sent, and which message and time they carry.

use std::time::Duration;

use gamedeployment_driver::request::{ApiCall, DriverOutput, RequestError};
use gamedeployment_driver::watch_event::{Event, Eviction, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverLimits};
use runtime_core::clock::Now;
use serde_json::json;

use crate::eviction_api::Received;
use crate::eviction_kit::*;
use crate::kit::*;
use crate::server::Server;

#[test]
fn heartbeats_begin_after_two_seconds_and_follow_every_five_minutes() {
    for shows_reports in [false, true] {
        let (mut server, _) = evicted();
        server.evictions.shows_reports = shows_reports;
        play(&mut server, 10, 1000);
        assert_eq!(server.evictions.seconds(EVICTION), [12, 312, 612, 912]);
        let reason = reason(&server);
        assert!(reason.contains("HookTemplate ask does not exist"), "{reason}");
        for received in &server.evictions.received {
            assert_heartbeat(received, &reason);
            assert_eq!(received.report.uid, server.evictions.stored[EVICTION].uid);
        }
        assert_eq!(server.evictions.outcomes, ["done"; 4]);
        assert!(server.evictions.events.is_empty());
        assert!(server.deleted.is_empty());
    }
}

#[test]
fn a_changed_message_is_reported_within_twenty_seconds_and_no_sooner_than_that_after_the_last_report() {
    let (mut server, _) = evicted();
    play(&mut server, 10, 13);
    let first = reason(&server);
    change_problem(&mut server, "one", 13);
    play(&mut server, 13, 20);
    change_problem(&mut server, "two", 20);
    play(&mut server, 20, 33);
    let second = reason(&server);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 32]);
    play(&mut server, 33, 100);
    change_problem(&mut server, "three", 100);
    play(&mut server, 100, 121);
    let third = reason(&server);
    change_problem(&mut server, "four", 121);
    play(&mut server, 121, 142);
    let fourth = reason(&server);
    assert!(
        second.contains("two") && third.contains("three") && fourth.contains("four"),
        "{second} {third} {fourth}"
    );
    let received = &server.evictions.received;
    assert_eq!(received.len(), 4, "{received:#?}");
    for (received, reason) in received.iter().zip([&first, &second, &third, &fourth]) {
        assert_heartbeat(received, reason);
    }
    let is_long_enough = |pair: &[Received]| pair[1].second - pair[0].second >= 20;
    assert!(received.windows(2).all(is_long_enough), "{received:#?}");
    // The next heartbeat is due five minutes after the last report.
    let last = received[3].second;
    play(&mut server, 142, last + 301);
    assert_eq!(server.evictions.seconds(EVICTION)[4..], [last + 300]);
}

#[test]
fn heartbeats_advance_while_the_clock_is_behind() {
    for behind in [30, 3600] {
        let mut server = responding(1);
        let pod = pods(&server).remove(0);
        let eviction = Eviction {
            started: Some(at(10 + behind).wall),
            ..eviction_of(&server.pods[&pod], 10)
        };
        store(&mut server, EVICTION, eviction, 10);
        play(&mut server, 10, 500);
        delete(&mut server, &pod, 500);
        play(&mut server, 500, 700);
        assert_eq!(server.evictions.seconds(EVICTION), [12, 312, 500]);
        let [.., completion] = &server.evictions.received[..] else {
            panic!("no report")
        };
        assert_eq!(completion.report.completion, completion.report.heartbeat);
        for Received { second, report, .. } in &server.evictions.received {
            assert_eq!(report.heartbeat, Some(at(second + behind).wall));
        }
    }
}

#[test]
fn reports_are_accepted_after_one_rejection_while_the_clock_is_ahead() {
    for ahead in [30, 3600] {
        let (mut server, pod) = evicted();
        server.evictions.checks_times = true;
        let play_ahead = |server: &mut Server, from, to| {
            for second in from..to {
                let now = server.now(second);
                let wall = at(second + ahead).wall;
                server.play_at(Now { wall, ..now });
            }
        };
        play_ahead(&mut server, 10, 500);
        delete(&mut server, &pod, 500);
        play_ahead(&mut server, 500, 510);
        assert_eq!(server.evictions.seconds(EVICTION), [12, 32, 332, 500]);
        assert_eq!(server.evictions.outcomes, ["refused", "done", "done", "done"]);
        assert!(server.evictions.events.is_empty());
        let [_, first, second, completion] = &server.evictions.received[..] else {
            panic!("{:#?}", server.evictions.received)
        };
        for received in [first, second] {
            assert_heartbeat(received, &received.report.message);
        }
        assert_completion(completion, DELETED, 500, 0);
    }
}

/// A new process does not know the time that has passed since the last heartbeat, so it needs a correct clock.
#[test]
fn a_report_that_was_rejected_for_another_reason_is_repeated_with_either_clock() {
    let (mut server, _) = evicted();
    server.evictions.checks_times = true;
    play(&mut server, 10, 13);
    server.restart(Driver::new(false, DriverLimits::default()), 100);
    list(&mut server, &[EVICTION], 100);
    server.evictions.error = Some(RequestError::Refused("evictions is forbidden (403)".to_owned()));
    play(&mut server, 100, 103);
    server.evictions.error = None;
    play(&mut server, 103, 200);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 102, 122, 162]);
    assert_eq!(server.evictions.outcomes, ["done", "refused", "refused", "done"]);
    let [.., accepted] = &server.evictions.received[..] else {
        panic!("no report")
    };
    assert_heartbeat(accepted, &accepted.report.message);
}

/// Another process may have reported, with a clock that was ahead.
#[test]
fn heartbeats_advance_from_the_one_that_the_eviction_shows() {
    let mut server = responding(1);
    let pod = pods(&server).remove(0);
    let eviction = Eviction {
        heartbeat: Some(at(30).wall),
        message: Some("another reason".to_owned()),
        ..eviction_of(&server.pods[&pod], 10)
    };
    store(&mut server, EVICTION, eviction, 10);
    play(&mut server, 10, 700);
    assert_eq!(server.evictions.seconds(EVICTION), [30, 330, 630]);
    for Received { second, report, .. } in &server.evictions.received {
        assert_eq!(report.heartbeat, Some(at(second + 20).wall));
    }
}

#[test]
fn heartbeats_advance_if_the_clock_is_set_back() {
    let (mut server, _) = evicted();
    play(&mut server, 10, 13);
    for second in 13..400 {
        server.play_at(Now {
            wall: at(1).wall,
            ..at(second)
        });
    }
    let heartbeats = server.evictions.received.iter();
    let heartbeats: Vec<_> = heartbeats.map(|received| received.report.heartbeat).collect();
    assert_eq!(heartbeats, [Some(at(12).wall), Some(at(312).wall)]);
}

#[test]
fn times_are_reported_in_whole_seconds() {
    let late = |second: u64| {
        let part = Duration::from_millis(700);
        Now {
            wall: at(second).wall + part,
            elapsed: at(second).elapsed + part,
            monotonic: at(second).monotonic + part,
        }
    };
    let (mut server, pod) = evicted();
    for second in 10..15 {
        server.play_at(late(second));
    }
    delete(&mut server, &pod, 15);
    server.play_at(late(15));
    let [heartbeat, completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_heartbeat(heartbeat, &heartbeat.report.message);
    assert_completion(completion, DELETED, 15, 0);
}

/// The message may be the same.
#[test]
fn another_process_reports_soon_whatever_an_earlier_one_reported() {
    // The second heartbeat is 20 s after the first at the earliest.
    for (restarted, reports) in [(250, [12, 252, 552]), (20, [12, 32, 332])] {
        let (mut server, _) = evicted();
        play(&mut server, 10, restarted);
        let reason = reason(&server);
        server.restart(Driver::new(false, DriverLimits::default()), restarted);
        list(&mut server, &[EVICTION], restarted);
        play(&mut server, restarted, reports[2] + 1);
        assert_eq!(server.evictions.seconds(EVICTION), reports);
        for received in &server.evictions.received {
            assert_heartbeat(received, &reason);
        }
    }
}

#[test]
fn a_failed_report_is_repeated_with_backoff_and_the_third_failure_emits_an_event() {
    let (mut server, pod) = evicted();
    server.evictions.error = Some(RequestError::Refused("evictions is forbidden (403)".to_owned()));
    play(&mut server, 10, 400);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 32, 72, 152, 272, 392]);
    let event = |error: &str| format!("failed to report to Eviction {EVICTION} of pod {pod}: {error}");
    let first = (72, event("evictions is forbidden (403)"));
    assert_eq!(server.evictions.events, std::slice::from_ref(&first));
    server.evictions.error = None;
    play(&mut server, 400, 600);
    server.evictions.error = Some(RequestError::Unknown("no answer".to_owned()));
    play(&mut server, 600, 900);
    assert_eq!(server.evictions.seconds(EVICTION)[6..], [512, 812, 832, 872]);
    assert_eq!(server.evictions.events, [first, (872, event("no answer"))]);
    let mut outcomes = vec!["refused"; 6];
    outcomes.extend(["done", "unknown", "unknown", "unknown"]);
    assert_eq!(server.evictions.outcomes, outcomes);
}

#[test]
fn a_pod_without_a_workload_is_left_to_the_next_responder_without_a_heartbeat() {
    for controller in [None, Some("another kind".to_owned())] {
        let mut server = responding(1);
        let mut pod = pod_with_a_player("5", &json!({}));
        pod.labels.clear();
        pod.controller = controller;
        server.pods.insert(pod.name.clone(), pod.clone());
        show_pod(&mut server, &pod.name, 10);
        store(&mut server, EVICTION, eviction_of(&pod, 10), 10);
        play(&mut server, 10, 700);
        let [Received { second, report, .. }] = &server.evictions.received[..] else {
            panic!("{:#?}", server.evictions.received)
        };
        assert_eq!((*second, report.message.as_str()), (12, UNMANAGED));
        assert_eq!((report.heartbeat, report.completion), (None, None));
        assert!(server.pods.contains_key(&pod.name) && requests_in_status(&server).is_empty());
    }
}

/// The controller ends the turn of a responder that writes anything but its completion once the pod is gone.
#[test]
fn the_next_heartbeat_reports_that_the_pod_is_terminating() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    server.change_pod(&pod, |pod| pod.terminating = true).unwrap();
    show_pod(&mut server, &pod, 50);
    play(&mut server, 50, 400);
    let [_, terminating] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_eq!(terminating.second, 312);
    assert_heartbeat(terminating, BEING_DELETED);
    delete(&mut server, &pod, 400);
    play(&mut server, 400, 700);
    let [_, _, completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, DELETED, 400, 3);
}

#[test]
fn a_workload_that_cannot_be_parsed_keeps_the_eviction_active() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    let mut metadata = server.fleet.metadata.clone();
    metadata.resource_version = Some("1000".to_owned());
    let unreadable = Workload::unreadable(metadata, "spec.replicas: not a number".to_owned());
    let event = Event::Apply(key("fleet"), unreadable);
    server.watch(WatchEvent::Workload(event), 50);
    play(&mut server, 50, 400);
    let message = "the GameDeployment cannot be parsed: spec.replicas: not a number";
    let [_, changed, next] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert!((50..=70).contains(&changed.second), "{changed:?}");
    for received in [changed, next] {
        assert_heartbeat(received, message);
    }
    assert!(server.pods.contains_key(&pod));
}

/// Writes without a response delay the status.
#[test]
fn a_pod_that_the_status_does_not_list_yet_has_a_reason() {
    let (mut server, _) = evicted();
    for second in 10..13 {
        while let Some(output) = server.driver.poll(at(second)) {
            if let DriverOutput::Send(request) = output
                && let ApiCall::ReportEviction(_, report) = &request.call
            {
                assert_eq!((second, report.message.as_str()), (12, REQUESTED));
                return;
            }
        }
    }
    panic!("no report")
}
