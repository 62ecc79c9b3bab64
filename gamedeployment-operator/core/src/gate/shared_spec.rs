//! Spec that all runs of a hook share, apart from the arguments that the operator adds for each pod.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use shared_api::HookTemplateSpec;
use shared_api::game_deployment::HookStep;
use shared_api::hook_run::HookRunSpec;
use shared_api::metric::Argument;

use crate::digest::canonical;

/// The template's metrics and policy, and its arguments overridden by the workload's. Built once per decision; the
/// runs to create refer to it.
#[derive(Debug, PartialEq)]
pub(super) struct SharedSpec {
    /// Spec without arguments.
    pub(super) without_arguments: HookRunSpec,
    declared: Vec<Declared>,
}

/// An argument of the template or the workload. All runs of the hook have it.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    pub(super) argument: Argument,
    /// JSON form, for digests.
    pub(super) json: String,
    /// Whether the argument is the first with its name. Only that one is overridden.
    first: bool,
}

/// An argument that the operator adds. Its keys are sorted, as digests require.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Added<'p> {
    pub(super) name: Cow<'static, str>,
    pub(super) value: Cow<'p, str>,
}

/// An argument of one run.
pub(super) enum Given<'d> {
    Declared(&'d Declared),
    Added(&'d Added<'d>),
}

impl SharedSpec {
    pub(super) fn new(step: &HookStep, template: &HookTemplateSpec) -> Self {
        Self {
            without_arguments: without_arguments(template),
            declared: declared(step, template),
        }
    }

    /// Returns the arguments of a run: first the declared ones, some with an overridden value, then the
    /// undeclared ones.
    pub(super) fn given<'d>(&'d self, added: &'d [Added<'d>]) -> impl Iterator<Item = Given<'d>> {
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

    /// Builds the spec of a run.
    pub(super) fn of_run(&self, added: &[Added<'_>]) -> HookRunSpec {
        let arguments = self.given(added).map(|given| match given {
            Given::Declared(declared) => declared.argument.clone(),
            Given::Added(added) => Argument {
                name: added.name.clone().into_owned(),
                value: Some(added.value.clone().into_owned()),
                ..Argument::default()
            },
        });
        HookRunSpec {
            args: Some(arguments.collect()),
            ..self.without_arguments.clone()
        }
    }
}

impl Added<'_> {
    /// Returns a copy that refers to nothing.
    pub(super) fn owned(&self) -> Added<'static> {
        Added {
            name: self.name.clone(),
            value: Cow::Owned(self.value.clone().into_owned()),
        }
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

fn without_arguments(template: &HookTemplateSpec) -> HookRunSpec {
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
        args: None,
        policy: policy.clone(),
        timeout_seconds: *timeout_seconds,
        // The workload deletes its runs itself: a verdict must not vanish before it is read.
        ttl_seconds_after_finished: None,
        terminate: None,
        // A misplaced condition must make the run invalid, not leave it without a condition.
        unknown: template.unknown_of_runs(),
    }
}
