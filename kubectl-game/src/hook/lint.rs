//! `kubectl game hook lint`: reports all problems of hooks, before a pod waits for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use gamedeployment_core::lifecycle::new_pod_warnings;
use gamedeployment_core::workload::{self, Source, Workload, sets_paused};
use hook_core::resolve::{FieldError, check_template, resolve_run, run_warnings, template_warnings};

use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::executions::{self, Actions};
use super::identity;
use super::schema::{self, Finding};
use super::templates::Templates;
use crate::command::complain;
use crate::draw::document::{OutputFormat, structured};
use crate::draw::text::clean;
use crate::manifest::{self, Document, HookDocument, KINDS};

/// Checks hooks.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Files or directories with manifests; - reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,

    /// Read subdirectories recursively
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Output format [default: human-readable]
    #[arg(short = 'o', long, value_name = "FORMAT")]
    output: Option<LintFormat>,
}

/// Machine-readable output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LintFormat {
    /// Every object with its problems
    Json,
}

/// Objects of the checked files that others name.
struct KnownObjects {
    templates: Templates,
    actions: Actions,
}

impl Lint {
    pub(crate) fn main(&self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let mut documents = manifest::read(&self.files, self.recursive)?;
        documents.retain(Document::is_ours);
        let known = KnownObjects {
            templates: Templates::of(&documents),
            actions: Actions::of(&documents),
        };
        let checked: Vec<(&Document, Vec<Finding>)> = documents
            .iter()
            .filter_map(|document| Some((document, problems(document, &known)?)))
            .collect();
        let wrong: usize = checked.iter().map(|(_, problems)| problems.len()).sum();
        match self.output {
            Some(LintFormat::Json) => {
                let objects: Vec<Value> = checked
                    .iter()
                    .map(|(document, found)| report(document, found, &known))
                    .collect();
                let report = json!({ "objects": objects, "problems": wrong });
                print!("{}", structured(&report, OutputFormat::Json)?);
            }
            None => checked
                .iter()
                .for_each(|(document, found)| print(document, found, &known)),
        }
        if checked.is_empty() {
            let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
            let files = files.join(", ");
            complain(&format!("nothing to check: no {} in {files}", KINDS.join(", ")));
        }
        Ok(ExitCode::from(u8::from(wrong > 0)))
    }
}

fn print(document: &Document, problems: &[Finding], known: &KnownObjects) {
    let object = format!("{} {}", document.kind(), document.name());
    let print = |path: &str, text: &str| {
        println!(
            "{}",
            clean(&format!("{}: {object}: {text}", document.place(path)))
        );
    };
    for Finding { path, message, .. } in problems {
        print(path, &format!("{path}: {message}"));
    }
    for (path, message) in warnings(document, known) {
        print(&path, &format!("warning: {path}: {message}"));
    }
    if problems.is_empty() {
        print("", "ok");
    }
}

fn report(document: &Document, problems: &[Finding], known: &KnownObjects) -> Value {
    let at = |path: &str, message: &str| {
        let place = document.places.of(path);
        json!({ "path": path, "message": message, "line": place.line, "column": place.column })
    };
    let problems = problems.iter().map(|found| at(&found.path, &found.message));
    let warnings = warnings(document, known);
    let warnings = warnings.iter().map(|(path, message)| at(path, message));
    json!({
        "file": document.file.display().to_string(),
        "line": document.places.of("").line,
        "kind": document.kind(),
        "namespace": document.value.pointer("/metadata/namespace"),
        "name": document.name(),
        "problems": problems.collect::<Vec<_>>(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}

/// Returns warnings about valid but surprising settings; none if the hook cannot be parsed.
fn warnings(document: &Document, known: &KnownObjects) -> Vec<(String, String)> {
    if document.kind() == "GameDeployment" {
        let Ok(game) = game(document) else { return vec![] };
        let misspelt = Workload::read(&game).map(|workload| known.templates.warnings(&workload, document));
        let mut warnings = misspelt.unwrap_or_default();
        let found = sets_paused(&game, Source::Manifest)
            .into_iter()
            .chain(new_pod_warnings(&game));
        warnings.extend(found.map(|found| (found.path, found.remedy)));
        return warnings;
    }
    if document.kind() == "ExecutionHook" {
        return known.actions.warnings(document);
    }
    let hook = document.is_hook().then(|| document.hook().ok()).flatten();
    let found = match hook {
        None => vec![],
        Some(HookDocument::Template(spec)) => template_warnings(&spec),
        Some(HookDocument::Run(spec)) => run_warnings(&spec),
    };
    found.iter().map(placed).collect()
}

/// Returns a problem of hook-operator with its path in the document.
fn placed(problem: &FieldError) -> (String, String) {
    (format!("spec.{}", problem.path), problem.message.clone())
}

/// Returns what the API server would reject or drop, and what would keep an operator from working on the
/// object. Returns `None` for a kind of this group that hookgate does not have, such as another one of the
/// original operators, unless its name looks like a misspelt one of ours.
fn problems(document: &Document, known: &KnownObjects) -> Option<Vec<Finding>> {
    if !KINDS.contains(&document.kind()) {
        return identity::unknown_kind(document).map(|finding| vec![finding]);
    }
    let mut findings = identity::check(document);
    let checked = schema::check(document.kind(), &document.value);
    findings.extend(checked.findings);
    let readable = document.with_value(checked.document);
    let found = match document.kind() {
        "GameDeployment" => workload_problems(&readable, &known.templates),
        "HookAction" | "ExecutionHook" => executions::problems(&readable),
        _ => hook_problems(&readable),
    };
    for (path, message) in found {
        if !findings.iter().any(|finding| finding.covers(&path)) {
            findings.push(Finding::new(path, message));
        }
    }
    findings.sort_by_key(|finding| document.places.of(&finding.path));
    Some(findings)
}

/// Returns the problems that would keep hook-operator from measuring, in its words, each with its path.
fn hook_problems(document: &Document) -> Vec<(String, String)> {
    let found = match document.hook() {
        Ok(HookDocument::Template(spec)) => check_template(&spec),
        Ok(HookDocument::Run(spec)) => resolve_run(&spec).err().unwrap_or_default(),
        Err(error) => return vec![("spec".to_owned(), error.to_string())],
    };
    found.iter().map(placed).collect()
}

/// Returns the problems that would keep gamedeployment-operator from reconciling a workload, in its words,
/// each with its path.
fn workload_problems(document: &Document, templates: &Templates) -> Vec<(String, String)> {
    let game = match game(document) {
        Ok(game) => game,
        Err(error) => return vec![("spec".to_owned(), workload::unreadable(&error.to_string()))],
    };
    let problems = match Workload::read(&game) {
        Ok(workload) => return templates.problems(&workload, document),
        Err(problems) => problems,
    };
    let said = problems.into_iter().map(|problem| {
        let path = problem.path.clone();
        let sentence = problem.to_string();
        // The output already starts with the path.
        let message = sentence.strip_prefix(&format!("{path}: ")).map(str::to_owned);
        (path, message.unwrap_or(sentence))
    });
    said.collect()
}

fn game(document: &Document) -> Result<GameDeployment, serde_json::Error> {
    // Outside the spec, the operator reads only the annotations.
    let annotations = document
        .value
        .pointer("/metadata/annotations")
        .and_then(Value::as_object);
    let annotations: serde_json::Map<_, _> = annotations
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.is_string())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": document.api_version(),
        "kind": document.kind(),
        "metadata": { "name": document.name(), "annotations": annotations },
        "spec": document.value.get("spec"),
    }))
}
