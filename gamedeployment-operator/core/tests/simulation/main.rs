//! A small cluster in memory, and what holds for every workload in it: whatever people do, whatever nodes and hooks
//! do, whichever write is lost and however old a view is.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, reason = "tests")]

mod cases;
mod hooks;
mod kubelet;
mod not_taken_up;
mod people;
mod promises;
mod properties;
mod referee;
mod restarts;
#[path = "../../../../tests/simulation/src/setup.rs"]
mod setup;
mod status_last;
mod stories;
mod world;
mod writes;
