//! Hooks that run at points of a rollout.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::Value;
use shared_api::game_deployment::{self as api, ExecNewPod, HookStep, HookTrigger};
use shared_api::json_text::JsonText;

use super::{Amount, FieldError, TEMPLATE_NAME, UpdateType, amount};

/// Path of the list.
const PATH: &str = "spec.lifecycleHooks";
/// Limit on the number of hooks.
const MAX_HOOKS: usize = 32;
/// Limit on the length of a name, which is part of the HookRun's name.
const MAX_NAME_LEN: usize = 40;

/// A hook that runs at a point of a rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleHook {
    /// Name, unique in the list.
    pub name: String,
    /// Point at which it runs.
    pub trigger: Trigger,
    /// Effect of a failure.
    pub failure_policy: FailurePolicy,
    /// Effect of an abort on updated pods.
    pub abort_action: AbortAction,
    /// HookRuns to keep.
    pub retain_policy: RetainPolicy,
    /// Limit on the time from the start of the first attempt.
    pub timeout: Option<SignedDuration>,
    /// The hook to run.
    pub carrier: Carrier,
}

/// Point of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Before the first pod is updated.
    Pre,
    /// When every old pod is gone and before the first new one is created.
    Mid,
    /// When this many updated pods are available.
    Progress(Amount),
    /// When every pod is updated and available.
    Post,
}

impl Trigger {
    /// Reads the point of a hook; `None` if its type is unknown, or its progress cannot be read.
    #[must_use]
    pub fn of(trigger: &HookTrigger) -> Option<Self> {
        read_trigger("", trigger, &mut Vec::new())
    }
}

/// Effect of a failure on the rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It ends.
    Abort,
    /// It continues.
    Ignore,
    /// It waits for another attempt.
    Retry,
}

/// Effect of an abort on updated pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortAction {
    /// They stay.
    Hold,
    /// They are updated to the last complete revision.
    Rollback,
}

/// HookRuns that stay after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetainPolicy {
    /// All.
    Always,
    /// Those without success.
    #[default]
    OnFailure,
    /// None.
    Never,
}

impl RetainPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Always, Self::OnFailure, Self::Never];

    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::OnFailure => "OnFailure",
            Self::Never => "Never",
        }
    }

    /// Parses the word that the API uses.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// What an attempt of a hook runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Carrier {
    /// A Job with a pod made from the template of the target revision.
    NewPod(ExecNewPod),
    /// A Job with this spec.
    Job(JsonText),
    /// A HookTemplate.
    Template(HookStep),
}

pub(super) fn read(
    hooks: Option<&Vec<api::LifecycleHook>>,
    update: UpdateType,
    problems: &mut Vec<FieldError>,
) -> Vec<LifecycleHook> {
    let hooks: &[api::LifecycleHook] = hooks.map_or(&[], Vec::as_slice);
    if hooks.len() > MAX_HOOKS {
        let remedy = format!("must have at most {MAX_HOOKS} items, but has {}", hooks.len());
        problems.push(FieldError::new(PATH, "", remedy));
    }
    let mut names = BTreeSet::new();
    let mut read = Vec::with_capacity(hooks.len());
    for (index, hook) in hooks.iter().enumerate() {
        let base = format!("{PATH}[{index}]");
        if !names.insert(hook.name.as_str()) {
            let remedy = "is used by another hook; choose a unique name";
            problems.push(FieldError::new(&format!("{base}.name"), &hook.name, remedy));
        }
        let hook = read_one(&base, hook, problems);
        let is_mid = |hook: &LifecycleHook| hook.trigger == Trigger::Mid;
        if hook.as_ref().is_some_and(is_mid) && update != UpdateType::Recreate {
            let remedy = "requires spec.updateStrategy.type Recreate; use that type, or another trigger";
            problems.push(FieldError::new(&format!("{base}.trigger.type"), "Mid", remedy));
        }
        let is_rollback = |hook: &LifecycleHook| hook.abort_action == AbortAction::Rollback;
        if hook.as_ref().is_some_and(is_rollback) && update == UpdateType::Recreate {
            let remedy = "is not supported with spec.updateStrategy.type Recreate, because new pods may have changed \
                          data that old pods use; use Hold, and roll back by restoring the earlier template, so that \
                          its hooks run";
            problems.push(FieldError::new(
                &format!("{base}.abortAction"),
                "Rollback",
                remedy,
            ));
        }
        read.extend(hook);
    }
    read
}

