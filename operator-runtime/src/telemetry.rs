//! Logs for people or machines on standard error, and traces if they are configured.

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::traces::{self, InvalidEndpoint, TARGET};

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One human-readable line per entry.
    Human,
    /// One JSON object per entry.
    Json,
}

/// Settings for logs and traces.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Name in traces.
    pub name: &'static str,
    /// Version in traces.
    pub version: &'static str,
    /// Format of log lines.
    pub format: LogFormat,
    /// Log filter: a level (`info`) or directives (`info,hook_operator=debug`).
    pub log: String,
    /// Endpoint for traces; `None` sends none.
    pub otlp_endpoint: Option<String>,
}

/// Exporter of traces.
#[derive(Debug)]
pub struct Running(Option<SdkTracerProvider>);

impl Running {
    /// Sends the remaining traces.
    pub async fn end(self) {
        if let Some(provider) = self.0 {
            // Blocks until the collector answers or the timeout passes.
            let _ = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        }
    }
}

/// Starts logging, and tracing if it is configured. Needs a runtime, which sends the traces.
pub fn start(telemetry: &Telemetry) -> Result<Running, InvalidTelemetry> {
    let filter = EnvFilter::try_new(&telemetry.log).map_err(|error| InvalidTelemetry::Filter {
        filter: telemetry.log.clone(),
        message: error.to_string(),
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match telemetry.format {
        LogFormat::Human => lines
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Spans are not repeated in the log.
    let lines = lines
        .with_filter(filter)
        .with_filter(filter_fn(|about| about.target() != TARGET));
    let endpoint = telemetry
        .otlp_endpoint
        .as_deref()
        .filter(|endpoint| !endpoint.is_empty());
    let provider = endpoint
        .map(|endpoint| traces::provider(telemetry, endpoint))
        .transpose()?;
    let spans = provider.as_ref().map(|provider| {
        let only_spans = filter_fn(|about| about.is_span() && about.target() == TARGET);
        traces::layer(provider).with_filter(only_spans)
    });
    // A second start in the same process (tests) keeps the first one's settings.
    let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
    Ok(Running(provider))
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTelemetry {
    /// Log filter that does not parse.
    #[error(
        "log level {filter:?}: {message}; use a level such as info, or a list such as info,hook_operator=debug"
    )]
    Filter {
        /// Filter as given.
        filter: String,
        /// Parse error.
        message: String,
    },
    /// Endpoint that cannot be used.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
}
