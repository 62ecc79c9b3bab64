//! Functions that apply a closure to a list: all, any, filter, map, count, sum, find, reduce …

use crate::absent::Absent;
use crate::error::Fault;
use crate::run::arith::arithmetic;
use crate::run::compare::{identical, order};
use crate::run::eval::{Machine, truth};
use crate::syntax::ast::{BinaryOp, NodeId};
use crate::syntax::names::Function;
use crate::value::{List, Value};

/// List that a closure iterates over. Go also accepts text (as bytes) and an empty object. Here they are
/// errors, because an error page with either in place of the list must not pass for an empty list.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    list: List<'a>,
    pub(crate) index: usize,
    pub(crate) acc: Value<'a>,
}

impl<'a> Scope<'a> {
    fn new(value: Value<'a>) -> Result<Self, Fault> {
        value.present()?;
        let Value::List(list) = value else {
            let mut message = format!("a list is required here, not {}", value.describe());
            if matches!(value, Value::Map(_)) {
                message.push_str("; use values(…)");
            }
            return Err(Fault::runtime(message));
        };
        Ok(Scope {
            list,
            index: 0,
            acc: Value::Nil,
        })
    }

    pub(crate) fn item(&self) -> Value<'a> {
        self.list.get(self.index).unwrap_or(Value::Nil)
    }
}

/// Calls a function with a closure; `first` is the list.
pub(crate) fn call<'a>(
    machine: &mut Machine<'a>,
    function: Function,
    first: Value<'a>,
    args: &[NodeId],
) -> Result<Value<'a>, Fault> {
    let body = args.get(1).copied();
    match function {
        Function::All => decided(machine, first, body, function, false).map(|hit| Value::Bool(!hit)),
        Function::None => decided(machine, first, body, function, true).map(|hit| Value::Bool(!hit)),
        Function::Any => decided(machine, first, body, function, true).map(Value::Bool),
        Function::One => one(machine, first, body).map(Value::Bool),
        Function::Count => count(machine, first, body, None).map(Value::Int),
        Function::Filter => filter(machine, first, body),
        Function::Map => map(machine, first, body),
        Function::Sum => sum(machine, first, body),
        Function::Find | Function::FindLast => {
            let Some(body) = body else { return Ok(Value::Nil) };
            first_match(machine, first, body, function == Function::FindLast, false)
        }
        Function::FindIndex | Function::FindLastIndex => {
            let found = find(machine, first, body, function == Function::FindLastIndex)?;
            Ok(found.map_or_else(
                || Absent::nothing("findIndex(…)"),
                |(index, _)| Value::Int(i64::try_from(index).unwrap_or(i64::MAX)),
            ))
        }
        Function::GroupBy => group_by(machine, first, body),
        Function::SortBy => sort_by(machine, first, body, args.get(2).copied()),
        _ => reduce(machine, first, body, args.get(2).copied()),
    }
}

/// Iterates over `list` in its own scope. `each` receives the closure's value, which may be unknown, and
/// returns whether to continue.
fn walk<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    backwards: bool,
    mut each: impl FnMut(&mut Machine<'a>, Result<Value<'a>, Fault>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let scope = Scope::new(list)?;
    let len = scope.list.len();
    machine.scopes.push(scope);
    let mut outcome = Ok(true);
    for step in 0..len {
        if let Some(scope) = machine.scopes.last_mut() {
            scope.index = if backwards { len - 1 - step } else { step };
        }
        let value = match body {
            Some(body) => machine.eval(body),
            None => machine.budget.step(1).map(|()| item(machine)),
        };
        let value = value.and_then(|value| value.present().map(|()| value));
        if value.is_err() {
            machine.budget.unknown()?;
        }
        outcome = each(machine, value);
        if !matches!(outcome, Ok(true)) {
            break;
        }
    }
    machine.scopes.pop();
    outcome.map(|_| ())
}

fn item<'a>(machine: &Machine<'a>) -> Value<'a> {
    machine.scopes.last().map_or(Value::Nil, Scope::item)
}

fn index(machine: &Machine<'_>) -> usize {
    machine.scopes.last().map_or(0, |scope| scope.index)
}

