//! The API server accepts a write and stores something else: an older CRD drops fields, or a mutating webhook
//! changes them. Or another client changes what was stored, again and again.

use std::time::Duration;

use gamedeployment_core::plan::Action;
use gamedeployment_core::pod::Pod;
use gamedeployment_driver::request::{ApiCall, Object, ObjectKind, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use runtime_core::clock::Now;
use serde_json::json;
use shared_api::GameDeploymentStatus;
use shared_api::names::pod::{CHOSEN_FOR, DRAINING_LABELS, SAFE_TO_EVICT};

use crate::kit::*;
use crate::server::{Server, Shown};

/// Plays ten minutes with a workload without pods, whose status passes through `prune` before it is stored.
/// Returns the number of status writes, and the last status.
fn ten_minutes(prune: fn(&mut GameDeploymentStatus)) -> (usize, GameDeploymentStatus) {
    let mut driver: Driver = driver(0);
    let (mut written, mut version, mut object) = (0, 1, fleet(0));
    let mut revision = None;
    let end = Duration::from_mins(10);
    let mut now = Duration::from_secs(2);
    while now < end {
        let time = Now {
            elapsed: now,
            monotonic: now,
            ..at(now.as_secs())
        };
        let mut open = requests(&mut driver, time);
        while let Some(request) = open.pop() {
            let answer = match request.call {
                ApiCall::WriteStatus(status) => {
                    written += 1;
                    version += 1;
                    let mut status = *status;
                    prune(&mut status);
                    object.status = Some(status);
                    object.metadata.resource_version = Some(version.to_string());
                    Ok(Response::Object(Object::Workload(
                        key("fleet"),
                        Workload::new(object.clone()),
                    )))
                }
                ApiCall::Read(ObjectKind::Workload, _) => Ok(Response::Object(Object::Workload(
                    key("fleet"),
                    Workload::new(object.clone()),
                ))),
                ApiCall::Act(Action::CreateRevision(_)) => {
                    let made = made(&request.call);
                    revision = Some(made.clone());
                    Ok(made)
                }
                ApiCall::Read(ObjectKind::Revision, _) => revision.clone().ok_or(RequestError::Gone),
                other => panic!("{other:?}"),
            };
            let answer: Result<Response, RequestError> = answer;
            driver.handle(DriverInput::Response(request.id, answer), time);
            open.extend(requests(&mut driver, time));
        }
        // A watch event every second changes nothing.
        let wakes = driver.deadline().unwrap_or(end);
        now = wakes
            .max(now + Duration::from_millis(1))
            .min(now + Duration::from_secs(1));
    }
    (written, object.status.unwrap_or_default())
}

#[test]
fn a_status_that_an_older_crd_prunes_is_written_ever_more_rarely_and_says_why() {
    let (written, _) = ten_minutes(|_| {});
    assert!(written <= 3, "{written}");
    let (written, status) = ten_minutes(|status| (status.phase, status.reason) = (None, None));
    // 250 ms, doubling to 30 s: seven attempts in the first half minute, then one every 30 s.
    assert!((20..32).contains(&written), "{written}");
    let mut conditions = status.conditions.iter();
    let blocked = conditions.find(|known| known.type_ == "UpdateBlocked").unwrap();
    assert_eq!(blocked.reason, "WriteFailed");
    assert!(
        blocked
            .message
            .contains("the API server accepted the write but stored something else"),
        "{}",
        blocked.message
    );
}

/// Lets another client change the only pod for ten minutes, at once after each write of the operator that sets what
/// `is_set` checks, but at most `times`. Returns the number of these writes.
fn contend(server: &mut Server, times: usize, is_set: fn(&Pod) -> bool, change: fn(&mut Pod)) -> usize {
    let name = server.pods.keys().next().unwrap().clone();
    let mut written = 0;
    for second in 6..606 {
        server.play(second, second + 1);
        if !is_set(&server.pods[&name]) {
            continue;
        }
        if written == times {
            break;
        }
        written += 1;
        assert!(server.change_pod(&name, change).is_ok());
        let event = Event::Apply(key(&name), server.pods[&name].clone());
        server.watch(WatchEvent::Pod(event), second);
    }
    written
}

/// Returns the number of writes of an annotation that another client changes this often, and the condition that the
/// operator reports.
fn contended(times: usize) -> (usize, Option<(String, String)>) {
    let mut server = Server::new(1);
    let spec = &mut server.fleet.spec;
    spec.disruption = serde_json::from_value(json!({ "autoscalerAnnotations": "Managed" })).unwrap();
    spec.pre_delete_update_strategy =
        serde_json::from_value(json!({ "hook": { "templateName": "ask" } })).unwrap();
    let pod = pod_with_a_player("5", &json!({}));
    server.pods.insert(pod.name.clone(), pod);
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), server.fleet.clone());
    server.show_all();
    let is_set = |pod: &Pod| pod.annotation(SAFE_TO_EVICT) == Some("false");
    let written = contend(&mut server, times, is_set, |pod| {
        pod.annotations
            .insert(SAFE_TO_EVICT.to_owned(), "true".to_owned());
    });
    (written, server.condition("UpdateBlocked"))
}

