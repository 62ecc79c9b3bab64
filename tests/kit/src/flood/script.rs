//! Behaviours of a flooding connection.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::tls;

/// Length of the endless header line before it only dribbles, in bytes.
const ENDLESS: usize = 400 * 1024;
/// Receive buffer of a client that does not read, in bytes.
const SMALL_BUFFER: u32 = 2048;
/// The same with TLS, whose handshake must fit.
const SMALL_TLS_BUFFER: u32 = 8192;
/// Time between two bytes of a client that dribbles.
const DRIBBLE: Duration = Duration::from_millis(100);
/// Time between two looks at a connection whose answer stays unread.
const LOOK: Duration = Duration::from_millis(100);
/// Part of a filler.
static CHUNK: [u8; 16 * 1024] = [b'x'; 16 * 1024];

/// Behaviour of a connection until the program closes it: it sends something at once, more as fast as the
/// program takes it, and then a byte now and then, or nothing. It never reads an answer.
#[derive(Debug, Clone, Default)]
pub struct Script {
    over_tls: bool,
    at_once: Vec<u8>,
    filler: usize,
    dribbles: bool,
    reads_little: bool,
}

impl Script {
    /// Sends nothing.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Sends a head with one header line that never ends.
    pub fn endless_head() -> Self {
        Self {
            at_once: b"GET /metrics HTTP/1.1\r\nHost: flood\r\nX-Filler: ".to_vec(),
            filler: ENDLESS,
            dribbles: true,
            ..Self::default()
        }
    }

    /// Sends a complete GET and does not read the answer.
    pub fn unread_get(path: &str) -> Self {
        Self {
            at_once: format!("GET {path} HTTP/1.1\r\nHost: flood\r\n\r\n").into_bytes(),
            reads_little: true,
            ..Self::default()
        }
    }

    /// Sends a complete POST this many times, without waiting, and reads no answer.
    pub fn unread_post(path: &str, body: &str, times: usize) -> Self {
        let head = post(path, body.len());
        Self {
            at_once: format!("{head}{body}").repeat(times).into_bytes(),
            reads_little: true,
            ..Self::default()
        }
    }

    /// Sends the first message of a TLS handshake and nothing more.
    ///
    /// # Errors
    /// If TLS cannot be configured.
    pub fn hello() -> io::Result<Self> {
        Ok(Self {
            at_once: tls::hello()?,
            ..Self::default()
        })
    }

    /// Sends a POST that announces a body of `length` bytes, `filler` bytes of it as fast as possible, and
    /// the others a byte at a time.
    pub fn slow_body(path: &str, length: usize, filler: usize) -> Self {
        let head = post(path, length);
        let begin = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""#;
        Self {
            at_once: format!("{head}{begin}").into_bytes(),
            filler,
            dribbles: true,
            ..Self::default()
        }
    }

    /// Does the same on a TLS connection, with any server.
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        self.over_tls = true;
        self
    }

    /// Returns the size of the receive buffer, unless it is the kernel's choice.
    pub(super) fn receive_buffer(&self) -> Option<u32> {
        let size = if self.over_tls {
            SMALL_TLS_BUFFER
        } else {
            SMALL_BUFFER
        };
        self.reads_little.then_some(size)
    }

    /// Plays the script until the connection is closed. The error of a connection that the program reset is
    /// an end like any other.
    pub(super) async fn play(
        &self,
        mut stream: TcpStream,
        server: IpAddr,
        tls: &TlsConnector,
    ) -> io::Result<()> {
        if self.over_tls {
            let mut stream = tls.connect(server.into(), stream).await?;
            self.send(&mut stream).await?;
            closed(stream.get_ref().0).await;
        } else {
            self.send(&mut stream).await?;
            closed(&stream).await;
        }
        Ok(())
    }

    async fn send(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.at_once).await?;
        let mut left = self.filler;
        while left > 0 {
            let chunk = left.min(CHUNK.len());
            to.write_all(CHUNK.get(..chunk).unwrap_or(&CHUNK)).await?;
            left -= chunk;
        }
        to.flush().await?;
        if self.dribbles { dribble(to).await } else { Ok(()) }
    }
}

/// Sends a byte now and then, until the program has closed the connection.
async fn dribble(to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    loop {
        tokio::time::sleep(DRIBBLE).await;
        to.write_all(b"x").await?;
        to.flush().await?;
    }
}

/// Builds the head of a POST.
fn post(path: &str, length: usize) -> String {
    let kind = "Content-Type: application/json";
    format!("POST {path} HTTP/1.1\r\nHost: flood\r\n{kind}\r\nContent-Length: {length}\r\n\r\n")
}

/// Waits until the program has closed the connection, without reading from it.
async fn closed(stream: &TcpStream) {
    loop {
        match stream.ready(Interest::READABLE).await {
            // An answer waits.
            Ok(ready) if !ready.is_read_closed() => tokio::time::sleep(LOOK).await,
            _ => return,
        }
    }
}
