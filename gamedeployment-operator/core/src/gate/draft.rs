//! Part of a hook's run spec that all pods share, built once per decision. Each pod's own arguments are added
//! later.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use shared_api::HookTemplateSpec;
use shared_api::game_deployment::HookStep;
use shared_api::hook_run::HookRunSpec;
use shared_api::metric::Argument;

use super::HookBlocker;
use super::chosen_object::check_pod;
use super::resolved::{find, without_values};
use crate::cluster::FoundTemplate;
use crate::digest::canonical;
use crate::spec_digest::{RestDigest, SpecDigest};

/// The template's metrics and policy, and its arguments overridden by the workload's.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    step: &'a HookStep,
    pub(super) template: &'a HookTemplateSpec,
    declared: Vec<Declared>,
    /// Digest of the spec without its arguments.
    rest: RestDigest,
}

/// An argument of the template or the workload. All runs of the hook have it.
#[derive(Debug)]
struct Declared {
    argument: Argument,
    /// JSON form, for digests.
    json: String,
    /// Whether the argument is the first with its name. Only that one is overridden.
    first: bool,
}

/// An argument that the operator adds. Its keys are sorted, as digests require.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Added<'p> {
    pub(super) name: Cow<'static, str>,
    pub(super) value: Cow<'p, str>,
}

/// An argument of one run.
enum Given<'d> {
    Declared(&'d Declared),
    Added(&'d Added<'d>),
}

impl<'a> Draft<'a> {
    pub(super) fn new(step: &'a HookStep, template: FoundTemplate<'a>) -> Result<Self, HookBlocker> {
        let template = find(step, template)?;
        Ok(Self {
            step,
            template,
            declared: declared(step, template),
            rest: RestDigest::of(&spec(template, None)),
        })
    }

    pub(super) fn template_name(&self) -> &'a str {
        &self.step.template_name
    }

    /// Returns the arguments of a run: first the declared ones, some with an overridden value, then the
    /// undeclared ones.
    fn given<'d>(&'d self, added: &'d [Added<'d>]) -> impl Iterator<Item = Given<'d>> {
        let declared = self.declared.iter().map(|declared| {
            let mut added = added.iter().filter(|_| declared.first);
            let other = added.find(|added| added.name == declared.argument.name);
            other.map_or(Given::Declared(declared), Given::Added)
        });
        let is_new = |added: &&Added<'_>| {
            let mut declared = self.declared.iter();
            declared.all(|declared| declared.argument.name != added.name)
        };
        declared.chain(added.iter().filter(is_new).map(Given::Added))
    }

    /// Fails if an argument has no value.
    pub(super) fn check(&self, added: &[Added<'_>]) -> Result<(), HookBlocker> {
        let given = self.given(added).filter_map(|given| match given {
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
        Err(without_values(&self.step.template_name, &open))
    }

    /// Builds the spec of a run.
    pub(super) fn spec(&self, added: &[Added<'_>]) -> HookRunSpec {
        let arguments = self.given(added).map(|given| match given {
            Given::Declared(declared) => declared.argument.clone(),
            Given::Added(added) => Argument {
                name: added.name.clone().into_owned(),
                value: Some(added.value.clone().into_owned()),
                ..Argument::default()
            },
        });
        spec(self.template, Some(arguments.collect()))
    }

    /// Digests the spec of a run. It is compared with the specs of thousands of runs, so the spec itself is not
    /// built.
    pub(super) fn digest(&self, added: &[Added<'_>]) -> SpecDigest {
        let mut digest = self.rest.arguments();
        for given in self.given(added) {
            match given {
                Given::Declared(declared) => digest.add_json(&declared.json),
                Given::Added(added) => digest.add(added),
            }
        }
        digest.finish()
    }
}

/// The template's arguments, overridden by the workload's.
fn declared(step: &HookStep, template: &HookTemplateSpec) -> Vec<Declared> {
    let mut arguments = template.args.clone().unwrap_or_default();
    for own in step.args.iter().flatten().filter(|own| own.value.is_some()) {
        match arguments.iter_mut().find(|argument| argument.name == own.name) {
            Some(argument) => (argument.value, argument.value_from) = (own.value.clone(), None),
            None => arguments.push(Argument {
                name: own.name.clone(),
                value: own.value.clone(),
                ..Argument::default()
            }),
        }
    }
    let mut seen = BTreeSet::new();
    let declared = arguments.into_iter().map(|argument| Declared {
        json: canonical(&argument),
        first: seen.insert(argument.name.clone()),
        argument,
    });
    declared.collect()
}

fn spec(template: &HookTemplateSpec, args: Option<Vec<Argument>>) -> HookRunSpec {
    // Destructured, so that a new field causes a compile error here.
    let HookTemplateSpec {
        metrics,
        args: _,
        policy,
        timeout_seconds,
        ttl_seconds_after_finished: _,
        unknown: _,
    } = template;
    HookRunSpec {
        metrics: metrics.clone(),
        args,
        policy: policy.clone(),
        timeout_seconds: *timeout_seconds,
        // The workload deletes its runs itself: a verdict must not vanish before it is read.
        ttl_seconds_after_finished: None,
        terminate: None,
        // A misplaced condition must make the run invalid, not leave it without a condition.
        unknown: template.unknown_of_runs(),
    }
}

/// Renders the spec of a run that belongs to no pod, with these additional arguments.
pub fn render(
    step: &HookStep,
    template: FoundTemplate<'_>,
    added: &[(&'static str, String)],
) -> Result<HookRunSpec, HookBlocker> {
    let draft = Draft::new(step, template)?;
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
