//! Traces for an OpenTelemetry collector: OTLP over HTTP, off unless an endpoint is configured.
//!
//! A span is opened with the target [`TARGET`]; without an endpoint it costs nothing. Spans carry namespaces,
//! names and classes, never URLs, arguments or answers, which may contain secrets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use crate::error::root_cause;
use crate::telemetry::Telemetry;

/// Target of spans that are exported.
pub const TARGET: &str = shared_api::names::TRACE_TARGET;

/// Timeout for sending a batch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("--otlp-endpoint {endpoint:?}: {message}; use a URL such as http://collector:4318")]
pub struct InvalidEndpoint {
    endpoint: String,
    message: String,
}

/// Creates an exporter that sends spans to an endpoint in batches, on the current runtime.
pub(crate) fn provider(telemetry: &Telemetry, endpoint: &str) -> Result<SdkTracerProvider, InvalidEndpoint> {
    let invalid = |message: String| InvalidEndpoint {
        endpoint: endpoint.to_owned(),
        message,
    };
    let url = reqwest::Url::parse(endpoint).map_err(|error| invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("the scheme must be http or https".to_owned()));
    }
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .build();
    let sender = Sender {
        client: client.map_err(|error| invalid(root_cause(&error)))?,
        runtime: Handle::current(),
        failing: AtomicBool::new(false),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(sender)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(TIMEOUT)
        .build()
        .map_err(|error| invalid(error.to_string()))?;
    let resource = Resource::builder()
        .with_service_name(telemetry.name)
        .with_attribute(KeyValue::new("service.version", telemetry.version))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

/// Creates the layer that passes the program's spans to a provider.
pub(crate) fn layer<S>(provider: &SdkTracerProvider) -> OpenTelemetryLayer<S, SdkTracer>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(TARGET))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
}

/// Sends batches on the program's runtime, because the exporter's own thread has none.
#[derive(Debug)]
struct Sender {
    client: reqwest::Client,
    runtime: Handle,
    failing: AtomicBool,
}

impl Sender {
    /// Logs when the collector starts to fail and when it recovers, not for every batch.
    fn note(&self, failure: Option<String>) {
        let failed_before = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !failed_before => {
                tracing::warn!(
                    error,
                    "failed to send traces; traces are dropped until the collector accepts them"
                );
            }
            None if failed_before => tracing::info!("traces are being sent again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let call = self.runtime.spawn(async move {
            let answer = client.execute(request.try_into()?).await?;
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(answer.headers());
            }
            Ok::<_, HttpError>(response.body(answer.bytes().await?)?)
        });
        let answer = call.await.map_err(HttpError::from).flatten();
        self.note(match &answer {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector returned {}", response.status())),
            Err(error) => Some(root_cause(error.as_ref())),
        });
        answer
    }
}
