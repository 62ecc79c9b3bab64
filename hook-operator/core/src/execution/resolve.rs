//! Checks an ExecutionHook and its HookAction, and fills in the defaults.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use shared_api::execution_hook::{
    ExecutionHookSpec, MAX_CONTAINERS, PinnedAction, PodContainerNames, PodSelection,
};
use shared_api::hook_action::{ExecAction, HookAction, HookActionFields};
use shared_api::spelling::is_slip;
use shared_api::syntax::{is_name, is_qualified_name, is_subdomain};
use shared_api::unknown_fields::UnknownFields;

use super::operation::{Operation, resolve_operation};
use crate::hex_digest::hex_digest;
use crate::request::{ExecRequest, ObjectName};
use crate::resolve::{FieldError, FieldErrors, is_container_name};
use crate::value::cut;

/// Most items of a command; the CRD's schema has the same limit.
const MAX_ITEMS: usize = 64;
/// Longest command, in bytes as part of a URL.
const MAX_COMMAND_BYTES: usize = 48 * 1024;
/// Longest name in a message, in bytes.
const QUOTED_BYTES: usize = 60;
/// Bytes of a digest: all of them, as others must not be able to find an action with the same one.
const DIGEST_BYTES: usize = 32;
const DEFAULT_PARALLELISM: usize = 64;
const DEFAULT_TIME_TO_LIVE: Duration = Duration::from_hours(1);
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Checked ExecutionHook.
#[derive(Debug, Clone)]
pub struct ResolvedHook {
    /// Pods and containers.
    pub selection: Selection,
    /// Number of tries at a time.
    pub parallelism: usize,
    /// Time between the end of the hook and its deletion.
    pub time_to_live: Duration,
}

/// Pods and containers to select.
#[derive(Debug, Clone)]
pub enum Selection {
    /// Containers of these pods.
    Names(Vec<PodContainerNames>),
    /// Containers of the pods with these labels.
    Labels {
        /// Labels; never empty.
        pods: LabelSelector,
        /// Names of the containers; all if it is empty.
        containers: Vec<String>,
    },
}

/// Checked HookAction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedAction {
    /// What a try does.
    pub operation: Operation,
    /// Time for which a failed action is tried again; `None` without a limit.
    pub action_timeout: Option<Duration>,
    /// Timeout of one try.
    pub call_timeout: Duration,
    /// Whether errors quote the output or the answer.
    pub shows_output: bool,
    /// Identity of the HookAction.
    pub pinned: PinnedAction,
}

/// Try in a container. It holds no copy of the action, as many wait for their turn.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Action.
    pub action: Arc<ResolvedAction>,
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod.
    pub pod_uid: String,
    /// Name of the container.
    pub container_name: String,
    /// Timeout of the try.
    pub timeout: Duration,
}

impl Attempt {
    /// Returns the pod.
    pub fn pod(&self) -> ObjectName {
        ObjectName::known_pod(&self.pod_name)
    }

    /// Returns the request for a command.
    pub fn exec(&self, command: &[String]) -> ExecRequest {
        ExecRequest {
            pod: self.pod(),
            container: self.container_name.clone(),
            command: command.to_vec(),
            timeout: self.timeout,
            reads: None,
            shows_output: self.action.shows_output,
        }
    }
}

/// Returns the digest of everything in a spec that must not change.
pub fn digest_of_spec(spec: &ExecutionHookSpec) -> String {
    let fixed = ExecutionHookSpec {
        terminate: None,
        ..spec.clone()
    };
    digest(&fixed)
}

fn digest(object: &impl Serialize) -> String {
    // Serialization fails for no type of the API.
    let text = serde_json::to_vec(object).unwrap_or_default();
    hex_digest(text, DIGEST_BYTES)
}

/// Checks the spec of an ExecutionHook.
///
/// # Errors
/// All problems of the spec.
pub fn resolve_hook(spec: &ExecutionHookSpec) -> Result<ResolvedHook, FieldErrors> {
    let mut errors = FieldErrors::default();
    let ExecutionHookSpec {
        action_name,
        pod_selection,
        parallelism,
        ttl_seconds_after_finished,
        terminate: _,
        unknown,
    } = spec;
    let fields = [
        "actionName",
        "podSelection",
        "parallelism",
        "ttlSecondsAfterFinished",
        "terminate",
    ];
    check_unknown("spec", unknown, &fields, &mut errors);
    if action_name.is_empty() {
        errors.add(
            "spec.actionName",
            "must be set to the name of a HookAction in this namespace",
        );
    } else if !is_subdomain(action_name) {
        errors.add("spec.actionName", not_a_name(action_name, "HookAction"));
    }
    let parallelism = number("spec.parallelism", *parallelism, 1..=1024, &mut errors);
    let path = "spec.ttlSecondsAfterFinished";
    let time_to_live = number(path, *ttl_seconds_after_finished, 0..=604_800, &mut errors);
    let selection = resolve_selection(pod_selection, &mut errors);
    match selection {
        Some(selection) if errors.is_empty() => Ok(ResolvedHook {
            selection,
            parallelism: parallelism.map_or(DEFAULT_PARALLELISM, |number| number as usize),
            time_to_live: time_to_live.map_or(DEFAULT_TIME_TO_LIVE, |seconds| {
                Duration::from_secs(u64::from(seconds))
            }),
        }),
        Some(_) | None => Err(errors),
    }
}

