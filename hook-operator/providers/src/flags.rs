//! Flags and environment variables for measuring.

use crate::{EgressPolicy, EgressRule, ProviderLimits, Providers};

/// Flags of everything that measures: the operator and the local runner.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Measuring")]
pub struct Measuring {
    /// Measurements at a time, overall; one namespace alone gets half
    #[arg(long, env = "HOOK_OPERATOR_MAX_IN_FLIGHT", default_value_t = 4096)]
    pub max_in_flight: usize,

    /// Measurements at a time against one host; one namespace alone gets half
    #[arg(long, env = "HOOK_OPERATOR_MAX_IN_FLIGHT_PER_HOST", default_value_t = 256)]
    pub max_in_flight_per_host: usize,

    /// Bytes of requests and answers held at once, overall; one namespace gets a quarter
    #[arg(long, env = "HOOK_OPERATOR_MAX_ANSWER_BYTES", default_value_t = 64 << 20, value_name = "BYTES")]
    pub max_answer_bytes: usize,

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
