//! Validation of an object as the operators would do it, before the object is stored.
//!
//! The rules and messages are those of the cores: [`Workload::read`], [`resolve_run`], [`check_template`],
//! [`resolve_action`] and [`resolve_hook`].
//! This module only adds a comparison with the old object. An update is rejected for problems that it
//! introduces, never for existing ones, so that finalizers, labels and foreign fields can be changed on an
//! invalid object.

use gamedeployment_core::lifecycle::new_pod_warnings;
use gamedeployment_core::workload::{
    self, Source, Workload, ask_without_hook, ineffective_settings, sets_paused,
};
use hook_core::execution::{hook_warnings, resolve_action, resolve_hook};
use hook_core::resolve::{
    FieldError, FieldErrors, check_template, resolve_run, run_invalid, run_unreadable, run_warnings,
    template_unreadable, template_warnings,
};
use hook_core::value::cut;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared_api::names::{CONTROLLER_REVISION, GROUP};
use shared_api::parsed::{self, Parsed};
use shared_api::{ExecutionHook, GameDeployment, HookAction, HookRun, HookTemplate};

use crate::review::{AdmissionDecision, AdmissionRequest, GroupKind};

/// Maximum length of a parser's message in bytes. It may quote a whole value.
const MAX_PARSER_BYTES: usize = 1000;

/// A kind that the operators validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidatedKind {
    /// Validated by gamedeployment-operator.
    GameDeployment,
    /// Validated by hook-operator.
    HookTemplate,
    /// Validated by hook-operator.
    HookRun,
    /// Validated by hook-operator.
    HookAction,
    /// Validated by hook-operator.
    ExecutionHook,
}

impl ValidatedKind {
    /// Returns the kind of a request, if the operators validate it.
    pub fn of(kind: &GroupKind) -> Option<Self> {
        match (kind.group.as_str(), kind.kind.as_str()) {
            (GROUP, "GameDeployment") => Some(Self::GameDeployment),
            (GROUP, "HookTemplate") => Some(Self::HookTemplate),
            (GROUP, "HookRun") => Some(Self::HookRun),
            (GROUP, "HookAction") => Some(Self::HookAction),
            (GROUP, "ExecutionHook") => Some(Self::ExecutionHook),
            _ => None,
        }
    }
}

/// Returns whether a request creates or updates an object that the operators validate.
#[must_use]
pub fn concerns(request: &AdmissionRequest) -> bool {
    ValidatedKind::of(&request.kind).is_some()
        && request.is_whole()
        && matches!(request.operation.as_str(), "CREATE" | "UPDATE")
}

/// Judges a creation or an update; all other operations are allowed.
#[must_use]
pub fn judge(request: &AdmissionRequest) -> AdmissionDecision {
    let allowed = AdmissionDecision::Allowed(Vec::new());
    let Some(kind) = ValidatedKind::of(&request.kind).filter(|_| request.is_whole()) else {
        return allowed;
    };
    let (object, old) = (&request.object, &request.old_object);
    // An object that is being deleted can only lose its finalizers, and no operator acts on its spec any
    // more.
    let ends = !object["metadata"]["deletionTimestamp"].is_null();
    if ends || !matches!(request.operation.as_str(), "CREATE" | "UPDATE") {
        return allowed;
    }
    if let Some(words) = edits_controlled_run(kind, object, old) {
        return AdmissionDecision::Forbidden(words);
    }
    if kind == ValidatedKind::ExecutionHook && !old.is_null() && fixed_spec(object) != fixed_spec(old) {
        let words = "spec: only terminate may be changed; create a new ExecutionHook instead";
        return AdmissionDecision::Invalid(words.to_owned());
    }
    let joined = |problems: &[FieldError]| FieldErrors::from_iter(problems.to_vec()).to_string();
    let news = match kind {
        ValidatedKind::GameDeployment => news(object, old, workload_problems, workload::sentence),
        ValidatedKind::HookTemplate => news(object, old, template_problems, joined),
        ValidatedKind::HookAction => news(object, old, action_problems, joined),
        ValidatedKind::ExecutionHook => news(object, old, execution_problems, joined),
        ValidatedKind::HookRun => news(object, old, run_problems, |problems| {
            run_invalid(&problems.iter().cloned().collect())
        }),
    };
    match news {
        Err(sentence) => AdmissionDecision::Invalid(sentence),
        Ok(known) => {
            let known = known
                .into_iter()
                .map(|problem| format!("pre-existing problem, allowed: {problem}"));
            AdmissionDecision::Allowed(known.chain(warnings(kind, request)).collect())
        }
    }
}

