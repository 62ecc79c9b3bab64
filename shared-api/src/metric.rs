//! What HookTemplate and HookRun share: metrics, their providers, and arguments.
//!
//! In the rules a field counts as set when it is there and not null: manifests may write nulls.
//! Rules cannot speak of `jsonBody`: its schema has no type. The operator checks it, as it checks all else again.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fields that this API does not have. The API server keeps them, so that a misspelt one can be told from one that is not
/// set.
pub type UnknownFields = BTreeMap<String, serde_json::Value>;

/// One thing to measure, and how its measurements are judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.count) && dyn(self.count) != null) || self.count <= 1 || ((has(self.interval) && dyn(self.interval) != null) && self.interval != '')", "interval must be set when count is greater than 1"))]
#[x_kube(validation = ("!(has(self.count) && dyn(self.count) != null) || self.count >= 0", "count must not be negative"))]
#[x_kube(validation = ("!(has(self.failureLimit) && dyn(self.failureLimit) != null) || self.failureLimit >= -1", "failureLimit must be -1 (unlimited), 0 or greater"))]
#[x_kube(validation = ("!(has(self.successfulLimit) && dyn(self.successfulLimit) != null) || self.successfulLimit >= 0", "successfulLimit must not be negative"))]
#[x_kube(validation = ("!(has(self.inconclusiveLimit) && dyn(self.inconclusiveLimit) != null) || self.inconclusiveLimit >= 0", "inconclusiveLimit must not be negative"))]
#[x_kube(validation = ("!(has(self.consecutiveErrorLimit) && dyn(self.consecutiveErrorLimit) != null) || self.consecutiveErrorLimit >= 0", "consecutiveErrorLimit must not be negative"))]
#[x_kube(validation = ("!(has(self.consecutiveSuccessfulLimit) && dyn(self.consecutiveSuccessfulLimit) != null) || self.consecutiveSuccessfulLimit >= 1", "consecutiveSuccessfulLimit must be at least 1"))]
pub struct Metric {
    /// Names the metric within its template; unique there.
    pub name: String,
    /// Time from the end of one measurement to the start of the next, for example `30s` or `1m30s`; at least 100ms.
    /// Unset: one measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Time to wait before the first measurement, counted from the moment the metric may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay: Option<String>,
    /// How many measurements to take; errors do not count. Unset or 0: one without `interval`, else no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i32>,
    /// True makes a measurement Successful; `result` is the measured value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_condition: Option<String>,
    /// True makes a measurement Failed; `result` is the measured value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_condition: Option<String>,
    /// The metric is Failed when more measurements than this have failed. Unset: 0, or no limit where a success
    /// limit is set. -1: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_limit: Option<i32>,
    /// The metric is Successful when this many measurements have succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_limit: Option<i32>,
    /// The metric is Inconclusive when more measurements than this were inconclusive. Unset: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inconclusive_limit: Option<i32>,
    /// The metric is in Error when more measurements than this in a row were errors. Unset: 4, or no limit where
    /// a success limit is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_error_limit: Option<i32>,
    /// The metric is Successful when this many measurements in a row have succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_successful_limit: Option<i32>,
    /// The phase of a measurement whose answer holds no data and whose conditions do not handle that:
    /// Error (the default), Failed, Inconclusive or Successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "no_data_schema")]
    pub on_no_data: Option<String>,
    /// Show answers in status and events although the request carries a Secret; the Secret's text is masked where it
    /// is found. Unset: nothing of such an answer is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote_answers: Option<bool>,
    /// Where the value comes from; exactly one of its fields is set.
    pub provider: Provider,
    /// Fields that this API does not have.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Where a metric's value comes from; exactly one field is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("[(has(self.web) && dyn(self.web) != null), (has(self.prometheus) && dyn(self.prometheus) != null), (has(self.kubernetes) && dyn(self.kubernetes) != null), (has(self.exec) && dyn(self.exec) != null)].filter(x, x).size() == 1", "exactly one of web, prometheus, kubernetes, exec must be set"))]
pub struct Provider {
    /// A web endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebProvider>,
    /// A Prometheus server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusProvider>,
    /// Accepted for manifests of the original operator; a run that uses it ends in Error with the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesProvider>,
    /// Accepted for manifests of the original operator; a run that uses it ends in Error with the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecProvider>,
    /// Fields that this API does not have.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A web endpoint that answers with JSON or text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.body) && dyn(self.body) != null) || ((has(self.method) && dyn(self.method) != null) && self.method != 'GET')", "a body needs method POST or PUT"))]
pub struct WebProvider {
    /// Absolute URL, `http` or `https`; may hold placeholders such as `{{ args.PodIP }}`.
    pub url: String,
    /// GET (the default), POST or PUT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "method_schema")]
    pub method: Option<String>,
    /// Headers to send; values may hold placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub headers: Option<Vec<Header>>,
    /// Text to send; may hold placeholders. Excludes `jsonBody`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// JSON to send, with content type `application/json`; its strings may hold placeholders. Excludes `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_json_schema")]
    pub json_body: Option<serde_json::Value>,
    /// Seconds for the whole exchange, at most 3600; 10 when unset or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// What to take from a JSON answer, for example `{$.age}`. Unset: the whole body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
    /// Accept any server certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
    /// PEM certificates that are trusted instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    /// Fields that this API does not have.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A header of a request: `value`, or `valueFrom`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("(has(self.value) && dyn(self.value) != null) != (has(self.valueFrom) && dyn(self.valueFrom) != null)", "exactly one of value and valueFrom must be set"))]
pub struct Header {
    /// The header's name.
    pub key: String,
    /// The header's value; may hold placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value is read at measurement time, in the run's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<HeaderSource>,
    /// Fields that this API does not have.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Where a header's value is read from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderSource {
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
}

/// A key of a Secret or ConfigMap in the run's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the Secret or ConfigMap.
    pub name: String,
    /// The key within it.
    pub key: String,
}

/// A Prometheus server and an instant query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusProvider {
    /// Base address, for example `http://prometheus.monitoring:9090`.
    pub address: String,
    /// An instant query in PromQL; may hold placeholders.
    pub query: String,
    /// Headers to send; values may hold placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub headers: Option<Vec<Header>>,
    /// Seconds for the whole exchange, at most 3600; 30 when unset or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Judge an answer that the server itself calls incomplete (`warnings`, `isPartial`). Unset: such an answer is an
    /// Error. An incomplete answer without series is an Error always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_partial: Option<bool>,
    /// Accept any server certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
    /// Fields that this API does not have.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// The original operator's access to annotations of pods; not offered here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesProvider {
    /// The annotations to read or write.
    #[serde(default)]
    pub fields: Vec<KubernetesField>,
    /// `get` or `patch`.
    #[serde(default)]
    pub function: String,
}

/// A field of the original operator's `kubernetes` provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesField {
    /// `metadata.annotations.KEY`.
    #[serde(default)]
    pub path: String,
    /// The value to compare with, or to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The original operator's command in a container; not offered here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecProvider {
    /// The container.
    #[serde(default)]
    pub container: String,
    /// The command and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
}

/// An argument for placeholders: `value`, or `valueFrom`; in a template both may be missing, to be supplied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!((has(self.value) && dyn(self.value) != null) && (has(self.valueFrom) && dyn(self.valueFrom) != null))", "value and valueFrom exclude each other"))]
pub struct Argument {
    /// Used as `{{ args.NAME }}`.
    pub name: String,
    /// The value; unset in a template means that the creator of the run supplies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value is read at measurement time, in the run's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgumentSource>,
    /// Fields that this API does not have.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Where an argument's value is read from; exactly one field is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentSource {
    /// A key of a Secret; its text never reaches status, events, logs or metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
}

fn method_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["GET", "POST", "PUT"] })
}

fn no_data_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Error", "Failed", "Inconclusive", "Successful"] })
}

fn any_json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

fn unknown_fields_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
