//! New pods: names, labels, readiness gate and index.
//!
//! A name is a function of the workload, its generation and the names in use: the same decision made twice,
//! by two leaders or after a lost response, requests the same pod, and the API server creates it once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use shared_api::names::{eviction, pod as label};

use crate::autoscaler_annotations;
use crate::cluster::Cluster;
use crate::digest::fnv;
use crate::gate::owner;
use crate::guard_check;
use crate::plan::NewPod;
use crate::template::Template;
use crate::workload::{DisruptionPolicy, IndexRange, Workload};

/// Letters and digits that form no words and are not mistaken for one another, as chosen by Kubernetes.
const ALPHABET: [char; 27] = [
    'b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'z', '2',
    '4', '5', '6', '7', '8', '9',
];
const ID_LENGTH: usize = 5;
/// Longest pod name that is also a valid host name.
const MAX_NAME_LEN: usize = 63;

/// Allocates instance ids and indexes.
pub struct PodFactory<'a> {
    workload: &'a Workload,
    cluster: &'a dyn Cluster,
    /// Instance ids of existing pods and runs.
    taken: BTreeSet<String>,
    indexes: BTreeSet<i64>,
    /// Parsed templates by revision.
    templates: BTreeMap<String, ParsedTemplate>,
    /// Search start: no index below it is free.
    next_index: i64,
    next: u64,
}

impl<'a> PodFactory<'a> {
    /// Creates a factory with these instance ids and indexes in use.
    pub fn new(
        workload: &'a Workload,
        cluster: &'a dyn Cluster,
        taken: BTreeSet<String>,
        indexes: BTreeSet<i64>,
    ) -> Self {
        Self {
            workload,
            cluster,
            taken,
            indexes,
            templates: BTreeMap::new(),
            next_index: i64::MIN,
            next: 0,
        }
    }

    /// Builds a pod at a revision, whose template is parsed for its first pod; `None` if every index is in use.
    pub fn pod(&mut self, revision: &str, template: &Template) -> Option<NewPod> {
        let index = match self.workload.indexes {
            Some(range) => Some(self.free_index(range)?),
            None => None,
        };
        let id = self.free_id();
        let name = format!("{}-{id}", prefix(&self.workload.name));
        let template = self
            .templates
            .entry(revision.to_owned())
            .or_insert_with(|| ParsedTemplate::of(template));
        let serves_evictions = self.cluster.serves_evictions();
        let manifest = manifest(
            self.workload,
            &name,
            &id,
            revision,
            template,
            index,
            serves_evictions,
        );
        Some(NewPod { name, manifest })
    }

    fn free_index(&mut self, range: IndexRange) -> Option<i64> {
        let mut left = range.start.max(self.next_index)..range.end;
        let free = left.find(|index| !self.indexes.contains(index));
        self.next_index = left.start;
        free
    }

    fn free_id(&mut self) -> String {
        loop {
            let seed = format!("{}/{}/{}", self.workload.uid, self.workload.generation, self.next);
            self.next += 1;
            let id = instance_id(fnv(seed.as_bytes()));
            let name = format!("{}-{id}", prefix(&self.workload.name));
            if self.taken.insert(id.clone()) && !self.cluster.has_pod(&name) {
                return id;
            }
        }
    }
}

/// Parts of a template that its pods get.
struct ParsedTemplate {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    finalizers: Option<Value>,
    spec: Value,
}

impl ParsedTemplate {
    fn of(template: &Template) -> Self {
        let mut raw = template.raw();
        Self {
            labels: template.labels(),
            annotations: template.annotations(),
            finalizers: raw.pointer("/metadata/finalizers").cloned(),
            spec: raw.get_mut("spec").map_or_else(|| json!({}), Value::take),
        }
    }
}

/// Returns the part of a pod's name before its id.
fn prefix(workload: &str) -> &str {
    let room = MAX_NAME_LEN - ID_LENGTH - 1;
    let end = workload
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|at| *at <= room)
        .last()
        .unwrap_or(0);
    if workload.len() <= room {
        workload
    } else {
        workload
            .get(..end)
            .unwrap_or(workload)
            .trim_end_matches(['-', '.'])
    }
}

