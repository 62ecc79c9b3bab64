//! Dispatch of built-in functions without closures.

use crate::error::Fault;
use crate::number;
use crate::run::args::{refused, text_arg};
use crate::run::arith::unfit;
use crate::run::budget::Budget;
use crate::run::builtin_list;
use crate::run::builtin_number;
use crate::run::builtin_text;
use crate::run::closures;
use crate::run::eval::Machine;
use crate::run::json_text;
use crate::run::methods;
use crate::syntax::names::Function;
use crate::value::{List, Value};

/// Calls a function with evaluated arguments.
pub(crate) fn call<'a>(
    machine: &mut Machine<'a>,
    function: Function,
    args: &[Value<'a>],
) -> Result<Value<'a>, Fault> {
    // The results of these functions may be absent, and so may the values that they search.
    let may_be_absent = usize::from(matches!(
        function,
        Function::First | Function::Last | Function::Get
    ));
    args.iter().skip(may_be_absent).try_for_each(Value::present)?;
    let budget = &mut machine.budget;
    match (function, args) {
        (Function::Now, []) => Ok(Value::Time(machine.environment.now)),
        (Function::Type, [value]) => Ok(Value::text(type_of(value))),
        (Function::String, [value]) => text_of(value, budget).map(Value::text),
        (Function::ToJson, [value]) => json_text::write(value, budget).map(Value::text),
        (Function::FromJson, [value]) => json_text::read(text_arg(function, value)?, budget),
        (Function::Len, [value]) => len(value, budget),
        (Function::Get, [base, key]) => builtin_list::get(base, key, budget),
        (Function::Duration, [value]) => methods::parse_duration(text_arg(function, value)?),
        (Function::Date, [value, rest @ ..]) => methods::parse_date(text_arg(function, value)?, rest),
        (Function::Timezone, _) => Err(Fault::runtime("time zones are not supported; times are UTC")),
        (Function::Sort, [list, rest @ ..]) => {
            let Value::List(items) = list else {
                return Err(refused(function, list));
            };
            machine.budget.elements(items.len())?;
            let descending = closures::is_descending(rest.first())?;
            let keyed = items.iter().map(|item| (item.clone(), item)).collect();
            closures::sort_pairs(machine, keyed, descending)
        }
        (
            Function::Abs
            | Function::Ceil
            | Function::Floor
            | Function::Round
            | Function::Int
            | Function::Float
            | Function::Max
            | Function::Min
            | Function::Mean
            | Function::Median
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::BitNand
            | Function::BitShl
            | Function::BitShr
            | Function::BitUshr
            | Function::BitNot,
            _,
        ) => builtin_number::call(function, args, budget),
        (
            Function::First
            | Function::Last
            | Function::Take
            | Function::Keys
            | Function::Values
            | Function::ToPairs
            | Function::FromPairs
            | Function::Reverse
            | Function::Uniq
            | Function::Concat
            | Function::Flatten,
            _,
        ) => builtin_list::call(function, args, budget),
        _ => builtin_text::call(function, args, budget),
    }
}

fn len<'a>(value: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    let len = match value {
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Str(text) => {
            budget.read(text.as_str().len())?;
            text.as_str().chars().count()
        }
        other => return Err(refused(Function::Len, other)),
    };
    Ok(Value::Int(i64::try_from(len).unwrap_or(i64::MAX)))
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Nil | Value::Missing(_) => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Whole(_) | Value::Float(_) => "float",
        Value::Str(_) => "string",
        Value::Time(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(_) => "array",
        Value::Map(_) => "map",
        Value::Function => "func",
    }
}

/// Formats a value like Go's `%v`, with exact integers.
pub(crate) fn text_of(value: &Value<'_>, budget: &mut Budget) -> Result<String, Fault> {
    let mut out = String::new();
    write(value, &mut out, budget)?;
    Ok(out)
}

fn write(value: &Value<'_>, out: &mut String, budget: &mut Budget) -> Result<(), Fault> {
    budget.step(1)?;
    let text = match value {
        Value::Nil => "<nil>".to_owned(),
        Value::Missing(absent) => return Err(absent.fault()),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Whole(n) => n.to_string(),
        Value::Float(n) => {
            value.comparable(budget.rules)?;
            number::float_text(*n)
        }
        Value::Str(text) => text.as_str().to_owned(),
        Value::Time(time) => time.to_string(),
        Value::Duration(span) => go_duration::display_signed(*span),
        Value::List(list) => return write_list(list, out, budget),
        Value::Map(map) => {
            out.push_str("map[");
            for (at, (key, value)) in map.entries().iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write(key, out, budget)?;
                out.push(':');
                write(value, out, budget)?;
            }
            out.push(']');
            return Ok(());
        }
        Value::Function => return Err(unfit("string()", value, value)),
    };
    budget.text(text.len())?;
    out.push_str(&text);
    Ok(())
}

fn write_list(list: &List<'_>, out: &mut String, budget: &mut Budget) -> Result<(), Fault> {
    out.push('[');
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        write(&item, out, budget)?;
    }
    out.push(']');
    Ok(())
}
