//! Static rules of the built-in functions: number and types of arguments.

use crate::check::types::Ty;
use crate::check::{Checker, Notes};
use crate::error::Fault;
use crate::syntax::ast::NodeId;
use crate::syntax::names::{Function, closure_arguments};

/// Type of a parameter.
#[derive(Debug, Clone, Copy)]
enum Want {
    Any,
    Text,
    Int,
    List,
    Floats,
    Words,
}

impl Want {
    fn accepts(self, ty: &Ty) -> bool {
        if *ty == Ty::Nil {
            return matches!(self, Want::Any);
        }
        ty.is_unknown()
            || match self {
                Want::Any => true,
                Want::Text => *ty == Ty::Str,
                Want::Int => ty.is_integer(),
                Want::List => matches!(ty, Ty::List(_)),
                Want::Floats => *ty == Ty::Floats,
                Want::Words => *ty == Ty::Words,
            }
    }
}

/// Returns the type of a call's value, or an error if the arguments do not fit.
pub(crate) fn call(
    checker: &mut Checker<'_>,
    id: NodeId,
    function: Function,
    args: &[NodeId],
) -> Result<Ty, Fault> {
    if closure_arguments(function).is_some() {
        return with_closure(checker, function, args);
    }
    let mut types: Vec<Ty> = args.iter().map(|arg| checker.ty(*arg)).collect();
    if function == Function::Len
        && let ([arg], [ty]) = (args, types.as_mut_slice())
        && checker.readable_as_text(*arg)
    {
        checker.note(id, Notes::FIRST_AS_TEXT);
        *ty = Ty::Str;
    }
    if let Some((overloads, out)) = signature(function) {
        let fits = |wants: &&[Want]| {
            wants.len() == types.len() && wants.iter().zip(&types).all(|(want, ty)| want.accepts(ty))
        };
        return if overloads.iter().any(fits) {
            Ok(out)
        } else {
            Err(refuse(function, &types))
        };
    }
    by_kind(function, &types).ok_or_else(|| refuse(function, &types))
}

fn refuse(function: Function, types: &[Ty]) -> Fault {
    let given: Vec<String> = types.iter().map(Ty::to_string).collect();
    Fault::mismatch(if given.is_empty() {
        format!("{function} needs arguments")
    } else {
        format!("{function} does not accept {}", given.join(", "))
    })
}

fn with_closure(checker: &mut Checker<'_>, function: Function, args: &[NodeId]) -> Result<Ty, Fault> {
    let Some(list) = args.first() else {
        return Err(refuse(function, &[]));
    };
    let walked = checker.walked(function, *list)?;
    let body = args.get(1).map(|body| checker.ty(*body));
    if body == Some(Ty::Nil) {
        return Err(Fault::mismatch(format!(
            "the closure of {function} is always nil"
        )));
    }
    let decides = matches!(
        function,
        Function::All
            | Function::None
            | Function::Any
            | Function::One
            | Function::Filter
            | Function::Count
            | Function::Find
            | Function::FindIndex
            | Function::FindLast
            | Function::FindLastIndex
    );
    if let Some(body) = &body
        && decides
        && *body != Ty::Bool
        && !body.is_unknown()
    {
        return Err(Fault::mismatch(format!(
            "the closure of {function} must return true or false, not {body}"
        )));
    }
    let unknown = walked.is_unknown();
    Ok(match function {
        Function::Filter if unknown => Ty::list_of(Ty::Any),
        Function::Filter => Ty::list_of(walked.element()),
        Function::Map => Ty::list_of(body.unwrap_or(Ty::Unknown)),
        Function::Count | Function::FindIndex | Function::FindLastIndex => Ty::Int,
        Function::Sum => match body {
            Some(body) => body.erased(),
            None if unknown => Ty::Unknown,
            None => walked.element(),
        },
        Function::Find | Function::FindLast if unknown => Ty::Unknown,
        Function::Find | Function::FindLast => walked.element(),
        Function::GroupBy => Ty::Groups,
        Function::SortBy => {
            if let Some(order) = args.get(2).map(|order| checker.ty(*order))
                && order != Ty::Str
                && !order.is_unknown()
            {
                return Err(Fault::mismatch(format!(
                    "the order of sortBy must be text, not {order}"
                )));
            }
            walked
        }
        Function::Reduce => body.unwrap_or(Ty::Unknown),
        _ => Ty::Bool,
    })
}

