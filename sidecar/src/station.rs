//! One look at the time, the game port and the source of reports.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use crate::board::{Board, Known, Mark, Unknown};
use crate::flags::{Flags, ReportSource};
use crate::game::{GamePort, GameSockets};
use crate::metrics::{Counts, Snapshot};
use crate::moment::Moment;
use crate::report::Unreadable;
use crate::sockets::Sockets;
use crate::source::{Connections, Datagrams, PlayersFile, Source};

/// State of the sidecar.
#[derive(Debug)]
pub(crate) struct Station {
    game: GamePort,
    sockets: Sockets,
    source: Source,
    board: Board,
    /// Last look. Everything that arrived before it has been read.
    looked: Option<Mark>,
    /// Receives the connections for reports.
    connections: UnboundedSender<ReportConnection>,
    /// Number of connections so far.
    accepted: u64,
    /// Number of the connection whose report was recorded last.
    recorded: u64,
    counts: Counts,
    /// State in the last line of the log: a reason, or `Known`.
    logged: &'static str,
}

/// Connection for one report by HTTP.
#[derive(Debug)]
pub(crate) struct ReportConnection {
    pub(crate) stream: TcpStream,
    pub(crate) accepted: Accepted,
}

/// Order and date of a connection.
#[derive(Debug)]
pub(crate) struct Accepted {
    number: u64,
    /// Look after which it was opened.
    after: Option<Mark>,
}

/// Outcome of a report by HTTP.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// Its number is known now.
    Counted,
    /// A later connection has reported already.
    Overtaken,
    /// It did not count.
    NotCounted(Unknown),
}

impl Station {
    /// Opens the source of reports. Connections for reports go to `connections`.
    pub(crate) fn new(flags: &Flags, connections: UnboundedSender<ReportConnection>) -> io::Result<Self> {
        // Ends the program at its start, rather than in each answer, if sockets cannot be found here.
        let mut sockets = Sockets::new();
        if let GameSockets::Unreadable(problem) = flags.game_port.sockets(&mut sockets) {
            return Err(io::Error::other(problem));
        }
        let source = match flags.source {
            ReportSource::Udp => Source::Datagrams(Datagrams::bind(flags.report_address())?),
            ReportSource::Http => Source::Connections(Connections::bind(flags.report_address())?),
            ReportSource::File => Source::File(PlayersFile::new(flags.players_file())),
        };
        Ok(Self {
            game: flags.game_port,
            sockets,
            source,
            board: Board::new(flags.fresh_for),
            looked: None,
            connections,
            accepted: 0,
            recorded: 0,
            counts: Counts::default(),
            logged: "",
        })
    }

    /// Returns the address for reports.
    pub(crate) fn receives_at(&self) -> Option<SocketAddr> {
        match &self.source {
            Source::Datagrams(datagrams) => datagrams.address().ok(),
            Source::Connections(connections) => connections.address().ok(),
            Source::File(_) => None,
        }
    }

    /// Returns the listener for reports by HTTP.
    pub(crate) fn listener(&self) -> io::Result<Option<TcpListener>> {
        match &self.source {
            Source::Connections(connections) => connections.listener().map(Some),
            Source::Datagrams(_) | Source::File(_) => Ok(None),
        }
    }

    /// Takes a connection for a report that was accepted just now.
    pub(crate) fn adopt(&mut self, stream: TcpStream) {
        self.accepted += 1;
        let accepted = Accepted {
            number: self.accepted,
            after: self.looked.clone(),
        };
        // The receiver lives as long as the program.
        let _ = self.connections.send(ReportConnection { stream, accepted });
    }

    /// Takes the periodic look.
    pub(crate) fn beat(&mut self) {
        let now = self.look();
        self.log(&now);
    }

    /// Looks, and returns the number of players.
    pub(crate) fn players(&mut self) -> Result<Known, Unknown> {
        let now = self.look();
        self.board.known(&now)
    }

    /// Looks, and returns the values of metrics.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let now = self.look();
        Snapshot {
            known: self.board.known(&now),
            age: self.board.age(&now),
            counts: self.counts,
        }
    }

    /// Records that a connection for a report ended without one: the game server may have tried to report a
    /// player.
    pub(crate) fn lose(&mut self, accepted: &Accepted) {
        // Reports of earlier connections are overtaken by it.
        self.recorded = self.recorded.max(accepted.number);
        let now = self.mark();
        let outcome = self.board.report(Err(Unreadable::Incomplete), None, &now);
        self.counts.add(outcome);
    }

    /// Records a report by HTTP.
    pub(crate) fn report(&mut self, accepted: &Accepted, report: Result<u32, Unreadable>) -> Recorded {
        let now = self.mark();
        if accepted.number < self.recorded {
            // Which of the two was sent last is unknown.
            let outcome = self.board.report(Err(Unreadable::Overtaken), None, &now);
            self.counts.add(outcome);
            return Recorded::Overtaken;
        }
        self.recorded = accepted.number;
        let outcome = self.board.report(report, accepted.after.as_ref(), &now);
        self.counts.add(outcome);
        match self.board.known(&now) {
            Ok(_) => Recorded::Counted,
            Err(unknown) => Recorded::NotCounted(unknown),
        }
    }

    /// Reads what has arrived. Returns the time and the sockets of the game server after that: this process may
    /// have been stopped meanwhile.
    fn look(&mut self) -> Mark {
        // The first mark comes before the reads: whatever arrives later is read at the next look, and is dated here.
        let before = self.mark();
        self.board.look(&before);
        let found = self.source.look();
        for report in found.reports {
            // A problem of the source is no report.
            let is_report = !matches!(report, Err(Unreadable::Source(_)));
            let outcome = self.board.report(report, self.looked.as_ref(), &before);
            if is_report {
                self.counts.add(outcome);
            }
        }
        for stream in found.connections {
            self.adopt(stream);
        }
        if !found.more {
            self.looked = Some(before);
        }
        let now = self.mark();
        self.board.look(&now);
        now
    }

    fn mark(&mut self) -> Mark {
        let game = self.game.sockets(&mut self.sockets);
        let at = Moment::now();
        Mark { at, game }
    }

    /// Logs each change between a known number and the reasons why there is none.
    fn log(&mut self, now: &Mark) {
        let known = self.board.known(now);
        let reason = known.as_ref().map_or_else(Unknown::reason, |_| "Known");
        if self.logged == reason {
            return;
        }
        self.logged = reason;
        match known {
            Ok(known) => tracing::info!(players = known.players, "the number of players is known"),
            Err(unknown) => {
                tracing::warn!(reason, error = %unknown, "the number of players is unknown");
            }
        }
    }
}

/// State that listeners share with the periodic look.
#[derive(Debug, Clone)]
pub(crate) struct SharedStation(Arc<Mutex<Station>>);

impl SharedStation {
    pub(crate) fn new(station: Station) -> Self {
        Self(Arc::new(Mutex::new(station)))
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Station) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
