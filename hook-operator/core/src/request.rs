//! Request of one measurement with every placeholder filled in, as passed to a provider.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use json_path::JsonPath;
use redact::Redactor;
use serde_json::Value;

use crate::hex_digest::hex_digest;

/// Request to a provider.
#[derive(Debug, Clone)]
pub enum ProviderRequest {
    /// Call of a server.
    Http(HttpRequest),
    /// Job to run.
    Job(JobRequest),
    /// Object to read.
    Read(ReadRequest),
    /// Pod to annotate.
    Annotate(AnnotateRequest),
    /// Command to run in a container.
    Exec(ExecRequest),
}

impl ProviderRequest {
    /// Returns the object of the run's namespace that it reads, annotates or runs a command in.
    pub fn object(&self) -> Option<&ObjectName> {
        match self {
            Self::Read(request) => Some(&request.object),
            Self::Annotate(request) => Some(&request.pod),
            Self::Exec(request) => Some(&request.pod),
            Self::Http(_) | Self::Job(_) => None,
        }
    }

    /// Returns the total length of its texts, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Http(request) => request.bytes(),
            Self::Job(job) => job.bytes,
            Self::Read(request) => request.bytes(),
            Self::Annotate(request) => request.bytes(),
            Self::Exec(request) => request.bytes(),
        }
    }
}

/// Job to run, with the labels, annotations and spec of its author.
#[derive(Debug, Clone)]
pub struct JobRequest {
    /// Labels of the Job.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Job.
    pub annotations: BTreeMap<String, String>,
    /// Spec of the Job.
    pub spec: Value,
    /// Container whose termination message is `result`; `None` if no condition judges it.
    pub result_container: Option<String>,
    /// Whether messages of containers may be shown.
    pub shows_messages: bool,
    /// Length of its JSON text, in bytes.
    pub bytes: usize,
}

/// Kind of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version; `None` for the one that the API server prefers.
    pub version: Option<String>,
    /// Kind.
    pub kind: String,
}

impl ObjectKind {
    /// Returns the kind of pods.
    pub fn pod() -> Self {
        Self {
            group: String::new(),
            version: None,
            kind: "Pod".to_owned(),
        }
    }

    /// Returns whether these are pods.
    pub fn is_pod(&self) -> bool {
        self.group.is_empty() && self.kind == "Pod"
    }
}

/// Object of the run's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Kind.
    pub kind: ObjectKind,
    /// Name.
    pub name: String,
    /// Namespace that the run's arguments name. It must be the run's own.
    pub namespace: Option<String>,
    /// Whether the object is the pod of the run or of the try, whose UID is known.
    pub is_pod_of_run: bool,
}

impl ObjectName {
    /// Returns the name of a pod whose UID is known.
    pub fn known_pod(name: &str) -> Self {
        Self {
            kind: ObjectKind::pod(),
            name: name.to_owned(),
            namespace: None,
            is_pod_of_run: true,
        }
    }

    fn bytes(&self) -> usize {
        self.kind.group.len() + self.kind.kind.len() + self.name.len()
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.name)
    }
}

/// Path of a field of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldPath {
    /// Value of the annotation with this key.
    Annotation(String),
    /// What a JSON path finds.
    Json(JsonPath),
}

impl FieldPath {
    /// Returns the top-level field that it reads; `None` if it may read several.
    pub fn first_field(&self) -> Option<&str> {
        match self {
            Self::Annotation(_) => Some("metadata"),
            Self::Json(path) => path.first_field(),
        }
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Annotation(key) => write!(f, "metadata.annotations.{key}"),
            Self::Json(path) => write!(f, "{path}"),
        }
    }
}

/// Object to read, and its fields.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Object.
    pub object: ObjectName,
    /// Fields, each with the value that it must equal.
    pub fields: Vec<(FieldPath, Option<String>)>,
    /// Whether a condition judges what the fields hold.
    pub is_judged: bool,
    /// Whether what the fields hold may be shown.
    pub shows_values: bool,
}

impl ReadRequest {
    /// Returns whether all fields are metadata, so that the rest of the object need not be read.
    pub fn reads_metadata(&self) -> bool {
        let mut paths = self.fields.iter().map(|(path, _)| path);
        paths.all(|path| path.first_field() == Some("metadata"))
    }

    fn bytes(&self) -> usize {
        let values = self
            .fields
            .iter()
            .map(|(_, value)| value.as_ref().map_or(0, String::len));
        self.object.bytes() + values.sum::<usize>()
    }
}

/// Pod to annotate.
#[derive(Debug, Clone)]
pub struct AnnotateRequest {
    /// Pod.
    pub pod: ObjectName,
    /// Annotations to set.
    pub annotations: BTreeMap<String, String>,
}

