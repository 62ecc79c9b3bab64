//! One measurement's request with every placeholder filled in: what a provider is handed.

use std::time::Duration;

use json_path::JsonPath;
use redact::Redactor;

/// What to ask, of whom.
#[derive(Debug, Clone)]
pub enum Request {
    /// An HTTP endpoint that answers with JSON or text.
    Web(WebRequest),
    /// A Prometheus server's instant query.
    Prometheus(PrometheusRequest),
}

impl Request {
    /// The bytes of its texts.
    pub fn bytes(&self) -> usize {
        let (texts, headers) = match self {
            Self::Web(web) => {
                let body = web.body.as_ref().map_or(0, |body| body.text.len());
                (web.url.len() + body, &web.headers)
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

/// The methods that `web.method` allows.
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

/// How the server's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Tls {
    /// Accept any certificate.
    pub insecure_skip_verify: bool,
    /// PEM certificates trusted instead of the system's.
    pub ca_bundle: Option<String>,
}

/// A call to a web endpoint.
#[derive(Debug, Clone)]
pub struct WebRequest {
    /// The method.
    pub method: Method,
    /// Absolute, `http` or `https`.
    pub url: String,
    /// In the order of the manifest; a later duplicate replaces an earlier one, as in the original.
    pub headers: Vec<(String, String)>,
    /// The body and its content type, if any.
    pub body: Option<Body>,
    /// For the whole exchange, body included.
    pub timeout: Duration,
    /// What to take from the body; `None` means all of it.
    pub json_path: Option<JsonPath>,
    /// How the server's certificate is checked.
    pub tls: Tls,
    /// Knows the secrets that were filled in, for messages that quote an answer.
    pub redactor: Redactor,
}

/// A request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// `application/json` for `jsonBody`; for `body` only what a header says.
    pub content_type: Option<&'static str>,
    /// The text sent.
    pub text: String,
}

/// An instant query.
#[derive(Debug, Clone)]
pub struct PrometheusRequest {
    /// Whether an answer that the server calls incomplete is judged.
    pub accept_partial: bool,
    /// Base address, for example `http://prometheus.monitoring:9090`.
    pub address: String,
    /// `PromQL`.
    pub query: String,
    /// In the order of the manifest; a later duplicate replaces an earlier one.
    pub headers: Vec<(String, String)>,
    /// For the whole exchange, body included.
    pub timeout: Duration,
    /// How the server's certificate is checked.
    pub tls: Tls,
    /// Knows the secrets that were filled in, for messages that quote an answer.
    pub redactor: Redactor,
}
