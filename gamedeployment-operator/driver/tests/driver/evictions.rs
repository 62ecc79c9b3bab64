//! Evictions (`lifecycle.k8s.io`) as removal requests: when they are valid, and which pods register the operator as a
//! responder.

use std::time::Duration;

use gamedeployment_driver::request::{RequestError, Response};
use gamedeployment_driver::watch_event::{Event, Eviction, WatchEvent};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use serde_json::{Value, json};
use shared_api::names::eviction::{PRIORITY, RESPONDER};
use shared_api::names::pod as names;

use crate::eviction_api::Received;
use crate::eviction_kit::*;
use crate::kit::*;
use crate::server::Server;

const OTHER_EVICTION: &str = "pod-1-b";

#[test]
fn an_eviction_is_a_request_to_remove_the_pod() {
    let (mut server, pod) = evicted();
    server.play_at(at(10));
    assert!(is_selected(&server, &pod));
    let [request] = requests_in_status(&server) else {
        panic!("{:#?}", server.fleet.status)
    };
    let words = [&request.pod_name, &request.requester, &request.type_];
    assert_eq!(words, [pod.as_str(), REQUESTER, "EvictionRequest"]);
    assert_eq!(request.request_time.timestamp(), at(10).wall);
    let status = server.fleet.status.as_ref().unwrap();
    assert_eq!(status.removal_pending_replicas, 1);
}

/// How an Eviction ends without the operator.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Deleted,
    Canceled,
    /// A new list lacks it.
    Unlisted,
}

const ENDINGS: [Ending; 3] = [Ending::Deleted, Ending::Canceled, Ending::Unlisted];

fn end(server: &mut Server, ending: Ending, second: u64) {
    match ending {
        Ending::Deleted => {
            let gone = server.evictions.stored.remove(EVICTION).unwrap();
            let event = Event::Delete(key(EVICTION), gone.uid);
            server.watch(WatchEvent::Eviction(event), second);
        }
        Ending::Canceled => update(server, EVICTION, second, |eviction| {
            eviction.is_active = false;
            eviction.requesters.clear();
        }),
        Ending::Unlisted => {
            server.evictions.stored.clear();
            list(server, &[], second);
        }
    }
}

#[test]
fn an_eviction_that_ends_is_withdrawn_at_once_and_gets_no_further_report() {
    for ending in ENDINGS {
        for second in [11, 50] {
            let (mut server, pod) = evicted();
            play(&mut server, 10, second);
            assert!(is_selected(&server, &pod), "{ending:?}");
            end(&mut server, ending, second);
            server.play_at(at(second));
            assert!(!is_selected(&server, &pod), "{ending:?}");
            assert!(requests_in_status(&server).is_empty(), "{ending:?}");
            play(&mut server, second, 700);
            let reports: &[u64] = if second == 11 { &[] } else { &[12] };
            assert_eq!(server.evictions.seconds(EVICTION), reports, "{ending:?}");
            assert!(server.deleted.is_empty() && server.evictions.events.is_empty());
        }
    }
}

#[test]
fn an_eviction_that_is_listed_again_continues() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    server.watch(WatchEvent::Eviction(Event::Init), 50);
    play(&mut server, 50, 60);
    assert!(is_selected(&server, &pod));
    list(&mut server, &[EVICTION], 60);
    play(&mut server, 60, 400);
    assert!(is_selected(&server, &pod));
    assert_eq!(server.evictions.seconds(EVICTION), [12, 312]);
}

