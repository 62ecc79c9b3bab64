//! Order of decisions: workloads take turns.

use gamedeployment_driver::request::DriverOutput;
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use gamedeployment_driver::{Driver, DriverInput};

use crate::kit::*;

/// Shows the driver another state of a workload that cannot be read. Its decision is quick, and is reported.
fn show_unreadable(driver: &mut Driver, name: &str, version: u32) {
    let mut metadata = fleet(0).metadata;
    metadata.name = Some(name.to_owned());
    metadata.uid = Some(name.to_owned());
    metadata.resource_version = Some(version.to_string());
    let workload = Workload::unreadable(metadata, format!("state {version}"));
    let event = WatchEvent::Workload(Event::Apply(key(name), workload));
    driver.handle(DriverInput::Watch(event), at(2));
}

#[test]
fn a_workload_that_changes_before_each_decision_delays_no_other() {
    let mut driver = driver(0);
    for version in 10..20 {
        // Before the other one in the order of names.
        show_unreadable(&mut driver, "again-and-again", version);
        if let Some(DriverOutput::Decided(decided)) = driver.poll(at(2)) {
            assert_eq!(decided.target.key, key("fleet"));
            return;
        }
    }
    panic!("no decision: {}", driver.describe());
}

#[test]
fn turns_begin_anew_after_the_last_workload() {
    let mut driver = driver(0);
    while driver.poll(at(2)).is_some() {}
    let mut decided = Vec::new();
    for version in 10..40 {
        for name in ["a", "b", "c"] {
            show_unreadable(&mut driver, name, version);
        }
        if let Some(DriverOutput::Unreadable((_, name), _)) = driver.poll(at(2)) {
            decided.push(name);
        }
    }
    assert!(decided.len() >= 6, "{decided:?}");
    for (number, name) in decided.iter().enumerate() {
        assert_eq!(name, ["a", "b", "c"][number % 3], "{decided:?}");
    }
}
