//! Provider of a metric: the texts of its request, parsed, with open placeholders.

use std::collections::BTreeSet;
use std::time::Duration;

use json_path::JsonPath;
use placeholder::Template;
use shared_api::defaults::{PROMETHEUS_TIMEOUT, WEB_TIMEOUT};
use shared_api::metric::{Header, PrometheusProvider, Provider, WebProvider};

use super::argument::{Reference, check_reference};
use super::exec::{self, ResolvedExec};
use super::job::{self, ResolvedJob};
use super::kubernetes::{self, ResolvedKubernetes};
use super::{Arguments, FieldErrors, target};
use crate::request::{CaBundle, Method, Tls};

/// Longest timeout. A call holds one of a limited number of slots until it ends.
const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// Longest `caBundle`, in bytes. A client keeps the certificates.
const MAX_CA_BUNDLE_BYTES: usize = 64 * 1024;

/// Number of missing arguments of a text that a message names.
const MAX_NAMED_PLACEHOLDERS: usize = 8;

/// Provider to call, with open placeholders.
#[derive(Debug, Clone)]
pub enum ResolvedProvider {
    /// Web endpoint.
    Web(Box<ResolvedWeb>),
    /// Prometheus server.
    Prometheus(Box<ResolvedPrometheus>),
    /// Job to run.
    Job(Box<ResolvedJob>),
    /// Object to read or annotate.
    Kubernetes(Box<ResolvedKubernetes>),
    /// Command to run in a container.
    Exec(Box<ResolvedExec>),
}

impl ResolvedProvider {
    /// All values of [`ResolvedProvider::name`].
    pub const NAMES: [&'static str; 5] = ["web", "prometheus", "job", "kubernetes", "exec"];

    /// Returns whether a measurement runs a Job.
    pub fn is_job(&self) -> bool {
        matches!(self, Self::Job(_))
    }

    /// Returns whether a measurement needs the API server and the account of the run's namespace.
    pub fn acts_in_the_cluster(&self) -> bool {
        match self {
            Self::Job(_) | Self::Kubernetes(_) | Self::Exec(_) => true,
            Self::Web(_) | Self::Prometheus(_) => false,
        }
    }

    /// Name in metrics and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Web(_) => "web",
            Self::Prometheus(_) => "prometheus",
            Self::Job(_) => "job",
            Self::Kubernetes(_) => "kubernetes",
            Self::Exec(_) => "exec",
        }
    }
}

/// Web request with open placeholders.
#[derive(Debug, Clone)]
pub struct ResolvedWeb {
    /// HTTP method.
    pub method: Method,
    /// Absolute URL.
    pub url: Template,
    /// Names and values.
    pub headers: Vec<(String, HeaderText)>,
    /// Text to send.
    pub body: Option<BodyText>,
    /// Timeout of the whole exchange.
    pub timeout: Duration,
    /// Part of the answer to extract; `None` means all of it.
    pub json_path: Option<JsonPath>,
    /// Verification of the server's certificate.
    pub tls: Tls,
}

/// Request body with open placeholders.
#[derive(Debug, Clone)]
pub enum BodyText {
    /// Text that is sent unchanged.
    Plain(Template),
    /// JSON: values are escaped when they are filled into a string.
    Json(Template),
}

/// Prometheus query with open placeholders.
#[derive(Debug, Clone)]
pub struct ResolvedPrometheus {
    /// Whether to judge an answer that the server reports as incomplete.
    pub accept_partial: bool,
    /// Base address.
    pub address: Template,
    /// `PromQL`.
    pub query: Template,
    /// Names and values.
    pub headers: Vec<(String, HeaderText)>,
    /// Timeout of the whole exchange.
    pub timeout: Duration,
    /// Verification of the server's certificate.
    pub tls: Tls,
}

/// Value of a header.
#[derive(Debug, Clone)]
pub enum HeaderText {
    /// Text with placeholders.
    Text(Template),
    /// Reference that is read at measurement time.
    Secret(Reference),
}

