//! Reports by HTTP.

use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Response, connect, exchange, is_closed, read, request};
use crate::wait::eventually;
use crate::world::{Answer, REASONS, Source, World};

/// World in which the game server said 3.
fn with_three() -> World {
    let mut world = World::start(Source::Http);
    world.know(3);
    world
}

/// Sends these bytes and nothing more, and reads one response.
fn raw(world: &World, bytes: &[u8]) -> Response {
    let mut stream = connect(world.report()).unwrap();
    stream.write_all(bytes).unwrap();
    read(&mut BufReader::new(stream), false).unwrap()
}

/// Sentence of an error body.
#[track_caller]
fn error(response: &Response) -> String {
    assert_eq!(
        response.header("content-type"),
        "application/json",
        "{response:?}"
    );
    let body: Value = serde_json::from_str(&response.body).unwrap();
    body["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_report_before_it_can_count_is_refused_with_the_reason() {
    let mut world = World::start(Source::Http);
    eventually(|| {
        let response = exchange(world.report(), "PUT", "/players", b"3").unwrap();
        if response.status == 204 {
            assert_eq!(response.body, "");
            return Ok(());
        }
        assert_eq!(response.status, 503, "{response:?}");
        assert_ne!(error(&response), "");
        let body: Value = serde_json::from_str(&response.body).unwrap();
        assert!(REASONS.contains(&body["reason"].as_str().unwrap()), "{body}");
        // Nothing was sent that counts.
        assert_eq!(world.ask().number(), None);
        Err(response)
    });
    world.record(Some(3));
    assert_eq!(world.ask().number(), Some(3));
}

#[test]
fn other_paths_and_methods_change_nothing() {
    let mut world = with_three();
    for path in [
        "/",
        "/player",
        "/players/",
        "/playersx",
        "/PLAYERS",
        "//players",
        "/players/0",
        "/metrics",
        "/readyz",
        "/healthz",
        "/%70layers",
        "/x/../players",
    ] {
        let response = exchange(world.report(), "PUT", path, b"0").unwrap();
        assert_eq!(response.status, 404, "{path}: {response:?}");
        assert_eq!(world.ask().number(), Some(3), "{path}");
        world.say(3);
    }
    for method in ["GET", "HEAD", "POST", "DELETE", "PATCH", "OPTIONS", "put", "BREW"] {
        let response = exchange(world.report(), method, "/players", b"0").unwrap();
        assert_eq!(response.status, 405, "{method}: {response:?}");
        assert_eq!(response.header("allow"), "PUT", "{method}");
        assert_eq!(world.ask().number(), Some(3), "{method}");
        world.say(3);
    }
}

#[test]
fn errors_are_sentences_in_json() {
    let world = with_three();
    let response = exchange(world.report(), "PUT", "/players", b"abc").unwrap();
    assert_eq!(response.status, 400);
    assert_ne!(error(&response), "");
    let response = exchange(world.report(), "PUT", "/players", &[b' '; 513]).unwrap();
    assert_eq!(response.status, 413);
    assert_ne!(error(&response), "");
    // Bytes of the body do not get into the answers.
    let hostile = b"\"},{\"players\":0}\x1b]0;x\x07";
    let response = exchange(world.report(), "PUT", "/players", hostile).unwrap();
    assert_eq!(response.status, 400);
    assert_ne!(error(&response), "");
    assert_eq!(Answer::of(&world.sidecar.get("/players")).reason(), "Unreadable");
}

#[test]
fn too_long_bodies_void_however_they_are_sent() {
    let mut world = with_three();
    let chunk = format!("64\r\n{}\r\n", " ".repeat(100));
    let chunked = "PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let announced = "PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n0";
    let announced = announced.to_owned() + &" ".repeat(600);
    let long = format!("{chunked}1\r\n0\r\n{}0\r\n\r\n", chunk.repeat(6));
    let endless = format!("{chunked}1\r\n0\r\n{}", chunk.repeat(6));
    for bytes in [&announced, &long, &endless] {
        world.know(3);
        let response = raw(&world, bytes.as_bytes());
        assert_eq!(response.status, 413, "{response:?}");
        world.record(None);
        assert_eq!(world.ask().reason(), "Unreadable");
    }
    world.know(1);
}

#[test]
fn a_chunked_body_is_a_report() {
    let mut world = with_three();
    let bytes = "PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
                 1\r\n1\r\n1\r\n2\r\n1\r\n\n\r\n0\r\n\r\n";
    let response = raw(&world, bytes.as_bytes());
    assert_eq!(response.status, 204, "{response:?}");
    world.record(Some(12));
    assert_eq!(world.ask().number(), Some(12));
    world.say(3);
}

#[test]
fn a_body_that_breaks_off_is_no_number() {
    let heads = [
        "PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n0",
        "PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n",
        "PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n0\r\n",
        "PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n0",
        "PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\nx\r\n",
        "PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n0",
        "PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n0",
        "PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 1",
        "PUT /players HTTP/1.1\r\nHost: x\r\n\r\n0",
        "PUT /players HTTP/9.9\r\nHost: x\r\nContent-Length: 1\r\n\r\n0",
        "PUT /players\r\n\r\n0",
        "0",
    ];
    let mut world = with_three();
    for head in heads {
        let mut stream = connect(world.report()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        eventually(|| if is_closed(&mut stream) { Ok(()) } else { Err(head) });
        let number = Answer::of(&world.sidecar.get("/players")).number();
        assert!(number.is_none_or(|number| number == 3), "{head:?}: {number:?}");
        world.know(3);
    }
}

#[test]
fn a_body_that_never_ends_is_closed_and_is_no_number() {
    let mut world = with_three();
    let mut slow = connect(world.report()).unwrap();
    slow.write_all(b"PUT /players HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n")
        .unwrap();
    let mut silent = connect(world.report()).unwrap();
    silent
        .write_all(b"PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n0")
        .unwrap();
    let mut ticks = 0;
    eventually(|| {
        let written = slow.write_all(b"1\r\n \r\n");
        // The game server goes on reporting meanwhile, over other connections.
        world.say(3);
        let answer = world.ask();
        assert!(
            answer.number().is_some() || answer.reason() == "Unreadable",
            "{answer:?}"
        );
        ticks += 1;
        sleep(Duration::from_millis(50));
        let ended = (written.is_err() || is_closed(&mut slow)) && is_closed(&mut silent);
        if ended { Ok(()) } else { Err(ticks) }
    });
    world.know(3);
    assert_eq!(world.ask().number(), Some(3));
}

#[test]
fn a_connection_carries_one_report_and_says_so() {
    let mut world = with_three();
    for (first, second) in [(0, 8), (8, 0)] {
        let body = |number: u32| request("PUT", "/players", number.to_string().as_bytes());
        let mut stream = connect(world.report()).unwrap();
        stream.write_all(&[body(first), body(second)].concat()).unwrap();
        let response = read(&mut BufReader::new(&stream), false).unwrap();
        assert_eq!(response.status, 204, "{response:?}");
        assert_eq!(response.header("connection"), "close", "{response:?}");
        eventually(|| {
            if is_closed(&mut stream) {
                Ok(())
            } else {
                Err("open")
            }
        });
        // The second one has got no response.
        world.record(Some(first));
        assert_eq!(world.ask().number(), Some(first));
    }
    world.know(3);
}

#[test]
fn a_report_that_is_overtaken_is_not_accepted_without_effect() {
    let mut world = with_three();
    for late in ["8", "x"] {
        let mut slow = connect(world.report()).unwrap();
        slow.write_all(b"PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n")
            .unwrap();
        // An answer takes longer than reading a head that has arrived.
        world.ask();
        world.say(5);
        slow.write_all(late.as_bytes()).unwrap();
        let response = read(&mut BufReader::new(slow), false).unwrap();
        let answer = Answer::of(&world.sidecar.get("/players"));
        match response.status {
            204 => assert_eq!(answer.number(), Some(8), "{response:?}"),
            // Which of the two was sent last is unknown.
            _ => assert_eq!(answer.reason(), "Unreadable", "{response:?}"),
        }
        world.know(3);
    }
}

#[test]
fn datagrams_do_not_count_where_reports_come_by_http() {
    let mut world = with_three();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..20 {
        // The kernel may report that nobody listens there.
        let _ = other.send_to(b"0", world.report());
        assert_eq!(world.ask().number(), Some(3));
    }
    world.say(3);

    let world = World::start(Source::Udp);
    let refused = TcpStream::connect(world.report()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
