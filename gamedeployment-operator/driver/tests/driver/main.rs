//! Tests of the driver alone, through its inputs and outputs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod clock;
mod deletion;
mod guard_check;
mod kit;
mod not_stored;
mod reads;
mod server;
mod stale_spec;
mod told;
mod turns;
mod unread;
mod writes;
