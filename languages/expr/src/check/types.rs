//! Static types of values, with Go's assignment rules.

use std::fmt;
use std::sync::Arc;

/// Static type of a value.
///
/// `Unknown` is a value about which nothing is known; `Any` is an element of a JSON list or object. Both may
/// hold any value. They differ only in assignability, which determines the type of `? :`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ty {
    Unknown,
    Any,
    Nil,
    Bool,
    Int,
    /// Result of `asInt`; unlike `Int`, not subject to the strict integer comparison.
    Int64,
    Float,
    Str,
    Time,
    Duration,
    /// A list, with the type of its elements.
    List(Arc<Ty>),
    /// A Prometheus vector.
    Floats,
    /// Result of `split`.
    Words,
    /// An object: string keys, values of any type.
    Map,
    /// Result of `fromPairs`: keys of any type.
    Pairs,
    /// Result of `groupBy`: keys of any type, lists as values.
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

    /// Returns the type of a function that passes on its argument's type: Go erases the element type.
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

    /// Returns whether two types are of the same Go kind, as far as "all elements of one kind" needs it.
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

    /// Returns whether one type is unknown and the other one `fits`, or both are unknown.
    pub(crate) fn maybe(&self, other: &Ty, fits: impl Fn(&Ty) -> bool) -> bool {
        match (self.is_unknown(), other.is_unknown()) {
            (true, true) => true,
            (true, false) => fits(other),
            (false, true) => fits(self),
            (false, false) => false,
        }
    }

    /// Returns the type of the sum or product of two numbers of known type.
    pub(crate) fn promote(&self, other: &Ty) -> Ty {
        if *self == Ty::Float || *other == Ty::Float {
            Ty::Float
        } else {
            Ty::Int
        }
    }
}
