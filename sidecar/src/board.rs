//! Which report counts, how old it is, and why no number is known. Pure: the caller passes the time.
//!
//! The time at which a report was sent is unknown: it may have waited in a socket while this process did not
//! run. Each report is therefore dated at the earliest time at which it can have been sent, and counts only if
//! the game server was the same at that time and when the report was read.

use std::time::Duration;

use crate::game::GameSockets;
use crate::moment::Moment;
use crate::report::Unreadable;

/// Time of a look, and the sockets of the game server at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Moment,
    pub(crate) game: GameSockets,
}

/// Outcome of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// Its number is known now.
    Counted,
    /// It cannot be read.
    Unreadable,
    /// It may be too old, or may be from a game server that no longer runs.
    NotCounted,
}

/// Number of players, and the maximum age of its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) players: u32,
    pub(crate) age: Duration,
}

/// Why no number is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unknown {
    /// No report since the sidecar started.
    #[error("no valid report received from the game server since the sidecar started")]
    NoReport,
    /// The last report is too old.
    #[error("the last report is {:.1}s old; reports are valid for {:.1}s", age.as_secs_f64(), fresh_for.as_secs_f64())]
    Stale {
        /// Maximum age of the report.
        age: Duration,
        /// Age up to which a report counts.
        fresh_for: Duration,
    },
    /// No process holds the game port.
    #[error("no process is listening on the game port; the game server is not running, or uses another port")]
    GameGone,
    /// The game port has other sockets than at the last report.
    #[error("the game server has restarted or reopened its port, and has not sent a report since then")]
    GameRestarted,
    /// The last report cannot be read.
    #[error("{0}")]
    Unreadable(Unreadable),
}

/// All reasons.
pub(crate) const REASONS: [&str; 5] = ["NoReport", "Stale", "GameGone", "GameRestarted", "Unreadable"];

impl Unknown {
    /// Name of the reason, in answers, logs and metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NoReport => "NoReport",
            Self::Stale { .. } => "Stale",
            Self::GameGone => "GameGone",
            Self::GameRestarted => "GameRestarted",
            Self::Unreadable(_) => "Unreadable",
        }
    }
}

/// Last report.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Last {
    Nothing,
    Number {
        players: u32,
        sent_after: Mark,
    },
    Unreadable(Unreadable),
    /// From a game server that no longer runs.
    Void,
}

/// Last report, and how long it counts.
#[derive(Debug)]
pub(crate) struct Board {
    fresh_for: Duration,
    last: Last,
}

impl Board {
    pub(crate) fn new(fresh_for: Duration) -> Self {
        Self {
            fresh_for,
            last: Last::Nothing,
        }
    }

    /// Records a report that was sent after `sent_after` and is read at `now`. Without `sent_after`, it may be
    /// from any time, and does not count.
    pub(crate) fn report(
        &mut self,
        report: Result<u32, Unreadable>,
        sent_after: Option<&Mark>,
        now: &Mark,
    ) -> Outcome {
        let players = match report {
            Ok(players) => players,
            Err(unreadable) => {
                self.last = Last::Unreadable(unreadable);
                return Outcome::Unreadable;
            }
        };
        let Some(sent_after) = sent_after else {
            self.last = Last::Nothing;
            return Outcome::NotCounted;
        };
        let is_same = match &now.game {
            GameSockets::Unwatched => true,
            GameSockets::Watched(inodes) => !inodes.is_empty() && sent_after.game == now.game,
            GameSockets::Unreadable(_) => false,
        };
        if !is_same {
            self.last = Last::Void;
            return Outcome::NotCounted;
        }
        self.last = Last::Number {
            players,
            sent_after: sent_after.clone(),
        };
        if self.known(now).is_ok() {
            Outcome::Counted
        } else {
            Outcome::NotCounted
        }
    }

    /// Drops the last report if the game server has restarted since.
    pub(crate) fn look(&mut self, now: &Mark) {
        if let Last::Number { sent_after, .. } = &self.last
            && sent_after.game != now.game
        {
            self.last = Last::Void;
        }
    }

    /// Returns the number of players, or why it is unknown.
    pub(crate) fn known(&self, now: &Mark) -> Result<Known, Unknown> {
        match &now.game {
            GameSockets::Watched(inodes) if inodes.is_empty() => return Err(Unknown::GameGone),
            GameSockets::Unreadable(problem) => {
                return Err(Unknown::Unreadable(Unreadable::Source(problem.clone())));
            }
            GameSockets::Watched(_) | GameSockets::Unwatched => {}
        }
        match &self.last {
            Last::Nothing => Err(Unknown::NoReport),
            Last::Unreadable(unreadable) => Err(Unknown::Unreadable(unreadable.clone())),
            Last::Void => Err(Unknown::GameRestarted),
            Last::Number { sent_after, .. } if sent_after.game != now.game => Err(Unknown::GameRestarted),
            Last::Number { players, sent_after } => {
                let age = now.at.since(sent_after.at);
                let fresh_for = self.fresh_for;
                if age <= fresh_for {
                    let players = *players;
                    Ok(Known { players, age })
                } else {
                    Err(Unknown::Stale { age, fresh_for })
                }
            }
        }
    }

    /// Returns the maximum age of the last report, whether or not it still counts.
    pub(crate) fn age(&self, now: &Mark) -> Option<Duration> {
        match &self.last {
            Last::Number { sent_after, .. } => Some(now.at.since(sent_after.at)),
            Last::Nothing | Last::Unreadable(_) | Last::Void => None,
        }
    }
}

#[cfg(test)]
mod tests;
