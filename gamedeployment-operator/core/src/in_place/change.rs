//! Comparison of two templates: the in-place change to write to a pod, or the fields that forbid it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};
use shared_api::names::template::RESTARTED_AT;

use crate::image::default_pull_policy;
use crate::template::Template;

/// Change that turns a pod of one revision into a pod of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// New images by container.
    pub images: BTreeMap<String, String>,
    /// Changed labels of the template.
    pub labels: MetadataChange,
    /// Changed annotations of the template.
    pub annotations: MetadataChange,
}

impl Change {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Change of a string map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// New keys, and keys with a new value.
    pub set: BTreeMap<String, String>,
    /// Keys that the template no longer has, sorted.
    pub removed: Vec<String>,
}

impl MetadataChange {
    fn between(from: &BTreeMap<String, String>, to: &BTreeMap<String, String>) -> Self {
        let set = to.iter().filter(|(key, value)| from.get(*key) != Some(value));
        let removed = from.keys().filter(|key| !to.contains_key(*key));
        Self {
            set: set.map(|(key, value)| (key.clone(), value.clone())).collect(),
            removed: removed.cloned().collect(),
        }
    }
}

/// Reason why a pod cannot be updated in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInPlace {
    /// Paths in the GameDeployment of all fields that forbid it. Never empty.
    pub fields: Vec<String>,
}

impl fmt::Display for NotInPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "only container images, labels and annotations can be changed in place; revert the change to {}, or set \
             spec.updateStrategy.inPlaceUpdateStrategy.fallback to Recreate to replace the pods",
            self.fields.join(", ")
        )
    }
}

impl std::error::Error for NotInPlace {}

const TEMPLATE: &str = "spec.template";
const CONTAINERS: &str = "spec.template.spec.containers";

/// Returns the in-place change from one template to the other, or every field that forbids it.
pub fn change(from: &Template, to: &Template) -> Result<Change, NotInPlace> {
    let (old, new) = (from.canonical(), to.canonical());
    let mut fields = differences(TEMPLATE, &old, &new, &["metadata", "spec"]);
    let (one, two) = (part(&old, "metadata"), part(&new, "metadata"));
    fields.extend(differences(
        "spec.template.metadata",
        one,
        two,
        &["labels", "annotations"],
    ));
    for field in ["labels", "annotations"] {
        if without_texts(one.get(field)) != without_texts(two.get(field)) {
            fields.push(format!(
                "spec.template.metadata.{field} (a value is not a string)"
            ));
        }
    }
    let (before, after) = (from.annotations(), to.annotations());
    let restarted = after.get(RESTARTED_AT);
    if restarted.is_some() && restarted != before.get(RESTARTED_AT) {
        fields.push(format!("spec.template.metadata.annotations[{RESTARTED_AT}]"));
    }
    let (one, two) = (part(&old, "spec"), part(&new, "spec"));
    fields.extend(differences("spec.template.spec", one, two, &["containers"]));
    let containers = (one.get("containers"), two.get("containers"));
    let images = if containers.0 == containers.1 {
        BTreeMap::new()
    } else {
        let (found, images) = compare_containers(containers.0, containers.1);
        fields.extend(found);
        images
    };
    if !fields.is_empty() {
        return Err(NotInPlace { fields });
    }
    Ok(Change {
        images,
        labels: MetadataChange::between(&from.labels(), &to.labels()),
        annotations: MetadataChange::between(&before, &after),
    })
}

fn part<'a>(template: &'a Value, name: &str) -> &'a Value {
    template.get(name).unwrap_or(&Value::Null)
}

/// Returns the fields of an object that differ, except `allowed`; the path of the object itself if either
/// value is not an object.
fn differences(path: &str, from: &Value, to: &Value, allowed: &[&str]) -> Vec<String> {
    let empty = Map::new();
    let object = |value: &'_ Value| value.is_null() || value.is_object();
    if !object(from) || !object(to) {
        return if from == to {
            Vec::new()
        } else {
            vec![path.to_owned()]
        };
    }
    let (from, to) = (
        from.as_object().unwrap_or(&empty),
        to.as_object().unwrap_or(&empty),
    );
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let changed = names
        .into_iter()
        .filter(|name| !allowed.contains(&name.as_str()) && from.get(*name) != to.get(*name));
    changed.map(|name| format!("{path}.{name}")).collect()
}

