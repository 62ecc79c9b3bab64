//! `kubectl game hook lint`: everything that is wrong with hooks, before a pod waits for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hook_core::resolve::{Problems, check_template, resolve_run};

use super::schema::{self, Finding};
use crate::manifest::{self, Document, Hook, ManifestError};

/// Check hooks.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Files with HookTemplates and HookRuns; - is standard input
    #[arg(short = 'f', long = "filename", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
}

impl Lint {
    pub(super) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let documents = manifest::read(&self.files)?;
        let hooks: Vec<&Document> = documents.iter().filter(|document| document.is_hook()).collect();
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
            for Finding { path, message } in &problems {
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
    let found = match document.hook() {
        Ok(Hook::Template(spec)) => check_template(&spec),
        Ok(Hook::Run(spec)) => resolve_run(&spec).err().unwrap_or_default(),
        Err(error) => {
            // The schema has said which field it is.
            if findings.is_empty() {
                findings.push(Finding {
                    path: "spec".into(),
                    message: error.to_string(),
                });
            }
            Problems::default()
        }
    };
    for problem in &found {
        let path = format!("spec.{}", problem.path);
        if !findings.iter().any(|finding| finding.path == path) {
            findings.push(Finding {
                path,
                message: problem.message.clone(),
            });
        }
    }
    findings
}