/// Rejects a run that begins to claim that it belongs to a workload, unless one of these users writes it.
/// Allows everything if no users are configured.
#[must_use]
pub fn forged(request: &AdmissionRequest, operators: &[String]) -> Option<AdmissionDecision> {
    let is_run = matches!(ValidatedKind::of(&request.kind), Some(ValidatedKind::HookRun));
    if !is_run || operators.is_empty() {
        return None;
    }
    let user = request.user_info.username.as_deref().unwrap_or_default();
    let claims = |owner: &&Value| {
        let before = controlling_owner(&request.old_object);
        before.map(|before| &before["uid"]) != Some(&owner["uid"])
    };
    let owner = controlling_owner(&request.object)
        .filter(claims)
        .filter(|_| operators.iter().all(|known| known != user))?;
    let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
    Some(AdmissionDecision::Forbidden(format!(
        "metadata.ownerReferences: {user:?} is not allowed to set {kind} {name} as the controller, because only \
         gamedeployment-operator creates HookRuns for it; remove the owner reference"
    )))
}

/// Returns the owner in the name of a workload: the GameDeployment, or the ControllerRevision of its rollout.
pub(crate) fn controlling_owner(run: &Value) -> Option<&Value> {
    let owners = run["metadata"]["ownerReferences"].as_array()?;
    let kinds = [&GameDeployment::kind(&()), CONTROLLER_REVISION];
    let mut owners = owners.iter().filter(|owner| owner["controller"] == true);
    owners.find(|owner| kinds.iter().any(|kind| owner["kind"] == *kind))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the reason why a run must not be changed: the workload that controls it would no longer trust it.
/// Terminating a run early is allowed.
fn edits_controlled_run(kind: ValidatedKind, object: &Value, old: &Value) -> Option<String> {
    if !matches!(kind, ValidatedKind::HookRun) {
        return None;
    }
    let owner = controlling_owner(old)?;
    (fixed_spec(object) != fixed_spec(old)).then(|| {
        let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
        format!(
            "spec: this HookRun belongs to {kind} {name}, and editing it would invalidate it; edit the HookTemplate, \
             or delete the HookRun to rerun the hook (only spec.terminate may be changed)"
        )
    })
}

/// Returns the spec of a HookRun or ExecutionHook without `terminate`, by which others may end it.
pub(crate) fn fixed_spec(object: &Value) -> Value {
    let mut spec = object["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("terminate");
    }
    spec
}

/// Problems of an object, or the reason why it cannot be parsed.
type Found<P> = Result<Vec<P>, String>;

/// Fails with a message about new problems. Otherwise returns the problems, which the old object had already.
fn news<P: PartialEq + ToString>(
    object: &Value,
    old: &Value,
    problems: impl Fn(&Value) -> Found<P>,
    sentence: impl Fn(&[P]) -> String,
) -> Result<Vec<String>, String> {
    // Evaluated lazily: most objects are valid, so their old version need not be checked.
    let before = || {
        if old.is_null() {
            Ok(Vec::new())
        } else {
            problems(old)
        }
    };
    match problems(object) {
        Ok(now) if now.is_empty() => Ok(Vec::new()),
        Ok(now) => {
            let before = before().unwrap_or_default();
            let (known, new): (Vec<P>, Vec<P>) =
                now.into_iter().partition(|problem| before.contains(problem));
            if new.is_empty() {
                Ok(known.iter().map(ToString::to_string).collect())
            } else {
                Err(sentence(&new))
            }
        }
        Err(unreadable) if before().err().as_ref() == Some(&unreadable) => Ok(vec![unreadable]),
        Err(unreadable) => Err(unreadable),
    }
}

/// Parses an object like the operators' watches, so that parse errors have the same message.
fn parse<K: Resource<DynamicType = ()> + DeserializeOwned>(object: &Value) -> Result<K, String> {
    let Parsed(object) = parsed::parse(&object.to_string());
    object.map_err(|invalid| invalid.error)
}

fn workload_problems(object: &Value) -> Found<workload::FieldError> {
    let object: GameDeployment = parse(object).map_err(|error| workload::unreadable(&error))?;
    Ok(Workload::read(&object).err().unwrap_or_default())
}

fn template_problems(object: &Value) -> Found<FieldError> {
    let template: HookTemplate = parse(object).map_err(|error| template_unreadable(&error))?;
    Ok(check_template(&template.spec).iter().cloned().collect())
}

fn run_problems(object: &Value) -> Found<FieldError> {
    let run: HookRun = parse(object).map_err(|error| run_unreadable(&error))?;
    let problems = resolve_run(&run.spec).err().unwrap_or_default();
    Ok(problems.iter().cloned().collect())
}

fn action_problems(object: &Value) -> Found<FieldError> {
    let action: HookAction = parse(object).map_err(|error| unreadable("HookAction", &error))?;
    let problems = resolve_action(&action).err().unwrap_or_default();
    Ok(problems.iter().cloned().collect())
}

fn execution_problems(object: &Value) -> Found<FieldError> {
    let hook: ExecutionHook = parse(object).map_err(|error| unreadable("ExecutionHook", &error))?;
    let problems = resolve_hook(&hook.spec).err().unwrap_or_default();
    Ok(problems.iter().cloned().collect())
}

/// Returns the message for an object that does not parse as this kind.
fn unreadable(kind: &str, error: &str) -> String {
    let error = cut(error, MAX_PARSER_BYTES);
    format!("the {kind} cannot be parsed: {error}; fix the field")
}

/// Returns warnings about valid but surprising settings.
fn warnings(kind: ValidatedKind, request: &AdmissionRequest) -> Vec<String> {
    let object = &request.object;
    let of_hook = |warnings: Vec<FieldError>| warnings.iter().map(ToString::to_string).collect();
    match kind {
        ValidatedKind::GameDeployment => parse(object).map_or_else(
            |_| Vec::new(),
            |game: GameDeployment| {
                let found = new_pod_warnings(&game).into_iter();
                let found = found
                    .chain(paused_warning(&game, request))
                    .chain(ask_without_hook(&game))
                    .chain(ineffective_settings(&game));
                found.map(|warning| warning.to_string()).collect()
            },
        ),
        ValidatedKind::HookTemplate => parse(object).map_or_else(
            |_| Vec::new(),
            |template: HookTemplate| of_hook(template_warnings(&template.spec)),
        ),
        ValidatedKind::HookRun => {
            parse(object).map_or_else(|_| Vec::new(), |run: HookRun| of_hook(run_warnings(&run.spec)))
        }
        ValidatedKind::ExecutionHook => parse(object).map_or_else(
            |_| Vec::new(),
            |hook: ExecutionHook| of_hook(hook_warnings(&hook.spec)),
        ),
        ValidatedKind::HookAction => Vec::new(),
    }
}

/// Warns about `paused` beside canary steps. An update that sets it to true pauses the rollout on purpose.
fn paused_warning(game: &GameDeployment, request: &AdmissionRequest) -> Option<workload::FieldError> {
    let source = if request.operation == "CREATE" {
        Source::Manifest
    } else {
        Source::Stored
    };
    let pauses = request.object["spec"]["updateStrategy"]["paused"] == true;
    sets_paused(game, source).filter(|_| source == Source::Manifest || !pauses)
}

#[cfg(test)]
mod tests;
