//! Label selectors as in kubectl: `app=arena,tier!=test,zone in (a,b),!canary`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Expression, Selector};
use shared_api::syntax::{is_name, is_qualified_name};

/// Parses a label selector. The client library only writes them.
pub(super) fn parse(text: &str) -> Result<LabelSelector, String> {
    if text.trim().is_empty() {
        return Err(
            "an empty selector would select all pods in the namespace; specify a label, for example app=arena"
                .into(),
        );
    }
    let expressions: Result<Vec<Expression>, String> = requirements(text).map(requirement).collect();
    let expressions = expressions?;
    for (index, expression) in expressions.iter().enumerate() {
        let Expression::Equal(key, value) = expression else {
            continue;
        };
        let earlier = expressions.iter().take(index);
        let differs = |other: &Expression| matches!(other, Expression::Equal(k, v) if k == key && v != value);
        // The map of a LabelSelector would keep one of them.
        if earlier.into_iter().any(differs) {
            return Err(format!(
                "a pod can have only one value for label {key}; use {key} in (A,B)"
            ));
        }
    }
    Ok(Selector::from_iter(expressions).into())
}

/// Splits a selector at the commas outside of parentheses.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split(move |c: char| {
        inside = c == '(' || (inside && c != ')');
        c == ',' && !inside
    })
}

fn requirement(text: &str) -> Result<Expression, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the selector has an empty requirement; remove the extra comma".to_owned());
    }
    if let Some((head, values)) = text.split_once('(') {
        return set(text, head, values);
    }
    if let Some((name, value)) = text.split_once("!=") {
        return Ok(Expression::NotEqual(key(name)?, one_value(value)?));
    }
    if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Expression::Equal(key(name)?, one_value(value)?));
    }
    if text.contains(['<', '>']) {
        return Err(format!(
            "{text:?}: label selectors do not support < and >; use =, !=, in, notin, KEY or !KEY"
        ));
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(Expression::DoesNotExist(key(name)?)),
        None => Ok(Expression::Exists(key(text)?)),
    }
}

/// Parses `KEY in (A,B)` or `KEY notin (A,B)`.
fn set(text: &str, head: &str, values: &str) -> Result<Expression, String> {
    let wrong = || format!("{text:?} must have the form KEY in (A,B) or KEY notin (A,B)");
    let values = values.strip_suffix(')').ok_or_else(wrong)?;
    if values.trim().is_empty() {
        return Err(format!("{text:?} must have at least one value"));
    }
    let values = values.split(',').map(one_value).collect::<Result<_, _>>();
    match head.split_whitespace().collect::<Vec<_>>().as_slice() {
        [name, "in"] => Ok(Expression::In(key(name)?, values?)),
        [name, "notin"] => Ok(Expression::NotIn(key(name)?, values?)),
        _ => Err(wrong()),
    }
}

fn key(text: &str) -> Result<String, String> {
    let text = text.trim();
    if is_qualified_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is not a valid label key; use NAME or DOMAIN/NAME"
    ))
}

fn one_value(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || is_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is not a valid label value; use at most 63 letters, digits, -, _ and ., starting and ending with a \
         letter or digit"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::to_value(parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_selector_selects_the_same_pods_as_in_kubectl() {
        assert_eq!(
            read("app=arena, example.com/tier == b"),
            json!({ "matchLabels": { "app": "arena", "example.com/tier": "b" } })
        );
        let expressions = json!([
            { "key": "tier", "operator": "NotIn", "values": ["test"] },
            { "key": "zone", "operator": "In", "values": ["a", "b"] },
            { "key": "kind", "operator": "NotIn", "values": ["", "x"] },
            { "key": "game", "operator": "Exists" },
            { "key": "canary", "operator": "DoesNotExist" },
        ]);
        assert_eq!(
            read("tier!=test,zone in (a, b),kind notin(x,),game,!canary"),
            json!({ "matchExpressions": expressions })
        );
        assert_eq!(read("app="), json!({ "matchLabels": { "app": "" } }));
        assert_eq!(read("app=a,app=a"), json!({ "matchLabels": { "app": "a" } }));
    }

    #[test]
    fn a_selector_that_would_select_other_pods_is_refused() {
        for (text, words) in [
            ("", "would select all pods in the namespace; specify a label"),
            ("  ", "would select all pods"),
            ("app=arena,", "remove the extra comma"),
            (
                "app=a,app=b",
                "a pod can have only one value for label app; use app in (A,B)",
            ),
            ("zone in ()", "must have at least one value"),
            ("zone in (a", "must have the form KEY in (A,B)"),
            ("zone of (a)", "must have the form KEY in (A,B)"),
            ("age>3", "do not support < and >"),
            ("app arena", "\"app arena\" is not a valid label key"),
            ("=arena", "\"\" is not a valid label key"),
            ("app=a=b", "\"a=b\" is not a valid label value"),
            ("app in (a b)", "\"a b\" is not a valid label value"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
