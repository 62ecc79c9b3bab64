//! Single stories, each written down step by step and played by both operators' drivers. The referee watches.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod gate;
mod hooks;
mod pods;
mod updates;
