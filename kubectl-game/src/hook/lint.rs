//! `kubectl game hook lint`: everything that is wrong with hooks, before a pod waits for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use gamedeployment_core::workload::{self, Workload};
use hook_core::resolve::{Problem, Problems, check_template, resolve_run, run_cautions, template_cautions};

use serde_json::Value;
use shared_api::GameDeployment;

use super::schema::{self, Finding};
use crate::manifest::{self, Document, Hook, ManifestError, pointer};

/// Check hooks.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Files with HookTemplates, HookRuns and GameDeployments; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
}

impl Lint {
    pub(crate) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let documents = manifest::read(&self.files)?;
        let hooks: Vec<&Document> = documents.iter().filter(|document| document.is_ours()).collect();
        if hooks.is_empty() {
            let files = self
                .files
                .iter()
                .map(|file| file.display().to_string())
                .collect::<Vec<_>>()
                .join(", ");
            return Err(ManifestError::Nothing(files).into());
        }
        let mut wrong = 0;
        for hook in hooks {
            let problems = problems(hook);
            wrong += problems.len();
            for Finding { path, message, .. } in &problems {
                println!(
                    "{}: {} {}: {path}: {message}",
                    hook.place(path),
                    hook.kind(),
                    hook.name()
                );
            }
            for Problem { path, message } in cautions(hook) {
                let path = format!("spec.{path}");
                println!(
                    "{}: {} {}: warning: {path}: {message}",
                    hook.place(&path),
                    hook.kind(),
                    hook.name()
                );
            }
            if problems.is_empty() {
                println!("{}: {} {}: ok", hook.place(""), hook.kind(), hook.name());
            }
        }
        Ok(ExitCode::from(u8::from(wrong > 0)))
    }
}

/// What is legal and may still surprise; nothing where the hook cannot be read.
fn cautions(document: &Document) -> Vec<Problem> {
    let hook = document.is_hook().then(|| document.hook().ok()).flatten();
    match hook {
        None => vec![],
        Some(Hook::Template(spec)) => template_cautions(&spec),
        Some(Hook::Run(spec)) => run_cautions(&spec),
    }
}

/// What the schema does not allow, and what would keep the hook from being measured.
fn problems(document: &Document) -> Vec<Finding> {
    let mut findings = schema::check(document.kind(), &document.value);
    let hook = document.is_hook().then(|| mended(document, &findings).hook());
    let found = match hook {
        None => Problems::default(),
        Some(Ok(Hook::Template(spec))) => check_template(&spec),
        Some(Ok(Hook::Run(spec))) => resolve_run(&spec).err().unwrap_or_default(),
        Some(Err(error)) => {
            // The schema has said which field it is.
            if findings.is_empty() {
                findings.push(Finding::new("spec", error.to_string()));
            }
            Problems::default()
        }
    };
    for problem in &found {
        let path = format!("spec.{}", problem.path);
        if !findings.iter().any(|finding| finding.path == path) {
            findings.push(Finding::new(path, problem.message.clone()));
        }
    }
    for (path, message) in workload_problems(document) {
        let around = |finding: &Finding| finding.path.starts_with(&path) || path.starts_with(&finding.path);
        // The schema has said what is wrong with this field.
        if !findings.iter().any(around) {
            findings.push(Finding::new(path, message));
        }
    }
    findings.sort_by_key(|finding| document.places.of(&finding.path));
    findings
}

/// What would keep gamedeployment-operator from working on a workload, in its words: each with its path.
fn workload_problems(document: &Document) -> Vec<(String, String)> {
    if document.is_hook() {
        return vec![];
    }
    // Reading takes no name, but the kind has one.
    let mut value = document.value.clone();
    if let Value::Object(fields) = &mut value {
        fields.entry("metadata").or_insert_with(|| serde_json::json!({}));
    }
    let game: GameDeployment = match serde_json::from_value(value) {
        Ok(game) => game,
        Err(error) => return vec![("spec".to_owned(), workload::unreadable(&error.to_string()))],
    };
    let problems = Workload::read(&game).err().unwrap_or_default();
    let said = problems.into_iter().map(|problem| {
        let path = problem.path.clone();
        let sentence = problem.to_string();
        // The path stands in front of the sentence already.
        let message = sentence.strip_prefix(&format!("{path}: ")).map(str::to_owned);
        (path, message.unwrap_or(sentence))
    });
    said.collect()
}

/// The document with values of a wrong type made right or taken out, so that what else is wrong can be found.
fn mended(document: &Document, findings: &[Finding]) -> Document {
    let mut value = document.value.clone();
    for Finding { path, wanted, .. } in findings {
        let (Some(wanted), Some(field)) = (wanted, value.pointer_mut(&pointer(path))) else {
            continue;
        };
        *field = match (*wanted, &*field) {
            ("string", Value::Number(_) | Value::Bool(_)) => Value::String(field.to_string()),
            ("integer", Value::String(text)) => text.parse::<i64>().map(Value::from).unwrap_or_default(),
            _ => Value::Null,
        };
    }
    Document {
        file: document.file.clone(),
        value,
        places: document.places.clone(),
    }
}
