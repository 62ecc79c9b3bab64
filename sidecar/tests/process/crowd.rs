//! Thousands of connections to either port from another pod, opened again whenever the sidecar closes them.
//!
//! Each crowd runs on one thread of this process, with sockets that never block. It raises this process's
//! limit of open files.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::connections::{MAX_RESIDENT_KIB, works};
use crate::http::{exchange, forget, request};
use crate::world::{Source, World};

const CONNECTIONS: usize = 2_000;
/// Address of another pod; this one and its kubelet use 127.0.0.1.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Time between two steps of each connection, and before a closed one is opened again.
const PAUSE: Duration = Duration::from_millis(20);
/// Time between two probes.
const PROBES: Duration = Duration::from_millis(250);
/// Timeout of a probe.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit for the data that the kernel keeps for connections to the port for hooks, in KiB. A pod allows
/// 16 MiB for them and the sidecar itself.
const MAX_KERNEL_KIB: u64 = 12 * 1024;
/// Soft limit of open files on many nodes. At it, the sidecar accepts no connection.
const MAX_FILES: usize = 1_024;
/// Length of a header line that has no end, before it only dribbles.
const ENDLESS: usize = 400 * 1024;

/// Behaviour of each connection of a crowd. None ever reads.
#[derive(Clone, Copy, Debug)]
enum Visit {
    Silent,
    EndlessHead,
    /// One complete request after another.
    Unread,
}

/// Crowds come one after another: each takes a core for itself.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other crowd is there.
fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time of one crowd at least, by the extent of the proof.
fn length() -> Duration {
    Duration::from_secs(match std::env::var("PROVE").as_deref() {
        Ok("all") => 60,
        Ok("quick") => 10,
        _ => 3,
    })
}

const VISITS: [Visit; 3] = [Visit::Silent, Visit::EndlessHead, Visit::Unread];

impl Visit {
    /// Bytes to send, and the position from which they are sent again at the end.
    fn script(self) -> (Vec<u8>, usize) {
        match self {
            Self::Silent => (Vec::new(), 0),
            Self::EndlessHead => {
                let mut head = b"GET /players HTTP/1.1\r\nHost: sidecar\r\nX-Filler: ".to_vec();
                head.resize(ENDLESS, b'x');
                (head, ENDLESS - 1)
            }
            Self::Unread => (request("GET", "/metrics", b""), 0),
        }
    }
}

/// Connection of a crowd.
struct Visitor {
    stream: TcpStream,
    next: usize,
}

impl Visitor {
    fn open(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        set_socket_reuseaddr(&socket, true)?;
        set_socket_recv_buffer_size(&socket, 2048)?;
        bind(&socket, &SocketAddrV4::new(from, 0))?;
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        forget(&stream)?;
        Ok(Self { stream, next: 0 })
    }

    /// Sends what the sidecar takes. Returns whether the connection is still open.
    fn step(&mut self, script: &[u8], again: usize) -> bool {
        let outcome = if script.is_empty() {
            self.stream.peek(&mut [0])
        } else {
            (&self.stream).write(&script[self.next..])
        };
        match outcome {
            Ok(0) => false,
            Ok(count) => {
                self.next += count;
                if self.next >= script.len() {
                    self.next = again;
                }
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected),
        }
    }
}

/// Connections that are kept open until [`Crowd::end`].
struct Crowd {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    opened: Arc<AtomicU64>,
}

impl Crowd {
    fn start(from: Ipv4Addr, to: SocketAddr, visit: Visit) -> Self {
        allow_files();
        let (stop, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&opened));
        let thread = spawn(move || {
            let (script, again) = visit.script();
            let mut visitors: Vec<Option<Visitor>> = (0..CONNECTIONS).map(|_| None).collect();
            while !stopped.load(Ordering::Relaxed) {
                for place in &mut visitors {
                    let is_open = place.as_mut().is_some_and(|visitor| visitor.step(&script, again));
                    if is_open {
                        continue;
                    }
                    // The next one comes in the next round.
                    let was_open = place.take().is_some();
                    if !was_open && let Ok(visitor) = Visitor::open(from, to) {
                        *place = Some(visitor);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                sleep(PAUSE);
            }
        });
        Self { thread, stop, opened }
    }

    /// Closes all connections, and returns how many there were.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.opened.load(Ordering::Relaxed)
    }
}

/// Raises the limit of open files, if the system allows it.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(32_768, |maximum| maximum.min(32_768));
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(wanted);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    }
}

