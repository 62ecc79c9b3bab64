//! Logs, for people or for machines, on standard error.

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One readable line each.
    Human,
    /// One JSON object each.
    Json,
}

/// Starts logging. `filter` is a level (`info`) or directives (`info,hook_operator=debug`).
pub fn start(format: LogFormat, filter: &str) -> Result<(), InvalidFilter> {
    let filter = EnvFilter::try_new(filter).map_err(|error| InvalidFilter {
        filter: filter.to_owned(),
        message: error.to_string(),
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second start in the same process (tests) keeps the first one's settings.
    let _ = match format {
        LogFormat::Human => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("log level {filter:?}: {message}; use for example info, or info,hook_operator=debug")]
pub struct InvalidFilter {
    filter: String,
    message: String,
}
