//! The rules of the repository: what may depend on what, what may be linked, and that what is generated is up to date.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod crd_rules;
mod manifests;
mod map;
mod paths;
mod seeded;
mod supply;
mod walls;
