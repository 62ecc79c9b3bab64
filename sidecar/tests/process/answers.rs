//! The port that hooks and probes read.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use crate::http::{connect, exchange, is_closed, read, request};
use crate::wait::{at_once, eventually};
use crate::world::{Answer, SOURCES, Source, World};

const PATHS: [&str; 4] = ["/players", "/readyz", "/healthz", "/metrics"];

#[test]
fn probes_follow_the_number_and_health_does_not() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        let check = |world: &World, known: bool| {
            assert_eq!(world.ask().number().is_some(), known);
            let ready = world.sidecar.get("/readyz");
            assert_eq!(ready.status, if known { 200 } else { 503 }, "{ready:?}");
            assert_eq!(ready.body.trim_end() == "ok", known, "{ready:?}");
            assert!(ready.body.len() > 1, "{ready:?}");
            let health = world.sidecar.get("/healthz");
            assert_eq!((health.status, health.body.trim_end()), (200, "ok"));
        };
        check(&world, false);
        world.know(0);
        check(&world, true);
        world.say_bytes(b"abc", None);
        check(&world, false);
        world.know(1);
        check(&world, true);
        world.replace_game();
        check(&world, false);
        world.know(2);
        world.kill_game();
        check(&world, false);
    });
}

#[test]
fn other_methods_change_nothing() {
    let mut world = World::start(Source::Udp);
    world.know(3);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "BREW"] {
        for path in PATHS {
            let response = exchange(world.sidecar.listen, method, path, b"0").unwrap();
            assert_eq!(response.status, 405, "{method} {path}: {response:?}");
            let allow = response.header("allow");
            assert!(allow.contains("GET") && allow.contains("HEAD"), "{response:?}");
        }
        assert_eq!(world.ask().number(), Some(3), "{method}");
        world.say(3);
    }
    // A GET with a body is a GET.
    let response = exchange(world.sidecar.listen, "GET", "/players", b"0").unwrap();
    assert_eq!(Answer::of(&response).number(), Some(3));
    assert_eq!(world.ask().number(), Some(3));
}

#[test]
fn other_paths_do_not_exist() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    for path in [
        "/",
        "/player",
        "/players/",
        "/PLAYERS",
        "//players",
        "/players/0",
        "/ready",
        "/x/../players",
        "/favicon.ico",
    ] {
        let response = world.sidecar.get(path);
        assert_eq!(response.status, 404, "{path}: {response:?}");
    }
}

#[test]
fn head_is_get_without_the_body() {
    let mut world = World::start(Source::Udp);
    for known in [false, true] {
        if known {
            world.know(0);
        }
        for path in PATHS {
            let get = world.sidecar.get(path);
            let head = exchange(world.sidecar.listen, "HEAD", path, b"").unwrap();
            assert_eq!(head.status, get.status, "{path}");
            assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
            assert_eq!(head.body, "");
        }
    }
}

#[test]
fn a_connection_carries_one_answer_and_says_so() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    let mut stream = connect(world.sidecar.listen).unwrap();
    stream
        .write_all(&request("GET", "/players", b"").repeat(2))
        .unwrap();
    let response = read(&mut BufReader::new(&stream), false).unwrap();
    assert_eq!(response.header("connection"), "close", "{response:?}");
    assert_eq!(Answer::of(&response).number(), Some(0));
    eventually(|| {
        if is_closed(&mut stream) {
            Ok(())
        } else {
            Err("open")
        }
    });
}

#[test]
fn an_answer_is_made_when_the_request_is_complete() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    let bytes = request("GET", "/players", b"");
    let (last, first) = bytes.split_last().unwrap();
    let listen = world.sidecar.listen;
    let begin = || {
        let mut stream = connect(listen).unwrap();
        stream.write_all(first).unwrap();
        stream
    };
    let end = |mut stream: TcpStream| {
        stream.write_all(&[*last]).unwrap();
        Answer::of(&read(&mut BufReader::new(stream), false).unwrap())
    };
    let (one, two) = (begin(), begin());
    assert_eq!(world.ask().number(), Some(0));
    world.say(4);
    assert_eq!(end(one).number(), Some(4));
    world.kill_game();
    assert_eq!(end(two).reason(), "GameGone");
}
