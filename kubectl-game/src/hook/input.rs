//! Input shared by all hook commands: a manifest, arguments, and replacements for Secrets and `ConfigMaps`.

use std::path::PathBuf;
use std::str::FromStr;

use hook_core::render::{References, Rendered, references, render};
use hook_core::request::{HttpRequest, Method, ProviderRequest};
use hook_core::resolve::{FieldError, Reference, ResolvedMetric, ResolvedRun, resolve_run};
use shared_api::hook_run::HookRunSpec;
use shared_api::metric::{Argument, KeyRef, Metric};
use shared_api::names::argument::POD_NAME;
use shared_api::spelling::is_slip;

use crate::manifest::{self, Document, HookDocument};

/// A hook from a file, and the values that complete it.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Input {
    /// File with a HookTemplate or HookRun; - reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Name of the hook to use if the files contain several
    #[arg(long)]
    name: Option<String>,

    /// Value of an argument, as set by a workload; can be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    args: Vec<Assignment>,

    /// Value to use in place of a key in a Secret; @FILE reads it from a file; can be repeated
    #[arg(long = "secret", value_name = "NAME/KEY=VALUE")]
    // Parsed later, so that the parser's error messages cannot repeat the secret.
    secrets: Vec<String>,

    // Not a doc comment: that would need backticks, which the terminal would show.
    #[arg(
        long = "config-map",
        value_name = "NAME/KEY=VALUE",
        help = "Value to use in place of a key in a ConfigMap; @FILE reads it from a file; can be repeated"
    )]
    config_maps: Vec<String>,
}

/// `NAME=VALUE`.
#[derive(Debug, Clone)]
struct Assignment {
    name: String,
    value: String,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| "must have the form NAME=VALUE".to_owned())?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// Parses `NAME/KEY=VALUE` into the key reference and its value. Errors do not repeat the value, which may be
/// a secret.
fn key_assignment(flag: &str, text: &str) -> Result<(KeyRef, String), String> {
    let form = |left: &str| format!("{flag} {left:?} must have the form NAME/KEY=VALUE");
    let (left, value) = text.split_once('=').ok_or_else(|| form("…"))?;
    let (name, key) = left.split_once('/').ok_or_else(|| form(left))?;
    let value = match value.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("{flag}: failed to read {file}: {error}"))?,
        None => value.to_owned(),
    };
    Ok((
        KeyRef {
            name: name.to_owned(),
            key: key.to_owned(),
        },
        value,
    ))
}

/// A hook that cannot be measured.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n       "))]
pub(super) struct Unusable(Vec<String>);

/// A hook that can be measured.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) spec: HookRunSpec,
    pub(super) resolved: ResolvedRun,
    /// Replacements for Secrets and `ConfigMaps`.
    pub(super) given: References,
}

impl Input {
    /// Reads the manifest and fills in the arguments.
    pub(super) fn choose(&self) -> Result<Chosen, Box<dyn std::error::Error>> {
        self.choose_with(|_| {})
    }

    /// Like `choose`, but arguments that no condition uses may be missing, because no request is sent.
    pub(super) fn choose_to_judge(&self) -> Result<Chosen, Box<dyn std::error::Error>> {
        self.choose_with(stand_in)
    }

    fn choose_with(&self, adapt: fn(&mut HookRunSpec)) -> Result<Chosen, Box<dyn std::error::Error>> {
        let document = manifest::choose(&self.files, self.name.as_deref())?;
        let mut spec = self.complete(document.hook()?);
        adapt(&mut spec);
        let resolved = resolve_run(&spec).map_err(|problems| {
            Unusable(
                problems
                    .iter()
                    .map(|problem| self.explain(&document, problem))
                    .collect(),
            )
        })?;
        let given = self.given()?;
        let name = document.name().to_owned();
        Ok(Chosen {
            name,
            spec,
            resolved,
            given,
        })
    }

    /// Builds the run that a workload with these arguments would create. Passed arguments override declared
    /// ones.
    fn complete(&self, hook: HookDocument) -> HookRunSpec {
        let mut spec = match hook {
            // A local run need not be deleted.
            HookDocument::Run(spec) => HookRunSpec {
                ttl_seconds_after_finished: None,
                ..spec
            },
            HookDocument::Template(template) => HookRunSpec {
                unknown: template.unknown_of_runs(),
                metrics: template.metrics,
                args: template.args,
                terminate: None,
                policy: template.policy,
                ttl_seconds_after_finished: None,
                timeout_seconds: template.timeout_seconds,
            },
        };
        let args = spec.args.get_or_insert_default();
        for Assignment { name, value } in &self.args {
            let given = Argument {
                name: name.clone(),
                value: Some(value.clone()),
                ..Argument::default()
            };
            // Replaced in place, so that the path of a problem still leads to its line.
            match args.iter_mut().find(|arg| arg.name == *name) {
                Some(declared) => *declared = given,
                None => args.push(given),
            }
        }
        spec
    }

