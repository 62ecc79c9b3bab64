//! The witness itself is judged: each promise has a story in which it is kept, and one in which it is broken and seen.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may end so")]

mod count;
mod form;
mod gate;
mod log;
mod update;
