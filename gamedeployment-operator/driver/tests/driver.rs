//! The driver by itself: what goes in, what comes out, and that nothing else does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use gamedeployment_core::gate::Run;
use gamedeployment_core::plan::{Action, CREATE_REVISION};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use gamedeployment_driver::news::{Event, News, OwnedRevision, Workload};
use gamedeployment_driver::request::{Answer, Call, CallError, Kind, Object, Output, Request};
use gamedeployment_driver::{Driver, Input, Key, Limits};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use runtime_core::clock::Now;
use serde_json::{Value, json};
use shared_api::names::pod as names;
use shared_api::{GameDeployment, HookRun};

fn at(seconds: u64) -> Now {
    let mono = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + mono,
        mono,
    }
}

fn key(name: &str) -> Key {
    ("games".to_owned(), name.to_owned())
}

fn fleet(replicas: i32) -> GameDeployment {
    let template = json!({
        "metadata": { "labels": { "app": "game" } },
        "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
    });
    let object = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": {
            "name": "fleet", "namespace": "games", "uid": "w", "resourceVersion": "1", "generation": 1,
        },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "game" } }, "template": template },
    });
    serde_json::from_value(object).unwrap()
}

fn listed<T>(objects: Vec<(Key, T)>, news: impl Fn(Event<T>) -> News) -> Vec<News> {
    let objects = objects
        .into_iter()
        .map(|(key, object)| Event::Listed(key, object));
    let all = std::iter::once(Event::ListBegins).chain(objects);
    all.chain([Event::ListEnds]).map(news).collect()
}

/// A driver that knows a workload, and nothing else.
fn driver(replicas: i32) -> Driver {
    driver_of(Driver::new(false, Limits::default()), fleet(replicas))
}

fn driver_of(mut driver: Driver, fleet: GameDeployment) -> Driver {
    assert_eq!(
        driver.deadline(),
        None,
        "nothing is to be done before everything is listed"
    );
    let workloads = vec![(key("fleet"), Workload::new(fleet))];
    let lists = [
        listed(workloads, News::Workload),
        listed(Vec::new(), News::Pod),
        listed(Vec::new(), News::Revision),
        listed(Vec::new(), |event| News::Run(event, None)),
    ];
    for news in lists.into_iter().flatten() {
        driver.handle(Input::News(news), at(1));
        assert!(
            driver.poll(at(1)).is_none(),
            "it decides before everything is listed"
        );
    }
    for news in listed(Vec::new(), News::Template) {
        driver.handle(Input::News(news), at(1));
    }
    driver
}

/// Everything that it has to say now; the requests of it.
fn requests(driver: &mut Driver, now: Now) -> Vec<Request> {
    let mut all = Vec::new();
    // More than any plan here needs.
    for _ in 0..100 {
        let Some(output) = driver.poll(now) else {
            return all;
        };
        if let Output::Send(request) = output {
            all.push(request);
        }
    }
    panic!("no end: {}", driver.describe())
}

/// What the API server makes of a creation.
fn made(call: &Call) -> Answer {
    let named = |mut manifest: Value| {
        manifest["metadata"]["uid"] = manifest["metadata"]["name"].clone();
        manifest["metadata"]["resourceVersion"] = json!("2");
        manifest
    };
    match call {
        Call::Act(Action::CreatePod(new)) => {
            let pod = serde_json::from_value(named(new.manifest.clone())).unwrap();
            Answer::Object(Object::Pod(key(&new.name), Box::new(Pod::read(&pod))))
        }
        Call::Act(Action::CreateRevision(new)) => {
            let owner = json!({ "apiVersion": "v1", "kind": "GameDeployment", "name": "fleet", "uid": "w", "controller": true });
            let metadata = json!({ "name": new.name, "ownerReferences": [owner] });
            let object = json!({ "metadata": metadata, "data": new.data, "revision": new.number });
            let object: ControllerRevision = serde_json::from_value(named(object)).unwrap();
            let revision = OwnedRevision {
                owner: Some("w".to_owned()),
                revision: Revision::read(&object).unwrap(),
            };
            Answer::Object(Object::Revision(key(&new.name), Box::new(revision)))
        }
        other => panic!("{other:?}"),
    }
}