    /// Describes a problem with its position in the file, and its remedy on the command line.
    fn explain(&self, document: &Document, problem: &FieldError) -> String {
        let place = document.place(&format!("spec.{}", problem.path));
        let Some(name) = &problem.missing_argument else {
            return format!("{place}: {problem}");
        };
        let near = self.args.iter().find(|given| is_slip(&given.name, name));
        let near = near.map_or_else(String::new, |given| format!("; you passed {}", given.name));
        format!("{place}: {problem} (pass --arg {name}=VALUE{near})")
    }

    fn given(&self) -> Result<References, String> {
        let mut given = References::new();
        for text in &self.secrets {
            let (KeyRef { name, key }, value) = key_assignment("--secret", text)?;
            given.insert(Reference::Secret { name, key }, value);
        }
        for text in &self.config_maps {
            let (KeyRef { name, key }, value) = key_assignment("--config-map", text)?;
            given.insert(Reference::ConfigMap { name, key }, value);
        }
        Ok(given)
    }
}

impl Chosen {
    /// Describes the request of a metric. Fills in all values that may be shown.
    pub(super) fn request_of(&self, metric: &ResolvedMetric) -> String {
        let arguments = &self.resolved.arguments;
        let known = references(metric, arguments).into_iter().map(|reference| {
            let text = self
                .given
                .get(&reference)
                .cloned()
                .unwrap_or_else(|| "?".to_owned());
            (reference, text)
        });
        match render(metric, arguments, &known.collect()) {
            Err(_) => metric.provider.name().to_owned(),
            Ok(Rendered { request, rules, .. }) => rules.redactor.clean(&match request {
                ProviderRequest::Http(HttpRequest::Web(web)) => format!("{} {}", verb(web.method), web.url),
                ProviderRequest::Http(HttpRequest::Prometheus(prometheus)) => {
                    format!("query {} at {}", prometheus.query, prometheus.address)
                }
                ProviderRequest::Job(_) => "a Job".to_owned(),
                ProviderRequest::Read(request) => request.object.to_string(),
                ProviderRequest::Annotate(request) => request.pod.to_string(),
                ProviderRequest::Exec(request) => {
                    format!("container {} of {}", request.container, request.pod)
                }
            }),
        }
    }
}

/// Sets placeholders for missing arguments that no condition uses. Each value is valid where it is inserted.
fn stand_in(spec: &mut HookRunSpec) {
    let texts = |text: fn(&Metric) -> Option<&String>| spec.metrics.iter().filter_map(text).cloned();
    let conditions: Vec<String> = texts(|metric| metric.success_condition.as_ref())
        .chain(texts(|metric| metric.failure_condition.as_ref()))
        .collect();
    let urls: Vec<String> = texts(|metric| metric.provider.web.as_ref().map(|web| &web.url))
        .chain(texts(|metric| {
            metric.provider.prometheus.as_ref().map(|server| &server.address)
        }))
        .collect();
    supply_pod(spec);
    for arg in spec.args.iter_mut().flatten() {
        let tag = format!("args.{}", arg.name);
        let is_seen = conditions.iter().any(|condition| condition.contains(&tag));
        if arg.value.is_some() || arg.value_from.is_some() || is_seen {
            continue;
        }
        let value = urls
            .iter()
            .find_map(|url| stand_in_of_url(url, &tag))
            .unwrap_or("0");
        arg.value = Some(value.to_owned());
    }
}

/// Adds the argument that names the pod of a run, which a template need not declare, if an object is named by it.
fn supply_pod(spec: &mut HookRunSpec) {
    let needs_pod = spec.metrics.iter().any(|metric| metric.provider.needs_pod());
    let args = spec.args.get_or_insert_default();
    if needs_pod && !args.iter().any(|arg| arg.name == POD_NAME) {
        args.push(Argument {
            name: POD_NAME.to_owned(),
            value: Some("pod".to_owned()),
            ..Argument::default()
        });
    }
}

/// Returns a placeholder for an argument at the start, in the host or in the port of a URL; `None` elsewhere.
fn stand_in_of_url(url: &str, tag: &str) -> Option<&'static str> {
    let (before, _) = url.split_once(tag)?;
    let before = before.trim_end_matches(['{', ' ']);
    match before.split_once("://") {
        None => Some("http://host"),
        Some((_, authority)) if authority.contains(['/', '?', '#']) => None,
        Some((_, authority)) => Some(if authority.ends_with(':') { "80" } else { "host" }),
    }
}

fn verb(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
    }
}

/// Describes how to supply a reference on the command line.
pub(super) fn how_to_supply(reference: &Reference) -> String {
    match reference {
        Reference::Secret { name, key } => {
            format!(
                "{reference} is unknown, because this command does not contact the cluster; pass --secret \
                 {name}/{key}=VALUE"
            )
        }
        Reference::ConfigMap { name, key } => {
            format!(
                "{reference} is unknown, because this command does not contact the cluster; pass --config-map \
                 {name}/{key}=VALUE"
            )
        }
    }
}
