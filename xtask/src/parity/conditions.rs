//! Judges rows of the condition tables: ours against Go's expr, with the documented differences as code.
//!
//! A rule looks at the row and at our error's kind, never at an id. The rules are described, with
//! reasons and examples, in `docs/differences.md`.

use hook_core::condition::{Condition, ConditionErrorKind, Facts};
use hook_core::value::MetricValue;
use serde_json::Value;

use super::Judged;

/// What a library or ours says of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    True,
    False,
    Error,
}

fn column(row: &Value, name: &str) -> Verdict {
    match row[name]["verdict"].as_str() {
        Some("true") => Verdict::True,
        Some("false") => Verdict::False,
        _ => Verdict::Error,
    }
}

/// Compares one row; `text_dialect` says which of the two tables it is from.
pub fn judge(row: &Value, text_dialect: bool) -> Judged {
    let condition = row["condition"].as_str().unwrap_or_default();
    let Some(result) = source(row) else { return Judged::Unexplained("no source".to_owned()) };
    let old = column(row, "expr_1_8_9");
    let new = column(row, "expr_1_17_8");
    let scalar = matches!(&result, MetricValue::Json(json) if !json.is_array() && !json.is_object());
    if text_dialect && (!scalar || old == Verdict::Error) {
        return Judged::Outside;
    }
    let target = if text_dialect { old } else { new };
    let facts = Facts { result: &result, response: None, now: jiff::Timestamp::UNIX_EPOCH };
    let outcome = Condition::compile(condition).and_then(|condition| condition.evaluate(&facts));
    let (ours, kind, said) = match &outcome {
        Ok(true) => (Verdict::True, None, "true".to_owned()),
        Ok(false) => (Verdict::False, None, "false".to_owned()),
        Err(error) => (Verdict::Error, Some(error.kind), error.to_string()),
    };
    if ours == target {
        return Judged::Same;
    }
    let case = Case { condition, result: &result, text_dialect, target, new, ours, kind };
    if let Some(rule) = RULES.iter().find(|rule| (rule.matches)(&case)) {
        return Judged::Documented(rule.name);
    }
    let message = format!("ours {said}, Go {target:?}");
    if ours == Verdict::True && old != Verdict::True && new != Verdict::True {
        Judged::Unsafe(message)
    } else {
        Judged::Unexplained(message)
    }
}

fn source(row: &Value) -> Option<MetricValue> {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
    let source = row["source"].as_object()?;
    if let Some(json) = source.get("json") {
        return serde_json::from_str(json.as_str()?).ok().map(MetricValue::Json);
    }
    if let Some(scalar) = source.get("scalar") {
        return number(scalar).map(MetricValue::Scalar);
    }
    source.get("vector")?.as_array()?.iter().map(number).collect::<Option<Vec<f64>>>().map(MetricValue::Vector)
}

struct Case<'a> {
    condition: &'a str,
    result: &'a MetricValue,
    text_dialect: bool,
    target: Verdict,
    new: Verdict,
    ours: Verdict,
    kind: Option<ConditionErrorKind>,
}

struct Rule {
    name: &'static str,
    matches: fn(&Case<'_>) -> bool,
}

const RULES: &[Rule] = &[];
