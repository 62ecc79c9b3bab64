//! The seeds that are played before every change.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
