//! JSON paths against client-go's util/jsonpath: the first value of the first non-empty group (or the list of
//! its values) must be equal, and errors must be errors.

use std::path::Path;

use ::json_path::{Found, JsonPath, Rules};
use serde_json::Value;

use super::{Judged, difference, text};

/// Documents that rows reference by name.
pub(crate) struct Bodies(Value);

impl Bodies {
    /// Reads the file. Without it, rows that reference it are malformed.
    pub(crate) fn read(path: &Path) -> Self {
        let parsed = std::fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self(parsed.unwrap_or(Value::Null))
    }

    fn of<'r>(&'r self, row: &'r Value) -> Option<&'r str> {
        match text(row, "body") {
            Some(body) => Some(body),
            None => self.0.get(text(row, "body_ref")?)?.as_str(),
        }
    }
}

/// Result of client-go.
#[derive(Debug, PartialEq)]
enum Expected {
    Error,
    Nothing,
    One(Value),
    Many(Vec<Value>),
    /// Values in an order that varies between runs: the JSON of each value, sorted.
    Unordered(Vec<Value>),
}

pub(crate) fn judge(row: &Value, bodies: &Bodies) -> Judged {
    let (Some(path), Some(body)) = (text(row, "path"), bodies.of(row)) else {
        return Judged::Malformed("no path, or no body of that name".to_owned());
    };
    let expected = match expected(row) {
        // Go iterates over an object in random order, and a table may contain only one of the orders.
        Some(Expected::Many(values)) if path.contains(".*") || path.contains("..") => {
            Expected::Unordered(values)
        }
        Some(expected) => expected,
        None => return Judged::Malformed("neither results nor error".to_owned()),
    };
    let ours = find(path, body, Rules::ClientGo);
    if same(&expected, &ours) {
        return Judged::Same;
    }
    // A refusal keeps a gate closed, but a value that client-go does not find might open one.
    let refusal = matches!(ours, Err(_) | Ok(Found::Nothing));
    let rule = if refusal {
        refused(path, body, &expected, &ours)
    } else {
        read_otherwise(path, &expected, &ours)
    };
    if let Some(rule) = rule {
        return Judged::Documented(rule);
    }
    let words = difference(
        &format!("{path} on {body}"),
        &format!("{expected:?}"),
        &format!("{ours:?}"),
    );
    if refusal {
        Judged::Unexplained(words)
    } else {
        Judged::Unsafe(words)
    }
}

/// Names the rule by which strict evaluation closes a row; `None` if it changes nothing. Each rule is documented
/// in docs/differences.md.
///
/// # Errors
/// Describes a change that strict evaluation must not make.
pub(crate) fn strict_change(row: &Value, bodies: &Bodies) -> Result<Option<&'static str>, String> {
    let (Some(path), Some(body)) = (text(row, "path"), bodies.of(row)) else {
        return Ok(None);
    };
    let before = find(path, body, Rules::ClientGo);
    let strict = find(path, body, Rules::Strict);
    let rule = match (&before, &strict) {
        (Err(_), Err(_)) => return Ok(None),
        (Ok(before), Ok(strict)) if before == strict => return Ok(None),
        (Ok(_), Err(reason)) => closed(reason),
        (Ok(before), Ok(strict)) => {
            (path.contains("[?(") && leaves_out(before, strict)).then_some("filter-null")
        }
        (Err(_), Ok(_)) => None,
    };
    match rule {
        Some(rule) => Ok(Some(rule)),
        None => Err(difference(
            &format!("{path} on {body}"),
            &format!("{before:?}"),
            &format!("{strict:?}"),
        )),
    }
}

/// Returns the rule of an error of strict evaluation.
fn closed(reason: &str) -> Option<&'static str> {
    [
        ("no element matches the filter", "filter-without-key"),
        ("list, not null", "null-children"),
        ("needs a list, not ", "scalar-children"),
        ("needs an object or a list, not ", "scalar-children"),
        (".. finds nothing", "search-without-key"),
        ("not found at any level", "search-without-key"),
    ]
    .into_iter()
    .find(|(words, _)| reason.contains(words))
    .map(|(_, rule)| rule)
}

/// Returns whether the strict result is a part of the other one, in the same order.
fn leaves_out(before: &Found, strict: &Found) -> bool {
    let mut before = values(before).iter();
    values(strict)
        .iter()
        .all(|value| before.any(|other| other == value))
}

fn values(found: &Found) -> &[Value] {
    match found {
        Found::One(value) => std::slice::from_ref(value),
        Found::Many(values) => values,
        Found::Nothing => &[],
    }
}

fn find(path: &str, body: &str, rules: Rules) -> Result<Found, String> {
    let path = JsonPath::parse_as(path, rules).map_err(|error| error.message)?;
    let document: Value = serde_json::from_str(body).map_err(|error| format!("not JSON: {error}"))?;
    path.find(&document).map_err(|error| error.message)
}

