//! Fills in placeholders: turns a resolved metric and the values of its references into a request and
//! conditions.

use std::collections::{BTreeMap, BTreeSet};

use expr_conditions::Condition;
use placeholder::{PlaceholderError, Template};
use redact::Redactor;
use shared_api::syntax::is_subdomain;

use crate::answer::{MeasurementFailure, MeasurementReason};
use crate::request::{
    AnnotateRequest, Body, ExecRequest, HttpRequest, JobRequest, Method, ObjectKind, ObjectName, OutputReads,
    PrometheusRequest, ProviderRequest, ReadRequest, WebRequest,
};
use crate::resolve::{
    ArgumentValue, Arguments, BodyText, ConditionText, HeaderText, JobText, Reference, ResolvedExec,
    ResolvedFunction, ResolvedJob, ResolvedKubernetes, ResolvedMetric, ResolvedPrometheus, ResolvedProvider,
    ResolvedWeb, is_of_hooks, not_a_name, of_hooks,
};

/// Most bytes of a request, including its headers and `caBundle`.
pub const MAX_REQUEST: usize = 256 * 1024;

/// Longest command, in bytes: its encoded form is part of a URL.
const MAX_COMMAND: usize = 32 * 1024;
/// Longest value of an annotation that a hook sets, in bytes.
const MAX_ANNOTATION: usize = 32 * 1024;
/// Most bytes of all annotations that a metric sets.
const MAX_ANNOTATIONS: usize = 64 * 1024;

/// Texts of the references that one measurement needs.
pub type References = BTreeMap<Reference, String>;

/// Measurement that is ready to run.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Request to send.
    pub request: ProviderRequest,
    /// Rules that judge the answer.
    pub rules: RenderedRules,
}

/// Rules that judge an answer.
#[derive(Debug, Clone)]
pub struct RenderedRules {
    /// Condition that makes the measurement Successful if it is true.
    pub success: Option<Condition>,
    /// Condition that makes the measurement Failed if it is true.
    pub failure: Option<Condition>,
    /// Redactor that removes the texts of Secrets from everything that is shown.
    pub redactor: Redactor,
}

impl RenderedRules {
    /// Returns what the conditions read of a command; `None` without conditions.
    fn reads(&self) -> Option<OutputReads> {
        let conditions = || [&self.success, &self.failure].into_iter().flatten();
        conditions().next()?;
        Some(OutputReads {
            result: conditions().any(Condition::mentions_result),
            exit_code: self.success.as_ref().is_some_and(Condition::mentions_exit_code),
            stderr: conditions().any(Condition::mentions_stderr),
        })
    }
}

/// Returns the references that must be read before [`render`] can fill in this metric.
pub fn references(metric: &ResolvedMetric, arguments: &Arguments) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    for template in templates(metric) {
        let names = template.names();
        found.extend(names.filter_map(|name| arguments.reference(name).cloned()));
    }
    found.extend(headers(metric).iter().filter_map(|(_, value)| match value {
        HeaderText::Secret(reference) => Some(reference.clone()),
        HeaderText::Text(_) => None,
    }));
    found
}

/// Returns an upper bound of the bytes that [`render`] produces for a metric, without rendering.
pub fn longest(metric: &ResolvedMetric, arguments: &Arguments, references: &References) -> usize {
    let of_reference = |reference: &Reference| references.get(reference).map_or(0, String::len);
    let length = |name: &str| match arguments.get(name) {
        Some(ArgumentValue::Text(text)) => text.len(),
        Some(ArgumentValue::Reference(reference)) => of_reference(reference),
        Some(ArgumentValue::Open) | None => 0,
    };
    let of_headers = headers(metric).iter().map(|(name, value)| match value {
        HeaderText::Secret(reference) => name.len() + of_reference(reference),
        HeaderText::Text(_) => name.len(),
    });
    let of_templates = templates(metric).map(|template| template.longest(&length));
    let of_tls = match &metric.provider {
        ResolvedProvider::Web(web) => web.tls.bytes(),
        ResolvedProvider::Prometheus(prometheus) => prometheus.tls.bytes(),
        ResolvedProvider::Job(_) | ResolvedProvider::Kubernetes(_) | ResolvedProvider::Exec(_) => 0,
    };
    of_templates.chain(of_headers).fold(of_tls, usize::saturating_add)
}

