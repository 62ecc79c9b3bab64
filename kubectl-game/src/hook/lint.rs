//! `kubectl game hook lint`: everything that is wrong with hooks, before a pod waits for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hook_core::resolve::{Problems, check_template, resolve_run};

use serde_json::Value;

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
    pub(super) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
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
            if problems.is_empty() {
                println!("{}: {} {}: ok", hook.place(""), hook.kind(), hook.name());
            }
        }
        Ok(ExitCode::from(u8::from(wrong > 0)))
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
    findings.sort_by_key(|finding| document.places.of(&finding.path));
    findings
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
