//! Times and durations: parsing, formatting, and methods (`now().Hour()`).

use go_duration::display_signed;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::check::types::Ty;
use crate::error::Fault;
use crate::run::arith::{between, nanos};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;
/// Maximum length of a duration's text, in bytes.
const MAX_DURATION: usize = 200;

/// Returns the type of `base.name(args)`.
pub(crate) fn check(base: &Ty, name: &str, args: &[Ty]) -> Result<Ty, Fault> {
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
pub(crate) fn call<'a>(base: &Value<'a>, name: &str, args: &[Value<'a>]) -> Result<Value<'a>, Fault> {
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
            "String" => Value::text(display_signed(*span)),
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

/// Parses `2026-11-21`, `2026-11-21 09:00:00` (UTC) or RFC 3339.
pub(crate) fn parse_date<'a>(text: &str, rest: &[Value<'a>]) -> Result<Value<'a>, Fault> {
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
            "date: {text:?} is not a date such as 2026-11-21, 2026-11-21 09:00:00 or RFC 3339"
        ))
    })
}

/// Parses a duration like `time.ParseDuration`.
pub(crate) fn parse_duration<'a>(text: &str) -> Result<Value<'a>, Fault> {
    let nanoseconds = Some(text)
        .filter(|text| text.len() <= MAX_DURATION)
        .and_then(|text| go_duration::parse_signed(text).ok());
    nanoseconds.map(Value::Duration).ok_or_else(|| {
        Fault::runtime(format!(
            "duration: {text:?} is not a duration such as 500ms, 60s, 1m30s or 1.5h"
        ))
    })
}
