//! Functions on lists and objects: first, last, take, keys, values, reverse, uniq, concat, flatten …

use crate::absent::Absent;
use crate::error::Fault;
use crate::run::access;
use crate::run::args::refused;
use crate::run::budget::Budget;
use crate::run::compare::equal;
use crate::run::eval::as_map;
use crate::syntax::names::Function;
use crate::value::{List, Value};

pub(crate) fn call<'a>(
    function: Function,
    args: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    let first = args.first().unwrap_or(&Value::Nil);
    match function {
        // As in Go, these two never fail: the result is absent if there is no element.
        Function::First => Ok(element(first, 0, budget).unwrap_or_else(|| Absent::nothing("first(…)"))),
        Function::Last => Ok(element(first, -1, budget).unwrap_or_else(|| Absent::nothing("last(…)"))),
        Function::Keys | Function::Values | Function::ToPairs => {
            let map = as_map(first).ok_or_else(|| refused(function, first))?;
            budget.elements(map.len())?;
            let mut out = Vec::with_capacity(map.len());
            for (key, value) in map.entries() {
                out.push(match function {
                    Function::Keys => key,
                    Function::Values => value,
                    _ => Value::list(vec![key, value])?,
                });
            }
            if function == Function::ToPairs {
                Value::list_of_pairs(out)
            } else {
                Value::list(out)
            }
        }
        Function::Concat => {
            let mut out = Vec::new();
            for arg in args {
                let list = items(function, arg)?;
                budget.elements(list.len())?;
                out.extend(list.iter());
            }
            if out.is_empty() {
                Ok(Value::absent_list())
            } else {
                Value::list(out)
            }
        }
        _ => on_list(function, items(function, first)?, args.get(1), budget),
    }
}

fn element<'a>(base: &Value<'a>, index: i64, budget: &mut Budget) -> Option<Value<'a>> {
    match base {
        Value::Missing(_) => Some(base.clone()),
        _ => access::fetch(base, &Value::Int(index), budget).ok(),
    }
}

fn items<'v, 'a>(function: Function, value: &'v Value<'a>) -> Result<&'v List<'a>, Fault> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(refused(function, other)),
    }
}

fn on_list<'a>(
    function: Function,
    list: &List<'a>,
    second: Option<&Value<'a>>,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    match function {
        Function::Take => match second {
            Some(Value::Int(count)) if *count >= 0 => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX).min(list.len());
                Ok(Value::List(list.slice(0, count)))
            }
            other => Err(refused(function, other.unwrap_or(&Value::Nil))),
        },
        Function::Reverse => {
            budget.elements(list.len())?;
            Value::list((0..list.len()).rev().filter_map(|at| list.get(at)).collect())
        }
        Function::Uniq => {
            let mut kept: Vec<Value<'a>> = Vec::new();
            for item in list.iter() {
                let mut known = false;
                for own in &kept {
                    if equal(&item, own, budget)? {
                        known = true;
                        break;
                    }
                }
                if !known {
                    budget.elements(1)?;
                    kept.push(item);
                }
            }
            Value::list(kept)
        }
        Function::FromPairs => from_pairs(list, budget),
        _ => {
            let mut out = Vec::new();
            flatten(list, &mut out, budget)?;
            Value::list(out)
        }
    }
}

fn from_pairs<'a>(list: &List<'a>, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    budget.elements(list.len())?;
    let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::new();
    for pair in list.iter() {
        let Value::List(pair) = &pair else {
            return Err(refused(Function::FromPairs, &pair));
        };
        let (2, Some(key), Some(value)) = (pair.len(), pair.get(0), pair.get(1)) else {
            return Err(Fault::runtime("fromPairs takes a list of [key, value] pairs"));
        };
        if matches!(key, Value::List(_) | Value::Map(_)) {
            return Err(refused(Function::FromPairs, &key));
        }
        let mut known = None;
        for (at, (own, _)) in entries.iter().enumerate() {
            if crate::run::compare::identical(own, &key, budget)? {
                known = Some(at);
                break;
            }
        }
        match known.and_then(|at| entries.get_mut(at)) {
            Some(entry) => entry.1 = value,
            None => entries.push((key, value)),
        }
    }
    Value::pairs(entries, false)
}

fn flatten<'a>(list: &List<'a>, out: &mut Vec<Value<'a>>, budget: &mut Budget) -> Result<(), Fault> {
    for item in list.iter() {
        if let Value::List(inner) = &item {
            budget.step(1)?;
            flatten(inner, out, budget)?;
        } else {
            budget.elements(1)?;
            out.push(item);
        }
    }
    Ok(())
}

/// Evaluates `get(base, key)`: like `base[key]`, but nil if an index is out of range.
pub(crate) fn get<'a>(base: &Value<'a>, key: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>, Fault> {
    match base {
        Value::List(_) | Value::Str(_) => {
            access::integer(key)?;
            Ok(access::fetch(base, key, budget).unwrap_or_else(|_| Absent::nothing("get(…)")))
        }
        Value::Map(_) => access::fetch(base, key, budget),
        Value::Missing(_) => Ok(base.clone()),
        _ => Ok(Absent::nothing("get(…)")),
    }
}
