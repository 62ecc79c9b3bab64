//! Fixtures: a workload, a driver that knows it, and the API server's answers.

use std::time::Duration;

use gamedeployment_core::plan::Action;
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use gamedeployment_driver::request::{ApiCall, DriverOutput, Object, Request, Response};
use gamedeployment_driver::watch_event::{Event, OwnedRevision, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits, NamespacedName};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime_core::clock::Now;
use serde_json::{Value, json};
use shared_api::GameDeployment;

pub(crate) fn at(seconds: u64) -> Now {
    let time = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + time,
        elapsed: time,
        monotonic: time,
    }
}

pub(crate) fn key(name: &str) -> NamespacedName {
    ("games".to_owned(), name.to_owned())
}

pub(crate) fn fleet(replicas: i32) -> GameDeployment {
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

pub(crate) fn listed<T>(
    objects: Vec<(NamespacedName, T)>,
    news: impl Fn(Event<T>) -> WatchEvent,
) -> Vec<WatchEvent> {
    let objects = objects
        .into_iter()
        .map(|(key, object)| Event::InitApply(key, object));
    let all = std::iter::once(Event::Init).chain(objects);
    all.chain([Event::InitDone]).map(news).collect()
}

/// Creates a driver that knows only a workload.
pub(crate) fn driver(replicas: i32) -> Driver {
    driver_of(Driver::new(false, DriverLimits::default()), fleet(replicas))
}

pub(crate) fn driver_of(mut driver: Driver, fleet: GameDeployment) -> Driver {
    assert_eq!(
        driver.deadline(),
        None,
        "nothing is to be done before everything is listed"
    );
    let workloads = vec![(key("fleet"), Workload::new(fleet))];
    let lists = [
        listed(workloads, WatchEvent::Workload),
        listed(Vec::new(), WatchEvent::Pod),
        listed(Vec::new(), WatchEvent::Revision),
        listed(Vec::new(), |event| WatchEvent::Run(event, None)),
    ];
    for news in lists.into_iter().flatten() {
        driver.handle(DriverInput::Watch(news), at(1));
        assert!(
            driver.poll(at(1)).is_none(),
            "it decides before everything is listed"
        );
    }
    for news in listed(Vec::new(), WatchEvent::Template) {
        driver.handle(DriverInput::Watch(news), at(1));
    }
    driver
}

/// Drains the driver's outputs and returns the requests.
pub(crate) fn requests(driver: &mut Driver, now: Now) -> Vec<Request> {
    let mut all = Vec::new();
    // More outputs than any plan here needs.
    for _ in 0..100 {
        let Some(output) = driver.poll(now) else {
            return all;
        };
        if let DriverOutput::Send(request) = output {
            all.push(request);
        }
    }
    panic!("no end: {}", driver.describe())
}

/// Returns the API server's answer to a creation.
pub(crate) fn made(call: &ApiCall) -> Response {
    let named = |mut manifest: Value| {
        manifest["metadata"]["uid"] = manifest["metadata"]["name"].clone();
        manifest["metadata"]["resourceVersion"] = json!("2");
        manifest
    };
    match call {
        ApiCall::Act(Action::CreatePod(new)) => {
            let pod = serde_json::from_value(named(new.manifest.clone())).unwrap();
            Response::Object(Object::Pod(key(&new.name), Box::new(Pod::read(&pod))))
        }
        ApiCall::Act(Action::CreateRevision(new)) => {
            let owner = json!({ "apiVersion": "v1", "kind": "GameDeployment", "name": "fleet", "uid": "w", "controller": true });
            let object = named(json!({ "metadata": { "name": new.name, "ownerReferences": [owner] } }));
            let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
            let revision = OwnedRevision {
                owner: Some("w".to_owned()),
                revision: Revision::read(&metadata, new.number, Some(&new.data)).unwrap(),
            };
            Response::Object(Object::Revision(key(&new.name), Box::new(revision)))
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_creation(request: &Request) -> bool {
    matches!(request.call, ApiCall::Act(Action::CreatePod(_)))
}

/// Answers the creation of the revision; returns the requests that follow.
pub(crate) fn first_batch(driver: &mut Driver) -> Vec<Request> {
    for revision in requests(driver, at(2)) {
        assert!(matches!(revision.call, ApiCall::Act(Action::CreateRevision(_))));
        driver.handle(
            DriverInput::Response(revision.id, Ok(made(&revision.call))),
            at(2),
        );
    }
    requests(driver, at(2))
}

/// Builds a pod of the workload with a player on it, on node `node-1`.
pub(crate) fn pod_with_a_player(version: &str, annotations: &Value) -> Pod {
    let running = json!({ "running": { "startedAt": "1970-01-01T00:00:01Z" } });
    pod_in_state(version, annotations, "c", running)
}

/// Builds a pod of the workload on node `node-1`, of which its kubelet reported that nothing has started.
pub(crate) fn pod_that_never_started(version: &str, annotations: &Value) -> Pod {
    let waiting = json!({ "waiting": { "reason": "ContainerCreating" } });
    pod_in_state(version, annotations, "", waiting)
}

fn pod_in_state(version: &str, annotations: &Value, container: &str, state: Value) -> Pod {
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
            "name": "game", "image": "game:v1", "imageID": "i", "containerID": container, "ready": true,
            "restartCount": 0, "state": state,
        }] },
    });
    Pod::read(&serde_json::from_value(pod).unwrap())
}

/// Returns the watch event for an object that a write returned.
pub(crate) fn shown(object: &Object) -> WatchEvent {
    match object {
        Object::Pod(key, pod) => WatchEvent::Pod(Event::Apply(key.clone(), (**pod).clone())),
        Object::Revision(key, revision) => {
            WatchEvent::Revision(Event::Apply(key.clone(), (**revision).clone()))
        }
        Object::Workload(key, workload) => WatchEvent::Workload(Event::Apply(key.clone(), workload.clone())),
        Object::Run(..) => panic!("nobody is asked"),
    }
}
