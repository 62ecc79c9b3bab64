//! Flood of connections from a peer without credentials, as any pod of a cluster can send it, and what an
//! observer sees of the flooded program: its probes, and the kernel's memory for its connections.
//!
//! A flood runs in this process, on one thread of its own: a test keeps its own runtime, and a machine with
//! few cores has time left for the program. It needs a file descriptor for each connection, so
//! [`Flood::start`] raises the limit of this process, which later child processes inherit.

mod probes;
mod script;
mod sockets;
mod tls;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

pub use probes::{ProbeReport, Probes};
pub use script::Script;
pub use sockets::{Footprint, SocketWatch, Sockets};

use crate::keeper::lock;

/// Address of a flooding peer. The kernel accepts all of 127.0.0.0/8; probes and the API server connect from
/// [`Ipv4Addr::LOCALHOST`].
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Time between the end of a connection and the next one in its place.
const PAUSE: Duration = Duration::from_millis(20);
/// File descriptors of this process for everything else.
const OTHER_FILES: u64 = 1024;
/// Wanted limit of file descriptors, if the system allows it: enough for several floods.
const FILES: u64 = 32_768;

/// Connections that are opened again whenever they end. Dropping it closes all of them.
#[derive(Debug)]
pub struct Flood {
    counts: Arc<Counts>,
    connections: Vec<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// Numbers of a flood.
#[derive(Debug, Clone, Default)]
pub struct FloodReport {
    /// Connections that were opened.
    pub opened: u64,
    /// Connections that the program closed.
    pub closed: u64,
    /// Attempts that opened no connection.
    pub failed: u64,
    /// Error of the last such attempt.
    pub last_error: String,
}

#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    failed: AtomicU64,
    last_error: Mutex<String>,
}

/// Addresses and counts that all connections of a flood share.
struct Client {
    to: SocketAddr,
    from: Ipv4Addr,
    tls: TlsConnector,
    counts: Arc<Counts>,
}

impl Flood {
    /// Opens `count` connections from one address and keeps them open. They play the scripts in turn.
    ///
    /// # Errors
    /// If the process may not have so many file descriptors, or the thread cannot be started.
    pub fn start(to: SocketAddr, from: Ipv4Addr, count: usize, scripts: &[Script]) -> io::Result<Self> {
        allow_files(count)?;
        let counts = Arc::new(Counts::default());
        let client = Arc::new(Client {
            to,
            from,
            tls: TlsConnector::from(Arc::new(tls::config()?)),
            counts: Arc::clone(&counts),
        });
        let scripts: Vec<Arc<Script>> = scripts.iter().cloned().map(Arc::new).collect();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("flood")
            .enable_all()
            .build()?;
        let played = scripts.iter().cycle().take(count);
        let connections = played
            .map(|script| runtime.spawn(repeat(Arc::clone(&client), Arc::clone(script))))
            .collect();
        Ok(Self {
            counts,
            connections,
            runtime: Some(runtime),
        })
    }

    /// Returns the numbers so far.
    pub fn report(&self) -> FloodReport {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        FloodReport {
            opened: of(&self.counts.opened),
            closed: of(&self.counts.closed),
            failed: of(&self.counts.failed),
            last_error: lock(&self.counts.last_error).clone(),
        }
    }

    /// Closes all connections and returns the numbers.
    pub async fn end(mut self) -> FloodReport {
        let report = self.report();
        for connection in &self.connections {
            connection.abort();
        }
        for connection in self.connections.drain(..) {
            // Every one is cancelled.
            let _ = connection.await;
        }
        report
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Plays a script on one connection after another.
async fn repeat(client: Arc<Client>, script: Arc<Script>) {
    loop {
        match client.open(&script).await {
            Ok(stream) => {
                client.counts.opened.fetch_add(1, Ordering::Relaxed);
                // An error is the program's way to close the connection.
                let _ = script.play(stream, client.to.ip(), &client.tls).await;
                client.counts.closed.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                client.counts.failed.fetch_add(1, Ordering::Relaxed);
                *lock(&client.counts.last_error) = error.to_string();
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Client {
    async fn open(&self, script: &Script) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        if let Some(size) = script.receive_buffer() {
            socket.set_recv_buffer_size(size)?;
        }
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from((self.from, 0)))?;
        let stream = socket.connect(self.to).await?;
        // The kernel forgets the connection at its end, so ports do not run out.
        stream.set_zero_linger()?;
        Ok(stream)
    }
}

/// Raises this process's limit of file descriptors, if that many connections need it.
fn allow_files(connections: usize) -> io::Result<()> {
    let needed = u64::try_from(connections)
        .unwrap_or(u64::MAX)
        .saturating_add(OTHER_FILES);
    let limit = getrlimit(Resource::Nofile);
    let wanted = needed.max(FILES);
    let possible = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if possible < needed {
        let words = format!("{connections} connections need {needed} files, and {possible} are possible");
        return Err(io::Error::other(words));
    }
    if limit.current.is_some_and(|current| current < possible) {
        let current = Some(possible);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn closed_connections_come_back_from_the_same_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let flood = Flood::start(address, STRANGER, 3, &[Script::endless_head()]).unwrap();
        for _ in 0..9 {
            let (mut stream, peer) = listener.accept().await.unwrap();
            assert_eq!(peer.ip(), STRANGER);
            let mut text = [0; 100];
            stream.read_exact(&mut text).await.unwrap();
            assert!(text.starts_with(b"GET /metrics HTTP/1.1\r\n") && text.ends_with(b"xxx"));
        }
        let report = flood.end().await;
        assert!(
            report.opened >= 9 && report.closed >= 6 && report.failed == 0,
            "{report:?}"
        );
    }

    #[tokio::test]
    async fn unread_answers_stay_unread() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let flood = Flood::start(address, STRANGER, 1, &[Script::unread_get("/")]).unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = vec![0; 4096];
        let count = stream.read(&mut text).await.unwrap();
        assert!(text[..count].ends_with(b"\r\n\r\n"));
        // More than the kernel keeps for this connection, so the rest waits for a reader.
        let answer = vec![b'a'; 16 << 20];
        let written = stream.write_all(&answer);
        let outcome = tokio::time::timeout(Duration::from_millis(500), written).await;
        assert!(outcome.is_err(), "{outcome:?}");
        let sockets = Sockets::of(address).unwrap();
        assert!(sockets.connections == 1 && sockets.bytes > 0, "{sockets:?}");
        drop(flood);
    }

    #[tokio::test]
    async fn a_hello_is_one_record() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _flood = Flood::start(address, STRANGER, 1, &[Script::hello().unwrap()]).unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head[0], 22, "a handshake");
        let mut rest = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        stream.read_exact(&mut rest).await.unwrap();
        assert_eq!(rest[0], 1, "a ClientHello");
    }
}
