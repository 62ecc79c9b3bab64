//! Binary operators at run time, with Go's shortcuts: `??` skips its right side, a constant pattern is
//! compiled once, a literal range is two comparisons.

use crate::absent::Absent;
use crate::check::Notes;
use crate::error::Fault;
use crate::prepare::pattern::{Engines, Pattern};
use crate::run::access;
use crate::run::arith::{arithmetic, unfit};
use crate::run::budget::{Budget, MAX_RANGE};
use crate::run::closures;
use crate::run::compare::{equal, exactly_equal, order};
use crate::run::eval::Machine;
use crate::syntax::ast::{BinaryOp, Kind, NodeId};
use crate::value::{List, Value};

impl<'a> Machine<'a> {
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        (left_id, left): (NodeId, Value<'a>),
        right_id: NodeId,
        notes: Notes,
    ) -> Result<Value<'a>, Fault> {
        match op {
            BinaryOp::Coalesce => {
                return if left.is_nil() {
                    self.eval(right_id)
                } else {
                    Ok(left)
                };
            }
            BinaryOp::In if notes.has(Notes::WITHIN) => {
                left.present()?;
                if let Some(inside) = self.within(&left, right_id)? {
                    return Ok(Value::Bool(inside));
                }
            }
            BinaryOp::Matches => {
                if let Some(pattern) = self.patterns.get(right_id) {
                    self.operand(&left, left_id)?;
                    return matches(pattern, &left, &mut self.engines, &mut self.budget);
                }
            }
            _ => {}
        }
        let right = self.eval(right_id)?;
        let right = if notes.has(Notes::SECOND_AS_TEXT) {
            self.read(&right)?
        } else {
            right
        };
        // Only `== nil` and `nil in` test for absence on purpose.
        let asks_for_nil = match op {
            BinaryOp::Equal | BinaryOp::NotEqual => self.is_nil(left_id) || self.is_nil(right_id),
            BinaryOp::In => self.is_nil(left_id),
            _ => false,
        };
        if asks_for_nil {
            return self
                .compare_with_nil(op, &left, (right_id, &right))
                .map(Value::Bool);
        }
        self.operand(&left, left_id)?;
        self.operand(&right, right_id)?;
        Ok(match op {
            BinaryOp::Equal => Value::Bool(self.equal(&left, &right, notes)?),
            BinaryOp::NotEqual => Value::Bool(!self.equal(&left, &right, notes)?),
            BinaryOp::Less | BinaryOp::More | BinaryOp::LessOrEqual | BinaryOp::MoreOrEqual => {
                Value::Bool(ordered(op, &left, &right, &mut self.budget)?)
            }
            BinaryOp::In => Value::Bool(access::contains(&right, &left, &mut self.budget)?),
            BinaryOp::Range => range(&left, &right)?,
            BinaryOp::Matches | BinaryOp::Contains | BinaryOp::StartsWith | BinaryOp::EndsWith => {
                textual(op, &left, &right, &mut self.engines, &mut self.budget)?
            }
            _ => arithmetic(op, &left, &right, &mut self.budget)?,
        })
    }

    /// Evaluates `== nil`, `!= nil` and `nil in`.
    fn compare_with_nil(
        &mut self,
        op: BinaryOp,
        left: &Value<'a>,
        (right_id, right): (NodeId, &Value<'a>),
    ) -> Result<bool, Fault> {
        let both = left.is_nil() && right.is_nil();
        match (op, right) {
            (BinaryOp::In, Value::List(list)) => {
                self.budget.step(list.len())?;
                Ok(list.iter().any(|item| item.is_nil()))
            }
            (BinaryOp::In, _) => {
                self.operand(right, right_id)?;
                access::contains(right, left, &mut self.budget)
            }
            (BinaryOp::NotEqual, _) => Ok(!both),
            _ => Ok(both),
        }
    }

    /// Fails with unknown if an operand is absent. Under strict rules nil is absent, too.
    pub(crate) fn operand(&self, value: &Value<'a>, id: NodeId) -> Result<(), Fault> {
        let absent = match value {
            Value::Nil if self.budget.rules.are_strict() => Err(Absent::Null(None).fault()),
            other => other.present(),
        };
        absent.map_err(|fault| fault.at(self.tree.span(id)))
    }

    fn equal(&mut self, a: &Value<'a>, b: &Value<'a>, notes: Notes) -> Result<bool, Fault> {
        // If Go knows both types statically, a value of another type is an error, not false.
        let integer = |value: &Value<'_>| matches!(value, Value::Int(_));
        if notes.has(Notes::INTEGERS) && !(integer(a) && integer(b)) {
            return Err(unfit("==", a, b));
        }
        if notes.has(Notes::TEXTS) && (a.as_str().is_none() || b.as_str().is_none()) {
            return Err(unfit("==", a, b));
        }
        equal(a, b, &mut self.budget)
    }

    /// Returns whether the node is a literal `nil`.
    fn is_nil(&self, id: NodeId) -> bool {
        matches!(self.tree.kind(self.tree.behind(id)), Kind::Nil)
    }

    /// Evaluates `value in from..to` with two integer literals.
    fn within(&mut self, value: &Value<'a>, range: NodeId) -> Result<Option<bool>, Fault> {
        let Kind::Binary(BinaryOp::Range, from, to) = self.tree.kind(range) else {
            return Ok(None);
        };
        let (Kind::Int(from), Kind::Int(to)) = (self.tree.kind(*from), self.tree.kind(*to)) else {
            return Ok(None);
        };
        let above = ordered(BinaryOp::MoreOrEqual, value, &Value::Int(*from), &mut self.budget)?;
        Ok(Some(
            above && ordered(BinaryOp::LessOrEqual, value, &Value::Int(*to), &mut self.budget)?,
        ))
    }

    pub(crate) fn count_against(
        &mut self,
        op: BinaryOp,
        count: NodeId,
        limit: i64,
        bound: NodeId,
    ) -> Result<Value<'a>, Fault> {
        let Kind::Call(_, args) = self.tree.kind(count) else {
            return Ok(Value::Nil);
        };
        let Some(list) = args.first() else {
            return Ok(Value::Nil);
        };
        let list = self.eval(*list)?;
        let counted = closures::count(self, list, args.get(1).copied(), Some(limit))?;
        let bound = self.eval(bound)?;
        bound.present()?;
        Ok(Value::Bool(ordered(
            op,
            &Value::Int(counted),
            &bound,
            &mut self.budget,
        )?))
    }
}