fn expected(row: &Value) -> Option<Expected> {
    if row.get("stage").is_some() {
        return Some(Expected::Error);
    }
    if let Some(sorted) = row.get("results_sorted") {
        let parse = |value: &Value| serde_json::from_str(value.as_str()?).ok();
        return sorted
            .as_array()?
            .iter()
            .map(parse)
            .collect::<Option<_>>()
            .map(Expected::Unordered);
    }
    let Some(groups) = row.get("results") else {
        // A value without a Go type: the whole document is null.
        return row.get("text").map(|_| Expected::One(Value::Null));
    };
    let groups = groups
        .as_array()?
        .iter()
        .map(Value::as_array)
        .collect::<Option<Vec<_>>>()?;
    let first = groups.into_iter().find(|group| !group.is_empty());
    Some(match first.map(Vec::as_slice) {
        None => Expected::Nothing,
        Some([value]) => Expected::One(value.clone()),
        Some(values) => Expected::Many(values.to_vec()),
    })
}

fn same(expected: &Expected, ours: &Result<Found, String>) -> bool {
    match (expected, ours) {
        (Expected::Error, Err(_)) | (Expected::Nothing, Ok(Found::Nothing)) => true,
        (Expected::One(expected), Ok(Found::One(ours))) => equal(expected, ours),
        (Expected::Many(expected), Ok(Found::Many(ours))) => all_equal(expected, ours),
        (Expected::Unordered(expected), Ok(ours)) => {
            let mut ours = values(ours).to_vec();
            // Sorts both sides in the same order.
            let key = |value: &Value| as_floats(value).to_string();
            ours.sort_by_key(key);
            let mut expected = expected.clone();
            expected.sort_by_key(key);
            all_equal(&expected, &ours)
        }
        _ => false,
    }
}

fn all_equal(expected: &[Value], ours: &[Value]) -> bool {
    expected.len() == ours.len()
        && expected
            .iter()
            .zip(ours)
            .all(|(expected, ours)| equal(expected, ours))
}

/// Returns whether two values are equal for client-go: all numbers are 64-bit floats.
fn equal(expected: &Value, ours: &Value) -> bool {
    as_floats(expected) == as_floats(ours)
}

fn as_floats(value: &Value) -> Value {
    match value {
        // Adding zero turns -0 into 0, which the tables use for both.
        Value::Number(number) => number
            .as_f64()
            .map_or(Value::Null, |float| Value::from(float + 0.0)),
        Value::Array(list) => list.iter().map(as_floats).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), as_floats(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Returns the rule, if any, by which our implementation finds a different value. Each rule is documented in
/// docs/differences.md.
fn read_otherwise(path: &str, expected: &Expected, ours: &Result<Found, String>) -> Option<&'static str> {
    if !path.contains('{') {
        return path
            .trim_matches(' ')
            .starts_with(['$', '.'])
            .then_some("no-braces");
    }
    (walks_lists(path) && drops_the_rest(expected, ours)).then_some("empty-slice")
}

/// Returns the rule, if any, by which our implementation rejects what client-go finds.
fn refused(
    path: &str,
    body: &str,
    expected: &Expected,
    ours: &Result<Found, String>,
) -> Option<&'static str> {
    if !path.contains('{') {
        return Some("no-braces");
    }
    if let Err(error) = serde_json::from_str::<Value>(body) {
        let too_deep = error.to_string().contains("recursion limit");
        return if too_deep {
            Some("limits")
        } else {
            has_lone_surrogate(body).then_some("lone-surrogate")
        };
    }
    let reason = ours.as_ref().err()?;
    for (words, rule) in [
        ("the limit is", "limits"),
        ("visits more than", "limits"),
        ("the values that jsonPath matches are larger than", "limits"),
        ("the step of", "early-mistake"),
        ("a constant cannot be mixed with a path", "constant-in-path"),
        ("not found in element", "elements"),
        ("one side is an empty list", "elements"),
    ] {
        if reason.contains(words) {
            return Some(rule);
        }
    }
    if path.contains("[?(") {
        return filter_rule(path, expected);
    }
    (walks_lists(path) && drops_the_rest(expected, ours)).then_some("empty-slice")
}

/// `[*]` is `[:]` to client-go.
fn walks_lists(path: &str) -> bool {
    path.contains(':') || path.contains("[*]")
}

/// Returns whether client-go found only the first part of our result, or did not reach the value that fails
/// in our implementation.
fn drops_the_rest(expected: &Expected, ours: &Result<Found, String>) -> bool {
    let first = match expected {
        Expected::Many(values) | Expected::Unordered(values) => values.as_slice(),
        Expected::One(value) => std::slice::from_ref(value),
        Expected::Nothing => &[],
        Expected::Error => return false,
    };
    let ours = match ours {
        Ok(Found::Nothing) => return false,
        Ok(ours) => values(ours),
        Err(reason) => return reason.contains("is not a list") || reason.contains("index out of range"),
    };
    ours.len() > first.len() && first.iter().zip(ours).all(|(first, ours)| equal(first, ours))
}

