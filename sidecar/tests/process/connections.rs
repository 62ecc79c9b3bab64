//! Clients that never finish, on both ports: they neither change a number nor lock others out for good.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread::spawn;

use crate::http::{connect, exchange, is_closed, request};
use crate::wait::eventually;
use crate::world::{Answer, Source, World};

/// Limit for the memory of a debug build, in KiB.
pub(crate) const MAX_RESIDENT_KIB: u64 = 24 * 1024;

/// World in which the game server said 3, and both of its ports.
fn with_three() -> (World, [SocketAddr; 2]) {
    let mut world = World::start(Source::Http);
    world.know(3);
    let ports = [world.sidecar.listen, world.report()];
    (world, ports)
}

/// Checks that the sidecar works and is small, once it has got rid of the others.
pub(crate) fn works(world: &mut World) {
    let listen = world.sidecar.listen;
    // It closes the connections that are too many at once.
    eventually(|| exchange(listen, "GET", "/healthz", b""));
    let report = world.report();
    // A connection that ends without a report voids the one before.
    eventually(|| {
        let counts = exchange(report, "PUT", "/players", b"4").is_ok_and(|response| response.status == 204);
        world.record(Some(4));
        let answer = world.ask();
        if counts && answer.number() == Some(4) {
            Ok(())
        } else {
            Err(answer)
        }
    });
    let resident = world.sidecar.resident_kib();
    assert!(resident < MAX_RESIDENT_KIB, "{resident} KiB");
}

/// Opens many connections that send this and then nothing.
fn hold(port: SocketAddr, bytes: &[u8]) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = connect(port).unwrap();
        // The sidecar closes those that are too many.
        let _ = stream.write_all(bytes);
        stream
    };
    (0..40).map(open).collect()
}

#[test]
fn idle_connections_do_not_lock_others_out() {
    let beginnings: [&[u8]; 3] = [
        b"",
        b"PUT /pla",
        b"PUT /players HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n0",
    ];
    let checks = beginnings.map(|bytes| {
        spawn(move || {
            let (mut world, ports) = with_three();
            let mut held: Vec<TcpStream> = ports.iter().flat_map(|port| hold(*port, bytes)).collect();
            works(&mut world);
            for stream in &mut held {
                eventually(|| if is_closed(stream) { Ok(()) } else { Err("open") });
            }
            works(&mut world);
        })
    });
    for check in checks {
        check.join().unwrap();
    }
}

#[test]
fn finished_requests_do_not_keep_connections_for_ever() {
    let (mut world, ports) = with_three();
    let path = ["/players", "/nothing"];
    let mut held: Vec<TcpStream> = ports
        .iter()
        .zip(path)
        .flat_map(|(port, path)| hold(*port, &request("GET", path, b"")))
        .collect();
    works(&mut world);
    for stream in &mut held {
        eventually(|| if is_closed(stream) { Ok(()) } else { Err("open") });
    }
}

#[test]
fn endless_headers_are_cut_off() {
    let (mut world, ports) = with_three();
    for port in ports {
        for line in [format!("X-Filler: {}\r\n", "x".repeat(1000)), "y".repeat(1000)] {
            let mut stream = connect(port).unwrap();
            let mut sent = stream.write_all(b"GET /players HTTP/1.1\r\n");
            let mut count = 0;
            while sent.is_ok() && count < 20_000 {
                sent = stream.write_all(line.as_bytes());
                count += 1;
            }
            assert!(sent.is_err(), "took 20 MB of headers on {port}");
        }
    }
    // A connection for a report that ends without one may have been an attempt to say something else.
    let answer = Answer::of(&world.sidecar.get("/players"));
    assert_eq!(answer.reason(), "Unreadable");
    works(&mut world);
}

#[test]
fn bodies_of_requests_that_have_none_cost_nothing() {
    let (mut world, ports) = with_three();
    for port in ports {
        for method in ["GET", "POST", "PUT"] {
            let mut stream = connect(port).unwrap();
            let head = format!("{method} /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n");
            let mut sent = stream.write_all(head.as_bytes());
            for _ in 0..20_000 {
                sent = sent.and_then(|()| stream.write_all(&[b'0'; 1000]));
            }
        }
    }
    assert_eq!(Answer::of(&world.sidecar.get("/players")).number(), Some(3));
    works(&mut world);
}

#[test]
fn garbage_is_no_request() {
    let (mut world, ports) = with_three();
    let mut random = fastrand::Rng::with_seed(1);
    let mut garbage: Vec<Vec<u8>> = (0..60)
        .map(|_| (0..random.usize(1..3000)).map(|_| random.u8(..)).collect())
        .collect();
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    garbage.push(hello.to_vec());
    garbage.push(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec());
    garbage.push(b"\r\n\r\n\r\n0\r\n".to_vec());
    garbage
        .push(b"PUT /players HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n0".to_vec());
    garbage.push(b"PUT /players HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n0".to_vec());
    garbage.push(b"PUT \0 HTTP/1.1\r\n\r\n".to_vec());
    for bytes in &garbage {
        for port in ports {
            let mut stream = connect(port).unwrap();
            let _ = stream.write_all(bytes);
        }
    }
    let response = eventually(|| exchange(world.sidecar.listen, "GET", "/players", b""));
    let number = Answer::of(&response).number();
    assert!(number.is_none_or(|number| number == 3), "{number:?}");
    works(&mut world);
}

#[test]
fn closed_connections_leave_nothing_behind() {
    let (mut world, ports) = with_three();
    let before = world.sidecar.open_files();
    for _ in 0..300 {
        for port in ports {
            drop(TcpStream::connect(port).unwrap());
        }
    }
    eventually(|| {
        let open = world.sidecar.open_files();
        if open <= before + 2 {
            Ok(())
        } else {
            Err((open, before))
        }
    });
    works(&mut world);
}

#[test]
fn clients_that_read_no_responses_cost_little() {
    let (mut world, [listen, _]) = with_three();
    let requests = request("GET", "/metrics", b"").repeat(100);
    let held: Vec<TcpStream> = (0..32)
        .map(|_| {
            let mut stream = connect(listen).unwrap();
            stream.set_nonblocking(true).unwrap();
            for _ in 0..100 {
                // The connection is full at some point.
                let _ = stream.write(&requests);
            }
            stream
        })
        .collect();
    works(&mut world);
    drop(held);
}
