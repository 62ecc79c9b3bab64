//! One connection is one report by HTTP.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Maximum number of connections of one look.
const MAX_CONNECTIONS: usize = 64;

/// Listener for reports. Each look accepts the connections that wait: those that come later were opened after it.
#[derive(Debug)]
pub(crate) struct Connections(TcpListener);

impl Connections {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(Self(listener))
        };
        bind().map_err(crate::failed(format_args!("listen on {address}")))
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Returns another handle of the listener.
    pub(crate) fn listener(&self) -> io::Result<TcpListener> {
        self.0.try_clone()
    }

    /// Accepts all waiting connections. Returns whether some may still wait.
    pub(crate) fn accept(&self) -> (Vec<TcpStream>, bool) {
        let mut streams = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            match self.0.accept() {
                Ok((stream, _)) => streams.push(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (streams, false),
                // Some errors are those of one connection, which is gone; others last, such as a lack of file
                // descriptors.
                Err(_) => {}
            }
        }
        (streams, true)
    }
}
