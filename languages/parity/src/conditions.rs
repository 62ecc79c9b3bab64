//! Judges rows of the condition tables: our result against Go's expr, with the documented differences as
//! code.
//!
//! A rule depends on the row and on the kind of our error, never on an id. `docs/differences.md` describes
//! the rules, with reasons and examples.

use expr_conditions::{Condition, ConditionError, ConditionErrorKind, EvalInput, Input, Rules};
use serde_json::Value;

use super::Judged;

/// Result of one implementation for a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoOutcome {
    True,
    False,
    Error,
}

fn column(row: &Value, name: &str) -> GoOutcome {
    match row[name]["verdict"].as_str() {
        Some("true") => GoOutcome::True,
        Some("false") => GoOutcome::False,
        _ => GoOutcome::Error,
    }
}

/// Value that a row binds to `result`.
#[derive(Debug)]
enum Source {
    Json(Value),
    Scalar(f64),
    Vector(Vec<f64>),
}

impl Source {
    fn input(&self) -> Input<'_> {
        match self {
            Self::Json(value) => Input::Json(value),
            Self::Scalar(number) => Input::Float(*number),
            Self::Vector(numbers) => Input::Floats(numbers),
        }
    }

    fn measured(&self) -> EvalInput<'_> {
        EvalInput {
            result: self.input(),
            origin: None,
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }
}

/// Compares one row; `text_dialect` selects which of the two tables it belongs to.
pub(crate) fn judge(row: &Value, text_dialect: bool) -> Judged {
    let condition = row["condition"].as_str().unwrap_or_default();
    let Some(result) = source(row) else {
        return Judged::Unexplained("no source".to_owned());
    };
    let old = column(row, "expr_1_8_9");
    let new = column(row, "expr_1_17_8");
    let scalar = matches!(&result, Source::Json(json) if !json.is_array() && !json.is_object());
    if text_dialect && (!scalar || old == GoOutcome::Error) {
        return Judged::Outside;
    }
    let target = if text_dialect { old } else { new };
    let compiled = Condition::compile_as(condition, Rules::Go);
    let reads_as_text = compiled
        .as_ref()
        .is_ok_and(|condition| condition.text_read(result.input()).is_some());
    let input = result.measured();
    let outcome = compiled.and_then(|condition| condition.evaluate(&input));
    let (ours, kind, said) = match &outcome {
        Ok(true) => (GoOutcome::True, None, "true".to_owned()),
        Ok(false) => (GoOutcome::False, None, "false".to_owned()),
        Err(error) => (GoOutcome::Error, Some(error.kind), error.to_string()),
    };
    if ours == target {
        return Judged::Same;
    }
    let case = Case {
        condition,
        result: &result,
        text_dialect,
        reads_as_text,
        target,
        ours,
        kind,
        said: &said,
    };
    let opens = ours == GoOutcome::True && old != GoOutcome::True && new != GoOutcome::True;
    let mut rules = RULES.iter().filter(|rule| rule.may_open || !opens);
    if let Some(rule) = rules.find(|rule| (rule.matches)(&case)) {
        return Judged::Documented(rule.name);
    }
    if text_dialect && ours == new {
        return Judged::Newer;
    }
    let message = format!("{condition} on {result:?}: ours {said}, Go {target:?}");
    if opens {
        Judged::Unsafe(message)
    } else {
        Judged::Unexplained(message)
    }
}

/// Classifies the change that strict rules make to the result of a row: `None` if there is none, or the rule that
/// closes it.
///
/// # Errors
/// Describes a change that strict rules must not make.
pub(crate) fn strict_change(row: &Value) -> Result<Option<&'static str>, String> {
    let condition = row["condition"].as_str().unwrap_or_default();
    let Some(result) = source(row) else {
        return Ok(None);
    };
    let input = result.measured();
    let ask =
        |rules| Condition::compile_as(condition, rules).and_then(|condition| condition.evaluate(&input));
    let closed = |error: &ConditionError| {
        let message = |part: &str| error.message.contains(part);
        match error.kind {
            ConditionErrorKind::MissingKey => Some("null-is-absence"),
            ConditionErrorKind::DifferentKinds => Some("different-kinds"),
            ConditionErrorKind::NotANumber => Some("infinity"),
            ConditionErrorKind::Syntax if message("several expressions") => Some("one-expression"),
            ConditionErrorKind::Runtime if message("is not an integer") => Some("integer-fraction"),
            ConditionErrorKind::Runtime if message("integer overflow") => Some("integer-overflow"),
            ConditionErrorKind::Runtime if message("are rounded") => Some("rounded-numbers"),
            ConditionErrorKind::Syntax
            | ConditionErrorKind::UnknownName
            | ConditionErrorKind::TypeMismatch
            | ConditionErrorKind::Runtime
            | ConditionErrorKind::Budget
            | ConditionErrorKind::NotBoolean => None,
        }
    };
    match (ask(Rules::Go), ask(Rules::Strict)) {
        (Ok(before), Ok(strict)) if before == strict => Ok(None),
        (Err(_), Err(_)) => Ok(None),
        (Ok(_), Err(error)) if let Some(rule) = closed(&error) => Ok(Some(rule)),
        (before, strict) => Err(format!(
            "{condition} on {result:?}: strict {strict:?}, else {before:?}"
        )),
    }
}