#[test]
fn each_requester_is_listed_until_it_withdraws() {
    let (mut server, pod) = evicted();
    let requesters = |server: &Server| {
        let requests = requests_in_status(server).iter();
        let requesters = requests.map(|request| request.requester.clone());
        requesters.collect::<Vec<_>>()
    };
    play(&mut server, 10, 50);
    let other = "acme.io/upgrade".to_owned();
    update(&mut server, EVICTION, 50, |eviction| {
        eviction.requesters.push(other.clone());
        // The watch is late: it does not show the report yet.
        eviction.heartbeat = None;
    });
    server.play_at(at(50));
    assert_eq!(requesters(&server), [REQUESTER, &other]);
    update(&mut server, EVICTION, 60, |eviction| {
        eviction.requesters.retain(|name| *name == other);
    });
    server.play_at(at(60));
    assert_eq!(requesters(&server), [other]);
    assert!(is_selected(&server, &pod));
    play(&mut server, 60, 400);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 312]);
    // The controller cancels the eviction a moment later.
    update(&mut server, EVICTION, 400, |eviction| eviction.requesters.clear());
    server.play_at(at(400));
    assert!(requesters(&server).is_empty() && !is_selected(&server, &pod));
    play(&mut server, 400, 700);
    assert_not_completed(&server);
    assert_heartbeat(&server.evictions.received[2], WITHDRAWN);
}

#[test]
fn the_response_to_a_report_has_no_effect_once_the_eviction_has_ended() {
    let unknown = RequestError::Unknown("no answer".to_owned());
    for response in [Ok(Response::Done), Err(RequestError::Gone), Err(unknown)] {
        for ending in ENDINGS {
            let (mut server, pod) = evicted();
            server.evictions.is_silent = true;
            play(&mut server, 10, 100);
            assert_eq!(server.evictions.seconds(EVICTION), [12], "one at a time");
            end(&mut server, ending, 100);
            play(&mut server, 100, 105);
            respond(&mut server, &response, 105);
            play(&mut server, 105, 900);
            assert_eq!(server.evictions.seconds(EVICTION), [12]);
            assert!(server.evictions.events.is_empty() && !is_selected(&server, &pod));
        }
    }
}

#[test]
fn an_eviction_of_the_same_name_is_not_affected_by_the_response_to_the_last_one() {
    let unknown = RequestError::Unknown("no answer".to_owned());
    for response in [Ok(Response::Done), Err(unknown)] {
        let (mut server, pod) = evicted();
        server.evictions.is_silent = true;
        play(&mut server, 10, 100);
        end(&mut server, Ending::Deleted, 100);
        server.evictions.is_silent = false;
        let next = eviction_of(&server.pods[&pod], 100);
        let uid = next.uid.clone();
        store(&mut server, EVICTION, next, 100);
        play(&mut server, 100, 110);
        respond(&mut server, &response, 110);
        play(&mut server, 110, 500);
        let [_, reports @ ..] = &server.evictions.received[..] else {
            panic!("no report")
        };
        assert!((102..=112).contains(&reports[0].second), "{reports:#?}");
        let seconds: Vec<u64> = reports.iter().map(|received| received.second).collect();
        assert_eq!(seconds, [seconds[0], seconds[0] + 300]);
        assert!(reports.iter().all(|received| received.report.uid == uid));
        assert!(server.evictions.events.is_empty() && is_selected(&server, &pod));
    }
}

#[test]
fn the_evictions_of_two_pods_are_independent() {
    let mut server = responding(2);
    let pods = pods(&server);
    for (name, pod) in [EVICTION, OTHER_EVICTION].into_iter().zip(&pods) {
        let eviction = eviction_of(&server.pods[pod], 10);
        store(&mut server, name, eviction, 10);
    }
    play(&mut server, 10, 50);
    assert_eq!(requests_in_status(&server).len(), 2);
    delete(&mut server, &pods[0], 50);
    play(&mut server, 50, 400);
    assert_eq!(server.evictions.seconds(OTHER_EVICTION), [12, 312]);
    let completions = server.evictions.completions();
    let [completion] = &completions[..] else {
        panic!("{completions:#?}")
    };
    assert_eq!(completion.name, EVICTION);
    assert_completion(completion, DELETED, 50, 3);
    assert_eq!(server.evictions.seconds(EVICTION).len(), 2);
    let [request] = requests_in_status(&server) else {
        panic!("{:#?}", server.fleet.status)
    };
    assert_eq!(request.pod_name, pods[1]);
}

