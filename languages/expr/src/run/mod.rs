//! Evaluates a syntax tree to a value, within a budget.

pub(crate) mod access;
mod args;
pub(crate) mod arith;
pub(crate) mod budget;
pub(crate) mod builtin;
mod builtin_list;
mod builtin_number;
mod builtin_text;
pub(crate) mod closures;
pub(crate) mod compare;
pub(crate) mod env;
pub(crate) mod eval;
pub(crate) mod json_text;
pub(crate) mod kleene;
pub(crate) mod methods;
pub(crate) mod operators;
