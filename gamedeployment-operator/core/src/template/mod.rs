//! Semantic comparison of pod templates, by what the API server would make of them.
//!
//! Two templates are equal if they produce the same pods. Go writes `creationTimestamp: null` and empty
//! `resources`, the API server fills in defaults, some users write `1000m` and others `1`: none of these is a
//! change, and no pod may restart for them. Anything not known to be equivalent is a change, even in fields
//! unknown to this version. This module reads only its argument and validates nothing.
//!
//! A template is kept as texts: users decide how many templates there are, and parsed, a list of numbers takes sixteen
//! times as many bytes. Its parts are parsed on demand; what needs them for many pods parses them once.

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

use serde_json::{Map, Value, json};
use shared_api::json_text::JsonText;

/// A pod template, kept as texts. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Template {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: JsonText,
    /// Text of the canonical form, with sorted keys: equal templates have equal texts.
    canonical: Box<str>,
    /// Labels whose value is a string.
    labels: JsonText,
    /// Annotations whose value is a string.
    annotations: JsonText,
    /// Names and images of the app containers, as a list of pairs.
    containers: JsonText,
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
        let texts = |field: &str| {
            let map = canonical.get("metadata").and_then(|metadata| metadata.get(field));
            let pairs = map.and_then(Value::as_object).into_iter().flatten();
            let texts = pairs.filter(|(_, value)| value.is_string());
            let texts = texts.map(|(name, value)| (name.clone(), value.clone()));
            JsonText::from(Value::Object(texts.collect::<Map<_, _>>()))
        };
        let (labels, annotations) = (texts("labels"), texts("annotations"));
        let containers = canonical.get("spec").and_then(|spec| spec.get("containers"));
        let containers = containers.and_then(Value::as_array).into_iter().flatten();
        let containers: Vec<[&str; 2]> = containers.map(name_and_image).collect();
        let containers = JsonText::from(json!(containers));
        let inner = Inner {
            raw: JsonText::from(raw),
            labels,
            annotations,
            containers,
            canonical: canonical::text(canonical).into(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the original template with its unknown fields, from which pods are created. Parses the text.
    pub fn raw(&self) -> Value {
        self.inner.raw.value()
    }

    /// Returns the bytes of the original template's text.
    pub fn bytes(&self) -> usize {
        self.inner.raw.as_str().len()
    }

    /// Returns the labels of the pods, except those whose value is not a string. Parses their text.
    pub fn labels(&self) -> BTreeMap<String, String> {
        texts_in(&self.inner.labels)
    }

    /// Returns the annotations of the pods, except those whose value is not a string. Parses their text.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        texts_in(&self.inner.annotations)
    }

    /// Returns the app containers in order, without `initContainers`. Parses their text.
    pub fn containers(&self) -> Vec<Container> {
        let text = self.inner.containers.as_str();
        let pairs: Vec<(String, String)> = serde_json::from_str(text).unwrap_or_default();
        let pairs = pairs.into_iter();
        pairs.map(|(name, image)| Container { name, image }).collect()
    }

    /// Returns the canonical form, which equal templates share. Unsuitable for creating pods: defaults are
    /// removed. Parses the text.
    pub fn canonical(&self) -> Value {
        serde_json::from_str(&self.inner.canonical).unwrap_or_default()
    }

    /// Returns the text of the canonical form, with sorted keys.
    pub(crate) fn canonical_text(&self) -> &str {
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

fn texts_in(map: &JsonText) -> BTreeMap<String, String> {
    serde_json::from_str(map.as_str()).unwrap_or_default()
}

/// Returns the name and the image of a container.
fn name_and_image(container: &Value) -> [&str; 2] {
    ["name", "image"].map(|field| container.get(field).and_then(Value::as_str).unwrap_or_default())
}
