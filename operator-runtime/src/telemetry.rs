//! Logs, for people or for machines, on standard error; and traces, where somebody asks for them.

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::traces::{self, InvalidEndpoint, TARGET};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One readable line each.
    Human,
    /// One JSON object each.
    Json,
}

/// What a component tells of itself, besides metrics.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Its name, in traces.
    pub name: &'static str,
    /// Its version, in traces.
    pub version: &'static str,
    /// How log lines look.
    pub format: LogFormat,
    /// What is logged: a level (`info`) or directives (`info,hook_operator=debug`).
    pub log: String,
    /// Where traces are sent to; none: nowhere.
    pub otlp_endpoint: Option<String>,
}

/// Traces that are being sent.
#[derive(Debug)]
pub struct Running(Option<SdkTracerProvider>);

impl Running {
    /// Sends what is left.
    pub async fn end(self) {
        if let Some(provider) = self.0 {
            // It blocks until the collector has answered, or is given up on.
            let _ = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        }
    }
}

/// Starts logging, and tracing if that is asked for. Within a runtime: traces are sent by it.
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
    // What is traced is not said again in every line of the log.
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
    /// A log filter that cannot be read.
    #[error("log level {filter:?}: {message}; use for example info, or info,hook_operator=debug")]
    Filter {
        /// As it was given.
        filter: String,
        /// What is wrong with it.
        message: String,
    },
    /// An endpoint that cannot be used.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
}