fn is_creation(request: &Request) -> bool {
    matches!(request.call, Call::Act(Action::CreatePod(_)))
}

/// The revision is recorded; gives what follows.
fn first_batch(driver: &mut Driver) -> Vec<Request> {
    for revision in requests(driver, at(2)) {
        assert!(matches!(revision.call, Call::Act(Action::CreateRevision(_))));
        driver.handle(Input::Answered(revision.id, Ok(made(&revision.call))), at(2));
    }
    requests(driver, at(2))
}

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
            driver.handle(Input::Answered(request.id, Ok(made(&request.call))), at(2));
        }
        batch = requests(&mut driver, at(2));
    }
    assert_eq!(sizes, [1, 2, 4, 3]);
    let puts_in = |request: &Request| matches!(request.call, Call::Act(Action::PutIn(..)));
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
        let quota = || Err(CallError::Refused("exceeded quota".to_owned()));
        driver.handle(Input::Answered(creation.id, quota()), at(now));
        // It is told.
        let mut told = requests(&mut driver, at(now));
        while let Some(status) = told.pop() {
            let Call::WriteStatus(written) = status.call else {
                panic!("{status:#?}")
            };
            let mut object = fleet(10);
            object.status = Some(*written);
            version += 1;
            object.metadata.resource_version = Some(version.to_string());
            let answer = Answer::Object(Object::Workload(key("fleet"), Workload::new(object)));
            driver.handle(Input::Answered(status.id, Ok(answer)), at(now));
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
    let Call::Act(Action::CreatePod(new)) = &creation.call else {
        panic!("{creation:#?}")
    };
    let pod = made(&creation.call);
    driver.handle(
        Input::Answered(creation.id, Err(CallError::Unknown("no answer".to_owned()))),
        at(3),
    );
    let mut reads = Vec::new();
    for request in requests(&mut driver, at(4)) {
        match &request.call {
            Call::Read(_, read) => {
                assert_eq!(read.1, new.name);
                reads.push(request);
            }
            Call::WriteStatus(_) => {
                let refused = Err(CallError::Conflict);
                driver.handle(Input::Answered(request.id, refused), at(4));
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
            Call::Read(gamedeployment_driver::request::Kind::Pod, _) => Ok(pod.clone()),
            _ => Ok(Answer::Object(Object::Workload(
                key("fleet"),
                Workload::new(fleet(1)),
            ))),
        };
        driver.handle(Input::Answered(read.id, answer), at(6));
    }
    let again = requests(&mut driver, at(7));
    assert!(!again.iter().any(is_creation), "it is created twice: {again:#?}");
}

#[test]
fn a_verdict_that_is_no_success_is_counted_once() {
    let mut driver = driver(0);
    while driver.poll(at(2)).is_some() {}
    let run = |phase: &str| {
        let run: HookRun = serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1",
            "kind": "HookRun",
            "metadata": {
                "name": "run", "namespace": "games", "uid": "r", "resourceVersion": "5",
                "labels": { "tkex.bkbcs.tencent.com/gamedeployment-type": "pre-delete-check" },
                "annotations": { "tkex.tencent.com/hook-type": "PreDelete" },
            },
            "spec": { "metrics": [] },
            "status": { "phase": phase },
        }))
        .unwrap();
        Run::read(&run)
    };
    let mut counted = Vec::new();
    let mut verdicts = 0;
    for phase in ["Running", "Failed", "Failed"] {
        let mut run = run(phase);
        run.kind = Some(gamedeployment_core::hook_kind::HookKind::PreDelete);
        driver.handle(
            Input::News(News::Run(Event::Applied(key("run"), run), None)),
            at(3),
        );
        while let Some(output) = driver.poll(at(3)) {
            verdicts += usize::from(matches!(output, Output::Refused(_)));
        }
        counted.push(verdicts);
    }
    assert_eq!(counted, [0, 1, 1]);
}