/// Returns the non-string values of a string map, which the operator does not write.
fn without_texts(map: Option<&Value>) -> Option<Value> {
    match map? {
        Value::Object(fields) => {
            let others = fields.iter().filter(|(_, value)| !value.is_string());
            let others: Map<_, _> = others
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            (!others.is_empty()).then_some(Value::Object(others))
        }
        other => Some(other.clone()),
    }
}

type Named<'a> = Vec<(&'a str, &'a Value)>;

/// Returns the fields that differ and the images that changed.
fn compare_containers(from: Option<&Value>, to: Option<&Value>) -> (Vec<String>, BTreeMap<String, String>) {
    let mut images = BTreeMap::new();
    let (Some(from), Some(to)) = (named(from), named(to)) else {
        return (vec![CONTAINERS.to_owned()], images);
    };
    let mut fields = compare_names(&from, &to);
    for (name, new) in &to {
        let Some((_, old)) = from.iter().find(|(old, _)| old == name) else {
            continue;
        };
        let path = format!("{CONTAINERS}[{name}]");
        let image = image(new);
        if image.is_empty() && *old != *new {
            fields.push(format!("{path}.image (empty)"));
        }
        if image != self::image(old) {
            images.insert((*name).to_owned(), image.to_owned());
        }
        fields.extend(differences(&path, old, new, &["image", "imagePullPolicy"]));
        if policy_changed(old, new) {
            fields.push(format!("{path}.imagePullPolicy"));
        }
    }
    (fields, images)
}

/// Returns which containers were added, removed or reordered.
fn compare_names(from: &Named<'_>, to: &Named<'_>) -> Vec<String> {
    let names = |list: &Named<'_>| -> BTreeSet<String> {
        let names = list.iter().map(|(name, _)| (*name).to_owned());
        names.collect()
    };
    let (before, after) = (names(from), names(to));
    let added = after.difference(&before).map(|name| format!("{name} was added"));
    let removed = before
        .difference(&after)
        .map(|name| format!("{name} was removed"));
    let mut found: Vec<String> = added.chain(removed).collect();
    let order = |list: &Named<'_>| -> Vec<String> {
        let names = list.iter().map(|(name, _)| (*name).to_owned());
        let common = names.filter(|name| before.contains(name) && after.contains(name));
        common.collect()
    };
    if before.len() != from.len() || after.len() != to.len() {
        found.push("duplicate name".to_owned());
    } else if order(from) != order(to) {
        found.push("order changed".to_owned());
    }
    let paths = found.into_iter().map(|what| format!("{CONTAINERS} ({what})"));
    paths.collect()
}

/// Returns containers with their names; `None` if the value is not a list of named objects.
fn named(list: Option<&Value>) -> Option<Named<'_>> {
    let items = match list {
        None => return Some(Vec::new()),
        Some(list) => list.as_array()?,
    };
    let named = |item| Some((Value::as_object(item)?.get("name")?.as_str()?, item));
    items.iter().map(named).collect()
}

fn image(container: &Value) -> &str {
    container.get("image").and_then(Value::as_str).unwrap_or_default()
}

/// Whether the user requested another policy. A policy that merely follows from the image's tag is not a
/// requested change, so the pod keeps its own. The canonical form omits a policy that follows from the tag.
fn policy_changed(old: &Value, new: &Value) -> bool {
    let (before, after) = (old.get("imagePullPolicy"), new.get("imagePullPolicy"));
    if before == after {
        return false;
    }
    let effective = |container: &Value, written: Option<&Value>| match written {
        Some(policy) => policy.clone(),
        None => default_pull_policy(image(container)).into(),
    };
    effective(old, before) != effective(new, after)
}
