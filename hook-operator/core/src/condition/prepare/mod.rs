//! What is done once per condition, before any value is there: constants folded, regular expressions compiled, and
//! what the condition mentions noted.

pub(in crate::condition) mod allowance;
pub(in crate::condition) mod fold;
pub(in crate::condition) mod mentions;
pub(in crate::condition) mod pattern;
mod re2;
mod re2_class;
mod shared;
