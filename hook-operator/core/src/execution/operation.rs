//! What a try does: a command, an HTTP GET or a TCP connection, and the address of the last two.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use redact::Redactor;
use serde_json::Value;
use shared_api::hook_action::{Action, HttpGetAction, TcpSocketAction};

use super::resolve::{check_exec, check_unknown};
use crate::answer::{MeasurementFailure, MeasurementReason};
use crate::request::{FRAMING_HEADERS, Method, Tls, WebRequest};
use crate::resolve::{FieldErrors, is_header_name};
use crate::value::cut;

/// Longest path of an HTTP GET, in bytes; the CRD's schema has the same limit.
const MAX_PATH_BYTES: usize = 4096;
/// Most headers of an HTTP GET; the CRD's schema has the same limit.
const MAX_HEADERS: usize = 32;
/// Longest headers together, in bytes.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Longest quoted part of a field, in bytes.
const QUOTED_BYTES: usize = 60;

/// Checked action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Program and its arguments.
    Exec(Vec<String>),
    /// HTTP GET.
    HttpGet(HttpGet),
    /// TCP connection to this port.
    TcpSocket(Port),
}

/// HTTP GET to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGet {
    /// `http` or `https`.
    scheme: &'static str,
    port: Port,
    /// Path and query.
    path: String,
    headers: Vec<(String, String)>,
}

/// Port of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// Number.
    Number(u16),
    /// Name of a port of the container.
    Name(String),
}

/// Checks the action of a HookAction.
pub(super) fn resolve_operation(action: &Action, errors: &mut FieldErrors) -> Option<Operation> {
    match (&action.exec, &action.http_get, &action.tcp_socket) {
        (Some(exec), None, None) => Some(Operation::Exec(check_exec(exec, errors))),
        (None, Some(get), None) => resolve_get(get, errors).map(Operation::HttpGet),
        (None, None, Some(socket)) => resolve_socket(socket, errors).map(Operation::TcpSocket),
        (None, None, None) => {
            errors.add("action", "one of exec, httpGet and tcpSocket must be set");
            None
        }
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
            errors.add(
                "action",
                "exec, httpGet and tcpSocket are mutually exclusive; keep one",
            );
            None
        }
    }
}

fn resolve_socket(socket: &TcpSocketAction, errors: &mut FieldErrors) -> Option<Port> {
    check_unknown("action.tcpSocket", &socket.unknown, &["port"], errors);
    resolve_port("action.tcpSocket.port", &socket.port, errors)
}

