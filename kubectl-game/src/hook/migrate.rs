//! `kubectl game migrate --check`: what changes for the hooks and workloads of a cluster when hookgate replaces the
//! original operators. Reads the cluster and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use clap::Args;
use gamedeployment_core::workload::Workload;
use hook_core::resolve::refused_lists;
use kube::Resource;
use kube::core::ApiResource;
use serde_json::{Value, json};
use shared_api::{GameDeployment, HookRun, HookTemplate, Phase};

use super::lint::{self, KnownObjects, LintFormat};
use super::original;
use crate::cluster::{ClusterConnection, Failure, Flags};
use crate::command::{Outcome, none_found, print, print_lines};
use crate::draw::document::{OutputFormat, structured};
use crate::draw::text::clean;
use crate::manifest::{Document, HookDocument};

/// Checks a migration.
#[derive(Debug, Clone, Args)]
pub(crate) struct Migrate {
    /// Only report what would change; required, because migrate has no other mode
    #[arg(long, required = true)]
    check: bool,

    /// Check all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Output format [default: human-readable]
    #[arg(short = 'o', long, value_name = "FORMAT")]
    output: Option<LintFormat>,

    #[command(flatten)]
    flags: Flags,
}

/// Objects of a kind, and the reason why they could not be listed.
type Optional = (Vec<Value>, Option<String>);

/// An object that hookgate rejects or handles differently.
struct Affected {
    namespace: String,
    kind: String,
    name: String,
    /// Workloads whose hooks use the template.
    used_by: Vec<String>,
    /// Differences with their paths in the object.
    differences: Vec<(String, String)>,
}

/// Result of the check.
#[derive(Default)]
struct Report {
    /// Affected objects, by namespace, kind and name.
    affected: Vec<Affected>,
    /// All GameDeployments, as namespace and name.
    workloads: BTreeSet<String>,
    templates: usize,
    /// HookRuns of GameDeployments without a result, by namespace.
    running: BTreeMap<String, usize>,
    /// Number of `GameStatefulSet`s, by namespace.
    stateful_sets: BTreeMap<String, usize>,
    /// Reason why kinds could not be listed.
    not_listed: Vec<String>,
}

impl Migrate {
    pub(crate) async fn main(&self) -> Outcome {
        let cluster = self.flags.cluster().await?;
        let everywhere = self.all_namespaces;
        let (workloads, templates, (runs, no_runs), (stateful_sets, no_sets)) = tokio::try_join!(
            cluster.list_raw(of_kind::<GameDeployment>(), everywhere),
            cluster.list_raw(of_kind::<HookTemplate>(), everywhere),
            optional(&cluster, of_kind::<HookRun>(), everywhere),
            optional(&cluster, stateful_sets(), everywhere),
        )?;
        let not_listed = no_runs.into_iter().chain(no_sets).collect();
        if workloads.is_empty() && templates.is_empty() && stateful_sets.is_empty() {
            let kinds = "GameDeployments, HookTemplates or GameStatefulSets";
            return Err(Failure::NotFound(none_found(
                kinds,
                everywhere,
                &cluster.namespace,
            )));
        }
        let mut report = Report::of(workloads, templates, &runs, &stateful_sets);
        report.not_listed = not_listed;
        match self.output {
            Some(LintFormat::Json) => print(&structured(&report.json(), OutputFormat::Json)?),
            None => print_lines(&report.lines()),
        }
        Ok(ExitCode::from(u8::from(!report.affected.is_empty())))
    }
}

/// Lists a kind that the check only counts. The user may lack the permission, or the kind may not be installed.
async fn optional(
    cluster: &ClusterConnection,
    kind: ApiResource,
    everywhere: bool,
) -> Result<Optional, Failure> {
    match cluster.list_raw(kind, everywhere).await {
        Ok(objects) => Ok((objects, None)),
        Err(Failure::NotServed(_)) => Ok((vec![], None)),
        Err(Failure::Forbidden(message)) => Ok((vec![], Some(message))),
        Err(other) => Err(other),
    }
}