/// Returns warnings about a valid spec.
pub fn hook_warnings(spec: &ExecutionHookSpec) -> Vec<FieldError> {
    let selection = &spec.pod_selection;
    let lists = selection.pod_container_names_list.as_deref().unwrap_or_default();
    let has_both = !lists.is_empty() && selection.pod_container_selector.is_some();
    let warning = FieldError::new(
        "spec.podSelection.podContainerSelector",
        "is ignored, because podContainerNamesList is also set; remove one of them",
    );
    has_both.then_some(warning).into_iter().collect()
}

fn resolve_selection(selection: &PodSelection, errors: &mut FieldErrors) -> Option<Selection> {
    let path = "spec.podSelection";
    let PodSelection {
        pod_container_names_list,
        pod_container_selector,
        unknown,
    } = selection;
    let fields = ["podContainerNamesList", "podContainerSelector"];
    check_unknown(path, unknown, &fields, errors);
    let names = pod_container_names_list.as_deref().unwrap_or_default();
    if !names.is_empty() {
        check_names(&format!("{path}.podContainerNamesList"), names, errors);
        return Some(Selection::Names(names.to_vec()));
    }
    let Some(selector) = pod_container_selector else {
        let message = "one of podContainerNamesList and podContainerSelector must be set";
        errors.add(path, message);
        return None;
    };
    let path = format!("{path}.podContainerSelector");
    check_unknown(
        &path,
        &selector.unknown,
        &["podSelector", "containerList"],
        errors,
    );
    let labels = &selector.pod_selector;
    let is_empty = labels
        .match_labels
        .as_ref()
        .is_none_or(std::collections::BTreeMap::is_empty)
        && labels.match_expressions.as_ref().is_none_or(Vec::is_empty);
    if is_empty {
        let message = "must not be empty, because an empty selector matches all pods in the namespace; set \
                       matchLabels";
        errors.add(format!("{path}.podSelector"), message);
    }
    check_labels(&format!("{path}.podSelector"), labels, errors);
    let containers = selector.container_list.clone().unwrap_or_default();
    check_containers(&format!("{path}.containerList"), &containers, errors);
    Some(Selection::Labels {
        pods: labels.clone(),
        containers,
    })
}

fn check_names(path: &str, pods: &[PodContainerNames], errors: &mut FieldErrors) {
    let mut known = BTreeSet::new();
    let mut total = 0;
    for (index, pod) in pods.iter().enumerate() {
        let path = format!("{path}[{index}]");
        check_unknown(&path, &pod.unknown, &["podName", "containerNames"], errors);
        if pod.pod_name.is_empty() {
            errors.add(format!("{path}.podName"), "must be set");
        } else if !is_subdomain(&pod.pod_name) {
            errors.add(format!("{path}.podName"), not_a_name(&pod.pod_name, "pod"));
        } else if !known.insert(&pod.pod_name) {
            let message = format!(
                "duplicate pod {:?}; list all of its containers in one entry",
                pod.pod_name
            );
            errors.add(format!("{path}.podName"), message);
        }
        let containers = pod.container_names.as_deref().unwrap_or_default();
        check_containers(&format!("{path}.containerNames"), containers, errors);
        total += containers.len().max(1);
    }
    if total > MAX_CONTAINERS {
        let message = format!(
            "selects at least {total} containers, but the limit is {MAX_CONTAINERS}; create several ExecutionHooks"
        );
        errors.add(path, message);
    }
}

fn check_containers(path: &str, containers: &[String], errors: &mut FieldErrors) {
    let mut known = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if !is_container_name(container) {
            errors.add(path, not_a_name(container, "container"));
        } else if !known.insert(container) {
            errors.add(
                path,
                format!("duplicate container {:?}", cut(container, QUOTED_BYTES)),
            );
        }
    }
}

fn not_a_name(name: &str, object: &str) -> String {
    let name = cut(name, QUOTED_BYTES);
    format!("{name:?} is not a valid {object} name; use lowercase letters, digits and dashes")
}

/// Checks a label selector as API servers do: a selector that they refuse would be tried again without end.
fn check_labels(path: &str, labels: &LabelSelector, errors: &mut FieldErrors) {
    let is_value = |value: &str| value.is_empty() || is_name(value);
    for (key, value) in labels.match_labels.iter().flatten() {
        if !is_qualified_name(key) || !is_value(value) {
            let message = format!("{key}={value} is not a valid label");
            errors.add(format!("{path}.matchLabels"), cut(&message, 2 * QUOTED_BYTES));
        }
    }
    for (index, expression) in labels.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = expression.values.as_deref().unwrap_or_default();
        let (key, operator) = (&expression.key, expression.operator.as_str());
        if !is_qualified_name(key) {
            errors.add(
                format!("{path}.key"),
                format!("{:?} is not a valid label key", cut(key, QUOTED_BYTES)),
            );
        }
        if let Some(value) = values.iter().find(|value| !is_value(value)) {
            let value = cut(value, QUOTED_BYTES);
            errors.add(
                format!("{path}.values"),
                format!("{value:?} is not a valid label value"),
            );
        }
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                errors.add(
                    format!("{path}.values"),
                    format!("must be set when operator is {operator}"),
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.add(
                    format!("{path}.values"),
                    format!("must be empty when operator is {operator}"),
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let other = cut(other, QUOTED_BYTES);
                let message = format!("must be one of In, NotIn, Exists, DoesNotExist, not {other:?}");
                errors.add(format!("{path}.operator"), message);
            }
        }
    }
}

