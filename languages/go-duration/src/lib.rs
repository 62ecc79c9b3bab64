#![doc = include_str!("../README.md")]

use std::time::Duration;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// Maximum of a signed 64-bit number of nanoseconds, as in Go.
const MAX: u64 = i64::MAX.unsigned_abs();

/// Reason why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DurationError {
    /// Message for users: the first 64 characters of the text, the problem and the correct form.
    pub message: String,
}

/// Parses a non-negative duration, such as an interval or a timeout. Units are `ns us ms s m h`; several are
/// added up; `0` alone needs no unit.
///
/// # Errors
/// If Go rejects the text, or if it begins with a minus sign.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let sum = match text.strip_prefix('-') {
        Some(_) => Err(NEGATIVE),
        None => magnitude(text, MAX),
    };
    sum.map(Duration::from_nanos)
        .map_err(|reason| refused(text, reason))
}

/// Parses a duration of either sign, in nanoseconds like Go's `time.Duration`.
///
/// # Errors
/// If Go rejects the text.
pub fn parse_signed(text: &str) -> Result<i64, DurationError> {
    let sum = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(['+', '-']) || rest.is_empty() => Err(NO_NUMBER),
        Some(rest) => magnitude(rest, MAX + 1).map(|sum| 0_i64.wrapping_sub_unsigned(sum)),
        None => magnitude(text, MAX).map(|sum| 0_i64.wrapping_add_unsigned(sum)),
    };
    sum.map_err(|reason| refused(text, reason))
}

const EMPTY: &str = "is empty; write a number and a unit, such as 30s";
const NEGATIVE: &str = "must not be negative";
const ONLY_A_SIGN: &str = "is not a duration; write a number and a unit, such as 30s";
const NO_NUMBER: &str = "is not a duration; write a number and a unit, such as 1m30s";
const NO_UNIT: &str = "has a number without a unit; add one of ns, us, ms, s, m, h";
const UNKNOWN_UNIT: &str = "has an unknown unit; use ns, us, ms, s, m or h, without spaces";
const TOO_LONG: &str = "is too long; the maximum is 2562047h";

fn refused(text: &str, reason: &str) -> DurationError {
    let shown: String = text.chars().take(64).collect();
    let message = format!("duration {shown:?} {reason}");
    DurationError { message }
}

/// Returns the sum in nanoseconds, at most `most`, of a text that may start with a plus sign.
fn magnitude(text: &str, most: u64) -> Result<u64, &'static str> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(if text.is_empty() { EMPTY } else { ONLY_A_SIGN });
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let (amount, after) = parse_decimal(rest)?;
        let length = after
            .find(|next: char| next == '.' || next.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(length);
        let unit = match unit {
            "" => return Err(NO_UNIT),
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
            "ms" => MILLISECOND,
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            _ => return Err(UNKNOWN_UNIT),
        };
        total = amount
            .nanoseconds(unit)
            .and_then(|nanoseconds| total.checked_add(nanoseconds))
            .filter(|sum| *sum <= most)
            .ok_or(TOO_LONG)?;
        rest = next;
    }
    Ok(total)
}

/// A number with a fraction of `fraction / scale`.
struct Decimal {
    whole: u64,
    fraction: u64,
    scale: f64,
}

impl Decimal {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Go computes the fraction in floats and truncates; the same value is wanted"
    )]
    fn nanoseconds(&self, unit: u64) -> Option<u64> {
        let fraction = (self.fraction as f64 * (unit as f64 / self.scale)) as u64;
        self.whole.checked_mul(unit)?.checked_add(fraction)
    }
}

/// Parses digits with an optional fraction. The remainder starts at the unit.
fn parse_decimal(text: &str) -> Result<(Decimal, &str), &'static str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut rest) = text.split_at(digits(text));
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = after.split_at(digits(after));
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(NO_NUMBER);
    }
    let mut amount = Decimal {
        whole: 0,
        fraction: 0,
        scale: 1.0,
    };
    for digit in whole.bytes() {
        let next = amount
            .whole
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')));
        amount.whole = next.ok_or(TOO_LONG)?;
    }
    for digit in fraction.bytes() {
        // The first digit that no longer fits into 63 bits is worth less than a nanosecond: it and all
        // following digits are dropped.
        let next = amount
            .fraction
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')));
        match next {
            Some(next) if amount.fraction <= MAX / 10 && next <= MAX + 1 => amount.fraction = next,
            _ => break,
        }
        amount.scale *= 10.0;
    }
    Ok((amount, rest))
}

/// Formats a duration like Go's `Duration.String`: `1m30s`, `1.5s`, `2h0m0s`, `0s`.
pub fn display(duration: Duration) -> String {
    let nanoseconds = duration.subsec_nanos();
    if duration.as_secs() == 0 {
        return match nanoseconds {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanoseconds}ns"),
            1_000..1_000_000 => format!(
                "{}µs",
                decimal(u64::from(nanoseconds / 1_000), nanoseconds % 1_000, 3)
            ),
            _ => format!(
                "{}ms",
                decimal(u64::from(nanoseconds / 1_000_000), nanoseconds % 1_000_000, 6)
            ),
        };
    }
    let (minutes, seconds) = (duration.as_secs() / 60, duration.as_secs() % 60);
    let seconds = decimal(seconds, nanoseconds, 9);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Like [`display`], for nanoseconds of either sign.
