//! Flags that several programs share. The variable of a flag is named after the program and the flag: see
//! [`variable`].

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Arg, Args};

use crate::calls::CallLimiter;
use crate::shard::{Scope, Shard};
use crate::telemetry::{LogFormat, Telemetry};

/// Flags of every long-running program.
#[derive(Debug, Clone, Args)]
pub struct ProcessArgs {
    /// Listen address for /healthz, /readyz and /metrics
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// Log level, or directives such as `info,operator_runtime=debug`
    #[arg(long, default_value = "info")]
    pub log: String,

    /// Timeout for a call to the API server
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    pub api_timeout: Duration,
}

/// Flags of an operator.
#[derive(Debug, Clone, Args)]
pub struct OperatorArgs {
    /// Manage only this namespace [default: all namespaces]
    #[arg(long)]
    pub namespace: Option<String>,

    /// Manage only the namespaces of this shard, such as 0/3 for the first of three shards [default: all namespaces]
    #[arg(long, value_name = "INDEX/COUNT", conflicts_with = "namespace")]
    pub shard: Option<Shard>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub process: ProcessArgs,

    /// Maximum number of concurrent calls to the API server
    #[arg(long, default_value_t = 64)]
    pub api_concurrency: usize,

    /// Send traces to this OpenTelemetry collector by OTLP over HTTP, such as `http://collector:4318` [default: none are sent]
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL",
        hide_env_values = true
    )]
    pub otlp_endpoint: Option<String>,

    /// Also export the original operator's metrics, for dashboards that use them
    #[arg(long)]
    pub original_metrics: bool,
}

impl OperatorArgs {
    /// Returns the part of the cluster that this process works on.
    pub fn scope(&self) -> Scope {
        Scope {
            namespace: self.namespace.clone(),
            shard: self.shard,
        }
    }

    /// Creates the limiter of API calls with the limits of the flags.
    pub fn call_limiter(&self) -> CallLimiter {
        CallLimiter::new(self.api_concurrency, self.process.api_timeout)
    }

    /// Creates the limiter of calls on behalf of tenants, which take no turns of the operator's own calls.
    pub fn tenant_call_limiter(&self) -> CallLimiter {
        CallLimiter::with_reserve(self.api_concurrency, self.process.api_timeout)
    }

    /// Returns the settings for logs and traces.
    pub fn telemetry(&self, name: &'static str, version: &'static str) -> Telemetry {
        Telemetry {
            name,
            version,
            format: self.process.log_format,
            log: self.process.log.clone(),
            otlp_endpoint: self.otlp_endpoint.clone(),
        }
    }
}

/// Sets a flag's environment variable, unless it has one: `--log-format` of hook-operator is
/// `HOOK_OPERATOR_LOG_FORMAT`.
pub fn variable(program: &str, flag: Arg) -> Arg {
    if flag.get_env().is_some() {
        return flag;
    }
    let name = format!("{program}_{}", flag.get_id()).replace('-', "_");
    flag.env(name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "an-operator", mut_args(|flag| variable("an-operator", flag)))]
    struct Program {
        #[command(flatten)]
        operator: OperatorArgs,
    }

    fn parsed(flags: &[&str]) -> Result<OperatorArgs, String> {
        let all = ["an-operator"].iter().chain(flags);
        let program = Program::try_parse_from(all).map_err(|error| error.to_string())?;
        Ok(program.operator)
    }

    #[test]
    fn a_variable_is_named_after_program_and_flag() {
        let command = Program::command();
        command.clone().debug_assert();
        let variables: Vec<String> = command
            .get_arguments()
            .filter_map(|flag| Some(flag.get_env()?.to_string_lossy().into_owned()))
            .collect();
        assert_eq!(
            variables,
            [
                "AN_OPERATOR_NAMESPACE",
                "AN_OPERATOR_SHARD",
                "AN_OPERATOR_LISTEN",
                "AN_OPERATOR_LOG_FORMAT",
                "AN_OPERATOR_LOG",
                "AN_OPERATOR_API_TIMEOUT",
                "AN_OPERATOR_API_CONCURRENCY",
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "AN_OPERATOR_ORIGINAL_METRICS",
            ]
        );
    }

    #[test]
    fn a_shard_is_of_all_namespaces() {
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
        assert!(beyond.contains("the last shard is 2/3"), "{beyond}");
    }
}