fn resolve_get(get: &HttpGetAction, errors: &mut FieldErrors) -> Option<HttpGet> {
    let at = "action.httpGet";
    let HttpGetAction {
        path,
        port,
        scheme,
        http_headers,
        unknown,
    } = get;
    if unknown.has("host") {
        let message =
            "is not supported, because the request is sent to the IP of the selected pod; remove it";
        errors.add(format!("{at}.host"), message);
    }
    let others = unknown.without("host");
    check_unknown(at, &others, &["path", "port", "scheme", "httpHeaders"], errors);
    let path = path.clone().unwrap_or_else(|| "/".to_owned());
    if !path.starts_with('/') || path.contains(|letter: char| letter.is_control() || letter == '#') {
        let message = format!(
            "{:?} is not a valid path; it must start with / and must not contain # or control characters",
            cut(&path, QUOTED_BYTES)
        );
        errors.add(format!("{at}.path"), message);
    } else if path.len() > MAX_PATH_BYTES {
        let message = format!("is {} bytes long; the limit is {MAX_PATH_BYTES}", path.len());
        errors.add(format!("{at}.path"), message);
    }
    let scheme = match scheme.as_deref().unwrap_or("HTTP") {
        "HTTP" => "http",
        "HTTPS" => "https",
        other => {
            let message = format!("must be HTTP or HTTPS, not {:?}", cut(other, QUOTED_BYTES));
            errors.add(format!("{at}.scheme"), message);
            "http"
        }
    };
    let given = http_headers.as_deref().unwrap_or_default();
    if given.len() > MAX_HEADERS {
        let message = format!("too many headers: {}; the limit is {MAX_HEADERS}", given.len());
        errors.add(format!("{at}.httpHeaders"), message);
    }
    let mut headers = Vec::new();
    for (index, header) in given.iter().enumerate() {
        let at = format!("{at}.httpHeaders[{index}]");
        check_unknown(&at, &header.unknown, &["name", "value"], errors);
        if !is_header_name(&header.name) {
            let message = format!(
                "{:?} is not a valid header name; use letters, digits and dashes",
                cut(&header.name, QUOTED_BYTES)
            );
            errors.add(format!("{at}.name"), message);
        } else if FRAMING_HEADERS
            .iter()
            .any(|name| header.name.eq_ignore_ascii_case(name))
        {
            let message = format!("hooks must not set header {}; remove it", header.name);
            errors.add(format!("{at}.name"), message);
        }
        let value = header.value.clone().unwrap_or_default();
        let is_known = headers
            .iter()
            .any(|(name, _): &(String, String)| name.eq_ignore_ascii_case(&header.name));
        if is_known {
            let message = format!("duplicate header {:?}", cut(&header.name, QUOTED_BYTES));
            errors.add(format!("{at}.name"), message);
        }
        if value.contains(char::is_control) {
            let message = "must not contain line breaks or other control characters";
            errors.add(format!("{at}.value"), message);
        }
        headers.push((header.name.clone(), value));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES {
        let message = format!("is {bytes} bytes long in total; the limit is {MAX_HEADER_BYTES}");
        errors.add(format!("{at}.httpHeaders"), message);
    }
    let port = resolve_port(&format!("{at}.port"), port, errors)?;
    Some(HttpGet {
        scheme,
        port,
        path,
        headers,
    })
}

fn resolve_port(path: &str, port: &Value, errors: &mut FieldErrors) -> Option<Port> {
    let number = match port {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    let resolved = match (number, port) {
        (Some(number), _) => u16::try_from(number)
            .ok()
            .filter(|number| *number != 0)
            .map(Port::Number),
        (None, Value::String(name)) => is_port_name(name).then(|| Port::Name(name.clone())),
        (None, _) => None,
    };
    if resolved.is_none() {
        let given = cut(&port.to_string(), QUOTED_BYTES);
        let message = format!(
            "{given} is not a valid port; use a number from 1 to 65535, or the name of a container port"
        );
        errors.add(path, message);
    }
    resolved
}

/// Returns whether the name can be that of a port: an IANA service name.
fn is_port_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=15).contains(&name.len())
        && name.bytes().all(is_inner)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Returns the address of a port of a container.
///
/// # Errors
/// `InvalidRequest` if the pod has no IP yet, or its container no port of this name.
pub fn address(pod: &Pod, container: &str, port: &Port) -> Result<SocketAddr, MeasurementFailure> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let missing = |message: String| MeasurementFailure::new(MeasurementReason::InvalidRequest, message);
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
    let ip: IpAddr = ip
        .and_then(|ip| ip.parse().ok())
        .ok_or_else(|| missing(format!("pod {name} has no IP yet")))?;
    let number = match port {
        Port::Number(number) => *number,
        Port::Name(port) => {
            let ports = ports(pod, container);
            let number = ports.iter().find(|(name, _)| name == port);
            number.map(|(_, number)| *number).ok_or_else(|| {
                let names: Vec<&str> = ports.iter().map(|(name, _)| *name).collect();
                let names = if names.is_empty() {
                    "it has no named TCP ports".to_owned()
                } else {
                    format!("its named TCP ports: {}", names.join(", "))
                };
                missing(format!(
                    "container {container} of pod {name} has no TCP port named {port}; {names}"
                ))
            })?
        }
    };
    Ok(SocketAddr::new(ip, number))
}