#[test]
fn an_annotation_that_another_controller_keeps_changing_is_set_ever_more_rarely_and_says_why() {
    let (written, condition) = contended(1);
    let (reason, _) = condition.unwrap();
    assert_eq!(
        (written, reason.as_str()),
        (1, "HookTemplateMissing"),
        "a single change is no contention"
    );
    let (written, condition) = contended(usize::MAX);
    assert!((20..32).contains(&written), "{written}");
    let (reason, message) = condition.unwrap();
    assert_eq!(reason, "WriteFailed");
    assert!(message.contains("another client"), "{message}");
}

/// Label of pods that are selected for deletion.
const LABEL: &str = "accepts-players";

/// Returns a workload with one pod. The pod stays selected for deletion, because the template of its hook is
/// missing. A mutating webhook removes a label.
fn selected(strips: Option<&'static str>) -> (Server, String) {
    let mut server = Server::new(1);
    server.shown = Shown::AllWrites;
    server.strips = strips;
    server.play(2, 6);
    let name = server.pods.keys().next().unwrap().clone();
    server.pods.get_mut(&name).unwrap().node = Some("node-1".to_owned());
    server.show(&name);
    let strategy = json!({ "podsToDelete": [name], "drainingLabels": { LABEL: "false" } });
    server.fleet.spec.scale_strategy = serde_json::from_value(strategy).unwrap();
    let hook = json!({ "hook": { "templateName": "missing" } });
    server.fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
    server.fleet.metadata.generation = Some(2);
    let workload = Object::Workload(key("fleet"), server.workload());
    server.driver.handle(DriverInput::Watch(shown(&workload)), at(6));
    (server, name)
}

#[test]
fn a_pod_gets_its_draining_labels_with_its_selection_and_no_write_follows() {
    let (mut server, name) = selected(None);
    server.play(6, 60);
    let pod = &server.pods[&name];
    assert!(pod.annotation(CHOSEN_FOR).is_some());
    assert_eq!(pod.labels[LABEL], "false");
    assert_eq!(
        pod.annotation(DRAINING_LABELS),
        Some(r#"{"accepts-players":null}"#)
    );
    assert_eq!(server.corrections, 0);
}

#[test]
fn draining_labels_that_a_webhook_removes_are_set_ever_more_rarely_and_the_status_says_why() {
    let (mut server, name) = selected(Some(LABEL));
    server.play(6, 606);
    let pod = &server.pods[&name];
    assert!(
        pod.annotation(CHOSEN_FOR).is_some() && !pod.labels.contains_key(LABEL),
        "the selection does not depend on the labels: {pod:#?}"
    );
    // One attempt per second at first, and one every 30 s later.
    let corrections = server.corrections;
    assert!((15..40).contains(&corrections), "{corrections}");
    let (reason, message) = server.condition("ScaleBlocked").unwrap();
    assert_eq!(reason, "WriteFailed");
    assert!(
        message.contains("the API server accepted the write but stored something else"),
        "{message}"
    );
    server.strips = None;
    server.play(606, 660);
    assert_eq!(server.pods[&name].labels[LABEL], "false");
}

#[test]
fn draining_labels_that_another_controller_keeps_changing_are_set_ever_more_rarely() {
    for (times, expected, reported) in [
        (1, 1..2, "HookTemplateMissing"),
        (usize::MAX, 20..34, "WriteFailed"),
    ] {
        let (mut server, name) = selected(None);
        let is_set = |pod: &Pod| pod.labels.get(LABEL).is_some_and(|value| value == "false");
        let written = contend(&mut server, times, is_set, |pod| {
            pod.labels.insert(LABEL.to_owned(), "true".to_owned());
        });
        assert!(expected.contains(&written), "{written}");
        if times == 1 {
            server.play(606, 640);
            assert!(is_set(&server.pods[&name]), "the last change is corrected");
        }
        let (reason, message) = server.condition("ScaleBlocked").unwrap();
        assert_eq!(reason, reported, "{message}");
        assert!(times == 1 || message.contains("another client"), "{message}");
    }
}
