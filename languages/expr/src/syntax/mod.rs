//! Lexer, precedence, parser and known names.

pub(crate) mod ast;
mod escape;
pub(crate) mod lex;
pub(crate) mod names;
pub(crate) mod parse;
mod precedence;
mod primary;
pub(crate) mod spelling;
