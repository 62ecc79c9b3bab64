//! Limits the connections of an HTTP server, so that no client can exhaust its memory or lock others out.
//!
//! | module | job |
//! | --- | --- |
//! | [`socket`] | sockets that keep little in the kernel |
//! | [`table`] | which connection is closed when there are too many; pure |
//! | [`tracked`] | tells the table when a request arrives and when its response is ready |
//!
//! A listener accepts every connection at once, and then closes another one if there are too many: a client that
//! sends its request when it connects, such as a probe, is served in the midst of thousands that do not.

pub mod socket;
pub mod table;
pub mod tracked;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use crate::table::{Id, Table};

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections at once.
    pub connections: usize,
    /// Maximum time from the acceptance of a connection to its first complete request head.
    pub first_request: Duration,
    /// Maximum time of a connection; `None` for connections that serve requests for as long as their clients like.
    pub lifetime: Option<Duration>,
}

/// Reason why a connection was closed before its client was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// It made room for another one.
    Crowded,
    /// There was no room for it: a response was being prepared on all others.
    Refused,
    /// No request came in time.
    NoRequest,
    /// Its time was over.
    Slow,
}

impl Dropped {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Crowded, Self::Refused, Self::NoRequest, Self::Slow];

    /// Returns the name of the reason in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::Refused => "refused",
            Self::NoRequest => "no_request",
            Self::Slow => "slow",
        }
    }
}

type Observer = Arc<dyn Fn(Dropped) + Send + Sync>;

/// Number of connections that may still be closing beside the maximum.
const CLOSING: usize = 64;

/// Connections of a listener. Clones share them.
#[derive(Clone)]
pub struct Connections {
    /// Room for sockets. A connection that made room holds its own until it is closed.
    sockets: Arc<Semaphore>,
    table: Arc<Mutex<Table<oneshot::Sender<()>>>>,
    limits: Limits,
    observer: Observer,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Connections {
    /// Limits connections. `observer` is called for each connection that is dropped.
    pub fn new(limits: Limits, observer: impl Fn(Dropped) + Send + Sync + 'static) -> Self {
        Self {
            sockets: Arc::new(Semaphore::new(limits.connections + CLOSING)),
            table: Arc::new(Mutex::new(Table::new(limits.connections))),
            limits,
            observer: Arc::new(observer),
        }
    }

    /// Accepts a connection, once those that made room are closed: on a busy machine, sockets would pile up otherwise.
    pub async fn accept(&self, listener: &TcpListener) -> io::Result<Option<(TcpStream, Connection)>> {
        // The semaphore is never closed.
        let socket = self.sockets.clone().acquire_owned().await.ok();
        let (stream, peer) = listener.accept().await?;
        Ok(self.open(peer, socket).map(|connection| (stream, connection)))
    }

    /// Makes room for a connection; returns `None` if there is none.
    fn open(&self, peer: SocketAddr, socket: Option<OwnedSemaphorePermit>) -> Option<Connection> {
        let (eviction, evicted) = oneshot::channel();
        let peer = peer.ip();
        let admitted = self.table().admit(peer, eviction);
        let Some((id, victim)) = admitted else {
            (self.observer)(Dropped::Refused);
            return None;
        };
        // Dropping the sender closes the connection.
        if victim.is_some() {
            (self.observer)(Dropped::Crowded);
        }
        let handle = Handle {
            id,
            peer,
            connections: self.clone(),
            has_request: Arc::default(),
        };
        Some(Connection {
            handle,
            evicted,
            _socket: socket,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table<oneshot::Sender<()>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connection that has room.
#[derive(Debug)]
pub struct Connection {
    handle: Handle,
    evicted: oneshot::Receiver<()>,
    _socket: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Returns the handle by which progress is noted.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves the connection, until it has to make room or its time is over.
    pub async fn run(self, serve: impl Future<Output = ()>) {
        let Self { handle, evicted, .. } = &mut { self };
        let limits = handle.connections.limits;
        let no_request = async {
            sleep(limits.first_request).await;
            if handle.has_request.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let lifetime = async {
            let Some(lifetime) = limits.lifetime else {
                serve.await;
                return true;
            };
            timeout(lifetime, serve).await.is_ok()
        };
        let observer = &handle.connections.observer;
        tokio::select! {
            is_done = lifetime => if !is_done { observer(Dropped::Slow) },
            // The table has dropped its entry, and counted it.
            _ = evicted => {}
            () = no_request => observer(Dropped::NoRequest),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handle.connections.table().remove(self.handle.id);
    }
}

/// Notes the progress of a connection.
#[derive(Debug, Clone)]
pub struct Handle {
    id: Id,
    peer: IpAddr,
    connections: Connections,
    has_request: Arc<AtomicBool>,
}

impl Handle {
    /// Returns the address of the client.
    #[must_use]
    pub fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Notes that something was received or sent: other connections are closed first.
    pub fn progress(&self) {
        self.connections.table().progress(self.id, false);
    }

    /// Notes that a whole request was received: the connection is kept until its response is ready.
    pub fn received(&self) {
        self.connections.table().progress(self.id, true);
    }

    fn begin(&self, is_whole: bool) {
        self.has_request.store(true, Ordering::Relaxed);
        self.connections.table().progress(self.id, is_whole);
    }
}
