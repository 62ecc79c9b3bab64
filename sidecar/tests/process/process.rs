//! Start, exit and log of the process.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;

use rustix::process::Signal;

use crate::http::{connect, exchange};
use crate::sidecar::{Sidecar, command};
use crate::wait::{at_once, eventually};
use crate::world::{SOURCES, Source, World};

#[test]
fn a_signal_ends_it_with_0() {
    for (source, signal) in SOURCES
        .iter()
        .cycle()
        .zip([Signal::TERM, Signal::INT, Signal::TERM, Signal::INT])
    {
        let mut world = World::start(*source);
        world.know(1);
        // Open connections do not delay it.
        let _idle = connect(world.sidecar.listen).unwrap();
        let status = world.sidecar.terminate(signal);
        assert_eq!(status.code(), Some(0), "{signal:?}: {status:?}");
    }
}

#[test]
fn a_killed_sidecar_answers_nothing_and_the_next_one_knows_nothing() {
    at_once(SOURCES, |source| {
        let mut world = World::start(source);
        world.know(0);
        let listen = world.sidecar.listen;
        world.sidecar.kill();
        let refused = TcpStream::connect(listen).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        world.restart_sidecar();
        assert_eq!(world.ask().reason(), "NoReport");
        world.stays_unknown();
        world.know(1);
    });
}

#[test]
fn the_same_ports_are_free_again_at_once() {
    let flags = |listen: SocketAddr, report: SocketAddr| {
        let (listen, report) = (listen.to_string(), report.to_string());
        let flags = ["--source", "http", "--game-port", "none", "--listen", &listen];
        let report = ["--report-address", &report];
        flags
            .iter()
            .chain(&report)
            .map(|flag| (*flag).to_owned())
            .collect::<Vec<_>>()
    };
    let start = |flags: &[String]| Sidecar::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut first = start(&flags(any, any));
    let same = flags(first.listen, first.report.unwrap());
    // Connections of the first one, in every state.
    let _open = connect(first.listen).unwrap();
    exchange(first.report.unwrap(), "PUT", "/players", b"3").unwrap();
    first.kill();
    let second = start(&same);
    assert_eq!(second.listen, first.listen);
    assert_eq!(second.get("/healthz").status, 200);
}

#[test]
fn a_port_in_use_is_an_error() {
    let world = World::start(Source::Udp);
    let (listen, report) = (world.sidecar.listen.to_string(), world.report().to_string());
    for (listen, report) in [(listen.as_str(), "127.0.0.1:0"), ("127.0.0.1:0", report.as_str())] {
        let common = ["--source", "udp", "--game-port", "none", "--listen", listen];
        let flags: Vec<&str> = common.into_iter().chain(["--report-address", report]).collect();
        let mut child = command(&flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let status = eventually(|| child.try_wait().unwrap().ok_or("runs"));
        assert!(!status.success(), "{status:?} with {flags:?}");
    }
    assert_eq!(world.sidecar.get("/healthz").status, 200);
}

#[test]
fn a_closed_log_does_not_stop_the_answers() {
    let flags = [
        "--source",
        "udp",
        "--game-port",
        "none",
        "--listen",
        "127.0.0.1:0",
    ];
    let flags: Vec<&str> = flags
        .into_iter()
        .chain(["--report-address", "127.0.0.1:0"])
        .collect();
    let mut child = command(&flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    // Reads one line, then nobody reads any more.
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = |name: &str| value[name].as_str().unwrap().parse::<SocketAddr>().unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for (text, status) in [("3", 200), ("abc", 503), ("0", 200), ("", 503), ("1", 200)] {
        eventually(|| {
            socket.send_to(text.as_bytes(), address("report")).unwrap();
            let response =
                exchange(address("listen"), "GET", "/players", b"").map_err(|error| error.to_string())?;
            if response.status == status {
                Ok(())
            } else {
                Err(format!("{response:?}"))
            }
        });
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_log_has_one_line_for_each_change() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    let before = world.sidecar.log().len();
    for _ in 0..5 {
        world.say(0);
        world.say(3);
        world.ask();
        world.sidecar.get("/readyz");
        world.sidecar.get("/metrics");
    }
    // Another number is no change of what is known.
    assert_eq!(world.sidecar.log().len(), before);
    world.say_bytes(b"abc", None);
    world.ask();
    let lines = eventually(|| {
        let log = world.sidecar.log();
        if log.len() > before { Ok(log) } else { Err(log) }
    });
    assert_eq!(lines.len(), before + 1, "{lines:?}");
    assert!(lines[before].to_string().contains("Unreadable"), "{lines:?}");
    for _ in 0..5 {
        world.say_bytes(b"abc", None);
        assert_eq!(world.ask().reason(), "Unreadable");
    }
    assert_eq!(world.sidecar.log().len(), before + 1);
}