fn instance_id(mut hash: u64) -> String {
    // Hashes of neighbouring seeds are alike in their low bits; mixing spreads the difference.
    hash = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    let digits = std::iter::repeat_with(|| {
        let digit = usize::try_from(hash % 27).unwrap_or(0);
        hash /= 27;
        ALPHABET.get(digit).copied().unwrap_or('b')
    });
    digits.take(ID_LENGTH).collect()
}

fn manifest(
    workload: &Workload,
    name: &str,
    id: &str,
    revision: &str,
    template: &ParsedTemplate,
    index: Option<i64>,
    serves_evictions: bool,
) -> Value {
    let mut labels: BTreeMap<&str, &str> = text_of(&template.labels);
    labels.insert(label::REVISION, revision);
    labels.insert(label::INSTANCE, id);
    if workload.disruption.policy == DisruptionPolicy::Ask {
        labels.insert(label::REMOVAL_GUARD, label::REMOVAL_GUARD_ASK);
    }
    let mut annotations: BTreeMap<&str, &str> = text_of(&template.annotations);
    let changes = autoscaler_annotations::changes_of_template(&template.annotations, workload);
    for (key, value) in &changes {
        annotations.remove(key.as_str());
        annotations.extend(value.as_deref().map(|value| (key.as_str(), value)));
    }
    let index = index.map(|index| index.to_string());
    if let Some(index) = &index {
        annotations.insert(label::INDEX, index);
    }
    let mut metadata = json!({
        "name": name,
        "namespace": workload.namespace,
        "labels": labels,
        "ownerReferences": [owner(&workload.name, &workload.uid)],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    if let Some(finalizers) = &template.finalizers {
        metadata["finalizers"] = finalizers.clone();
    }
    let mut spec = template.spec.clone();
    if let Value::Object(spec) = &mut spec {
        if serves_evictions && guard_check::is_expected(workload) {
            add_responder(spec);
        }
        if workload.readiness_gate {
            add_readiness_gate(spec);
        }
        if let Some(index) = &index {
            add_index(spec, index);
        }
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

fn text_of(map: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    map.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn add_readiness_gate(spec: &mut Map<String, Value>) {
    let gate = json!({ "conditionType": label::IN_PLACE_READY });
    match spec.get_mut("readinessGates") {
        Some(Value::Array(gates)) => {
            if !gates.contains(&gate) {
                gates.push(gate);
            }
        }
        _ => {
            spec.insert("readinessGates".to_owned(), json!([gate]));
        }
    }
}

/// Registers the operator as a responder to the pod's Evictions. Does nothing for a template with a scheduling group,
/// which the API does not support, or with the maximum number of responders: it may have been recorded before the
/// policy was `Ask`.
fn add_responder(spec: &mut Map<String, Value>) {
    if spec.get("schedulingGroup").is_some_and(|group| !group.is_null()) {
        return;
    }
    let responder = json!({ "name": eviction::RESPONDER, "priority": eviction::PRIORITY });
    match spec.get_mut("evictionResponders") {
        Some(Value::Array(responders)) => {
            let is_listed = responders
                .iter()
                .any(|known| known["name"] == eviction::RESPONDER);
            if !is_listed && responders.len() < eviction::MAX_RESPONDERS {
                responders.push(responder);
            }
        }
        _ => {
            spec.insert("evictionResponders".to_owned(), json!([responder]));
        }
    }
}

/// Sets an environment variable with the pod's index in every container.
fn add_index(spec: &mut Map<String, Value>, index: &str) {
    let Some(Value::Array(containers)) = spec.get_mut("containers") else {
        return;
    };
    for container in containers.iter_mut().filter_map(Value::as_object_mut) {
        let variable = json!({ "name": label::INDEX_VARIABLE, "value": index });
        match container.get_mut("env") {
            Some(Value::Array(variables)) => {
                variables.retain(|known| known.get("name") != Some(&json!(label::INDEX_VARIABLE)));
                // Placed first, so that other variables can refer to it.
                variables.insert(0, variable);
            }
            _ => {
                container.insert("env".to_owned(), json!([variable]));
            }
        }
    }
}

#[cfg(test)]
mod tests;
