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
            format!("must be an object, not {}", shown(metadata)),
        ));
        return findings;
    }
    let field = |name: &str| metadata.get(name).filter(|value| !value.is_null());
    match (field("name"), field("generateName")) {
        (Some(name), _) => findings.extend(text("metadata.name", name, is_subdomain)),
        (None, Some(prefix)) => findings.extend(text("metadata.generateName", prefix, is_prefix)),
        (None, None) => findings.push(Finding::new("metadata.name", "is required")),
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
            Some(other) => findings.push(Finding::new(
                path,
                format!("must be an object, not {}", shown(other)),
            )),
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
    let message = match document.value.get("apiVersion") {
        None => format!("is required; write {served}"),
        Some(given) => format!("must be {served}, not {}", shown(given)),
    };
    Some(Finding::new("apiVersion", message))
}

/// Suggests a known kind for an unknown kind of our group; `None` if none is similar.
pub(super) fn unknown_kind(document: &Document) -> Option<Vec<Finding>> {
    let meant = did_you_mean(document.kind(), KINDS.into_iter());
    let kind = || Finding::new("kind", format!("unknown kind {:?}{meant}", document.kind()));
    (!meant.is_empty()).then(|| version(document).into_iter().chain([kind()]).collect())
}

/// A rule for a text; the error describes the rule, after the word "must".
type Rule = fn(&str) -> Result<(), &'static str>;

fn text(path: &str, value: &Value, rule: Rule) -> Option<Finding> {
    let Some(text) = value.as_str() else {
        return Some(Finding::new(
            path,
            format!("must be a string, not {}; put it in quotes", shown(value)),
        ));
    };
    let why = rule(text).err()?;
    Some(Finding::new(
        path,
        format!("{} is invalid: must {why}", shown(value)),
    ))
}

fn pair(path: &str, key: &str, value: &Value, limited: bool) -> Option<Finding> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if name.is_empty() || !is_word(name) || prefix.is_some_and(|prefix| is_subdomain(prefix).is_err()) {
        let message = format!("key {key:?} is invalid: must be NAME or DOMAIN/NAME, where NAME must {WORD}");
        return Some(Finding::new(path, message));
    }
    let path = format!("{path}.{key}");
    match value.as_str() {
        None if value.is_null() => None,
        None => Some(Finding::new(
            path,
            format!("must be a string, not {}; put it in quotes", shown(value)),
        )),
        Some(text) if limited && !is_word(text) => {
            let message = format!("{} is not a valid label value: must {WORD}", shown(value));
            Some(Finding::new(path, message))
        }
        Some(_) => None,
    }
}

const WORD: &str = "be at most 63 characters long, contain only letters, digits, '-', '_' and '.', and start and end \
                    with a letter or digit";

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
    const WORDS: &str = "be at most 63 characters long, contain only lowercase letters, digits and '-', and start and \
                         end with a letter or digit";
    let good = text.len() <= 63 && is_part(text);
    good.then_some(()).ok_or(WORDS)
}

fn is_subdomain(text: &str) -> Result<(), &'static str> {
    const WORDS: &str = "be at most 253 characters long, contain only lowercase letters, digits, '-' and '.', and have \
                         a letter or digit at both ends and next to each '.'";
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
