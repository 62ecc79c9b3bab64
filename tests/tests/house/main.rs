//! The walls of the house: what may depend on what, and that what is generated is up to date.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod crd_rules;
mod walls;
