//! What is done once per condition, before any value is there: constants folded, regular expressions compiled, and
//! what the condition mentions noted.

pub(crate) mod allowance;
pub(crate) mod fold;
pub(crate) mod mentions;
pub(crate) mod pattern;
mod re2;
mod re2_class;
mod shared;
