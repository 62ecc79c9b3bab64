//! Messages exchanged with the API server: `AdmissionReview` of `admission.k8s.io/v1`.
//!
//! A body is either parsed as a request or rejected as a whole with HTTP 400. A response always carries the
//! uid of its request. This module makes no decisions.
//!
//! The objects of a request stay JSON text until they are needed: a client without credentials may send any.

use std::collections::BTreeMap;
use std::sync::Arc;

use fair_share::semaphore::Permit;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::complexity::{self, TooComplex};
use crate::guard::GuardedObject;
use crate::removal::{RemovalReview, finalizer};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Maximum length of a warning in bytes. API servers truncate longer ones if there are many.
const MAX_WARNING_BYTES: usize = 256;
/// Maximum length of a name or another short part of a request in bytes.
const MAX_PART_BYTES: usize = 1024;
/// Maximum length of the attributes of a user in bytes.
const MAX_USER_BYTES: usize = 256 * 1024;
/// Maximum number of values in the attributes of a user, such as groups.
const MAX_USER_VALUES: usize = 4000;

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
    /// Whether nothing will be stored. An Eviction may request this in its own options instead.
    #[serde(default)]
    pub dry_run: Option<bool>,
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
    #[error("the request body is not a valid AdmissionReview: {0}")]
    Form(#[from] serde_json::Error),
    /// The body has a different kind or version.
    #[error("unsupported {1} {0}; send an admission.k8s.io/v1 AdmissionReview")]
    Kind(String, String),
    /// A part of the request is longer than any API server sends.
    #[error("request.{field} is {bytes} bytes long; the limit is {max}")]
    TooLong {
        /// Field of the request.
        field: &'static str,
        /// Length of its JSON text.
        bytes: usize,
        /// Maximum length.
        max: usize,
    },
    /// The user has too many attributes.
    #[error("request.userInfo has too many values; the limit is {MAX_USER_VALUES}")]
    User,
}

/// Request whose objects are not parsed yet.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Room for the texts.
    room: Arc<Vec<Permit>>,
    head: AdmissionRequest,
    object: Box<RawValue>,
    old_object: Box<RawValue>,
    /// Options of the operation, such as `DeleteOptions`.
    options: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<'b> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<&'b RawValue>,
}

/// Parts of a request, as JSON texts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts<'b> {
    #[serde(borrow)]
    uid: &'b RawValue,
    #[serde(borrow)]
    kind: &'b RawValue,
    #[serde(borrow)]
    operation: &'b RawValue,
    #[serde(borrow, default)]
    sub_resource: Option<&'b RawValue>,
    #[serde(borrow, default)]
    name: Option<&'b RawValue>,
    #[serde(borrow, default)]
    namespace: Option<&'b RawValue>,
    #[serde(borrow, default)]
    user_info: Option<&'b RawValue>,
    #[serde(borrow, default)]
    object: Option<&'b RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'b RawValue>,
    #[serde(borrow, default)]
    options: Option<&'b RawValue>,
    #[serde(borrow, default)]
    dry_run: Option<&'b RawValue>,
}

/// Parses a short part of a request.
fn part<'b, T: Deserialize<'b>>(
    field: &'static str,
    part: Option<&'b RawValue>,
    max: usize,
) -> Result<T, Malformed> {
    let text = part.map_or("null", RawValue::get);
    let bytes = text.len();
    if bytes > max {
        return Err(Malformed::TooLong { field, bytes, max });
    }
    Ok(serde_json::from_str(text)?)
}

/// Parses a request, apart from its objects.
pub fn read(body: &[u8]) -> Result<ReceivedRequest, Malformed> {
    let AdmissionReview {
        api_version,
        kind,
        request,
    } = serde_json::from_slice(body)?;
    if api_version != API_VERSION || kind != KIND {
        let cut = |text: &str| hook_core::value::cut(text, MAX_PART_BYTES);
        return Err(Malformed::Kind(cut(&kind), cut(&api_version)));
    }
    let Parts {
        uid,
        kind,
        operation,
        sub_resource,
        name,
        namespace,
        user_info,
        object,
        old_object,
        options,
        dry_run,
    } = serde_json::from_str(request.map_or("null", RawValue::get))?;
    let text = |field, text| part(field, text, MAX_PART_BYTES);
    if let Some(user) = user_info {
        let values = complexity::values(user.get().as_bytes()).unwrap_or(usize::MAX);
        if values > MAX_USER_VALUES {
            return Err(Malformed::User);
        }
    }
    let user_info: Option<UserInfo> = part("userInfo", user_info, MAX_USER_BYTES)?;
    let owned = |object: Option<&RawValue>| object.unwrap_or(RawValue::NULL).to_owned();
    Ok(ReceivedRequest {
        room: Arc::default(),
        head: AdmissionRequest {
            uid: part("uid", Some(uid), MAX_PART_BYTES)?,
            kind: part("kind", Some(kind), MAX_PART_BYTES)?,
            operation: part("operation", Some(operation), MAX_PART_BYTES)?,
            sub_resource: text("subResource", sub_resource)?,
            name: text("name", name)?,
            namespace: text("namespace", namespace)?,
            user_info: user_info.unwrap_or_default(),
            dry_run: part("dryRun", dry_run, MAX_PART_BYTES)?,
            object: Value::Null,
            old_object: Value::Null,
        },
        object: owned(object),
        old_object: owned(old_object),
        options: owned(options),
    })
}

