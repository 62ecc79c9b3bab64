//! Numbers and text: formatting and parsing of numbers.

use serde_json::Number;

use crate::value::Value;

/// Limit above which not every integer has an exact float.
const EXACT: i128 = 1 << 53;

/// Maximum length of a text that is parsed as a number.
const MAX_NUMERIC: usize = 1000;

/// Converts a JSON number: a float as in Go, except that large integers stay exact.
pub(crate) fn from_json<'a>(number: &Number) -> Value<'a> {
    let whole = number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from));
    match whole {
        Some(large) if large.abs() > EXACT => exact(large),
        _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Returns an integer as a JSON number is represented: a float, if it holds the integer exactly.
#[expect(clippy::cast_precision_loss, reason = "the range is checked first")]
pub(crate) fn exact<'a>(integer: i128) -> Value<'a> {
    if integer.abs() > EXACT {
        Value::Whole(integer)
    } else {
        Value::Float(integer as f64)
    }
}

/// Returns the integer that a number is; `None` for a fraction, and for a float that may be a rounded integer.
pub(crate) fn integer(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Whole(n) => Some(*n),
        Value::Float(n) if n.fract() == 0.0 => {
            truncate(*n).map(i128::from).filter(|whole| whole.abs() <= EXACT)
        }
        _ => None,
    }
}

/// Parses a 64-bit integer in base 10 like `strconv.ParseInt(s, 10, 64)`.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    if text.len() > MAX_NUMERIC {
        return None;
    }
    text.parse().ok()
}

/// Parses a float like `strconv.ParseFloat(s, 64)`: `1e3`, `.5`, `NaN`, `inf`, hex with an exponent, `1_0`.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    if text.len() > MAX_NUMERIC {
        return None;
    }
    let (negative, body) = match text.as_bytes().first()? {
        b'+' => (false, text.get(1..)?),
        b'-' => (true, text.get(1..)?),
        _ => (false, text),
    };
    let signed = |number: f64| if negative { -number } else { number };
    let lower = body.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Some(signed(f64::INFINITY)),
        "nan" => return (body.len() == text.len()).then_some(f64::NAN),
        _ => {}
    }
    if lower.starts_with(['+', '-']) {
        return None;
    }
    if lower.contains('_') && !underscores_separate_digits(&lower) {
        return None;
    }
    let lower = lower.replace('_', "");
    let number = match lower.strip_prefix("0x") {
        Some(hex) => parse_hex_float(hex)?,
        None if lower
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-')) =>
        {
            lower.parse().ok()?
        }
        None => return None,
    };
    number.is_finite().then(|| signed(number))
}

fn underscores_separate_digits(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let hex = digits.len() != text.len();
    let is_digit = |b: u8| {
        if hex {
            b.is_ascii_hexdigit()
        } else {
            b.is_ascii_digit()
        }
    };
    let bytes = digits.as_bytes();
    bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'_')
        .all(|(at, _)| {
            let before = if at == 0 {
                hex
            } else {
                bytes.get(at - 1).is_some_and(|b| is_digit(*b))
            };
            before && bytes.get(at + 1).is_some_and(|b| is_digit(*b))
        })
}

/// Parses `1.8p-3`: hexadecimal digits and a binary exponent.
fn parse_hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    let mut exponent = parse_exponent(exponent)?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut number = 0.0_f64;
    for sign in whole.chars().chain(part.chars()) {
        number = number * 16.0 + f64::from(sign.to_digit(16)?);
    }
    exponent = exponent.checked_sub(i32::try_from(part.len()).ok()?.checked_mul(4)?)?;
    Some(number * 2.0_f64.powi(exponent.clamp(-2000, 2000)))
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if text.len() > MAX_NUMERIC {
        return None;
    }
    text.parse().ok()
}

/// Formats a float like Go's `%v`, except that integers below 1e21 keep all their digits.
pub(crate) fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let whole = number.trunc().to_bits() == number.to_bits();
    if whole && number.abs() < 1e21 {
        return format!("{number}");
    }
    let shortest = format!("{number:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Truncates a float to an integer; `None` if Go's result depends on the processor.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
pub(crate) fn truncate(number: f64) -> Option<i64> {
    let cut = number.trunc();
    // Both bounds are powers of two and exact as floats.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
        .contains(&cut)
        .then_some(cut as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_floats() {
        for (text, want) in [
            ("1e3", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1.5", 1.5),
            ("1_0", 10.0),
            ("0x1p-2", 0.25),
            ("0x.8p1", 1.0),
            ("-Inf", f64::NEG_INFINITY),
            ("infinity", f64::INFINITY),
        ] {
            assert_eq!(parse_float(text), Some(want), "{text}");
        }
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
        for text in [
            "", " 1", "1 ", "0x10", "1e400", "1__0", "_1", "1e", "e", "+nan", "1,5", "--1", "0x1p",
        ] {
            assert_eq!(parse_float(text), None, "{text}");
        }
    }

    #[test]
    fn texts_that_are_integers() {
        assert_eq!(parse_int("+5"), Some(5));
        assert_eq!(parse_int("05"), Some(5));
        for text in ["", " 5", "5.0", "1e3", "0x5", "1_000", "9223372036854775808"] {
            assert_eq!(parse_int(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_print_as_go_prints_them_but_integers_stay_whole() {
        for (number, want) in [
            (1_000_000.0, "1000000"),
            (-0.0, "-0"),
            (2.5, "2.5"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1e21, "1e+21"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(float_text(number), want);
        }
    }
}
