//! Tests of the driver alone: its inputs, its outputs, and nothing besides.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod kit;
mod reads;
mod told;
mod writes;