fn of_kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// The workload of the original operators that hookgate does not manage.
fn stateful_sets() -> ApiResource {
    ApiResource {
        kind: "GameStatefulSet".to_owned(),
        plural: "gamestatefulsets".to_owned(),
        ..of_kind::<GameDeployment>()
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn identity(object: &Value) -> String {
    format!(
        "{}/{}",
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name")
    )
}

fn by_namespace<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for object in objects {
        *counts
            .entry(text(object, "/metadata/namespace").to_owned())
            .or_default() += 1;
    }
    counts
}

impl Report {
    fn of(workloads: Vec<Value>, templates: Vec<Value>, runs: &[Value], stateful_sets: &[Value]) -> Self {
        let is_running = |run: &&Value| {
            let owners = run.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let is_gated = owners
                .into_iter()
                .flatten()
                .any(|owner| owner["kind"] == "GameDeployment");
            let phase = run.pointer("/status/phase").cloned().unwrap_or_default();
            is_gated && !serde_json::from_value::<Phase>(phase).is_ok_and(Phase::is_final)
        };
        let mut report = Self {
            affected: vec![],
            workloads: workloads.iter().map(identity).collect(),
            templates: templates.len(),
            running: by_namespace(runs.iter().filter(is_running)),
            stateful_sets: by_namespace(stateful_sets.iter()),
            not_listed: vec![],
        };
        let users = users(workloads.iter().chain(stateful_sets));
        let mut documents: Vec<Document> = workloads
            .into_iter()
            .chain(templates)
            .map(Document::live)
            .collect();
        documents.sort_by(|one, other| key(one).cmp(&key(other)));
        let known = KnownObjects::of(&documents);
        for document in &documents {
            let differences = differences(document, &known);
            if differences.is_empty() {
                continue;
            }
            let (namespace, kind, name) = key(document);
            let template = (namespace.to_owned(), name.to_owned());
            let used_by = users.get(&template).filter(|_| kind == "HookTemplate");
            report.affected.push(Affected {
                namespace: namespace.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                used_by: used_by.into_iter().flatten().cloned().collect(),
                differences,
            });
        }
        report
    }

    /// Returns the affected GameDeployments: those with a difference of their own, and those that use an affected
    /// template.
    fn affected_workloads(&self) -> BTreeSet<String> {
        let names = self.affected.iter().flat_map(|object| {
            let own = (object.kind == "GameDeployment").then_some(&object.name);
            let names = own.into_iter().chain(&object.used_by);
            names.map(|name| format!("{}/{name}", object.namespace))
        });
        names.filter(|name| self.workloads.contains(name)).collect()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for object in &self.affected {
            let Affected {
                namespace,
                kind,
                name,
                used_by,
                differences,
            } = object;
            let used_by = match (kind.as_str(), used_by.is_empty()) {
                ("HookTemplate", true) => ", used by no workload".to_owned(),
                (_, true) => String::new(),
                (_, false) => format!(", used by {}", used_by.join(", ")),
            };
            lines.push(clean(&format!("{kind} {namespace}/{name}{used_by}:")));
            lines.extend(
                differences
                    .iter()
                    .map(|(path, message)| clean(&format!("  {path}: {message}"))),
            );
        }
        for (namespace, count) in &self.running {
            lines.push(format!(
                "HookRuns of GameDeployments in progress in {}: {count}; the switch deletes them, and the hooks are rerun",
                clean(namespace)
            ));
        }
        for (namespace, count) in &self.stateful_sets {
            lines.push(format!(
                "GameStatefulSets in {}: {count}; hookgate does not manage this kind, so keep the operator that does",
                clean(namespace)
            ));
        }
        lines.extend(
            self.not_listed
                .iter()
                .map(|message| clean(&format!("Not counted: {message}"))),
        );
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let affected = self.affected_workloads();
        lines.push(format!(
            "GameDeployments: {}, affected: {}. HookTemplates: {}, affected: {}.",
            self.workloads.len(),
            affected.len(),
            self.templates,
            self.affected
                .iter()
                .filter(|object| object.kind == "HookTemplate")
                .count(),
        ));
        if !affected.is_empty() {
            let names = affected.into_iter().collect::<Vec<_>>().join(", ");
            lines.push(clean(&format!(
                "Fix these before the switch, or accept the difference: {names}"
            )));
        }
        lines
    }

    fn json(&self) -> Value {
        let affected = self.affected.iter().map(|object| {
            let differences = object.differences.iter();
            json!({
                "namespace": object.namespace,
                "kind": object.kind,
                "name": object.name,
                "usedBy": object.used_by,
                "differences": differences
                    .map(|(path, message)| json!({ "path": path, "message": message }))
                    .collect::<Value>(),
            })
        });
        json!({
            "affected": affected.collect::<Value>(),
            "affectedGameDeployments": self.affected_workloads(),
            "gameDeployments": self.workloads.len(),
            "hookTemplates": self.templates,
            "hookRunsInProgress": self.running,
            "gameStatefulSets": self.stateful_sets,
            "notListed": self.not_listed,
        })
    }
}

/// Returns namespace, kind and name.
fn key(document: &Document) -> (&str, &str, &str) {
    (
        document.namespace().unwrap_or_default(),
        document.kind(),
        document.name(),
    )
}

/// Returns the names of the workloads that use each template, by the template's namespace and name. Reads the objects as
/// they are stored, because the specs need not be valid.
fn users<'a>(workloads: impl Iterator<Item = &'a Value>) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut users: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for workload in workloads {
        let namespace = text(workload, "/metadata/namespace");
        let mut templates = vec![];
        named_templates(&workload["spec"], &mut templates);
        for template in templates {
            let template = (namespace.to_owned(), template.to_owned());
            users
                .entry(template)
                .or_default()
                .insert(text(workload, "/metadata/name").to_owned());
        }
    }
    users
}

