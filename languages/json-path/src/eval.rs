//! Evaluates the steps of a path on a document, within a budget of visited values. Parses nothing.

use near_names::keys_there;
use serde_json::Value;

use super::compare::{Comparable, compare};
use super::found::{Item, Items, bounds, constant_value, copy_out, written};
use super::{Block, Constant, Filter, Found, JsonPathError, Operand, Rules, Slice, Step, StepKind};

/// Maximum number of values visited by one evaluation: milliseconds of work for the most hostile document.
const MAX_VISITS: usize = 500_000;

/// Reason why an evaluation ended. A missing key, or null where a value is needed, makes an existence filter
/// false; any other failure is an error there too.
struct EvalFailure {
    error: JsonPathError,
    missing: bool,
}

impl EvalFailure {
    fn at(at: usize, message: impl Into<String>) -> Self {
        Self {
            error: JsonPathError::at(at, message),
            missing: false,
        }
    }

    fn missing(at: usize, message: impl Into<String>) -> Self {
        Self {
            missing: true,
            ..Self::at(at, message)
        }
    }
}

/// Finds the value of a template: that of the first block that is not empty.
pub(super) fn find<'a>(
    blocks: &'a [Block],
    rules: Rules,
    document: &'a Value,
) -> Result<Found, JsonPathError> {
    let mut walk = Walk {
        strict: rules == Rules::Strict,
        visits: 0,
        first: Items::new(),
        constant: None,
    };
    walk.blocks(blocks, 0, Item::root(document))
        .map_err(|failure| failure.error)?;
    match walk.constant {
        Some(constant) => Ok(Found::One(constant_value(constant))),
        None => copy_out(&walk.first),
    }
}

struct Walk<'a> {
    strict: bool,
    visits: usize,
    /// Result of the first block with a value.
    first: Items<'a>,
    /// Constant that precedes all results.
    constant: Option<&'a Constant>,
}

impl<'a> Walk<'a> {
    fn charge(&mut self, at: usize, cost: usize) -> Result<(), EvalFailure> {
        self.visits = self.visits.saturating_add(cost);
        if self.visits > MAX_VISITS {
            return Err(EvalFailure::at(
                at,
                format!("the path visits more than {MAX_VISITS} values"),
            ));
        }
        Ok(())
    }

    /// Evaluates blocks from `index` up to the `{end}` of their range. Returns the index of the `{end}`, if
    /// there is one.
    fn blocks(
        &mut self,
        blocks: &'a [Block],
        mut index: usize,
        root: Item<'a>,
    ) -> Result<Option<usize>, EvalFailure> {
        while let Some(block) = blocks.get(index) {
            self.charge(0, 1)?;
            match block {
                Block::Constant(constant) => {
                    if self.first.is_empty() {
                        self.constant.get_or_insert(constant);
                    }
                }
                Block::End => return Ok(Some(index)),
                Block::Path(steps) => {
                    let found = self.steps(vec![root], steps)?;
                    if self.first.is_empty() {
                        self.first = found;
                    }
                }
                Block::Range(steps) => {
                    if let Some(end) = self.range(blocks, index, root, steps)? {
                        index = end;
                    }
                }
            }
            index += 1;
        }
        Ok(None)
    }

    /// Evaluates the body of the range at `index` once per match.
    fn range(
        &mut self,
        blocks: &'a [Block],
        index: usize,
        root: Item<'a>,
        steps: &[Step],
    ) -> Result<Option<usize>, EvalFailure> {
        let items = self.steps(vec![root], steps)?;
        let mut end = None;
        if items.is_empty() {
            // The body is still evaluated once, on null, to report its errors.
            let constant = self.constant;
            let kept = std::mem::take(&mut self.first);
            end = self.blocks(blocks, index + 1, Item::NullDocument)?;
            (self.first, self.constant) = (kept, constant);
        }
        for item in items {
            let root = match item {
                Item::Json(value) => Item::root(value),
                Item::Byte(_) | Item::NullDocument => item,
            };
            end = self.blocks(blocks, index + 1, root)?;
        }
        Ok(end)
    }

