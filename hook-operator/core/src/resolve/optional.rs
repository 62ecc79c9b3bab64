//! Providers that are off unless the operator was started with their flag.

use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::metric::Metric;

use super::{FieldErrors, ResolvedRun, check_template, resolve_run};

/// Optional providers that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptionalProviders {
    /// Provider `job`.
    pub job: bool,
}

impl OptionalProviders {
    /// Resolves a run's spec, whose providers must be on.
    ///
    /// # Errors
    /// As [`resolve_run`], and for each metric whose provider is off.
    pub fn resolve_run(self, spec: &HookRunSpec) -> Result<ResolvedRun, FieldErrors> {
        let disabled = self.disabled(&spec.metrics);
        if disabled.is_empty() {
            resolve_run(spec)
        } else {
            Err(disabled)
        }
    }

    /// Returns all problems of a template, as [`check_template`], or its providers that are off.
    pub fn check_template(self, spec: &HookTemplateSpec) -> FieldErrors {
        let disabled = self.disabled(&spec.metrics);
        if disabled.is_empty() {
            check_template(spec)
        } else {
            disabled
        }
    }

    fn disabled(self, metrics: &[Metric]) -> FieldErrors {
        let mut errors = FieldErrors::default();
        for (index, metric) in metrics.iter().enumerate() {
            if metric.provider.job.is_some() && !self.job {
                errors.add(
                    format!("metrics[{index}].provider.job"),
                    "is off; start hook-operator with --provider-job (in the chart: hookOperator.providerJob: true)",
                );
            }
        }
        errors
    }
}