/// Returns the overloads and the result type of a function with fixed parameter lists.
fn signature(function: Function) -> Option<(&'static [&'static [Want]], Ty)> {
    use Want::{Any, Floats, Int, List, Text, Words};
    Some(match function {
        Function::Type | Function::String | Function::ToJson => (&[&[Any]], Ty::Str),
        Function::Trim | Function::TrimPrefix | Function::TrimSuffix => (&[&[Text], &[Text, Text]], Ty::Str),
        Function::Upper | Function::Lower | Function::ToBase64 | Function::FromBase64 => {
            (&[&[Text]], Ty::Str)
        }
        Function::Split | Function::SplitAfter => (&[&[Text, Text], &[Text, Text, Int]], Ty::Words),
        Function::Replace => (&[&[Text, Text, Text], &[Text, Text, Text, Int]], Ty::Str),
        Function::Repeat => (&[&[Text, Int]], Ty::Str),
        Function::Join => (&[&[List], &[List, Text], &[Words], &[Words, Text]], Ty::Str),
        Function::IndexOf | Function::LastIndexOf => (&[&[Text, Text]], Ty::Int),
        Function::HasPrefix | Function::HasSuffix => (&[&[Text, Text]], Ty::Bool),
        Function::FromJson => (&[&[Text]], Ty::Any),
        Function::Duration => (&[&[Text]], Ty::Duration),
        Function::Timezone => (&[&[Text]], Ty::Unknown),
        Function::Sort => (
            &[
                &[List],
                &[Floats],
                &[Words],
                &[List, Text],
                &[Floats, Text],
                &[Words, Text],
            ],
            Ty::list_of(Ty::Any),
        ),
        Function::BitAnd
        | Function::BitOr
        | Function::BitXor
        | Function::BitNand
        | Function::BitShl
        | Function::BitShr
        | Function::BitUshr => (&[&[Int, Int]], Ty::Int),
        Function::BitNot => (&[&[Int]], Ty::Int),
        _ => return None,
    })
}

/// Returns the result type of a function whose rule depends on the types of its arguments.
fn by_kind(function: Function, types: &[Ty]) -> Option<Ty> {
    let number = |ty: &Ty| ty.is_number() || *ty == Ty::Duration || ty.is_unknown();
    let list = |ty: &Ty| ty.is_list() || ty.is_unknown();
    let any_list = || Ty::list_of(Ty::Any);
    match (function, types) {
        (Function::Len, [ty]) if list(ty) || ty.is_map() || *ty == Ty::Str => Some(Ty::Int),
        (Function::Int | Function::Float, [ty]) if number(ty) || *ty == Ty::Str => {
            Some(if function == Function::Int {
                Ty::Int
            } else {
                Ty::Float
            })
        }
        (Function::Abs, [ty]) if number(ty) => Some(ty.erased()),
        (Function::Ceil | Function::Floor | Function::Round, [ty]) if number(ty) => Some(Ty::Float),
        (Function::Max | Function::Min | Function::Mean | Function::Median, [first, ..]) => {
            // Go stops at the first list or unknown argument.
            for ty in types {
                if list(ty) {
                    return Some(Ty::Any);
                }
                if !number(ty) {
                    return None;
                }
            }
            Some(first.clone())
        }
        (Function::Now, []) | (Function::Date, [_] | [_, _] | [_, _, _]) => Some(Ty::Time),
        (Function::First | Function::Last, [ty]) if list(ty) => Some(match ty {
            Ty::Floats => Ty::Float,
            Ty::Words => Ty::Str,
            _ => Ty::Any,
        }),
        (Function::Get, [base, key]) => match base {
            base if base.is_unknown() => Some(Ty::Unknown),
            base if base.is_list() && (key.is_integer() || key.is_unknown()) => Some(base.element()),
            Ty::Map if *key == Ty::Str || key.is_unknown() => Some(Ty::Any),
            Ty::Pairs | Ty::Groups => Some(base.element()),
            _ => None,
        },
        (Function::Take, [ty, count]) if list(ty) && (count.is_integer() || count.is_unknown()) => {
            Some(ty.erased())
        }
        (Function::Keys | Function::Values | Function::ToPairs, [ty]) if ty.is_map() || ty.is_unknown() => {
            Some(any_list())
        }
        (Function::FromPairs, [ty]) if list(ty) => Some(Ty::Pairs),
        (Function::Reverse | Function::Uniq | Function::Flatten, [ty]) if list(ty) => Some(any_list()),
        (Function::Concat, [_, ..]) if types.iter().all(list) => Some(any_list()),
        _ => None,
    }
}
