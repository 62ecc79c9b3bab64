//! The API server accepts a write and stores something else: an older CRD drops fields, or a mutating webhook
//! changes them. Or another client changes what was stored, again and again.

use std::time::Duration;

use gamedeployment_core::plan::Action;
use gamedeployment_driver::request::{ApiCall, Object, ObjectKind, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use runtime_core::clock::Now;
use serde_json::json;
use shared_api::GameDeploymentStatus;
use shared_api::names::pod::SAFE_TO_EVICT;

use crate::kit::*;
use crate::server::Server;

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

/// Plays ten minutes with a pod on which another client sets an annotation to `true`, at once after each write of the
/// operator, but at most `times`. Returns the number of writes by the operator, and the condition that it reports.
fn contended(times: usize) -> (usize, Option<(String, String)>) {
    let mut server = Server::new(1);
    let spec = &mut server.fleet.spec;
    spec.disruption = serde_json::from_value(json!({ "autoscalerAnnotations": "Managed" })).unwrap();
    spec.pre_delete_update_strategy =
        serde_json::from_value(json!({ "hook": { "templateName": "ask" } })).unwrap();
    let pod = pod_with_a_player("5", &json!({}));
    let name = pod.name.clone();
    server.pods.insert(name.clone(), pod);
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), server.fleet.clone());
    server.show_all();
    let mut written = 0;
    for second in 2..600 {
        server.play(second, second + 1);
        if server.pods[&name].annotation(SAFE_TO_EVICT) != Some("false") {
            continue;
        }
        if written == times {
            break;
        }
        written += 1;
        let changed = server.change_pod(&name, |pod| {
            pod.annotations
                .insert(SAFE_TO_EVICT.to_owned(), "true".to_owned());
        });
        assert!(changed.is_ok());
        let event = Event::Apply(key(&name), server.pods[&name].clone());
        server.watch(WatchEvent::Pod(event), second);
    }
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
