//! `kubectl game hook lint`: reports all problems of hooks, before a pod waits for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use gamedeployment_core::lifecycle::new_pod_warnings;
use gamedeployment_core::workload::{
    self, Source, Workload, ask_without_hook, ineffective_settings, sets_paused,
};
use hook_core::resolve::{FieldError, check_template, resolve_run, run_warnings, template_warnings};

use serde_json::{Value, json};
use shared_api::GameDeployment;

use super::executions::{self, Actions};
use super::not_checked::NotChecked;
use super::schema::{self, Finding};
use super::templates::Templates;
use super::{identity, original};
use crate::command::complain;
use crate::draw::document::{OutputFormat, structured};
use crate::draw::text::clean;
use crate::manifest::{self, Document, HookDocument, KINDS, Manifests};

/// Checks hooks.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Files or directories with manifests; - reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,

    /// Also read the files in subdirectories
    #[arg(short = 'R', long)]
    recursive: bool,

    // Not a doc comment: that would need backticks, which the terminal would show.
    #[arg(
        long,
        help = "Also fail on warnings, and on unchecked objects such as AnalysisTemplates and GameStatefulSets"
    )]
    strict: bool,

    /// Warn about hooks that behaved differently with the original operators
    #[arg(long)]
    from_original: bool,

    /// Output format [default: human-readable]
    #[arg(short = 'o', long, value_name = "FORMAT")]
    output: Option<LintFormat>,
}

/// Machine-readable output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LintFormat {
    /// Every object with its problems
    Json,
}

/// Objects of the checked files that others name.
pub(super) struct KnownObjects {
    pub(super) templates: Templates,
    actions: Actions,
}

impl KnownObjects {
    pub(super) fn of(documents: &[Document]) -> Self {
        Self {
            templates: Templates::of(documents),
            actions: Actions::of(documents),
        }
    }
}

/// Document with its problems and warnings.
struct Checked<'a> {
    document: &'a Document,
    problems: Vec<Finding>,
    /// Warnings with their paths.
    warnings: Vec<(String, String)>,
}

impl Lint {
    /// Checks all files. `usage` is the exit code if a file cannot be read, or if none of the objects is of a known kind.
    pub(crate) fn main(&self, usage: u8) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let Manifests {
            documents,
            unreadable,
        } = manifest::read(&self.files, self.recursive);
        let known = KnownObjects::of(&documents);
        let mut checked = Vec::new();
        let mut not_checked = NotChecked::default();
        for document in &documents {
            match problems(document, &known) {
                Some(problems) => checked.push(Checked {
                    document,
                    problems,
                    warnings: self.warnings(document, &known),
                }),
                None => not_checked.add(document),
            }
        }
        match self.output {
            Some(LintFormat::Json) => {
                let report = json!({
                    "objects": checked.iter().map(Checked::json).collect::<Value>(),
                    "problems": checked.iter().map(|one| one.problems.len()).sum::<usize>(),
                    "notChecked": not_checked.json(),
                    "unreadable": unreadable.iter().map(ToString::to_string).collect::<Value>(),
                });
                print!("{}", structured(&report, OutputFormat::Json)?);
            }
            None => checked.iter().for_each(Checked::print),
        }
        for error in &unreadable {
            complain(&format!("error: {error}"));
        }
        for line in not_checked.lines() {
            complain(&clean(&line));
        }
        if checked.is_empty() && unreadable.is_empty() {
            let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
            let files = files.join(", ");
            let [others @ .., last] = KINDS;
            complain(&format!("no {} or {last} to check in {files}", others.join(", ")));
        }
        let is_incomplete = !unreadable.is_empty() || checked.is_empty() && !documents.is_empty();
        Ok(ExitCode::from(if is_incomplete {
            usage
        } else {
            self.exit_code(&checked, &not_checked)
        }))
    }

    fn exit_code(&self, checked: &[Checked<'_>], not_checked: &NotChecked) -> u8 {
        let has_problems = checked.iter().any(|one| !one.problems.is_empty());
        let has_warnings = checked.iter().any(|one| !one.warnings.is_empty());
        u8::from(has_problems || self.strict && (has_warnings || not_checked.is_suspicious()))
    }

    /// Returns warnings about valid but surprising settings; none if the object cannot be parsed.
    fn warnings(&self, document: &Document, known: &KnownObjects) -> Vec<(String, String)> {
        match document.kind() {
            "GameDeployment" => workload_warnings(document, known, self.from_original),
            "ExecutionHook" => known.actions.warnings(document),
            _ => hook_warnings(document, self.from_original),
        }
    }
}

