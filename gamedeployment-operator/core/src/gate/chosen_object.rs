//! Objects that hooks read, annotate or run commands in, and what a workload may select of them. Admission has checked
//! that the author of the template may do so with the template's kinds and names, and not with any other.

use shared_api::HookTemplateSpec;
use shared_api::game_deployment::HookStep;
use shared_api::metric::{KubernetesTarget, Metric};
use shared_api::names::argument::{OF_KINDS, POD_NAME};
use shared_api::reason::WorkloadReason;

use super::HookBlocker;
use super::resolved::HOOK_ARGS;

/// Fails if a workload selects the kind of an object although its template does not leave it open. `args`: the field
/// that sets the arguments.
pub(super) fn check_kind(
    step: &HookStep,
    args: &'static str,
    template: &HookTemplateSpec,
) -> Result<(), HookBlocker> {
    if template.metrics.iter().any(has_kind_by_arguments) {
        check_open(step, args, template, &OF_KINDS)?;
    }
    Ok(())
}

/// Fails if a workload selects the pod of a run that is not for a pod, although its template does not leave it open.
pub(super) fn check_pod(step: &HookStep, template: &HookTemplateSpec) -> Result<(), HookBlocker> {
    if needs_pod(template) {
        check_open(step, HOOK_ARGS, template, &[POD_NAME])?;
    }
    Ok(())
}

fn check_open(
    step: &HookStep,
    args: &'static str,
    template: &HookTemplateSpec,
    names: &[&str],
) -> Result<(), HookBlocker> {
    let is_open = |name: &str| {
        let mut declared = template.args.iter().flatten();
        declared.any(|arg| arg.name == name && arg.value.is_none() && arg.value_from.is_none())
    };
    let own = step.args.iter().flatten().filter(|own| own.value.is_some());
    let mut own = own.map(|own| own.name.as_str());
    let Some(argument) = own.find(|name| names.contains(name) && !is_open(name)) else {
        return Ok(());
    };
    Err(HookBlocker::new(
        WorkloadReason::HookArgumentsUnresolved,
        format!(
            "argument {argument} would select the object that HookTemplate {} accesses, which the template does not \
             allow; remove the argument from {args}, or declare it without a value in the template",
            step.template_name
        ),
    ))
}

/// Returns whether a run needs the argument that names a pod, even if the template does not declare it.
pub(super) fn needs_pod(template: &HookTemplateSpec) -> bool {
    let mut metrics = template.metrics.iter();
    metrics.any(|metric| metric.provider.needs_pod())
}

fn has_kind_by_arguments(metric: &Metric) -> bool {
    let object = metric.provider.kubernetes.as_ref();
    object.is_some_and(|object| !object.target.as_ref().is_some_and(KubernetesTarget::names_kind))
}
