//! Tests of the driver alone, through its inputs and outputs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod clock;
mod deletion;
mod eviction_api;
mod eviction_completions;
mod eviction_heartbeats;
mod eviction_kit;
mod evictions;
mod guard_check;
mod kit;
mod not_stored;
mod notices;
mod pod_warnings;
mod reads;
mod server;
mod stale_spec;
mod told;
mod turns;
mod unread;
mod writes;