#[test]
fn an_eviction_may_be_shown_before_its_pod() {
    for second in [11, 100] {
        let (mut server, pod) = with_a_hidden_pod();
        store(&mut server, EVICTION, eviction_of(&pod, 10), 10);
        play(&mut server, 10, second);
        show_pod(&mut server, &pod.name, second);
        play(&mut server, second, 700);
        assert_not_completed(&server);
        let [request] = requests_in_status(&server) else {
            panic!("{:#?}", server.fleet.status)
        };
        assert_eq!(
            (&request.pod_uid, request.requester.as_str()),
            (&pod.uid, REQUESTER)
        );
        let last = server.evictions.received.last().unwrap();
        assert_heartbeat(last, &reason(&server));
        assert!(server.deleted.is_empty());
    }
}

#[test]
fn an_eviction_may_be_shown_before_its_workload() {
    for second in [11, 100] {
        let (mut server, pod) = with_a_hidden_pod();
        let workload = server.workload();
        server.driver = Driver::new(false, DriverLimits::default());
        let lists = [
            listed(Vec::new(), WatchEvent::Workload),
            listed(Vec::new(), WatchEvent::Pod),
            listed(Vec::new(), WatchEvent::Revision),
            listed(Vec::new(), |event| WatchEvent::Run(event, None)),
            listed(Vec::new(), WatchEvent::Template),
            listed(Vec::new(), WatchEvent::Eviction),
        ];
        for event in lists.into_iter().flatten() {
            server.watch(event, 9);
        }
        store(&mut server, EVICTION, eviction_of(&pod, 10), 10);
        show_pod(&mut server, &pod.name, 10);
        play(&mut server, 10, second);
        let event = WatchEvent::Workload(Event::Apply(key("fleet"), workload));
        server.watch(event, second);
        play(&mut server, second, 700);
        assert_not_completed(&server);
        let received = &server.evictions.received;
        let is_heartbeat = |received: &&Received| received.report.heartbeat.is_some();
        let first = received.iter().find(is_heartbeat).unwrap();
        assert!((12..=second + 20).contains(&first.second), "{received:#?}");
        assert_heartbeat(received.last().unwrap(), &reason(&server));
        assert!(server.deleted.is_empty());
    }
}

#[test]
fn without_an_active_eviction_the_driver_has_no_more_work() {
    let (mut without, mut with) = (guarded(1), responding(1));
    let pod = pods(&with).remove(0);
    let inactive = Eviction {
        is_active: false,
        ..eviction_of(&with.pods[&pod], 20)
    };
    for server in [&mut without, &mut with] {
        server.play_at(at(10));
    }
    assert_eq!(with.driver.deadline(), without.driver.deadline());
    store(&mut with, EVICTION, inactive, 11);
    for server in [&mut without, &mut with] {
        server.play_at(at(11));
    }
    assert_eq!(with.driver.deadline(), without.driver.deadline());
    update(&mut with, EVICTION, 20, |eviction| eviction.is_active = true);
    with.play_at(at(20));
    let due = with.driver.deadline().unwrap();
    assert!(due <= Duration::from_secs(22), "{due:?}");
}

#[test]
fn pods_register_the_responder_once_evictions_are_listed() {
    let mut server = guarded(1);
    server.watch(WatchEvent::Eviction(Event::Init), 10);
    set_replicas(&mut server, 2, 10);
    play(&mut server, 10, 20);
    server.watch(WatchEvent::Eviction(Event::InitDone), 20);
    set_replicas(&mut server, 3, 20);
    play(&mut server, 20, 30);
    // An interruption of the watch ends nothing.
    server.watch(WatchEvent::Eviction(Event::Init), 30);
    set_replicas(&mut server, 4, 30);
    play(&mut server, 30, 40);
    let responders = |manifest: &Value| manifest["spec"]["evictionResponders"].clone();
    let responders: Vec<Value> = server.manifests.iter().map(responders).collect();
    let own = json!([{ "name": RESPONDER, "priority": PRIORITY }]);
    assert_eq!(responders, [Value::Null, Value::Null, own.clone(), own]);
    // The template is the same, so the revision is.
    let label = |manifest: &Value| manifest["metadata"]["labels"][names::REVISION].clone();
    let mut labels: Vec<Value> = server.manifests.iter().map(label).collect();
    labels.dedup();
    assert_eq!(labels.len(), 1, "{labels:?}");
}

