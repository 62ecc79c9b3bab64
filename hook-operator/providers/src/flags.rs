//! Flags and environment variables for measuring.

use crate::{EgressPolicy, EgressRule, ProviderLimits, Providers};

/// Flags for measuring, in the operator and in the local runner of the kubectl plugin.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub struct Measuring {
    /// Maximum concurrent measurements, overall; a single namespace gets at most half
    #[arg(long, env = "HOOK_OPERATOR_MAX_IN_FLIGHT", default_value_t = 4096)]
    pub max_in_flight: usize,

    /// Maximum concurrent measurements against one host and port; a single namespace gets at most half
    #[arg(long, env = "HOOK_OPERATOR_MAX_IN_FLIGHT_PER_HOST", default_value_t = 256)]
    pub max_in_flight_per_host: usize,

    /// Maximum bytes of requests and responses in memory, overall; a single namespace gets at most a quarter
    #[arg(long, env = "HOOK_OPERATOR_MAX_ANSWER_BYTES", default_value_t = 64 << 20, value_name = "BYTES")]
    pub max_answer_bytes: usize,

    /// Allow hooks to call loopback addresses; link-local and metadata addresses stay forbidden
    #[arg(long, env = "HOOK_OPERATOR_EGRESS_ALLOW_LOOPBACK")]
    pub egress_allow_loopback: bool,

    /// Allow hooks to call only these CIDRs or host names (or *.suffix); can be repeated or comma-separated
    #[arg(
        long,
        env = "HOOK_OPERATOR_EGRESS_ALLOW",
        value_delimiter = ',',
        value_name = "CIDR|HOST"
    )]
    pub egress_allow: Vec<EgressRule>,

    /// Forbid calls to these CIDRs or host names (or *.suffix); takes precedence over --egress-allow
    #[arg(
        long,
        env = "HOOK_OPERATOR_EGRESS_DENY",
        value_delimiter = ',',
        value_name = "CIDR|HOST"
    )]
    pub egress_deny: Vec<EgressRule>,
}

impl Measuring {
    /// Creates the providers from these flags.
    pub fn providers(&self) -> Providers {
        let policy = EgressPolicy {
            allow_loopback: self.egress_allow_loopback,
            allow: self.egress_allow.clone(),
            deny: self.egress_deny.clone(),
        };
        let limits = ProviderLimits {
            overall: self.max_in_flight.max(1),
            per_host: self.max_in_flight_per_host.max(1),
            bytes: self.max_answer_bytes,
            ..ProviderLimits::default()
        };
        Providers::new(policy, limits)
    }
}
