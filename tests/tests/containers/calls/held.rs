//! HTTP server whose answers a test holds back.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;

use operator_tests::SOON;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// HTTP server that answers the first requests, as many as are permitted, with the status 200.
pub(super) struct HeldServer {
    received: watch::Sender<usize>,
    permitted: watch::Sender<usize>,
    answered: watch::Sender<usize>,
}

impl HeldServer {
    pub(super) async fn start(ip: IpAddr, port: u16) -> Arc<Self> {
        let listener = TcpListener::bind((ip, port)).await.unwrap();
        let [received, permitted, answered] = [0, 0, 0].map(watch::Sender::new);
        let server = Arc::new(Self {
            received,
            permitted,
            answered,
        });
        tokio::spawn(server.clone().serve(listener));
        server
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(self.clone().answer(stream));
        }
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await.unwrap_or_default() == 0 {
                return;
            }
        }
        let mut number = 0;
        self.received.send_modify(|received| {
            *received += 1;
            number = *received;
        });
        reaches(&self.permitted, number).await;
        // The client may be gone.
        let _ = stream.write_all(ANSWER).await;
        let _ = stream.shutdown().await;
        self.answered.send_modify(|answered| *answered += 1);
    }

    /// Permits answers to this number of requests in all.
    pub(super) fn permit(&self, count: usize) {
        self.permitted.send_replace(count);
    }

    pub(super) fn received(&self) -> usize {
        *self.received.borrow()
    }

    pub(super) async fn await_received(&self, count: usize) {
        let reached = reaches(&self.received, count);
        tokio::time::timeout(SOON, reached).await.unwrap();
    }

    pub(super) async fn await_answered(&self, count: usize) {
        let reached = reaches(&self.answered, count);
        tokio::time::timeout(SOON, reached).await.unwrap();
    }
}

async fn reaches(counter: &watch::Sender<usize>, count: usize) {
    let mut counter = counter.subscribe();
    let _ = counter.wait_for(|number| *number >= count).await.unwrap();
}

/// Returns whether no connection waits to be accepted.
pub(super) fn is_idle(listener: TcpListener) -> bool {
    let accepted = listener.into_std().unwrap().accept();
    accepted.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
