//! Flags and environment.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use operator_runtime::leader::LeaderArgs;
use operator_runtime::shard::{Scope, Shard};
use operator_runtime::telemetry::LogFormat;

/// Runs GameDeployments: pods leave only when their hook says so.
#[derive(Debug, Clone, Parser)]
#[command(name = "gamedeployment-operator", version, about, max_term_width = 100)]
pub struct Config {
    /// Work in this namespace only [default: all namespaces]
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_NAMESPACE")]
    pub namespace: Option<String>,

    /// Work in this shard of all namespaces only, such as 0/3 for the first of three [default: all namespaces]
    #[arg(
        long,
        env = "GAMEDEPLOYMENT_OPERATOR_SHARD",
        value_name = "INDEX/COUNT",
        conflicts_with = "namespace"
    )]
    pub shard: Option<Shard>,

    /// Address of /healthz, /readyz and /metrics
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// How log lines look
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// Log level, or directives such as `info,gamedeployment_operator=debug`
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_LOG", default_value = "info")]
    pub log: String,

    /// Send traces to this OpenTelemetry collector, by OTLP over HTTP, such as `http://collector:4318` [default: none are sent]
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        hide_env_values = true
    )]
    pub otlp_endpoint: Option<String>,

    /// Offer the original operator's metrics as well, for dashboards that know them
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_ORIGINAL_METRICS")]
    pub original_metrics: bool,

    /// Time that a call of the API server may take
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_API_TIMEOUT", default_value = "10s", value_parser = duration)]
    pub api_timeout: Duration,

    /// Calls of the API server at a time
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_API_CONCURRENCY", default_value_t = 64)]
    pub api_concurrency: usize,

    /// Do not watch nodes: no deletion costs of nodes, and hooks are asked about pods whose node is gone
    #[arg(long, env = "GAMEDEPLOYMENT_OPERATOR_IGNORE_NODES")]
    pub ignore_nodes: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub leader: LeaderArgs,
}

impl Config {
    /// What of the cluster is this process's.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            namespace: self.namespace.clone(),
            shard: self.shard,
        }
    }
}

fn duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_flags_are_consistent() {
        super::Config::command().debug_assert();
    }

    #[test]
    fn a_shard_is_of_all_namespaces() {
        let parsed = |flags: &[&str]| {
            let all = ["gamedeployment-operator"].iter().chain(flags);
            super::Config::try_parse_from(all).map_err(|error| error.to_string())
        };
        let scope = parsed(&["--shard", "1/3"]).unwrap().scope();
        assert_eq!(
            (scope.namespace, scope.shard),
            (None, Some("1/3".parse().unwrap()))
        );
        let both = parsed(&["--shard", "1/3", "--namespace", "games"]).unwrap_err();
        assert!(
            both.contains("'--shard <INDEX/COUNT>' cannot be used with '--namespace"),
            "{both}"
        );
        let beyond = parsed(&["--shard=3/3"]).unwrap_err();
        assert!(beyond.contains("the last of 3 is 2/3"), "{beyond}");
    }
}
