//! Descriptions of the type that a field has, with a remedy that fits the value of the wrong type.

use serde_json::Value;

/// Returns what a value of the field at this path must be, and how to write it.
pub(super) fn words(wanted: &str, path: &str, value: &Value) -> String {
    match wanted {
        "string" => match (value, is_duration(path)) {
            (Value::Number(number), true) if number.as_u64().is_some() => {
                format!("a duration; write {number}s")
            }
            _ => "text; put it in quotes".to_owned(),
        },
        "integer" => match value {
            Value::String(text) if text.trim().parse::<i64>().is_ok() => {
                "a whole number; write it without quotes".to_owned()
            }
            Value::String(text) => match whole_seconds(path, text) {
                Some(seconds) => format!("a whole number of seconds; write {seconds}"),
                None => "a whole number; write a number, for example 3".to_owned(),
            },
            _ => "a whole number".to_owned(),
        },
        "number" => "a number; write it without quotes".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => "a list; begin each item with -".to_owned(),
        "object" => "an object; write its fields below it".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the last field of a path.
fn field(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns whether the field takes a duration as text, such as `5s`.
fn is_duration(path: &str) -> bool {
    matches!(field(path), "interval" | "initialDelay")
}

/// Returns the seconds of a duration that was written into a field for seconds.
fn whole_seconds(path: &str, text: &str) -> Option<u64> {
    let takes_seconds = field(path) == "duration" || path.ends_with("Seconds");
    let duration = go_duration::parse(text).ok().filter(|_| takes_seconds)?;
    (duration.as_secs() > 0 && duration.subsec_nanos() == 0).then_some(duration.as_secs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_remedy_fits_the_value() {
        for (wanted, path, value, words_of) in [
            (
                "integer",
                "spec.metrics[0].count",
                json!("three"),
                "a whole number; write a number, for example 3",
            ),
            (
                "integer",
                "spec.metrics[0].count",
                json!("3"),
                "a whole number; write it without quotes",
            ),
            (
                "integer",
                "spec.metrics[0].count",
                json!("10m"),
                "a whole number; write a number, for example 3",
            ),
            ("integer", "spec.metrics[0].count", json!(1.5), "a whole number"),
            (
                "integer",
                "spec.steps[0].pause.duration",
                json!("10m"),
                "a whole number of seconds; write 600",
            ),
            (
                "integer",
                "spec.timeoutSeconds",
                json!("90s"),
                "a whole number of seconds; write 90",
            ),
            (
                "string",
                "spec.metrics[0].interval",
                json!(5),
                "a duration; write 5s",
            ),
            (
                "integer",
                "spec.timeoutSeconds",
                json!("500ms"),
                "a whole number; write a number, for example 3",
            ),
            (
                "string",
                "spec.metrics[0].interval",
                json!(-5),
                "text; put it in quotes",
            ),
            (
                "string",
                "spec.metrics[0].interval",
                json!(true),
                "text; put it in quotes",
            ),
            (
                "string",
                "spec.metrics[0].name",
                json!(5),
                "text; put it in quotes",
            ),
        ] {
            assert_eq!(words(wanted, path, &value), words_of, "{path} {value}");
        }
    }
}