impl AnnotateRequest {
    fn bytes(&self) -> usize {
        let texts = self
            .annotations
            .iter()
            .map(|(key, value)| key.len() + value.len());
        self.pod.bytes() + texts.sum::<usize>()
    }
}

/// Command to run in a container.
#[derive(Debug, Clone)]
pub struct ExecRequest {
    /// Pod.
    pub pod: ObjectName,
    /// Container.
    pub container: String,
    /// Command and its arguments.
    pub command: Vec<String>,
    /// Timeout of the whole measurement.
    pub timeout: Duration,
    /// What conditions read; `None` without conditions.
    pub reads: Option<OutputReads>,
    /// Whether the output may be shown.
    pub shows_output: bool,
}

/// What conditions read of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputReads {
    /// Standard output, as `result`.
    pub result: bool,
    /// Exit code, in the condition that makes a success. Without it, a command that fails is Failed.
    pub exit_code: bool,
    /// Standard error.
    pub stderr: bool,
}

impl std::fmt::Display for ExecRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "command in container {} of {}", self.container, self.pod)
    }
}

impl ExecRequest {
    fn bytes(&self) -> usize {
        let items = self.command.iter().map(String::len);
        self.pod.bytes() + self.container.len() + items.sum::<usize>()
    }
}

/// Call of a server.
#[derive(Debug, Clone)]
pub enum HttpRequest {
    /// HTTP endpoint that answers with JSON or text.
    Web(WebRequest),
    /// Instant query of a Prometheus server.
    Prometheus(PrometheusRequest),
}

impl HttpRequest {
    /// Returns the total length of its texts, in bytes.
    pub fn bytes(&self) -> usize {
        let (texts, headers) = match self {
            Self::Web(web) => {
                let body = web.body.as_ref().map_or(0, |body| body.text.len());
                (web.url.len() + body + web.tls.bytes(), &web.headers)
            }
            Self::Prometheus(prometheus) => (
                prometheus.address.len() + prometheus.query.len(),
                &prometheus.headers,
            ),
        };
        let headers = headers.iter().map(|(name, value)| name.len() + value.len());
        texts + headers.sum::<usize>()
    }
}

/// Headers that frame a request, in lower case. No hook may set them: a false one would make the rest of the request a
/// second one.
pub const FRAMING_HEADERS: [&str; 2] = ["content-length", "transfer-encoding"];

/// HTTP methods that `web.method` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Read, without a body.
    #[default]
    Get,
    /// With or without a body.
    Post,
    /// With or without a body.
    Put,
}

/// Verification of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Tls {
    /// Whether any certificate is accepted.
    pub insecure_skip_verify: bool,
    /// Certificates to trust instead of the system's.
    pub ca_bundle: Option<CaBundle>,
}

impl Tls {
    /// Returns the length of its text, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.ca_bundle.as_ref().map_or(0, |bundle| bundle.text.len())
    }
}

/// PEM certificates of authorities. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CaBundle {
    text: Arc<str>,
    digest: Arc<str>,
}

impl CaBundle {
    /// Wraps a text.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            digest: hex_digest(text, 32).into(),
        }
    }

    /// Returns the PEM text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns a digest that no other text has.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Call to a web endpoint.
#[derive(Debug, Clone)]
pub struct WebRequest {
    /// HTTP method.
    pub method: Method,
    /// Absolute URL, `http` or `https`.
    pub url: String,
    /// Headers in the manifest's order; a later duplicate replaces an earlier one, as in the original
    /// operator.
    pub headers: Vec<(String, String)>,
    /// Body and its content type, if any.
    pub body: Option<Body>,
    /// Timeout of the whole exchange, body included.
    pub timeout: Duration,
    /// Part of the body to extract; `None` means all of it.
    pub json_path: Option<JsonPath>,
    /// Verification of the server's certificate.
    pub tls: Tls,
    /// Redactor for the filled-in secrets, for messages that quote an answer.
    pub redactor: Redactor,
}

/// Request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// `application/json` for `jsonBody`; `None` for `body`, whose type only a header can set.
    pub content_type: Option<&'static str>,
    /// Text to send.
    pub text: String,
}

/// Instant query.
#[derive(Debug, Clone)]
pub struct PrometheusRequest {
    /// Whether to judge an answer that the server reports as incomplete.
    pub accept_partial: bool,
    /// Base address, for example `http://prometheus.monitoring:9090`.
    pub address: String,
    /// `PromQL`.
    pub query: String,
    /// Headers in the manifest's order; a later duplicate replaces an earlier one.
    pub headers: Vec<(String, String)>,
    /// Timeout of the whole exchange, body included.
    pub timeout: Duration,
    /// Verification of the server's certificate.
    pub tls: Tls,
    /// Redactor for the filled-in secrets, for messages that quote an answer.
    pub redactor: Redactor,
}