fn ordered(op: BinaryOp, a: &Value<'_>, b: &Value<'_>, budget: &mut Budget) -> Result<bool, Fault> {
    budget.read(a.as_str().map_or(0, str::len))?;
    budget.read(b.as_str().map_or(0, str::len))?;
    a.comparable(budget.rules)?;
    b.comparable(budget.rules)?;
    let Ok(order) = order(a, b) else {
        return Err(unfit(op.text(), a, b));
    };
    let order = order.ok_or_else(Fault::nan)?;
    if order.is_eq() {
        exactly_equal(a, b, budget.rules)?;
    }
    Ok(match op {
        BinaryOp::Less => order.is_lt(),
        BinaryOp::More => order.is_gt(),
        BinaryOp::LessOrEqual => order.is_le(),
        _ => order.is_ge(),
    })
}

fn range<'a>(from: &Value<'a>, to: &Value<'a>) -> Result<Value<'a>, Fault> {
    let (from, to) = (access::integer(from)?, access::integer(to)?);
    let len = to.checked_sub(from).and_then(|span| span.checked_add(1));
    let len = match len {
        Some(len) if len <= 0 => 0,
        Some(len) => usize::try_from(len).unwrap_or(usize::MAX),
        None if to < from => 0,
        None => usize::MAX,
    };
    if len > MAX_RANGE {
        return Err(Fault::budget(format!(
            "a range has more than {MAX_RANGE} numbers"
        )));
    }
    Ok(Value::List(List::Range { from, len }))
}

fn matches<'a>(
    pattern: &str,
    value: &Value<'_>,
    engines: &mut Engines,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    match value {
        Value::Str(text) => {
            budget.read(text.as_str().len().saturating_mul(32))?;
            Ok(Value::Bool(engines.is_match(pattern, text.as_str(), budget)?))
        }
        Value::Nil => Ok(Value::Bool(false)),
        other => Err(Fault::runtime(format!(
            "`matches` needs text, not {}",
            other.describe()
        ))),
    }
}

fn textual<'a>(
    op: BinaryOp,
    a: &Value<'_>,
    b: &Value<'_>,
    engines: &mut Engines,
    budget: &mut Budget,
) -> Result<Value<'a>, Fault> {
    if a.is_nil() || b.is_nil() {
        return Ok(Value::Bool(false));
    }
    let (Some(x), Some(y)) = (a.as_str(), b.as_str()) else {
        return Err(unfit(op.text(), a, b));
    };
    budget.read(x.len())?;
    Ok(Value::Bool(match op {
        BinaryOp::Contains => x.contains(y),
        BinaryOp::StartsWith => x.starts_with(y),
        BinaryOp::EndsWith => x.ends_with(y),
        _ => {
            budget.step(Pattern::COST)?;
            return matches(y, a, engines, budget);
        }
    }))
}