/// Returns whether the closure returns `wanted` for some element, and stops there. Unknown if an element is
/// unknown and no other element decides the result.
fn decided<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    function: Function,
    wanted: bool,
) -> Result<bool, Fault> {
    let mut hit = Ok(false);
    walk(machine, list, body, false, |_, value| {
        match value.and_then(|value| truth(&value, function.name())) {
            Ok(value) if value == wanted => hit = Ok(true),
            Ok(_) => {}
            Err(fault) if fault.is_unknown() => hit = Err(fault),
            Err(fault) => return Err(fault),
        }
        Ok(!matches!(hit, Ok(true)))
    })?;
    hit
}

/// Returns how often the closure is true, up to `limit`, and an element for which it is unknown.
fn hits<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    limit: Option<i64>,
) -> Result<(i64, Option<Fault>), Fault> {
    let (mut hits, mut unknown) = (0, None);
    walk(machine, list, body, false, |_, value| {
        match value.and_then(|value| truth(&value, "count")) {
            Ok(hit) => hits += i64::from(hit),
            Err(fault) if fault.is_unknown() => unknown = Some(fault),
            Err(fault) => return Err(fault),
        }
        Ok(limit.is_none_or(|limit| hits < limit))
    })?;
    Ok((hits, unknown))
}

/// Returns how often the closure is true, up to `limit`, beyond which further hits do not matter.
pub(crate) fn count<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    limit: Option<i64>,
) -> Result<i64, Fault> {
    match hits(machine, list, body, limit)? {
        (hits, Some(unknown)) if Some(hits) != limit => Err(unknown),
        (hits, _) => Ok(hits),
    }
}

fn one<'a>(machine: &mut Machine<'a>, list: Value<'a>, body: Option<NodeId>) -> Result<bool, Fault> {
    match hits(machine, list, body, None)? {
        (2.., _) => Ok(false),
        (_, Some(unknown)) => Err(unknown),
        (hits, None) => Ok(hits == 1),
    }
}

fn filter<'a>(machine: &mut Machine<'a>, list: Value<'a>, body: Option<NodeId>) -> Result<Value<'a>, Fault> {
    let mut kept = Vec::new();
    walk(machine, list, body, false, |machine, value| {
        if truth(&value?, "filter")? {
            machine.budget.elements(1)?;
            kept.push(item(machine));
        }
        Ok(true)
    })?;
    Value::list(kept)
}

fn map<'a>(machine: &mut Machine<'a>, list: Value<'a>, body: Option<NodeId>) -> Result<Value<'a>, Fault> {
    let mut mapped = Vec::new();
    walk(machine, list, body, false, |machine, value| {
        machine.budget.elements(1)?;
        mapped.push(value?);
        Ok(true)
    })?;
    Value::list(mapped)
}

fn sum<'a>(machine: &mut Machine<'a>, list: Value<'a>, body: Option<NodeId>) -> Result<Value<'a>, Fault> {
    let mut total = Value::Int(0);
    walk(machine, list, body, false, |machine, value| {
        total = arithmetic(BinaryOp::Add, &value?, &total, &mut machine.budget)?;
        Ok(true)
    })?;
    Ok(total)
}

fn find<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    backwards: bool,
) -> Result<Option<(usize, Value<'a>)>, Fault> {
    let mut found = None;
    walk(machine, list, body, backwards, |machine, value| {
        if truth(&value?, "find")? {
            found = Some((index(machine), item(machine)));
        }
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Returns the first (or last) element for which the closure is true.
pub(crate) fn first_match<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: NodeId,
    backwards: bool,
    required: bool,
) -> Result<Value<'a>, Fault> {
    match find(machine, list, Some(body), backwards)? {
        Some((_, value)) => Ok(value),
        None if required => Err(Fault::runtime("index out of range: filter returned no elements")),
        None => Ok(Absent::nothing("find(…)")),
    }
}

fn group_by<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
) -> Result<Value<'a>, Fault> {
    let mut groups: Vec<(Value<'a>, Vec<Value<'a>>)> = Vec::new();
    walk(machine, list, body, false, |machine, key| {
        let key = key?;
        if matches!(key, Value::List(_) | Value::Map(_)) {
            return Err(Fault::runtime(format!(
                "groupBy cannot group by {}",
                key.describe()
            )));
        }
        machine.budget.elements(1)?;
        let element = item(machine);
        for (own, members) in &mut groups {
            if identical(own, &key, &mut machine.budget)? {
                members.push(element);
                return Ok(true);
            }
        }
        groups.push((key, vec![element]));
        Ok(true)
    })?;
    let mut entries = Vec::with_capacity(groups.len());
    for (key, members) in groups {
        entries.push((key, Value::list(members)?));
    }
    Value::pairs(entries, true)
}

