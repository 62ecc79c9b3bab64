//! Keeps certificate, Secret and bundle as they should be, for ever. Every replica does: there is nothing that two of
//! them could do wrong that one could do right.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use operator_runtime::calls::CallError;
use operator_runtime::health::Health;

use super::Terms;
use super::generation::{CertificateError, Generation};
use super::present::{Presented, Trust, choose};
use super::store::{Store, bundles};
use super::stored::Stored;
use crate::metrics::Metrics;

/// The check in `/readyz`: there is a valid certificate, and it is recorded.
pub const CERTIFICATE: &str = "certificate";
/// The check in `/readyz`: the API server is told to trust it.
pub const CONFIGURATION: &str = "configuration";

/// After something that failed.
const RETRY: Duration = Duration::from_secs(2);
/// Without news, in case some were lost.
const BACKSTOP: Duration = Duration::from_secs(30);
/// Between two looks at least, whoever else writes in a loop.
const BREATH: Duration = Duration::from_millis(100);

/// Writes in a row for which this process may be too late before that is told: it may also be a namespace that is gone.
const LATE: usize = 10;

/// Why a step could not be taken.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Secret(CallError),
    #[error(transparent)]
    Configuration(CallError),
}

impl RenewalError {
    /// Whether what was read was no longer there, or another, when it was to be written.
    fn is_late(&self) -> bool {
        match self {
            Self::Certificate(_) => false,
            Self::Secret(error) | Self::Configuration(error) => {
                matches!(error, CallError::Conflict | CallError::Gone)
            }
        }
    }

    /// The check in `/readyz` that does not pass for it.
    fn check(&self) -> &'static str {
        match self {
            Self::Certificate(_) | Self::Secret(_) => CERTIFICATE,
            Self::Configuration(_) => CONFIGURATION,
        }
    }
}

/// Keeps them.
#[derive(Debug)]
pub struct Keeper {
    /// Where they are.
    pub store: Store,
    /// Names in the certificate.
    pub hosts: Vec<String>,
    /// How long certificates live.
    pub terms: Terms,
    /// What is presented.
    pub presented: Arc<Presented>,
    /// Readiness.
    pub health: Health,
    /// What Prometheus is told.
    pub metrics: Metrics,
    trust: Trust,
    serving: Option<Generation>,
}

impl Keeper {
    /// One that has not looked yet.
    pub fn new(
        store: Store,
        hosts: Vec<String>,
        terms: Terms,
        presented: Arc<Presented>,
        health: Health,
        metrics: Metrics,
    ) -> Self {
        Self {
            store,
            hosts,
            terms,
            presented,
            health,
            metrics,
            trust: Trust::default(),
            serving: None,
        }
    }

