//! Parse, don't validate: a spec becomes a [`ResolvedRun`] once, or all its problems are reported at once.
//!
//! The result has compiled conditions, parsed paths and durations, and limits with their defaults; later code
//! never sees raw text. Values of Secrets and ConfigMaps are not known here: they are read at measurement
//! time and filled in by [`crate::render`].

mod argument;
mod exec;
mod field_error;
mod fields;
mod job;
mod kubernetes;
mod metric;
mod optional;
mod provider;
mod target;
mod warning;

use std::collections::BTreeSet;
use std::time::Duration;

use expr_conditions::Allowance;
use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::limits::{json_bytes, spec_too_long};
use shared_api::metric::{Argument, Metric};

pub use argument::{ArgumentValue, Arguments, MAX_CONFIG_MAP_BYTES, MAX_SECRET_BYTES, Reference};
pub use exec::ResolvedExec;
pub(crate) use exec::is_container_name;
pub use field_error::{
    FieldError, FieldErrors, run_invalid, run_unreadable, template_unreadable, template_valid,
};
use fields::SpecParts;
pub use job::{JobText, ResolvedJob};
pub(crate) use job::{is_of_hooks, of_hooks};
pub(crate) use kubernetes::not_a_name;
pub use kubernetes::{ResolvedFunction, ResolvedKubernetes};
pub use metric::{ConditionText, ResolvedMetric};
pub use optional::{AnnotationKey, OptionalProviders};
pub(crate) use provider::is_header_name;
pub use provider::{BodyText, HeaderText, ResolvedPrometheus, ResolvedProvider, ResolvedWeb};
pub use target::without_placeholders;
pub use warning::{refused_lists, run_warnings, template_warnings};

/// Most metrics in one spec; the CRD's schema has the same limit.
pub const MAX_METRICS: usize = 100;
/// Longest name of a metric, in bytes. Limited because names are part of the status.
pub const MAX_NAME_BYTES: usize = 253;

/// Order in which metrics run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Measures all metrics at once.
    #[default]
    Parallel,
    /// Each metric starts when the one before it is Successful.
    Ordered,
}

/// Run that can be measured.
#[derive(Debug, Clone)]
pub struct ResolvedRun {
    /// Order in which metrics run.
    pub policy: Policy,
    /// Whether the run must end now.
    pub terminate: bool,
    /// Time after which a run without a verdict ends in Error.
    pub timeout: Option<Duration>,
    /// Metrics to measure; not empty, with unique names.
    pub metrics: Vec<ResolvedMetric>,
    /// Values of placeholders.
    pub arguments: Arguments,
}

impl ResolvedRun {
    /// Returns the metric of that name.
    pub fn metric(&self, name: &str) -> Option<&ResolvedMetric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

/// Kind of object: a run must be complete, a template may leave arguments open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResolveFor {
    Run,
    Template,
}

/// Resolves a run's spec.
///
/// # Errors
/// All problems that keep the run from being measured.
pub fn resolve_run(spec: &HookRunSpec) -> Result<ResolvedRun, FieldErrors> {
    resolve(spec, ResolveFor::Run)
}

/// Time to keep a run after it has ended, even if its spec is invalid; `None` keeps it for good.
pub fn time_to_live(spec: &HookRunSpec) -> Option<Duration> {
    let seconds = u64::try_from(spec.ttl_seconds_after_finished?).ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns all problems that would keep runs of this template from being measured; empty if it is valid.
pub fn check_template(spec: &HookTemplateSpec) -> FieldErrors {
    let HookTemplateSpec {
        metrics,
        args,
        policy,
        ttl_seconds_after_finished,
        timeout_seconds,
        unknown,
    } = spec.clone();
    let run = HookRunSpec {
        metrics,
        args,
        terminate: None,
        policy,
        ttl_seconds_after_finished,
        timeout_seconds,
        unknown,
    };
    resolve(&run, ResolveFor::Template).err().unwrap_or_default()
}

fn resolve(spec: &HookRunSpec, resolve_for: ResolveFor) -> Result<ResolvedRun, FieldErrors> {
    let mut errors = FieldErrors::default();
    if let Some(why) = spec_too_long(json_bytes(spec)) {
        errors.add("spec", why);
    }
    let args: &[Argument] = spec.args.as_deref().unwrap_or_default();
    fields::check(SpecParts::of_run(spec, resolve_for), &mut errors);
    let arguments = Arguments::resolve(args, resolve_for, &mut errors);
    let policy = resolve_policy(spec.policy.as_deref(), &mut errors);
    let timeout = seconds("timeoutSeconds", spec.timeout_seconds, 1, &mut errors);
    let time_to_live = spec.ttl_seconds_after_finished;
    seconds("ttlSecondsAfterFinished", time_to_live, 0, &mut errors);
    let metrics = resolve_metrics(&spec.metrics, &arguments, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(ResolvedRun {
        policy,
        terminate: spec.terminate.unwrap_or_default(),
        timeout,
        metrics,
        arguments,
    })
}

fn resolve_policy(text: Option<&str>, errors: &mut FieldErrors) -> Policy {
    match text.unwrap_or_default() {
        "" | "Parallel" => Policy::Parallel,
        "Ordered" => Policy::Ordered,
        other => {
            errors.add("policy", format!("must be Parallel or Ordered, not {other:?}"));
            Policy::Parallel
        }
    }
}

/// Converts a number of seconds, which must be at least `least`.
fn seconds(path: &str, value: Option<i64>, least: i64, errors: &mut FieldErrors) -> Option<Duration> {
    let value = value?;
    if value < least {
        errors.add(path, format!("{value} must be greater than or equal to {least}"));
    }
    u64::try_from(value).ok().map(Duration::from_secs)
}

fn resolve_metrics(
    metrics: &[Metric],
    arguments: &Arguments,
    errors: &mut FieldErrors,
) -> Vec<ResolvedMetric> {
    if metrics.is_empty() {
        errors.add("metrics", "must list at least one metric");
    }
    if metrics.len() > MAX_METRICS {
        let message = format!("has {} metrics; the limit is {MAX_METRICS}", metrics.len());
        errors.add("metrics", message);
    }
    let mut names = BTreeSet::new();
    let mut allowance = Allowance::default();
    let mut resolved = Vec::new();
    for (index, metric) in metrics.iter().enumerate().take(MAX_METRICS) {
        let path = format!("metrics[{index}]");
        if metric.name.len() > MAX_NAME_BYTES {
            let message = format!(
                "is {} bytes long; the limit is {MAX_NAME_BYTES}",
                metric.name.len()
            );
            errors.add(format!("{path}.name"), message);
        }
        if metric.name.is_empty() {
            errors.add(format!("{path}.name"), "must not be empty");
        } else if !names.insert(metric.name.as_str()) {
            errors.add(
                format!("{path}.name"),
                format!("duplicate name {:?}; names must be unique", metric.name),
            );
        }
        resolved.extend(metric::resolve(&path, metric, arguments, &mut allowance, errors));
    }
    resolved
}

#[cfg(test)]
mod tests;
