//! The words that are exchanged with the API server: `AdmissionReview` of `admission.k8s.io/v1`.
//!
//! Whatever arrives is either read as a request, or refused as a whole with HTTP 400; an answer always carries the uid
//! of its request. Nothing is decided here.

use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Longest warning, in bytes: API servers shorten longer ones when there are many.
const LONGEST_WARNING: usize = 256;

/// What somebody is about to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Names the request; the answer repeats it.
    pub uid: String,
    /// Of what kind the object is.
    pub kind: GroupKind,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// `status`, `scale`: what part of the object is written; none: the object.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// The object's name; none where the API server is to make one.
    #[serde(default)]
    pub name: Option<String>,
    /// The object's namespace; none where it has none.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Who does it.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it would be stored; null on a deletion.
    #[serde(default)]
    pub object: Value,
    /// The object as it is stored; null on a creation.
    #[serde(default)]
    pub old_object: Value,
}

/// A kind without its version.
#[derive(Debug, Clone, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// Who does it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct UserInfo {
    /// User name, as the API server knows it.
    #[serde(default)]
    pub username: Option<String>,
}

impl Request {
    /// Whether the object itself is written, and not a part of it such as its status.
    pub fn is_whole(&self) -> bool {
        self.sub_resource.as_deref().unwrap_or_default().is_empty()
    }

    /// The request without its objects.
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

    /// The object's name, for people.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The object's namespace, for people.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// Not an `AdmissionReview` that holds a request.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Not JSON, or not of this form.
    #[error("cannot be read as an AdmissionReview: {0}")]
    Form(#[from] serde_json::Error),
    /// Another kind, or another version of it.
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
struct Body {
    request: Request,
}

/// Reads a request.
pub fn read(body: &[u8]) -> Result<Request, Malformed> {
    let review: Value = serde_json::from_slice(body)?;
    let Head { api_version, kind } = Head::deserialize(&review)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(Malformed::Kind(kind, api_version));
    }
    let Body { request } = serde_json::from_value(review)?;
    Ok(request)
}

/// What is said of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may be done; with words for whoever does it.
    Allowed(Vec<String>),
    /// It must not be done as it is: a mistake in the object.
    Invalid(String),
    /// It must not be done by anybody at present.
    Forbidden(String),
}

impl Decision {
    /// The word that metrics and logs have for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allowed(_) => "allowed",
            Self::Invalid(_) | Self::Forbidden(_) => "refused",
        }
    }
}

/// The answer to the request of this uid.
pub fn answer(uid: &str, verdict: &Decision) -> Value {
    let refused = |code: u16, reason: &str, message: &str| {
        let status = json!({ "status": "Failure", "code": code, "reason": reason, "message": message });
        json!({ "uid": uid, "allowed": false, "status": status })
    };
    let response = match verdict {
        Decision::Allowed(warnings) if warnings.is_empty() => json!({ "uid": uid, "allowed": true }),
        Decision::Allowed(warnings) => {
            let cut = |warning: &String| hook_core::value::cut(warning, LONGEST_WARNING);
            let warnings: Vec<String> = warnings.iter().map(cut).collect();
            json!({ "uid": uid, "allowed": true, "warnings": warnings })
        }
        // Not 422: of that kubectl up to 1.20 says that the request is invalid, and no word more.
        Decision::Invalid(message) => refused(400, "BadRequest", message),
        Decision::Forbidden(message) => refused(403, "Forbidden", message),
    };
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}
