//! Semantic comparison of pod templates, by what the API server would make of them.
//!
//! Two templates are equal if they produce the same pods. Go writes `creationTimestamp: null` and empty
//! `resources`, the API server fills in defaults, some users write `1000m` and others `1`: none of these is a
//! change, and no pod may restart for them. Anything not known to be equivalent is a change, even in fields
//! unknown to this version. This module reads only its argument and validates nothing.

mod canonical;
mod pod;
mod quantity;
mod schema;
mod volume;

#[cfg(test)]
mod default_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use canonical::text;

/// A pod template. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Template {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: Value,
    canonical: Value,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    containers: Vec<Container>,
}

/// The parts of an app container (not an init container) that updates need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Name; empty if the template has none.
    pub name: String,
    /// Image as written; empty if the template has none.
    pub image: String,
}

impl Template {
    /// Reads a template from JSON. Accepts any value: one that is not a template equals only the same value.
    pub fn read(raw: &Value) -> Self {
        let canonical = canonical::canonical(raw);
        let texts = |field: &str| -> BTreeMap<String, String> {
            let map = canonical.get("metadata").and_then(|metadata| metadata.get(field));
            let pairs = map.and_then(Value::as_object).into_iter().flatten();
            pairs
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect()
        };
        let (labels, annotations) = (texts("labels"), texts("annotations"));
        let containers = canonical.get("spec").and_then(|spec| spec.get("containers"));
        let containers = containers.and_then(Value::as_array).into_iter().flatten();
        let containers = containers.map(container).collect();
        let inner = Inner {
            raw: raw.clone(),
            labels,
            annotations,
            containers,
            canonical,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the original template with its unknown fields, from which pods are created.
    pub fn raw(&self) -> &Value {
        &self.inner.raw
    }

    /// Labels of the pods, except those whose value is not a string.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.inner.labels
    }

    /// Annotations of the pods, except those whose value is not a string.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.inner.annotations
    }

    /// App containers in order, without `initContainers`.
    pub fn containers(&self) -> &[Container] {
        &self.inner.containers
    }

    /// Returns the canonical form, which equal templates share. Unsuitable for creating pods: defaults are
    /// removed.
    pub fn canonical(&self) -> &Value {
        &self.inner.canonical
    }

    /// Whether both produce the same pods.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.canonical == other.inner.canonical
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.is_equivalent(other)
    }
}

impl Eq for Template {}

fn container(value: &Value) -> Container {
    let text = |field: &str| {
        let value = value.get(field).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    Container {
        name: text("name"),
        image: text("image"),
    }
}
