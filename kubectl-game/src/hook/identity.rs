//! Checks that the API server makes before it validates the spec: version, kind, name, namespace, labels.

use serde_json::Value;
use shared_api::names::GROUP;

use super::schema::{Finding, did_you_mean, shown};
use crate::manifest::{Document, KINDS};

const VERSION: &str = "v1alpha1";

/// Returns all problems of a document of a known kind.
pub(super) fn check(document: &Document) -> Vec<Finding> {
    let mut findings: Vec<_> = version(document).into_iter().collect();
    let metadata = document.value.get("metadata").unwrap_or(&Value::Null);
    if !(metadata.is_null() || metadata.is_object()) {
        findings.push(Finding::new(
            "metadata",
            format!("{} is not an object", shown(metadata)),
        ));
        return findings;
    }
    let field = |name: &str| metadata.get(name).filter(|value| !value.is_null());
    match (field("name"), field("generateName")) {
        (Some(name), _) => findings.extend(text("metadata.name", name, is_subdomain)),
        (None, Some(prefix)) => findings.extend(text("metadata.generateName", prefix, is_prefix)),
        (None, None) => findings.push(Finding::new("metadata.name", "is missing")),
    }
    if let Some(namespace) = field("namespace") {
        findings.extend(text("metadata.namespace", namespace, is_label));
    }
    for (name, limited) in [("labels", true), ("annotations", false)] {
        let path = format!("metadata.{name}");
        match field(name) {
            None => {}
            Some(Value::Object(pairs)) => {
                for (key, value) in pairs {
                    findings.extend(pair(&path, key, value, limited));
                }
            }
            Some(other) => findings.push(Finding::new(path, format!("{} is not an object", shown(other)))),
        }
    }
    findings
}

/// Returns the problem of the document's group and version.
fn version(document: &Document) -> Option<Finding> {
    let served = format!("{GROUP}/{VERSION}");
    if document.api_version() == served {
        return None;
    }
    let given = match document.value.get("apiVersion") {
        None => "is missing".to_owned(),
        Some(given) => format!("{} is not served", shown(given)),
    };
    Some(Finding::new("apiVersion", format!("{given}; write {served}")))
}

/// Suggests a known kind for an unknown kind of our group; `None` if none is similar.
pub(super) fn unknown_kind(document: &Document) -> Option<Vec<Finding>> {
    let meant = did_you_mean(document.kind(), KINDS.into_iter());
    let kind = || Finding::new("kind", format!("{:?} is not served{meant}", document.kind()));
    (!meant.is_empty()).then(|| version(document).into_iter().chain([kind()]).collect())
}

/// A rule for a text; the error describes what the text must be.
type Rule = fn(&str) -> Result<(), &'static str>;

fn text(path: &str, value: &Value, rule: Rule) -> Option<Finding> {
    let Some(text) = value.as_str() else {
        return Some(Finding::new(
            path,
            format!("{} is not text; put it in quotes", shown(value)),
        ));
    };
    let why = rule(text).err()?;
    Some(Finding::new(
        path,
        format!("{} is not allowed; {why}", shown(value)),
    ))
}

fn pair(path: &str, key: &str, value: &Value, limited: bool) -> Option<Finding> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if name.is_empty() || !is_word(name) || prefix.is_some_and(|prefix| is_subdomain(prefix).is_err()) {
        let message = format!(
            "key {key:?} is not allowed; write NAME or DOMAIN/NAME, with a NAME of at most 63 {WORD}"
        );
        return Some(Finding::new(path, message));
    }
    let path = format!("{path}.{key}");
    match value.as_str() {
        None if value.is_null() => None,
        None => Some(Finding::new(
            path,
            format!("{} is not text; put it in quotes", shown(value)),
        )),
        Some(text) if limited && !is_word(text) => {
            let message = format!(
                "{} is not allowed as a label; use at most 63 {WORD}",
                shown(value)
            );
            Some(Finding::new(path, message))
        }
        Some(_) => None,
    }
}

const WORD: &str = "letters, digits, -, _ and ., with a letter or digit at both ends";

/// Returns whether a text is a valid label value.
fn is_word(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let ends = [text.chars().next(), text.chars().next_back()];
    let ends = ends
        .into_iter()
        .flatten()
        .all(|letter| letter.is_ascii_alphanumeric());
    text.len() <= 63 && ends && text.chars().all(inner)
}

fn is_label(text: &str) -> Result<(), &'static str> {
    const WORDS: &str = "use at most 63 lowercase letters, digits and -, with a letter or digit at both ends";
    let good = text.len() <= 63 && is_part(text);
    good.then_some(()).ok_or(WORDS)
}

fn is_subdomain(text: &str) -> Result<(), &'static str> {
    const WORDS: &str = "use at most 253 lowercase letters, digits, - and ., with a letter or digit at both ends and around each dot";
    let good = text.len() <= 253 && text.split('.').all(is_part);
    good.then_some(()).ok_or(WORDS)
}

/// Checks a name prefix, which may end in a dash.
fn is_prefix(text: &str) -> Result<(), &'static str> {
    is_subdomain(text.strip_suffix('-').unwrap_or(text))
}

fn is_part(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let ends = text.starts_with(plain) && text.ends_with(plain);
    ends && text.chars().all(|letter| plain(letter) || letter == '-')
}
