//! `/healthz`, `/readyz` and `/metrics`.
//!
//! Alive means that this process answers. Ready means that it can work: every named check passes and the API
//! server answers; otherwise `/readyz` returns 503 with the reason of each failing check.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::client::ApiMeter;

/// State that the endpoints report.
#[derive(Debug, Clone)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<&'static str, Check>>>,
    meter: ApiMeter,
}

#[derive(Debug, Clone)]
enum Check {
    Passes {
        words: String,
        since: Instant,
    },
    Fails(String),
    /// Watch that was interrupted. It counts as back when the API server grants it again, because there may
    /// be no event to show.
    Interrupted {
        why: String,
        resource: String,
        since: Instant,
    },
}

impl Health {
    /// Creates a state that is ready as soon as the API server answers, until checks are required.
    pub fn new(meter: ApiMeter) -> Self {
        Self {
            checks: Arc::default(),
            meter,
        }
    }

    /// Returns a state whose checks this one does not report.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::new(self.meter.clone())
    }

    /// Marks a check as passing.
    pub fn pass(&self, check: &'static str) {
        self.pass_saying(check, "ok");
    }

    /// Marks a check as passing, with a text.
    pub fn pass_saying(&self, check: &'static str, words: impl Into<String>) {
        let (words, mut since) = (words.into(), Instant::now());
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Check::Passes { since: known, .. }) = checks.get(check) {
            since = *known;
        }
        checks.insert(check, Check::Passes { words, since });
    }

    /// Adds checks that must pass. Until they are marked as passing, they fail.
    pub fn require(&self, checks: &[&'static str]) {
        for check in checks {
            self.fail(check, "not yet");
        }
    }

    /// Marks a check as failing, with the reason.
    pub fn fail(&self, check: &'static str, why: impl Into<String>) {
        self.set(check, Check::Fails(why.into()));
    }

    /// Marks the watch of a resource as interrupted, with the reason. The check passes again as soon as the
    /// API server grants another watch.
    pub fn interrupt(&self, check: &'static str, resource: impl Into<String>, why: impl Into<String>) {
        let (why, resource, since) = (why.into(), resource.into(), Instant::now());
        let interrupted = Check::Interrupted { why, resource, since };
        self.set(check, interrupted);
    }

    fn set(&self, check: &'static str, state: Check) {
        self.checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(check, state);
    }

    /// Time since which a check has passed without a break; `None` while it fails. For an interrupted watch
    /// without an event since, it is the time at which the API server granted it again.
    pub fn passes_since(&self, check: &str) -> Option<Instant> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        match checks.get(check)? {
            Check::Passes { since, .. } => Some(*since),
            Check::Interrupted { resource, since, .. } => self.meter.watched_since(resource, *since),
            Check::Fails(_) => None,
        }
    }

    /// Returns whether all checks pass, and a line for each check.
    pub fn report(&self) -> (bool, String) {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut checks: BTreeMap<&'static str, Result<String, String>> = checks
            .into_iter()
            .map(|(check, state)| (check, self.judge(state)))
            .collect();
        let answers = self.meter.outage().map_or(Ok("ok".to_owned()), |outage| {
            let seconds = Timestamp::now().duration_since(outage.since).as_secs();
            Err(format!("no good answer for {seconds}s: {}", outage.error))
        });
        checks.insert("api-server", answers);
        let line = |(check, state): (&&str, &Result<String, String>)| match state {
            Ok(words) => format!("[+] {check} {words}\n"),
            Err(why) => format!("[-] {check} {why}\n"),
        };
        (
            checks.values().all(Result::is_ok),
            checks.iter().map(line).collect(),
        )
    }
}

impl Health {
    fn judge(&self, check: Check) -> Result<String, String> {
        match check {
            Check::Passes { words, .. } => Ok(words),
            Check::Interrupted { resource, since, .. } if self.meter.watches_since(&resource, since) => {
                Ok("ok".to_owned())
            }
            Check::Fails(why) | Check::Interrupted { why, .. } => Err(why),
        }
    }
}

/// Serves the endpoints until the process ends. Returns the listening address.
pub async fn serve(listen: SocketAddr, health: Health, registry: Registry) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state((health, Arc::new(registry)));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the health and metrics endpoint ended");
        }
    });
    Ok(address)
}

type Served = (Health, Arc<Registry>);

async fn readyz(State((health, _)): State<Served>) -> impl IntoResponse {
    let (ready, report) = health.report();
    (
        if ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        report,
    )
}

async fn metrics(State((_, registry)): State<Served>) -> impl IntoResponse {
    let mut text = String::new();
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, content_type)], text),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(header::CONTENT_TYPE, "text/plain")],
            error.to_string(),
        ),
    }
}
