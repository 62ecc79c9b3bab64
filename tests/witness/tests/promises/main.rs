//! Tests of the witness itself: each promise has a story that keeps it, and one that breaks it and is
//! reported.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may end so")]

mod count;
mod form;
mod gate;
mod log;
mod update;
