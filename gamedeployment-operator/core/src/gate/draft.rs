//! A hook as one decision sees it: its template, and the spec that all its runs share. Each pod's own arguments are
//! added later.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::HookTemplateSpec;
use shared_api::game_deployment::HookStep;
use shared_api::hook_run::HookRunSpec;
use shared_api::names::argument;

use super::chosen_object::check_pod;
use super::resolved::{HOOK_ARGS, find, without_values};
use super::shared_spec::{Added, Given, SharedSpec};
use super::{HookBlocker, NewRun};
use crate::cluster::FoundTemplate;
use crate::spec_digest::{RestDigest, SpecDigest};

/// A hook that can run, prepared for the pods of one decision. What costs as much as the template is done once.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    step: &'a HookStep,
    /// Field that sets its arguments.
    args: &'static str,
    template: &'a HookTemplateSpec,
    shared: Arc<SharedSpec>,
    /// Digest of the spec without its arguments.
    rest: RestDigest,
    uses_pod_ip: OnceCell<bool>,
}

impl<'a> Draft<'a> {
    /// Prepares a hook. `args`: the field that sets its arguments.
    pub(super) fn new(
        step: &'a HookStep,
        args: &'static str,
        template: FoundTemplate<'a>,
    ) -> Result<Self, HookBlocker> {
        let template = find(step, args, template)?;
        let shared = SharedSpec::new(step, template);
        Ok(Self {
            step,
            args,
            template,
            rest: RestDigest::of(&shared.without_arguments),
            shared: Arc::new(shared),
            uses_pod_ip: OnceCell::new(),
        })
    }

    pub(super) fn template_name(&self) -> &'a str {
        &self.step.template_name
    }

    /// Returns whether a metric uses the pod's address.
    pub(super) fn uses_pod_ip(&self) -> bool {
        *self.uses_pod_ip.get_or_init(|| {
            let metrics = serde_json::to_string(&self.template.metrics).unwrap_or_default();
            metrics.contains(argument::POD_IP)
        })
    }

    /// Fails if an argument has no value.
    pub(super) fn check(&self, added: &[Added<'_>]) -> Result<(), HookBlocker> {
        let given = self.shared.given(added).filter_map(|given| match given {
            Given::Declared(declared) => Some(&declared.argument),
            Given::Added(_) => None,
        });
        let open: Vec<&str> = given
            .filter(|argument| argument.value.is_none() && argument.value_from.is_none())
            .map(|argument| argument.name.as_str())
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        Err(without_values(self.args, &self.step.template_name, &open))
    }

    /// Builds the spec of a run.
    pub(super) fn spec(&self, added: &[Added<'_>]) -> HookRunSpec {
        self.shared.of_run(added)
    }

    /// Digests the spec of a run. It is compared with the specs of thousands of runs, so the spec itself is not
    /// built.
    pub(super) fn digest(&self, added: &[Added<'_>]) -> SpecDigest {
        let mut digest = self.rest.arguments();
        for given in self.shared.given(added) {
            match given {
                Given::Declared(declared) => digest.add_json(&declared.json),
                Given::Added(added) => digest.add(added),
            }
        }
        digest.finish()
    }

    /// Returns a run to create, with this metadata and these additional arguments.
    pub(super) fn new_run(&self, metadata: ObjectMeta, added: &[Added<'_>]) -> NewRun {
        let arguments = added.iter().map(Added::owned).collect();
        NewRun::with_shared_spec(metadata, self.shared.clone(), arguments, self.digest(added))
    }
}

/// Renders the spec of a run that belongs to no pod, with these additional arguments.
pub fn render(
    step: &HookStep,
    template: FoundTemplate<'_>,
    added: &[(&'static str, String)],
) -> Result<HookRunSpec, HookBlocker> {
    let draft = Draft::new(step, HOOK_ARGS, template)?;
    check_pod(step, draft.template)?;
    let added = added.iter().map(|(name, value)| Added {
        name: Cow::Borrowed(name),
        value: Cow::Borrowed(value),
    });
    let added: Vec<_> = added.collect();
    draft.check(&added)?;
    Ok(draft.spec(&added))
}

#[cfg(test)]
mod tests;
