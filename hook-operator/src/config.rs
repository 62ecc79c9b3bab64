//! Flags and environment.

use clap::Parser;
use hook_core::resolve::{AnnotationKey, OptionalProviders};
use hook_driver::spec_budget::DEFAULT_MAX_SPEC_BYTES;
use hook_providers::flags::Measuring;
use operator_runtime::flags::{OperatorArgs, variable};
use operator_runtime::leader::LeaderArgs;

/// Measures the metrics of HookRuns and records their verdicts.
#[derive(Debug, Clone, Parser)]
#[command(name = "hook-operator", version, about, max_term_width = 100)]
#[command(mut_args(|flag| variable("hook-operator", flag)))]
pub struct Config {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub operator: OperatorArgs,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub leader: LeaderArgs,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub measuring: Measuring,

    /// Maximum total size of the specs of unfinished HookRuns in memory, in bytes; a single namespace gets at most a
    /// quarter
    #[arg(
        long,
        default_value_t = DEFAULT_MAX_SPEC_BYTES,
        value_name = "BYTES",
        help_heading = "Measuring"
    )]
    pub max_spec_bytes: usize,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the text would stand in front of every flag's own")]
    pub optional: OptionalArgs,

    /// Run ExecutionHooks. The ServiceAccount hookgate-hooks of each namespace runs their commands in containers
    #[arg(long)]
    pub execution_hooks: bool,
}

/// Flags of the optional providers.
#[derive(Debug, Clone, clap::Args)]
pub struct OptionalArgs {
    /// Enable the provider `job`. Jobs are created by the ServiceAccount hookgate-hooks of each namespace
    #[arg(long)]
    pub provider_job: bool,

    /// Enable the provider `kubernetes`. The ServiceAccount hookgate-hooks of each namespace reads and annotates objects
    #[arg(long)]
    pub provider_kubernetes: bool,

    /// Enable the provider `exec`. The ServiceAccount hookgate-hooks of each namespace runs commands in containers
    #[arg(long)]
    pub provider_exec: bool,

    /// Annotations of pods that the provider `kubernetes` may set: keys, or prefixes that end with a slash
    #[arg(
        long,
        value_name = "KEY",
        value_delimiter = ',',
        requires = "provider_kubernetes"
    )]
    pub patch_annotations: Vec<AnnotationKey>,
}

impl Config {
    /// Returns the optional providers that are on.
    pub fn optional_providers(&self) -> OptionalProviders {
        OptionalProviders {
            job: self.optional.provider_job,
            kubernetes: self.optional.provider_kubernetes,
            exec: self.optional.provider_exec,
            annotations: self.optional.patch_annotations.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        super::Config::command().debug_assert();
    }
}
