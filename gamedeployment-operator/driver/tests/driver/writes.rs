//! Writes: their batches, and the next steps after a refused or unanswered write.

use std::collections::BTreeSet;

use gamedeployment_core::plan::Action;
use gamedeployment_core::pod::Pod;
use gamedeployment_driver::DriverInput;
use gamedeployment_driver::request::{ApiCall, Object, ObjectKind, Request, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use serde_json::json;

use crate::kit::*;

#[test]
fn creations_come_in_batches_that_grow() {
    let mut driver = driver(10);
    let mut batch = first_batch(&mut driver);
    let mut sizes = Vec::new();
    while batch.iter().any(is_creation) {
        sizes.push(batch.len());
        for request in std::mem::take(&mut batch) {
            assert!(
                requests(&mut driver, at(2)).is_empty(),
                "the next batch does not wait for this one"
            );
            driver.handle(DriverInput::Response(request.id, Ok(made(&request.call))), at(2));
        }
        batch = requests(&mut driver, at(2));
    }
    assert_eq!(sizes, [1, 2, 4, 3]);
    let puts_in = |request: &Request| matches!(request.call, ApiCall::Act(Action::SetReady(..)));
    assert!(batch.len() == 10 && batch.iter().all(puts_in), "{batch:#?}");
}

#[test]
fn after_a_refusal_there_is_no_further_batch_and_a_pause_that_grows() {
    let mut driver = driver(10);
    let (mut now, mut version) = (2, 1);
    let mut pauses = Vec::new();
    let mut batch = first_batch(&mut driver);
    for _ in 0..4 {
        let [creation] = batch.as_slice() else {
            panic!("{batch:#?}")
        };
        assert!(is_creation(creation));
        let quota = || Err(RequestError::Refused("exceeded quota".to_owned()));
        driver.handle(DriverInput::Response(creation.id, quota()), at(now));
        // The status reports it.
        let mut told = requests(&mut driver, at(now));
        while let Some(status) = told.pop() {
            let ApiCall::WriteStatus(written) = status.call else {
                panic!("{status:#?}")
            };
            let mut object = fleet(10);
            object.status = Some(*written);
            version += 1;
            object.metadata.resource_version = Some(version.to_string());
            let answer = Response::Object(Object::Workload(key("fleet"), Workload::new(object)));
            driver.handle(DriverInput::Response(status.id, Ok(answer)), at(now));
            told.extend(requests(&mut driver, at(now)));
        }
        let wakes = driver.deadline().unwrap();
        pauses.push(wakes.as_millis() - u128::from(now) * 1000);
        now = wakes.as_secs() + 1;
        batch = requests(&mut driver, at(now));
    }
    assert_eq!(pauses, [250, 500, 1000, 2000]);
}

#[test]
fn a_write_without_an_answer_is_read_before_anything_is_decided() {
    let mut driver = driver(1);
    let mut batch = first_batch(&mut driver);
    let creation = batch.pop().unwrap();
    assert!(batch.is_empty());
    let ApiCall::Act(Action::CreatePod(new)) = &creation.call else {
        panic!("{creation:#?}")
    };
    let pod = made(&creation.call);
    driver.handle(
        DriverInput::Response(creation.id, Err(RequestError::Unknown("no answer".to_owned()))),
        at(3),
    );
    let mut reads = Vec::new();
    for request in requests(&mut driver, at(4)) {
        match &request.call {
            ApiCall::Read(_, read) => {
                assert_eq!(read.1, new.name);
                reads.push(request);
            }
            ApiCall::WriteStatus(_) => {
                let refused = Err(RequestError::Conflict);
                driver.handle(DriverInput::Response(request.id, refused), at(4));
            }
            other => panic!("{other:?}"),
        }
    }
    reads.extend(
        requests(&mut driver, at(5))
            .into_iter()
            .filter(Request::is_reread),
    );
    for read in reads {
        let answer = match &read.call {
            ApiCall::Read(gamedeployment_driver::request::ObjectKind::Pod, _) => Ok(pod.clone()),
            _ => Ok(Response::Object(Object::Workload(
                key("fleet"),
                Workload::new(fleet(1)),
            ))),
        };
        driver.handle(DriverInput::Response(read.id, answer), at(6));
    }
    let again = requests(&mut driver, at(7));
    assert!(!again.iter().any(is_creation), "it is created twice: {again:#?}");
}

#[test]
fn a_revision_whose_name_something_else_has_gets_another_one() {
    let mut driver = driver(1);
    let mut names = Vec::new();
    for second in 2..10 {
        let mut open = requests(&mut driver, at(second));
        while let Some(request) = open.pop() {
            let answer = match &request.call {
                ApiCall::Act(Action::CreateRevision(new)) => {
                    names.push(new.name.clone());
                    Err(RequestError::Conflict)
                }
                ApiCall::Read(ObjectKind::Revision, _) => Ok(Response::Foreign),
                _ => Err(RequestError::Unknown("no answer".to_owned())),
            };
            driver.handle(DriverInput::Response(request.id, answer), at(second));
            open.extend(requests(&mut driver, at(second)));
        }
    }
    let different: BTreeSet<_> = names.iter().collect();
    assert!(names.len() > 2 && different.len() == names.len(), "{names:?}");
}

#[test]
fn nothing_is_adopted_by_a_workload_that_has_ended() {
    let there = fleet(1);
    let mut ends = fleet(1);
    let since = serde_json::from_value(json!("1970-01-01T00:00:02Z")).unwrap();
    ends.metadata.deletion_timestamp = Some(since);
    let mut another = fleet(1);
    another.metadata.uid = Some("w2".to_owned());
    for (read, adopts) in [(there, true), (ends, false), (another, false)] {
        let mut driver = driver(1);
        let orphan = json!({
            "metadata": { "name": "orphan", "namespace": "games", "uid": "o", "resourceVersion": "7", "labels": { "app": "game" } },
            "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
        });
        let orphan = Pod::read(&serde_json::from_value(orphan).unwrap());
        driver.handle(
            DriverInput::Watch(WatchEvent::Pod(Event::Apply(key("orphan"), orphan))),
            at(1),
        );
        let (mut asked, mut adopted) = (false, false);
        let mut open = requests(&mut driver, at(2));
        while let Some(request) = open.pop() {
            let answer = match &request.call {
                ApiCall::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
                ApiCall::Read(_, name) if *name == key("fleet") => {
                    asked = true;
                    let workload = Workload::new(read.clone());
                    Ok(Response::Object(Object::Workload(key("fleet"), workload)))
                }
                other => {
                    adopted |= matches!(other, ApiCall::Act(Action::AdoptPod(_)));
                    Err(RequestError::Conflict)
                }
            };
            driver.handle(DriverInput::Response(request.id, answer), at(2));
            open.extend(requests(&mut driver, at(2)));
        }
        assert_eq!((asked, adopted), (true, adopts));
    }
}

/// The definition of a kind is deleted, or the namespace.
#[test]
fn a_creation_that_is_answered_with_404_backs_off_and_is_reported() {
    let mut driver = driver(1);
    let batch = first_batch(&mut driver);
    let [creation] = batch.as_slice() else {
        panic!("{batch:#?}")
    };
    assert!(is_creation(creation));
    driver.handle(DriverInput::Response(creation.id, Err(RequestError::Gone)), at(2));
    let mut object = fleet(1);
    let mut written = requests(&mut driver, at(2));
    // Nothing is created again at once.
    for version in 2.. {
        let Some(Request { id, call, .. }) = written.pop() else {
            break;
        };
        let ApiCall::WriteStatus(status) = call else {
            panic!("{call:#?}")
        };
        object.status = Some(*status);
        object.metadata.resource_version = Some(version.to_string());
        let stored = Response::Object(Object::Workload(key("fleet"), Workload::new(object.clone())));
        driver.handle(DriverInput::Response(id, Ok(stored)), at(2));
        written.extend(requests(&mut driver, at(2)));
    }
    let conditions = object.status.unwrap().conditions;
    let blocked = conditions
        .iter()
        .find(|known| known.type_ == "ScaleBlocked")
        .unwrap();
    let expected = "its namespace or its kind does not exist (404)";
    assert!(blocked.message.contains(expected), "{}", blocked.message);
}