pub(super) fn resolve(
    path: &str,
    provider: &Provider,
    judged: bool,
    arguments: &Arguments,
    errors: &mut FieldErrors,
) -> Option<ResolvedProvider> {
    let Provider {
        web,
        prometheus,
        job,
        kubernetes,
        exec,
        unknown: _,
    } = provider;
    let named = [
        web.is_some(),
        prometheus.is_some(),
        job.is_some(),
        kubernetes.is_some(),
        exec.is_some(),
    ];
    match named.iter().filter(|set| **set).count() {
        0 => errors.add(
            path,
            "no provider specified; set web, prometheus, job, kubernetes or exec",
        ),
        1 => {}
        _ => errors.add(path, "multiple providers specified; keep one"),
    }
    let mut parser = Parser {
        path,
        arguments,
        errors,
    };
    if let Some(web) = web {
        return parser.web(web).map(|web| ResolvedProvider::Web(Box::new(web)));
    }
    if let Some(prometheus) = prometheus {
        return parser
            .prometheus(prometheus)
            .map(|query| ResolvedProvider::Prometheus(Box::new(query)));
    }
    if let Some(job) = job {
        let job = job::resolve(&format!("{path}.job"), job, judged, &mut parser);
        return job.map(|job| ResolvedProvider::Job(Box::new(job)));
    }
    if let Some(object) = kubernetes {
        let object = kubernetes::resolve(&format!("{path}.kubernetes"), object, judged, &mut parser);
        return object.map(|object| ResolvedProvider::Kubernetes(Box::new(object)));
    }
    if let Some(exec) = exec {
        let exec = exec::resolve(&format!("{path}.exec"), exec, &mut parser);
        return exec.map(|exec| ResolvedProvider::Exec(Box::new(exec)));
    }
    None
}

/// Parser of the texts of a provider.
pub(super) struct Parser<'a> {
    path: &'a str,
    pub(super) arguments: &'a Arguments,
    pub(super) errors: &'a mut FieldErrors,
}