#[test]
fn an_object_that_cannot_be_read_is_refused_once_and_again_when_that_failed() {
    let mut driver = driver(0);
    let metadata = fleet(0).metadata;
    let unreadable = || Workload::unreadable(metadata.clone(), "replicas: invalid type".to_owned());
    let news = |workload| Input::News(News::Workload(Event::Applied(key("fleet"), workload)));
    let refuses = |requests: &[Request]| {
        requests
            .iter()
            .filter(|request| matches!(request.call, Call::Refuse(..)))
            .map(|request| request.id)
            .collect::<Vec<_>>()
    };
    driver.handle(news(unreadable()), at(3));
    let sent = requests(&mut driver, at(3));
    let [id] = refuses(&sent)[..] else {
        panic!("{sent:#?}")
    };
    driver.handle(
        Input::Answered(id, Err(CallError::Unknown("no answer".to_owned()))),
        at(4),
    );
    assert!(requests(&mut driver, at(4)).is_empty());
    assert_eq!(driver.deadline(), Some(Duration::from_secs(5)));
    let sent = requests(&mut driver, at(5));
    let [id] = refuses(&sent)[..] else {
        panic!("{sent:#?}")
    };
    driver.handle(Input::Answered(id, Ok(Answer::Done)), at(5));
    driver.handle(news(unreadable()), at(6));
    assert!(requests(&mut driver, at(6)).is_empty(), "it is told twice");
}