fn read_one(base: &str, hook: &api::LifecycleHook, problems: &mut Vec<FieldError>) -> Option<LifecycleHook> {
    let mut wrong = |field: &str, value: &str, remedy: &str| {
        problems.push(FieldError::new(&format!("{base}.{field}"), value, remedy));
    };
    if !is_label(&hook.name) {
        wrong(
            "name",
            &hook.name,
            "must be at most 40 lowercase letters, digits and dashes, starting and ending with a letter or digit",
        );
    }
    let failure_policy = match hook.failure_policy.as_deref().unwrap_or_default() {
        "Abort" => FailurePolicy::Abort,
        "Ignore" => FailurePolicy::Ignore,
        "" | "Retry" => FailurePolicy::Retry,
        other => {
            wrong("failurePolicy", other, "must be one of Abort, Ignore, Retry");
            FailurePolicy::Abort
        }
    };
    let retain_policy = match hook.retain_policy.as_deref().unwrap_or_default() {
        "" => RetainPolicy::default(),
        text => RetainPolicy::of(text).unwrap_or_else(|| {
            wrong("retainPolicy", text, "must be one of Always, OnFailure, Never");
            RetainPolicy::Always
        }),
    };
    let abort_action = match hook.abort_action.as_deref().unwrap_or_default() {
        "" | "Hold" => AbortAction::Hold,
        "Rollback" if failure_policy == FailurePolicy::Ignore => {
            wrong(
                "abortAction",
                "Rollback",
                "is not supported with failurePolicy Ignore, which never aborts a rollout; use Hold, or set \
                 failurePolicy to Abort or Retry",
            );
            AbortAction::Hold
        }
        "Rollback" => AbortAction::Rollback,
        other => {
            wrong("abortAction", other, "must be Hold or Rollback");
            AbortAction::Hold
        }
    };
    let carrier = read_carrier(base, hook, problems);
    Some(LifecycleHook {
        name: hook.name.clone(),
        trigger: read_trigger(&format!("{base}.trigger"), &hook.trigger, problems)?,
        failure_policy,
        abort_action,
        retain_policy,
        timeout: super::timeout(&format!("{base}.timeoutSeconds"), hook.timeout_seconds, problems),
        carrier: carrier?,
    })
}

fn read_carrier(base: &str, hook: &api::LifecycleHook, problems: &mut Vec<FieldError>) -> Option<Carrier> {
    let carriers = [
        hook.exec_new_pod.clone().map(Carrier::NewPod),
        hook.job_spec.clone().map(Carrier::Job),
        hook.hook.clone().map(Carrier::Template),
    ];
    let mut set = carriers.into_iter().flatten();
    let Some(carrier) = set.next() else {
        problems.push(FieldError::new(
            base,
            "",
            "must set one of execNewPod, jobSpec, hook",
        ));
        return None;
    };
    if set.next().is_some() {
        let remedy = "must set only one of execNewPod, jobSpec, hook";
        problems.push(FieldError::new(base, "", remedy));
        return None;
    }
    let mut wrong = |field: &str, value: &str, remedy: &str| {
        problems.push(FieldError::new(&format!("{base}.{field}"), value, remedy));
    };
    match &carrier {
        Carrier::NewPod(exec) => {
            if exec.container_name.is_empty() {
                let remedy = "must be the name of a container in spec.template";
                wrong("execNewPod.containerName", "", remedy);
            }
            let mut names = BTreeSet::new();
            for (index, variable) in exec.env.iter().flatten().enumerate() {
                let variable = variable.value();
                let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
                if name.is_empty() || !names.insert(name.to_owned()) {
                    let remedy = "must be unique and not empty";
                    wrong(&format!("execNewPod.env[{index}].name"), name, remedy);
                }
            }
        }
        Carrier::Job(spec) => {
            // Text of an object: it has no blanks before it.
            if !spec.as_str().starts_with('{') {
                let remedy = "must be a Job spec (batch/v1)";
                wrong("jobSpec", spec.as_str().trim_matches('"'), remedy);
            }
        }
        Carrier::Template(step) => {
            if step.template_name.is_empty() {
                wrong("hook.templateName", "", TEMPLATE_NAME);
            }
        }
    }
    Some(carrier)
}

fn read_trigger(path: &str, trigger: &HookTrigger, problems: &mut Vec<FieldError>) -> Option<Trigger> {
    let params_path = format!("{path}.progressAvailableParams");
    let params = trigger.progress_available_params.as_ref();
    let type_ = trigger.type_.as_deref().unwrap_or_default();
    let without_params = match type_ {
        "Pre" => Trigger::Pre,
        "Mid" => Trigger::Mid,
        "Post" => Trigger::Post,
        "" | "ProgressAvailable" => {
            let Some(params) = params else {
                let remedy =
                    "must set progressPoint, for example to 50% or 3, unless type is Pre, Mid or Post";
                problems.push(FieldError::new(&params_path, "", remedy));
                return None;
            };
            let path = format!("{params_path}.progressPoint");
            let point = amount(&path, Some(&params.progress_point), problems)?;
            if let Amount::Percent(percent) = point
                && percent > 100
            {
                let remedy = "must not exceed 100%";
                problems.push(FieldError::new(&path, &format!("{percent}%"), remedy));
            }
            // A point before the first pod.
            return Some(if point.is_zero() {
                Trigger::Pre
            } else {
                Trigger::Progress(point)
            });
        }
        other => {
            let known = "must be one of Pre, Mid, ProgressAvailable, Post";
            problems.push(FieldError::new(&format!("{path}.type"), other, known));
            return None;
        }
    };
    if params.is_some() {
        let remedy = format!("is not supported with type {type_}; remove it, or use type ProgressAvailable");
        problems.push(FieldError::new(&params_path, "", remedy));
    }
    Some(without_params)
}

/// Whether the name is a DNS label of allowed length.
fn is_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= MAX_NAME_LEN
        && name.chars().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests;
