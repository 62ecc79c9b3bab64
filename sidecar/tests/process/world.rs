//! A sidecar with its game server, and the judge of every answer.
//!
//! The judge knows what the game server sent, and when. It accepts a number only if the game server that runs now
//! sent it last, and no longer ago than the sidecar may believe it. Any 503 is accepted, so a test that wants a
//! number must ask for it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::game::Game;
use crate::http::Response;
use crate::sidecar::Sidecar;
use crate::wait::eventually;

/// Reasons for a 503.
pub(crate) const REASONS: [&str; 5] = ["NoReport", "Stale", "GameGone", "GameRestarted", "Unreadable"];
/// Error that the rounding of `ageSeconds` allows, in seconds.
const ROUNDING: f64 = 0.1;

/// Way of a report to the sidecar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    Udp,
    Http,
    File,
}

pub(crate) const SOURCES: [Source; 3] = [Source::Udp, Source::Http, Source::File];

/// Configuration of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) source: Source,
    /// Protocol of the game port, or `none`.
    pub(crate) protocol: &'static str,
    /// Address of the game port.
    pub(crate) ip: IpAddr,
    pub(crate) fresh_for: Duration,
}

impl From<Source> for Setup {
    fn from(source: Source) -> Self {
        Self {
            source,
            protocol: "udp",
            ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            fresh_for: Duration::from_secs(10),
        }
    }
}

impl Setup {
    /// The same with the smallest `--fresh-for`.
    pub(crate) fn brief(source: Source) -> Self {
        Self {
            fresh_for: Duration::from_secs(2),
            ..source.into()
        }
    }

    fn flags(&self, port: u16, file: &str) -> Vec<String> {
        let source = format!("{:?}", self.source).to_lowercase();
        let game_port = match self.protocol {
            "none" => "none".to_owned(),
            protocol => format!("{port}/{protocol}"),
        };
        let fresh_for = format!("{}s", self.fresh_for.as_secs());
        let (flag, value) = match self.source {
            Source::File => ("--players-file", file),
            Source::Udp | Source::Http => ("--report-address", "127.0.0.1:0"),
        };
        let listen = ["--listen", "127.0.0.1:0"];
        let flags = [
            "--source",
            &source,
            "--game-port",
            &game_port,
            "--fresh-for",
            &fresh_for,
        ];
        flags
            .iter()
            .chain(&[flag, value])
            .chain(&listen)
            .map(|flag| (*flag).to_owned())
            .collect()
    }
}

/// Answer on `/players`.
#[derive(Debug)]
pub(crate) enum Answer {
    Known { number: u32, age: f64 },
    Unknown(String),
}

impl Answer {
    /// Parses a response, which must be exactly as documented.
    #[track_caller]
    pub(crate) fn of(response: &Response) -> Self {
        assert_eq!(
            response.header("content-type"),
            "application/json",
            "{response:?}"
        );
        assert_eq!(response.header("cache-control"), "no-store", "{response:?}");
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let members = body.as_object().unwrap();
        assert_eq!(members.len(), 2, "{body}");
        match response.status {
            200 => Self::Known {
                number: u32::try_from(body["players"].as_u64().unwrap()).unwrap(),
                age: body["ageSeconds"].as_f64().unwrap(),
            },
            503 => {
                let reason = body["reason"].as_str().unwrap();
                assert!(REASONS.contains(&reason), "{body}");
                assert!(!body["error"].as_str().unwrap().is_empty(), "{body}");
                Self::Unknown(reason.to_owned())
            }
            status => panic!("{status}: {body}"),
        }
    }

    /// Number of players, unless it is unknown.
    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            Self::Known { number, .. } => Some(*number),
            Self::Unknown(_) => None,
        }
    }

    /// Reason why the number is unknown, or nothing.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Known { .. } => "",
            Self::Unknown(reason) => reason,
        }
    }
}

