//! Evaluator: walks the folded tree within a [`Budget`].
//!
//! First operands are followed in a loop instead of recursively, so `a || b || …` and `a.b.c…` of any length
//! use no stack. The remaining recursion (other operands, closures) is bounded by the parser's nesting limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::absent::Absent;
use crate::check::{Checked, Notes};
use crate::error::Fault;
use crate::prepare::pattern::{Engines, Patterns};
use crate::rules::Rules;
use crate::run::access;
use crate::run::arith::negate;
use crate::run::budget::Budget;
use crate::run::builtin;
use crate::run::closures;
use crate::run::compare::different_kinds;
use crate::run::env;
use crate::run::methods;
use crate::syntax::ast::{BinaryOp, Kind, NodeId, Pointer, Tree, UnaryOp};
use crate::syntax::names::{EXEC_FIELDS, EnvFunction, JOB_FIELDS, RESPONSE_FIELDS, closure_arguments};
use crate::value::{Map, Text, Value};
use crate::{Command, Job, Origin, Response};

/// Input of an evaluation.
pub(crate) struct Environment<'a> {
    pub(crate) result: Value<'a>,
    pub(crate) origin: Option<&'a Origin>,
    pub(crate) now: Timestamp,
}

pub(crate) struct Machine<'a> {
    pub(crate) tree: &'a Tree,
    checked: &'a Checked,
    pub(crate) patterns: &'a Patterns,
    pub(crate) engines: Engines,
    pub(crate) environment: Environment<'a>,
    variables: Vec<Value<'a>>,
    pub(crate) scopes: Vec<closures::Scope<'a>>,
    /// Nodes whose first operand is being evaluated.
    pending: Vec<NodeId>,
    pub(crate) budget: Budget,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(
        tree: &'a Tree,
        checked: &'a Checked,
        patterns: &'a Patterns,
        environment: Environment<'a>,
        rules: Rules,
    ) -> Self {
        Machine {
            tree,
            checked,
            patterns,
            engines: Engines::default(),
            environment,
            variables: vec![Value::Nil; tree.variables],
            scopes: Vec::new(),
            pending: Vec::new(),
            budget: Budget::new(rules),
        }
    }

    /// Evaluates a node.
    pub(crate) fn eval(&mut self, id: NodeId) -> Result<Value<'a>, Fault> {
        let floor = self.pending.len();
        let mut leaf = id;
        while let Some(first) = first_operand(self.tree.kind(leaf)) {
            self.pending.push(leaf);
            leaf = first;
        }
        let mut outcome = self.leaf(leaf).map_err(|fault| fault.at(self.tree.span(leaf)));
        while self.pending.len() > floor {
            let Some(parent) = self.pending.pop() else { break };
            if is_optional(self.tree.kind(parent))
                && let Ok(value) = &outcome
                && value.is_nil()
            {
                // `?.` on nil makes the whole chain absent.
                while self.pending.len() > floor {
                    let above = self.pending.pop();
                    if above.is_some_and(|id| matches!(self.tree.kind(id), Kind::Chain(_))) {
                        break;
                    }
                }
                if !matches!(value, Value::Missing(_)) {
                    outcome = Ok(Absent::nothing("`?.` on nil"));
                }
                continue;
            }
            outcome = self
                .apply(parent, outcome)
                .map_err(|fault| fault.at(self.tree.span(parent)));
        }
        outcome
    }

    fn leaf(&mut self, id: NodeId) -> Result<Value<'a>, Fault> {
        self.budget.step(1)?;
        let tree = self.tree;
        Ok(match tree.kind(id) {
            Kind::Bool(b) => Value::Bool(*b),
            Kind::Int(n) => Value::Int(*n),
            Kind::Float(n) => Value::Float(*n),
            Kind::Str(text) => Value::Str(Text::Borrowed(text)),
            Kind::Result => self.environment.result.clone(),
            Kind::Response => self.response()?,
            Kind::Job => self.job()?,
            Kind::Exec => self.exec()?,
            Kind::EnvFunction => Value::Function,
            Kind::Env => self.environment()?,
            Kind::Variable { slot, .. } => self.variables.get(*slot).cloned().unwrap_or(Value::Nil),
            Kind::Pointer { which, .. } => self.pointer(*which),
            Kind::Call(function, _) => builtin::call(self, *function, &[])?,
            Kind::Array(items) => {
                self.budget.elements(items.len())?;
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.present(*item)?);
                }
                Value::list(list)?
            }
            Kind::Map(pairs) => {
                self.budget.elements(pairs.len())?;
                let mut entries = BTreeMap::new();
                for (key, value) in pairs {
                    let key = self.present(*key)?;
                    let Some(name) = key.as_str() else {
                        let message = format!("an object's key must be text, not {}", key.describe());
                        return Err(Fault::runtime(message));
                    };
                    self.budget.text(name.len())?;
                    let name = Arc::from(name);
                    entries.insert(name, self.present(*value)?);
                }
                Value::map(entries)?
            }
            Kind::CountAgainst {
                op,
                count,
                limit,
                bound,
            } => self.count_against(*op, *count, *limit, *bound)?,
            // A function named without a call is nil in Go; all other nodes have a first operand.
            _ => Value::Nil,
        })
    }

    fn environment(&mut self) -> Result<Value<'a>, Fault> {
        self.budget.elements(EnvFunction::NAMES.len() + 4)?;
        let mut names = BTreeMap::from([(Arc::from("result"), self.environment.result.clone())]);
        names.insert(Arc::from("response"), self.response()?);
        names.insert(Arc::from("job"), self.job()?);
        names.insert(Arc::from("exec"), self.exec()?);
        for name in EnvFunction::NAMES {
            names.insert(Arc::from(name), Value::Function);
        }
        Value::map(names)
    }

    fn response(&mut self) -> Result<Value<'a>, Fault> {
        let values = match self.environment.origin {
            Some(Origin::Exchange(Response { code, latency })) => {
                let millis = i64::try_from(latency.as_millis()).unwrap_or(i64::MAX);
                Some([Value::Int(i64::from(*code)), Value::Int(millis)])
            }
            Some(Origin::Job(_) | Origin::Command(_)) | None => None,
        };
        self.origin(RESPONSE_FIELDS, values)
    }

    fn job(&mut self) -> Result<Value<'a>, Fault> {
        let values = match self.environment.origin {
            Some(Origin::Job(Job { succeeded, failed })) => {
                Some([*succeeded, *failed].map(|count| Value::Int(i64::from(count))))
            }
            Some(Origin::Exchange(_) | Origin::Command(_)) | None => None,
        };
        self.origin(JOB_FIELDS, values)
    }

    fn exec(&mut self) -> Result<Value<'a>, Fault> {
        let values = match self.environment.origin {
            Some(Origin::Command(Command { exit_code, stderr })) => {
                let stderr = Value::Str(Text::Borrowed(stderr));
                Some([Value::Int(i64::from(*exit_code)), stderr])
            }
            Some(Origin::Exchange(_) | Origin::Job(_)) | None => None,
        };
        self.origin(EXEC_FIELDS, values)
    }

    /// Returns an object with these fields, which are nil without values.
    fn origin(
        &mut self,
        fields: [&'static str; 2],
        values: Option<[Value<'a>; 2]>,
    ) -> Result<Value<'a>, Fault> {
        self.budget.elements(fields.len())?;
        let values =
            values.unwrap_or_else(|| fields.map(|field| Absent::null(Some(field), self.budget.rules)));
        Value::map(fields.map(Arc::from).into_iter().zip(values).collect())
    }

    fn pointer(&self, which: Pointer) -> Value<'a> {
        let Some(scope) = self.scopes.last() else {
            return Value::Nil;
        };
        match which {
            Pointer::Item => scope.item(),
            Pointer::Index => Value::Int(i64::try_from(scope.index).unwrap_or(i64::MAX)),
            Pointer::Acc => scope.acc.clone(),
        }
    }

    /// Evaluates a node whose value is required.
    fn present(&mut self, id: NodeId) -> Result<Value<'a>, Fault> {
        let value = self.eval(id)?;
        value.present().map_err(|fault| fault.at(self.tree.span(id)))?;
        Ok(value)
    }

    /// Completes a node whose first operand is `first`. Only `and`, `or` and `? :` can do without it.
    fn apply(&mut self, id: NodeId, first: Result<Value<'a>, Fault>) -> Result<Value<'a>, Fault> {
        self.budget.step(1)?;
        let tree = self.tree;
        let first = match tree.kind(id) {
            Kind::Binary(op @ (BinaryOp::And | BinaryOp::Or), _, right) => {
                return self.junction(*op, first, *right);
            }
            Kind::Choice { yes, no, .. } => return self.choice(first, *yes, *no),
            _ => first?,
        };
        let notes = self.checked.notes(id);
        let first = if notes.has(Notes::FIRST_AS_TEXT) {
            self.read(&first)?
        } else {
            first
        };
        Ok(match tree.kind(id) {
            Kind::Unary(UnaryOp::Not, _) => Value::Bool(!truth(&first, "`not`")?),
            Kind::Unary(UnaryOp::Minus, _) => negate(&first, self.budget.rules)?,
            Kind::Binary(op, left, right) => self.binary(*op, (*left, first), *right, notes)?,
            Kind::Member { key, .. } => {
                if let Kind::Str(name) = tree.kind(*key) {
                    return access::field(&first, name, &mut self.budget);
                }
                let key = self.present(*key)?;
                let key = if notes.has(Notes::SECOND_AS_TEXT) {
                    self.read(&key)?
                } else {
                    key
                };
                access::fetch(&first, &key, &mut self.budget)?
            }
            Kind::Slice { from, to, .. } => {
                let to = to.map(|to| self.present(to)).transpose()?;
                let from = from.map(|from| self.present(from)).transpose()?;
                access::slice(&first, from.as_ref(), to.as_ref(), &mut self.budget)?
            }
            Kind::EnvCall(function, args) => {
                let second = args.get(1).map(|arg| self.eval(*arg)).transpose()?;
                let literal = notes.has(Notes::FLOAT_LITERAL);
                env::call(*function, first, second, literal, self.budget.rules)?
            }
            Kind::Call(function, args) if closure_arguments(*function).is_some() => {
                closures::call(self, *function, first, args)?
            }
            Kind::Call(function, args) => {
                let mut values = Vec::with_capacity(args.len());
                values.push(first);
                for arg in args.iter().skip(1) {
                    values.push(self.eval(*arg)?);
                }
                builtin::call(self, *function, &values)?
            }
            Kind::Method { name, args, .. } => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.present(*arg)?);
                }
                first.present()?;
                methods::call(&first, name, &values)?
            }
            Kind::Let { slot, body, .. } => {
                if let Some(variable) = self.variables.get_mut(*slot) {
                    *variable = first;
                }
                self.eval(*body)?
            }
            Kind::Sequence(parts) => {
                let mut value = first;
                for part in parts.iter().skip(1) {
                    value = self.eval(*part)?;
                }
                value
            }
            Kind::InWords(value, words) => {
                self.budget.step(words.len())?;
                self.operand(&first, *value)?;
                match &first {
                    Value::Str(text) => Value::Bool(words.iter().any(|word| word.as_ref() == text.as_str())),
                    // Go looks up nil as the empty string.
                    Value::Nil => Value::Bool(words.iter().any(|word| word.is_empty())),
                    other if self.budget.rules.are_strict() => {
                        return Err(different_kinds(other, &Value::text("")));
                    }
                    other => {
                        let message = format!("{} can never be in a list of text", other.describe());
                        return Err(Fault::runtime(message));
                    }
                }
            }
            Kind::Match {
                body,
                backwards,
                required,
                ..
            } => closures::first_match(self, first, *body, *backwards, *required)?,
            // Chains, `+x` and aliases return the operand unchanged.
            _ => first,
        })
    }

    /// Converts a scalar to the text that the original operator bound.
    pub(crate) fn read(&mut self, value: &Value<'a>) -> Result<Value<'a>, Fault> {
        let text = builtin::text_of(value, &mut self.budget)?;
        Ok(Value::text(text))
    }
}

