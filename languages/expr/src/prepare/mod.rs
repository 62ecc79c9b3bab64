//! Work done once per condition, before any value exists: constant folding, compilation of regular
//! expressions, and a scan for mentioned features.

pub(crate) mod allowance;
pub(crate) mod fold;
pub(crate) mod mentions;
pub(crate) mod pattern;
mod re2;
mod re2_class;
mod shared;
