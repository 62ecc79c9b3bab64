//! Times and durations: reading them, printing them, and their methods (`now().Hour()`).

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::condition::check::types::Ty;
use crate::condition::error::Fault;
use crate::condition::run::arith::{between, nanos};
use crate::condition::value::Value;

const SECOND: i64 = 1_000_000_000;

/// The kind of `base.name(args)`.
pub(in crate::condition) fn check(base: &Ty, name: &str, args: &[Ty]) -> Result<Ty, Fault> {
    if base.is_unknown() || *base == Ty::Map {
        return Ok(Ty::Unknown);
    }
    let fits = |wanted: &Ty| matches!(args, [only] if only == wanted || only.is_unknown());
    let found = match (base, name) {
        (Ty::Time, "Year" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "YearDay") => {
            args.is_empty().then_some(Ty::Int)
        }
        (Ty::Time, "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano") => args.is_empty().then_some(Ty::Int64),
        (Ty::Time, "Before" | "After" | "Equal") => fits(&Ty::Time).then_some(Ty::Bool),
        (Ty::Time, "Sub") => fits(&Ty::Time).then_some(Ty::Duration),
        (Ty::Time, "Add") => fits(&Ty::Duration).then_some(Ty::Time),
        (Ty::Duration, "Hours" | "Minutes" | "Seconds") => args.is_empty().then_some(Ty::Float),
        (Ty::Duration, "Milliseconds" | "Microseconds" | "Nanoseconds") => {
            args.is_empty().then_some(Ty::Int64)
        }
        (Ty::Duration, "Abs") => args.is_empty().then_some(Ty::Duration),
        (Ty::Duration, "String") => args.is_empty().then_some(Ty::Str),
        _ => return Err(Fault::mismatch(format!("{base} has no method `{name}`"))),
    };
    found.ok_or_else(|| Fault::mismatch(format!("wrong arguments for `{name}`")))
}

/// Calls a method.
pub(in crate::condition) fn call<'a>(
    base: &Value<'a>,
    name: &str,
    args: &[Value<'a>],
) -> Result<Value<'a>, Fault> {
    let none = || Fault::runtime(format!("{} has no method `{name}`", base.describe()));
    match (base, args) {
        (Value::Time(time), []) => time_part(*time, name).map(Value::Int).ok_or_else(none),
        (Value::Time(time), [Value::Time(other)]) => Ok(match name {
            "Before" => Value::Bool(time < other),
            "After" => Value::Bool(time > other),
            "Equal" => Value::Bool(time == other),
            "Sub" => Value::Duration(between(*time, *other)),
            _ => return Err(none()),
        }),
        (Value::Time(time), [Value::Duration(span)]) if name == "Add" => {
            let moved = time.checked_add(SignedDuration::from_nanos(*span));
            moved
                .map(Value::Time)
                .map_err(|_| Fault::runtime("the time is out of range"))
        }
        (Value::Duration(span), []) => Ok(match name {
            "Hours" => Value::Float(nanos(*span) / nanos(3600 * SECOND)),
            "Minutes" => Value::Float(nanos(*span) / nanos(60 * SECOND)),
            "Seconds" => Value::Float(nanos(*span) / nanos(SECOND)),
            "Milliseconds" => Value::Int(span / 1_000_000),
            "Microseconds" => Value::Int(span / 1_000),
            "Nanoseconds" => Value::Int(*span),
            "Abs" => Value::Duration(span.saturating_abs()),
            "String" => Value::text(duration_text(*span)),
            _ => return Err(none()),
        }),
        _ => Err(none()),
    }
}