#[test]
fn nothing_is_reported_before_everything_is_listed() {
    let mut driver = Driver::new(false, DriverLimits::default());
    let pod = pod_with_a_player("5", &json!({}));
    let evictions = vec![(key(EVICTION), eviction_of(&pod, 1))];
    for event in listed(evictions, WatchEvent::Eviction) {
        driver.handle(DriverInput::Watch(event), at(1));
    }
    assert!(driver.poll(at(100)).is_none());
    // Nothing is due during the other lists either.
    drop(driver_of(driver, fleet(0)));
}

#[test]
fn an_eviction_in_another_namespace_is_no_request() {
    let mut server = responding(1);
    let pod = pods(&server).remove(0);
    let eviction = eviction_of(&server.pods[&pod], 10);
    let elsewhere = ("elsewhere".to_owned(), EVICTION.to_owned());
    // No answer ends it.
    server.evictions.is_silent = true;
    server.watch(WatchEvent::Eviction(Event::Apply(elsewhere, eviction)), 10);
    // The workload is decided on again.
    change_problem(&mut server, "one", 10);
    play(&mut server, 10, 700);
    assert!(!is_selected(&server, &pod) && requests_in_status(&server).is_empty());
    assert!(server.deleted.is_empty());
}

/// The watch may be minutes late.
#[test]
fn a_report_that_is_answered_with_404_ends_the_eviction() {
    let (mut server, pod) = evicted();
    let gone = server.evictions.stored.remove(EVICTION).unwrap();
    play(&mut server, 10, 12);
    assert!(is_selected(&server, &pod));
    server.play_at(at(12));
    assert!(!is_selected(&server, &pod) && requests_in_status(&server).is_empty());
    play(&mut server, 13, 700);
    assert_eq!(server.evictions.seconds(EVICTION), [12]);
    assert_eq!(server.evictions.outcomes, ["gone"]);
    assert!(server.evictions.events.is_empty() && server.deleted.is_empty());
    // The watch shows it again.
    store(&mut server, EVICTION, gone, 700);
    play(&mut server, 700, 800);
    assert!(is_selected(&server, &pod));
    assert_eq!(server.evictions.seconds(EVICTION), [12, 702]);
}

#[test]
fn decisions_await_the_first_list_of_evictions() {
    for is_served in [true, false] {
        let mut server = workload(1, "Ask");
        let driver = Driver::new(false, DriverLimits::default()).awaiting_evictions();
        server.driver = driver_of(driver, server.fleet.clone());
        server.watch(WatchEvent::Eviction(Event::Init), 2);
        play(&mut server, 2, 100);
        assert!(server.pods.is_empty() && !server.driver.is_synced());
        assert_eq!(server.driver.deadline(), None);
        let event = if is_served {
            WatchEvent::Eviction(Event::InitDone)
        } else {
            WatchEvent::EvictionsUnavailable
        };
        server.watch(event, 100);
        assert!(server.driver.is_synced());
        play(&mut server, 100, 110);
        let responders = |manifest: &Value| manifest["spec"]["evictionResponders"].is_array();
        let register: Vec<bool> = server.manifests.iter().map(responders).collect();
        assert_eq!(register, [is_served]);
    }
}

#[test]
fn a_pod_stays_selected_while_another_process_lists_evictions() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 100);
    let driver = Driver::new(false, DriverLimits::default()).awaiting_evictions();
    server.restart(driver, 100);
    play(&mut server, 100, 105);
    assert!(is_selected(&server, &pod));
    list(&mut server, &[EVICTION], 105);
    play(&mut server, 105, 200);
    assert!(is_selected(&server, &pod));
    assert_eq!(requests_in_status(&server).len(), 1);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 107]);
}
