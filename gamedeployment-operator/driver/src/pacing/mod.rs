//! Scheduling of decisions that no event causes.

mod rest;
mod wakes;

pub(crate) use rest::Rest;
pub(crate) use wakes::Wakes;
