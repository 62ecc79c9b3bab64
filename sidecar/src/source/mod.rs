//! Ways in which reports arrive.

mod connections;
mod datagrams;
mod file;

use std::net::TcpStream;

pub(crate) use connections::Connections;
pub(crate) use datagrams::Datagrams;
pub(crate) use file::PlayersFile;

use crate::report::Unreadable;

/// Arrivals since the previous look, in order. Each was sent after that look.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Reports.
    pub(crate) reports: Vec<Result<u32, Unreadable>>,
    /// Connections, each for one report.
    pub(crate) connections: Vec<TcpStream>,
    /// Whether some from before this look may still wait.
    pub(crate) more: bool,
}

/// Where a look finds reports.
#[derive(Debug)]
pub(crate) enum Source {
    /// UDP socket.
    Datagrams(Datagrams),
    /// File.
    File(PlayersFile),
    /// TCP listener.
    Connections(Connections),
}

impl Source {
    /// Returns the arrivals since the previous look.
    pub(crate) fn look(&mut self) -> Found {
        match self {
            Self::Datagrams(datagrams) => datagrams.drain(),
            Self::File(file) => Found {
                reports: file.look().into_iter().collect(),
                ..Found::default()
            },
            Self::Connections(listener) => {
                let (connections, more) = listener.accept();
                Found {
                    connections,
                    more,
                    ..Found::default()
                }
            }
        }
    }
}
