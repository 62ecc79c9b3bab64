//! Durations against `time.ParseDuration`: the same nanoseconds, or an error. The parser for both signs
//! accepts everything that Go accepts.

use serde_json::Value;

use super::{Judged, difference, text};

pub(crate) fn judge(row: &Value) -> Judged {
    let Some(input) = text(row, "input") else {
        return Judged::Malformed("no input".to_owned());
    };
    let expected = row.get("nanos").and_then(Value::as_i64);
    if expected.is_none() && row.get("error").is_none() {
        return Judged::Malformed("neither nanos nor error".to_owned());
    }
    let words = |ours: &str| {
        let expected = expected.map_or("an error".to_owned(), |nanos| format!("{nanos} ns"));
        difference(&format!("{input:?}"), &expected, ours)
    };
    match (expected, go_duration::parse_signed(input)) {
        (Some(expected), Ok(ours)) if ours != expected => {
            return Judged::Unsafe(words(&format!("{ours} ns")));
        }
        (None, Ok(ours)) => return Judged::Unsafe(words(&format!("{ours} ns"))),
        (Some(_), Err(error)) => return Judged::Unexplained(words(&error.message)),
        (Some(_), Ok(_)) | (None, Err(_)) => {}
    }
    match (expected, go_duration::parse(input)) {
        (None, Err(_)) => Judged::Same,
        (Some(expected), Ok(ours)) if u128::try_from(expected) == Ok(ours.as_nanos()) => Judged::Same,
        (_, Ok(ours)) => Judged::Unsafe(words(&format!("{} ns", ours.as_nanos()))),
        (Some(_), Err(_)) if input.starts_with('-') => Judged::Documented("negative"),
        (Some(_), Err(error)) => Judged::Unexplained(words(&error.message)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_value_is_unsafe_and_a_refusal_is_not() {
        assert_eq!(
            judge(&json!({"input": "60s", "nanos": 60_000_000_000u64})),
            Judged::Same
        );
        assert!(matches!(
            judge(&json!({"input": "60s", "nanos": 1})),
            Judged::Unsafe(_)
        ));
        assert!(matches!(
            judge(&json!({"input": "60s", "error": "x"})),
            Judged::Unsafe(_)
        ));
        assert_eq!(
            judge(&json!({"input": "-60s", "nanos": -60_000_000_000i64})),
            Judged::Documented("negative")
        );
        assert!(matches!(
            judge(&json!({"input": "60", "nanos": 1})),
            Judged::Unexplained(_)
        ));
        assert!(matches!(judge(&json!({"input": "60"})), Judged::Malformed(_)));
    }
}
