//! Order of writes in the API server's audit log: the pods of each revision, and the verdicts of its hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shared_api::names::{hook_kind, hook_run_label as label, pod};
use test_kit::ControlPlane;

use crate::fail;

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_else(|error| fail(&format!("{}: {error}", log.display())))
}

/// Audit log of a namespace since a test began.
#[derive(Debug)]
pub struct AuditedOrder {
    log: PathBuf,
    begun: usize,
    namespace: String,
}

/// Write in the audit log.
struct Write {
    verb: String,
    resource: String,
    subresource: String,
    name: String,
    /// Time at which the API server received it, in a format that sorts as text.
    received: String,
    /// Version of the object after it; 0 if the answer has none.
    version: u64,
    object: Value,
}

impl AuditedOrder {
    /// Begins at the present end of the log.
    ///
    /// # Panics
    /// If the API server writes no audit log.
    pub fn begin(control_plane: &ControlPlane, namespace: &str) -> Self {
        let log = control_plane
            .audit_log()
            .unwrap_or_else(|error| fail(&format!("no audit log: {error}")));
        Self {
            begun: read(&log).len(),
            log,
            namespace: namespace.to_owned(),
        }
    }

    /// Returns the writes in the order in which the API server received them. The log has them in the order in which
    /// their answers were complete: a client may see a write, and react to it, before that.
    fn writes(&self) -> Vec<Write> {
        let text = read(&self.log);
        let lines = text[self.begun..].lines();
        let entries = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let done = entries.filter(|entry| {
            entry["stage"] == "ResponseComplete"
                && entry["objectRef"]["namespace"] == self.namespace.as_str()
                && entry["responseStatus"]["code"]
                    .as_u64()
                    .is_some_and(|code| code < 300)
                && !entry["requestURI"]
                    .as_str()
                    .unwrap_or_default()
                    .contains("dryRun=")
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let writes = done.map(|mut entry| Write {
            verb: text(&entry["verb"]),
            received: text(&entry["requestReceivedTimestamp"]),
            resource: text(&entry["objectRef"]["resource"]),
            subresource: text(&entry["objectRef"]["subresource"]),
            name: match &entry["responseObject"]["metadata"]["name"] {
                Value::String(name) => name.clone(),
                _ => text(&entry["objectRef"]["name"]),
            },
            version: text(&entry["responseObject"]["metadata"]["resourceVersion"])
                .parse()
                .unwrap_or(0),
            object: entry["responseObject"].take(),
        });
        let mut writes: Vec<Write> = writes.collect();
        writes.sort_by(|a, b| a.received.cmp(&b.received));
        // Of two writes at the same time, the one received last need not be stored last.
        let mut versions: BTreeMap<(String, String), u64> = BTreeMap::new();
        writes.retain(|write| {
            if write.subresource != "status" {
                return true;
            }
            let key = (write.resource.clone(), write.name.clone());
            let newest = versions.entry(key).or_default();
            let is_overtaken = write.version < *newest;
            *newest = write.version.max(*newest);
            !is_overtaken
        });
        writes
    }

    /// Describes the writes for the message of a failure.
    fn describe(&self) -> String {
        let line = |write: &Write| {
            let Write {
                received,
                version,
                verb,
                resource,
                subresource,
                name,
                ..
            } = write;
            format!("{received} {version} {verb} {resource}/{subresource} {name}\n")
        };
        self.writes().iter().map(line).collect()
    }

    /// Number of HookRuns of lifecycle hooks that were created.
    pub fn hook_runs(&self) -> usize {
        let is_new = |write: &&Write| {
            write.verb == "create"
                && write.resource == "hookruns"
                && write.object["metadata"]["labels"][label::TYPE] == hook_kind::LIFECYCLE
        };
        self.writes().iter().filter(is_new).count()
    }

    /// Number of writes until the first one of a pod that is created, changed or deleted, without those before `from`.
    /// Statuses that report the progress of pods come after it.
    pub fn count_before_pods(&self, from: usize, is_counted: impl Fn(&str, &str, &str) -> bool) -> usize {
        let writes = self.writes();
        let before = writes[from..]
            .iter()
            .take_while(|write| write.resource != "pods" || !write.subresource.is_empty());
        let counted = before.filter(|write| is_counted(&write.verb, &write.resource, &write.subresource));
        counted.count()
    }

    /// Number of writes of gamedeployment-operator: all but those of pods' status, which kubelets write, and of
    /// HookRuns' status.
    pub fn count(&self, is_counted: impl Fn(&str, &str, &str) -> bool) -> usize {
        let writes = self.writes();
        let counted = writes
            .iter()
            .filter(|write| is_counted(&write.verb, &write.resource, &write.subresource));
        counted.count()
    }

    /// Checks that every pod of a workload was created when none of another revision was left, also none that was
    /// terminating. Returns the number of pods that were created.
    ///
    /// # Panics
    /// If one was created beside another.
    pub fn check_apart(&self) -> usize {
        let writes = self.writes();
        let is_pod = |write: &&Write| write.resource == "pods" && write.subresource.is_empty();
        let revision = |write: &Write| {
            let revision = write.object["metadata"]["labels"][pod::REVISION].as_str();
            revision.map(str::to_owned)
        };
        // A pod that terminates gracefully is deleted twice, the second time by its kubelet.
        let mut gone: BTreeMap<&str, &str> = BTreeMap::new();
        for write in writes
            .iter()
            .filter(is_pod)
            .filter(|write| write.verb == "delete")
        {
            gone.insert(&write.name, &write.received);
        }
        let mut created: Vec<(String, &Write)> = Vec::new();
        for write in writes
            .iter()
            .filter(is_pod)
            .filter(|write| write.verb == "create")
        {
            let Some(own) = revision(write) else { continue };
            for (other, before) in created.iter().filter(|(other, _)| *other != own) {
                let end = gone.get(before.name.as_str());
                assert!(
                    end.is_some_and(|end| **end < *write.received),
                    "pod {} of {own} was created beside {} of {other}",
                    write.name,
                    before.name
                );
            }
            created.push((own, write));
        }
        created.len()
    }

    /// Checks every pod that got a revision: beyond the number of pods that a hook needs, its success at that
    /// revision was recorded before, and in a rollout that began again after a rollback once more. No pod gets a
    /// revision while the status records that its rollout is rolled back. Checks every HookRun that was created: as many pods of its revision were ready
    /// as its point needs. Returns the order in which the hooks of each revision succeeded, oldest
    /// revision first.
    ///
    /// # Panics
    /// If a pod or a HookRun came too early.
    pub fn check(&self, hooks: &[(&str, usize)]) -> Vec<Vec<String>> {
        let mut pods: BTreeMap<String, String> = BTreeMap::new();
        let mut revisions: Vec<String> = Vec::new();
        let mut succeeded: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut ready: BTreeSet<String> = BTreeSet::new();
        let mut rolled_back: Option<String> = None;
        for write in self.writes() {
            match (
                write.resource.as_str(),
                write.verb.as_str(),
                write.subresource.as_str(),
            ) {
                ("pods", "delete", "") => {
                    pods.remove(&write.name);
                    ready.remove(&write.name);
                }
                ("hookruns", "create", "") => {
                    let labels = &write.object["metadata"]["labels"];
                    let hook = labels[label::LIFECYCLE_HOOK].as_str();
                    let Some((hook, needs)) = hooks.iter().find(|(known, _)| Some(*known) == hook) else {
                        continue;
                    };
                    let revision = labels[label::REVISION].as_str();
                    let at_revision = pods.iter().filter(|(_, known)| Some(known.as_str()) == revision);
                    let count = at_revision.filter(|(name, _)| ready.contains(*name)).count();
                    assert!(
                        count >= *needs,
                        "{hook} began when {count} pods were ready at {revision:?}: it needs {needs}; {ready:?}\n{}",
                        self.describe()
                    );
                }
                // A write whose client died has no answer: then the next one, by a kubelet, shows the revision.
                ("pods", "create" | "patch" | "update", subresource @ ("" | "status")) => {
                    let conditions = write.object["status"]["conditions"].as_array();
                    let is_true =
                        |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
                    if conditions.into_iter().flatten().any(is_true) {
                        ready.insert(write.name.clone());
                    } else {
                        ready.remove(&write.name);
                    }
                    let labels = &write.object["metadata"]["labels"];
                    let Some(revision) = labels[pod::REVISION].as_str() else {
                        continue;
                    };
                    let before = pods.insert(write.name.clone(), revision.to_owned());
                    if before.as_deref() == Some(revision) {
                        continue;
                    }
                    let is_own = subresource.is_empty();
                    assert!(
                        !is_own || rolled_back.as_deref() != Some(revision),
                        "pod {} gets {revision}, which is rolled back",
                        write.name
                    );
                    if !revisions.iter().any(|known| known == revision) {
                        revisions.push(revision.to_owned());
                    }
                    let count = pods.values().filter(|known| *known == revision).count();
                    let done = succeeded.get(revision).cloned().unwrap_or_default();
                    for (hook, needs) in hooks {
                        assert!(
                            count <= *needs || done.iter().any(|name| name == hook),
                            "pod {} is number {count} at {revision}, and {hook}, which needs {needs}, has not succeeded: \
                             {done:?}",
                            write.name
                        );
                    }
                }
                ("gamedeployments", "patch", "status") => {
                    let from = write.object["status"]["rollback"]["fromRevision"].as_str();
                    if let Some(from) = from {
                        succeeded.remove(from);
                    }
                    rolled_back = from.map(str::to_owned);
                }
                ("hookruns", "patch", "status") if write.object["status"]["phase"] == "Successful" => {
                    let labels = &write.object["metadata"]["labels"];
                    let (Some(revision), Some(hook)) = (
                        labels[label::REVISION].as_str(),
                        labels[label::LIFECYCLE_HOOK].as_str(),
                    ) else {
                        continue;
                    };
                    let done = succeeded.entry(revision.to_owned()).or_default();
                    if !done.iter().any(|name| name == hook) {
                        done.push(hook.to_owned());
                    }
                }
                _ => {}
            }
        }
        let seen: BTreeSet<&String> = revisions.iter().collect();
        assert_eq!(seen.len(), revisions.len());
        revisions
            .iter()
            .map(|revision| succeeded.get(revision).cloned().unwrap_or_default())
            .collect()
    }
}
