//! Matches: they arrive at random for the whole fleet, and each starts on a random idle server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::TAU;

use fastrand::Rng;

/// Share of the servers that are busy before the scale-down, on average. The same matches keep 85 % of half the
/// servers busy afterwards: with 1,000 servers, 425 of 500, whose deviation of about 21 leaves room for peaks.
const BUSY: f64 = 0.425;
/// Median length of a match, in seconds.
const MEDIAN: f64 = 18.0 * 60.0;
/// Standard deviation of the logarithm of the length.
const SIGMA: f64 = 0.6;

/// State of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// No match is being played.
    Idle,
    /// A match has been played since this second.
    Busy(u32),
    /// The pod is gone.
    Gone,
}

/// The servers and their matches. Time is in seconds.
pub(super) struct Traffic {
    rng: Rng,
    servers: Vec<Server>,
    idle: Vec<usize>,
    /// End and server of each match.
    ends: BinaryHeap<Reverse<(u32, usize)>>,
    /// Average number of matches that arrive in a second.
    rate: f64,
    next_arrival: f64,
    /// Matches that wait for a server.
    waiting: u32,
    /// Matches that have ever had to wait.
    queued: u32,
    second: u32,
}

impl Traffic {
    /// Creates idle servers.
    pub(super) fn new(seed: u64, servers: usize) -> Self {
        let mean = MEDIAN * (SIGMA * SIGMA / 2.0).exp();
        #[expect(clippy::cast_precision_loss, reason = "few servers")]
        let rate = BUSY * servers as f64 / mean;
        let mut traffic = Self {
            rng: Rng::with_seed(seed),
            servers: vec![Server::Idle; servers],
            idle: (0..servers).collect(),
            ends: BinaryHeap::new(),
            rate,
            next_arrival: 0.0,
            waiting: 0,
            queued: 0,
            second: 0,
        };
        traffic.next_arrival = traffic.gap();
        traffic
    }

    /// Plays until the end of this second.
    pub(super) fn advance(&mut self, until: u32) {
        while self.second < until {
            self.second += 1;
            self.end_matches();
            while self.waiting > 0 && self.start() {
                self.waiting -= 1;
            }
            while self.next_arrival <= f64::from(self.second) {
                let gap = self.gap();
                self.next_arrival += gap;
                if !self.start() {
                    self.waiting += 1;
                    self.queued += 1;
                }
            }
        }
    }

    /// Returns the state of a server.
    pub(super) fn server(&self, server: usize) -> Server {
        self.servers.get(server).copied().unwrap_or(Server::Gone)
    }

    /// Returns the number of servers with a match.
    pub(super) fn busy(&self) -> usize {
        let busy = |server: &&Server| matches!(server, Server::Busy(_));
        self.servers.iter().filter(busy).count()
    }

    /// Returns how many matches have had to wait for a server.
    pub(super) fn queued(&self) -> u32 {
        self.queued
    }

    /// Deletes a server. Returns the seconds that the match on it was played, if there was one.
    pub(super) fn close(&mut self, server: usize) -> Option<u32> {
        let before = self.server(server);
        self.set(server, Server::Gone);
        self.idle.retain(|idle| *idle != server);
        match before {
            Server::Busy(since) => Some(self.second - since),
            Server::Idle | Server::Gone => None,
        }
    }

    fn set(&mut self, server: usize, state: Server) {
        if let Some(known) = self.servers.get_mut(server) {
            *known = state;
        }
    }

    fn end_matches(&mut self) {
        while let Some(Reverse((end, server))) = self.ends.peek().copied() {
            if end > self.second {
                return;
            }
            self.ends.pop();
            // The match on a deleted server has ended with it.
            if matches!(self.server(server), Server::Busy(_)) {
                self.set(server, Server::Idle);
                self.idle.push(server);
            }
        }
    }

    /// Starts a match on a random idle server, if there is one.
    fn start(&mut self) -> bool {
        if self.idle.is_empty() {
            return false;
        }
        let at = self.rng.usize(..self.idle.len());
        let server = self.idle.swap_remove(at);
        let length = self.length();
        self.set(server, Server::Busy(self.second));
        self.ends.push(Reverse((self.second + length, server)));
        true
    }

    /// Returns the time until the next arrival: exponentially distributed, so that the arrivals are a Poisson process.
    fn gap(&mut self) -> f64 {
        -(1.0 - self.rng.f64()).ln() / self.rate
    }

    /// Returns the length of a match: log-normally distributed, by the method of Box and Muller.
    fn length(&mut self) -> u32 {
        let radius = (-2.0 * (1.0 - self.rng.f64()).ln()).sqrt();
        let normal = radius * (TAU * self.rng.f64()).cos();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of seconds"
        )]
        let length = (MEDIAN * (SIGMA * normal).exp()).round() as u32;
        length.max(1)
    }
}
