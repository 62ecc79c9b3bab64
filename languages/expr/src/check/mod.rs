//! Static type check: one forward pass that gives every node a [`Ty`] and rejects what Go's checker rejects.
//!
//! It depends on the kind of `result`, never on its contents, so its outcome is cached per kind. If a JSON
//! scalar is compared with another type, the scalar is read as its text (`result == "45"` on 45). This only
//! turns errors into answers, never one answer into another.

mod calls;
mod ops;
pub(crate) mod types;

use std::sync::Arc;

use crate::check::types::Ty;
use crate::error::{ConditionErrorKind, Fault};
use crate::run::methods;
use crate::syntax::ast::{Kind, NodeId, Pointer, Tree, UnaryOp};
use crate::syntax::names::{EXEC_FIELDS, EnvFunction, Function, JOB_FIELDS, RESPONSE_FIELDS, unknown_name};

/// Kinds of `result` that the check distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Number,
    Bool,
    Text,
    Null,
    List,
    Object,
    /// A Prometheus scalar: a number that is never read as text, as in the original operator.
    Sample,
    /// A Prometheus vector.
    Samples,
}

impl ResultKind {
    pub(crate) fn ty(self) -> Ty {
        match self {
            ResultKind::Number | ResultKind::Sample => Ty::Float,
            ResultKind::Bool => Ty::Bool,
            ResultKind::Text => Ty::Str,
            ResultKind::Null => Ty::Nil,
            ResultKind::List => Ty::list_of(Ty::Any),
            ResultKind::Object => Ty::Map,
            ResultKind::Samples => Ty::Floats,
        }
    }

    /// Returns whether such a value is a number or a text that may be one.
    pub(crate) fn may_be_number(self) -> bool {
        match self {
            ResultKind::Number | ResultKind::Text | ResultKind::Sample => true,
            ResultKind::Bool
            | ResultKind::Null
            | ResultKind::List
            | ResultKind::Object
            | ResultKind::Samples => false,
        }
    }

    /// Returns whether `result` may be read as text if its own type does not fit.
    pub(crate) fn has_text(self) -> bool {
        matches!(self, ResultKind::Number | ResultKind::Bool)
    }
}

/// Facts about a node, besides its [`Kind`], that the evaluation needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Notes(u8);

impl Notes {
    /// `==` between two static integers: both must be integers at run time.
    pub(crate) const INTEGERS: Notes = Notes(1);
    /// `==` between two static strings: both must be strings at run time.
    pub(crate) const TEXTS: Notes = Notes(2);
    /// The first operand is `result`, read as text.
    pub(crate) const FIRST_AS_TEXT: Notes = Notes(4);
    /// The second operand is `result`, read as text.
    pub(crate) const SECOND_AS_TEXT: Notes = Notes(8);
    /// `x in 1..3` with a static integer `x`: evaluated as two comparisons, without a range.
    pub(crate) const WITHIN: Notes = Notes(16);
    /// An integer literal where a float is expected.
    pub(crate) const FLOAT_LITERAL: Notes = Notes(32);

    pub(crate) fn has(self, note: Notes) -> bool {
        self.0 & note.0 != 0
    }

    pub(crate) fn with(self, note: Notes) -> Notes {
        Notes(self.0 | note.0)
    }
}

/// Result of the check for one kind of `result`.
#[derive(Debug)]
pub(crate) struct Checked {
    notes: Vec<Notes>,
}

impl Checked {
    pub(crate) fn notes(&self, id: NodeId) -> Notes {
        self.notes.get(id.index()).copied().unwrap_or_default()
    }

    /// Returns whether any node reads `result` as text.
    pub(crate) fn reads_as_text(&self) -> bool {
        let reads = |notes: &Notes| notes.has(Notes::FIRST_AS_TEXT) || notes.has(Notes::SECOND_AS_TEXT);
        self.notes.iter().any(reads)
    }
}

/// Checks the whole tree for one kind of `result`.
pub(crate) fn check(tree: &Tree, result: ResultKind) -> Result<Checked, Fault> {
    let mut checker = Checker {
        tree,
        result,
        types: Vec::new(),
        notes: Vec::new(),
    };
    for id in tree.ids() {
        checker.notes.push(Notes::default());
        let ty = checker.node(id).map_err(|fault| fault.at(tree.span(id)))?;
        checker.types.push(ty);
    }
    let root = checker.ty(tree.root());
    if !root.is_unknown() && root != Ty::Bool {
        let message = format!("the condition is {root}, not true or false; add a comparison");
        return Err(Fault::new(ConditionErrorKind::NotBoolean, message).at(tree.span(tree.root())));
    }
    Ok(Checked { notes: checker.notes })
}

pub(crate) struct Checker<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) result: ResultKind,
    types: Vec<Ty>,
    notes: Vec<Notes>,
}

