//! Value that one measurement yields, which conditions call `result`.

use expr_conditions::Input;
use serde_json::Value;

/// Value bound to `result` in a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    /// JSON value found by `jsonPath` in the answer of a web endpoint; integers are exact.
    Json(Value),
    /// Prometheus scalar; may be NaN or infinite.
    Scalar(f64),
    /// Samples of a Prometheus instant vector, in server order; may contain NaN or infinities.
    Vector(Vec<f64>),
}

impl MetricValue {
    /// Formats the value for the status: a JSON string raw, other JSON compact, numbers of Prometheus in full
    /// without an exponent (`0.99`, `+Inf`), a vector as `[0.99,1]`. Does not shorten it; see [`cut`].
    pub fn text(&self) -> String {
        match self {
            Self::Json(Value::String(text)) => text.clone(),
            Self::Json(value) => value.to_string(),
            Self::Scalar(number) => plain_number(*number),
            Self::Vector(numbers) => {
                let numbers: Vec<String> = numbers.iter().copied().map(plain_number).collect();
                format!("[{}]", numbers.join(","))
            }
        }
    }
}

impl<'a> From<&'a MetricValue> for Input<'a> {
    fn from(value: &'a MetricValue) -> Self {
        match value {
            MetricValue::Json(json) => Self::Json(json),
            MetricValue::Scalar(number) => Self::Float(*number),
            MetricValue::Vector(numbers) => Self::Floats(numbers),
        }
    }
}

/// Formats a number like Go's `FormatFloat(x, 'f', -1, 64)`, which the original operator wrote to the status.
fn plain_number(number: f64) -> String {
    if number == f64::INFINITY {
        "+Inf".into()
    } else if number == f64::NEG_INFINITY {
        "-Inf".into()
    } else {
        number.to_string()
    }
}

/// Formats a number with its noun: `1 byte`, `2 bytes`.
pub(crate) fn counted<N>(count: N, one: &str, many: &str) -> String
where
    N: Copy + std::fmt::Display + PartialEq + From<u8>,
{
    let noun = if count == N::from(1) { one } else { many };
    format!("{count} {noun}")
}

/// Mark that [`cut`] puts in place of missing text.
const CUT_MARK: &str = "… (cut)";

/// Returns the text if it has at most `max_bytes`, otherwise its beginning and a mark, together within
/// `max_bytes`. Never splits a character.
pub fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let (room, mark) = match max_bytes.checked_sub(CUT_MARK.len()) {
        Some(room) => (room, CUT_MARK),
        None => (max_bytes, ""),
    };
    let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
    format!("{kept}{mark}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_reads_as_people_and_the_original_write_it() {
        let cases = [
            (MetricValue::Json(json!("busy")), "busy"),
            (MetricValue::Json(json!(45)), "45"),
            (MetricValue::Json(json!(1_000_000)), "1000000"),
            (
                MetricValue::Json(json!(18_446_744_073_709_551_615_u64)),
                "18446744073709551615",
            ),
            (MetricValue::Json(json!(0.5)), "0.5"),
            (MetricValue::Json(json!(true)), "true"),
            (MetricValue::Json(json!(null)), "null"),
            (MetricValue::Json(json!({"a": [1, "b"]})), r#"{"a":[1,"b"]}"#),
            (MetricValue::Json(json!([])), "[]"),
            (MetricValue::Scalar(0.99), "0.99"),
            (MetricValue::Scalar(1.0), "1"),
            (MetricValue::Scalar(1e6), "1000000"),
            (MetricValue::Scalar(1e21), "1000000000000000000000"),
            (MetricValue::Scalar(1e-7), "0.0000001"),
            (MetricValue::Scalar(f64::NAN), "NaN"),
            (MetricValue::Scalar(f64::INFINITY), "+Inf"),
            (MetricValue::Scalar(f64::NEG_INFINITY), "-Inf"),
            (MetricValue::Vector(vec![]), "[]"),
            (MetricValue::Vector(vec![0.99, 1.0, f64::NAN]), "[0.99,1,NaN]"),
        ];
        for (value, text) in cases {
            assert_eq!(value.text(), text, "{value:?}");
        }
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(1_u64, "byte", "bytes"), "1 byte");
        assert_eq!(counted(0_i64, "byte", "bytes"), "0 bytes");
        assert_eq!(counted(2_usize, "byte", "bytes"), "2 bytes");
    }

    #[test]
    fn a_cut_keeps_within_its_bound_and_never_splits_a_character() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("0123456789abcdef", 12), "012… (cut)");
        for max in 0..40 {
            let text = cut(&"é€𝄞".repeat(9), max);
            assert!(text.len() <= max, "{max}: {text}");
            assert_eq!(text.ends_with("(cut)"), max >= CUT_MARK.len(), "{max}: {text}");
        }
    }
}