pub fn display_signed(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    format!(
        "{sign}{}",
        display(Duration::from_nanos(nanoseconds.unsigned_abs()))
    )
}

fn decimal(whole: u64, fraction: u32, digits: usize) -> String {
    let text = format!("{whole}.{fraction:0digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_mean_what_they_mean_to_go() {
        for (text, nanoseconds, canonical) in [
            ("60s", 60 * SECOND, "1m0s"),
            ("500ms", 500 * MILLISECOND, "500ms"),
            ("1m30s", 90 * SECOND, "1m30s"),
            ("1.5h", 90 * MINUTE, "1h30m0s"),
            ("30m1h", 90 * MINUTE, "1h30m0s"),
            ("+1s", SECOND, "1s"),
            (".5s", 500 * MILLISECOND, "500ms"),
            ("1.s", SECOND, "1s"),
            ("0", 0, "0s"),
            ("0m0s", 0, "0s"),
            ("1s.5m", 31 * SECOND, "31s"),
            ("1.1s", 1_100 * MILLISECOND, "1.1s"),
            ("100µs", 100 * MICROSECOND, "100µs"),
            ("100μs", 100 * MICROSECOND, "100µs"),
            ("1500us", 1_500 * MICROSECOND, "1.5ms"),
            ("1001ns", 1_001, "1.001µs"),
            ("0.9ns", 0, "0s"),
            ("0.3333333333333333333h", 20 * MINUTE, "20m0s"),
            ("0.9223372036854775807h", 3_320_413_933_267, "55m20.413933267s"),
            ("9223372036854775807ns", MAX, "2562047h47m16.854775807s"),
            ("2562047h47m16.854775807s", MAX, "2562047h47m16.854775807s"),
        ] {
            let parsed = parse(text).expect(text);
            assert_eq!(parsed, Duration::from_nanos(nanoseconds), "{text}");
            assert_eq!(display(parsed), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_interval_is_refused_with_a_remedy() {
        for (text, word) in [
            ("", "empty"),
            ("-1s", "negative"),
            ("-0", "negative"),
            ("60", "without a unit"),
            ("00", "without a unit"),
            ("1h30", "without a unit"),
            ("1.5.5s", "without a unit"),
            ("+", "not a duration"),
            (".s", "not a duration"),
            ("s", "not a duration"),
            ("１s", "not a duration"),
            ("\t1s", "not a duration"),
            ("60 s", "unknown unit"),
            ("60s ", "unknown unit"),
            ("1d", "unknown unit"),
            ("1S", "unknown unit"),
            ("1hour", "unknown unit"),
            ("1h-5m", "unknown unit"),
            ("1e3s", "unknown unit"),
            ("9223372036854775808ns", "too long"),
            ("9223372036854775.808us", "too long"),
            ("2562048h", "too long"),
            ("99999999999999999999h", "too long"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.message.contains(word), "{text}: {error}");
            assert!(error.message.contains(&format!("{text:?}")), "{text}: {error}");
        }
    }

    #[test]
    fn either_sign_is_read_and_printed_as_go_does() {
        for (text, nanoseconds, canonical) in [
            ("-1m30s", -90_000_000_000, "-1m30s"),
            ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
            ("-.5s", -500_000_000, "-500ms"),
            ("-0", 0, "0s"),
            ("-0.9ns", 0, "0s"),
            ("1µs500ns", 1_500, "1.5µs"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
            ("-9223372036854775.808us", i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(parse_signed(text), Ok(nanoseconds), "{text}");
            assert_eq!(display_signed(nanoseconds), canonical, "{text}");
        }
        for text in [
            "",
            "-",
            "--1s",
            "-+1s",
            "+-1s",
            "- 1s",
            "-00",
            "-1",
            "1x",
            "1..5s",
            "9223372036854775808ns",
            "-9223372036854775809ns",
        ] {
            assert!(parse_signed(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_of_either_sign_reads_back(nanoseconds in any::<i64>()) {
            prop_assert_eq!(parse_signed(&display_signed(nanoseconds)), Ok(nanoseconds));
        }

        #[test]
        fn without_a_minus_sign_both_readings_are_the_same(text in "[+.0-9]{0,4}[+.0-9nuµmsh]{0,20}") {
            let signed = parse_signed(&text).map(i64::unsigned_abs).map(Duration::from_nanos);
            prop_assert_eq!(parse(&text), signed);
        }

        #[test]
        fn a_minus_sign_changes_the_sign_alone(text in "[.0-9]{1,4}[.0-9nuµmsh]{0,20}") {
            if let Ok(nanoseconds) = parse_signed(&text) {
                prop_assert_eq!(parse_signed(&format!("-{text}")), Ok(-nanoseconds));
            }
        }

        #[test]
        fn long_texts_end_soon(digits in 1..100_000usize, many in 1..20_000usize) {
            let _ = parse(&"9".repeat(digits));
            let _ = parse(&format!("0.{}s", "1".repeat(digits)));
            prop_assert_eq!(parse(&"1ns".repeat(many)), Ok(Duration::from_nanos(many as u64)));
        }

        #[test]
        fn the_canonical_form_reads_back(nanoseconds in prop_oneof![0..=MAX, 0..10_000_000_000u64]) {
            let duration = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(parse(&display(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "[-+.0-9nuµmshd ]{0,24}|.{0,16}") {
            let (unsigned, signed) = (parse(&text), parse_signed(&text));
            prop_assert!(signed.is_ok() || unsigned.is_err());
        }
    }
}
