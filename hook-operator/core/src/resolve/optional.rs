//! Providers that are off unless the operator was started with their flag.

use std::str::FromStr;

use shared_api::hook_run::HookRunSpec;
use shared_api::hook_template::HookTemplateSpec;
use shared_api::metric::{KubernetesProvider, Metric};
use shared_api::syntax::{is_qualified_name, is_reserved_annotation};

use super::kubernetes::annotation;
use super::{FieldErrors, ResolvedRun, check_template, resolve_run};

/// Optional providers that are on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OptionalProviders {
    /// Provider `job`.
    pub job: bool,
    /// Provider `kubernetes`.
    pub kubernetes: bool,
    /// Provider `exec`.
    pub exec: bool,
    /// Annotations that the provider `kubernetes` may set.
    pub annotations: Vec<AnnotationKey>,
}

impl OptionalProviders {
    /// Resolves a run's spec, whose providers must be on.
    ///
    /// # Errors
    /// As [`resolve_run`], and for each metric whose provider is off.
    pub fn resolve_run(&self, spec: &HookRunSpec) -> Result<ResolvedRun, FieldErrors> {
        let disabled = self.disabled(&spec.metrics);
        if disabled.is_empty() {
            resolve_run(spec)
        } else {
            Err(disabled)
        }
    }

    /// Returns all problems of a template, as [`check_template`], or its providers that are off.
    pub fn check_template(&self, spec: &HookTemplateSpec) -> FieldErrors {
        let disabled = self.disabled(&spec.metrics);
        if disabled.is_empty() {
            check_template(spec)
        } else {
            disabled
        }
    }

    fn disabled(&self, metrics: &[Metric]) -> FieldErrors {
        let mut errors = FieldErrors::default();
        for (index, metric) in metrics.iter().enumerate() {
            let path = format!("metrics[{index}].provider");
            let provider = &metric.provider;
            for (name, is_set, is_on, chart) in [
                ("job", provider.job.is_some(), self.job, "providerJob"),
                (
                    "kubernetes",
                    provider.kubernetes.is_some(),
                    self.kubernetes,
                    "providerKubernetes",
                ),
                ("exec", provider.exec.is_some(), self.exec, "providerExec"),
            ] {
                if is_set && !is_on {
                    let message = format!(
                        "is disabled; start hook-operator with --provider-{name} (in the chart: hookOperator.{chart}: \
                         true)"
                    );
                    errors.add(format!("{path}.{name}"), message);
                }
            }
            if let Some(kubernetes) = provider.kubernetes.as_deref().filter(|_| self.kubernetes) {
                self.check_annotations(&format!("{path}.kubernetes"), kubernetes, &mut errors);
            }
        }
        errors
    }

    fn check_annotations(&self, path: &str, provider: &KubernetesProvider, errors: &mut FieldErrors) {
        if provider.function.as_deref() != Some("patch") {
            return;
        }
        for (index, field) in provider.fields.iter().enumerate() {
            // Paths of other forms and reserved keys are refused with the spec.
            let key = annotation(&field.path).filter(|key| !is_reserved_annotation(key));
            let Some(key) = key else { continue };
            if !self.annotations.iter().any(|allowed| allowed.allows(key)) {
                let message = format!(
                    "hooks may not set annotation {key}; start hook-operator with --patch-annotations {key} (in the chart: \
                     hookOperator.patchAnnotations), or use an allowed key"
                );
                errors.add(format!("{path}.fields[{index}].path"), message);
            }
        }
    }
}

/// Key of an annotation, or a prefix of keys that ends with its slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationKey(String);

impl FromStr for AnnotationKey {
    type Err = String;

    fn from_str(key: &str) -> Result<Self, String> {
        // The letter stands for any name with this prefix.
        let sample = if key.ends_with('/') {
            format!("{key}a")
        } else {
            key.to_owned()
        };
        if !is_qualified_name(&sample.to_ascii_lowercase()) {
            return Err(
                "not a valid annotation key; use a key such as games.example.com/drain, or a prefix such as \
                 games.example.com/"
                    .to_owned(),
            );
        }
        if is_reserved_annotation(&sample) {
            return Err("reserved for Kubernetes and the operators; hooks cannot set it".to_owned());
        }
        Ok(Self(key.to_owned()))
    }
}

impl AnnotationKey {
    fn allows(&self, key: &str) -> bool {
        self.0 == key || (self.0.ends_with('/') && key.starts_with(&self.0))
    }
}
