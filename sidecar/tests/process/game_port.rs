//! The sockets that count as the game server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

use crate::game::Game;
use crate::wait::{at_once, eventually};
use crate::world::{SOURCES, Setup, Source, World};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn setup(protocol: &'static str, ip: IpAddr) -> Setup {
    Setup {
        protocol,
        ip,
        ..Source::Udp.into()
    }
}

/// Closes the game port, and lets something else have its number.
fn without_game_port(protocol: &'static str) -> World {
    let mut world = World::start(setup(protocol, LOOPBACK));
    world.know(0);
    world.game().close();
    assert_eq!(world.ask().reason(), "GameGone");
    world
}

/// Checks that nobody holds the game port, whatever is reported.
fn is_gone(world: &mut World) {
    for _ in 0..5 {
        world.say(0);
        world.record(None);
        assert_eq!(world.ask().reason(), "GameGone");
    }
}

#[test]
fn every_address_of_the_port_counts() {
    let v6 = [Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED];
    let v4 = [
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::new(127, 1, 2, 3),
    ];
    let mut all: Vec<IpAddr> = v4.map(IpAddr::from).into();
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        all.extend(v6.map(IpAddr::from));
    }
    at_once(["udp", "tcp"], |protocol| {
        for ip in &all {
            let mut world = World::start(setup(protocol, *ip));
            world.know(0);
            world.replace_game();
            assert_eq!(world.ask().reason(), "GameRestarted", "{protocol} {ip}");
            world.know(1);
            world.kill_game();
            assert_eq!(world.ask().reason(), "GameGone", "{protocol} {ip}");
        }
    });
}

#[test]
fn the_other_protocol_and_the_next_port_do_not_count() {
    at_once([("udp", "tcp"), ("tcp", "udp")], |(protocol, other)| {
        let mut world = without_game_port(protocol);
        let address = SocketAddr::new(LOOPBACK, world.port);
        world.game().bind(other, address);
        is_gone(&mut world);
        for port in [address.port() - 1, address.port() + 1] {
            let mut next = Game::start();
            // Another program may hold it, which makes no difference here.
            let _ = next.try_bind(protocol, SocketAddr::new(LOOPBACK, port));
            is_gone(&mut world);
        }
    });
}

#[test]
fn an_outgoing_connection_from_the_port_does_not_count() {
    let mut world = without_game_port("tcp");
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = SocketAddr::new(LOOPBACK, world.port);
    world.game().connect(from, elsewhere.local_addr().unwrap());
    let (_connection, peer) = elsewhere.accept().unwrap();
    assert_eq!(peer, from);
    is_gone(&mut world);
}

#[test]
fn connections_of_players_do_not_count() {
    let mut world = World::start(setup("tcp", LOOPBACK));
    world.know(2);
    let address = SocketAddr::new(LOOPBACK, world.port);
    // A player comes and goes: the same game server.
    let player = TcpStream::connect(address).unwrap();
    world.game().accept();
    assert_eq!(world.ask().number(), Some(2));
    let waiting = TcpStream::connect(address).unwrap();
    assert_eq!(world.ask().number(), Some(2));
    world.game().close();
    assert_eq!(world.ask().number(), Some(2));
    world.say(2);
    world.game().accept();
    // The game server ends, and a connection with a player is still there.
    world.kill_game();
    assert_eq!(world.ask().reason(), "GameGone");
    world.start_game();
    assert_eq!(world.ask().reason(), "GameRestarted");
    drop((player, waiting));
    world.stays_unknown();
    world.know(3);
}

#[test]
fn a_second_socket_on_the_port_voids_and_so_does_its_end() {
    at_once(["udp", "tcp"], |protocol| {
        let mut world = World::start(setup(protocol, LOOPBACK));
        world.know(1);
        let second = SocketAddr::from(([127, 0, 0, 2], world.port));
        world.game().bind(protocol, second);
        assert_eq!(world.ask().reason(), "GameRestarted", "{protocol}");
        world.know(2);
        world.game().close();
        assert_eq!(world.ask().reason(), "GameRestarted", "{protocol}");
        world.stays_unknown();
        world.know(3);
    });
}

#[test]
fn a_port_that_is_opened_anew_by_the_same_process_is_a_restart() {
    let mut world = World::start(setup("udp", LOOPBACK));
    let address = SocketAddr::new(LOOPBACK, world.port);
    for round in 0..5 {
        world.know(round);
        world.game().close();
        world.game().bind("udp", address);
        assert_eq!(world.ask().reason(), "GameRestarted");
    }
    world.stays_unknown();
    world.know(9);
}

#[test]
fn a_game_server_that_comes_later_is_found() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        world.kill_game();
        world.restart_sidecar();
        assert_eq!(world.ask().number(), None);
        world.stays_unknown();
        world.start_game();
        world.stays_unknown();
        world.know(1);
    });
}

#[test]
fn without_a_game_port_a_restart_shows_only_by_silence() {
    at_once(SOURCES, |source| {
        let mut world = World::start(Setup {
            protocol: "none",
            ..Setup::brief(source)
        });
        world.know(3);
        world.kill_game();
        // As documented: the number counts until it is stale.
        world.ask();
        world.start_game();
        eventually(|| {
            let answer = world.ask();
            if answer.reason() == "Stale" {
                Ok(())
            } else {
                Err(answer)
            }
        });
        world.stays_unknown();
        world.know(5);
        assert_eq!(world.ask().number(), Some(5));
    });
}