/// Report that the game server sent.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// Nothing for one that nobody can read.
    number: Option<u32>,
    /// Time at which it had left the game server.
    at: Instant,
}

/// Running sidecar and game server.
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) sidecar: Sidecar,
    pub(crate) game: Option<Game>,
    pub(crate) port: u16,
    /// Last report of this game server to this sidecar.
    said: Option<Said>,
    /// Reports by HTTP without a response so far, after `said`.
    in_flight: Vec<Said>,
    is_stopped: bool,
    directory: TempDir,
}

impl World {
    /// Starts a game server, then the sidecar.
    pub(crate) fn start(setup: impl Into<Setup>) -> Self {
        let setup = setup.into();
        let mut game = Game::start();
        let port = match setup.protocol {
            "none" => 0,
            protocol => game.bind_anywhere(protocol, setup.ip),
        };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("players");
        let flags = setup.flags(port, &file.display().to_string());
        Self {
            setup,
            sidecar: Sidecar::start(&flags.iter().map(String::as_str).collect::<Vec<_>>()),
            game: Some(game),
            port,
            said: None,
            in_flight: Vec::new(),
            is_stopped: false,
            directory,
        }
    }

    /// The file of the source `file`.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("players")
    }

    /// The port for reports.
    pub(crate) fn report(&self) -> SocketAddr {
        self.sidecar.report.unwrap()
    }

    /// The game server, which must run.
    #[track_caller]
    pub(crate) fn game(&mut self) -> &mut Game {
        self.game.as_mut().unwrap()
    }

    /// Makes the game server report these bytes, which mean `number` or nothing.
    #[track_caller]
    pub(crate) fn say_bytes(&mut self, bytes: &[u8], number: Option<u32>) {
        let (file, to) = (self.file(), self.sidecar.report);
        let is_stopped = self.is_stopped;
        if !is_stopped {
            self.settle();
        }
        let source = self.setup.source;
        let game = self.game();
        match source {
            Source::Udp => game.send(to.unwrap(), bytes),
            Source::File => game.write(&file, bytes),
            Source::Http if is_stopped => game.queue(to.unwrap(), bytes),
            Source::Http => {
                let status = game.put(to.unwrap(), bytes);
                let expected: &[u16] = match number {
                    Some(_) => &[204, 503],
                    None if bytes.len() > 512 => &[413],
                    None => &[400],
                };
                assert!(
                    expected.contains(&status),
                    "{status} for {:?}",
                    String::from_utf8_lossy(bytes)
                );
            }
        }
        let said = Said {
            number,
            at: Instant::now(),
        };
        if is_stopped && source == Source::Http {
            self.in_flight.push(said);
        } else {
            self.said = Some(said);
        }
    }

    /// Makes the game server report a number.
    #[track_caller]
    pub(crate) fn say(&mut self, number: u32) {
        self.say_bytes(number.to_string().as_bytes(), Some(number));
    }

    /// Records a report that the test sends by itself.
    pub(crate) fn record(&mut self, number: Option<u32>) {
        self.said = Some(Said {
            number,
            at: Instant::now(),
        });
    }

    /// Waits for the responses of reports that the game server sent while the sidecar was stopped.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        if let Some(last) = self.in_flight.last().copied() {
            let statuses = self.game().collect();
            assert_eq!(statuses.len(), self.in_flight.len());
            self.said = Some(last);
            self.in_flight.clear();
        }
    }

    /// Reports a number until the sidecar knows it.
    #[track_caller]
    pub(crate) fn know(&mut self, number: u32) {
        eventually(|| {
            self.say(number);
            let answer = self.ask();
            if answer.number().is_some() {
                Ok(())
            } else {
                Err(answer)
            }
        });
    }

    /// Asks for the number of players, and judges the answer.
    #[track_caller]
    pub(crate) fn ask(&self) -> Answer {
        let asked = Instant::now();
        self.judge(asked, &self.sidecar.get("/players"))
    }

    /// Judges a response to a request that the sidecar cannot have read before `asked`.
    #[track_caller]
    pub(crate) fn judge(&self, asked: Instant, response: &Response) -> Answer {
        let answer = Answer::of(response);
        let Answer::Known { number, age } = answer else {
            return answer;
        };
        let checked = self.setup.protocol != "none";
        assert!(
            self.game.is_some() || !checked,
            "{answer:?} without a game server"
        );
        let all = self.said.iter().chain(&self.in_flight);
        let ago = |said: &Said| asked.duration_since(said.at);
        let possible = all.filter(|said| said.number == Some(number) && ago(said) <= self.setup.fresh_for);
        let youngest = possible.map(ago).min().unwrap_or_else(|| {
            let (said, in_flight) = (self.said, &self.in_flight);
            panic!("{answer:?} at {asked:?}, but the game server sent {said:?} and perhaps {in_flight:?}")
        });
        assert!(
            age + ROUNDING >= youngest.as_secs_f64(),
            "{answer:?}, but reported {youngest:?} ago"
        );
        answer
    }

    /// Asks until the number is unknown for this reason.
    #[track_caller]
    pub(crate) fn ask_until(&self, reason: &str) {
        eventually(|| {
            let answer = self.ask();
            if answer.reason() == reason {
                Ok(())
            } else {
                Err(answer)
            }
        });
    }

    /// Asks over several looks of the sidecar: each answer must be unknown.
    #[track_caller]
    pub(crate) fn stays_unknown(&self) {
        let begin = Instant::now();
        let mut count = 0;
        while count < 20 || begin.elapsed() < Duration::from_millis(700) {
            let answer = self.ask();
            assert_eq!(answer.number(), None, "{answer:?}");
            std::thread::sleep(Duration::from_millis(20));
            count += 1;
        }
    }

    /// Asks over several looks of the sidecar: each answer must be the last number.
    #[track_caller]
    pub(crate) fn stays_known(&self) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(700) {
            let answer = self.ask();
            assert_ne!(answer.number(), None, "{answer:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn forget(&mut self) {
        self.said = None;
        self.in_flight.clear();
    }

    /// Kills the game server.
    #[track_caller]
    pub(crate) fn kill_game(&mut self) {
        self.game().kill();
        self.game = None;
        if self.setup.protocol != "none" {
            self.forget();
        }
    }

    /// Starts a game server that opens the same port.
    #[track_caller]
    pub(crate) fn start_game(&mut self) {
        assert!(self.game.is_none());
        self.open_game(Game::start());
    }

    fn open_game(&mut self, mut game: Game) {
        if self.setup.protocol != "none" {
            game.bind(self.setup.protocol, SocketAddr::new(self.setup.ip, self.port));
        }
        self.game = Some(game);
    }

    /// Replaces the game server as fast as possible.
    #[track_caller]
    pub(crate) fn replace_game(&mut self) {
        let next = Game::start();
        self.kill_game();
        self.open_game(next);
    }

    /// Stops the process of the sidecar.
    pub(crate) fn stop(&mut self) {
        self.sidecar.stop();
        self.is_stopped = true;
    }

    /// Lets the process of the sidecar continue.
    pub(crate) fn resume(&mut self) {
        self.sidecar.resume();
        self.is_stopped = false;
    }

    /// Lets the stopped sidecar continue for this time, in which reports that wait stay without response.
    pub(crate) fn pulse(&mut self, time: Duration) {
        self.sidecar.resume();
        std::thread::sleep(time);
        self.sidecar.stop();
    }

    /// Replaces the sidecar by one that has seen nothing.
    pub(crate) fn restart_sidecar(&mut self) {
        self.settle();
        self.sidecar.kill();
        self.forget();
        let flags = self.setup.flags(self.port, &self.file().display().to_string());
        self.sidecar = Sidecar::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        self.is_stopped = false;
    }
}
