//! More datagrams than anyone can read.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};

use crate::wait::eventually;
use crate::world::{Answer, Source, World};

/// Number of datagrams, at least.
const DATAGRAMS: usize = 100_000;
/// Limit for the memory of a debug build, in KiB.
const MAX_RESIDENT_KIB: u64 = 24 * 1024;

/// Senders that do not stop before they must.
struct Flood {
    senders: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Flood {
    fn start(to: SocketAddr, datagrams: &[Vec<u8>]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let send = || {
            let (datagrams, stop) = (datagrams.to_vec(), Arc::clone(&stop));
            move || {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                let mut count = 0;
                while count < DATAGRAMS / 2 || !stop.load(Ordering::Relaxed) {
                    // The queue is full most of the time.
                    let _ = socket.send_to(&datagrams[count % datagrams.len()], to);
                    count += 1;
                }
            }
        };
        Self {
            senders: (0..2).map(|_| spawn(send())).collect(),
            stop,
        }
    }

    fn is_finished(&self) -> bool {
        self.senders.iter().all(JoinHandle::is_finished)
    }

    /// Stops the senders when they have sent enough.
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.senders.into_iter().for_each(|sender| sender.join().unwrap());
    }
}

#[test]
fn unreadable_datagrams_never_bring_an_old_number_back() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    let unreadable = [b"abc".to_vec(), Vec::new(), vec![b' '; 513], vec![0xff; 60_000]];
    let flood = Flood::start(world.report(), &unreadable);
    eventually(|| {
        let answer = Answer::of(&world.sidecar.get("/players"));
        if answer.reason() == "Unreadable" {
            Ok(())
        } else {
            Err(answer)
        }
    });
    // 0 counts no more: the game server has sent 3 since, which may drown.
    for _ in 0..100 {
        world.say(3);
        world.ask();
    }
    flood.end();
    world.know(3);
    let resident = world.sidecar.resident_kib();
    assert!(resident < MAX_RESIDENT_KIB, "{resident} KiB");
}

#[test]
fn a_game_server_that_reports_far_too_often_is_understood() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    let flood = Flood::start(world.report(), &[b"3".to_vec(), b"{\"players\":3}".to_vec()]);
    let look = || Answer::of(&world.sidecar.get("/players"));
    eventually(|| {
        if look().number() == Some(3) {
            Ok(())
        } else {
            Err("0")
        }
    });
    for _ in 0..100 {
        let answer = look();
        // More than it can read is no report at all.
        let is_known = answer.number() == Some(3);
        assert!(is_known || answer.reason() == "Unreadable", "{answer:?}");
        assert_eq!(world.sidecar.get("/healthz").status, 200);
    }
    assert!(!flood.is_finished());
    flood.end();
    world.know(3);
    // The game server is killed: nothing of the flood speaks for the next one.
    world.replace_game();
    world.stays_unknown();
    world.know(5);
    let resident = world.sidecar.resident_kib();
    assert!(resident < MAX_RESIDENT_KIB, "{resident} KiB");
}

#[test]
fn a_flood_does_not_outlive_a_restart_of_the_game_server() {
    let mut world = World::start(Source::Udp);
    world.know(3);
    for _ in 0..5 {
        world.know(3);
        world.stop();
        // More than the socket holds, all from the game server before.
        for _ in 0..1500 {
            world.say(0);
        }
        world.replace_game();
        world.resume();
        world.stays_unknown();
    }
    world.know(5);
}

#[test]
fn the_oldest_datagrams_of_a_full_socket_are_not_the_last_report() {
    let mut world = World::start(Source::Udp);
    for _ in 0..3 {
        world.know(3);
        world.stop();
        for _ in 0..1500 {
            world.say(0);
        }
        // The kernel drops this one.
        world.say(5);
        world.resume();
        for _ in 0..5 {
            let answer = world.ask();
            assert_eq!(answer.number(), None, "{answer:?}");
        }
    }
    world.know(5);
}

#[test]
fn a_flood_of_changes_does_not_flood_the_log() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    Flood::start(world.report(), &[b"0".to_vec(), b"abc".to_vec()]).end();
    world.know(1);
    let log = world.sidecar.log();
    assert!(log.len() < 150, "{} lines", log.len());
}
