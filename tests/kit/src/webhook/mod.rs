//! A sample HTTP server for hooks under test: it answers as it is told, and remembers what it was asked.
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
mod received;
mod tally;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use hyper::body::Incoming;

pub use answer::{Answer, Script};
pub use received::Received;
pub use tally::Counts;

use crate::keeper::lock;
use crate::loopback::{Answered, Ends, HangUp, Server};
use crate::wait::TimedOut;
use answer::Payload;
use tally::Tally;

/// A running sample server. Paths that it was told nothing about answer 404.
#[derive(Debug)]
pub struct Webhook {
    server: Server,
    desk: Arc<Desk>,
}

/// What all connections share.
struct Desk {
    scripts: Mutex<Scripts>,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct Scripts {
    by_path: HashMap<String, Script>,
    otherwise: Option<Script>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Desk")
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start() -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts a server at a given address, for instance a pod's own in 127.0.0.0/8.
    pub fn start_at(address: SocketAddr) -> io::Result<Self> {
        let desk = Arc::new(Desk {
            scripts: Mutex::default(),
            tally: Tally::new(),
        });
        let shared = Arc::clone(&desk);
        let server = Server::start(address, || {
            Ok::<_, io::Error>(move |request, ends| handle(Arc::clone(&shared), request, ends))
        })?;
        Ok(Self { server, desk })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `http://ADDRESS` followed by the path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// From now on this path is answered so.
    pub fn on(&self, path: &str, script: impl Into<Script>) {
        lock(&self.desk.scripts)
            .by_path
            .insert(path.to_owned(), script.into());
    }

    /// From now on every path without a script of its own is answered so.
    pub fn otherwise(&self, script: impl Into<Script>) {
        lock(&self.desk.scripts).otherwise = Some(script.into());
    }

    /// All requests so far, in order of arrival.
    #[must_use]
    pub fn all_requests(&self) -> Vec<Received> {
        self.desk.tally.requests()
    }

    /// The requests for a path so far, in order of arrival.
    #[must_use]
    pub fn requests(&self, path: &str) -> Vec<Received> {
        self.all_requests()
            .into_iter()
            .filter(|request| request.path == path)
            .collect()
    }

    /// What happened on a path so far.
    #[must_use]
    pub fn counts(&self, path: &str) -> Counts {
        self.desk.tally.counts(path)
    }

    /// How many requests for a path wait for their answer or read it.
    #[must_use]
    pub fn in_flight(&self, path: &str) -> usize {
        self.counts(path).in_flight
    }

    /// Waits until a path was asked for `count` times in all.
    pub async fn await_requests(
        &self,
        path: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<Vec<Received>, TimedOut> {
        self.desk
            .tally
            .reach(path, deadline, |counts| counts.received >= count)
            .await?;
        Ok(self.requests(path))
    }

    /// Waits until `count` requests for a path were given up by the client.
    pub async fn await_cancelled(
        &self,
        path: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), TimedOut> {
        self.desk
            .tally
            .reach(path, deadline, |counts| counts.cancelled >= count)
            .await
    }

    /// Waits until exactly `count` requests for a path are being answered.
    pub async fn await_in_flight(
        &self,
        path: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), TimedOut> {
        self.desk
            .tally
            .reach(path, deadline, |counts| counts.in_flight == count)
            .await
    }
}

impl Desk {
    fn answer_to(&self, request: &Received) -> Answer {
        let mut scripts = lock(&self.scripts);
        let Scripts { by_path, otherwise } = &mut *scripts;
        match by_path.get_mut(&request.path).or(otherwise.as_mut()) {
            Some(script) => script.next(request),
            None => Answer::text(format!("no answer is set for {}", request.path)).with_status(404),
        }
    }
}

async fn handle(desk: Arc<Desk>, request: Request<Incoming>, ends: Ends) -> Answered {
    let request = receive(request, ends).await?;
    let in_flight = desk.tally.enter(&request);
    let answer = desk.answer_to(&request);
    tokio::time::sleep(answer.delay).await;
    let payload = match answer.payload {
        Payload::Never => std::future::pending().await,
        Payload::HangUp => {
            in_flight.finish(0);
            return Err(HangUp);
        }
        Payload::Echo => Payload::Whole(request.echo().to_string().into()),
        other => other,
    };
    let (body, announced) = body::streamed(payload, in_flight);
    respond(answer.status, &answer.headers, announced, body).map_err(|_| HangUp)
}

async fn receive(request: Request<Incoming>, ends: Ends) -> Result<Received, HangUp> {
    let (parts, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(Body::new(body), usize::MAX)
        .await
        .map_err(|_| HangUp)?;
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(Received {
        at: Instant::now(),
        from: ends.from,
        to: ends.to,
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body,
    })
}

fn respond(
    status: u16,
    headers: &[(String, String)],
    announced: Option<usize>,
    body: Body,
) -> Result<Response<Body>, axum::http::Error> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    if let Some(length) = announced {
        response = response.header("content-length", length);
    }
    response.body(body)
}
