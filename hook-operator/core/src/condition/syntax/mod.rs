//! From text to nodes: tokens, precedence, the parser, and which names there are.

pub(in crate::condition) mod ast;
mod escape;
pub(in crate::condition) mod lex;
pub(in crate::condition) mod names;
pub(in crate::condition) mod parse;
mod precedence;
mod primary;
pub(in crate::condition) mod spelling;