/// Members of an object that no decision depends on, apart from [`OWNERS`].
const UNDECISIVE: [&str; 2] = ["metadata", "status"];

/// Owners of an object, as a member beside the others.
const OWNERS: &str = "metadata.ownerReferences";

/// Object as its top-level members, which stay JSON texts.
type Members<'o> = BTreeMap<String, &'o RawValue>;

/// Part of the metadata that decisions depend on.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owners<'o> {
    #[serde(borrow)]
    owner_references: Option<&'o RawValue>,
}

/// Returns whether an update leaves everything as it is that decisions depend on. Equal parts have equal texts,
/// because API servers write both objects alike.
fn is_unchanged(object: &RawValue, old: &RawValue) -> bool {
    let (Some(object), Some(old)) = (decisive(object), decisive(old)) else {
        return false;
    };
    object == old
}

/// Returns the texts of the members that decisions depend on, by name; `None` if the text is no object.
fn decisive(object: &RawValue) -> Option<BTreeMap<String, &str>> {
    let mut members: Members<'_> = serde_json::from_str(object.get()).ok()?;
    let metadata = members.get("metadata").map_or("{}", |metadata| metadata.get());
    let owners: Owners<'_> = serde_json::from_str(metadata).ok()?;
    members.retain(|name, _| !UNDECISIVE.contains(&name.as_str()));
    let texts = members.into_iter().map(|(name, text)| (name, text.get()));
    let owners = owners.owner_references.map(RawValue::get);
    Some(
        texts
            .chain(owners.map(|owners| (OWNERS.to_owned(), owners)))
            .collect(),
    )
}

impl ReceivedRequest {
    /// Keeps the room of the texts until they are parsed.
    #[must_use]
    pub fn keep(mut self, room: Vec<Permit>) -> Self {
        self.room = Arc::new(room);
        self
    }

    /// Returns the request without its objects.
    pub fn head(&self) -> &AdmissionRequest {
        &self.head
    }

    /// Counts the values of both objects.
    #[must_use]
    pub fn weigh(self) -> WeighedRequest {
        let weigh = |text: &RawValue| {
            let json = text.get().as_bytes();
            plain_json::check(json).map_err(|_| TooComplex::ReservedKey)?;
            complexity::values(json)
        };
        WeighedRequest {
            values: weigh(&self.object),
            old_values: weigh(&self.old_object),
            received: self,
        }
    }

    /// Reads the fields of the old object that the guard needs, however large or deep the object is.
    pub fn guarded(self) -> Result<AdmissionRequest, AdmissionDecision> {
        let read = serde_json::from_str::<Option<GuardedObject>>(self.old_object.get());
        let old_object = read.and_then(serde_json::to_value).map_err(|error| {
            AdmissionDecision::Forbidden(format!("the object to delete cannot be parsed: {error}"))
        })?;
        Ok(AdmissionRequest {
            old_object,
            ..self.head
        })
    }

    /// Reads the fields that the removal guard needs, however large or deep the objects are.
    pub fn removal(&self) -> Result<RemovalReview, AdmissionDecision> {
        RemovalReview::read(&self.head, &self.object, &self.old_object, &self.options).map_err(|error| {
            AdmissionDecision::Forbidden(format!(
                "the pod, Eviction or namespace cannot be parsed: {error}"
            ))
        })
    }

    /// Returns the denial of an update that removes the finalizer of a GameDeployment too early, however large or deep
    /// the objects are: see [`finalizer::judge`].
    pub fn finalizer_removal(&self, operators: &[String]) -> Option<AdmissionDecision> {
        finalizer::judge(&self.head, &self.object, &self.old_object, operators)
    }
}

