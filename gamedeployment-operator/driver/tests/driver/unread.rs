//! Objects that cannot be read back after a write with an unknown outcome: the role lacks `get`, or the answer
//! cannot be parsed.

use gamedeployment_driver::DriverInput;
use gamedeployment_driver::watch_event::{Event, WatchEvent};

use crate::kit::*;
use crate::server::Server;

/// A workload whose pods cannot be read.
fn unread(replicas: i32) -> Server {
    let mut server = Server::new(replicas);
    server.shows_pods = false;
    server
}

#[test]
fn a_pod_that_cannot_be_read_back_is_named_and_holds_up_no_other() {
    let mut server = unread(3);
    server.lost_creations = 1;
    server.play(2, 9);
    assert_eq!(server.pods.len(), 3, "the others are created");
    let lost = server.unread.clone();
    assert_eq!(lost.len(), 1, "{lost:?}");
    let (reason, message) = server.condition("ScaleBlocked").unwrap();
    assert_eq!(reason, "WriteFailed");
    assert!(
        message.contains(&lost[0]) && message.contains("pods is forbidden (403)"),
        "{message}"
    );
    server.play(9, 600);
    // Reads at 0, 1, 3, 7, 15 and 31 s, then one every 30 s. Another lost answer would add reads of others.
    let of_minute = |minute: u64| server.reads.iter().filter(|at| **at / 60 == minute).count();
    assert!(of_minute(0) <= 8 + 12, "{:?}", server.reads);
    assert_eq!(server.unread.len(), 1, "reported once: {:?}", server.unread);
    assert!(server.condition("ScaleBlocked").is_some());
    // The permission is granted.
    server.shows_pods = true;
    server.play(600, 640);
    assert_eq!(server.condition("ScaleBlocked"), None);
    assert_eq!(server.pods.len(), 3);
}

#[test]
fn a_pod_that_the_watch_shows_is_no_longer_uncertain() {
    let mut server = unread(2);
    server.lost_creations = 1;
    server.play(2, 9);
    assert!(server.condition("ScaleBlocked").is_some());
    let lost = server.unread[0].clone();
    server.show(&lost);
    server.play(9, 60);
    assert_eq!(server.condition("ScaleBlocked"), None);
    assert_eq!(server.pods.len(), 2);
}

#[test]
fn another_pod_goes_instead_of_one_that_cannot_be_read() {
    let mut server = unread(3);
    server.mutes_first = true;
    server.play(2, 9);
    let mute = server.mute.clone().unwrap();
    assert_eq!(server.unread, std::slice::from_ref(&mute));
    let (reason, message) = server.condition("UpdateBlocked").unwrap();
    assert!(reason == "WriteFailed" && message.contains(&mute), "{message}");
    server.fleet.spec.replicas = Some(1);
    server.fleet.metadata.generation = Some(2);
    let event = Event::Apply(key("fleet"), server.workload());
    server
        .driver
        .handle(DriverInput::Watch(WatchEvent::Workload(event)), at(9));
    server.play(9, 20);
    assert_eq!(server.pods.keys().collect::<Vec<_>>(), [&mute]);
    // Every pod must go now, but nothing can be done to this one.
    server.fleet.spec.replicas = Some(0);
    server.fleet.metadata.generation = Some(3);
    let event = Event::Apply(key("fleet"), server.workload());
    server
        .driver
        .handle(DriverInput::Watch(WatchEvent::Workload(event)), at(20));
    server.play(20, 100);
    assert_eq!(server.deleted.len(), 2, "{:?}", server.deleted);
    server.shows_pods = true;
    server.play(100, 140);
    assert_eq!(server.deleted.len(), 3, "{:?}", server.deleted);
}
