//! Types shared by HookTemplate and HookRun: metrics, providers and arguments.
//!
//! The CEL rules treat null as unset, because manifests may contain nulls. Rules cannot refer to `jsonBody`,
//! whose schema has no type. The operator checks it, and checks all rules again.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json_text::JsonText;
use crate::unknown_fields::UnknownFields;

/// A value to measure, and the rules for evaluating it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.count) && dyn(self.count) != null) || self.count <= 1 || ((has(self.interval) && dyn(self.interval) != null) && self.interval != '')", "interval must be set when count is greater than 1"))]
#[x_kube(validation = ("!(has(self.count) && dyn(self.count) != null) || self.count >= 0", "count must be greater than or equal to 0"))]
#[x_kube(validation = ("!(has(self.failureLimit) && dyn(self.failureLimit) != null) || self.failureLimit >= -1", "failureLimit must be greater than or equal to 0, or -1 for no limit"))]
#[x_kube(validation = ("!(has(self.successfulLimit) && dyn(self.successfulLimit) != null) || self.successfulLimit >= 0", "successfulLimit must be greater than or equal to 0"))]
#[x_kube(validation = ("!(has(self.inconclusiveLimit) && dyn(self.inconclusiveLimit) != null) || self.inconclusiveLimit >= 0", "inconclusiveLimit must be greater than or equal to 0"))]
#[x_kube(validation = ("!(has(self.consecutiveErrorLimit) && dyn(self.consecutiveErrorLimit) != null) || self.consecutiveErrorLimit >= 0", "consecutiveErrorLimit must be greater than or equal to 0"))]
#[x_kube(validation = ("!(has(self.consecutiveSuccessfulLimit) && dyn(self.consecutiveSuccessfulLimit) != null) || self.consecutiveSuccessfulLimit >= 1", "consecutiveSuccessfulLimit must be greater than or equal to 1"))]
pub struct Metric {
    /// Name of the metric, unique within its template.
    pub name: String,
    /// Time from the end of one measurement to the start of the next, for example `30s` or `1m30s`. The minimum is
    /// `100ms`. If unset, the metric is measured once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Delay before the first measurement, counted from the time at which the metric may start. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay: Option<String>,
    /// Number of measurements to take, not counting errors; 0 means the same as unset. Defaults to 1 without
    /// `interval`, and to no limit with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i32>,
    /// Expression that makes a measurement Successful if it is true. `result` is the measured value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_condition: Option<String>,
    /// Expression that makes a measurement Failed if it is true. `result` is the measured value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_condition: Option<String>,
    /// Number of failed measurements that the metric tolerates before it is Failed; -1 means no limit. Defaults to 0,
    /// or to no limit if a success limit is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_limit: Option<i32>,
    /// Number of successful measurements at which the metric is Successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_limit: Option<i32>,
    /// Number of inconclusive measurements that the metric tolerates before it is Inconclusive. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inconclusive_limit: Option<i32>,
    /// Number of consecutive errors that the metric tolerates before it ends in Error. Defaults to 4, or to no limit if
    /// a success limit is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_error_limit: Option<i32>,
    /// Number of consecutive successful measurements at which the metric is Successful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_successful_limit: Option<i32>,
    /// Phase of a measurement whose response contains no data, unless a condition handles that case: `Error`, `Failed`,
    /// `Inconclusive` or `Successful`. Defaults to `Error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "no_data_schema")]
    pub on_no_data: Option<String>,
    /// Whether to show responses in status and events even if the request contains a Secret. Occurrences of the
    /// Secret's value are masked. If unset, such responses are not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote_answers: Option<bool>,
    /// Source of the value. Exactly one of its fields must be set.
    pub provider: Provider,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Source of a metric's value. Exactly one field must be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("[(has(self.web) && dyn(self.web) != null), (has(self.prometheus) && dyn(self.prometheus) != null), (has(self.job) && dyn(self.job) != null), (has(self.kubernetes) && dyn(self.kubernetes) != null), (has(self.exec) && dyn(self.exec) != null)].filter(x, x).size() == 1", "exactly one of web, prometheus, job, kubernetes, exec must be set"))]
pub struct Provider {
    /// Web endpoint to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebProvider>,
    /// Prometheus server to query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusProvider>,
    /// Job to run. Disabled unless hook-operator runs with `--provider-job`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<JobProvider>>,
    /// Object in the run's namespace to read or annotate. Disabled unless hook-operator runs with
    /// `--provider-kubernetes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Box<KubernetesProvider>>,
    /// Command to run in a container of the run's pod. Disabled unless hook-operator runs with `--provider-exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Box<ExecProvider>>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A web endpoint that returns JSON or text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.body) && dyn(self.body) != null) || ((has(self.method) && dyn(self.method) != null) && self.method != 'GET')", "body requires method POST or PUT"))]
pub struct WebProvider {
    /// Absolute `http` or `https` URL; may contain placeholders such as `{{ args.PodIP }}`.
    pub url: String,
    /// HTTP method: `GET`, `POST` or `PUT`. Defaults to `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "method_schema")]
    pub method: Option<String>,
    /// Headers of the request. Values may contain placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub headers: Option<Vec<Header>>,
    /// Text body of the request; may contain placeholders. Mutually exclusive with `jsonBody`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// JSON body of the request, sent with content type `application/json`. Strings may contain placeholders.
    /// Mutually exclusive with `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_json_schema")]
    pub json_body: Option<JsonText>,
    /// Timeout of the whole exchange, in seconds, at most 3600; 0 means the default. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// JSON path of the value in a JSON response, for example `{$.age}`. Defaults to the whole body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
    /// Whether to skip verification of the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
    /// CA certificates to trust instead of the system's, in PEM format, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A request header, with either `value` or `valueFrom`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("(has(self.value) && dyn(self.value) != null) != (has(self.valueFrom) && dyn(self.valueFrom) != null)", "exactly one of value and valueFrom must be set"))]
pub struct Header {
    /// Name of the header.
    pub key: String,
    /// Value of the header; may contain placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Secret key in the run's namespace to read the value from at measurement time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<HeaderSource>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Source of a header's value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderSource {
    /// Key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
}

/// Key of a Secret or ConfigMap in the run's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the Secret or ConfigMap.
    pub name: String,
    /// Key in the Secret or ConfigMap.
    pub key: String,
}

/// A Prometheus server and an instant query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusProvider {
    /// Base URL of the server, for example `http://prometheus.monitoring:9090`.
    pub address: String,
    /// Instant query in PromQL; may contain placeholders.
    pub query: String,
    /// Headers of the request. Values may contain placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub headers: Option<Vec<Header>>,
    /// Timeout of the whole exchange, in seconds, at most 3600; 0 means the default. Defaults to 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Whether to accept responses that the server marks as incomplete (`warnings`, `isPartial`). An incomplete
    /// response without series is always an Error. If unset, every incomplete response is an Error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_partial: Option<bool>,
    /// Whether to skip verification of the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A Job that the ServiceAccount `hookgate-hooks` of the run's namespace creates for each measurement. If the Job
/// fails, so does the measurement. If it completes, the measurement succeeds, unless conditions evaluate the Job's
/// result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobProvider {
    /// Labels and annotations of the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JobMetadata>,
    /// Spec of the Job (`batch/v1`). Strings may contain placeholders, but not for arguments from Secrets. The Job is
    /// deleted with its HookRun, so `ttlSecondsAfterFinished` has no effect.
    #[serde(default)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub spec: JsonText,
    /// Name of the container whose termination message, as JSON or text, is `result` in conditions. Defaults to the
    /// first container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_container: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Labels and annotations of a Job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobMetadata {
    /// Labels. Values may contain placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations. Values may contain placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// An object in the run's namespace, by default the run's pod, that the ServiceAccount `hookgate-hooks` of this
/// namespace reads or annotates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesProvider {
    /// `get` compares fields of the object with values, or passes them to conditions. `patch` sets annotations of a
    /// pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "function_schema")]
    pub function: Option<String>,
    /// Object to access. Defaults to the one identified by the arguments `Group`, `Version`, `Kind` and `PodName`, or
    /// to the pod `PodName` if only that argument is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<KubernetesTarget>,
    /// Fields to read, or annotations to set; at most 32.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub fields: Vec<KubernetesField>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

impl Provider {
    /// Returns whether a run needs the argument `PodName`, even if its template does not declare it.
    pub fn needs_pod(&self) -> bool {
        let names_object = |object: &KubernetesProvider| {
            let target = object.target.as_ref();
            target.is_some_and(|target| is_set(target.name.as_ref()))
        };
        self.exec.is_some()
            || self
                .kubernetes
                .as_deref()
                .is_some_and(|object| !names_object(object))
    }
}

impl KubernetesTarget {
    /// Returns whether it names the kind of the object.
    pub fn names_kind(&self) -> bool {
        is_set(self.group.as_ref()) || is_set(self.kind.as_ref())
    }
}

fn is_set(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

/// Object of a `kubernetes` provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesTarget {
    /// API group of the object. Defaults to the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind of the object. Defaults to `Pod`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object; may contain placeholders. Defaults to the argument `PodName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A field of an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesField {
    /// Path of the field: `metadata.annotations.KEY` for an annotation, or a JSON path in braces, for example
    /// `{.status.phase}`.
    #[serde(default)]
    pub path: String,
    /// Value to compare the field with, or to write; may contain placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// A command that the ServiceAccount `hookgate-hooks` of the run's namespace runs in a container of the run's pod. Exit
/// code 0 means success, unless conditions evaluate the output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecProvider {
    /// Name of the container, which must be running.
    #[serde(default)]
    pub container: String,
    /// Command and its arguments, run without a shell; may contain placeholders, but not for arguments from Secrets.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub command: Vec<String>,
    /// Timeout of the whole measurement, in seconds, at most 3600; 0 means the default. The command may keep running
    /// after the timeout. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// An argument for placeholders, with either `value` or `valueFrom`. A template may omit both; the creator of the run
/// must then supply the value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!((has(self.value) && dyn(self.value) != null) && (has(self.valueFrom) && dyn(self.valueFrom) != null))", "value and valueFrom are mutually exclusive"))]
pub struct Argument {
    /// Name of the argument, used as `{{ args.NAME }}`.
    pub name: String,
    /// Value of the argument. If a template omits it, the creator of the run must supply it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Secret or ConfigMap key in the run's namespace to read the value from at measurement time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ArgumentSource>,
    /// Unknown fields.
    #[serde(flatten)]
    #[schemars(schema_with = "unknown_fields_schema")]
    pub unknown: UnknownFields,
}

/// Source of an argument's value. Exactly one field must be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentSource {
    /// Key of a Secret. Its value never appears in status, events, logs or metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// Key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
}

fn method_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["GET", "POST", "PUT"] })
}

fn function_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["get", "patch"] })
}

fn no_data_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Error", "Failed", "Inconclusive", "Successful"] })
}

fn any_json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

pub(crate) fn unknown_fields_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
