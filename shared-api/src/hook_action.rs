//! The HookAction kind: an action that ExecutionHooks run in containers. Its fields are at the top level, beside
//! `metadata`.

use std::borrow::Cow;

use kube::core::{NamespaceResourceScope, ObjectMeta, Resource, TypeMeta};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metric::unknown_fields_schema;
use crate::unknown_fields::UnknownFields;

/// An action to run in containers, and its limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HookAction {
    /// API version and kind.
    #[serde(flatten)]
    pub types: Option<TypeMeta>,
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Fields of this kind.
    #[serde(flatten)]
    pub fields: HookActionFields,
}

impl HookAction {
    /// Creates an action of this name.
    pub fn new(name: &str, fields: HookActionFields) -> Self {
        Self {
            types: Some(TypeMeta::resource::<Self>()),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            fields,
        }
    }
}

impl Resource for HookAction {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        HookActionDefinition::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        HookActionDefinition::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        HookActionDefinition::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        HookActionDefinition::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Fields of a HookAction beside its metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "tkex.tencent.com",
    version = "v1alpha1",
    kind = "HookAction",
    root = "HookActionDefinition",
    doc = "An action that ExecutionHooks run in running containers. It does not refer to specific pods, so many ExecutionHooks can share it.",
    namespaced,
    shortname = "ha",
    printcolumn(name = "COMMAND", type_ = "string", json_path = ".action.exec.command"),
    printcolumn(name = "TIMEOUT", type_ = "integer", json_path = ".actionTimeoutSeconds"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct HookActionFields {
    /// Action to run. It may run more than once in a container, so it must be idempotent.
    #[serde(default)]
    pub action: Action,
    /// How long a failed action is retried in a container, in seconds from its first attempt there. Restarting
    /// hook-operator resets the timer. If unset, the action is retried until it succeeds or the ExecutionHook ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub action_timeout_seconds: Option<i32>,
    /// Timeout of one attempt, in seconds. A command may keep running after the timeout. Defaults to 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub call_timeout_seconds: Option<i32>,
    /// Whether error messages of ExecutionHooks quote the end of a command's output, or the beginning of an HTTP
    /// response. If unset, they contain only its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote_answers: Option<bool>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Type of an action. Exactly one of `exec`, `httpGet` and `tcpSocket` must be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Command to run in the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// HTTP GET request to send to the pod's IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpGetAction>,
    /// TCP connection to open to the pod's IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A command. Exit code 0 means success.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecAction {
    /// Program and its arguments, run without a shell.
    #[serde(default)]
    #[schemars(length(min = 1, max = 64))]
    pub command: Vec<String>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// An HTTP GET request to the pod's IP. A status from 200 to 299 means success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGetAction {
    /// Path and query of the request. Defaults to `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub path: Option<String>,
    /// Port number from 1 to 65535, or the name of a port of the container.
    #[schemars(schema_with = "port_schema")]
    pub port: Value,
    /// Scheme of the request: `HTTP` or `HTTPS`. As with probes, certificates are not verified. Defaults to `HTTP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Headers to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub http_headers: Option<Vec<ActionHeader>>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A header of an HTTP GET request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionHeader {
    /// Name of the header.
    pub name: String,
    /// Value of the header. Defaults to an empty string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A TCP connection to the pod's IP. Establishing the connection means success; it is then closed at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpSocketAction {
    /// Port number from 1 to 65535, or the name of a port of the container.
    #[schemars(schema_with = "port_schema")]
    pub port: Value,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Schema of a port. Its type has no limit, as API servers store larger numbers, which are reported as any problem.
fn port_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-int-or-string": true })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_at_the_top_level_and_only_unknown_ones_are_unknown() {
        let action = json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction",
            "metadata": { "name": "freeze" },
            "action": { "exec": { "command": ["run_quiesce.sh"] }, "actionTimeoutSeconds": 10 },
            "callTimeoutSeconds": 3, "actionTimeout": 1 });
        let read: HookAction = serde_json::from_value(action.clone()).unwrap();
        let HookActionFields {
            action: inner,
            unknown,
            call_timeout_seconds,
            ..
        } = &read.fields;
        assert_eq!(*call_timeout_seconds, Some(3));
        assert_eq!(unknown.names(), ["actionTimeout"]);
        assert_eq!(inner.unknown.names(), ["actionTimeoutSeconds"]);
        assert_eq!(serde_json::to_value(&read).unwrap(), action);
    }
}