/// Returns the named TCP ports of a container.
fn ports<'a>(pod: &'a Pod, container: &str) -> Vec<(&'a str, u16)> {
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_ref());
    let containers = spec.map(|spec| &spec.containers);
    let all = containers.into_iter().chain(init).flatten();
    let found = all.filter(|found: &&Container| found.name == container);
    let ports = found.flat_map(|found| found.ports.iter().flatten());
    let tcp = ports.filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
    let named =
        tcp.filter_map(|port| Some((port.name.as_deref()?, u16::try_from(port.container_port).ok()?)));
    named.collect()
}

impl HttpGet {
    /// Port of the pod.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Returns the request to this address. Messages quote the answer only if `shows_answer`.
    pub fn request(&self, address: SocketAddr, timeout: Duration, shows_answer: bool) -> WebRequest {
        let redactor = Redactor::of_parts(std::iter::empty());
        WebRequest {
            method: Method::Get,
            url: format!("{}://{address}{}", self.scheme, self.path),
            headers: self.headers.clone(),
            body: None,
            timeout,
            json_path: None,
            // As for probes of the kubelet: no certificate names the IP of a pod.
            tls: Tls {
                insecure_skip_verify: true,
                ca_bundle: None,
            },
            redactor: if shows_answer { redactor } else { redactor.hiding() },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(ip: Option<&str>) -> Pod {
        let ports = json!([{ "name": "admin", "containerPort": 9091 }, { "containerPort": 1 },
            { "name": "play", "containerPort": 7777, "protocol": "UDP" }]);
        serde_json::from_value(json!({ "metadata": { "name": "arena-x" },
            "spec": { "containers": [{ "name": "game", "ports": ports }, { "name": "proxy" }],
                "initContainers": [{ "name": "sidecar", "ports": [{ "name": "admin", "containerPort": 9092 }] }] },
            "status": { "podIP": ip } }))
        .unwrap()
    }

    #[test]
    fn a_port_of_the_container_is_found_by_number_or_name() {
        let named = |name: &str| Port::Name(name.to_owned());
        for (container, port, wanted) in [
            ("game", Port::Number(80), "10.0.0.7:80"),
            ("game", named("admin"), "10.0.0.7:9091"),
            ("sidecar", named("admin"), "10.0.0.7:9092"),
        ] {
            let found = address(&pod(Some("10.0.0.7")), container, &port).unwrap();
            assert_eq!(found.to_string(), wanted);
        }
        let six = address(&pod(Some("fd00::7")), "game", &Port::Number(80)).unwrap();
        assert_eq!(six.to_string(), "[fd00::7]:80");
        for (container, port, wanted) in [
            (
                "game",
                named("play"),
                "container game of pod arena-x has no TCP port named play; its named TCP ports: admin",
            ),
            (
                "proxy",
                named("admin"),
                "container proxy of pod arena-x has no TCP port named admin; it has no named TCP ports",
            ),
        ] {
            let error = address(&pod(Some("10.0.0.7")), container, &port).unwrap_err();
            assert_eq!(error.message, wanted);
        }
        for ip in [None, Some(""), Some("localhost")] {
            let error = address(&pod(ip), "game", &Port::Number(80)).unwrap_err();
            assert_eq!(error.message, "pod arena-x has no IP yet");
        }
    }

    #[test]
    fn a_request_goes_to_the_address_whatever_the_path() {
        for path in [
            "/",
            "//evil.example/x",
            "/@evil.example",
            "/\\evil.example",
            "/a?b=c",
        ] {
            let get = HttpGet {
                scheme: "http",
                port: Port::Number(80),
                path: path.to_owned(),
                headers: Vec::new(),
            };
            let request = get.request("10.0.0.7:80".parse().unwrap(), Duration::from_secs(1), false);
            assert_eq!(request.url, format!("http://10.0.0.7:80{path}"));
            assert!(request.redactor.hides());
        }
    }
}