impl Parser<'_> {
    fn web(&mut self, web: &WebProvider) -> Option<ResolvedWeb> {
        let path = format!("{}.web", self.path);
        let url = self.url(&format!("{path}.url"), &web.url);
        let method = self.method(&format!("{path}.method"), web.method.as_deref());
        let headers = self.headers(&path, web.headers.as_deref());
        let body = self.body(&path, web, method);
        let timeout = self.timeout(&path, web.timeout_seconds, WEB_TIMEOUT);
        let bundle = web.ca_bundle.as_deref().filter(|text| !text.is_empty());
        if let Some(text) = bundle {
            self.check_bundle(&format!("{path}.caBundle"), text);
        }
        let json_path = web.json_path.as_ref().filter(|text| !text.is_empty());
        let json_path = json_path.map(|text| self.json_path(&format!("{path}.jsonPath"), text));
        Some(ResolvedWeb {
            method,
            url: url?,
            headers,
            body,
            timeout,
            json_path: json_path.flatten(),
            tls: Tls {
                insecure_skip_verify: web.insecure_skip_verify.unwrap_or_default(),
                ca_bundle: bundle.map(CaBundle::new),
            },
        })
    }

    fn check_bundle(&mut self, path: &str, text: &str) {
        let bytes = text.len();
        if bytes > MAX_CA_BUNDLE_BYTES {
            let message = format!(
                "is {bytes} bytes long, but the limit is {MAX_CA_BUNDLE_BYTES}; keep only the CA certificates of \
                 this server"
            );
            self.errors.add(path, message);
        } else if let Some(why) = target::no_certificates(text) {
            self.errors.add(path, why);
        }
    }

    fn prometheus(&mut self, prometheus: &PrometheusProvider) -> Option<ResolvedPrometheus> {
        let path = format!("{}.prometheus", self.path);
        let address = self.url(&format!("{path}.address"), &prometheus.address);
        if prometheus.query.trim().is_empty() {
            self.errors.add(format!("{path}.query"), "must not be empty");
        }
        let query = self.template(&format!("{path}.query"), &prometheus.query);
        let headers = self.headers(&path, prometheus.headers.as_deref());
        let timeout = self.timeout(&path, prometheus.timeout_seconds, PROMETHEUS_TIMEOUT);
        Some(ResolvedPrometheus {
            accept_partial: prometheus.accept_partial.unwrap_or_default(),
            address: address?,
            query: query?,
            headers,
            timeout,
            tls: Tls {
                insecure_skip_verify: prometheus.insecure_skip_verify.unwrap_or_default(),
                ca_bundle: None,
            },
        })
    }

    /// Parses a template and checks that its placeholders are known.
    pub(super) fn template(&mut self, path: &str, text: &str) -> Option<Template> {
        let template = self.errors.take(path, Template::parse(text))?;
        let unknown: BTreeSet<_> = template
            .names()
            .filter(|name| self.arguments.get(name).is_none())
            .collect();
        if !unknown.is_empty() {
            let named = unknown.iter().take(MAX_NAMED_PLACEHOLDERS);
            let mut remedies: Vec<_> = named.map(|name| self.arguments.not_supplied(name)).collect();
            if let Some(more @ 1..) = unknown.len().checked_sub(MAX_NAMED_PLACEHOLDERS) {
                remedies.push(format!("and {more} more"));
            }
            self.errors.add(path, remedies.join("; "));
            return None;
        }
        Some(template)
    }

    fn url(&mut self, path: &str, text: &str) -> Option<Template> {
        let template = self.template(path, text)?;
        let scheme = text
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        let open = text.trim_start().starts_with("{{");
        if !open && !matches!(scheme.as_deref(), Some("http" | "https")) {
            self.errors.add(
                path,
                format!("{text:?} is not an absolute URL; it must start with http:// or https://"),
            );
        } else if let Some(why) = target::impossible_url(text) {
            self.errors.add(path, format!("{text:?} {why}"));
        }
        Some(template)
    }

    /// Parses a path. Rejects one that ignores a part of its text or reads nothing of the answer.
    pub(super) fn json_path(&mut self, path: &str, text: &str) -> Option<JsonPath> {
        let parsed = self.errors.take(path, JsonPath::parse(text))?;
        if let Some(notice) = parsed.notice() {
            self.errors
                .add(path, format!("{text:?} is not allowed: {notice}"));
            return None;
        }
        Some(parsed)
    }

    fn method(&mut self, path: &str, text: Option<&str>) -> Method {
        match text.unwrap_or_default() {
            "" | "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            other => {
                self.errors
                    .add(path, format!("must be one of GET, POST, PUT, not {other:?}"));
                Method::Get
            }
        }
    }

    fn headers(&mut self, path: &str, headers: Option<&[Header]>) -> Vec<(String, HeaderText)> {
        let mut resolved = Vec::new();
        for (index, header) in headers.unwrap_or_default().iter().enumerate() {
            let path = format!("{path}.headers[{index}]");
            if !is_header_name(&header.key) {
                let message = format!(
                    "{:?} is not a valid header name; use letters, digits and dashes",
                    header.key
                );
                self.errors.add(format!("{path}.key"), message);
            }
            if let Some(value) = self.header(&path, header) {
                resolved.push((header.key.clone(), value));
            }
        }
        resolved
    }

    fn header(&mut self, path: &str, header: &Header) -> Option<HeaderText> {
        let secret = header
            .value_from
            .as_ref()
            .and_then(|source| source.secret_key_ref.as_ref());
        match (&header.value, &header.value_from, secret) {
            (Some(text), None, _) => {
                if text.contains(char::is_control) {
                    let message = "must not contain line breaks or other control characters";
                    self.errors.add(format!("{path}.value"), message);
                }
                self.template(&format!("{path}.value"), text)
                    .map(HeaderText::Text)
            }
            (None, Some(_), Some(key)) => {
                check_reference(&format!("{path}.valueFrom.secretKeyRef"), key, self.errors);
                Some(HeaderText::Secret(Reference::secret(key)))
            }
            (None, Some(_), None) => {
                self.errors
                    .add(format!("{path}.valueFrom"), "must set secretKeyRef");
                None
            }
            (Some(_), Some(_), _) => {
                self.errors.add(path, "sets both value and valueFrom; remove one");
                None
            }
            (None, None, _) => {
                self.errors.add(path, "must set value or valueFrom");
                None
            }
        }
    }

    fn body(&mut self, path: &str, web: &WebProvider, method: Method) -> Option<BodyText> {
        if (web.body.is_some() || web.json_body.is_some()) && method == Method::Get {
            self.errors
                .add(format!("{path}.method"), "body requires method POST or PUT");
        }
        match (&web.body, &web.json_body) {
            (Some(_), Some(_)) => {
                self.errors.add(
                    format!("{path}.body"),
                    "body and jsonBody are mutually exclusive; keep one",
                );
                None
            }
            (Some(text), None) => self.template(&format!("{path}.body"), text).map(BodyText::Plain),
            (None, Some(json)) => self
                .template(&format!("{path}.jsonBody"), json.as_str())
                .map(BodyText::Json),
            (None, None) => None,
        }
    }

    pub(super) fn timeout(&mut self, path: &str, seconds: Option<i64>, default: Duration) -> Duration {
        let (path, seconds) = (format!("{path}.timeoutSeconds"), seconds.unwrap_or_default());
        match u64::try_from(seconds) {
            Ok(0) => default,
            Ok(seconds) if Duration::from_secs(seconds) <= MAX_TIMEOUT => Duration::from_secs(seconds),
            Ok(seconds) => {
                let longest = MAX_TIMEOUT.as_secs();
                self.errors
                    .add(path, format!("{seconds} must be less than or equal to {longest}"));
                default
            }
            Err(_) => {
                let message = format!("{seconds} must be greater than or equal to 0");
                self.errors.add(path, message);
                default
            }
        }
    }
}

/// Returns whether the name is a token of RFC 9110.
pub(crate) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
