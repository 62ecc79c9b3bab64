//! Flags and environment.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use operator_runtime::leader::LeaderArgs;
use operator_runtime::shard::{Scope, Shard};
use operator_runtime::telemetry::LogFormat;

use crate::provider::{EgressPolicy, EgressRule, Limits, Providers};

/// Measures the metrics of HookRuns and records their verdict.
#[derive(Debug, Clone, Parser)]
#[command(name = "hook-operator", version, about, max_term_width = 100)]
pub struct Config {
    /// Work in this namespace only [default: all namespaces]
    #[arg(long, env = "HOOK_OPERATOR_NAMESPACE")]
    pub namespace: Option<String>,

    /// Work in this shard of all namespaces only, such as 0/3 for the first of three [default: all namespaces]
    #[arg(
        long,
        env = "HOOK_OPERATOR_SHARD",
        value_name = "INDEX/COUNT",
        conflicts_with = "namespace"
    )]
    pub shard: Option<Shard>,

    /// Address of /healthz, /readyz and /metrics
    #[arg(long, env = "HOOK_OPERATOR_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// How log lines look
    #[arg(long, env = "HOOK_OPERATOR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// Log level, or directives such as `info,hook_operator=debug`
    #[arg(long, env = "HOOK_OPERATOR_LOG", default_value = "info")]
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
    #[arg(long, env = "HOOK_OPERATOR_ORIGINAL_METRICS")]
    pub original_metrics: bool,

    /// Time that a call of the API server may take
    #[arg(long, env = "HOOK_OPERATOR_API_TIMEOUT", default_value = "10s", value_parser = duration)]
    pub api_timeout: Duration,

    /// Calls of the API server at a time
    #[arg(long, env = "HOOK_OPERATOR_API_CONCURRENCY", default_value_t = 64)]
    pub api_concurrency: usize,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub leader: LeaderArgs,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub measuring: Measuring,
}

/// Flags of everything that measures: the operator and the local runner.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub struct Measuring {
    /// Measurements at a time, overall
    #[arg(long, env = "HOOK_OPERATOR_MAX_IN_FLIGHT", default_value_t = 4096)]
    pub max_in_flight: usize,

    /// Measurements at a time against one host
    #[arg(long, env = "HOOK_OPERATOR_MAX_IN_FLIGHT_PER_HOST", default_value_t = 256)]
    pub max_in_flight_per_host: usize,

    /// Let hooks call loopback addresses; link-local and metadata addresses stay refused
    #[arg(long, env = "HOOK_OPERATOR_EGRESS_ALLOW_LOOPBACK")]
    pub egress_allow_loopback: bool,

    /// Only let hooks call these: CIDRs or host names, `*.suffix` allowed; repeat or separate by commas
    #[arg(
        long,
        env = "HOOK_OPERATOR_EGRESS_ALLOW",
        value_delimiter = ',',
        value_name = "CIDR|HOST"
    )]
    pub egress_allow: Vec<EgressRule>,

    /// Never let hooks call these; wins over what is allowed
    #[arg(
        long,
        env = "HOOK_OPERATOR_EGRESS_DENY",
        value_delimiter = ',',
        value_name = "CIDR|HOST"
    )]
    pub egress_deny: Vec<EgressRule>,
}

impl Measuring {
    /// The providers that these flags ask for.
    #[must_use]
    pub fn providers(&self) -> Providers {
        let policy = EgressPolicy {
            allow_loopback: self.egress_allow_loopback,
            allow: self.egress_allow.clone(),
            deny: self.egress_deny.clone(),
        };
        let limits = Limits {
            overall: self.max_in_flight.max(1),
            per_host: self.max_in_flight_per_host.max(1),
            ..Limits::default()
        };
        Providers::new(policy, limits)
    }
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
            let all = ["hook-operator"].iter().chain(flags);
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
