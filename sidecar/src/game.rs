//! Sockets of the game server, by which a restart is noticed.
//!
//! The containers of a pod share a network namespace, so the sidecar sees which sockets hold the game port. The
//! kernel closes the sockets of a process that ends, and gives each new socket another inode. This needs no
//! right, no shared process namespace and no code in the game server.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;

use procfs::net::{self, TcpNetEntry, TcpState, UdpNetEntry, UdpState};
use procfs::{ProcError, ProcResult};

use crate::listeners;

/// Port on which the game server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GamePort {
    /// Bound by a UDP socket that is not connected.
    Udp(u16),
    /// Listened on by a TCP socket.
    Tcp(u16),
    /// Unknown: restarts are not noticed.
    None,
}

impl FromStr for GamePort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let port = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|port: &u16| is_plain && *port != 0)
        };
        let parsed = match text.split_once('/') {
            Some((number, "udp")) => port(number).map(Self::Udp),
            Some((number, "tcp")) => port(number).map(Self::Tcp),
            _ => None,
        };
        parsed.ok_or_else(|| "must be PORT/udp or PORT/tcp with a port of 1 to 65535, or none".to_owned())
    }
}

impl fmt::Display for GamePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(port) => write!(f, "{port}/udp"),
            Self::Tcp(port) => write!(f, "{port}/tcp"),
            Self::None => f.write_str("none"),
        }
    }
}

/// Sockets that hold the game port, by inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GameSockets {
    /// The port is not watched.
    Unwatched,
    /// Sockets; none while the game server does not run.
    Watched(BTreeSet<u64>),
}

impl GameSockets {
    /// Whether no process holds the port.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Unwatched => false,
            Self::Watched(inodes) => inodes.is_empty(),
        }
    }
}

impl GamePort {
    /// Reads which sockets hold the port.
    pub(crate) fn sockets(self) -> io::Result<GameSockets> {
        let inodes = match self {
            Self::None => return Ok(GameSockets::Unwatched),
            Self::Udp(port) => bound(port)?,
            // Some sandboxes have no netlink of this kind.
            Self::Tcp(port) => listeners::listening(port).or_else(|_| listening(port))?,
        };
        // Sockets that are about to vanish have no inode.
        let inodes = inodes.into_iter().filter(|inode| *inode != 0);
        Ok(GameSockets::Watched(inodes.collect()))
    }
}

fn bound(port: u16) -> io::Result<Vec<u64>> {
    let sockets = read("udp", net::udp())?.into_iter();
    let sockets = sockets.chain(or_none(read("udp6", net::udp6()))?);
    // Some servers connect a further socket to each player: those come and go with players.
    let bound = |socket: &UdpNetEntry| socket.local_address.port() == port && socket.state == UdpState::Close;
    Ok(sockets.filter(bound).map(|socket| socket.inode).collect())
}

fn listening(port: u16) -> io::Result<Vec<u64>> {
    let sockets = read("tcp", net::tcp())?.into_iter();
    let sockets = sockets.chain(or_none(read("tcp6", net::tcp6()))?);
    let listening =
        |socket: &TcpNetEntry| socket.local_address.port() == port && socket.state == TcpState::Listen;
    Ok(sockets.filter(listening).map(|socket| socket.inode).collect())
}

fn read<T>(table: &str, read: ProcResult<Vec<T>>) -> io::Result<Vec<T>> {
    read.map_err(|error| {
        let kind = match error {
            ProcError::NotFound(_) => io::ErrorKind::NotFound,
            ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied,
            ProcError::Incomplete(_)
            | ProcError::Io(..)
            | ProcError::Other(_)
            | ProcError::InternalError(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, format!("failed to read /proc/net/{table}: {error}"))
    })
}

/// Returns no sockets if the kernel has no IPv6.
fn or_none<T>(table: io::Result<Vec<T>>) -> io::Result<Vec<T>> {
    match table {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    fn inodes(port: GamePort) -> BTreeSet<u64> {
        match port.sockets().unwrap() {
            GameSockets::Watched(inodes) => inodes,
            GameSockets::Unwatched => panic!("{port} is watched"),
        }
    }

    #[test]
    fn each_socket_has_its_own_inode_while_it_is_open() {
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        let port = GamePort::Udp(address.port());
        let before = inodes(port);
        assert_eq!(before.len(), 1);
        drop(first);
        assert!(port.sockets().unwrap().is_gone());
        let _second = UdpSocket::bind(address).unwrap();
        assert_eq!(inodes(port).len(), 1);
        assert_ne!(inodes(port), before);
    }

    #[test]
    fn sockets_that_are_connected_to_a_player_do_not_count() {
        let player = UdpSocket::bind("127.0.0.1:0").unwrap();
        let game = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = GamePort::Udp(game.local_addr().unwrap().port());
        assert_eq!(inodes(port).len(), 1);
        game.connect(player.local_addr().unwrap()).unwrap();
        assert!(port.sockets().unwrap().is_gone());
    }

    #[test]
    fn sockets_of_ipv6_count() {
        let Ok(socket) = UdpSocket::bind("[::1]:0") else {
            return;
        };
        assert_eq!(
            inodes(GamePort::Udp(socket.local_addr().unwrap().port())).len(),
            1
        );
    }

    /// Connections do not tell that the server runs: they may be outgoing, or outlive the listener.
    #[test]
    fn only_listening_sockets_of_tcp_count() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let found = inodes(GamePort::Tcp(address.port()));
        assert_eq!(found.len(), 1);
        let read = listening(address.port()).unwrap();
        assert_eq!(
            found,
            read.into_iter().collect(),
            "both tables have the same inodes"
        );
        let outgoing = GamePort::Tcp(client.local_addr().unwrap().port());
        assert!(outgoing.sockets().unwrap().is_gone());
        drop(listener);
        assert!(GamePort::Tcp(address.port()).sockets().unwrap().is_gone());
    }

    #[test]
    fn a_port_has_a_protocol() {
        for (text, port) in [
            ("7777/udp", GamePort::Udp(7777)),
            ("1/tcp", GamePort::Tcp(1)),
            ("none", GamePort::None),
        ] {
            assert_eq!(text.parse(), Ok(port));
            assert_eq!(port.to_string(), text);
        }
        for text in [
            "",
            "7777",
            "0/udp",
            "70000/udp",
            "7777/sctp",
            "7777/UDP",
            "-1/udp",
            "+1/udp",
            "/udp",
            "None",
        ] {
            assert!(text.parse::<GamePort>().is_err(), "{text}");
        }
    }
}
