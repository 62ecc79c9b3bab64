//! Functions on text: trim, upper, lower, split, join, replace, indexOf, base64 …

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use crate::error::Fault;
use crate::run::access::integer;
use crate::run::args::{refused, text_arg};
use crate::run::budget::Budget;
use crate::syntax::names::Function;
use crate::value::{List, Shape, Value};

/// Bytes per step for functions that inspect text one character at a time.
const BYTES_PER_STEP: usize = 12;
/// Maximum bytes of the character set of `trim`.
const MAX_TRIMMED: usize = 64;
/// Limit of `repeat`, in bytes, as in Go.
const MAX_REPEATED: usize = 1_000_000;

/// Go's standard encoding: padded, and lenient about unused bits of the last character.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

fn from_base64(text: &str) -> Result<String, Fault> {
    // Go ignores line breaks.
    let signs: Vec<u8> = text
        .bytes()
        .filter(|sign| !matches!(sign, b'\n' | b'\r'))
        .collect();
    let bytes = BASE64
        .decode(signs)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    bytes.ok_or_else(|| Fault::runtime("fromBase64: the text is not base64-encoded UTF-8"))
}

pub(crate) fn call<'a>(
    function: Function,
    args: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    if function == Function::Join {
        return join(args, budget);
    }
    let text = text_arg(function, args.first().unwrap_or(&Value::Nil))?;
    if only_inspects(function) {
        budget.read(text.len())?;
    } else {
        budget.text(text.len())?;
        budget.step(text.len() / BYTES_PER_STEP)?;
    }
    let second = args.get(1);
    let other = match second {
        Some(value) if function != Function::Repeat => Some(text_arg(function, value)?),
        _ => None,
    };
    Ok(match function {
        Function::Upper => Value::text(text.to_uppercase()),
        Function::Lower => Value::text(text.to_lowercase()),
        Function::Trim => Value::text(match other {
            Some(signs) if signs.len() > MAX_TRIMMED => {
                return Err(Fault::budget(format!(
                    "the characters to remove in trim must be at most {MAX_TRIMMED} bytes long"
                )));
            }
            Some(signs) => text.trim_matches(|sign| signs.contains(sign)),
            None => text.trim(),
        }),
        Function::TrimPrefix => Value::text(text.strip_prefix(other.unwrap_or(" ")).unwrap_or(text)),
        Function::TrimSuffix => Value::text(text.strip_suffix(other.unwrap_or(" ")).unwrap_or(text)),
        Function::HasPrefix => Value::Bool(text.starts_with(other.unwrap_or(""))),
        Function::HasSuffix => Value::Bool(text.ends_with(other.unwrap_or(""))),
        Function::IndexOf => position(text.find(other.unwrap_or(""))),
        Function::LastIndexOf => position(text.rfind(other.unwrap_or(""))),
        Function::ToBase64 => Value::text(BASE64.encode(text.as_bytes())),
        Function::FromBase64 => Value::text(from_base64(text)?),
        Function::Repeat => repeat(text, second.unwrap_or(&Value::Nil), budget)?,
        Function::Split | Function::SplitAfter => {
            let count = args.get(2).map(integer).transpose()?.unwrap_or(-1);
            split(
                text,
                other.unwrap_or(""),
                count,
                function == Function::SplitAfter,
                budget,
            )?
        }
        Function::Replace => {
            let new = text_arg(function, args.get(2).unwrap_or(&Value::Nil))?;
            let count = args.get(3).map(integer).transpose()?.unwrap_or(-1);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let old = other.unwrap_or("");
            let hits = text.matches(old).take(count).count();
            budget.text(hits.saturating_mul(new.len()))?;
            Value::text(text.replacen(old, new, count))
        }
        other => return Err(Fault::runtime(format!("{other} is not a function of text"))),
    })
}

/// Returns whether a function only inspects text and builds none.
fn only_inspects(function: Function) -> bool {
    matches!(
        function,
        Function::HasPrefix | Function::HasSuffix | Function::IndexOf | Function::LastIndexOf
    )
}

fn position<'a>(at: Option<usize>) -> Value<'a> {
    Value::Int(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn repeat<'a>(text: &str, count: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    let count = usize::try_from(integer(count)?)
        .map_err(|_| Fault::runtime("the count of repeat must be greater than or equal to 0"))?;
    let bytes = text.len().saturating_mul(count);
    if bytes.max(count) >= MAX_REPEATED {
        return Err(Fault::budget(format!(
            "repeat would return more than {MAX_REPEATED} bytes"
        )));
    }
    budget.text(bytes)?;
    Ok(Value::text(text.repeat(count)))
}

/// Splits a text. `count` < 0: all pieces; 0: none; otherwise at most `count`, the last with the remainder.
fn split<'a>(
    text: &str,
    separator: &str,
    count: i64,
    keep: bool,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut words: Vec<Value<'a>> = Vec::new();
    let mut rest = text;
    if most == 0 {
        return Ok(Value::words(words));
    }
    loop {
        budget.elements(1)?;
        let cut = if separator.is_empty() {
            rest.char_indices().nth(1).map(|(at, _)| (at, at))
        } else {
            rest.find(separator).map(|at| (at, at + separator.len()))
        };
        match cut {
            Some((end, next)) if words.len() + 1 < most => {
                let end = if keep { next } else { end };
                words.push(Value::text(rest.get(..end).unwrap_or("")));
                rest = rest.get(next..).unwrap_or("");
            }
            _ => {
                if !(separator.is_empty() && rest.is_empty()) {
                    words.push(Value::text(rest));
                }
                break;
            }
        }
    }
    Ok(Value::words(words))
}

fn join<'a>(args: &[Value<'a>], budget: &mut Budget) -> Result<Value<'a>, Fault> {
    let list: &List<'a> = match args.first() {
        Some(Value::List(list))
            if !matches!(
                list,
                List::Floats(_)
                    | List::Range { .. }
                    | List::Made {
                        shape: Shape::Pairs,
                        ..
                    }
            ) =>
        {
            list
        }
        other => return Err(refused(Function::Join, other.unwrap_or(&Value::Nil))),
    };
    let glue = match args.get(1) {
        Some(glue) => text_arg(Function::Join, glue)?,
        None => "",
    };
    let mut out = String::new();
    for (at, item) in list.iter().enumerate() {
        let text = text_arg(Function::Join, &item)?;
        budget.text(text.len().saturating_add(glue.len()))?;
        budget.step(1)?;
        if at > 0 {
            out.push_str(glue);
        }
        out.push_str(text);
    }
    Ok(Value::text(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_go_reads_it() {
        assert_eq!(BASE64.encode("hook"), "aG9vaw==");
        assert_eq!(from_base64("aG9v\r\naw==").ok().as_deref(), Some("hook"));
        assert_eq!(from_base64("YR==").ok().as_deref(), Some("a"), "bits left over");
        for bad in ["a", "YQ=", "YQ", "!!!!", "/w=="] {
            assert!(from_base64(bad).is_err(), "{bad}");
        }
    }
}
