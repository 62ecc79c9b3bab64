//! The static kinds of values, with Go's rules for what may stand where.

use std::fmt;
use std::sync::Arc;

/// What is known of a value before it is computed.
///
/// `Unknown` is a value of which nothing is known; `Any` is an element of a JSON list or object. Both may
/// hold everything; they differ only in what may be assigned to them, which decides the kind of `? :`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ty {
    Unknown,
    Any,
    Nil,
    Bool,
    Int,
    /// What `asInt` returns; unlike `Int`, never compared by the strict integer rule.
    Int64,
    Float,
    Str,
    Time,
    Duration,
    /// A list of anything, with what is known of the elements.
    List(Arc<Ty>),
    /// A Prometheus vector.
    Floats,
    /// What `split` returns.
    Words,
    /// An object: text keys, values of any kind.
    Map,
    /// What `fromPairs` returns: keys of any kind.
    Pairs,
    /// What `groupBy` returns: keys of any kind, lists as values.
    Groups,
    Function,
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::Unknown | Ty::Any => "anything",
            Ty::Nil => "nil",
            Ty::Bool => "true/false",
            Ty::Int | Ty::Int64 => "an integer",
            Ty::Float => "a number",
            Ty::Str => "text",
            Ty::Time => "a time",
            Ty::Duration => "a duration",
            Ty::List(_) => "a list",
            Ty::Floats => "a list of numbers",
            Ty::Words => "a list of text",
            Ty::Map | Ty::Pairs | Ty::Groups => "an object",
            Ty::Function => "a function",
        })
    }
}

impl Ty {
    pub(crate) fn list_of(element: Ty) -> Ty {
        Ty::List(Arc::new(element))
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Ty::Unknown | Ty::Any)
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Ty::Int | Ty::Int64)
    }

    pub(crate) fn is_number(&self) -> bool {
        self.is_integer() || *self == Ty::Float
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Ty::List(_) | Ty::Floats | Ty::Words)
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self, Ty::Map | Ty::Pairs | Ty::Groups)
    }

    /// What a function returns that passes its argument's type on: Go forgets the elements there.
    pub(crate) fn erased(&self) -> Ty {
        match self {
            Ty::List(_) => Ty::list_of(Ty::Any),
            Ty::Unknown => Ty::Any,
            other => other.clone(),
        }
    }

    pub(crate) fn element(&self) -> Ty {
        match self {
            Ty::List(element) => element.as_ref().clone(),
            Ty::Floats => Ty::Float,
            Ty::Words => Ty::Str,
            Ty::Map | Ty::Pairs => Ty::Any,
            Ty::Groups => Ty::list_of(Ty::Any),
            _ => Ty::Unknown,
        }
    }

    /// Go's kinds, as far as "all elements of one kind" needs them.
    pub(crate) fn same_kind(&self, other: &Ty) -> bool {
        match (self, other) {
            (Ty::Unknown | Ty::Nil, Ty::Unknown | Ty::Nil)
            | (Ty::Int64 | Ty::Duration, Ty::Int64 | Ty::Duration) => true,
            _ => (self.is_list() && other.is_list()) || (self.is_map() && other.is_map()) || self == other,
        }
    }

    pub(crate) fn assignable_to(&self, target: &Ty) -> bool {
        match (self, target) {
            (Ty::Nil, target) => {
                target.is_list() || target.is_map() || matches!(target, Ty::Any | Ty::Function)
            }
            (Ty::Unknown, _) | (_, Ty::Unknown | Ty::Nil) => false,
            (_, Ty::Any) | (Ty::List(_), Ty::List(_)) => true,
            _ => self == target,
        }
    }

    pub(crate) fn comparable_to(&self, other: &Ty) -> bool {
        self.is_unknown()
            || other.is_unknown()
            || *self == Ty::Nil
            || *other == Ty::Nil
            || (self.is_number() && other.is_number())
            || (self.is_list() && other.is_list())
            || self.assignable_to(other)
    }

    /// One side unknown and the other of a kind that `fits`, or both unknown.
    pub(crate) fn maybe(&self, other: &Ty, fits: impl Fn(&Ty) -> bool) -> bool {
        match (self.is_unknown(), other.is_unknown()) {
            (true, true) => true,
            (true, false) => fits(other),
            (false, true) => fits(self),
            (false, false) => false,
        }
    }

    /// The kind of a sum or product of two known numbers.
    pub(crate) fn promote(&self, other: &Ty) -> Ty {
        if *self == Ty::Float || *other == Ty::Float {
            Ty::Float
        } else {
            Ty::Int
        }
    }
}