/// Returns every text of a metric that may have placeholders.
fn templates(metric: &ResolvedMetric) -> impl Iterator<Item = &Template> {
    let conditions = [&metric.success, &metric.failure].into_iter().flatten();
    let conditions = conditions.filter_map(|condition| match condition {
        ConditionText::Open(template) => Some(template),
        ConditionText::Ready(_) => None,
    });
    let of_provider: Vec<&Template> = match &metric.provider {
        ResolvedProvider::Web(web) => {
            let body = web.body.as_ref().map(|body| match body {
                BodyText::Plain(template) | BodyText::Json(template) => template,
            });
            std::iter::once(&web.url).chain(body).collect()
        }
        ResolvedProvider::Prometheus(prometheus) => vec![&prometheus.address, &prometheus.query],
        ResolvedProvider::Job(job) => vec![&job.text],
        ResolvedProvider::Kubernetes(object) => object.templates().collect(),
        ResolvedProvider::Exec(exec) => exec.command.iter().chain([&exec.pod]).collect(),
    };
    let of_headers = headers(metric).iter().filter_map(|(_, value)| match value {
        HeaderText::Text(template) => Some(template),
        HeaderText::Secret(_) => None,
    });
    conditions.chain(of_provider).chain(of_headers)
}

fn headers(metric: &ResolvedMetric) -> &[(String, HeaderText)] {
    match &metric.provider {
        ResolvedProvider::Web(web) => &web.headers,
        ResolvedProvider::Prometheus(prometheus) => &prometheus.headers,
        ResolvedProvider::Job(_) | ResolvedProvider::Kubernetes(_) | ResolvedProvider::Exec(_) => &[],
    }
}

/// Fills in a metric. Fails if a value is not allowed in its place (a line break in a header, a slash in a
/// host, text that is not a number in a condition).
pub fn render(
    metric: &ResolvedMetric,
    arguments: &Arguments,
    references: &References,
) -> Result<Rendered, MeasurementFailure> {
    for (reference, text) in references {
        reference
            .check_size(text)
            .map_err(|message| MeasurementFailure::new(MeasurementReason::InvalidRequest, message))?;
    }
    let redactor = Redactor::new(references.iter().filter_map(|(reference, text)| match reference {
        Reference::Secret { .. } => Some(text.as_str()),
        Reference::ConfigMap { .. } => None,
    }));
    let redactor = match metric.provider {
        _ if metric.quote_answers => redactor.quoting(),
        // A container may print a Secret of its environment.
        ResolvedProvider::Job(_) | ResolvedProvider::Exec(_) => redactor.hiding(),
        ResolvedProvider::Kubernetes(ref object) if object.may_read_spec() => redactor.hiding(),
        ResolvedProvider::Kubernetes(_) | ResolvedProvider::Web(_) | ResolvedProvider::Prometheus(_) => {
            redactor
        }
    };
    let filler = Filler {
        arguments,
        references,
        redactor: &redactor,
    };
    let parts = || {
        let request = filler.request(metric)?;
        let bytes = request.bytes();
        if bytes > MAX_REQUEST {
            return Err(format!(
                "the request is {bytes} bytes long, including headers and caBundle; the limit is {MAX_REQUEST}"
            ));
        }
        let mut rendered = Rendered {
            request,
            rules: RenderedRules {
                success: filler.condition("successCondition", metric.success.as_ref())?,
                failure: filler.condition("failureCondition", metric.failure.as_ref())?,
                redactor: redactor.clone(),
            },
        };
        if let ProviderRequest::Exec(request) = &mut rendered.request {
            request.reads = rendered.rules.reads();
        }
        Ok(rendered)
    };
    parts().map_err(|message: String| MeasurementFailure {
        kind: MeasurementReason::InvalidRequest,
        message: redactor.clean(&message),
    })
}

/// Request of a metric as a text for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestText {
    /// Method and URL, query, object or command.
    pub text: String,
    /// URL of the endpoint, or address of the Prometheus server; `None` for other providers.
    pub url: Option<String>,
}

