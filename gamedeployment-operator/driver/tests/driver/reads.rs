//! Direct reads beside the watches, and the effect of late answers.

use std::time::Duration;

use gamedeployment_core::plan::{Action, GatedWrite, WriteKind};
use gamedeployment_core::pod::Pod;
use gamedeployment_driver::request::{ApiCall, DriverOutput, Object, Request, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, NodeFacts, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use jiff::SignedDuration;
use serde_json::json;
use shared_api::names::pod as names;

use crate::kit::*;

#[test]
fn a_read_that_fails_is_not_repeated_at_once() {
    let mut driver = driver(1);
    let creation = first_batch(&mut driver).pop().unwrap();
    driver.handle(
        DriverInput::Response(creation.id, Ok(made(&creation.call))),
        at(2),
    );
    // No other request is answered; they do not matter here.
    let mut open: Vec<Request> = Vec::new();
    let mut reads = Vec::new();
    for second in 3..40 {
        open.extend(requests(&mut driver, at(second)));
        for request in std::mem::take(&mut open) {
            if request.is_reread() {
                reads.push(second);
            }
            let unknown = RequestError::Unknown("no answer".to_owned());
            driver.handle(DriverInput::Response(request.id, Err(unknown)), at(second));
            // A read without an answer is not repeated at once.
            let again = requests(&mut driver, at(second));
            assert!(
                !again.iter().any(Request::is_reread) || !request.is_reread(),
                "{again:#?}"
            );
            open.extend(again);
        }
    }
    assert!(
        reads.iter().any(|second| *second >= 12),
        "it is never read: {reads:?}"
    );
}

#[test]
fn what_was_read_directly_is_not_read_again_before_another_deadline() {
    let mut driver = driver(1);
    let creation = first_batch(&mut driver).pop().unwrap();
    let created = made(&creation.call);
    driver.handle(DriverInput::Response(creation.id, Ok(created.clone())), at(2));
    let mut reads = Vec::new();
    for second in 3..40 {
        for request in requests(&mut driver, at(second)) {
            let answer = match &request.call {
                ApiCall::Read(_, name) if matches!(&created, Response::Object(Object::Pod(pod, _)) if pod == name) =>
                {
                    reads.push(second);
                    Ok(created.clone())
                }
                _ => Err(RequestError::Refused("forbidden (403)".to_owned())),
            };
            driver.handle(DriverInput::Response(request.id, answer), at(second));
        }
    }
    assert_eq!(reads, [12, 22, 32]);
}

#[test]
fn what_a_list_no_longer_holds_and_nobody_owned_is_news_to_its_namespace() {
    let mut driver = driver(0);
    let mut open = first_batch(&mut driver);
    while let Some(request) = open.pop() {
        let ApiCall::WriteStatus(written) = request.call else {
            panic!("{request:#?}")
        };
        let mut object = fleet(0);
        object.metadata.resource_version = Some("2".to_owned());
        object.status = Some(*written);
        let answer = Response::Object(Object::Workload(key("fleet"), Workload::new(object)));
        driver.handle(DriverInput::Response(request.id, Ok(answer)), at(2));
        open.extend(requests(&mut driver, at(2)));
    }
    let mut decisions = |news: Vec<Event<Pod>>, second| {
        for event in news {
            driver.handle(DriverInput::Watch(WatchEvent::Pod(event)), at(second));
        }
        let mut count = 0;
        while let Some(output) = driver.poll(at(second)) {
            count += usize::from(matches!(output, DriverOutput::Decided(_)));
        }
        count
    };
    let metadata = json!({ "name": "bare", "namespace": "games", "uid": "bare", "resourceVersion": "7" });
    let bare = Pod::read(&serde_json::from_value(json!({ "metadata": metadata })).unwrap());
    assert_eq!(decisions(vec![Event::Apply(key("bare"), bare)], 10), 1);
    assert_eq!(decisions(vec![Event::Init, Event::InitDone], 20), 1);
    assert_eq!(decisions(vec![Event::Init, Event::InitDone], 30), 0);
}

#[test]
fn a_late_answer_of_a_direct_read_takes_away_nothing_that_a_watch_has_shown() {
    let mut driver = driver(1);
    let creation = requests(&mut driver, at(2)).pop().unwrap();
    let Response::Object(Object::Revision(name, revision)) = made(&creation.call) else {
        panic!("{creation:#?}")
    };
    let unknown = || RequestError::Unknown("no answer".to_owned());
    driver.handle(DriverInput::Response(creation.id, Err(unknown())), at(3));
    let mut answers = vec![Err(RequestError::Gone)];
    let mut created = Vec::new();
    for second in 4..12 {
        for request in requests(&mut driver, at(second)) {
            let answer = match &request.call {
                ApiCall::Read(_, read) if *read == name => {
                    // This read ran before the creation, and its answer arrives after the watch has shown the
                    // object.
                    let event = Event::Apply(name.clone(), (*revision).clone());
                    driver.handle(DriverInput::Watch(WatchEvent::Revision(event)), at(second));
                    let found = Response::Object(Object::Revision(name.clone(), revision.clone()));
                    answers.pop().unwrap_or(Ok(found))
                }
                ApiCall::Act(action) => {
                    created.push(action.kind());
                    Err(unknown())
                }
                _ => Err(unknown()),
            };
            driver.handle(DriverInput::Response(request.id, answer), at(second));
        }
    }
    assert!(answers.is_empty() && !created.is_empty());
    assert!(!created.contains(&WriteKind::CreateRevision), "{created:?}");
}

#[test]
fn a_node_is_asked_for_before_a_pod_goes_because_of_its_end() {
    for registered_again in [true, false] {
        let mut fleet = fleet(0);
        let hook = json!({ "hook": { "templateName": "players" } });
        fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
        let mut driver = driver_of(Driver::new(true, DriverLimits::default()), fleet.clone());
        for news in listed(Vec::new(), WatchEvent::Node) {
            driver.handle(DriverInput::Watch(news), at(1));
        }
        let pod = WatchEvent::Pod(Event::Apply(key("fleet-a"), pod_with_a_player("7", &json!({}))));
        driver.handle(DriverInput::Watch(pod), at(1));
        driver.handle(DriverInput::NodesWatched(Some(Duration::ZERO)), at(1));
        let (mut asked, mut deleted, mut version) = (None, false, 100);
        for second in 2..100 {
            let mut open = requests(&mut driver, at(second));
            while let Some(request) = open.pop() {
                version += 1;
                let answer = match &request.call {
                    ApiCall::ReadNode(node) => {
                        assert_eq!((node.as_str(), second >= 60), ("node-1", true));
                        asked = Some(second);
                        if registered_again {
                            Ok(Response::Node(NodeFacts::default()))
                        } else {
                            Err(RequestError::Gone)
                        }
                    }
                    ApiCall::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
                    ApiCall::Act(Action::RecordSelection(_, text, _)) => {
                        let marks = json!({ names::DELETING: "true", names::CHOSEN_FOR: text });
                        let pod = pod_with_a_player(&version.to_string(), &marks);
                        Ok(Response::Object(Object::Pod(key("fleet-a"), Box::new(pod))))
                    }
                    ApiCall::WriteStatus(status) => {
                        let mut object = fleet.clone();
                        object.metadata.resource_version = Some(version.to_string());
                        object.status = Some((**status).clone());
                        Ok(Response::Object(Object::Workload(
                            key("fleet"),
                            Workload::new(object),
                        )))
                    }
                    ApiCall::Act(Action::Gated(GatedWrite::DeletePod(_))) => {
                        let asked = asked
                            .unwrap_or_else(|| panic!("nobody has asked whether the node is there again"));
                        assert_eq!(
                            request.until,
                            Some(at(asked + 5).elapsed),
                            "from when it was asked"
                        );
                        deleted = true;
                        Err(RequestError::Conflict)
                    }
                    _ => Err(RequestError::Unknown("no answer".to_owned())),
                };
                if let Ok(Response::Object(object)) = &answer {
                    driver.handle(DriverInput::Watch(shown(object)), at(second));
                }
                // Answers about nodes are slow.
                let slow = u64::from(matches!(request.call, ApiCall::ReadNode(_))) * 3;
                driver.handle(DriverInput::Response(request.id, answer), at(second + slow));
                open.extend(requests(&mut driver, at(second + slow)));
            }
        }
        assert_eq!((asked.is_some(), deleted), (true, !registered_again));
    }
}

/// The watch of nodes may be minutes late, and a silent kubelet starts containers without a report.
#[test]
fn a_node_is_read_before_a_pod_that_never_started_goes() {
    let ready_since = |second| NodeFacts {
        ready_since: Some(at(0).wall - SignedDuration::from_secs(second)),
        ..NodeFacts::default()
    };
    let ready = ready_since(3600);
    let unknown = || RequestError::Unknown("no answer".to_owned());
    let answers = [
        (Ok(Response::Node(ready.clone())), true),
        (Ok(Response::Node(NodeFacts::default())), false),
        // It was not Ready meanwhile, and may have started containers that it has yet to report.
        (Ok(Response::Node(ready_since(0))), false),
        (Ok(Response::Node(ready_since(3599))), false),
        (Ok(Response::Done), false),
        (Err(RequestError::Gone), false),
        (Err(RequestError::Refused("forbidden (403)".to_owned())), false),
        (Err(unknown()), false),
    ];
    for (answer, goes) in answers {
        let mut fleet = fleet(0);
        let hook = json!({ "hook": { "templateName": "players" } });
        fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
        let mut driver = driver_of(Driver::new(true, DriverLimits::default()), fleet);
        let node = ((String::new(), "node-1".to_owned()), ready.clone());
        for news in listed(vec![node], WatchEvent::Node) {
            driver.handle(DriverInput::Watch(news), at(1));
        }
        let pod = pod_that_never_started("7", &json!({}));
        driver.handle(
            DriverInput::Watch(WatchEvent::Pod(Event::Apply(key("fleet-a"), pod))),
            at(1),
        );
        driver.handle(DriverInput::NodesWatched(Some(Duration::ZERO)), at(1));
        let mut open = requests(&mut driver, at(2));
        let (mut read, mut deletion) = (0, None);
        while let Some(request) = open.pop() {
            let answer = match &request.call {
                ApiCall::ReadNode(node) => {
                    assert_eq!(node, "node-1");
                    read += 1;
                    answer.clone()
                }
                ApiCall::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
                ApiCall::Act(Action::Gated(GatedWrite::DeletePod(_))) => {
                    deletion = Some(request.until);
                    Err(unknown())
                }
                _ => Err(unknown()),
            };
            driver.handle(DriverInput::Response(request.id, answer), at(2));
            open.extend(requests(&mut driver, at(2)));
        }
        let until = Some(at(2 + 5).elapsed);
        assert_eq!((read, deletion), (1, goes.then_some(until)), "{answer:?}");
    }
}

/// A kubelet that was silent reports its node first. The driver must come back without an event.
#[test]
fn a_pod_that_never_started_goes_a_minute_after_its_node_became_ready() {
    let mut fleet = fleet(0);
    let hook = json!({ "hook": { "templateName": "players" } });
    fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
    let mut driver = driver_of(Driver::new(true, DriverLimits::default()), fleet.clone());
    let node = (String::new(), "node-1".to_owned());
    let silent = vec![(node.clone(), NodeFacts::default())];
    for news in listed(silent, WatchEvent::Node) {
        driver.handle(DriverInput::Watch(news), at(1));
    }
    driver.handle(DriverInput::NodesWatched(Some(Duration::ZERO)), at(1));
    let ready = NodeFacts {
        // Its clock is far behind.
        ready_since: Some(at(10).wall - SignedDuration::from_hours(1)),
        ..NodeFacts::default()
    };
    let (mut second, mut version, mut read_at, mut deleted_at) = (1, 100, None, None);
    let mut pod = pod_that_never_started("7", &json!({}));
    while second < 200 && deleted_at.is_none() {
        if second == 10 {
            let event = Event::Apply(node.clone(), ready.clone());
            driver.handle(DriverInput::Watch(WatchEvent::Node(event)), at(second));
        }
        if second == 1 {
            let event = Event::Apply(key("fleet-a"), pod.clone());
            driver.handle(DriverInput::Watch(WatchEvent::Pod(event)), at(second));
        }
        let mut open = requests(&mut driver, at(second));
        while let Some(request) = open.pop() {
            version += 1;
            let answer = match &request.call {
                ApiCall::ReadNode(_) => {
                    read_at = Some(second);
                    Ok(Response::Node(ready.clone()))
                }
                ApiCall::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
                ApiCall::Act(Action::RecordSelection(_, text, _)) => {
                    let marks = json!({ names::DELETING: "true", names::CHOSEN_FOR: text });
                    pod = pod_that_never_started(&version.to_string(), &marks);
                    Ok(Response::Object(Object::Pod(
                        key("fleet-a"),
                        Box::new(pod.clone()),
                    )))
                }
                ApiCall::WriteStatus(status) => {
                    let mut object = fleet.clone();
                    object.metadata.resource_version = Some(version.to_string());
                    object.status = Some((**status).clone());
                    let workload = Workload::new(object);
                    Ok(Response::Object(Object::Workload(key("fleet"), workload)))
                }
                ApiCall::Act(Action::Gated(GatedWrite::DeletePod(_))) => {
                    deleted_at = Some(second);
                    Ok(Response::Gone)
                }
                _ => Err(RequestError::Unknown("no answer".to_owned())),
            };
            if let Ok(Response::Object(object)) = &answer {
                driver.handle(DriverInput::Watch(shown(object)), at(second));
            }
            driver.handle(DriverInput::Response(request.id, answer), at(second));
            open.extend(requests(&mut driver, at(second)));
        }
        // After the node's event, only its own wake-ups let it decide.
        let wake = driver.deadline().map_or(u64::MAX, |wake| wake.as_secs());
        second = if second < 10 {
            second + 1
        } else {
            wake.max(second + 1)
        };
    }
    assert_eq!((read_at, deleted_at), (Some(70), Some(70)));
}

/// Where nodes are not watched, a report counts for a short time, also while the write waits for its turn.
#[test]
fn a_pod_that_never_started_goes_only_while_its_report_is_recent() {
    let mut fleet = fleet(0);
    let hook = json!({ "hook": { "templateName": "players" } });
    fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
    let mut driver = driver_of(Driver::new(false, DriverLimits::default()), fleet);
    let mut pod = pod_that_never_started("7", &json!({}));
    pod.reported = Some(at(1).wall);
    let event = Event::Apply(key("fleet-a"), pod);
    driver.handle(DriverInput::Watch(WatchEvent::Pod(event)), at(1));
    let mut open = requests(&mut driver, at(20));
    let mut until = None;
    while let Some(request) = open.pop() {
        let answer = match &request.call {
            ApiCall::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
            ApiCall::Act(Action::Gated(GatedWrite::DeletePod(_))) => {
                until = request.until;
                Err(RequestError::Lapsed)
            }
            _ => Err(RequestError::Unknown("no answer".to_owned())),
        };
        driver.handle(DriverInput::Response(request.id, answer), at(20));
        open.extend(requests(&mut driver, at(20)));
    }
    assert_eq!(until, Some(at(31).elapsed));
}
