//! From nodes and a value to an answer, within a budget.

pub(in crate::condition) mod access;
pub(in crate::condition) mod arith;
pub(in crate::condition) mod budget;
pub(in crate::condition) mod builtin;
mod builtin_list;
mod builtin_number;
mod builtin_text;
pub(in crate::condition) mod closures;
pub(in crate::condition) mod compare;
pub(in crate::condition) mod env;
pub(in crate::condition) mod eval;
pub(in crate::condition) mod json_text;
pub(in crate::condition) mod kleene;
pub(in crate::condition) mod methods;
pub(in crate::condition) mod operators;
