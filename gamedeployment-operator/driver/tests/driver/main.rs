//! The driver by itself: what goes in, what comes out, and that nothing else does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod kit;
mod reads;
mod told;
mod writes;