fn source(row: &Value) -> Option<Source> {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
    let source = row["source"].as_object()?;
    if let Some(json) = source.get("json") {
        return serde_json::from_str(json.as_str()?).ok().map(Source::Json);
    }
    if let Some(scalar) = source.get("scalar") {
        return number(scalar).map(Source::Scalar);
    }
    source
        .get("vector")?
        .as_array()?
        .iter()
        .map(number)
        .collect::<Option<Vec<f64>>>()
        .map(Source::Vector)
}

struct Case<'a> {
    condition: &'a str,
    result: &'a Source,
    text_dialect: bool,
    reads_as_text: bool,
    target: GoOutcome,
    ours: GoOutcome,
    kind: Option<ConditionErrorKind>,
    said: &'a str,
}

struct Rule {
    name: &'static str,
    /// Whether our result may be true if neither version of Go returns true.
    may_open: bool,
    matches: fn(&Case<'_>) -> bool,
}

/// The first rule that matches names the difference.
const RULES: &[Rule] = &[
    Rule {
        name: "scalar-read-as-text",
        may_open: true,
        // Go refuses to compare a JSON number or bool with text; our implementation reads it as its original
        // text.
        matches: |case| {
            !case.text_dialect
                && case.reads_as_text
                && case.target == GoOutcome::Error
                && case.ours != GoOutcome::Error
        },
    },
    Rule {
        name: "unknown",
        may_open: false,
        // Go returns a verdict for a missing key and for NaN; our implementation returns unknown.
        matches: |case| {
            matches!(
                case.kind,
                Some(ConditionErrorKind::MissingKey | ConditionErrorKind::NotANumber)
            )
        },
    },
    Rule {
        name: "limits",
        may_open: false,
        matches: |case| case.kind == Some(ConditionErrorKind::Budget),
    },
    Rule {
        name: "number-out-of-integer-range",
        may_open: false,
        matches: |case| {
            case.kind == Some(ConditionErrorKind::Runtime)
                && (case.condition.contains("asInt(") || case.condition.contains("int("))
                && has_number(case.result, |number| {
                    !number.is_finite() || number.abs() >= 9.2e18
                })
        },
    },
    Rule {
        name: "find-from-the-end",
        may_open: false,
        // Go 1.17.8 leaves stray values on the stack after `findLast`, which break the operator to its left.
        matches: |case| {
            ["findLast", "last(filter", "[-1]"]
                .iter()
                .any(|sign| case.condition.contains(sign))
                && (case.condition.contains("findLast") || case.condition.contains("filter("))
        },
    },
    Rule {
        name: "sort-needs-a-list",
        may_open: false,
        // Go sorts a value that is not a list into an empty list, so `len(sort(result.typo)) == 0` is true
        // there.
        matches: |case| case.kind == Some(ConditionErrorKind::Runtime) && case.condition.contains("sort("),
    },
    Rule {
        name: "only-direct-operands",
        may_open: false,
        // A scalar is read as text next to an operator, but not inside a list that is built.
        matches: |case| {
            case.text_dialect
                && matches!(case.result, Source::Json(Value::Number(_) | Value::Bool(_)))
                && ["[result]", "[result, ", ", result]", ", result, "]
                    .iter()
                    .any(|list| case.condition.contains(list))
        },
    },
    Rule {
        name: "typed-number",
        may_open: false,
        // The original operator only had text: the text `1` is in no list of numbers, and `asInt` rejects
        // `2.5`. The number 1 is in the list, and `asInt` truncates the number 2.5, as in the typed table.
        matches: |case| {
            let number = matches!(case.result, Source::Json(Value::Number(_) | Value::Bool(_)));
            let fraction = has_number(case.result, |number| number.fract() != 0.0);
            case.text_dialect
                && number
                && (case.condition.contains("result in ")
                    || case.condition.contains("result not in ")
                    || (fraction && case.condition.contains("asInt(")))
        },
    },
    Rule {
        name: "json-null-is-nil",
        // `result == nil` is true for null, as in the typed table. It is false for the five characters
        // `<nil>`, which the original operator passed to the condition.
        may_open: true,
        matches: |case| {
            case.text_dialect
                && matches!(case.result, Source::Json(Value::Null))
                && case.condition.contains("result")
                && (case.ours != GoOutcome::True || case.condition.contains("nil"))
        },
    },
    Rule {
        name: "closures-need-a-list",
        may_open: false,
        // Go's closures iterate over the bytes of a text and over an empty object.
        matches: |case| case.said.contains("a list is required here"),
    },
    Rule {
        name: "exact-integers",
        may_open: true,
        matches: |case| {
            let as_text = case.reads_as_text || case.text_dialect || case.condition.contains("string(");
            let beyond = |number: f64| number.abs() > 9_007_199_254_740_992.0 - 1.0;
            case.condition.contains("result")
                && (has_number(case.result, beyond)
                    || (as_text && has_number(case.result, |n| n.abs() >= 1e6 && n.fract() == 0.0)))
        },
    },
];

/// Returns whether the value, or an element of the list, is such a number.
fn has_number(value: &Source, such: fn(f64) -> bool) -> bool {
    let json = |value: &Value| value.as_f64().is_some_and(such);
    match value {
        Source::Json(Value::Array(items)) => items.iter().any(json),
        Source::Json(value) => json(value),
        Source::Scalar(number) => such(*number),
        Source::Vector(numbers) => numbers.iter().any(|number| such(*number)),
    }
}