#[test]
fn what_no_watch_shows_is_read_once_a_second_while_nobody_answers() {
    let mut driver = driver(1);
    let creation = first_batch(&mut driver).pop().unwrap();
    driver.handle(Input::Answered(creation.id, Ok(made(&creation.call))), at(2));
    // Whatever follows is refused, and is not what this is about.
    let mut open: Vec<Request> = Vec::new();
    let mut reads = Vec::new();
    for second in 3..40 {
        open.extend(requests(&mut driver, at(second)));
        for request in std::mem::take(&mut open) {
            if request.is_reread() {
                reads.push(second);
            }
            let unknown = CallError::Unknown("no answer".to_owned());
            driver.handle(Input::Answered(request.id, Err(unknown)), at(second));
            // At once, nothing is asked again that nobody answered.
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
    driver.handle(Input::Answered(creation.id, Ok(created.clone())), at(2));
    let mut reads = Vec::new();
    for second in 3..40 {
        for request in requests(&mut driver, at(second)) {
            let answer = match &request.call {
                Call::Read(_, name) if matches!(&created, Answer::Object(Object::Pod(pod, _)) if pod == name) =>
                {
                    reads.push(second);
                    Ok(created.clone())
                }
                _ => Err(CallError::Unknown("no answer".to_owned())),
            };
            driver.handle(Input::Answered(request.id, answer), at(second));
        }
    }
    // The first time since nobody knows what became of the write that came after its creation.
    assert_eq!(reads, [5, 15, 25, 35]);
}

#[test]
fn a_revision_whose_name_something_else_has_gets_another_one() {
    let mut driver = driver(1);
    let mut names = Vec::new();
    for second in 2..10 {
        let mut open = requests(&mut driver, at(second));
        while let Some(request) = open.pop() {
            let answer = match &request.call {
                Call::Act(Action::CreateRevision(new)) => {
                    names.push(new.name.clone());
                    Err(CallError::Conflict)
                }
                Call::Read(Kind::Revision, _) => Ok(Answer::Foreign),
                _ => Err(CallError::Unknown("no answer".to_owned())),
            };
            driver.handle(Input::Answered(request.id, answer), at(second));
            open.extend(requests(&mut driver, at(second)));
        }
    }
    let different: BTreeSet<_> = names.iter().collect();
    assert!(names.len() > 2 && different.len() == names.len(), "{names:?}");
}

#[test]
fn what_a_list_no_longer_holds_and_nobody_owned_is_news_to_its_namespace() {
    let mut driver = driver(0);
    let mut open = first_batch(&mut driver);
    while let Some(request) = open.pop() {
        let Call::WriteStatus(written) = request.call else {
            panic!("{request:#?}")
        };
        let mut object = fleet(0);
        object.metadata.resource_version = Some("2".to_owned());
        object.status = Some(*written);
        let answer = Answer::Object(Object::Workload(key("fleet"), Workload::new(object)));
        driver.handle(Input::Answered(request.id, Ok(answer)), at(2));
        open.extend(requests(&mut driver, at(2)));
    }
    let mut decisions = |news: Vec<Event<Pod>>, second| {
        for event in news {
            driver.handle(Input::News(News::Pod(event)), at(second));
        }
        let mut count = 0;
        while let Some(output) = driver.poll(at(second)) {
            count += usize::from(matches!(output, Output::Decided(_)));
        }
        count
    };
    let metadata = json!({ "name": "bare", "namespace": "games", "uid": "bare", "resourceVersion": "7" });
    let bare = Pod::read(&serde_json::from_value(json!({ "metadata": metadata })).unwrap());
    assert_eq!(decisions(vec![Event::Applied(key("bare"), bare)], 10), 1);
    assert_eq!(decisions(vec![Event::ListBegins, Event::ListEnds], 20), 1);
    assert_eq!(decisions(vec![Event::ListBegins, Event::ListEnds], 30), 0);
}

#[test]
fn a_late_answer_of_a_direct_read_takes_away_nothing_that_a_watch_has_shown() {
    let mut driver = driver(1);
    let creation = requests(&mut driver, at(2)).pop().unwrap();
    let Answer::Object(Object::Revision(name, revision)) = made(&creation.call) else {
        panic!("{creation:#?}")
    };
    let unknown = || CallError::Unknown("no answer".to_owned());
    driver.handle(Input::Answered(creation.id, Err(unknown())), at(3));
    let mut answers = vec![Err(CallError::Gone)];
    let mut created = Vec::new();
    for second in 4..12 {
        for request in requests(&mut driver, at(second)) {
            let answer = match &request.call {
                Call::Read(_, read) if *read == name => {
                    // It was read before it was made, and is answered after the watch has shown it.
                    let event = Event::Applied(name.clone(), (*revision).clone());
                    driver.handle(Input::News(News::Revision(event)), at(second));
                    let found = Answer::Object(Object::Revision(name.clone(), revision.clone()));
                    answers.pop().unwrap_or(Ok(found))
                }
                Call::Act(action) => {
                    created.push(action.name());
                    Err(unknown())
                }
                _ => Err(unknown()),
            };
            driver.handle(Input::Answered(request.id, answer), at(second));
        }
    }
    assert!(answers.is_empty() && !created.is_empty());
    assert!(!created.contains(&CREATE_REVISION), "{created:?}");
}

/// A pod of the workload with a player on it, on a node that no watch shows.
fn pod_on_a_lost_node(version: &str, annotations: &Value) -> Pod {
    let owner = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": "fleet", "uid": "w", "controller": true,
    });
    let pod = json!({
        "metadata": {
            "name": "fleet-a", "namespace": "games", "uid": "a", "resourceVersion": version, "labels": { "app": "game" },
            "annotations": annotations, "ownerReferences": [owner],
        },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "game", "image": "game:v1" }] },
        "status": { "phase": "Running", "containerStatuses": [{
            "name": "game", "image": "game:v1", "imageID": "i", "containerID": "c", "ready": true, "restartCount": 0,
            "state": { "running": { "startedAt": "1970-01-01T00:00:01Z" } },
        }] },
    });
    Pod::read(&serde_json::from_value(pod).unwrap())
}