/// Describes the request of a metric without reading references: values of the spec are filled in, and the placeholders
/// of Secrets and `ConfigMaps` stay.
pub fn describe(metric: &ResolvedMetric, arguments: &Arguments) -> RequestText {
    let shown = |template: &Template, render: Render| {
        let lookup = |name: &str| match arguments.get(name)? {
            ArgumentValue::Text(text) => Some(text.clone()),
            ArgumentValue::Reference(_) | ArgumentValue::Open => None,
        };
        render(template, &lookup).unwrap_or_else(|_| fill_known(template, &lookup))
    };
    let (text, url) = match &metric.provider {
        ResolvedProvider::Web(web) => {
            let method = match web.method {
                Method::Get => "GET",
                Method::Post => "POST",
                Method::Put => "PUT",
            };
            let url = shown(&web.url, Template::render_url);
            (format!("{method} {url}"), Some(url))
        }
        ResolvedProvider::Prometheus(prometheus) => {
            let address = shown(&prometheus.address, Template::render_url);
            let query = shown(&prometheus.query, Template::render_promql);
            (format!("query {query} at {address}"), Some(address))
        }
        ResolvedProvider::Job(_) => ("a Job".to_owned(), None),
        ResolvedProvider::Kubernetes(object) => {
            let name = shown(&object.name, Template::render);
            let parts: Vec<String> = match &object.function {
                ResolvedFunction::Get(fields) => fields.iter().map(|(path, _)| path.to_string()).collect(),
                ResolvedFunction::Patch(annotations) => annotations
                    .iter()
                    .map(|(key, _)| format!("metadata.annotations.{key}"))
                    .collect(),
            };
            let text = format!("{} of {} {name}", parts.join(", "), object.kind.kind);
            (text, None)
        }
        ResolvedProvider::Exec(exec) => {
            let command = exec.command.iter().map(|item| shown(item, Template::render));
            let command = command.collect::<Vec<_>>().join(" ");
            let pod = shown(&exec.pod, Template::render);
            let text = format!("command {command} in container {} of Pod {pod}", exec.container);
            (text, None)
        }
    };
    RequestText { text, url }
}

/// Renderer of a template, from the values of its arguments.
type Render = fn(&Template, &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError>;

/// Fills in the known values of a template. Other placeholders stay.
fn fill_known(template: &Template, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut parts = template.source().split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (tag, rest) = part.split_once("}}").unwrap_or((part, ""));
        let name = tag.trim().strip_prefix("args.").unwrap_or_default();
        let value = lookup(name).unwrap_or_else(|| format!("{{{{ args.{name} }}}}"));
        text.push_str(&value);
        text.push_str(rest);
    }
    text
}

struct Filler<'a> {
    arguments: &'a Arguments,
    references: &'a References,
    redactor: &'a Redactor,
}

