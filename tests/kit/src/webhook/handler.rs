//! State shared by the connections of one server: scripts and received requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use hyper::body::Incoming;

use super::answer::{Answer, Payload, Script};
use super::body;
use super::received::Received;
use super::tally::Tally;
use crate::keeper::lock;
use crate::loopback::{Answered, Ends, HangUp};

type Fallback = dyn Fn(&Received) -> Answer + Send + Sync;

/// Scripts and tally of one server.
pub(crate) struct Handler {
    scripts: Mutex<Scripts>,
    tally: Arc<Tally>,
    fallback: Box<Fallback>,
}

#[derive(Default)]
struct Scripts {
    by_path: HashMap<String, Script>,
    otherwise: Option<Script>,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Handler")
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl Handler {
    pub(crate) fn new() -> Self {
        Self::with_fallback(|request| {
            Answer::text(format!("no answer is set for {}", request.path)).with_status(404)
        })
    }

    /// Answers paths without a script with `fallback`.
    pub(crate) fn with_fallback(fallback: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            scripts: Mutex::default(),
            tally: Tally::new(),
            fallback: Box::new(fallback),
        }
    }

    pub(crate) fn on(&self, path: &str, script: Script) {
        lock(&self.scripts).by_path.insert(path.to_owned(), script);
    }

    pub(crate) fn otherwise(&self, script: Script) {
        lock(&self.scripts).otherwise = Some(script);
    }

    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Returns the next response of the script for this path, if there is one.
    pub(crate) fn scripted(&self, request: &Received) -> Option<Answer> {
        let mut scripts = lock(&self.scripts);
        let Scripts { by_path, otherwise } = &mut *scripts;
        let script = by_path.get_mut(&request.path).or(otherwise.as_mut())?;
        Some(script.next(request))
    }
}

pub(crate) async fn handle(handler: Arc<Handler>, request: Request<Incoming>, ends: Ends) -> Answered {
    let request = receive(request, ends).await?;
    let in_flight = handler.tally.enter(&request);
    let answer = handler
        .scripted(&request)
        .unwrap_or_else(|| (handler.fallback)(&request));
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
