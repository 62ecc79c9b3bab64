//! Deletion guard of the original operator: protected objects can only be deleted if a label allows it.
//!
//! Deleting a GameDeployment deletes its pods by garbage collection, without any hook. Therefore it needs the
//! label [`DELETION_ALLOW`]: `Always`, or `Cascading` if it has no pods. A HookTemplate needs `Always`,
//! because gates stay closed without it. A definition of one of our kinds needs `Always`, or `Cascading` if
//! the kind has no objects, because its deletion deletes all of them.
//!
//! The guard does not block objects that are already being deleted, nor objects in a namespace that is being
//! deleted. The pods of such a namespace are deleted in any case, so a refusal would protect nobody and block
//! the namespace forever.

use serde_json::Value;
use shared_api::names::GROUP;
use shared_api::names::workload::DELETION_ALLOW;

use crate::review::{AdmissionDecision, AdmissionRequest};

/// Result of the guard, as far as the request determines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingDecision {
    /// Final decision.
    Given(AdmissionDecision),
    /// Refused, unless this namespace is being deleted.
    UnlessNamespaceEnds {
        /// Name of the namespace.
        namespace: String,
        /// Message of the refusal.
        refusal: String,
    },
    /// Refused, unless no objects of this kind exist.
    UnlessNoObjects {
        /// A served version of the kind.
        version: String,
        /// Plural name of the kind.
        plural: String,
        /// Message of the refusal.
        refusal: String,
    },
}

/// Judges a deletion; all other operations are allowed. `exempt`: users who may delete without the label.
#[must_use]
pub fn judge(request: &AdmissionRequest, exempt: &[String]) -> PendingDecision {
    let allowed = PendingDecision::Given(AdmissionDecision::Allowed(Vec::new()));
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

/// Returns whether the workload has no pods, and its operator has observed that it should have none.
fn is_empty(old: &Value) -> bool {
    let (metadata, spec, status) = (&old["metadata"], &old["spec"], &old["status"]);
    let seen = !metadata["generation"].is_null() && status["observedGeneration"] == metadata["generation"];
    spec["replicas"] == 0 && seen && status["replicas"].as_i64().unwrap_or_default() == 0
}

fn workload(request: &AdmissionRequest, label: Option<&str>) -> String {
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

/// Builds the message with the value of the label and the command that allows the deletion.
fn opening(request: &AdmissionRequest, label: Option<&str>, words: &str) -> String {
    let state = match label {
        None => format!("it has no label {DELETION_ALLOW}"),
        Some(value) => format!("its label {DELETION_ALLOW} is {value:?}"),
    };
    format!("{words}, and {state}. To allow it: {}", command(request))
}

fn refuse(request: &AdmissionRequest, why: &str) -> PendingDecision {
    let refusal = format!(
        "deletion of {} {} is refused: {why}",
        request.kind.kind,
        request.name()
    );
    let namespace = request.namespace().to_owned();
    PendingDecision::UnlessNamespaceEnds { namespace, refusal }
}

fn definition(request: &AdmissionRequest, label: Option<&str>) -> PendingDecision {
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
        (Some(version), Some(plural)) if label == Some("Cascading") => PendingDecision::UnlessNoObjects {
            version: version.to_owned(),
            plural: plural.to_owned(),
            refusal: format!("{refusal}. Cascading allows it when there is no such object"),
        },
        _ => PendingDecision::Given(AdmissionDecision::Forbidden(refusal)),
    }
}

/// Returns the command that allows the deletion.
fn command(request: &AdmissionRequest) -> String {
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