impl Filler<'_> {
    fn lookup(&self, name: &str) -> Option<String> {
        match self.arguments.get(name)? {
            ArgumentValue::Text(text) => Some(text.clone()),
            ArgumentValue::Reference(reference) => self.references.get(reference).cloned(),
            ArgumentValue::Open => None,
        }
    }

    fn request(&self, metric: &ResolvedMetric) -> Result<ProviderRequest, String> {
        Ok(match &metric.provider {
            ResolvedProvider::Web(web) => ProviderRequest::Http(HttpRequest::Web(self.web(web)?)),
            ResolvedProvider::Prometheus(prometheus) => {
                ProviderRequest::Http(HttpRequest::Prometheus(self.prometheus(prometheus)?))
            }
            ResolvedProvider::Job(job) => ProviderRequest::Job(self.job(job, metric)?),
            ResolvedProvider::Kubernetes(object) => self.kubernetes(object, metric)?,
            ResolvedProvider::Exec(exec) => ProviderRequest::Exec(self.exec(exec)?),
        })
    }

    fn exec(&self, exec: &ResolvedExec) -> Result<ExecRequest, String> {
        let items = exec.command.iter().enumerate().map(|(index, item)| {
            let item = item.render(&|name| self.lookup(name));
            item.map_err(|error| format!("command[{index}]: {error}"))
        });
        let command = items.collect::<Result<Vec<_>, _>>()?;
        let bytes: usize = command.iter().map(String::len).sum();
        if bytes > MAX_COMMAND {
            return Err(format!(
                "the command is {bytes} bytes long; the limit is {MAX_COMMAND}"
            ));
        }
        if command.iter().any(|item| item.contains('\0')) {
            return Err(
                "the command contains a NUL character, which cannot be passed to a program".to_owned(),
            );
        }
        if command.first().is_none_or(String::is_empty) {
            return Err("command[0]: must be set to the program to run".to_owned());
        }
        Ok(ExecRequest {
            pod: self.object(ObjectKind::pod(), &exec.pod)?,
            container: exec.container.clone(),
            command,
            timeout: exec.timeout,
            reads: None,
            shows_output: !self.redactor.hides(),
        })
    }

    fn object(&self, kind: ObjectKind, name: &Template) -> Result<ObjectName, String> {
        let name = name.render(&|name| self.lookup(name));
        let name = name.map_err(|error| format!("target.name: {error}"))?;
        if !is_subdomain(&name) {
            return Err(format!("target.name: {}", not_a_name(&name)));
        }
        let pod_of_run = ResolvedKubernetes::pod_of_run(self.arguments);
        Ok(ObjectName {
            namespace: ResolvedKubernetes::namespace(self.arguments).map(str::to_owned),
            is_pod_of_run: kind.is_pod() && pod_of_run == Some(name.as_str()),
            kind,
            name,
        })
    }

    fn kubernetes(
        &self,
        provider: &ResolvedKubernetes,
        metric: &ResolvedMetric,
    ) -> Result<ProviderRequest, String> {
        let fill = |field: &str, text: &Template| {
            let filled = text.render(&|name| self.lookup(name));
            filled.map_err(|error| format!("{field}: {error}"))
        };
        let object = self.object(provider.kind.clone(), &provider.name)?;
        Ok(match &provider.function {
            ResolvedFunction::Get(fields) => {
                let fields = fields.iter().map(|(path, value)| {
                    let value = value.as_ref().map(|value| fill("value", value)).transpose()?;
                    Ok((path.clone(), value))
                });
                ProviderRequest::Read(ReadRequest {
                    object,
                    fields: fields.collect::<Result<_, String>>()?,
                    is_judged: metric.is_judged(),
                    shows_values: !self.redactor.hides(),
                })
            }
            ResolvedFunction::Patch(annotations) => {
                let annotations = annotations
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), fill("value", value)?)));
                let annotations = annotations.collect::<Result<_, String>>()?;
                check_sizes(&annotations)?;
                ProviderRequest::Annotate(AnnotateRequest {
                    pod: object,
                    annotations,
                })
            }
        })
    }

    fn job(&self, job: &ResolvedJob, metric: &ResolvedMetric) -> Result<JobRequest, String> {
        let text = job.text.render_json(&|name| self.lookup(name));
        let text = text.map_err(|error| format!("job: {error}"))?;
        let JobText {
            labels,
            annotations,
            spec,
        } = plain_json::from_str(&text).map_err(|error| format!("job: {error}"))?;
        if is_of_hooks(&spec) {
            return Err(format!("job: {}", of_hooks()));
        }
        Ok(JobRequest {
            labels,
            annotations,
            spec,
            result_container: metric.is_judged().then(|| job.result_container.clone()),
            shows_messages: metric.quote_answers,
            bytes: text.len(),
        })
    }

    fn web(&self, web: &ResolvedWeb) -> Result<WebRequest, String> {
        let ResolvedWeb {
            method,
            url,
            headers,
            body,
            timeout,
            json_path,
            tls,
        } = web;
        Ok(WebRequest {
            method: *method,
            url: url
                .render_url(&|name| self.lookup(name))
                .map_err(|error| format!("url: {error}"))?,
            headers: self.headers(headers)?,
            body: body.as_ref().map(|body| self.body(body)).transpose()?,
            timeout: *timeout,
            json_path: json_path.clone(),
            tls: tls.clone(),
            redactor: self.redactor.clone(),
        })
    }

    fn prometheus(&self, prometheus: &ResolvedPrometheus) -> Result<PrometheusRequest, String> {
        let ResolvedPrometheus {
            accept_partial,
            address,
            query,
            headers,
            timeout,
            tls,
        } = prometheus;
        let lookup = |name: &str| self.lookup(name);
        Ok(PrometheusRequest {
            accept_partial: *accept_partial,
            address: address
                .render_url(&lookup)
                .map_err(|error| format!("address: {error}"))?,
            query: query
                .render_promql(&lookup)
                .map_err(|error| format!("query: {error}"))?,
            headers: self.headers(headers)?,
            timeout: *timeout,
            tls: tls.clone(),
            redactor: self.redactor.clone(),
        })
    }

    fn headers(&self, headers: &[(String, HeaderText)]) -> Result<Vec<(String, String)>, String> {
        let fill = |(name, value): &(String, HeaderText)| {
            let text = match value {
                HeaderText::Text(template) => template.render_header(&|name| self.lookup(name)),
                HeaderText::Secret(reference) => {
                    let text = self.references.get(reference);
                    return text
                        .cloned()
                        .map(|text| (name.clone(), text))
                        .ok_or_else(|| format!("header {name}: {reference} was not read"));
                }
            };
            text.map(|text| (name.clone(), text))
                .map_err(|error| format!("header {name}: {error}"))
        };
        headers.iter().map(fill).collect()
    }

    fn body(&self, body: &BodyText) -> Result<Body, String> {
        let lookup = |name: &str| self.lookup(name);
        match body {
            BodyText::Plain(template) => {
                let text = template
                    .render(&lookup)
                    .map_err(|error| format!("body: {error}"))?;
                Ok(Body {
                    content_type: None,
                    text,
                })
            }
            BodyText::Json(template) => {
                let text = template
                    .render_json(&lookup)
                    .map_err(|error| format!("jsonBody: {error}"))?;
                Ok(Body {
                    content_type: Some("application/json"),
                    text,
                })
            }
        }
    }

    fn condition(&self, field: &str, text: Option<&ConditionText>) -> Result<Option<Condition>, String> {
        match text {
            None => Ok(None),
            Some(ConditionText::Ready(condition)) => Ok(Some(condition.clone())),
            Some(ConditionText::Open(template)) => {
                let text = template.render_condition(&|name| self.lookup(name));
                let text = text.map_err(|error| format!("{field}: {error}"))?;
                Condition::compile(&text)
                    .map(Some)
                    .map_err(|error| format!("{field}: {error}"))
            }
        }
    }
}

