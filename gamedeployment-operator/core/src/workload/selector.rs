//! Label selectors with the semantics of the API server.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::FieldError;

/// A parsed selector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Is(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
}

impl Selector {
    pub(super) fn read(selector: &LabelSelector, problems: &mut Vec<FieldError>) -> Self {
        let labels = selector.match_labels.iter().flatten();
        let mut rules: Vec<Rule> = labels
            .map(|(key, value)| Rule::Is(key.clone(), value.clone()))
            .collect();
        for (number, rule) in selector.match_expressions.iter().flatten().enumerate() {
            let (key, values) = (rule.key.clone(), rule.values.clone().unwrap_or_default());
            match rule.operator.as_str() {
                "In" => rules.push(Rule::In(key, values)),
                "NotIn" => rules.push(Rule::NotIn(key, values)),
                "Exists" => rules.push(Rule::Exists(key)),
                "DoesNotExist" => rules.push(Rule::DoesNotExist(key)),
                other => {
                    let path = format!("spec.selector.matchExpressions[{number}].operator");
                    problems.push(FieldError::new(
                        &path,
                        other,
                        "must be one of In, NotIn, Exists, DoesNotExist",
                    ));
                }
            }
        }
        Self { rules }
    }

    /// Reports a problem if the selector changed: a changed selector would release running pods.
    pub(super) fn check_unchanged(&self, recorded: Option<&str>, problems: &mut Vec<FieldError>) {
        let Some(recorded) = recorded.filter(|recorded| !recorded.is_empty()) else {
            return;
        };
        let now = self.to_string();
        if rules_of(&now) != rules_of(recorded) {
            let remedy = format!(
                "is not allowed, because the field is immutable; restore {recorded}, or create a GameDeployment with a \
                 different name"
            );
            problems.push(FieldError::new("spec.selector", &now, remedy));
        }
    }

    /// Returns whether the selector has no rule and would therefore select everything.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether a rule concerns this label.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.rules.iter().any(|rule| match rule {
            Rule::Is(own, _)
            | Rule::In(own, _)
            | Rule::NotIn(own, _)
            | Rule::Exists(own)
            | Rule::DoesNotExist(own) => own == key,
        })
    }

    /// Returns whether the selector selects an object with these labels.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.rules.iter().all(|rule| match rule {
            Rule::Is(key, value) => labels.get(key) == Some(value),
            Rule::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Rule::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            Rule::Exists(key) => labels.contains_key(key),
            Rule::DoesNotExist(key) => !labels.contains_key(key),
        })
    }
}

/// Splits a selector's text into rules, independent of the order of the rules and of their values.
fn rules_of(text: &str) -> BTreeSet<String> {
    let mut depth = 0;
    let rules = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let sorted = |rule: &str| match rule.split_once('(') {
        Some((head, values)) => {
            let values: BTreeSet<&str> = values.trim_end_matches(')').split(',').collect();
            format!("{head}{values:?}")
        }
        None => rule.to_owned(),
    };
    rules.map(sorted).collect()
}

/// Formats the selector like `kubectl` and as the `scale` subresource requires.
impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, rule) in self.rules.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match rule {
                Rule::Is(key, value) => write!(f, "{key}={value}")?,
                Rule::In(key, values) => write!(f, "{key} in ({})", values.join(","))?,
                Rule::NotIn(key, values) => write!(f, "{key} notin ({})", values.join(","))?,
                Rule::Exists(key) => f.write_str(key)?,
                Rule::DoesNotExist(key) => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