fn sort_by<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    direction: Option<NodeId>,
) -> Result<Value<'a>, Fault> {
    let direction = direction.map(|direction| machine.eval(direction)).transpose()?;
    let descending = is_descending(direction.as_ref())?;
    let mut keyed = Vec::new();
    walk(machine, list, body, false, |machine, key| {
        machine.budget.elements(1)?;
        keyed.push((key?, item(machine)));
        Ok(true)
    })?;
    sort_pairs(machine, keyed, descending)
}

/// Parses `asc` (the default) or `desc`.
pub(crate) fn is_descending(order: Option<&Value<'_>>) -> Result<bool, Fault> {
    match order.map(Value::as_str) {
        None | Some(Some("asc")) => Ok(false),
        Some(Some("desc")) => Ok(true),
        _ => Err(Fault::runtime("the order must be \"asc\" or \"desc\"")),
    }
}

/// Sorts pairs by their first element, and returns the second ones.
pub(crate) fn sort_pairs<'a>(
    machine: &mut Machine<'a>,
    mut keyed: Vec<(Value<'a>, Value<'a>)>,
    descending: bool,
) -> Result<Value<'a>, Fault> {
    let rounds = (usize::BITS - keyed.len().leading_zeros()) as usize;
    let bytes: usize = keyed
        .iter()
        .map(|(key, _)| key.as_str().map_or(0, str::len))
        .sum();
    machine.budget.step(keyed.len().saturating_mul(rounds))?;
    machine.budget.read(bytes.saturating_mul(rounds))?;
    // All keys must be comparable with each other; it suffices to compare neighbours.
    let rules = machine.budget.rules;
    keyed.iter().try_for_each(|(key, _)| key.comparable(rules))?;
    for pair in keyed.windows(2) {
        if let [(a, _), (b, _)] = pair {
            let mixed = |_| format!("{} and {} cannot be sorted together", a.describe(), b.describe());
            order(a, b)
                .map_err(mixed)
                .map_err(Fault::runtime)?
                .ok_or_else(Fault::nan)?;
        }
    }
    keyed.sort_by(|(a, _), (b, _)| {
        // All numbers use one scale, because sorting needs a total order.
        let order = match (a.as_float(), b.as_float()) {
            (Some(x), Some(y)) => x.total_cmp(&y),
            _ => order(a, b).ok().flatten().unwrap_or(std::cmp::Ordering::Equal),
        };
        if descending { order.reverse() } else { order }
    });
    Value::list(keyed.into_iter().map(|(_, value)| value).collect())
}

fn reduce<'a>(
    machine: &mut Machine<'a>,
    list: Value<'a>,
    body: Option<NodeId>,
    start: Option<NodeId>,
) -> Result<Value<'a>, Fault> {
    let start = start.map(|start| machine.eval(start)).transpose()?;
    let Some(body) = body else { return Ok(Value::Nil) };
    let mut scope = Scope::new(list)?;
    let len = scope.list.len();
    if let Some(start) = start {
        scope.acc = start;
    } else {
        if len == 0 {
            return Err(Fault::runtime(
                "reduce of an empty list needs an initial value as its third argument",
            ));
        }
        scope.acc = scope.item();
        scope.index = 1;
    }
    let first = scope.index;
    machine.scopes.push(scope);
    for step in first..len {
        machine.budget.step(1)?;
        if let Some(scope) = machine.scopes.last_mut() {
            scope.index = step;
        }
        let acc = match machine.eval(body) {
            Ok(acc) => acc,
            Err(fault) => {
                machine.scopes.pop();
                return Err(fault);
            }
        };
        if let Some(scope) = machine.scopes.last_mut() {
            scope.acc = acc;
        }
    }
    Ok(machine.scopes.pop().map_or(Value::Nil, |scope| scope.acc))
}