/// Returns whether client-go's value is a text from the path itself.
fn binds_own_text(path: &str, expected: &Expected) -> bool {
    match expected {
        Expected::One(Value::String(value)) => {
            path.contains(value.as_str()) || value.chars().all(char::is_control)
        }
        _ => false,
    }
}

fn has_lone_surrogate(body: &str) -> bool {
    let lower = body.to_ascii_lowercase();
    [
        "\\ud8", "\\ud9", "\\uda", "\\udb", "\\udc", "\\udd", "\\ude", "\\udf",
    ]
    .iter()
    .any(|prefix| lower.contains(prefix))
}

/// Returns the rule for a filter that client-go interprets against its obvious meaning.
fn filter_rule(path: &str, expected: &Expected) -> Option<&'static str> {
    let bodies = path
        .split("[?(")
        .skip(1)
        .filter_map(|rest| rest.split(")]").next());
    for body in bodies {
        if !body.contains(['<', '>', '=', '!']) {
            return Some("exists-on-error");
        }
        let operator: String = body
            .chars()
            .skip_while(|next| !"<>=!".contains(*next))
            .take_while(|next| "<>=!".contains(*next))
            .collect();
        if !["==", "!=", "<", "<=", ">", ">="].contains(&operator.as_str()) || body.ends_with(&operator) {
            return Some("early-mistake");
        }
    }
    // client-go rejects these too, but only if the list has an element; otherwise the block is empty.
    let empty = *expected == Expected::Nothing || binds_own_text(path, expected);
    (empty && JsonPath::parse(path).is_err()).then_some("early-mistake")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(row: &Value) -> Judged {
        judge(row, &Bodies(json!({"doc": "{\"age\":32,\"e\":[],\"l\":[1,2]}"})))
    }

    #[test]
    fn values_lists_and_errors_are_compared() {
        assert_eq!(
            judged(&json!({"path": "{.age}", "body_ref": "doc", "results": [[32]]})),
            Judged::Same
        );
        assert_eq!(
            judged(&json!({"path": "{.l[*]}", "body_ref": "doc", "results": [[1, 2]]})),
            Judged::Same
        );
        assert_eq!(
            judged(&json!({"path": "{.e[*]}", "body_ref": "doc", "results": [[]]})),
            Judged::Same
        );
        assert_eq!(
            judged(&json!({"path": "{.x}", "body_ref": "doc", "stage": "find"})),
            Judged::Same
        );
        assert_eq!(
            judged(&json!({"path": "{@}", "body": "null", "text": "<no value>"})),
            Judged::Same
        );
        let unordered = json!({"path": "{.*}", "body": "{\"b\":1,\"a\":2}", "results_sorted": ["1", "2"]});
        assert_eq!(judged(&unordered), Judged::Same);
    }

    #[test]
    fn a_value_that_go_does_not_find_is_unsafe_and_a_refusal_is_not() {
        assert!(matches!(
            judged(&json!({"path": "{.age}", "body_ref": "doc", "results": [[33]]})),
            Judged::Unsafe(_)
        ));
        assert!(matches!(
            judged(&json!({"path": "{.age}", "body_ref": "doc", "stage": "find"})),
            Judged::Unsafe(_)
        ));
        assert!(matches!(
            judged(&json!({"path": "{.x}", "body_ref": "doc", "results": [[33]]})),
            Judged::Unexplained(_)
        ));
    }

    #[test]
    fn strict_evaluation_may_close_a_row_and_leave_out_null_but_find_nothing_else() {
        let change = |path: &str, body: &str| {
            strict_change(&json!({"path": path, "body": body}), &Bodies(Value::Null)).unwrap()
        };
        for (path, body, rule) in [
            ("{.l[*]}", r#"{"l": [1]}"#, None),
            ("{.x}", r#"{"l": [1]}"#, None),
            ("{.l.*}", r#"{"l": "x"}"#, Some("scalar-children")),
            ("{.l[*]}", r#"{"l": null}"#, Some("null-children")),
            ("{..x}", "{}", Some("search-without-key")),
            ("{[?(@.x)]}", r#"[{"y": 1}]"#, Some("filter-without-key")),
            ("{[?(@.x)]}", r#"[{"x": 1}, {"x": null}]"#, Some("filter-null")),
        ] {
            assert_eq!(change(path, body), rule, "{path} on {body}");
        }
        let found = |values: &[i64]| Found::Many(values.iter().copied().map(Value::from).collect());
        assert!(leaves_out(&found(&[1, 2, 3]), &found(&[1, 3])));
        assert!(!leaves_out(&found(&[1, 2, 3]), &found(&[3, 1])));
        assert!(!leaves_out(&found(&[1, 2]), &found(&[1, 4])));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_malformed() {
        assert!(matches!(
            judged(&json!({"path": "{.age}", "body_ref": "other"})),
            Judged::Malformed(_)
        ));
        assert!(matches!(
            judged(&json!({"path": "{.age}", "body_ref": "doc"})),
            Judged::Malformed(_)
        ));
    }
}
