//! Deletion guard of the original operator: protected objects can only be deleted if a label allows it.
//!
//! Deleting a GameDeployment deletes its pods: by garbage collection without any hook, or by the operator once their
//! hooks succeed, if it has the finalizer
//! [`ASK_BEFORE_REMOVAL`](shared_api::names::workload::ASK_BEFORE_REMOVAL), the policy `Ask` and a PreDelete hook. In either case
//! it needs the label [`DELETION_ALLOW`]: `Always`, or `Cascading` if it has no pods. A HookTemplate needs `Always`,
//! because gates stay closed without it. A definition of one of our kinds needs `Always`, or `Cascading` if the kind
//! has no objects, because its deletion deletes all of them.
//!
//! The guard does not block objects that are already being deleted, nor objects in a namespace that is being
//! deleted. The pods of such a namespace are deleted in any case, so a refusal would protect nobody and block
//! the namespace forever.

use serde::de::{DeserializeOwned, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use shared_api::names::GROUP;
use shared_api::names::workload::DELETION_ALLOW;

use crate::removal::KeepingWorkload;
use crate::review::{AdmissionDecision, AdmissionRequest};

/// Fields of an object on which its deletion depends. All others are skipped, so that an object of any size and
/// nesting can be deleted with its label, and cannot without it.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GuardedObject {
    metadata: Option<GuardedMetadata>,
    spec: Option<GuardedSpec>,
    status: Option<GuardedStatus>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct GuardedMetadata {
    labels: Option<GuardedLabels>,
    generation: Option<Number>,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct GuardedLabels {
    /// [`DELETION_ALLOW`].
    #[serde(rename = "io.tencent.bcs.dev/deletion-allow")]
    deletion_allow: Option<String>,
}

/// A field of another type than expected counts as missing: another kind may use its name for something else.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct GuardedSpec {
    #[serde(deserialize_with = "if_readable")]
    replicas: Option<Number>,
    /// Group of a definition.
    #[serde(deserialize_with = "if_readable")]
    group: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    names: Option<GuardedNames>,
    /// Versions of a definition: the first one that is served.
    #[serde(deserialize_with = "first_served")]
    versions: Vec<GuardedVersion>,
    #[serde(deserialize_with = "if_readable")]
    disruption: Option<GuardedDisruption>,
    #[serde(deserialize_with = "if_readable")]
    pre_delete_update_strategy: Option<GuardedStrategy>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct GuardedDisruption {
    policy: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct GuardedStrategy {
    hook: Option<GuardedHook>,
}

/// Hook of which no field matters.
#[derive(Debug, Default, Deserialize, Serialize)]
struct GuardedHook {}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct GuardedNames {
    plural: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct GuardedVersion {
    name: Option<String>,
    served: Option<bool>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct GuardedStatus {
    #[serde(deserialize_with = "if_readable")]
    replicas: Option<Number>,
    #[serde(deserialize_with = "if_readable")]
    observed_generation: Option<Number>,
}

/// Reads a field if it has the expected type.
fn if_readable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let text = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(text.get()).unwrap_or_default())
}

/// Reads a list of versions, and keeps the first that is served.
fn first_served<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GuardedVersion>, D::Error> {
    struct FirstServed;

    impl<'de> Visitor<'de> for FirstServed {
        type Value = Vec<GuardedVersion>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of versions")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut versions: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(text) = versions.next_element::<&RawValue>()? {
                let version = serde_json::from_str::<GuardedVersion>(text.get()).unwrap_or_default();
                if found.is_empty() && version.served == Some(true) && version.name.is_some() {
                    found.push(version);
                }
            }
            Ok(found)
        }
    }

    let text = <&RawValue>::deserialize(deserializer)?;
    let read = serde_json::Deserializer::from_str(text.get()).deserialize_seq(FirstServed);
    Ok(read.unwrap_or_default())
}

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
            let words = "hooks that use it could not run, so their gates would stay closed";
            refuse(request, &opening(request, ("it", label), words))
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

/// Returns whether the operator deletes the workload's pods once their hooks succeed.
fn asks_before_removal(old: &Value) -> bool {
    let workload = KeepingWorkload::deserialize(old);
    workload.is_ok_and(|workload| workload.has_finalizer() && workload.runs_hooks())
}

fn workload(request: &AdmissionRequest, label: Option<&str>) -> String {
    let (spec, status) = (
        &request.old_object["spec"]["replicas"],
        &request.old_object["status"]["replicas"],
    );
    let wanted = spec.as_i64().unwrap_or(1);
    let pods = status.as_i64().unwrap_or_default();
    let end = if asks_before_removal(&request.old_object) {
        "deleted once their PreDelete hooks succeed"
    } else {
        "deleted or orphaned without running their hooks"
    };
    let words = format!("its pods (spec.replicas {wanted}, status.replicas {pods}) would be {end}");
    if label == Some("Cascading") {
        return format!(
            "{words}; its label {DELETION_ALLOW}=Cascading allows the deletion once both are 0 and the operator has \
             observed the latest spec. Scale it to 0 and wait, or allow the deletion now: {}",
            command(request)
        );
    }
    opening(request, ("it", label), &words)
}

/// Builds the message with the value of the label of this subject, and the command that allows the deletion.
fn opening(request: &AdmissionRequest, (subject, label): (&str, Option<&str>), words: &str) -> String {
    let state = match label {
        None => format!("{subject} has no label {DELETION_ALLOW}"),
        Some(value) => format!("its label {DELETION_ALLOW} is {value:?}"),
    };
    format!(
        "{words}, and {state}. To allow the deletion: {}",
        command(request)
    )
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
    let words = "all objects of this kind would be deleted";
    let why = opening(request, ("the CRD", label), words);
    let refusal = format!(
        "deletion of {} {} is refused: {why}",
        request.kind.kind,
        request.name()
    );
    match (served, plural) {
        (Some(version), Some(plural)) if label == Some("Cascading") => PendingDecision::UnlessNoObjects {
            version: version.to_owned(),
            plural: plural.to_owned(),
            refusal: format!(
                "{refusal}. The label value Cascading allows the deletion once no objects of this kind are left"
            ),
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
