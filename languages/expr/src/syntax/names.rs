//! Names that a condition may use: functions of the original environment, and built-in functions.

use std::fmt;

use near_names::is_near;

/// Functions that the host adds to the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvFunction {
    AsInt,
    AsFloat,
    IsNaN,
    IsInf,
    IsNil,
    Default,
}

impl EnvFunction {
    pub(crate) const NAMES: [&str; 6] = ["asInt", "asFloat", "isNaN", "isInf", "isNil", "default"];

    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "asInt" => EnvFunction::AsInt,
            "asFloat" => EnvFunction::AsFloat,
            "isNaN" => EnvFunction::IsNaN,
            "isInf" => EnvFunction::IsInf,
            "isNil" => EnvFunction::IsNil,
            "default" => EnvFunction::Default,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            EnvFunction::AsInt => "asInt",
            EnvFunction::AsFloat => "asFloat",
            EnvFunction::IsNaN => "isNaN",
            EnvFunction::IsInf => "isInf",
            EnvFunction::IsNil => "isNil",
            EnvFunction::Default => "default",
        }
    }

    pub(crate) fn arity(self) -> usize {
        if self == EnvFunction::Default { 2 } else { 1 }
    }
}

macro_rules! functions {
    ($($variant:ident $name:literal,)*) => {
        /// Built-in functions of the language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $($variant,)* }

        impl Function {
            pub(crate) fn find(name: &str) -> Option<Self> {
                match name { $($name => Some(Function::$variant),)* _ => None }
            }

            pub(crate) fn name(self) -> &'static str {
                match self { $(Function::$variant => $name,)* }
            }
        }

        /// All function names, for messages and documentation tests.
        pub(crate) const FUNCTION_NAMES: &[&str] = &[$($name,)*];
    };
}

functions! {
    All "all", None "none", Any "any", One "one", Filter "filter", Map "map", Find "find",
    FindIndex "findIndex", FindLast "findLast", FindLastIndex "findLastIndex", Count "count", Sum "sum",
    GroupBy "groupBy", SortBy "sortBy", Reduce "reduce",
    Len "len", Type "type", Abs "abs", Ceil "ceil", Floor "floor", Round "round", Int "int", Float "float",
    String "string", Trim "trim", TrimPrefix "trimPrefix", TrimSuffix "trimSuffix", Upper "upper",
    Lower "lower", Split "split", SplitAfter "splitAfter", Replace "replace", Repeat "repeat", Join "join",
    IndexOf "indexOf", LastIndexOf "lastIndexOf", HasPrefix "hasPrefix", HasSuffix "hasSuffix", Max "max",
    Min "min", Mean "mean", Median "median", ToJson "toJSON", FromJson "fromJSON", ToBase64 "toBase64",
    FromBase64 "fromBase64", Now "now", Duration "duration", Date "date", Timezone "timezone",
    First "first", Last "last", Get "get", Take "take", Keys "keys", Values "values", ToPairs "toPairs",
    FromPairs "fromPairs", Reverse "reverse", Uniq "uniq", Concat "concat", Flatten "flatten", Sort "sort",
    BitAnd "bitand", BitOr "bitor", BitXor "bitxor", BitNand "bitnand", BitShl "bitshl", BitShr "bitshr",
    BitUshr "bitushr", BitNot "bitnot",
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Argument of a function that takes a closure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    Value,
    Closure,
}

/// Returns the arguments of a function that takes a closure, and how many are required; `None` for other
/// functions.
pub(crate) fn closure_arguments(function: Function) -> Option<(&'static [Argument], usize)> {
    use Argument::{Closure, Value};
    Some(match function {
        Function::All
        | Function::None
        | Function::Any
        | Function::One
        | Function::Filter
        | Function::Map
        | Function::Find
        | Function::FindIndex
        | Function::FindLast
        | Function::FindLastIndex
        | Function::GroupBy => (&[Value, Closure], 2),
        Function::Count | Function::Sum => (&[Value, Closure], 1),
        Function::SortBy | Function::Reduce => (&[Value, Closure, Value], 2),
        _ => return None,
    })
}

/// Fields of `response`.
pub(crate) const RESPONSE_FIELDS: [&str; 2] = ["code", "latencyMs"];
/// Fields of `job`.
pub(crate) const JOB_FIELDS: [&str; 2] = ["succeeded", "failed"];
/// Fields of `exec`.
pub(crate) const EXEC_FIELDS: [&str; 2] = ["exitCode", "stderr"];

/// Returns the message for an unknown name, with a similar known one if there is one.
pub(crate) fn unknown_name(name: &str) -> String {
    const VALUES: [&str; 4] = ["result", "response", "job", "exec"];
    let near = VALUES
        .iter()
        .chain(EnvFunction::NAMES.iter())
        .chain(FUNCTION_NAMES.iter())
        .find(|known| is_near(known, name));
    match near {
        Some(near) => format!("unknown name `{name}`; did you mean `{near}`?"),
        None => format!(
            "unknown name `{name}`; use result, response, job, exec or a function, or put quotes around text: \
             \"{name}\""
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered() {
        assert!(unknown_name("asint").contains("`asInt`"));
        assert!(unknown_name("reslt").contains("`result`"));
        assert!(unknown_name("busy").contains("\"busy\""));
    }

    #[test]
    fn every_function_finds_itself() {
        for name in FUNCTION_NAMES {
            assert_eq!(Function::find(name).map(Function::name), Some(*name));
        }
    }
}
