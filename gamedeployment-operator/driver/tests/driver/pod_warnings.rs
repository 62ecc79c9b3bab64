//! Warnings about pods that other clients delete, and about removal requests that have expired when they arrive.

use gamedeployment_core::pod::Pod;
use gamedeployment_driver::request::DriverOutput;
use gamedeployment_driver::watch_event::{Event, WatchEvent};
use shared_api::names::pod as names;
use shared_api::reason::WorkloadReason;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use crate::eviction_kit::with_a_hidden_pod;
use crate::kit::*;

/// Shows these versions of the pod of a guarded workload at this second, and then its deletion if `is_deleted`. Returns
/// the warnings, those about lost pods first.
fn warned(versions: &[&dyn Fn(&mut Pod)], is_deleted: bool, second: u64) -> [Vec<String>; 2] {
    let (mut server, pod) = with_a_hidden_pod();
    let key = key(&pod.name);
    for (number, change) in versions.iter().enumerate() {
        let mut pod = pod.clone();
        pod.resource_version = (1000 + number).to_string();
        change(&mut pod);
        server.watch(WatchEvent::Pod(Event::Apply(key.clone(), pod)), second);
    }
    if is_deleted {
        let gone = Event::Delete(key, pod.uid.clone());
        server.watch(WatchEvent::Pod(gone), second);
    }
    let [mut lost, mut emitted] = [Vec::new(), Vec::new()];
    while let Some(output) = server.driver.poll(at(second)) {
        match output {
            DriverOutput::PodLost(_, warning) => lost.push(format!("{} {}", warning.reason, warning.message)),
            DriverOutput::EmitWarnings(_, warnings) => {
                let reasons = [WorkloadReason::HookSkipped, WorkloadReason::RemovalRequestExpired];
                let warnings = warnings
                    .iter()
                    .filter(|warning| reasons.contains(&warning.reason));
                emitted.extend(warnings.map(|warning| format!("{} {}", warning.reason, warning.message)));
            }
            _ => {}
        }
    }
    [lost, emitted]
}

fn unchanged(_: &mut Pod) {}

/// Annotates a pod like `kubectl game skip`.
fn skip(pod: &mut Pod) {
    let notes = [
        (names::SKIP_HOOK, pod.uid.clone()),
        (names::SKIP_HOOK_REASON, "it hangs".to_owned()),
        (names::SKIP_HOOK_BY, "jane".to_owned()),
    ];
    let notes = notes.map(|(key, value)| (key.to_owned(), value));
    pod.annotations.extend(notes);
}

/// Returns a change that records a removal request at this second.
fn request(second: u64) -> impl Fn(&mut Pod) {
    move |pod| {
        let mut requests = RemovalRequests::default();
        let type_ = RemovalType::Eviction;
        requests.record("drain", type_, at(second).wall).unwrap();
        pod.annotations
            .insert(names::REMOVAL_REQUESTED.to_owned(), requests.text());
    }
}

#[test]
fn a_pod_whose_hooks_are_skipped_is_not_lost_when_another_client_deletes_it() {
    let [lost, emitted] = warned(&[&unchanged], true, 10);
    assert!(
        lost.len() == 1 && lost[0].starts_with("PodLostUngated pod fleet-a was deleted"),
        "{lost:?}"
    );
    assert!(emitted.is_empty(), "{emitted:?}");
    let [lost, emitted] = warned(&[&unchanged, &skip], true, 10);
    assert!(lost.is_empty(), "{lost:?}");
    let text = "HookSkipped pod fleet-a: its hooks are skipped by annotation tkex.tencent.com/skip-hook; reason: it \
                hangs; by: jane";
    assert_eq!(emitted, [text]);
}

#[test]
fn a_request_that_has_expired_when_it_arrives_is_reported_once() {
    let expired = |versions: &[&dyn Fn(&mut Pod)]| {
        let [lost, emitted] = warned(versions, false, 2000);
        assert!(lost.is_empty(), "{lost:?}");
        emitted
    };
    let text = "RemovalRequestExpired the removal request of drain was recorded at 1970-01-01T00:01:40Z, but it is \
                1970-01-01T00:33:20Z by the clock of gamedeployment-operator, so the request has already expired, and \
                pod fleet-a is kept; either gamedeployment-operator could not watch the pod in the meantime, or its \
                clock and that of hookgate-admission differ";
    assert_eq!(expired(&[&unchanged, &request(100)]), [text]);
    assert_eq!(
        expired(&[&unchanged, &request(100), &request(900)]),
        [text],
        "repeated"
    );
    let none: [&str; 0] = [];
    assert_eq!(expired(&[&unchanged, &request(1101)]), none, "valid");
    assert_eq!(
        expired(&[&request(100)]),
        none,
        "recorded before it was first seen"
    );
}
