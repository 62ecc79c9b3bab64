//! Sockets that keep little in the kernel, where it counts as memory of the pod.
//!
//! A socket that is closed while its client does not read stays in the kernel with its data, for minutes and beyond
//! any limit on connections. So a connection ends when its client has closed it, too; it is reset if that takes long,
//! or if it has to make room.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Sleep, sleep};

/// Maximum number of connections that wait for their acceptance.
const BACKLOG: u32 = 4096;
/// Maximum time until a client closes a connection after the last response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Listens on an address. The kernel keeps about twice `buffer_bytes` in each direction of a connection.
pub fn listen(address: SocketAddr, buffer_bytes: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.set_recv_buffer_size(buffer_bytes)?;
    socket.set_send_buffer_size(buffer_bytes)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Maximum number of bytes that a client may send after the last response. It has sent them before it learned of the
/// response.
const MAX_DRAINED_BYTES: usize = 64 * 1024;

/// Accepted connection.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// End of the time for the client to close the connection, once this side has.
    closing: Option<Pin<Box<Sleep>>>,
    /// Number of bytes that arrived since then.
    drained: usize,
    is_closed: bool,
}

impl Socket {
    /// Wraps a connection.
    #[must_use]
    pub const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            closing: None,
            drained: 0,
            is_closed: false,
        }
    }

    /// Reads and drops what the client still sends, until it closes the connection or sends too much.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            self.is_closed = read.is_err() || buffer.filled().is_empty();
            self.drained += buffer.filled().len();
            if self.is_closed || self.drained > MAX_DRAINED_BYTES {
                return Poll::Ready(());
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.is_closed {
            // A reset: the kernel keeps nothing. A connection that is broken already needs none.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.closing = Some(Box::pin(sleep(CLOSE_TIMEOUT)));
        }
        if self.poll_drain(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.closing
            .as_mut()
            .map_or(Poll::Ready(()), |closing| closing.as_mut().poll(context))
            .map(Ok)
    }
}