/// Request whose objects are counted, and not parsed yet.
#[derive(Debug, Clone)]
pub struct WeighedRequest {
    received: ReceivedRequest,
    values: Result<usize, TooComplex>,
    old_values: Result<usize, TooComplex>,
}

impl WeighedRequest {
    /// Returns the number of values of both objects, as far as they are parsed by [`Self::parse`].
    pub fn values(&self) -> usize {
        self.values.unwrap_or(0) + self.old_values.unwrap_or(0)
    }

    /// Parses both objects, or decides without them if one is too complex: an update that changes metadata alone, but
    /// not the owners, is allowed, so that finalizers and labels can still be changed. An old object that is too
    /// complex is left out where it makes no difference, so that all of the new one counts as new.
    pub fn parse(self) -> Result<AdmissionRequest, AdmissionDecision> {
        let ReceivedRequest {
            room: _room,
            head,
            object,
            old_object,
            options: _,
        } = self.received;
        if let Some(why) = self.values.err().or(self.old_values.err())
            && is_unchanged(&object, &old_object)
        {
            return Err(AdmissionDecision::Allowed(vec![format!("not validated: {why}")]));
        }
        let unchecked = |which, why, remedy| {
            let words = format!("the {which} object cannot be validated: {why}; {remedy}");
            Err(AdmissionDecision::Invalid(words))
        };
        let old_text = match (self.values, self.old_values) {
            (Err(why), _) => return unchecked("new", why, "simplify it"),
            // These may only change in certain ways, which cannot be compared.
            (Ok(_), Err(why)) if ["HookRun", "ExecutionHook"].contains(&head.kind.kind.as_str()) => {
                return unchecked("stored", why, "delete and recreate it");
            }
            (Ok(_), Err(_)) => RawValue::NULL,
            (Ok(_), Ok(_)) => &old_object,
        };
        let value = |text: &RawValue| {
            serde_json::from_str::<Value>(text.get())
                .map_err(|error| AdmissionDecision::Invalid(format!("the object cannot be parsed: {error}")))
        };
        Ok(AdmissionRequest {
            object: value(&object)?,
            old_object: value(old_text)?,
            ..head
        })
    }
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
    /// Rejected like [`Self::Forbidden`], with a cause that clients can recognize.
    ForbiddenWithCause(DenialCause, String),
    /// Rejected because the client repeats the operation too often. Client libraries wait before they retry.
    TooFrequent {
        /// Message.
        message: String,
        /// Time for which they wait, in seconds.
        retry_after_seconds: u32,
    },
    /// Rejected for now: the client is expected to try again until the operation is allowed.
    Pending(String),
}

/// Cause in the details of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialCause {
    /// Reason, in `CamelCase`.
    pub reason: &'static str,
    /// Path of the field that must not be changed.
    pub field: &'static str,
}

impl AdmissionDecision {
    /// Returns the name of the decision in metrics and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allowed(_) => "allowed",
            Self::Invalid(_)
            | Self::Forbidden(_)
            | Self::ForbiddenWithCause(..)
            | Self::TooFrequent { .. } => "refused",
            Self::Pending(_) => "pending",
        }
    }
}

/// Returns the response to the request with this uid.
pub fn answer(uid: &str, verdict: &AdmissionDecision) -> Value {
    let rejected = |status: Value| json!({ "uid": uid, "allowed": false, "status": status });
    let refused = |code: u16, reason: &str, message: &str| {
        rejected(json!({ "status": "Failure", "code": code, "reason": reason, "message": message }))
    };
    let detailed = |code: u16, reason: &str, message: &str, details: Value| {
        rejected(json!({
            "status": "Failure", "code": code, "reason": reason, "message": message, "details": details,
        }))
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
        AdmissionDecision::ForbiddenWithCause(cause, message) => {
            let cause = json!({ "reason": cause.reason, "message": message, "field": cause.field });
            detailed(403, "Forbidden", message, json!({ "causes": [cause] }))
        }
        // API servers also send retryAfterSeconds as the header Retry-After.
        AdmissionDecision::TooFrequent {
            message,
            retry_after_seconds,
        } => {
            let details = json!({ "retryAfterSeconds": retry_after_seconds });
            detailed(429, "TooManyRequests", message, details)
        }
        // Without retryAfterSeconds: with it, client libraries repeat the request in silence, and kubectl does not
        // print the message.
        AdmissionDecision::Pending(message) => refused(429, "TooManyRequests", message),
    };
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}