/// Checks the fields of a HookAction.
///
/// # Errors
/// All problems of its fields.
pub fn resolve_action(action: &HookAction) -> Result<ResolvedAction, FieldErrors> {
    let mut errors = FieldErrors::default();
    let HookActionFields {
        action: given,
        action_timeout_seconds,
        call_timeout_seconds,
        quote_answers,
        unknown,
    } = &action.fields;
    let fields = [
        "action",
        "actionTimeoutSeconds",
        "callTimeoutSeconds",
        "quoteAnswers",
    ];
    check_unknown("", unknown, &fields, &mut errors);
    let (misplaced, others): (Vec<_>, Vec<_>) = given
        .unknown
        .names()
        .into_iter()
        .partition(|name| fields.contains(&name.as_str()));
    for name in misplaced {
        errors.add(
            format!("action.{name}"),
            "must be at the top level, next to action",
        );
    }
    check_unknown_names("action", &others, &["exec", "httpGet", "tcpSocket"], &mut errors);
    let action_timeout = number(
        "actionTimeoutSeconds",
        *action_timeout_seconds,
        1..=604_800,
        &mut errors,
    );
    let call_timeout = number("callTimeoutSeconds", *call_timeout_seconds, 1..=3600, &mut errors);
    let operation = match resolve_operation(given, &mut errors) {
        Some(operation) if errors.is_empty() => operation,
        Some(_) | None => return Err(errors),
    };
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let shows_output = quote_answers.unwrap_or_default();
    Ok(ResolvedAction {
        operation,
        action_timeout: action_timeout.map(seconds),
        call_timeout: call_timeout.map_or(DEFAULT_CALL_TIMEOUT, seconds),
        shows_output,
        pinned: PinnedAction {
            uid: action.metadata.uid.clone().unwrap_or_default(),
            generation: action.metadata.generation,
            digest: digest(&(&action.fields.action, shows_output)),
        },
    })
}

pub(super) fn check_exec(exec: &ExecAction, errors: &mut FieldErrors) -> Vec<String> {
    let path = "action.exec.command";
    check_unknown("action.exec", &exec.unknown, &["command"], errors);
    let bytes: usize = exec.command.iter().map(|item| encoded_bytes(item)).sum();
    if exec.command.first().is_none_or(String::is_empty) {
        let message = "must be set; list the program and each of its arguments as a separate item";
        errors.add(path, message);
    } else if exec.command.len() > MAX_ITEMS {
        let message = format!("has {} items; the limit is {MAX_ITEMS}", exec.command.len());
        errors.add(path, message);
    } else if bytes > MAX_COMMAND_BYTES {
        let message = format!("is {bytes} bytes long when URL-encoded; the limit is {MAX_COMMAND_BYTES}");
        errors.add(path, message);
    }
    exec.command.clone()
}

/// Returns the length of an item of a command as part of a URL.
fn encoded_bytes(item: &str) -> usize {
    let of = |byte: u8| if byte.is_ascii_alphanumeric() { 1 } else { 3 };
    item.bytes().map(of).sum::<usize>() + "&command=".len()
}

/// Checks a number; 0 and less are unset in no field of these kinds.
fn number(
    path: &str,
    number: Option<i32>,
    range: std::ops::RangeInclusive<u32>,
    errors: &mut FieldErrors,
) -> Option<u32> {
    let number = number?;
    let checked = u32::try_from(number).ok().filter(|number| range.contains(number));
    if checked.is_none() {
        let (least, most) = (range.start(), range.end());
        errors.add(path, format!("{number} must be between {least} and {most}"));
    }
    checked
}

/// Reports every unknown field: a misspelt `containerList` would select all containers.
pub(super) fn check_unknown(path: &str, unknown: &UnknownFields, known: &[&str], errors: &mut FieldErrors) {
    check_unknown_names(path, &unknown.names(), known, errors);
}

fn check_unknown_names(path: &str, unknown: &[String], known: &[&str], errors: &mut FieldErrors) {
    for name in unknown {
        let around = if path.is_empty() {
            String::new()
        } else {
            format!("{path}.")
        };
        let meant = known.iter().find(|known| is_slip(name, known));
        let hint = match meant {
            Some(known) => format!("did you mean {known}?"),
            None => format!("known fields: {}", known.join(", ")),
        };
        let path = format!("{around}{}", cut(name, QUOTED_BYTES));
        errors.add(path, format!("unknown field; {hint}"));
    }
}