/// Returns the operand that is evaluated before the node itself.
fn first_operand(kind: &Kind) -> Option<NodeId> {
    match kind {
        Kind::Unary(_, first)
        | Kind::Binary(_, first, _)
        | Kind::Chain(first)
        | Kind::Member { base: first, .. }
        | Kind::Slice { base: first, .. }
        | Kind::Method { base: first, .. }
        | Kind::Let { value: first, .. }
        | Kind::Choice { test: first, .. }
        | Kind::Same(first)
        | Kind::InWords(first, _)
        | Kind::Match { list: first, .. } => Some(*first),
        Kind::EnvCall(_, args) | Kind::Call(_, args) | Kind::Sequence(args) => args.first().copied(),
        _ => None,
    }
}

fn is_optional(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Member { optional: true, .. } | Kind::Method { optional: true, .. }
    )
}

pub(crate) fn truth(value: &Value<'_>, place: &str) -> Result<bool, Fault> {
    match value {
        Value::Bool(b) => Ok(*b),
        // An error, as in Go: an unknown might be true.
        Value::Missing(absent) if absent.is_null() => {
            let message = format!("{place} needs true or false; {}", absent.fault().message);
            Err(Fault::runtime(message))
        }
        Value::Missing(absent) => Err(absent.fault()),
        other => Err(Fault::runtime(format!(
            "{place} needs true or false, not {}",
            other.describe()
        ))),
    }
}

/// Returns the map, if the value is one.
pub(crate) fn as_map<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Map<'a>> {
    match value {
        Value::Map(map) => Some(map),
        _ => None,
    }
}
