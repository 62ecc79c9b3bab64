//! When a workload is decided on, besides when something happens.

mod rest;
mod wakes;

pub(crate) use rest::Rest;
pub(crate) use wakes::Wakes;
