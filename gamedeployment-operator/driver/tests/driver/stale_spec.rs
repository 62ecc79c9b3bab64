//! Pods go without a hook only if the API server confirms that the spec has none: the watch may be minutes late.

use gamedeployment_driver::DriverInput;
use gamedeployment_driver::watch_event::{Event, WatchEvent};
use serde_json::json;

use crate::kit::*;
use crate::server::Server;

/// A workload with five pods that is scaled down to one.
fn scaled_down() -> Server {
    let mut server = Server::new(5);
    server.play(2, 6);
    assert_eq!(server.pods.len(), 5);
    // Players may be on them.
    for name in server.pods.keys().cloned().collect::<Vec<_>>() {
        server.version += 1;
        let version = server.version.to_string();
        let pod = server.pods.get_mut(&name).unwrap();
        pod.node = Some("node-1".to_owned());
        pod.resource_version = version;
        server.show(&name);
    }
    server.fleet.spec.replicas = Some(1);
    server.fleet.metadata.generation = Some(2);
    let event = Event::Apply(key("fleet"), server.workload());
    server
        .driver
        .handle(DriverInput::Watch(WatchEvent::Workload(event)), at(6));
    server.workload_reads = 0;
    server
}

#[test]
fn one_read_confirms_that_pods_may_go_without_a_hook() {
    let mut server = scaled_down();
    server.play(6, 10);
    assert_eq!((server.deleted.len(), server.workload_reads), (4, 1));
}

#[test]
fn a_hook_that_the_watch_does_not_show_yet_is_found_before_a_pod_goes() {
    let mut server = scaled_down();
    let hook = json!({ "hook": { "templateName": "players" } });
    server.fleet.spec.pre_delete_update_strategy = serde_json::from_value(hook).unwrap();
    server.fleet.metadata.generation = Some(3);
    drop(server.workload());
    server.play(6, 60);
    assert_eq!(server.deleted, [] as [&str; 0]);
    let (reason, message) = server.condition("ScaleBlocked").unwrap();
    assert_eq!(reason, "HookTemplateMissing", "{message}");
}

/// Neither an annotation nor the status changes the generation.
#[test]
fn a_read_that_shows_an_abort_confirms_nothing() {
    let mut server = scaled_down();
    let request = (
        "tkex.tencent.com/abort-requested".to_owned(),
        "fleet-1=1".to_owned(),
    );
    server
        .fleet
        .metadata
        .annotations
        .get_or_insert_default()
        .extend([request]);
    drop(server.workload());
    server.play(6, 10);
    // The decision on the workload that was read is confirmed by a second read.
    assert_eq!((server.deleted.len(), server.workload_reads), (4, 2));
}

#[test]
fn a_workload_that_cannot_be_read_loses_no_pod_and_says_so() {
    let mut server = scaled_down();
    server.hides_workload = true;
    server.play(6, 60);
    assert_eq!(server.deleted, [] as [&str; 0]);
    let (reason, message) = server.condition("ScaleBlocked").unwrap();
    assert!(
        reason == "WriteFailed" && message.contains("gamedeployments is forbidden"),
        "{message}"
    );
}
