//! Three-valued logic: true, false and unknown. Unknown is a [`Fault`] for which [`Fault::is_unknown`] is
//! true. `and`, `or` and `? :` ignore an operand that cannot change the result; all other operations
//! propagate the fault.

use crate::error::Fault;
use crate::run::eval::{Machine, truth};
use crate::syntax::ast::{BinaryOp, NodeId};
use crate::value::Value;

/// Returns whether any test holds; unknown if none holds and one is unknown.
pub(crate) fn any(tests: impl Iterator<Item = Result<bool, Fault>>) -> Result<bool, Fault> {
    let mut unknown = None;
    for test in tests {
        match test {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(fault) if fault.is_unknown() => {
                unknown.get_or_insert(fault);
            }
            Err(fault) => return Err(fault),
        }
    }
    unknown.map_or(Ok(false), Err)
}

impl<'a> Machine<'a> {
    /// Evaluates `left and right` or `left or right`.
    pub(crate) fn junction(
        &mut self,
        op: BinaryOp,
        left: Result<Value<'a>, Fault>,
        right: NodeId,
    ) -> Result<Value<'a>, Fault> {
        let decisive = op == BinaryOp::Or;
        match left.and_then(|left| truth(&left, op.text())) {
            Ok(left) if left == decisive => Ok(Value::Bool(left)),
            Ok(_) => {
                let right = self.eval(right)?;
                right.present()?;
                Ok(right)
            }
            Err(unknown) if unknown.is_unknown() => {
                self.budget.unknown()?;
                match self.eval(right) {
                    Ok(Value::Bool(right)) if right == decisive => Ok(Value::Bool(right)),
                    Err(fault) if !fault.is_unknown() => Err(fault),
                    _ => Err(unknown),
                }
            }
            Err(fault) => Err(fault),
        }
    }

    /// Evaluates `test ? yes : no`. With an unknown test, the result is known only if both branches are true
    /// or both are false.
    pub(crate) fn choice(
        &mut self,
        test: Result<Value<'a>, Fault>,
        yes: NodeId,
        no: NodeId,
    ) -> Result<Value<'a>, Fault> {
        match test.and_then(|test| truth(&test, "the part before `?`")) {
            Ok(test) => self.eval(if test { yes } else { no }),
            Err(unknown) if unknown.is_unknown() => match (self.eval(yes)?, self.eval(no)?) {
                (Value::Bool(yes), Value::Bool(no)) if yes == no => Ok(Value::Bool(yes)),
                _ => Err(unknown),
            },
            Err(fault) => Err(fault),
        }
    }
}