impl Checker<'_> {
    pub(crate) fn ty(&self, id: NodeId) -> Ty {
        self.types.get(id.index()).cloned().unwrap_or(Ty::Unknown)
    }

    pub(crate) fn note(&mut self, id: NodeId, note: Notes) {
        if let Some(notes) = self.notes.get_mut(id.index()) {
            *notes = notes.with(note);
        }
    }

    /// Returns whether this operand is a JSON scalar `result` that may be read as text.
    pub(crate) fn readable_as_text(&self, id: NodeId) -> bool {
        self.result.has_text() && self.tree.is_result(id)
    }

    fn node(&mut self, id: NodeId) -> Result<Ty, Fault> {
        Ok(match self.tree.kind(id) {
            Kind::Nil => Ty::Nil,
            Kind::Bool(_) => Ty::Bool,
            Kind::Int(_) => Ty::Int,
            Kind::Float(_) => Ty::Float,
            Kind::Str(_) => Ty::Str,
            Kind::Result => self.result.ty(),
            Kind::Response | Kind::Job | Kind::Exec => Ty::Map,
            Kind::EnvFunction | Kind::Function => Ty::Function,
            Kind::Variable { value, .. } => self.ty(*value),
            Kind::Pointer { which, list } => self.pointer(*which, *list),
            Kind::Unary(op, operand) => unary(*op, &self.ty(*operand))?,
            Kind::Binary(op, left, right) => ops::binary(self, id, *op, *left, *right)?,
            Kind::Chain(inner) => self.ty(*inner),
            Kind::Member { base, key, optional } => self.member(id, *base, *key, *optional)?,
            Kind::Slice { base, from, to } => self.slice(id, *base, *from, *to)?,
            Kind::EnvCall(function, args) => self.env_call(id, *function, args)?,
            Kind::Call(function, args) => calls::call(self, id, *function, args)?,
            Kind::Method { base, name, args, .. } => {
                let types: Vec<Ty> = args.iter().map(|arg| self.ty(*arg)).collect();
                methods::check(&self.ty(*base), name, &types)?
            }
            Kind::Let { body, .. } => self.ty(*body),
            Kind::Sequence(nodes) => nodes.last().map_or(Ty::Nil, |last| self.ty(*last)),
            Kind::Choice { test, yes, no } => self.choice(*test, *yes, *no)?,
            Kind::Array(items) => self.array(items),
            Kind::Map(pairs) => self.map(pairs)?,
            Kind::Env
            | Kind::Same(_)
            | Kind::InWords(..)
            | Kind::Match { .. }
            | Kind::CountAgainst { .. } => Ty::Unknown,
        })
    }

    fn pointer(&self, which: Pointer, list: NodeId) -> Ty {
        match which {
            Pointer::Item => {
                let list = self.ty(list);
                if list.is_unknown() {
                    Ty::Unknown
                } else {
                    list.element()
                }
            }
            Pointer::Index => Ty::Int,
            Pointer::Acc => Ty::Unknown,
        }
    }

    fn member(&mut self, id: NodeId, base: NodeId, key: NodeId, optional: bool) -> Result<Ty, Fault> {
        let (held, index) = (self.ty(base), self.ty(key));
        let name = match self.tree.kind(key) {
            Kind::Str(name) => Some(name),
            _ => None,
        };
        let origin = match self.tree.kind(base) {
            Kind::Response => Some(("response", RESPONSE_FIELDS)),
            Kind::Job => Some(("job", JOB_FIELDS)),
            Kind::Exec => Some(("exec", EXEC_FIELDS)),
            _ => None,
        };
        if let (Some((of, fields)), Some(name)) = (origin, name)
            && !fields.contains(&name.as_ref())
            && !optional
        {
            let [first, second] = fields;
            let message = format!("unknown field `{of}.{name}`; use {of}.{first} or {of}.{second}");
            return Err(Fault::new(ConditionErrorKind::UnknownName, message));
        }
        if let (Kind::Env, Some(name)) = (self.tree.kind(base), name) {
            return match name.as_ref() {
                "result" => Ok(self.result.ty()),
                "response" | "job" | "exec" => Ok(Ty::Map),
                name if EnvFunction::find(name).is_some() => Ok(Ty::Function),
                _ if optional => Ok(Ty::Unknown),
                name => Err(Fault::new(ConditionErrorKind::UnknownName, unknown_name(name))),
            };
        }
        match &held {
            ty if ty.is_unknown() => Ok(Ty::Unknown),
            Ty::Map if self.readable_as_text(key) => {
                self.note(id, Notes::SECOND_AS_TEXT);
                Ok(Ty::Any)
            }
            Ty::Map if index == Ty::Str || index.is_unknown() => Ok(Ty::Any),
            Ty::Pairs | Ty::Groups if index != Ty::Unknown => Ok(held.element()),
            Ty::Map | Ty::Pairs | Ty::Groups => Err(Fault::mismatch(format!(
                "an object's key must be text, not {index}"
            ))),
            ty if ty.is_list() && (index.is_integer() || index.is_unknown()) => Ok(held.element()),
            ty if ty.is_list() => Err(Fault::mismatch(format!(
                "{held} has no fields; use an integer index such as [0], or any(…, .{})",
                name.map_or("field", |name| name)
            ))),
            _ => Err(Fault::mismatch(match name {
                Some(name) => format!("{} has no field `{name}`", self.called(base)),
                None => format!("{} cannot be indexed", self.called(base)),
            })),
        }
    }

    /// Describes an operand in messages; `result` is called by its name.
    pub(crate) fn called(&self, id: NodeId) -> String {
        let ty = self.ty(id);
        if self.tree.is_result(id) {
            format!("result, which is {ty},")
        } else {
            ty.to_string()
        }
    }

    fn slice(
        &mut self,
        id: NodeId,
        base: NodeId,
        from: Option<NodeId>,
        to: Option<NodeId>,
    ) -> Result<Ty, Fault> {
        let mut held = self.ty(base);
        if held.is_unknown() {
            return Ok(Ty::Unknown);
        }
        if self.readable_as_text(base) {
            self.note(id, Notes::FIRST_AS_TEXT);
            held = Ty::Str;
        }
        if held != Ty::Str && !held.is_list() {
            return Err(Fault::mismatch(format!("{} cannot be sliced", self.called(base))));
        }
        for bound in [from, to].into_iter().flatten() {
            let ty = self.ty(bound);
            if !ty.is_integer() && !ty.is_unknown() {
                return Err(Fault::mismatch(format!(
                    "a slice bound must be an integer, not {ty}"
                )));
            }
        }
        Ok(held)
    }

    fn env_call(&mut self, id: NodeId, function: EnvFunction, args: &[NodeId]) -> Result<Ty, Fault> {
        Ok(match function {
            EnvFunction::AsInt => Ty::Int64,
            EnvFunction::AsFloat => Ty::Float,
            EnvFunction::IsNil => Ty::Bool,
            EnvFunction::Default => Ty::Any,
            EnvFunction::IsNaN | EnvFunction::IsInf => {
                let Some(arg) = args.first() else {
                    return Ok(Ty::Bool);
                };
                let ty = self.ty(*arg);
                if ty.is_integer() && ops::becomes_float(self.tree, *arg) {
                    self.note(id, Notes::FLOAT_LITERAL);
                } else if !ty.is_number() && !ty.is_unknown() {
                    return Err(Fault::mismatch(format!(
                        "{} takes a number, not {ty}; use {}(asFloat(…))",
                        function.name(),
                        function.name()
                    )));
                }
                Ty::Bool
            }
        })
    }

    fn choice(&self, test: NodeId, yes: NodeId, no: NodeId) -> Result<Ty, Fault> {
        let condition = self.ty(test);
        if condition != Ty::Bool && !condition.is_unknown() {
            let message = format!("the part before `?` must be true or false, not {condition}");
            return Err(Fault::mismatch(message).at(self.tree.span(test)));
        }
        let (yes, no) = (self.ty(yes), self.ty(no));
        Ok(match (&yes, &no) {
            (Ty::Nil, _) => no,
            (_, Ty::Nil) => yes,
            (Ty::List(a), Ty::List(b)) if !a.assignable_to(b) || !b.assignable_to(a) => Ty::list_of(Ty::Any),
            _ if yes.assignable_to(&no) => yes,
            _ => Ty::Unknown,
        })
    }

    fn array(&self, items: &[NodeId]) -> Ty {
        let mut element = Ty::Unknown;
        for (at, item) in items.iter().enumerate() {
            let ty = self.ty(*item);
            if at > 0 && !ty.same_kind(&element) {
                return Ty::list_of(Ty::Any);
            }
            element = ty;
        }
        Ty::List(Arc::new(element))
    }

    fn map(&self, pairs: &[(NodeId, NodeId)]) -> Result<Ty, Fault> {
        for (key, _) in pairs {
            let ty = self.ty(*key);
            if ty != Ty::Str && !ty.is_unknown() {
                return Err(Fault::mismatch(format!("an object's key must be text, not {ty}"))
                    .at(self.tree.span(*key)));
            }
        }
        Ok(Ty::Map)
    }

    /// Returns the type of the list that a closure iterates over.
    pub(crate) fn walked(&self, function: Function, list: NodeId) -> Result<Ty, Fault> {
        let ty = self.ty(list);
        if ty.is_list() || ty.is_unknown() {
            return Ok(ty);
        }
        Err(Fault::mismatch(format!("{function} takes a list, not {ty}")).at(self.tree.span(list)))
    }
}

fn unary(op: UnaryOp, operand: &Ty) -> Result<Ty, Fault> {
    match op {
        UnaryOp::Not if *operand == Ty::Bool || operand.is_unknown() => Ok(Ty::Bool),
        UnaryOp::Minus | UnaryOp::Plus if operand.is_number() => Ok(operand.clone()),
        UnaryOp::Minus | UnaryOp::Plus if operand.is_unknown() => Ok(Ty::Unknown),
        UnaryOp::Not => Err(Fault::mismatch(format!(
            "`not` needs true or false, not {operand}"
        ))),
        UnaryOp::Minus | UnaryOp::Plus => Err(Fault::mismatch(format!(
            "unary `+` and `-` need a number, not {operand}"
        ))),
    }
}