/// Adds every `templateName` of a value.
fn named_templates<'a>(value: &'a Value, names: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            names.extend(fields.get("templateName").and_then(Value::as_str));
            fields.values().for_each(|field| named_templates(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| named_templates(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the workload of a valid GameDeployment.
fn workload(document: &Document) -> Option<Workload> {
    if document.kind() != "GameDeployment" {
        return None;
    }
    Workload::read(&lint::game(document).ok()?).ok()
}

/// Returns what hookgate rejects in an object, and what it handles differently.
fn differences(document: &Document, known: &KnownObjects) -> Vec<(String, String)> {
    let problems = lint::problems(document, known).unwrap_or_default();
    let mut found: Vec<_> = problems
        .into_iter()
        .map(|found| (found.path, found.message))
        .collect();
    if let Some(Ok(HookDocument::Template(spec))) = document.is_hook().then(|| document.hook()) {
        let metrics = &spec.metrics;
        let differences = original::differences(metrics)
            .into_iter()
            .chain(refused_lists(metrics));
        found.extend(differences.map(|found| lint::placed(&found)));
    } else if let Some(workload) = workload(document) {
        found.extend(known.templates.missing(&workload, document));
        found.extend(original::of_workload(&workload));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": kind,
            "metadata": { "namespace": "games", "name": name }, "spec": spec,
        })
    }

    fn workload(name: &str, template: &str) -> Value {
        let hook = json!({ "hook": { "templateName": template } });
        let labels = json!({ "app": name });
        let pod = json!({ "containers": [{ "name": "game", "image": "game:1" }] });
        let spec = json!({
            "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels }, "spec": pod },
            "preDeleteUpdateStrategy": hook,
        });
        object("GameDeployment", name, spec)
    }

    fn run(name: &str, owner: &str, phase: &str) -> Value {
        let mut run = object("HookRun", name, json!({}));
        run["metadata"]["ownerReferences"] = json!([{ "kind": owner, "name": "x" }]);
        run["status"] = json!({ "phase": phase });
        run
    }

    #[test]
    fn a_template_that_cannot_be_parsed_is_not_missing() {
        let web = json!({ "web": { "url": "http://g/" } });
        let metric = json!({ "name": "m", "count": "3", "interval": "5s", "provider": web });
        let broken = object("HookTemplate", "broken", json!({ "metrics": [metric] }));
        let sets = [object(
            "GameStatefulSet",
            "world",
            workload("world", "broken")["spec"].clone(),
        )];
        let report = Report::of(vec![workload("arena", "broken")], vec![broken], &[], &sets);
        let lines = report.lines();
        assert_eq!(lines[0], "HookTemplate games/broken, used by arena, world:");
        assert!(lines[1].starts_with("  spec.metrics[0].count: "), "{lines:?}");
        assert_eq!(
            lines[2..],
            [
                "GameStatefulSets in games: 1; hookgate does not manage this kind, so keep the operator that does",
                "",
                "GameDeployments: 1, affected: 1. HookTemplates: 1, affected: 1.",
                "Fix these before the switch, or accept the difference: games/arena",
            ]
        );
    }

    #[test]
    fn only_unfinished_runs_of_game_deployments_are_deleted_by_the_switch() {
        let runs = [
            run("a", "GameDeployment", "Running"),
            run("b", "GameDeployment", "Successful"),
            run("c", "GameStatefulSet", "Running"),
            run("d", "GameDeployment", ""),
            object("HookRun", "e", json!({})),
        ];
        let mut report = Report::of(vec![], vec![], &runs, &[]);
        report.not_listed = vec!["you are not allowed to list it".to_owned()];
        assert_eq!(
            report.lines()[..2],
            [
                "HookRuns of GameDeployments in progress in games: 2; the switch deletes them, and the hooks are rerun",
                "Not counted: you are not allowed to list it",
            ]
        );
    }
}