fn time_part(time: Timestamp, name: &str) -> Option<i64> {
    let utc = time.to_zoned(TimeZone::UTC);
    Some(match name {
        "Year" => i64::from(utc.year()),
        "Day" => i64::from(utc.day()),
        "Hour" => i64::from(utc.hour()),
        "Minute" => i64::from(utc.minute()),
        "Second" => i64::from(utc.second()),
        "Nanosecond" => i64::from(utc.subsec_nanosecond()),
        "YearDay" => i64::from(utc.day_of_year()),
        "Unix" => time.as_second(),
        "UnixMilli" => time.as_millisecond(),
        "UnixMicro" => time.as_microsecond(),
        "UnixNano" => i64::try_from(time.as_nanosecond()).ok()?,
        _ => return None,
    })
}

/// `2026-11-21`, `2026-11-21 09:00:00` (UTC) or RFC 3339.
pub(in crate::condition) fn parse_date<'a>(text: &str, rest: &[Value<'a>]) -> Result<Value<'a>, Fault> {
    if !rest.is_empty() {
        return Err(Fault::runtime(
            "date takes one argument: layouts and time zones are not supported",
        ));
    }
    let civil = match text.len() {
        10 => text.parse::<Date>().ok().map(|date| date.at(0, 0, 0, 0)),
        19 if text.as_bytes().get(10) == Some(&b' ') => text.parse::<DateTime>().ok(),
        _ => None,
    };
    let time = match civil {
        Some(civil) => civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp()),
        None if text.as_bytes().get(10) == Some(&b'T') => text.parse::<Timestamp>().ok(),
        None => None,
    };
    time.map(Value::Time).ok_or_else(|| {
        Fault::runtime(format!(
            "date: {text:?} is neither 2026-11-21, 2026-11-21 09:00:00 nor RFC 3339"
        ))
    })
}

/// A duration as `time.ParseDuration` reads it.
pub(in crate::condition) fn parse_duration<'a>(text: &str) -> Result<Value<'a>, Fault> {
    go_duration(text).map(Value::Duration).ok_or_else(|| {
        Fault::runtime(format!(
            "duration: {text:?} is not of the form 500ms, 60s, 1m30s, 1.5h"
        ))
    })
}

fn go_duration(text: &str) -> Option<i64> {
    if text.len() > 200 {
        return None;
    }
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if body == "0" {
        return Some(0);
    }
    if body.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    let mut rest = body;
    while !rest.is_empty() {
        let digits = rest
            .find(|sign: char| !sign.is_ascii_digit() && sign != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail
            .find(|sign: char| sign.is_ascii_digit() || sign == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && part.is_empty()) || part.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(scale)?)?;
        // Digits beyond the eighteenth are below a nanosecond.
        let part = part.get(..part.len().min(18))?;
        if !part.is_empty() {
            let places = u32::try_from(part.len()).ok()?;
            total = total.checked_add(part.parse::<i128>().ok()? * scale / 10_i128.pow(places))?;
        }
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// As Go prints a duration: `1h30m0s`, `1.5s`, `20ms`.
pub(in crate::condition) fn duration_text(span: i64) -> String {
    let sign = if span < 0 { "-" } else { "" };
    let total = span.unsigned_abs();
    let fraction = |value: u64, scale: u64, unit: &str| {
        let digits = scale.checked_ilog10().unwrap_or(0) as usize;
        let text = format!("{}.{:0digits$}", value / scale, value % scale);
        format!("{sign}{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match total {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{total}ns"),
        1_000..1_000_000 => fraction(total, 1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(total, 1_000_000, "ms"),
        _ => {
            let minutes = total / 60_000_000_000;
            let seconds = fraction(total % 60_000_000_000, 1_000_000_000, "s");
            let seconds = seconds.trim_start_matches('-');
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_there_and_back() {
        for (text, printed) in [
            ("1h30m", "1h30m0s"),
            ("1.5s", "1.5s"),
            ("20ms", "20ms"),
            ("-1m30s", "-1m30s"),
            ("1µs500ns", "1.5µs"),
            ("0", "0s"),
        ] {
            assert_eq!(
                go_duration(text).map(duration_text).as_deref(),
                Some(printed),
                "{text}"
            );
        }
        for text in ["", "1", "1x", "s", ".s", "1..5s", "-", "9999999h"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }
}
