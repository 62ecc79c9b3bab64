//! The API server accepts a write and stores something else: an older CRD drops fields, or a mutating webhook
//! changes them.

use std::time::Duration;

use gamedeployment_core::plan::Action;
use gamedeployment_driver::request::{ApiCall, Object, ObjectKind, RequestError, Response};
use gamedeployment_driver::watch_event::Workload;
use gamedeployment_driver::{Driver, DriverInput};
use runtime_core::clock::Now;
use shared_api::GameDeploymentStatus;

use crate::kit::*;

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
