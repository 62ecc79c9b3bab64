//! Checks of the removal guard: when they are sent, and how their results are reported.

use gamedeployment_core::guard_check::GuardCheck;
use gamedeployment_driver::request::RequestError;
use gamedeployment_driver::watch_event::{Event, WatchEvent};
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use serde_json::json;
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_GUARD_ASK};
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use crate::kit::*;
use crate::server::Server;

/// A guarded workload with one pod.
fn guarded(response: Result<GuardCheck, RequestError>) -> Server {
    let mut server = Server::new(1);
    server.fleet.metadata.finalizers = Some(vec![ASK_BEFORE_REMOVAL.to_owned()]);
    server.fleet.spec.disruption = serde_json::from_value(json!({ "policy": "Ask" })).unwrap();
    server.fleet.spec.pre_delete_update_strategy =
        serde_json::from_value(json!({ "hook": { "templateName": "ask" } })).unwrap();
    let mut pod = pod_with_a_player("5", &json!({}));
    pod.labels
        .insert(REMOVAL_GUARD.to_owned(), REMOVAL_GUARD_ASK.to_owned());
    server.pods.insert(pod.name.clone(), pod);
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), server.fleet.clone());
    server.show_all();
    server.guarded = response;
    server
}

/// Adds a pod like the first one, which the watch does not show yet.
fn with_another_pod(mut server: Server) -> Server {
    let mut other = server.pods["fleet-a"].clone();
    (other.name, other.uid) = ("fleet-b".to_owned(), "b".to_owned());
    server.pods.insert(other.name.clone(), other);
    server
}

/// Returns the condition as its status and reason.
fn condition(server: &Server) -> String {
    let mut conditions = server.fleet.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.find(|known| known.type_ == "RemovalsGuarded");
    found.map_or_else(String::new, |found| format!("{} {}", found.status, found.reason))
}

#[test]
fn a_guard_in_effect_is_checked_every_ten_minutes() {
    let mut server = guarded(Ok(GuardCheck::Guarded));
    server.play(2, 1803);
    assert_eq!(server.checks, [2, 602, 1202, 1802]);
    assert_eq!(condition(&server), "True RemovalsGuarded");
}

#[test]
fn a_guard_that_is_not_in_effect_is_checked_every_minute() {
    let incomplete = GuardCheck::Incomplete("webhook evictions is missing".to_owned());
    for result in [GuardCheck::NotGuarded, incomplete] {
        let mut server = guarded(Ok(result));
        server.play(2, 63);
        assert_eq!(server.checks, [2, 62]);
        assert_eq!(condition(&server), "False RemovalsNotGuarded");
        server.guarded = Ok(GuardCheck::Guarded);
        server.play(63, 123);
        assert_eq!(server.checks, [2, 62, 122]);
        assert_eq!(condition(&server), "True RemovalsGuarded");
    }
}

/// An API server that restarts fails one or two checks.
#[test]
fn a_failure_is_reported_after_five_attempts_and_then_repeated_every_minute() {
    let refused = RequestError::Refused("failed calling webhook".to_owned());
    let unknown = RequestError::Unknown("no answer".to_owned());
    for error in [refused, unknown, RequestError::Conflict, RequestError::Lapsed] {
        let mut server = guarded(Ok(GuardCheck::Guarded));
        server.play(2, 600);
        server.guarded = Err(error);
        server.play(600, 620);
        assert_eq!(server.checks, [2, 602, 607, 612, 617]);
        assert_eq!(condition(&server), "True RemovalsGuarded");
        server.play(620, 700);
        assert_eq!(server.checks[5..], [622, 682]);
        assert_eq!(condition(&server), "Unknown GuardNotChecked");
        server.guarded = Ok(GuardCheck::Guarded);
        server.play(700, 750);
        assert_eq!(server.checks[7..], [742]);
        assert_eq!(condition(&server), "True RemovalsGuarded");
    }
}

#[test]
fn a_check_with_an_outdated_pod_has_no_result_and_is_repeated() {
    let mut server = guarded(Ok(GuardCheck::NotGuarded));
    let name = "fleet-a".to_owned();
    let pod = server.pods.get_mut(&name).unwrap();
    pod.resource_version = "6".to_owned();
    server.play(2, 8);
    assert_eq!(server.checks, [2, 7]);
    assert_eq!(condition(&server), "");
    server.show(&name);
    server.play(8, 13);
    assert_eq!(server.checks, [2, 7, 12]);
    assert_eq!(condition(&server), "False RemovalsNotGuarded");
}

#[test]
fn the_next_attempt_uses_another_pod() {
    let mut server = with_another_pod(guarded(Ok(GuardCheck::Guarded)));
    server.fleet.spec.replicas = Some(2);
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), server.fleet.clone());
    server.show_all();
    // The watch does not show that one of them has changed.
    let pod = server.pods.get_mut("fleet-a").unwrap();
    pod.resource_version = "6".to_owned();
    server.play(2, 13);
    assert!(server.checks.len() <= 2, "{:?}", server.checks);
    assert_eq!(condition(&server), "True RemovalsGuarded");
}

#[test]
fn a_guarded_pod_that_others_delete_causes_a_check() {
    let mut server = with_another_pod(guarded(Ok(GuardCheck::Guarded)));
    server.show_all();
    server.play(2, 100);
    assert_eq!(server.checks, [2]);
    server.guarded = Ok(GuardCheck::NotGuarded);
    let lost = server.pods.remove("fleet-b").unwrap();
    let gone = Event::Delete(key(&lost.name), lost.uid.clone());
    server
        .driver
        .handle(DriverInput::Watch(WatchEvent::Pod(gone)), at(100));
    server.play(100, 103);
    assert_eq!(server.checks, [2, 100]);
    assert_eq!(condition(&server), "False RemovalsNotGuarded");
}
