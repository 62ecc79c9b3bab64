//! Game servers that end, and others that take their port.

use std::io::Write;
use std::net::UdpSocket;

use crate::http::{connect, exchange};
use crate::wait::at_once;
use crate::world::{SOURCES, Setup, Source, World};

/// Setups with every source and with every protocol of the game port.
fn setups() -> [Setup; 4] {
    let tcp = Setup {
        protocol: "tcp",
        ..Source::Udp.into()
    };
    [Source::Udp.into(), Source::Http.into(), Source::File.into(), tcp]
}

#[test]
fn nothing_is_known_before_the_first_report() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        let answer = world.ask();
        let is_missing = source == Source::File && answer.reason() == "Unreadable";
        assert!(answer.reason() == "NoReport" || is_missing, "{answer:?}");
        world.stays_unknown();
        world.know(4);
        assert_eq!(world.ask().number(), Some(4));
    });
}

#[test]
fn a_killed_game_server_is_gone_at_the_very_next_request() {
    at_once(setups(), |setup| {
        let mut world = World::start(setup);
        for round in 0..3 {
            world.know(round);
            world.kill_game();
            assert_eq!(world.ask().reason(), "GameGone", "{setup:?}");
            assert_eq!(world.ask().reason(), "GameGone", "{setup:?}");
            world.start_game();
            assert_eq!(world.ask().reason(), "GameRestarted", "{setup:?}");
        }
        world.stays_unknown();
        world.know(5);
    });
}

#[test]
fn a_game_server_that_closes_its_port_is_gone_although_its_process_lives() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    world.game().close();
    assert_eq!(world.ask().reason(), "GameGone");
    world.say(0);
    world.record(None);
    world.stays_unknown();
}

#[test]
fn a_game_server_that_is_replaced_between_two_looks_is_noticed() {
    at_once(setups(), |setup| {
        let mut world = World::start(setup);
        for round in 0..4 {
            world.know(round);
            world.replace_game();
            assert_eq!(world.ask().reason(), "GameRestarted", "{setup:?}");
        }
        world.stays_unknown();
        world.know(9);
    });
}

#[test]
fn a_report_and_a_replacement_at_once_are_not_mixed_up() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        for _ in 0..8 {
            world.know(3);
            // No request in between: the sidecar may find the report and the next game server in one look.
            world.say(0);
            world.replace_game();
            let answer = world.ask();
            assert_eq!(answer.number(), None, "{source:?}: {answer:?}");
        }
        world.stays_unknown();
        world.know(1);
    });
}

#[test]
fn reports_of_others_do_not_count_while_there_is_no_game_server() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    world.kill_game();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..50 {
        other.send_to(b"0", world.report()).unwrap();
        assert_eq!(world.ask().reason(), "GameGone");
    }

    let mut world = World::start(Source::Http);
    world.know(0);
    world.kill_game();
    for _ in 0..50 {
        let response = exchange(world.report(), "PUT", "/players", b"0").unwrap();
        assert_eq!(response.status, 503, "{response:?}");
        assert!(response.body.contains("GameGone"), "{response:?}");
        assert_eq!(world.ask().reason(), "GameGone");
    }

    let mut world = World::start(Source::File);
    world.know(0);
    world.kill_game();
    for _ in 0..50 {
        std::fs::write(world.file(), "0").unwrap();
        assert_eq!(world.ask().number(), None);
    }
    world.ask_until("GameGone");
    // The file that was written while there was no game server says nothing about the next one.
    world.start_game();
    world.stays_unknown();
    world.know(2);
}

#[test]
fn a_report_that_a_game_server_did_not_finish_does_not_count() {
    let mut world = World::start(Source::Http);
    world.know(3);
    let mut half = connect(world.report()).unwrap();
    half.write_all(b"PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n0")
        .unwrap();
    drop(half);
    world.replace_game();
    world.stays_unknown();
    world.know(1);
}

#[test]
fn a_report_that_began_before_the_restart_does_not_count_after_it() {
    let mut world = World::start(Source::Http);
    world.know(3);
    // From a helper of the game server, which outlives it.
    let mut slow = connect(world.report()).unwrap();
    slow.write_all(b"PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n0")
        .unwrap();
    world.ask();
    world.replace_game();
    world.stays_unknown();
    slow.write_all(b"\n").unwrap();
    world.stays_unknown();
    world.know(1);
}
