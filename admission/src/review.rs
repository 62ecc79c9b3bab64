//! Messages exchanged with the API server: `AdmissionReview` of `admission.k8s.io/v1`.
//!
//! A body is either parsed as a request or rejected as a whole with HTTP 400. A response always carries the
//! uid of its request. This module makes no decisions.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Maximum length of a warning in bytes. API servers truncate longer ones if there are many.
const MAX_WARNING_BYTES: usize = 256;

/// An admission request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRequest {
    /// Identifier of the request, repeated in the response.
    pub uid: String,
    /// Kind of the object.
    pub kind: GroupKind,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// Subresource that is written, such as `status` or `scale`; `None` for the object itself.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// Name of the object; `None` if the API server will generate it.
    #[serde(default)]
    pub name: Option<String>,
    /// Namespace of the object; `None` for cluster-scoped objects.
    #[serde(default)]
    pub namespace: Option<String>,
    /// User who sent the request.
    #[serde(default)]
    pub user_info: UserInfo,
    /// Object as it would be stored; null on a deletion.
    #[serde(default)]
    pub object: Value,
    /// Object as currently stored; null on a creation.
    #[serde(default)]
    pub old_object: Value,
}

/// A kind without its version.
#[derive(Debug, Clone, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// User of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct UserInfo {
    /// Name of the user, as known to the API server.
    #[serde(default)]
    pub username: Option<String>,
    /// Identifier of the user.
    #[serde(default)]
    pub uid: Option<String>,
    /// Groups of the user.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Further attributes for the authorizer.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl AdmissionRequest {
    /// Returns whether the request writes the object itself rather than a subresource.
    pub fn is_whole(&self) -> bool {
        self.sub_resource.as_deref().unwrap_or_default().is_empty()
    }

    /// Returns the request without its objects.
    #[must_use]
    pub fn clone_head(&self) -> Self {
        let Self {
            uid,
            kind,
            operation,
            sub_resource,
            name,
            namespace,
            user_info,
            object: _,
            old_object: _,
        } = self;
        Self {
            uid: uid.clone(),
            kind: kind.clone(),
            operation: operation.clone(),
            sub_resource: sub_resource.clone(),
            name: name.clone(),
            namespace: namespace.clone(),
            user_info: user_info.clone(),
            object: Value::Null,
            old_object: Value::Null,
        }
    }

    /// Returns the name of the object, for messages.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns the namespace of the object, for messages.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// Reason why a body is not an `AdmissionReview` with a request.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// The body is not JSON, or has a different structure.
    #[error("cannot be read as an AdmissionReview: {0}")]
    Form(#[from] serde_json::Error),
    /// The body has a different kind or version.
    #[error("{0} of {1} is not known; send AdmissionReview of admission.k8s.io/v1")]
    Kind(String, String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct AdmissionReview {
    request: AdmissionRequest,
}

/// Parses a request.
pub fn read(body: &[u8]) -> Result<AdmissionRequest, Malformed> {
    let review: Value = serde_json::from_slice(body)?;
    let Head { api_version, kind } = Head::deserialize(&review)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(Malformed::Kind(kind, api_version));
    }
    let AdmissionReview { request } = serde_json::from_value(review)?;
    Ok(request)
}

/// Decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// Allowed, with warnings for the user.
    Allowed(Vec<String>),
    /// Rejected because the object is invalid.
    Invalid(String),
    /// Rejected because the operation is not allowed at present.
    Forbidden(String),
}

impl AdmissionDecision {
    /// Returns the name of the decision in metrics and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allowed(_) => "allowed",
            Self::Invalid(_) | Self::Forbidden(_) => "refused",
        }
    }
}

/// Returns the response to the request with this uid.
pub fn answer(uid: &str, verdict: &AdmissionDecision) -> Value {
    let refused = |code: u16, reason: &str, message: &str| {
        let status = json!({ "status": "Failure", "code": code, "reason": reason, "message": message });
        json!({ "uid": uid, "allowed": false, "status": status })
    };
    let response = match verdict {
        AdmissionDecision::Allowed(warnings) if warnings.is_empty() => json!({ "uid": uid, "allowed": true }),
        AdmissionDecision::Allowed(warnings) => {
            let cut = |warning: &String| hook_core::value::cut(warning, MAX_WARNING_BYTES);
            let warnings: Vec<String> = warnings.iter().map(cut).collect();
            json!({ "uid": uid, "allowed": true, "warnings": warnings })
        }
        // Not 422: for that code, kubectl up to 1.20 only prints that the request is invalid.
        AdmissionDecision::Invalid(message) => refused(400, "BadRequest", message),
        AdmissionDecision::Forbidden(message) => refused(403, "Forbidden", message),
    };
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}
