//! Tests that an unsuccessful verdict, a failed notice and an unreadable object are each reported once.

use std::time::Duration;

use gamedeployment_core::gate::Run;
use gamedeployment_driver::request::{ApiCall, DriverOutput, Request, RequestError, Response};
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput};
use serde_json::json;
use shared_api::HookRun;
use shared_api::reason::WorkloadReason;

use crate::kit::*;

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
            DriverInput::Watch(WatchEvent::Run(Event::Apply(key("run"), run), None)),
            at(3),
        );
        while let Some(output) = driver.poll(at(3)) {
            verdicts += usize::from(matches!(output, DriverOutput::HookUnsuccessful(_)));
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
    let news = |workload| DriverInput::Watch(WatchEvent::Workload(Event::Apply(key("fleet"), workload)));
    let refuses = |requests: &[Request]| {
        requests
            .iter()
            .filter(|request| matches!(request.call, ApiCall::ReportUnreadable(..)))
            .map(|request| request.id)
            .collect::<Vec<_>>()
    };
    driver.handle(news(unreadable()), at(3));
    let sent = requests(&mut driver, at(3));
    let [id] = refuses(&sent)[..] else {
        panic!("{sent:#?}")
    };
    driver.handle(
        DriverInput::Response(id, Err(RequestError::Unknown("no answer".to_owned()))),
        at(4),
    );
    assert!(requests(&mut driver, at(4)).is_empty());
    assert_eq!(driver.deadline(), Some(Duration::from_secs(5)));
    let sent = requests(&mut driver, at(5));
    let [id] = refuses(&sent)[..] else {
        panic!("{sent:#?}")
    };
    driver.handle(DriverInput::Response(id, Ok(Response::Done)), at(5));
    driver.handle(news(unreadable()), at(6));
    assert!(requests(&mut driver, at(6)).is_empty(), "it is told twice");
}

#[test]
fn a_notice_that_fails_is_reported_once_about_its_pod() {
    let notice = |uid: &str, phase: &str| {
        let run: HookRun = serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1",
            "kind": "HookRun",
            "metadata": {
                "name": "notice-hook-old-a-bye-01", "namespace": "games", "uid": uid, "resourceVersion": "5",
                "labels": { "hookrun-type": "notice-step", "tkex.tencent.com/pod-uid": "a" },
                "ownerReferences": [
                    { "apiVersion": "v", "kind": "GameDeployment", "name": "fleet", "uid": "w", "controller": true },
                ],
            },
            "spec": { "metrics": [] },
            "status": { "phase": phase, "message": "no answer" },
        }))
        .unwrap();
        Run::read(&run)
    };
    let reported = |driver: &mut Driver, event: Event<Run>| {
        driver.handle(DriverInput::Watch(WatchEvent::Run(event, None)), at(3));
        let mut reported = Vec::new();
        while let Some(output) = driver.poll(at(3)) {
            if let DriverOutput::EmitWarnings(target, warnings) = output {
                assert_eq!(target.key, key("fleet"));
                let notices = warnings.into_iter();
                reported.extend(notices.filter(|warning| warning.reason == WorkloadReason::NoticeFailed));
            }
        }
        reported
    };
    let name = || key("notice-hook-old-a-bye-01");
    let apply = |run: Run| Event::Apply(name(), run);
    let mut driver = driver(1);
    let pod = pod_with_a_player("1", &json!({}));
    driver.handle(
        DriverInput::Watch(WatchEvent::Pod(Event::Apply(key("fleet-a"), pod))),
        at(2),
    );
    assert_eq!(reported(&mut driver, apply(notice("1", "Running"))), []);
    let [warning] = &reported(&mut driver, apply(notice("1", "Failed")))[..] else {
        panic!("it is not reported")
    };
    assert_eq!(warning.pod.as_ref().unwrap().uid, "a");
    assert!(
        warning.message.contains("is Failed: no answer"),
        "{}",
        warning.message
    );
    assert_eq!(
        reported(&mut driver, apply(notice("1", "Failed"))),
        [],
        "it was reported"
    );
    // Another one that has this name, and one that is listed first, were not known before.
    assert_eq!(reported(&mut driver, apply(notice("2", "Error"))), []);
    assert_eq!(reported(&mut driver, apply(notice("3", "Running"))), []);
    let unmeasured = reported(&mut driver, apply(notice("3", "Successful")));
    assert!(
        unmeasured[0].message.contains("it has no measured success"),
        "{unmeasured:?}"
    );
    driver.handle(
        DriverInput::Watch(WatchEvent::Run(Event::Delete(name(), "3".to_owned()), None)),
        at(3),
    );
    assert_eq!(
        reported(&mut driver, Event::InitApply(name(), notice("4", "Failed"))),
        []
    );
}
