//! Sample HTTP server for hooks under test, with scripted responses and a record of its requests.
//!
//! ```no_run
//! # use test_kit::webhook::{Answer, Webhook};
//! # use serde_json::json;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let game = Webhook::start()?;
//! game.on("/players", Answer::json(json!({"count": 3})).times(3).then(Answer::json(json!({"count": 0}))));
//! // … the program under test calls game.url("/players") …
//! let seen = game.await_requests("/players", 4, std::time::Duration::from_secs(10)).await?;
//! assert_eq!(seen[0].method, "GET");
//! # Ok(())
//! # }
//! ```

mod answer;
mod body;
pub(crate) mod handler;
mod received;
mod tally;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub use answer::{Answer, Script};
pub use received::Received;
pub use tally::Counts;

pub(crate) use handler::Handler;

use crate::loopback::Server;
use crate::wait::TimedOut;

/// Running sample server. Paths without a script return 404.
#[derive(Debug)]
pub struct Webhook {
    server: Server,
    handler: Arc<Handler>,
}

impl Webhook {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start() -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts a server at a given address, for instance a pod's own in 127.0.0.0/8.
    pub fn start_at(address: SocketAddr) -> io::Result<Self> {
        let handler = Arc::new(Handler::new());
        let shared = Arc::clone(&handler);
        let server = Server::start(address, || {
            Ok::<_, io::Error>(move |request, ends| handler::handle(Arc::clone(&shared), request, ends))
        })?;
        Ok(Self { server, handler })
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns `http://ADDRESS` followed by the path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Sets the script for this path.
    pub fn on(&self, path: &str, script: impl Into<Script>) {
        self.handler.on(path, script.into());
    }

    /// Sets the script for every path without its own.
    pub fn otherwise(&self, script: impl Into<Script>) {
        self.handler.otherwise(script.into());
    }

    /// Returns all requests so far, in order of arrival.
    pub fn all_requests(&self) -> Vec<Received> {
        self.handler.tally().requests()
    }

    /// Returns the requests for a path so far, in order of arrival.
    pub fn requests(&self, path: &str) -> Vec<Received> {
        self.all_requests()
            .into_iter()
            .filter(|request| request.path == path)
            .collect()
    }

    /// Returns the counts for a path so far.
    pub fn counts(&self, path: &str) -> Counts {
        self.handler.tally().counts(path)
    }

    /// Counts the requests for a path that wait for their response or read it.
    pub fn in_flight(&self, path: &str) -> usize {
        self.counts(path).in_flight
    }

    /// Waits until the server has received `count` requests for a path in all.
    pub async fn await_requests(
        &self,
        path: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<Vec<Received>, TimedOut> {
        let enough = |counts: &Counts| counts.received >= count;
        self.handler.tally().reach(path, deadline, enough).await?;
        Ok(self.requests(path))
    }

    /// Waits until clients have cancelled `count` requests for a path.
    pub async fn await_cancelled(
        &self,
        path: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), TimedOut> {
        let enough = |counts: &Counts| counts.cancelled >= count;
        self.handler.tally().reach(path, deadline, enough).await
    }

    /// Waits until exactly `count` requests for a path are in flight.
    pub async fn await_in_flight(
        &self,
        path: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), TimedOut> {
        let exactly = |counts: &Counts| counts.in_flight == count;
        self.handler.tally().reach(path, deadline, exactly).await
    }
}
