//! Quantities compared by value: `1000m` is `1`, `1Gi` is `1024Mi`.
//!
//! The value is exact to billionths, the smallest unit of Kubernetes. A text that is not a quantity or is too
//! large keeps its form and equals only the same text.

use serde_json::Value;

/// Number of billionths in one.
const ONE: i128 = 1_000_000_000;
/// Number of billionths in a thousandth: the API server rounds resource amounts up to thousandths.
const THOUSANDTH: i128 = 1_000_000;

/// Rounding of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grain {
    /// Resource amounts, rounded up to thousandths.
    Resource,
    /// Everything else, not rounded.
    Exact,
}

/// Returns the canonical form of the value: a decimal number in a string.
pub(super) fn canonical(value: &Value, grain: Grain) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return other.clone(),
    };
    let Some(amount) = billionths(&text) else {
        return value.clone();
    };
    let amount = match grain {
        Grain::Resource => round_up(amount, THOUSANDTH),
        Grain::Exact => Some(amount),
    };
    amount.map_or_else(|| value.clone(), |amount| Value::String(decimal(amount)))
}

fn round_up(amount: i128, step: i128) -> Option<i128> {
    match amount.rem_euclid(step) {
        0 => Some(amount),
        rest => amount.checked_add(step - rest),
    }
}

fn decimal(amount: i128) -> String {
    let sign = if amount < 0 { "-" } else { "" };
    let (whole, rest) = (
        amount.unsigned_abs() / ONE.unsigned_abs(),
        amount.unsigned_abs() % ONE.unsigned_abs(),
    );
    let text = format!("{sign}{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Factor of a suffix: a power of two and a power of ten.
struct SuffixFactor {
    two: u32,
    ten: i32,
}

/// Parses a quantity into billionths and rounds its magnitude up.
fn billionths(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let length = text
        .find(|letter: char| letter != '.' && !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(length);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = scale(suffix)?;
    let digits = format!("0{whole}{fraction}").parse::<i128>().ok()?;
    let factor = 1i128.checked_shl(scale.two)?;
    let value = digits.checked_mul(factor)?;
    let power = i32::try_from(fraction.len())
        .ok()
        .and_then(|places| scale.ten.checked_add(9)?.checked_sub(places))?;
    let ten = 10i128.checked_pow(power.unsigned_abs())?;
    let value = if power >= 0 {
        value.checked_mul(ten)?
    } else {
        round_up(value, ten)? / ten
    };
    Some(if negative { -value } else { value })
}

fn scale(suffix: &str) -> Option<SuffixFactor> {
    let ten = |ten| Some(SuffixFactor { two: 0, ten });
    let two = |two| Some(SuffixFactor { two, ten: 0 });
    match suffix {
        "" => ten(0),
        "n" => ten(-9),
        "u" => ten(-6),
        "m" => ten(-3),
        "k" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "E" => ten(18),
        "Ki" => two(10),
        "Mi" => two(20),
        "Gi" => two(30),
        "Ti" => two(40),
        "Pi" => two(50),
        "Ei" => two(60),
        exponent => {
            let power = exponent.strip_prefix(['e', 'E'])?;
            ten(power.parse::<i16>().ok()?.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_of_one_value_are_equal() {
        for (forms, value) in [
            (json!(["1000m", "1", 1, "1.0", "+1", "1e0"]), "1"),
            (
                json!(["1Gi", "1024Mi", "1073741824", 1_073_741_824]),
                "1073741824",
            ),
            (json!(["0.5", ".5", "500m", 0.5, "0.50", "5E-1"]), "0.5"),
            (json!(["1k", "1e3", "1E3", "1000."]), "1000"),
            (json!(["1.5Gi", "1536Mi"]), "1610612736"),
            (json!(["1Ei", "1024Pi"]), "1152921504606846976"),
            (json!(["1E", "1000P"]), "1000000000000000000"),
            (json!(["0", "0.0", 0, "0Ki", "-0"]), "0"),
            (json!(["0.1m", "1n", "1m", "0.0000000001"]), "0.001"),
        ] {
            for form in forms.as_array().unwrap() {
                assert_eq!(canonical(form, Grain::Resource), json!(value), "{form}");
            }
        }
        assert_eq!(canonical(&json!("1n"), Grain::Exact), json!("0.000000001"));
        assert_eq!(canonical(&json!("-1500m"), Grain::Exact), json!("-1.5"));
    }

    #[test]
    fn what_is_no_quantity_keeps_its_text() {
        for text in [
            "", ".", "-", "1.2.3", "1kB", "Gi", "1 Gi", "1e", "1e99999", "９", "--1", "1e40", "e3",
        ] {
            assert_eq!(canonical(&json!(text), Grain::Resource), json!(text), "{text}");
        }
        for value in [json!(null), json!(true), json!([1]), json!({"a": 1})] {
            assert_eq!(canonical(&value, Grain::Resource), value);
        }
    }
}
