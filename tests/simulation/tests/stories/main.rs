//! Scripted stories, played step by step by both operators' drivers and checked by the referee.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod evictions;
mod first_idle;
mod first_idle_update;
mod gate;
mod hooks;
mod notices;
mod pods;
mod updates;
