//! Takes one measurement: reads its references, fills in placeholders, makes the call and judges the answer.

use std::sync::Arc;
use std::time::Duration;

use hook_core::answer::{
    MeasurementFailure, MeasurementReason, ProviderResponse, annotated, interpret_command, interpret_object,
    pod_uid,
};
use hook_core::decide::{MeasurementKey, MeasurementOutcome};
use hook_core::judge::{MeasurementResult, Rules, judge};
use hook_core::render::{MAX_REQUEST, References, Rendered, RenderedRules, longest, references, render};
use hook_core::request::ProviderRequest;
use hook_core::resolve::ResolvedMetric;
use hook_driver::SharedRun;
use hook_providers::{MemoryReservation, Providers};
use jiff::Timestamp;
use redact::Redactor;
use shared_api::names::argument::POD_NAMESPACE;
use shared_api::{HookRun, Phase};

use crate::backend::{Backend, REFERENCE_RESERVATION};
use crate::observer::Observer;

/// Most references of one metric: together with its request and answer they fit into the largest reservation.
const MAX_REFERENCES: usize = 8;
/// Most bytes that are reserved for rendering a request.
const REQUEST_RESERVATION: usize = 2 * MAX_REQUEST;

/// Everything that a measurement needs.
pub struct Measurer<B> {
    /// Source of Secrets and `ConfigMaps`.
    pub backend: Arc<B>,
    /// Providers that make the calls.
    pub providers: Providers,
    /// Observer of the measurements.
    pub observer: Arc<dyn Observer>,
}

impl<B> Clone for Measurer<B> {
    fn clone(&self) -> Self {
        Self {
            backend: self.backend.clone(),
            providers: self.providers.clone(),
            observer: self.observer.clone(),
        }
    }
}

/// Capacity ran out before the call. This does not count as a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAsked {
    /// Key of the measurement to start again.
    pub key: MeasurementKey,
    /// Reason, for users.
    pub why: String,
}

impl<B: Backend> Measurer<B> {
    /// Takes one measurement of a metric of the run. Calls `active` with the reason while a Job has not ended.
    /// Dropping the future cancels the call.
    pub async fn measure(
        &self,
        run: &HookRun,
        key: MeasurementKey,
        resolved: &SharedRun,
        active: &(dyn Fn(String) + Send + Sync),
    ) -> Result<MeasurementOutcome, NotAsked> {
        let Some(metric) = metric_of(resolved, &key) else {
            // The run has no such metric.
            return std::future::pending().await;
        };
        let _in_flight = InFlight::enter(self.observer.as_ref());
        let begun = Timestamp::now();
        let Judged {
            verdict,
            failure,
            times,
        } = self.ask(run, &key, resolved, begun, active).await;
        let (started_at, finished_at) = times.unwrap_or_else(|| (begun, Timestamp::now()));
        let took = Duration::try_from(finished_at.duration_since(started_at)).unwrap_or_default();
        let provider = metric.provider.name();
        let span = tracing::Span::current();
        span.record("provider", provider);
        if let Some(reason) = verdict.reason {
            span.record("failure", reason.as_str());
        }
        if let Some(failure) = failure.filter(|failure| failure.kind == MeasurementReason::NotAsked) {
            self.observer.not_asked(provider);
            let why = format!(
                "metric {}: {failure}; it will start as soon as capacity is available",
                key.metric
            );
            return Err(NotAsked { key, why });
        }
        span.record("phase", verdict.phase.as_str());
        self.observer
            .measured(provider, verdict.phase, verdict.reason, took);
        Ok(MeasurementOutcome {
            key,
            started_at,
            finished_at,
            verdict,
        })
    }

    /// Runs one measurement while holding its memory reservation.
    async fn ask(
        &self,
        run: &HookRun,
        key: &MeasurementKey,
        resolved: &SharedRun,
        begun: Timestamp,
        active: &(dyn Fn(String) + Send + Sync),
    ) -> Judged {
        let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
        let mut reservation = self.providers.reserve(namespace);
        let (request, rules) = match self.prepare(namespace, key, resolved, &mut reservation).await {
            Ok(Rendered { request, rules }) => (request, rules),
            Err(failure) => return judged(Phase::Error, None, Err(failure)),
        };
        let on_no_data = metric_of(resolved, key).map_or(Phase::Error, |metric| metric.on_no_data);
        if let Err(failure) = check_namespace(&request, namespace) {
            return judged(on_no_data, Some(&rules), Err(failure));
        }
        match request {
            ProviderRequest::Http(request) => {
                let reply = self.providers.ask(namespace, &request, &mut reservation).await;
                let times = Some(until_now(begun));
                let judge = move || {
                    let answer = reply.and_then(|reply| reply.interpret(&request));
                    judged(on_no_data, Some(&rules), answer)
                };
                let judged = self.providers.compute().run(namespace, judge).await;
                Judged { times, ..judged }
            }
            ProviderRequest::Job(request) => {
                // A Job may take hours, and needs no memory here meanwhile.
                drop(reservation);
                let ended = self.backend.run_job(run, key, request, active).await;
                let times = ended.as_ref().ok().map(|job| (job.started_at, job.ended_at));
                let answer = ended.map(|job| job.response);
                let judge = move || judged(on_no_data, Some(&rules), answer);
                let judged = self.providers.compute().run(namespace, judge).await;
                Judged { times, ..judged }
            }
            ProviderRequest::Read(request) => {
                let object = self.backend.read_object(run, &request, &mut reservation).await;
                let times = Some(until_now(begun));
                let run_pod = pod_uid(run).map(str::to_owned);
                let judge = move || {
                    let answer =
                        object.and_then(|object| interpret_object(&request, run_pod.as_deref(), &object));
                    judged(on_no_data, Some(&rules), answer)
                };
                let judged = self.providers.compute().run(namespace, judge).await;
                Judged { times, ..judged }
            }
            ProviderRequest::Exec(request) => {
                let sent = self.backend.run_command(run, &request, &mut reservation).await;
                let times = Some(until_now(begun));
                let judge = move || {
                    let answer = sent.and_then(|sent| interpret_command(&request, &sent));
                    judged(on_no_data, Some(&rules), answer)
                };
                let judged = self.providers.compute().run(namespace, judge).await;
                Judged { times, ..judged }
            }
            ProviderRequest::Annotate(request) => {
                let written = self.backend.annotate_pod(run, &request).await;
                let times = Some(until_now(begun));
                let answer = written.map(|()| annotated(&request));
                Judged {
                    times,
                    ..judged(on_no_data, Some(&rules), answer)
                }
            }
        }
    }

