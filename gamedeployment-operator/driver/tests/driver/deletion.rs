//! The finalizer of a deleted workload is removed only if the API server confirms that no pod is left: the watch may be
//! minutes late.

use gamedeployment_driver::request::Object;
use gamedeployment_driver::{Driver, DriverInput, DriverLimits};
use serde_json::json;
use shared_api::GameDeployment;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use crate::kit::*;
use crate::server::Server;

/// A workload that is being deleted, without a hook.
fn deleted() -> GameDeployment {
    let mut fleet = fleet(1);
    let metadata = &mut fleet.metadata;
    metadata.deletion_timestamp = serde_json::from_value(json!("1970-01-01T00:00:01Z")).unwrap();
    metadata.finalizers = Some(vec![ASK_BEFORE_REMOVAL.to_owned()]);
    fleet.spec.disruption = serde_json::from_value(json!({ "policy": "Ask" })).unwrap();
    fleet
}

/// A driver that knows the workload and no pod.
fn without_pods() -> Server {
    let mut server = Server::new(1);
    server.fleet = deleted();
    server.driver = driver_of(Driver::new(false, DriverLimits::default()), deleted());
    server
}

fn has_finalizer(server: &Server) -> bool {
    server.fleet.metadata.finalizers.is_some()
}

#[test]
fn the_finalizer_is_removed_once_a_list_shows_no_pod() {
    let mut server = without_pods();
    server.play(2, 4);
    assert!(!has_finalizer(&server));
    assert!(server.lists > 0);
}

#[test]
fn a_pod_that_the_watch_does_not_show_yet_keeps_the_finalizer() {
    let mut server = without_pods();
    let pod = pod_with_a_player("5", &json!({}));
    server.pods.insert(pod.name.clone(), pod);
    // The workload cannot be read, so the pod is not deleted.
    server.hides_workload = true;
    server.play(2, 60);
    assert!(has_finalizer(&server));
    assert_eq!(server.deleted, [] as [&str; 0]);
    let (reason, message) = server.condition("Progressing").unwrap();
    assert_eq!(reason, "Deleting");
    assert!(
        message.starts_with("the GameDeployment is being deleted; 1 pod is left"),
        "{message}"
    );
    server.hides_workload = false;
    server.play(60, 120);
    assert_eq!(server.deleted, ["fleet-a"]);
    assert!(!has_finalizer(&server));
}

#[test]
fn without_an_answer_to_the_list_the_finalizer_stays_and_the_status_says_why() {
    let mut server = without_pods();
    server.shows_pods = false;
    server.play(2, 60);
    assert!(has_finalizer(&server));
    let (reason, message) = server.condition("ScaleBlocked").unwrap();
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("WriteFailed", "pods is forbidden (403)")
    );
    server.shows_pods = true;
    server.play(60, 120);
    assert!(!has_finalizer(&server));
}

/// A workload that is being deleted, and its pod on a node.
fn with_a_pod() -> (Server, String) {
    let mut server = Server::new(1);
    server.play(2, 6);
    let name = server.pods.keys().next().unwrap().clone();
    server.pods.get_mut(&name).unwrap().node = Some("node-1".to_owned());
    server.show(&name);
    let status = server.fleet.status.take();
    server.fleet = GameDeployment { status, ..deleted() };
    let workload = Object::Workload(key("fleet"), server.workload());
    server.driver.handle(DriverInput::Watch(shown(&workload)), at(6));
    (server, name)
}

#[test]
fn a_deletion_confirms_that_pods_without_a_hook_may_go() {
    let (mut server, name) = with_a_pod();
    // The API server shows another deletion than the watch: that of the next workload with this name.
    let uid = server.fleet.metadata.uid.replace("other".to_owned());
    server.play(6, 8);
    assert_eq!(server.deleted, [] as [&str; 0]);
    server.fleet.metadata.uid = uid;
    server.play(8, 60);
    assert_eq!(server.deleted, [name]);
    assert!(!has_finalizer(&server));
}

/// A second deletion changes neither the generation nor the time of the first.
#[test]
fn a_read_that_shows_that_the_pods_are_orphaned_confirms_nothing() {
    let (mut server, _) = with_a_pod();
    let finalizers = [ASK_BEFORE_REMOVAL, "orphan"].map(str::to_owned);
    server.fleet.metadata.finalizers = Some(finalizers.into());
    drop(server.workload());
    server.play(6, 60);
    assert_eq!(server.deleted, [] as [&str; 0]);
    assert!(has_finalizer(&server));
}
