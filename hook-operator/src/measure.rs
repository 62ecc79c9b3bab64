//! Takes one measurement: reads what it refers to, fills in placeholders, asks, judges.

use std::sync::Arc;
use std::time::Duration;

use hook_core::answer::{Answer, MeasurementFailure};
use hook_core::decide::{Outcome, Slot};
use hook_core::redact::Redactor;
use hook_core::render::{References, Rendered, references, render};
use hook_core::resolve::{Arguments, ResolvedMetric};
use hook_core::verdict::{Rules, Verdict, judge};
use jiff::Timestamp;

use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::provider::Providers;

/// Everything that a measurement needs.
pub struct Measurer<L> {
    /// Where Secrets and `ConfigMaps` are read.
    pub ledger: Arc<L>,
    /// Who asks.
    pub providers: Providers,
    /// Who counts.
    pub metrics: Metrics,
}

impl<L> Clone for Measurer<L> {
    fn clone(&self) -> Self {
        Self {
            ledger: self.ledger.clone(),
            providers: self.providers.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

impl<L: Ledger> Measurer<L> {
    /// Takes one measurement. Dropping the future cancels the call.
    pub async fn measure(
        &self,
        namespace: &str,
        slot: Slot,
        metric: &ResolvedMetric,
        arguments: &Arguments,
    ) -> Outcome {
        let _in_flight = InFlight::enter(&self.metrics);
        let started_at = Timestamp::now();
        let (verdict, failure) = match self.prepare(namespace, metric, arguments).await {
            Ok(rendered) => self.ask(namespace, metric, &rendered).await,
            Err(failure) => judged(metric, None, Err(failure)),
        };
        let finished_at = Timestamp::now();
        let took = Duration::try_from(finished_at.duration_since(started_at)).unwrap_or_default();
        let span = tracing::Span::current();
        span.record("provider", metric.provider.name());
        span.record("phase", verdict.phase.as_str());
        if let Some(failure) = &failure {
            span.record("failure", failure.kind.as_str());
        }
        self.metrics.measured(
            metric.provider.name(),
            verdict.phase,
            failure.map(|failure| failure.kind),
            took,
        );
        Outcome {
            slot,
            started_at,
            finished_at,
            verdict,
        }
    }

    async fn prepare(
        &self,
        namespace: &str,
        metric: &ResolvedMetric,
        arguments: &Arguments,
    ) -> Result<Rendered, MeasurementFailure> {
        let mut values = References::new();
        for reference in references(metric, arguments) {
            let text = self.ledger.resolve(namespace, &reference).await?;
            values.insert(reference, text);
        }
        render(metric, arguments, &values)
    }

    async fn ask(
        &self,
        namespace: &str,
        metric: &ResolvedMetric,
        rendered: &Rendered,
    ) -> (Verdict, Option<MeasurementFailure>) {
        let outcome = self.providers.measure(namespace, &rendered.request).await;
        judged(metric, Some(rendered), outcome)
    }
}

/// Judges an outcome and takes secrets out of all that is shown.
fn judged(
    metric: &ResolvedMetric,
    rendered: Option<&Rendered>,
    outcome: Result<Answer, MeasurementFailure>,
) -> (Verdict, Option<MeasurementFailure>) {
    let rules = Rules {
        success: rendered.and_then(|rendered| rendered.success.as_ref()),
        failure: rendered.and_then(|rendered| rendered.failure.as_ref()),
        on_no_data: metric.on_no_data,
    };
    let redactor = rendered.map_or_else(Redactor::default, |rendered| rendered.redactor.clone());
    let verdict = judge(&rules, &outcome, Timestamp::now(), &redactor);
    (verdict, outcome.err())
}

/// Counts a measurement in flight for as long as it lives, however it ends.
struct InFlight<'a>(&'a Metrics);

impl<'a> InFlight<'a> {
    fn enter(metrics: &'a Metrics) -> Self {
        metrics.in_flight.inc();
        Self(metrics)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
