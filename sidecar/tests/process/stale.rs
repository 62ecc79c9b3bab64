//! Reports that stop.

use std::thread::sleep;
use std::time::Duration;

use crate::wait::at_once;
use crate::world::{SOURCES, Setup, World};

#[test]
fn a_number_becomes_stale_and_stays_so() {
    let setups = SOURCES.into_iter().flat_map(|source| {
        ["udp", "none"].map(|protocol| Setup {
            protocol,
            ..Setup::brief(source)
        })
    });
    at_once(setups, |setup| {
        let mut world = World::start(setup);
        world.know(0);
        world.ask_until("Stale");
        world.stays_unknown();
        assert_eq!(world.ask().reason(), "Stale");
        // A report is the cure.
        world.know(1);
    });
}

#[test]
fn the_same_number_again_keeps_it_fresh() {
    at_once(SOURCES, |source| {
        let mut world = World::start(Setup::brief(source));
        world.know(2);
        // Twice as long as one report lasts: a number at the end proves that later reports count.
        for _ in 0..40 {
            sleep(Duration::from_millis(100));
            world.say(2);
            world.ask();
        }
        world.know(2);
    });
}

#[test]
fn an_unreadable_report_does_not_extend_the_life_of_the_last_number() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        world.know(0);
        world.say_bytes(b"abc", None);
        world.stays_unknown();
    });
}
