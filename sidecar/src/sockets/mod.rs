//! Sockets of this network namespace, which the containers of a pod share.
//!
//! | module | source |
//! | --- | --- |
//! | `netlink` | the kernel's answer to a query for one port |
//! | `proc_net` | tables in `/proc/net`, where a kernel or a sandbox answers no such query |

mod netlink;
mod proc_net;

use std::io;

use rustix::io::Errno;

/// Errors that pass: they say nothing about the next query.
const TRANSIENT: [Errno; 5] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
    Errno::NOBUFS,
    Errno::INTR,
];

/// Protocol of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// Socket that waits on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Socket {
    /// Identity. The kernel gives each new socket another one.
    pub(crate) inode: u64,
    /// Number of datagrams that the kernel has dropped because the socket was full.
    pub(crate) dropped: u32,
}

/// Reader of sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Whether the kernel answers queries. Asking again and again would make it look for its module each time.
    has_netlink: bool,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        Self { has_netlink: true }
    }

    /// Returns the sockets of TCP that listen on a port, or those of UDP that are bound to it and not connected: some
    /// servers connect a further socket to each player.
    pub(crate) fn on(&mut self, protocol: Protocol, port: u16) -> io::Result<Vec<Socket>> {
        if self.has_netlink {
            match netlink::sockets(protocol, port) {
                Err(error) => self.has_netlink = is_transient(&error),
                found => return found,
            }
        }
        proc_net::sockets(protocol, port)
    }
}

fn is_transient(error: &io::Error) -> bool {
    TRANSIENT
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    /// Reads a port in both ways, which must agree.
    fn on(protocol: Protocol, port: u16) -> Vec<Socket> {
        let mut both = [
            netlink::sockets(protocol, port).unwrap(),
            proc_net::sockets(protocol, port).unwrap(),
        ];
        for found in &mut both {
            found.sort();
        }
        assert_eq!(both[0], both[1]);
        both[0].clone()
    }

    #[test]
    fn each_socket_has_its_own_inode_while_it_is_open() {
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        let before = on(Protocol::Udp, address.port());
        assert_eq!(before.len(), 1);
        drop(first);
        assert_eq!(on(Protocol::Udp, address.port()), []);
        let _second = UdpSocket::bind(address).unwrap();
        let after = on(Protocol::Udp, address.port());
        assert_eq!(after.len(), 1);
        assert_ne!(after, before);
    }

    #[test]
    fn sockets_that_are_connected_to_a_player_do_not_count() {
        let player = UdpSocket::bind("127.0.0.1:0").unwrap();
        let game = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = game.local_addr().unwrap().port();
        assert_eq!(on(Protocol::Udp, port).len(), 1);
        game.connect(player.local_addr().unwrap()).unwrap();
        assert_eq!(on(Protocol::Udp, port), []);
    }

    #[test]
    fn sockets_of_ipv6_count() {
        let (Ok(udp), Ok(tcp)) = (UdpSocket::bind("[::1]:0"), TcpListener::bind("[::1]:0")) else {
            return;
        };
        assert_eq!(on(Protocol::Udp, udp.local_addr().unwrap().port()).len(), 1);
        assert_eq!(on(Protocol::Tcp, tcp.local_addr().unwrap().port()).len(), 1);
    }

    /// A connection says nothing about the server: it may be outgoing, or outlive the listener.
    #[test]
    fn only_listening_sockets_of_tcp_count() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let (_server, _) = listener.accept().unwrap();
        assert_eq!(on(Protocol::Tcp, address.port()).len(), 1);
        assert_eq!(on(Protocol::Tcp, client.local_addr().unwrap().port()), []);
        drop(listener);
        assert_eq!(on(Protocol::Tcp, address.port()), []);
    }

    #[test]
    fn lost_datagrams_are_counted() {
        let full = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(full.local_addr().unwrap()).unwrap();
        let port = full.local_addr().unwrap().port();
        assert_eq!(on(Protocol::Udp, port)[0].dropped, 0);
        for _ in 0..5_000 {
            sender.send(b"0").unwrap();
        }
        assert!(on(Protocol::Udp, port)[0].dropped > 0);
    }

    #[test]
    fn a_query_without_an_answer_is_not_repeated() {
        let mut sockets = Sockets { has_netlink: false };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(sockets.on(Protocol::Udp, port).unwrap(), on(Protocol::Udp, port));
        assert!(is_transient(&Errno::MFILE.into()) && !is_transient(&Errno::NOENT.into()));
    }
}
