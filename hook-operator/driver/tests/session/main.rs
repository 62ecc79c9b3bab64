//! Tests of a session alone: its inputs and its outputs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use jiff::Timestamp;
use runtime_core::clock::Now;

mod jobs;
mod order;
mod owner_missing;

/// Returns the moment that many seconds after the start of both clocks.
fn at(seconds: u64) -> Now {
    let time = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + time,
        elapsed: time,
        monotonic: time,
    }
}
