//! Descriptions of the type that a field must have, with a remedy that fits the value of the wrong type.

use serde_json::Value;

use super::schema::shown;

/// Describes the type that a value of the field at this path must have, and how to write it.
pub(super) fn words(wanted: &str, path: &str, value: &Value) -> String {
    let without_quotes = || "remove the quotes".to_owned();
    let (wanted, remedy) = match (wanted, value) {
        ("string", Value::Number(number)) if is_duration(path) && number.is_u64() => {
            ("a duration", Some(format!("write {number}s")))
        }
        ("string", Value::Array(_) | Value::Object(_)) => ("a string", None),
        ("string", _) => ("a string", Some("put it in quotes".to_owned())),
        ("integer", Value::String(text)) => match whole_seconds(path, text) {
            Some(seconds) => ("a number of seconds", Some(format!("write {seconds}"))),
            None => ("an integer", is_number::<i64>(text).then(without_quotes)),
        },
        ("integer", _) => ("an integer", None),
        ("number", Value::String(text)) => ("a number", is_number::<f64>(text).then(without_quotes)),
        ("number", _) => ("a number", None),
        ("boolean", Value::String(text)) if text.parse::<bool>().is_ok() => {
            ("a boolean", Some(without_quotes()))
        }
        ("boolean", _) => ("a boolean", Some("write true or false".to_owned())),
        ("array", _) => ("a list", Some("start each item with -".to_owned())),
        ("object", _) => ("an object", Some("indent its fields below it".to_owned())),
        (other, _) => (other, None),
    };
    let remedy = remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
    format!("must be {wanted}, not {}{remedy}", shown(value))
}

/// Returns whether a text is a number of this type.
fn is_number<T: std::str::FromStr>(text: &str) -> bool {
    text.trim().parse::<T>().is_ok()
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
        let count = "spec.metrics[0].count";
        let interval = "spec.metrics[0].interval";
        for (wanted, path, value, words_of) in [
            ("integer", count, json!("three"), "an integer, not \"three\""),
            (
                "integer",
                count,
                json!("3"),
                "an integer, not \"3\"; remove the quotes",
            ),
            ("integer", count, json!("10m"), "an integer, not \"10m\""),
            ("integer", count, json!(1.5), "an integer, not 1.5"),
            (
                "integer",
                "spec.steps[0].pause.duration",
                json!("10m"),
                "a number of seconds, not \"10m\"; write 600",
            ),
            (
                "integer",
                "spec.timeoutSeconds",
                json!("90s"),
                "a number of seconds, not \"90s\"; write 90",
            ),
            (
                "integer",
                "spec.timeoutSeconds",
                json!("90"),
                "an integer, not \"90\"; remove the quotes",
            ),
            (
                "integer",
                "spec.timeoutSeconds",
                json!("500ms"),
                "an integer, not \"500ms\"",
            ),
            ("string", interval, json!(5), "a duration, not 5; write 5s"),
            (
                "string",
                interval,
                json!(-5),
                "a string, not -5; put it in quotes",
            ),
            (
                "string",
                interval,
                json!(true),
                "a string, not true; put it in quotes",
            ),
            (
                "string",
                "spec.metrics[0].name",
                json!(5),
                "a string, not 5; put it in quotes",
            ),
            ("string", "spec.metrics[0].name", json!([5]), "a string, not [5]"),
            (
                "boolean",
                "spec.terminate",
                json!("true"),
                "a boolean, not \"true\"; remove the quotes",
            ),
            (
                "boolean",
                "spec.terminate",
                json!("yes"),
                "a boolean, not \"yes\"; write true or false",
            ),
        ] {
            let expected = format!("must be {words_of}");
            assert_eq!(words(wanted, path, &value), expected, "{path} {value}");
        }
    }
}
