//! Sockets of the game server, by which a restart is noticed.
//!
//! The containers of a pod share a network namespace, so the sidecar sees which sockets hold the game port. The
//! kernel closes the sockets of a process that ends, and gives each new socket another inode. This needs no
//! right, no shared process namespace and no code in the game server.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::sockets::{Protocol, Sockets};

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
        parsed.ok_or_else(|| "must be PORT/udp or PORT/tcp with a PORT from 1 to 65535, or none".to_owned())
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
    /// The sockets could not be read.
    Unreadable(String),
}

impl GamePort {
    /// Reads which sockets hold the port.
    pub(crate) fn sockets(self, sockets: &mut Sockets) -> GameSockets {
        let (protocol, port) = match self {
            Self::None => return GameSockets::Unwatched,
            Self::Udp(port) => (Protocol::Udp, port),
            Self::Tcp(port) => (Protocol::Tcp, port),
        };
        match sockets.on(protocol, port) {
            Ok(found) => GameSockets::Watched(found.into_iter().map(|socket| socket.inode).collect()),
            Err(error) => {
                GameSockets::Unreadable(format!("failed to find the sockets of game port {self}: {error}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let wrong = "0/udp 70000/udp 7777 7777/sctp 7777/UDP -1/udp +1/udp /udp None";
        for text in wrong.split(' ').chain([""]) {
            assert!(text.parse::<GamePort>().is_err(), "{text}");
        }
    }
}