    fn steps(&mut self, mut items: Items<'a>, steps: &[Step]) -> Result<Items<'a>, EvalFailure> {
        let mut searches = false;
        for (index, step) in steps.iter().enumerate() {
            self.charge(step.at, 1 + items.len())?;
            if self.strict {
                check_walkable(step, &items)?;
            }
            items = match &step.kind {
                StepKind::Field(name) => field(&items, name, step.at, searches)?,
                StepKind::Wildcard => {
                    let mut found = Items::new();
                    for item in items {
                        self.children(step.at, item, &mut found)?;
                    }
                    found
                }
                StepKind::Descend => self.descend(step.at, &items, steps.get(index + 1))?,
                StepKind::Slice(slice) => self.slice(step.at, &items, slice)?,
                StepKind::Union(parts) => {
                    let mut found = Items::new();
                    for part in parts {
                        let part = self.steps(items.clone(), part);
                        found.extend(part.map_err(|failure| EvalFailure {
                            missing: false,
                            ..failure
                        })?);
                    }
                    found
                }
                StepKind::Filter(filter) => self.filter(step.at, &items, filter)?,
            };
            searches = step.kind == StepKind::Descend;
        }
        Ok(items)
    }

    /// Appends the children of a value: of an object, a list, or the bytes of a text.
    fn children(&mut self, at: usize, item: Item<'a>, found: &mut Items<'a>) -> Result<(), EvalFailure> {
        match item {
            Item::Json(Value::Object(map)) => {
                self.charge(at, map.len())?;
                found.extend(map.values().map(Item::Json));
            }
            Item::Json(Value::Array(list)) => {
                self.charge(at, list.len())?;
                found.extend(list.iter().map(Item::Json));
            }
            Item::Json(Value::String(text)) => {
                self.charge(at, text.len())?;
                found.extend(text.bytes().map(Item::Byte));
            }
            Item::Json(Value::Null | Value::Bool(_) | Value::Number(_))
            | Item::Byte(_)
            | Item::NullDocument => {}
        }
        Ok(())
    }

    /// Returns each value that has children, and its descendants, parents first. Under strict rules, the
    /// `next` step must have something to walk under each item, and find its key there.
    fn descend(
        &mut self,
        at: usize,
        items: &[Item<'a>],
        next: Option<&Step>,
    ) -> Result<Items<'a>, EvalFailure> {
        let mut found = Items::new();
        for (index, item) in items.iter().enumerate() {
            let under = self.under(at, *item)?;
            if self.strict {
                let place = place(index, items.len());
                check_search(next, &under).map_err(|what| EvalFailure::missing(at, what + &place))?;
            }
            found.extend(under);
        }
        Ok(found)
    }

    /// Returns a value and its descendants, without those that have no children.
    fn under(&mut self, at: usize, item: Item<'a>) -> Result<Items<'a>, EvalFailure> {
        let mut found = Items::new();
        let mut pending = vec![item];
        let mut children = Items::new();
        while let Some(item) = pending.pop() {
            self.charge(at, 1)?;
            if let Item::Json(Value::String(text)) = item {
                // A text counts as the parent of its bytes, which have no children.
                if !text.is_empty() {
                    found.push(item);
                }
                continue;
            }
            children.clear();
            self.children(at, item, &mut children)?;
            if !children.is_empty() {
                found.push(item);
                pending.extend(children.iter().rev().copied());
            }
        }
        Ok(found)
    }

    fn slice(&mut self, at: usize, items: &[Item<'a>], slice: &Slice) -> Result<Items<'a>, EvalFailure> {
        let mut found = Items::new();
        for item in items {
            let list = match item {
                Item::Json(Value::Null) => continue,
                Item::Json(Value::Array(list)) => list,
                other => {
                    let hint = if matches!(other, Item::Json(Value::Object(_))) {
                        "; use .* or a key"
                    } else {
                        ""
                    };
                    return Err(EvalFailure::at(
                        at,
                        format!("{} is not a list{hint}", other.describe()),
                    ));
                }
            };
            let (from, until) = bounds(slice, list.len());
            if from == until {
                continue;
            }
            let within = match (usize::try_from(from), usize::try_from(until)) {
                (Ok(from), Ok(until)) if from < list.len() => list.get(from..until),
                _ => None,
            };
            let Some(within) = within else {
                let message = format!(
                    "index out of range: {} in a list of length {}",
                    written(slice),
                    list.len()
                );
                return Err(EvalFailure::at(at, message));
            };
            self.charge(at, within.len())?;
            found.extend(within.iter().step_by(slice.step).map(Item::Json));
        }
        Ok(found)
    }

    fn filter(&mut self, at: usize, items: &[Item<'a>], filter: &Filter) -> Result<Items<'a>, EvalFailure> {
        let mut found = Items::new();
        let mut lacking = None;
        let mut exists = false;
        for item in items {
            let Item::Json(Value::Array(list)) = item else {
                return Err(EvalFailure::at(
                    at,
                    format!("a filter needs a list, not {}", item.describe()),
                ));
            };
            for element in list {
                self.charge(at, 1)?;
                match self.passes(at, element, filter) {
                    Ok(passes) => {
                        exists = true;
                        found.extend(passes.then_some(Item::Json(element)));
                    }
                    Err(failure) if failure.missing && filter.test.is_none() => {
                        // Charges for the message.
                        self.charge(at, 8)?;
                        lacking.get_or_insert(failure);
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        match lacking {
            Some(mut failure) if self.strict && !exists => {
                let what = failure.error.message;
                failure.error.message = format!("no element matches the filter: {what}");
                Err(failure)
            }
            Some(_) | None => Ok(found),
        }
    }

    fn passes(&mut self, at: usize, element: &'a Value, filter: &Filter) -> Result<bool, EvalFailure> {
        let Some((operator, right)) = &filter.test else {
            let Operand::Path(steps) = &filter.left else {
                return Ok(true);
            };
            let found = self.steps(vec![Item::Json(element)], steps)?;
            let null = |item: &Item<'_>| matches!(item, Item::Json(Value::Null));
            if self.strict && !found.is_empty() && found.iter().all(null) {
                return Err(EvalFailure::missing(at, "the value is null"));
            }
            return Ok(!found.is_empty());
        };
        let left = self.operand(at, element, &filter.left)?;
        let right = self.operand(at, element, right)?;
        self.charge(at, left.cost() + right.cost())?;
        compare(*operator, &left, &right).map_err(|reason| EvalFailure::at(at, format!("filter: {reason}")))
    }

    /// Evaluates one side of a comparison. A missing value is neither equal nor different.
    fn operand<'o>(
        &mut self,
        at: usize,
        element: &'a Value,
        operand: &'o Operand,
    ) -> Result<Comparable<'o>, EvalFailure>
    where
        'a: 'o,
    {
        let incomparable = |what: &str| EvalFailure::at(at, format!("filter: {what} cannot be compared"));
        let steps = match operand {
            Operand::Constant(constant) => {
                return Comparable::from_constant(constant).ok_or_else(|| incomparable("this constant"));
            }
            Operand::Path(steps) => steps,
        };
        let found = self.steps(vec![Item::Json(element)], steps)?;
        match found.as_slice() {
            [] => Err(EvalFailure::at(
                at,
                "filter: one side is an empty list, so there is nothing to compare",
            )),
            [Item::Byte(byte)] => Ok(Comparable::Byte(*byte)),
            [Item::Json(value)] => {
                Comparable::from_json(value).ok_or_else(|| incomparable(Item::Json(value).describe()))
            }
            [Item::NullDocument] => Err(incomparable("null")),
            _ => Err(EvalFailure::at(
                at,
                "filter: one side returns several values; only single values can be compared",
            )),
        }
    }
}

/// Rejects values that a step cannot walk, and that client-go skips or splits into bytes.
fn check_walkable(step: &Step, items: &[Item<'_>]) -> Result<(), EvalFailure> {
    let (written, needs) = match &step.kind {
        StepKind::Wildcard => (".*".to_owned(), "an object or a list"),
        StepKind::Descend => ("..".to_owned(), "an object or a list"),
        StepKind::Slice(slice) => (written(slice), "a list"),
        StepKind::Field(_) | StepKind::Union(_) | StepKind::Filter(_) => return Ok(()),
    };
    let walkable = |item: &Item<'_>| matches!(item, Item::Json(Value::Object(_) | Value::Array(_)));
    let Some(index) = items.iter().position(|item| !walkable(item)) else {
        return Ok(());
    };
    let found = items.get(index).map_or("null", |item| item.describe());
    let place = place(index, items.len());
    Err(EvalFailure {
        missing: found == "null",
        ..EvalFailure::at(step.at, format!("{written} needs {needs}, not {found}{place}"))
    })
}

/// Checks the values that a search walks: it must find something, and one of them must have the key of the
/// `next` step. Returns what is not found.
fn check_search(next: Option<&Step>, under: &[Item<'_>]) -> Result<(), String> {
    if under.is_empty() {
        return Err(".. finds nothing, because the value is empty".to_owned());
    }
    match next.map(|step| &step.kind) {
        Some(StepKind::Field(name)) if !under.iter().any(|item| member(item, name).is_some()) => {
            Err(format!("key {name:?} not found at any level"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Names the element that a message is about, if there are several.
fn place(index: usize, total: usize) -> String {
    if total > 1 {
        format!(" in element {} of {total}", index + 1)
    } else {
        String::new()
    }
}

fn member<'a>(item: &Item<'a>, name: &str) -> Option<Item<'a>> {
    match item {
        Item::Json(Value::Object(map)) => map.get(name).map(Item::Json),
        Item::Json(_) | Item::Byte(_) | Item::NullDocument => None,
    }
}

/// Returns the key's value in each object. Fails if one object lacks the key, or, in a search (`..name`), if
/// all do.
fn field<'a>(items: &[Item<'a>], name: &str, at: usize, searches: bool) -> Result<Items<'a>, EvalFailure> {
    let found: Items<'a> = items.iter().filter_map(|item| member(item, name)).collect();
    if found.len() == items.len() || (searches && !found.is_empty()) {
        return Ok(found);
    }
    let lacking = items
        .iter()
        .enumerate()
        .find(|(_, item)| member(item, name).is_none());
    let place = match lacking {
        _ if searches => " at any level".to_owned(),
        Some((index, _)) => place(index, items.len()),
        None => String::new(),
    };
    let there = match lacking {
        _ if searches => String::new(),
        Some((_, Item::Json(Value::Object(map)))) => keys_there(name, map.keys().map(String::as_str)),
        Some((_, other)) => format!(": its parent is {}, not an object", other.describe()),
        None => String::new(),
    };
    Err(EvalFailure {
        error: JsonPathError::at(at, format!("key {name:?} not found{place}{there}")),
        missing: found.is_empty(),
    })
}