/// Returns warnings about the metrics of a hook. `from_original`: also those about differences from the original
/// operators.
fn hook_warnings(document: &Document, from_original: bool) -> Vec<(String, String)> {
    let Some(Ok(hook)) = document.is_hook().then(|| document.hook()) else {
        return vec![];
    };
    let (mut found, metrics) = match &hook {
        HookDocument::Template(spec) => (template_warnings(spec), &spec.metrics),
        HookDocument::Run(spec) => (run_warnings(spec), &spec.metrics),
    };
    if from_original {
        found.extend(original::differences(metrics));
    }
    found.iter().map(placed).collect()
}

impl Checked<'_> {
    fn print(&self) {
        let Self {
            document,
            problems,
            warnings,
        } = self;
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
        for (path, message) in warnings {
            print(path, &format!("warning: {path}: {message}"));
        }
        if problems.is_empty() {
            print("", "ok");
        }
    }

    fn json(&self) -> Value {
        let Self {
            document,
            problems,
            warnings,
        } = self;
        let at = |path: &str, message: &str| {
            let place = document.places.of(path);
            json!({ "path": path, "message": message, "line": place.line, "column": place.column })
        };
        let problems = problems.iter().map(|found| at(&found.path, &found.message));
        let warnings = warnings.iter().map(|(path, message)| at(path, message));
        json!({
            "file": document.file.display().to_string(),
            "line": document.places.of("").line,
            "kind": document.kind(),
            "namespace": document.namespace(),
            "name": document.name(),
            "problems": problems.collect::<Vec<_>>(),
            "warnings": warnings.collect::<Vec<_>>(),
        })
    }
}

fn workload_warnings(
    document: &Document,
    known: &KnownObjects,
    from_original: bool,
) -> Vec<(String, String)> {
    let Ok(game) = game(document) else { return vec![] };
    let mut warnings = match Workload::read(&game) {
        Ok(workload) => {
            let difference = original::of_workload(&workload).filter(|_| from_original);
            let mut warnings = known.templates.warnings(&workload, document);
            warnings.extend(difference);
            warnings
        }
        Err(_) => vec![],
    };
    let found = sets_paused(&game, Source::Manifest)
        .into_iter()
        .chain(new_pod_warnings(&game))
        .chain(ask_without_hook(&game))
        .chain(ineffective_settings(&game));
    warnings.extend(found.map(|found| split(&found)));
    if game.spec.pre_delete_update_strategy.is_none() {
        let message = "no PreDelete hook: pods are deleted without running a hook, and their players are disconnected; \
                       set preDeleteUpdateStrategy.hook";
        warnings.push(("spec".to_owned(), message.to_owned()));
    }
    warnings
}

/// Returns a problem of hook-operator with its path in the document.
pub(super) fn placed(problem: &FieldError) -> (String, String) {
    (format!("spec.{}", problem.path), problem.message.clone())
}

/// Returns what the API server would reject or drop, and what would keep an operator from working on the
/// object. Returns `None` for a kind that hookgate does not have, unless its name looks like a misspelt one of ours.
pub(super) fn problems(document: &Document, known: &KnownObjects) -> Option<Vec<Finding>> {
    if !document.is_ours() {
        return None;
    }
    if !KINDS.contains(&document.kind()) {
        return identity::unknown_kind(document);
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
    problems.iter().map(split).collect()
}

/// Returns the path of a workload's problem, and its message without the path: the output already starts with it.
fn split(problem: &workload::FieldError) -> (String, String) {
    let path = problem.path.clone();
    let sentence = problem.to_string();
    let message = sentence.strip_prefix(&format!("{path}: ")).map(str::to_owned);
    (path, message.unwrap_or(sentence))
}

pub(super) fn game(document: &Document) -> Result<GameDeployment, serde_json::Error> {
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
