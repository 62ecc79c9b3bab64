//! Rules of the repository: permitted dependencies and licences, and up-to-date generated files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod crd_rules;
mod features;
mod hookrun_policy;
mod manifests;
mod map;
mod paths;
mod seeded;
mod statements;
mod supply;
mod walls;
mod words;
