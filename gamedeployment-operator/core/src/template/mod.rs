//! A pod template by its meaning: what the API server would make of it.
//!
//! Two templates are equal when the same pods come out of them. Go writes `creationTimestamp: null` and empty
//! `resources`, the API server fills in defaults, people write `1000m` where others write `1`: none of that is a
//! change, and no pod may restart for it. Whatever is not known to mean the same is a change, also in fields that
//! this version has never heard of. Reads nothing but its argument, validates nothing.

mod canonical;
mod kind;
mod pod;
mod quantity;
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

/// A pod template. A copy costs nothing.
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

/// A container of the app (not of the init phase), as far as updates need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its name; empty where the template has none.
    pub name: String,
    /// Its image as written; empty where the template has none.
    pub image: String,
}

impl Template {
    /// Reads a template from its JSON. Takes anything: what is no template equals only what says the same.
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

    /// The template as it was read, unknown fields and all: what pods are made from.
    pub fn raw(&self) -> &Value {
        &self.inner.raw
    }

    /// Labels of the pods; a label whose value is no text is left out.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.inner.labels
    }

    /// Annotations of the pods; an annotation whose value is no text is left out.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.inner.annotations
    }

    /// The app's containers in their order, without `initContainers`.
    pub fn containers(&self) -> &[Container] {
        &self.inner.containers
    }

    /// The one form of everything that means the same. Not for making pods: defaults are taken out of it.
    pub fn canonical(&self) -> &Value {
        &self.inner.canonical
    }

    /// Whether the same pods come out of both.
    pub fn same_meaning(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.canonical == other.inner.canonical
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.same_meaning(other)
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