    async fn prepare(
        &self,
        namespace: &str,
        key: &MeasurementKey,
        run: &SharedRun,
        reservation: &mut MemoryReservation,
    ) -> Result<Rendered, MeasurementFailure> {
        let unknown =
            || MeasurementFailure::new(MeasurementReason::InvalidRequest, "the metric no longer exists");
        let resolved = run.as_ref().as_ref().map_err(|_| unknown())?;
        let metric = resolved.metric(&key.metric).ok_or_else(unknown)?;
        let wanted = references(metric, &resolved.arguments);
        if wanted.len() > MAX_REFERENCES {
            let message = format!(
                "the metric refers to {} keys of Secrets and ConfigMaps; the limit is {MAX_REFERENCES}",
                wanted.len()
            );
            return Err(MeasurementFailure::new(
                MeasurementReason::InvalidRequest,
                message,
            ));
        }
        reservation.grow_to(wanted.len() * REFERENCE_RESERVATION).await?;
        let mut values = References::new();
        for reference in wanted {
            let text = self.backend.resolve(namespace, &reference, reservation).await?;
            values.insert(reference, text);
        }
        let read: usize = values.values().map(String::len).sum();
        // Twice: once as rendered and once as sent.
        let request = longest(metric, &resolved.arguments, &values).min(REQUEST_RESERVATION);
        reservation.grow_to(read + 2 * request).await?;
        if values.is_empty() {
            let rendered = render(metric, &resolved.arguments, &values)?;
            reservation.hold_only(2 * rendered.request.bytes());
            return Ok(rendered);
        }
        // Rendering searches and escapes texts of others and compiles conditions that contain them, so it
        // runs on another thread.
        let (run, name) = (run.clone(), key.metric.clone());
        let rendering = move || {
            let resolved = run.as_ref().as_ref().ok()?;
            Some(render(resolved.metric(&name)?, &resolved.arguments, &values))
        };
        let rendered = self.providers.compute().run(namespace, rendering).await;
        let rendered = rendered.ok_or_else(unknown)??;
        reservation.hold_only(read + 2 * rendered.request.bytes());
        Ok(rendered)
    }
}

/// Rejects an object that the arguments place in another namespace. It would be looked for in the run's own.
fn check_namespace(request: &ProviderRequest, namespace: &str) -> Result<(), MeasurementFailure> {
    match request.object().and_then(|object| object.namespace.as_deref()) {
        Some(other) if other != namespace => {
            let message =
                format!("argument {POD_NAMESPACE} is {other:?}; hooks can access only their own namespace");
            Err(MeasurementFailure::new(
                MeasurementReason::InvalidRequest,
                message,
            ))
        }
        Some(_) | None => Ok(()),
    }
}

fn metric_of<'r>(run: &'r SharedRun, key: &MeasurementKey) -> Option<&'r ResolvedMetric> {
    run.as_ref().as_ref().ok()?.metric(&key.metric)
}

/// Measurement that is judged.
struct Judged {
    verdict: MeasurementResult,
    failure: Option<MeasurementFailure>,
    /// Start of the measurement and arrival of its answer, if there is one.
    times: Option<(Timestamp, Timestamp)>,
}

/// Times of a measurement whose answer arrives now: judging it may have to wait, or the machine be suspended, and an
/// answer must not seem to be newer than it is. The providers drop one that may have arrived before.
fn until_now(begun: Timestamp) -> (Timestamp, Timestamp) {
    (begun, Timestamp::now())
}

/// Judges an outcome. The result contains no secrets.
fn judged(
    on_no_data: Phase,
    rendered: Option<&RenderedRules>,
    outcome: Result<ProviderResponse, MeasurementFailure>,
) -> Judged {
    let rules = Rules {
        success: rendered.and_then(|rendered| rendered.success.as_ref()),
        failure: rendered.and_then(|rendered| rendered.failure.as_ref()),
        on_no_data,
    };
    let redactor = rendered.map_or_else(Redactor::default, |rendered| rendered.redactor.clone());
    let verdict = judge(&rules, &outcome, Timestamp::now(), &redactor);
    Judged {
        verdict,
        failure: outcome.err(),
        times: None,
    }
}

/// Counts a measurement as in flight until it is dropped.
struct InFlight<'a>(&'a dyn Observer);

impl<'a> InFlight<'a> {
    fn enter(observer: &'a dyn Observer) -> Self {
        observer.entered();
        Self(observer)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.left();
    }
}