    /// Never ends.
    pub async fn run(mut self) {
        let mut changes = std::pin::pin!(self.store.changes());
        let mut late = 0;
        loop {
            let pause = match self.step().await {
                Ok(pause) => {
                    late = 0;
                    pause
                }
                // Somebody else was first: what they wrote is read at once.
                Err(trouble) if trouble.is_late() && late < LATE => {
                    late += 1;
                    BREATH
                }
                Err(trouble) => {
                    let check = trouble.check();
                    tracing::warn!(check, error = %trouble, "will try again");
                    self.health.fail(check, trouble.to_string());
                    RETRY
                }
            };
            tokio::time::sleep(BREATH).await;
            tokio::select! {
                _ = changes.next() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Looks at everything and mends what is not as it should be. Returns after what time to look again.
    async fn step(&mut self) -> Result<Duration, RenewalError> {
        let now = Timestamp::now();
        let (stored, unrecorded) = self.stored(now).await?;
        let found = self
            .store
            .configuration()
            .await
            .map_err(RenewalError::Configuration)?;
        let (settling, clock) = (self.terms.settling(), (Instant::now(), now));
        let mut known = found.as_ref().map(bundles);
        self.trust.look(&stored, known.as_deref(), clock, settling);
        // Before the bundle is written: what is presented must not depend on whether it can be.
        self.present(&stored, now)?;
        if let (Some(found), Some(known)) = (&found, &mut known) {
            let wanted = stored.bundle();
            if known.iter().any(|bundle| *bundle != wanted) {
                let written = self.store.trust(found, &wanted).await;
                written.map_err(RenewalError::Configuration)?;
                tracing::info!("the bundle of the ValidatingWebhookConfiguration was written");
                known.fill(wanted);
                self.trust.look(&stored, Some(known), clock, settling);
                self.present(&stored, now)?;
            }
        }
        if let Some(error) = unrecorded {
            return Err(error);
        }
        self.report(found.is_some(), now);
        let newer = stored
            .newer
            .as_ref()
            .filter(|newer| self.serving.as_ref() != Some(newer));
        let settled = newer.and_then(|newer| self.trust.left(newer, clock.0, settling));
        let due = Duration::try_from(stored.due(self.terms, now).duration_since(now)).unwrap_or_default();
        let older = stored
            .older
            .as_ref()
            .and_then(|older| Duration::try_from(older.until.duration_since(now)).ok());
        let pauses = [Some(BACKSTOP), Some(due), settled, older];
        Ok(pauses.into_iter().flatten().min().unwrap_or(BACKSTOP))
    }

    /// What is stored, with a new generation if one is due. One that could not be recorded is not used: the other
    /// replicas would not know it. Then what was found is good enough while it lasts.
    async fn stored(&self, now: Timestamp) -> Result<(Stored, Option<RenewalError>), RenewalError> {
        let found = self.store.secret().await.map_err(RenewalError::Secret)?;
        let data = found.as_ref().and_then(|secret| secret.data.as_ref());
        let stored = data.map_or_else(Stored::default, |data| Stored::read(data, &self.hosts, now));
        if stored.due(self.terms, now) > now {
            return Ok((stored, None));
        }
        let fresh = Generation::make(&self.hosts, now, self.terms.validity)?;
        let until = fresh.until;
        let next = stored.followed_by(fresh, self.serving.as_ref());
        match self.store.record(found.as_ref(), &next).await {
            Ok(()) => {
                self.metrics.renewed();
                tracing::info!(%until, "a certificate was made");
                Ok((next, None))
            }
            // Another replica was first. What was found is out of date: the bundle must not be written from it.
            Err(error @ (CallError::Conflict | CallError::Gone)) => Err(RenewalError::Secret(error)),
            Err(error) if stored.newer.is_some() => Ok((stored, Some(RenewalError::Secret(error)))),
            Err(error) => Err(RenewalError::Secret(error)),
        }
    }

    fn present(&mut self, stored: &Stored, now: Timestamp) -> Result<(), RenewalError> {
        let (at, settling) = (Instant::now(), self.terms.settling());
        let left = |generation: &Generation| self.trust.left(generation, at, settling);
        let Some(chosen) = choose(stored, self.serving.as_ref(), now, left).cloned() else {
            return Ok(());
        };
        if self.serving.as_ref() != Some(&chosen) {
            self.presented.set(chosen.check(&self.hosts, now)?);
            self.metrics.expires(chosen.until);
            tracing::info!(until = %chosen.until, "a certificate is presented");
            self.serving = Some(chosen);
        }
        Ok(())
    }

    fn report(&self, configured: bool, now: Timestamp) {
        match &self.serving {
            Some(serving) if serving.until > now => {
                self.health
                    .pass_saying(CERTIFICATE, format!("valid until {}", serving.until));
            }
            Some(serving) => self
                .health
                .fail(CERTIFICATE, format!("expired at {}", serving.until)),
            None => self.health.fail(CERTIFICATE, "there is none yet"),
        }
        if configured {
            self.health.pass(CONFIGURATION);
        } else {
            let why =
                "there is none of this name, so nobody asks; apply it, or give its name with --configuration";
            self.health.fail(CONFIGURATION, why);
        }
    }
}