/// What a watch shows of an object that a write has returned.
fn shown(object: &Object) -> News {
    match object {
        Object::Pod(key, pod) => News::Pod(Event::Applied(key.clone(), (**pod).clone())),
        Object::Revision(key, revision) => News::Revision(Event::Applied(key.clone(), (**revision).clone())),
        Object::Workload(key, workload) => News::Workload(Event::Applied(key.clone(), workload.clone())),
        Object::Run(..) => panic!("nobody is asked"),
    }
}

#[test]
fn a_node_is_asked_for_before_a_pod_goes_because_of_its_end() {
    for registered_again in [true, false] {
        let mut fleet = fleet(0);
        let hook = json!({ "hook": { "templateName": "players" } });
        fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
        let mut driver = driver_of(Driver::new(true, Limits::default()), fleet.clone());
        for news in listed(Vec::new(), News::Node) {
            driver.handle(Input::News(news), at(1));
        }
        let pod = News::Pod(Event::Applied(
            key("fleet-a"),
            pod_on_a_lost_node("7", &json!({})),
        ));
        driver.handle(Input::News(pod), at(1));
        driver.handle(Input::NodesWatched(Some(Duration::ZERO)), at(1));
        let (mut asked, mut deleted, mut version) = (None, false, 100);
        for second in 2..100 {
            let mut open = requests(&mut driver, at(second));
            while let Some(request) = open.pop() {
                version += 1;
                let answer = match &request.call {
                    Call::ReadNode(node) => {
                        assert_eq!((node.as_str(), second >= 60), ("node-1", true));
                        asked = Some(second);
                        if registered_again {
                            Ok(Answer::Done)
                        } else {
                            Err(CallError::Gone)
                        }
                    }
                    Call::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
                    Call::Act(Action::Mark(_, text)) => {
                        let marks = json!({ names::DELETING: "true", names::CHOSEN_FOR: text });
                        let pod = pod_on_a_lost_node(&version.to_string(), &marks);
                        Ok(Answer::Object(Object::Pod(key("fleet-a"), Box::new(pod))))
                    }
                    Call::WriteStatus(status) => {
                        let mut object = fleet.clone();
                        object.metadata.resource_version = Some(version.to_string());
                        object.status = Some((**status).clone());
                        Ok(Answer::Object(Object::Workload(
                            key("fleet"),
                            Workload::new(object),
                        )))
                    }
                    Call::Act(Action::DeletePod(_)) => {
                        let asked = asked
                            .unwrap_or_else(|| panic!("nobody has asked whether the node is there again"));
                        assert_eq!(request.until, Some(at(asked + 5).mono), "from when it was asked");
                        deleted = true;
                        Err(CallError::Conflict)
                    }
                    _ => Err(CallError::Unknown("no answer".to_owned())),
                };
                if let Ok(Answer::Object(object)) = &answer {
                    driver.handle(Input::News(shown(object)), at(second));
                }
                // Nodes are answered for slowly.
                let slow = u64::from(matches!(request.call, Call::ReadNode(_))) * 3;
                driver.handle(Input::Answered(request.id, answer), at(second + slow));
                open.extend(requests(&mut driver, at(second + slow)));
            }
        }
        assert_eq!((asked.is_some(), deleted), (true, !registered_again));
    }
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
            Input::News(News::Pod(Event::Applied(key("orphan"), orphan))),
            at(1),
        );
        let (mut asked, mut adopted) = (false, false);
        let mut open = requests(&mut driver, at(2));
        while let Some(request) = open.pop() {
            let answer = match &request.call {
                Call::Act(Action::CreateRevision(_)) => Ok(made(&request.call)),
                Call::Read(_, name) if *name == key("fleet") => {
                    asked = true;
                    let workload = Workload::new(read.clone());
                    Ok(Answer::Object(Object::Workload(key("fleet"), workload)))
                }
                other => {
                    adopted |= matches!(other, Call::Act(Action::Adopt(_)));
                    Err(CallError::Conflict)
                }
            };
            driver.handle(Input::Answered(request.id, answer), at(2));
            open.extend(requests(&mut driver, at(2)));
        }
        assert_eq!((asked, adopted), (true, adopts));
    }
}
