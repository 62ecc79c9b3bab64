//! Parses one line of the audit log.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::text;

/// Status that some servers record when the caller has gone.
const CALLER_GONE: u64 = 499;

/// Write that the API server has answered.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Time when the request arrived.
    pub(crate) received: Timestamp,
    /// Time of the response. The write took effect in between.
    pub(crate) done: Timestamp,
    /// User, or impersonated user.
    pub(crate) user: String,
    pub(crate) verb: String,
    /// For instance `pods`.
    pub(crate) resource: String,
    /// For instance `status`; empty if there is none.
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// HTTP status.
    pub(crate) code: u64,
    /// Whether the user lacked the permission.
    pub(crate) no_right: bool,
    pub(crate) request: Value,
    pub(crate) response: Value,
}

impl Event {
    /// Parses a line. Returns nothing for reads, dry runs and unfinished requests, and one event per deleted
    /// object for a collection deletion.
    pub(crate) fn read(line: &str) -> Result<Vec<Self>, String> {
        let mut value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |path: &str| {
            let found = value.pointer(path).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let time = |path: &str| {
            let found = text(path).parse::<Timestamp>();
            found.map_err(|error| format!("{path}: {error}"))
        };
        let verb = text("/verb");
        let writes = matches!(
            verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        );
        // A request whose caller has gone may end in a panic of the API server, which is how it aborts the
        // request.
        let over = matches!(text("/stage").as_str(), "ResponseComplete" | "Panic");
        if !writes || !over || text("/requestURI").contains("dryRun=") {
            return Ok(Vec::new());
        }
        let uri = text("/requestURI");
        let impersonated = text("/impersonatedUser/username");
        let user = if impersonated.is_empty() {
            text("/user/username")
        } else {
            impersonated
        };
        let mut event = Self {
            received: time("/requestReceivedTimestamp")?,
            done: time("/stageTimestamp")?,
            user,
            verb,
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: value
                .pointer("/responseStatus/code")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            no_right: value["annotations"]["authorization.k8s.io/decision"] == "forbid",
            request: Value::Null,
            response: Value::Null,
        };
        event.request = value["requestObject"].take();
        event.response = value["responseObject"].take();
        // Managed fields are a third of each object and irrelevant to every rule.
        if let Some(metadata) = event.response.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        if event.verb == "deletecollection" && event.succeeded() {
            event.request = json!({ "selector": uri });
            return Ok(event.one_by_one());
        }
        Ok(vec![event])
    }

    /// Splits a collection deletion into the deletions of its objects. The response shows the objects as they
    /// were before; those with finalizers are not gone yet.
    fn one_by_one(mut self) -> Vec<Self> {
        let response = self.response.take();
        let gone = |object: &&Value| {
            object["metadata"]["finalizers"]
                .as_array()
                .is_none_or(Vec::is_empty)
        };
        let objects = response["items"].as_array().into_iter().flatten().filter(gone);
        let one = |object: &Value| Self {
            verb: "delete".to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            response: json!({ "details": { "uid": object["metadata"]["uid"] } }),
            ..self.clone()
        };
        objects.map(one).collect()
    }

    /// Returns whether the request belongs, or may belong, to the namespace: nodes have none.
    pub(crate) fn is_about(&self, namespace: &str) -> bool {
        self.namespace == namespace || self.resource == "nodes"
    }

    /// Returns whether the request succeeded.
    pub(crate) fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Returns whether the request's effect is unknown from the log: the caller was gone, or the API server
    /// failed.
    pub(crate) fn may_have_taken_effect(&self) -> bool {
        let refused = (300..500).contains(&self.code) && self.code != CALLER_GONE;
        let known = self.succeeded() && self.object().is_some();
        !(refused || known)
    }

    /// Returns the object in the response; `None` if the response is only a success status.
    pub(crate) fn object(&self) -> Option<&Value> {
        let is_object = self.response["metadata"]["uid"].is_string();
        is_object.then_some(&self.response)
    }
}
