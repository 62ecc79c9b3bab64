//! Objects that hooks read, annotate or run commands in, and what a workload may choose of them. Admission has checked
//! that the author of the template may do so with the template's kinds and names, and not with any other.

use shared_api::HookTemplateSpec;
use shared_api::game_deployment::HookStep;
use shared_api::metric::Metric;
use shared_api::names::argument::{OF_KINDS, POD_NAME};

/// Returns the argument by which a workload chooses an object, although its template does not leave it open.
pub(super) fn chosen_by_workload<'s>(step: &'s HookStep, template: &HookTemplateSpec) -> Option<&'s str> {
    let by_kind = template.metrics.iter().any(has_kind_by_arguments);
    let by_name = needs_pod(template);
    let is_open = |name: &str| {
        let mut declared = template.args.iter().flatten();
        declared.any(|arg| arg.name == name && arg.value.is_none() && arg.value_from.is_none())
    };
    let own = step.args.iter().flatten().filter(|own| own.value.is_some());
    let mut names = own.map(|own| own.name.as_str());
    names.find(|name| {
        let chooses = (by_kind && OF_KINDS.contains(name)) || (by_name && *name == POD_NAME);
        chooses && !is_open(name)
    })
}

/// Returns whether a run needs the argument that names a pod, even if the template does not declare it.
pub(super) fn needs_pod(template: &HookTemplateSpec) -> bool {
    template.metrics.iter().any(|metric| {
        let object = metric.provider.kubernetes.as_ref();
        object.is_some_and(|object| {
            let target = object.target.as_ref();
            !target.is_some_and(|target| is_set(target.name.as_ref()))
        })
    })
}

fn has_kind_by_arguments(metric: &Metric) -> bool {
    let object = metric.provider.kubernetes.as_ref();
    object.is_some_and(|object| {
        let target = object.target.as_ref();
        !target.is_some_and(|target| is_set(target.group.as_ref()) || is_set(target.kind.as_ref()))
    })
}

fn is_set(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}
