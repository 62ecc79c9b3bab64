//! One datagram is one report.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use rustix::fs::fstat;

use super::Found;
use crate::report::{self, MAX_BYTES, Unreadable};
use crate::sockets::{Protocol, Sockets};

/// Maximum number of datagrams of one look. A socket holds a few hundred: more arrive while they are read.
const MAX_DATAGRAMS: usize = 4_096;

/// Maximum number of times that a look reads the socket again because datagrams were dropped meanwhile.
const MAX_DRAINS: usize = 3;

/// Socket for reports. Each look asks the kernel: the runtime's record of what is readable may be late, and a
/// datagram that is overlooked would look younger than it is.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    /// Number of datagrams that the kernel has dropped because the socket was full. It keeps the oldest ones, so
    /// the last report that is read was not the last one that was sent.
    dropped: u32,
    sockets: Sockets,
}

impl Datagrams {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let bind = || {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            let mut datagrams = Self {
                socket,
                dropped: 0,
                sockets: Sockets::new(),
            };
            datagrams.dropped = datagrams.dropped()?;
            Ok(datagrams)
        };
        bind().map_err(crate::failed(format_args!("bind {address}/udp")))
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Reads all waiting datagrams. If some were dropped, the last report is an error.
    pub(crate) fn drain(&mut self) -> Found {
        let mut found = self.receive();
        // After a loss, whatever still waits is older than the lost datagrams.
        for _ in 0..MAX_DRAINS {
            match self.dropped() {
                Ok(dropped) if dropped == self.dropped => return found,
                Ok(dropped) => {
                    self.dropped = dropped;
                    let rest = self.receive();
                    found.reports.extend(rest.reports);
                    found.reports.push(Err(Unreadable::Flood));
                    found.more = rest.more;
                }
                Err(error) => {
                    let problem = format!("failed to read the number of lost datagrams: {error}");
                    found.reports.push(Err(Unreadable::Source(problem)));
                    found.more = true;
                    return found;
                }
            }
        }
        found.more = true;
        found
    }

    /// Returns the number of datagrams that the kernel has dropped because the socket was full.
    fn dropped(&mut self) -> io::Result<u32> {
        let inode = fstat(&self.socket)?.st_ino;
        let port = self.socket.local_addr()?.port();
        let found = self.sockets.on(Protocol::Udp, port)?;
        let own = found.iter().find(|socket| socket.inode == inode);
        own.map(|socket| socket.dropped)
            .ok_or_else(|| io::Error::other("the kernel did not return the socket"))
    }

    fn receive(&self) -> Found {
        // One byte more than a report, so that a longer one is noticed.
        let mut buffer = [0; MAX_BYTES + 1];
        let mut found = Found::default();
        for _ in 0..MAX_DATAGRAMS {
            match self.socket.recv(&mut buffer) {
                Ok(length) => found.reports.push(report::parse(&buffer[..length])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return found,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let problem = format!("failed to receive a datagram: {error}");
                    found.reports.push(Err(Unreadable::Source(problem)));
                    found.more = true;
                    return found;
                }
            }
        }
        found.reports.push(Err(Unreadable::Flood));
        found.more = true;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets() -> (Datagrams, UdpSocket) {
        let datagrams = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(datagrams.address().unwrap()).unwrap();
        (datagrams, sender)
    }

    #[test]
    fn reports_are_read_in_order() {
        let (mut datagrams, sender) = sockets();
        for report in ["0", "x", "3"] {
            sender.send(report.as_bytes()).unwrap();
        }
        let found = datagrams.drain();
        let players: Vec<Option<u32>> = found.reports.into_iter().map(Result::ok).collect();
        assert_eq!(players, [Some(0), None, Some(3)]);
        assert!(datagrams.drain().reports.is_empty());
    }

    /// A full socket keeps the oldest datagrams: the last one that is read says 0, and the last one that was sent 5.
    #[test]
    fn a_socket_that_was_full_yields_no_number() {
        let (mut datagrams, sender) = sockets();
        for _ in 0..2_000 {
            sender.send(b"0").unwrap();
        }
        sender.send(b"5").unwrap();
        assert_eq!(datagrams.drain().reports.pop(), Some(Err(Unreadable::Flood)));
        sender.send(b"5").unwrap();
        assert_eq!(datagrams.drain().reports, [Ok(5)]);
    }
}
