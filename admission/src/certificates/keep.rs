//! Reconciles certificate, Secret and bundle for the lifetime of the process. Every replica does so, because
//! concurrent replicas cannot harm each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use operator_runtime::calls::CallError;
use operator_runtime::health::Health;

use super::CertificateLifetimes;
use super::generation::{CertificateError, Generation};
use super::present::{Presented, TrustedAuthorities, choose};
use super::store::{CertificateStore, bundles};
use super::stored::Stored;
use crate::metrics::Metrics;
use crate::removal::entries::{GuardEntries, KnownEntries};

/// Check in `/readyz`: a valid certificate exists and is recorded.
pub const CERTIFICATE: &str = "certificate";
/// Check in `/readyz`: the API server is configured to trust the certificate.
pub const CONFIGURATION: &str = "configuration";

/// Delay after a failed step.
const RETRY: Duration = Duration::from_secs(2);
/// Maximum time between two steps, in case watch events were lost.
const RESYNC_PERIOD: Duration = Duration::from_secs(30);
/// Minimum time between two steps, even if another process writes in a loop.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Number of consecutive conflicting writes before an error is reported. The cause may also be a deleted
/// namespace.
const MAX_CONFLICTS: usize = 10;

/// Reason why a step failed.
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
    /// Returns whether the object was changed or deleted between the read and the write.
    fn is_late(&self) -> bool {
        match self {
            Self::Certificate(_) => false,
            Self::Secret(error) | Self::Configuration(error) => {
                matches!(error, CallError::Conflict | CallError::Gone)
            }
        }
    }

    /// Returns the check in `/readyz` that this error fails.
    fn check(&self) -> &'static str {
        match self {
            Self::Certificate(_) | Self::Secret(_) => CERTIFICATE,
            Self::Configuration(_) => CONFIGURATION,
        }
    }
}

/// Controller that keeps the certificate, its Secret and the bundle up to date.
#[derive(Debug)]
pub struct CertificateController {
    /// Access to the Secret and the configuration.
    pub store: CertificateStore,
    /// Names in the certificate.
    pub hosts: Vec<String>,
    /// Validity of new certificates.
    pub lifetimes: CertificateLifetimes,
    /// Certificate presented in handshakes.
    pub presented: Arc<Presented>,
    /// Entries of the removal guard in the configuration.
    pub entries: Arc<KnownEntries>,
    /// Readiness.
    pub health: Health,
    /// Prometheus metrics.
    pub metrics: Metrics,
    trust: TrustedAuthorities,
    serving: Option<Generation>,
}

impl CertificateController {
    /// Creates a controller that has not run yet.
    pub fn new(
        store: CertificateStore,
        hosts: Vec<String>,
        lifetimes: CertificateLifetimes,
        presented: Arc<Presented>,
        entries: Arc<KnownEntries>,
        health: Health,
        metrics: Metrics,
    ) -> Self {
        Self {
            store,
            hosts,
            lifetimes,
            presented,
            entries,
            health,
            metrics,
            trust: TrustedAuthorities::default(),
            serving: None,
        }
    }

    /// Runs forever.
    pub async fn run(mut self) {
        let mut changes = std::pin::pin!(self.store.changes());
        let mut late = 0;
        loop {
            let pause = match self.step().await {
                Ok(pause) => {
                    late = 0;
                    pause
                }
                // Another replica wrote first: read its result at once.
                Err(trouble) if trouble.is_late() && late < MAX_CONFLICTS => {
                    late += 1;
                    MIN_PAUSE
                }
                Err(trouble) => {
                    let check = trouble.check();
                    tracing::warn!(check, error = %trouble, "reconciliation failed; retrying");
                    self.health.fail(check, trouble.to_string());
                    RETRY
                }
            };
            tokio::time::sleep(MIN_PAUSE).await;
            tokio::select! {
                _ = changes.next() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Runs one reconciliation. Returns the delay until the next one.
    async fn step(&mut self) -> Result<Duration, RenewalError> {
        let now = Timestamp::now();
        let (stored, unrecorded) = self.stored(now).await?;
        let found = self
            .store
            .configuration()
            .await
            .map_err(RenewalError::Configuration)?;
        self.entries.set(GuardEntries::of(found.as_ref()));
        let (settling, clock) = (self.lifetimes.settling(), (Instant::now(), now));
        let mut known = found.as_ref().map(bundles);
        self.trust.look(&stored, known.as_deref(), clock, settling);
        // Before the write of the bundle, so that the presented certificate does not depend on its success.
        self.present(&stored, now)?;
        if let (Some(found), Some(known)) = (&found, &mut known) {
            let wanted = stored.bundle();
            if known.iter().any(|bundle| *bundle != wanted) {
                let written = self.store.trust(found, &wanted).await;
                written.map_err(RenewalError::Configuration)?;
                tracing::info!("updated caBundle of the ValidatingWebhookConfiguration");
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
        let due = Duration::try_from(stored.due(self.lifetimes, now).duration_since(now)).unwrap_or_default();
        let older = stored
            .older
            .as_ref()
            .and_then(|older| Duration::try_from(older.until.duration_since(now)).ok());
        let pauses = [Some(RESYNC_PERIOD), Some(due), settled, older];
        Ok(pauses.into_iter().flatten().min().unwrap_or(RESYNC_PERIOD))
    }

    /// Returns the stored generations, with a new one if it is due. A generation that could not be recorded
    /// is not used, because the other replicas would not know it. In that case the old generations stay in
    /// use while they are valid.
    async fn stored(&self, now: Timestamp) -> Result<(Stored, Option<RenewalError>), RenewalError> {
        let found = self.store.secret().await.map_err(RenewalError::Secret)?;
        let data = found.as_ref().and_then(|secret| secret.data.as_ref());
        let stored = data.map_or_else(Stored::default, |data| Stored::read(data, &self.hosts, now));
        if stored.due(self.lifetimes, now) > now {
            return Ok((stored, None));
        }
        let fresh = Generation::make(&self.hosts, now, self.lifetimes.validity)?;
        let until = fresh.until;
        let next = stored.followed_by(fresh, self.serving.as_ref());
        match self.store.record(found.as_ref(), &next).await {
            Ok(()) => {
                self.metrics.renewed();
                tracing::info!(%until, "created a certificate");
                Ok((next, None))
            }
            // Another replica was first. Our copy is outdated, so the bundle must not be derived from it.
            Err(error @ (CallError::Conflict | CallError::Gone)) => Err(RenewalError::Secret(error)),
            Err(error) if stored.newer.is_some() => Ok((stored, Some(RenewalError::Secret(error)))),
            Err(error) => Err(RenewalError::Secret(error)),
        }
    }

    fn present(&mut self, stored: &Stored, now: Timestamp) -> Result<(), RenewalError> {
        let (at, settling) = (Instant::now(), self.lifetimes.settling());
        let left = |generation: &Generation| self.trust.left(generation, at, settling);
        let Some(chosen) = choose(stored, self.serving.as_ref(), now, left).cloned() else {
            return Ok(());
        };
        if self.serving.as_ref() != Some(&chosen) {
            self.presented.set(chosen.check(&self.hosts, now)?);
            self.metrics.expires(chosen.until);
            tracing::info!(until = %chosen.until, "presenting a certificate");
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
            None => self.health.fail(CERTIFICATE, "not created yet"),
        }
        if configured {
            self.health.pass(CONFIGURATION);
        } else {
            let why = "the ValidatingWebhookConfiguration does not exist, so the API server sends no requests; \
                       apply it, or set its name with --configuration";
            self.health.fail(CONFIGURATION, why);
        }
    }
}