fn check_sizes(annotations: &BTreeMap<String, String>) -> Result<(), String> {
    let mut total = 0;
    for (key, value) in annotations {
        total += key.len() + value.len();
        if value.len() > MAX_ANNOTATION {
            return Err(format!(
                "the value of annotation {key} is {} bytes long; the limit is {MAX_ANNOTATION}",
                value.len()
            ));
        }
    }
    if total > MAX_ANNOTATIONS {
        return Err(format!(
            "the annotations are {total} bytes long in total; the limit is {MAX_ANNOTATIONS}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{MAX_CONFIG_MAP_BYTES, MAX_SECRET_BYTES, ResolvedRun, resolve_run};
    use serde_json::json;

    fn run() -> ResolvedRun {
        let reference = |kind: &str| json!({ kind: { "name": "n", "key": "k" } });
        let spec = json!({
            "args": [
                { "name": "secret", "valueFrom": reference("secretKeyRef") },
                { "name": "map", "valueFrom": reference("configMapKeyRef") },
            ],
            "metrics": [{ "name": "m", "provider": { "web": {
                "url": "http://game/", "method": "POST", "body": "{{ args.secret }}{{ args.map }}"
            } } }],
        });
        resolve_run(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    #[test]
    fn a_reference_that_is_too_long_is_refused_before_anything_is_made_of_it() {
        let run = run();
        let rendered = |secret: usize, map: usize| {
            let texts = references(&run.metrics[0], &run.arguments)
                .into_iter()
                .map(|reference| {
                    let length = match &reference {
                        Reference::Secret { .. } => secret,
                        Reference::ConfigMap { .. } => map,
                    };
                    (reference, "x".repeat(length))
                });
            render(&run.metrics[0], &run.arguments, &texts.collect())
        };
        assert!(rendered(MAX_SECRET_BYTES, MAX_CONFIG_MAP_BYTES).is_ok());
        for (secret, map, words) in [
            (
                MAX_SECRET_BYTES + 1,
                1,
                "key \"k\" of Secret \"n\" is 16385 bytes long",
            ),
            (
                1,
                MAX_CONFIG_MAP_BYTES + 1,
                "key \"k\" of ConfigMap \"n\" is 65537 bytes long",
            ),
        ] {
            let failure = rendered(secret, map).unwrap_err();
            assert_eq!(failure.kind, MeasurementReason::InvalidRequest);
            assert!(failure.message.starts_with(words), "{failure}");
        }
    }

    #[test]
    fn a_described_request_has_the_values_of_the_spec_and_no_others() {
        let reference = json!({ "secretKeyRef": { "name": "n", "key": "k" } });
        let table = [
            (
                json!({ "web": { "url": "http://{{ args.PodIP }}:9091/{{args.room}}", "method": "POST" } }),
                "POST http://10.0.0.7:9091/a%20b",
                Some("http://10.0.0.7:9091/a%20b"),
            ),
            (
                json!({ "web": { "url": "http://{{ args.PodIP }}/?token={{ args.token }}&room=1" } }),
                "GET http://10.0.0.7/?token={{ args.token }}&room=1",
                Some("http://10.0.0.7/?token={{ args.token }}&room=1"),
            ),
            (
                json!({ "prometheus": { "address": "http://prom:9090", "query": "p{pod=\"{{ args.PodName }}\"}" } }),
                "query p{pod=\"arena-0\"} at http://prom:9090",
                Some("http://prom:9090"),
            ),
            (
                json!({ "kubernetes": { "function": "get", "fields": [{ "path": "{.status.phase}", "value": "Running" }] } }),
                "{.status.phase} of Pod arena-0",
                None,
            ),
            (
                json!({ "exec": { "container": "game", "command": ["count", "{{ args.room }}"] } }),
                "command count a b in container game of Pod arena-0",
                None,
            ),
        ];
        for (provider, text, url) in table {
            let spec = json!({
                "args": [
                    { "name": "PodName", "value": "arena-0" }, { "name": "PodIP", "value": "10.0.0.7" },
                    { "name": "room", "value": "a b" }, { "name": "token", "valueFrom": reference }
                ],
                "metrics": [{ "name": "m", "provider": provider }],
            });
            let run = resolve_run(&serde_json::from_value(spec).unwrap()).unwrap();
            let described = describe(&run.metrics[0], &run.arguments);
            assert_eq!((described.text.as_str(), described.url.as_deref()), (text, url));
        }
    }

    #[test]
    fn a_job_whose_account_is_filled_in_does_not_run_as_the_hooks() {
        let pod = json!({ "restartPolicy": "Never", "serviceAccountName": "{{ args.map }}",
            "containers": [{ "name": "check", "image": "i" }] });
        let spec = json!({
            "args": [{ "name": "map", "valueFrom": { "configMapKeyRef": { "name": "n", "key": "k" } } }],
            "metrics": [{ "name": "m", "provider": { "job": { "spec": { "template": { "spec": pod } } } } }],
        });
        let run = resolve_run(&serde_json::from_value(spec).unwrap()).unwrap();
        let rendered = |account: &str| {
            let texts = references(&run.metrics[0], &run.arguments).into_iter();
            let texts = texts.map(|reference| (reference, account.to_owned()));
            render(&run.metrics[0], &run.arguments, &texts.collect())
        };
        assert!(rendered("checks").is_ok());
        let failure = rendered("hookgate-hooks").unwrap_err();
        assert!(
            failure.message.starts_with("job: hookgate-hooks is reserved"),
            "{failure}"
        );
    }

    #[test]
    fn a_secret_hides_the_answer_unless_the_metric_quotes_it() {
        let mut run = run();
        let hides = |run: &ResolvedRun| {
            let texts = references(&run.metrics[0], &run.arguments).into_iter();
            let texts = texts.map(|reference| (reference, "text".to_owned())).collect();
            render(&run.metrics[0], &run.arguments, &texts)
                .unwrap()
                .rules
                .redactor
                .hides()
        };
        assert!(hides(&run));
        run.metrics[0].quote_answers = true;
        assert!(!hides(&run));
    }
}
