//! The deletion guard of the original: what must not go by mistake goes only with a label that allows it.
//!
//! Deleting a GameDeployment deletes its pods by garbage collection, and no hook is asked. So it needs
//! [`DELETION_ALLOW`]: `Always`, or `Cascading` when no pod is left. A HookTemplate needs `Always`: without it gates stay
//! closed. A definition of one of our kinds takes all objects of the kind with it: `Always`, or `Cascading` when there is
//! none.
//!
//! What the guard does not hold up: objects that are being deleted already, and objects of a namespace that is: the
//! namespace's pods go with it whatever is said here, so a refusal would protect nobody and keep the namespace for ever.

use serde_json::Value;
use shared_api::names::GROUP;
use shared_api::names::workload::DELETION_ALLOW;

use crate::review::{Decision, Request};

/// What the guard says, as far as the request tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// This.
    Given(Decision),
    /// Refused, unless this namespace is being deleted.
    UnlessNamespaceEnds {
        /// The namespace.
        namespace: String,
        /// The refusal.
        refusal: String,
    },
    /// Refused, unless there is no object of this kind.
    UnlessNoObjects {
        /// A served version of the kind.
        version: String,
        /// Its plural name.
        plural: String,
        /// The refusal.
        refusal: String,
    },
}

/// Judges a deletion; whatever else is asked for is allowed. `exempt`: users who may delete without the label.
#[must_use]
pub fn judge(request: &Request, exempt: &[String]) -> Ruling {
    let allowed = Ruling::Given(Decision::Allowed(Vec::new()));
    let user = request.user_info.username.as_deref().unwrap_or_default();
    if request.operation != "DELETE" || !request.is_whole() || exempt.iter().any(|name| name == user) {
        return allowed;
    }
    let old = &request.old_object;
    let label = old["metadata"]["labels"][DELETION_ALLOW].as_str();
    let ends = !old["metadata"]["deletionTimestamp"].is_null();
    if ends || label == Some("Always") {
        return allowed;
    }
    match (request.kind.group.as_str(), request.kind.kind.as_str()) {
        (GROUP, "GameDeployment") if label == Some("Cascading") && is_empty(old) => allowed,
        (GROUP, "GameDeployment") => refuse(request, &workload(request, label)),
        (GROUP, "HookTemplate") => {
            let words = "gates that ask it stay closed without it";
            refuse(request, &opening(request, label, words))
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") if old["spec"]["group"] == GROUP => {
            definition(request, label)
        }
        _ => allowed,
    }
}

/// Whether the workload has no pod, and its operator has seen that it should have none.
fn is_empty(old: &Value) -> bool {
    let (metadata, spec, status) = (&old["metadata"], &old["spec"], &old["status"]);
    let seen = !metadata["generation"].is_null() && status["observedGeneration"] == metadata["generation"];
    spec["replicas"] == 0 && seen && status["replicas"].as_i64().unwrap_or_default() == 0
}

fn workload(request: &Request, label: Option<&str>) -> String {
    let (spec, status) = (
        &request.old_object["spec"]["replicas"],
        &request.old_object["status"]["replicas"],
    );
    let wanted = spec.as_i64().unwrap_or(1);
    let pods = status.as_i64().unwrap_or_default();
    let words = format!(
        "it takes its pods (spec.replicas {wanted}, status.replicas {pods}) with it or leaves them to nobody, and no \
         hook is asked"
    );
    if label == Some("Cascading") {
        return format!(
            "{words}; its label {DELETION_ALLOW}=Cascading allows it when both are 0 and the operator has seen the \
             newest spec. Scale it to 0 and wait, or allow it now: {}",
            command(request)
        );
    }
    opening(request, label, &words)
}

/// The sentence with the value of the label and the command that allows it.
fn opening(request: &Request, label: Option<&str>, words: &str) -> String {
    let state = match label {
        None => format!("it has no label {DELETION_ALLOW}"),
        Some(value) => format!("its label {DELETION_ALLOW} is {value:?}"),
    };
    format!("{words}, and {state}. To allow it: {}", command(request))
}

fn refuse(request: &Request, why: &str) -> Ruling {
    let refusal = format!(
        "deletion of {} {} is refused: {why}",
        request.kind.kind,
        request.name()
    );
    let namespace = request.namespace().to_owned();
    Ruling::UnlessNamespaceEnds { namespace, refusal }
}

fn definition(request: &Request, label: Option<&str>) -> Ruling {
    let spec = &request.old_object["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions
        .filter(|version| version["served"] == true)
        .find_map(|version| version["name"].as_str());
    let plural = spec["names"]["plural"].as_str();
    let why = opening(request, label, "every object of the kind goes with it");
    let refusal = format!(
        "deletion of {} {} is refused: {why}",
        request.kind.kind,
        request.name()
    );
    match (served, plural) {
        (Some(version), Some(plural)) if label == Some("Cascading") => Ruling::UnlessNoObjects {
            version: version.to_owned(),
            plural: plural.to_owned(),
            refusal: format!("{refusal}. Cascading allows it when there is no such object"),
        },
        _ => Ruling::Given(Decision::Forbidden(refusal)),
    }
}

/// What allows it.
fn command(request: &Request) -> String {
    let kind = request.kind.kind.to_ascii_lowercase();
    let namespace = match request.namespace() {
        "" => String::new(),
        namespace => format!(" --namespace {namespace}"),
    };
    format!(
        "kubectl label {kind} {}{namespace} {DELETION_ALLOW}=Always --overwrite",
        request.name()
    )
}

#[cfg(test)]
mod tests;
