//! Flags.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, ValueEnum};

use crate::game::GamePort;
use crate::http;

/// Shortest time for which a report counts: reports are read four times a second, and dated with care.
const MIN_FRESH_FOR: Duration = Duration::from_secs(2);
/// Longest time for which a report counts. A game server that hangs for longer must not look empty.
const MAX_FRESH_FOR: Duration = Duration::from_mins(10);
const DEFAULT_FILE: &str = "/hookgate/players";
const REPORT_PORT: u16 = 9358;

/// Way in which the game server reports its number of players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportSource {
    /// UDP datagrams to --report-address
    Udp,
    /// PUT /players to --report-address
    Http,
    /// A file
    File,
}

/// Sidecar for game servers without HTTP: provides hooks with the number of players that the server reports.
#[derive(Debug, Clone, Parser)]
#[command(name = "hookgate-sidecar", version, about, max_term_width = 100)]
pub(crate) struct Flags {
    /// How the game server reports its number of players
    #[arg(long)]
    pub(crate) source: ReportSource,

    /// Port on which the game server listens, such as 7777/udp or 7777/tcp. If its sockets change, the server
    /// has restarted, and its earlier reports are no longer valid. With none, a restart is not detected until the
    /// last report is too old
    #[arg(long, value_name = "PORT/PROTOCOL")]
    pub(crate) game_port: GamePort,

    /// How long a report is valid, from 2s to 10m; the game server should report three times as often
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = fresh_for)]
    pub(crate) fresh_for: Duration,

    /// File to which the game server writes its reports, with --source file [default: /hookgate/players]
    #[arg(long, value_name = "PATH")]
    players_file: Option<PathBuf>,

    /// Loopback address for reports, with --source udp or http [default: 127.0.0.1:9358]
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    report_address: Option<SocketAddr>,

    /// Listen address for hooks, probes and Prometheus [default: port 9357 on all addresses]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
}

impl Flags {
    /// Refuses flags that have no effect, and a game port that the sidecar itself holds.
    pub(crate) fn checked(self) -> Result<Self, clap::Error> {
        if self.own_ports().contains(&self.game_port) {
            let message = format!(
                "--game-port {} is a port of the sidecar itself; set the port on which the game server listens",
                self.game_port
            );
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        let refuse = |flag: &str, value: String, source: &str| {
            let message = format!("--{flag} {value} has no effect with --source {source}; remove --{flag}");
            Err(Self::command().error(ErrorKind::ArgumentConflict, message))
        };
        match (self.source, &self.players_file, self.report_address) {
            (ReportSource::File, _, Some(address)) => refuse("report-address", address.to_string(), "file"),
            (ReportSource::Udp, Some(path), _) => refuse("players-file", path.display().to_string(), "udp"),
            (ReportSource::Http, Some(path), _) => refuse("players-file", path.display().to_string(), "http"),
            (ReportSource::File, _, None) | (ReportSource::Udp | ReportSource::Http, None, _) => Ok(self),
        }
    }

    /// Returns the ports on which the sidecar listens.
    fn own_ports(&self) -> Vec<GamePort> {
        let answers = self.listen.map_or(http::PORT, |address| address.port());
        let report = self.report_address().port();
        let reports = match self.source {
            ReportSource::Udp => Some(GamePort::Udp(report)),
            ReportSource::Http => Some(GamePort::Tcp(report)),
            ReportSource::File => None,
        };
        reports.into_iter().chain([GamePort::Tcp(answers)]).collect()
    }

    /// Returns the address for reports by UDP or HTTP.
    pub(crate) fn report_address(&self) -> SocketAddr {
        let default = || SocketAddr::from((Ipv4Addr::LOCALHOST, REPORT_PORT));
        self.report_address.unwrap_or_else(default)
    }

    /// Returns the file for reports.
    pub(crate) fn players_file(&self) -> PathBuf {
        self.players_file
            .clone()
            .unwrap_or_else(|| PathBuf::from(DEFAULT_FILE))
    }
}

fn fresh_for(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if (MIN_FRESH_FOR..=MAX_FRESH_FOR).contains(&duration) {
        Ok(duration)
    } else {
        Err("must be between 2s and 10m".to_owned())
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "must be an IP address and a port, such as 127.0.0.1:9358".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(
            "must be a loopback address such as 127.0.0.1:9358, so that other pods cannot send reports"
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &str) -> Result<Flags, String> {
        let parsed = Flags::try_parse_from(format!("hookgate-sidecar {words}").split_whitespace());
        parsed.and_then(Flags::checked).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn defaults() {
        let flags = flags("--source udp --game-port 7777/udp").unwrap();
        assert_eq!(flags.report_address().to_string(), "127.0.0.1:9358");
        assert_eq!(flags.fresh_for, Duration::from_secs(10));
        assert_eq!(flags.players_file(), PathBuf::from("/hookgate/players"));
        assert_eq!(flags.listen, None);
    }

    #[test]
    fn wrong_flags_are_named_with_value_and_remedy() {
        let other = "the port on which the game server listens";
        let table = [
            ("--source udp --game-port 9358/udp", "--game-port 9358/udp", other),
            (
                "--source http --game-port 9358/tcp",
                "--game-port 9358/tcp",
                other,
            ),
            (
                "--source file --game-port 9357/tcp",
                "--game-port 9357/tcp",
                other,
            ),
            ("--game-port none", "--source", "required"),
            ("--source udp", "--game-port", "required"),
            ("--source tcp --game-port none", "tcp", "udp"),
            ("--source udp --game-port 7777", "'7777'", "PORT/udp"),
            (
                "--source udp --game-port none --fresh-for 1s",
                "--fresh-for",
                "between 2s and 10m",
            ),
            (
                "--source udp --game-port none --fresh-for 11m",
                "'11m'",
                "between 2s and 10m",
            ),
            (
                "--source udp --game-port none --report-address 0.0.0.0:1",
                "'0.0.0.0:1'",
                "loopback",
            ),
            (
                "--source udp --game-port none --report-address localhost",
                "'localhost'",
                "127.0.0.1:9358",
            ),
            (
                "--source udp --game-port none --players-file /x",
                "--players-file /x",
                "remove --",
            ),
            (
                "--source http --game-port none --players-file /x",
                "--players-file /x",
                "remove --",
            ),
            (
                "--source file --game-port none --report-address [::1]:1",
                "[::1]:1",
                "remove --",
            ),
        ];
        for (words, named, remedy) in table {
            let error = flags(words).unwrap_err();
            assert!(
                error.contains(named) && error.contains(remedy),
                "{words}: {error}"
            );
        }
    }
}
