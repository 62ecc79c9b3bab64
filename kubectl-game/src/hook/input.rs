//! What all hook commands take: a manifest, arguments, and texts in the place of Secrets and `ConfigMaps`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use hook_core::resolve::{Problem, Reference, ResolvedRun, resolve_run};
use shared_api::hook_run::HookRunSpec;
use shared_api::metric::Argument;

use crate::manifest::{self, Document, Hook};

/// A hook from a file, made complete.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Input {
    /// File with a HookTemplate or HookRun; - is standard input
    #[arg(short = 'f', long = "filename", required = true)]
    files: Vec<PathBuf>,

    /// The hook to use, where the files hold several
    #[arg(long)]
    name: Option<String>,

    /// Value for a placeholder, as a workload would pass it; repeat
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    args: Vec<Assignment>,

    /// Text in the place of a Secret's key; @FILE reads it from a file; repeat
    #[arg(long = "secret", value_name = "NAME/KEY=VALUE")]
    secrets: Vec<KeyAssignment>,

    /// Text in the place of a `ConfigMap`'s key; @FILE reads it from a file; repeat
    #[arg(long = "config-map", value_name = "NAME/KEY=VALUE")]
    config_maps: Vec<KeyAssignment>,
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
            .ok_or_else(|| format!("{text:?} is not NAME=VALUE"))?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// `NAME/KEY=VALUE`.
#[derive(Debug, Clone)]
struct KeyAssignment {
    name: String,
    key: String,
    value: String,
}

impl FromStr for KeyAssignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "{:?} is not NAME/KEY=VALUE",
                text.split_once('=').map_or(text, |(left, _)| left)
            )
        };
        let (left, value) = text.split_once('=').ok_or_else(form)?;
        let (name, key) = left.split_once('/').ok_or_else(form)?;
        let value = match value.strip_prefix('@') {
            Some(file) => {
                std::fs::read_to_string(file).map_err(|error| format!("failed to read {file}: {error}"))?
            }
            None => value.to_owned(),
        };
        Ok(Self {
            name: name.to_owned(),
            key: key.to_owned(),
            value,
        })
    }
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
}

impl Input {
    /// Reads the manifest and fills in the arguments.
    pub(super) fn choose(&self) -> Result<Chosen, Box<dyn std::error::Error>> {
        let document = manifest::choose(&self.files, self.name.as_deref())?;
        let spec = self.complete(document.hook()?);
        let resolved = resolve_run(&spec).map_err(|problems| {
            Unusable(
                problems
                    .iter()
                    .map(|problem| explain(&document, problem))
                    .collect(),
            )
        })?;
        Ok(Chosen {
            name: document.name().to_owned(),
            spec,
            resolved,
        })
    }

    /// The run that a workload with these arguments would create: what is passed overrides what is declared.
    fn complete(&self, hook: Hook) -> HookRunSpec {
        let mut spec = match hook {
            Hook::Run(spec) => spec,
            Hook::Template(template) => HookRunSpec {
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
            args.retain(|arg| arg.name != *name);
            args.push(Argument {
                name: name.clone(),
                value: Some(value.clone()),
                value_from: None,
            });
        }
        spec
    }

    /// The texts in the place of Secrets and `ConfigMaps`.
    pub(super) fn references(&self) -> BTreeMap<Reference, String> {
        let secret = |given: &KeyAssignment| {
            let KeyAssignment { name, key, value } = given.clone();
            (Reference::Secret { name, key }, value)
        };
        let config_map = |given: &KeyAssignment| {
            let KeyAssignment { name, key, value } = given.clone();
            (Reference::ConfigMap { name, key }, value)
        };
        self.secrets
            .iter()
            .map(secret)
            .chain(self.config_maps.iter().map(config_map))
            .collect()
    }
}

fn explain(document: &Document, problem: &Problem) -> String {
    let place = document.place(&format!("spec.{}", problem.path));
    let missing = problem.path.starts_with("args[") && problem.message.contains("was not supplied");
    let remedy = if missing { " (here: --arg NAME=VALUE)" } else { "" };
    format!("{place}: {problem}{remedy}")
}

/// How to supply a reference on the command line.
pub(super) fn how_to_supply(reference: &Reference) -> String {
    match reference {
        Reference::Secret { name, key } => {
            format!("{reference}: no cluster is asked here; pass --secret {name}/{key}=…")
        }
        Reference::ConfigMap { name, key } => {
            format!("{reference}: no cluster is asked here; pass --config-map {name}/{key}=…")
        }
    }
}
