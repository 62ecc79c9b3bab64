//! The wall clock is set forward, or the machine was suspended: the monotonic clock does not show it.

use std::time::Duration;

use gamedeployment_driver::DriverInput;
use gamedeployment_driver::watch_event::{Event, WatchEvent};
use jiff::SignedDuration;
use runtime_core::clock::Now;

use crate::kit::*;
use crate::server::Server;

#[test]
fn a_wall_clock_that_is_set_forward_is_noticed_within_thirty_seconds() {
    let mut server = Server::new(1);
    server.fleet.spec.min_ready_seconds = Some(3600);
    server.fleet.metadata.generation = Some(2);
    let event = Event::Apply(key("fleet"), server.workload());
    let event = DriverInput::Watch(WatchEvent::Workload(event));
    server.driver.handle(event, at(1));
    server.play(2, 4);
    let name = server.pods.keys().next().unwrap().clone();
    let pod = server.pods.get_mut(&name).unwrap();
    pod.resource_version = "1000".to_owned();
    pod.phase = gamedeployment_core::pod::PodPhase::Running;
    pod.ready_since = Some(at(4).wall);
    server.show(&name);
    server.play(4, 5);
    let available = |server: &Server| server.fleet.status.as_ref().unwrap().available_replicas;
    assert_eq!(available(&server), 0);
    server.show_all();
    server.play(5, 6);
    // Only its own wake-up lets the driver decide.
    let wake = server.driver.deadline().unwrap();
    assert!(wake > Duration::from_secs(20), "nothing else is due: {wake:?}");
    assert!(wake <= Duration::from_secs(6 + 30), "{wake:?}");
    server.play_at(Now {
        wall: at(0).wall + SignedDuration::from_hours(2),
        elapsed: wake,
        monotonic: wake,
    });
    assert_eq!(available(&server), 1);
}