/// Data of the connections to a port that the sidecar has accepted and the kernel still holds, in KiB.
fn kernel_kib(port: SocketAddr) -> u64 {
    let SocketAddr::V4(port) = port else {
        panic!("{port}");
    };
    let ip = u32::from_ne_bytes(port.ip().octets());
    let local = format!("{ip:08X}:{:04X}", port.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut bytes = 0;
    for line in table.lines() {
        // Number, local and remote address, state, queues, timer, retransmissions, user, timeout, inode.
        let fields: Vec<&str> = line.split_whitespace().take(10).collect();
        let [_, at, _, state, queues, _, _, _, _, inode] = fields[..] else {
            continue;
        };
        let is_accepted = inode != "0" && state != "0A";
        let is_orphaned = ["04", "05", "09", "0B"].contains(&state);
        if at == local && (is_accepted || is_orphaned) {
            let sizes = queues.split(':').map(|size| u64::from_str_radix(size, 16));
            bytes += sizes.filter_map(Result::ok).sum::<u64>();
        }
    }
    bytes / 1024
}

/// Observations of a sidecar among a crowd.
#[derive(Debug, Default)]
struct Seen {
    probes: usize,
    slowest: Duration,
    failed: Vec<String>,
    kernel_kib: u64,
    /// Open files of the sidecar at once, which include connections that it has not closed yet.
    files: usize,
}

impl Seen {
    /// Sends one probe like the kubelet.
    fn probe(&mut self, listen: SocketAddr, path: &str) {
        let begun = Instant::now();
        let answer = exchange(listen, "GET", path, b"");
        let took = begun.elapsed();
        self.probes += 1;
        self.slowest = self.slowest.max(took);
        let is_green = answer.as_ref().is_ok_and(|response| response.status == 200) && took < PATIENCE;
        if !is_green {
            self.failed.push(format!("{path} in {took:?}: {answer:?}"));
        }
    }

    /// Sends probes of these paths while a crowd is there.
    fn among(
        world: &mut World,
        port: SocketAddr,
        paths: &[&str],
        mut meanwhile: impl FnMut(&mut World),
    ) -> Self {
        let mut seen = Self::default();
        let begun = Instant::now();
        while begun.elapsed() < length() {
            meanwhile(world);
            for path in paths {
                seen.probe(world.sidecar.listen, path);
            }
            seen.files = seen.files.max(world.sidecar.open_files());
            seen.kernel_kib = seen.kernel_kib.max(kernel_kib(port));
            sleep(PROBES);
        }
        seen
    }
}

/// Checks that the sidecar stayed small.
fn stayed_small(world: &World, what: &str, opened: u64, seen: &Seen) {
    let peak = world.sidecar.peak_kib();
    println!("{what}: {opened} connections, {peak} KiB of memory at most, {seen:?}");
    assert!(opened >= CONNECTIONS as u64, "{what}: {opened}");
    assert!(peak < MAX_RESIDENT_KIB, "{what}: {peak} KiB");
    assert!(seen.files < MAX_FILES, "{what}: {seen:?}");
}

#[test]
fn a_crowd_at_the_port_for_hooks_hides_no_answer() {
    let _turn = turn();
    let mut world = World::start(Source::Http);
    world.know(3);
    let listen = world.sidecar.listen;
    let mut first = 0;
    // The second time shows that nothing was lost the first time.
    for visit in VISITS.into_iter().chain(VISITS) {
        let what = format!("{visit:?} from another pod");
        let crowd = Crowd::start(STRANGER, listen, visit);
        let seen = Seen::among(&mut world, listen, &["/healthz", "/readyz"], |world| {
            world.say(3);
            assert_eq!(world.ask().number(), Some(3));
        });
        stayed_small(&world, &what, crowd.end(), &seen);
        assert!(seen.kernel_kib < MAX_KERNEL_KIB, "{what}: {seen:?}");
        assert!(seen.failed.is_empty(), "{what}: {:?}", seen.failed);
        works(&mut world);
        world.know(3);
        if matches!(visit, Visit::Unread) && first == 0 {
            first = world.sidecar.peak_kib();
        }
    }
    let peak = world.sidecar.peak_kib();
    assert!(peak < first + 2048, "{first} KiB, then {peak} KiB");
}

/// Nothing tells the crowd from the kubelet here, so probes may lose their connections, though not most of
/// them. The sidecar stays small, and works when the crowd has gone.
#[test]
fn a_crowd_from_the_address_of_the_kubelet_does_not_end_the_sidecar() {
    let _turn = turn();
    let mut world = World::start(Source::Http);
    world.know(3);
    let listen = world.sidecar.listen;
    let (mut probes, mut failed) = (0, Vec::new());
    for visit in VISITS {
        let what = format!("{visit:?} from the node");
        let crowd = Crowd::start(Ipv4Addr::LOCALHOST, listen, visit);
        let seen = Seen::among(&mut world, listen, &["/healthz"], |_| {});
        stayed_small(&world, &what, crowd.end(), &seen);
        assert!(seen.kernel_kib < MAX_KERNEL_KIB, "{what}: {seen:?}");
        works(&mut world);
        world.know(3);
        probes += seen.probes;
        failed.extend(seen.failed);
    }
    assert!((probes - failed.len()) * 4 > probes, "{failed:?}");
}

/// Only processes of its own pod reach this port, so the kernel's memory for it is their own concern.
#[test]
fn a_crowd_at_the_port_for_reports_brings_no_wrong_answer() {
    let _turn = turn();
    let mut world = World::start(Source::Http);
    world.know(3);
    let report = world.report();
    for visit in VISITS {
        let what = format!("{visit:?} at the port for reports");
        let crowd = Crowd::start(STRANGER, report, visit);
        // The judge accepts that the number is unknown, and no other number.
        let seen = Seen::among(&mut world, report, &["/healthz"], |world| drop(world.ask()));
        stayed_small(&world, &what, crowd.end(), &seen);
        assert!(seen.failed.is_empty(), "{what}: {:?}", seen.failed);
        works(&mut world);
        world.know(3);
    }
}
