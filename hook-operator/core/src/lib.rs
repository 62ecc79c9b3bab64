//! Pure core of hook-operator.
//!
//! | module | job |
//! | --- | --- |
//! | [`resolve`] | turns a spec into one that can be measured, or reports every problem at once |
//! | [`decide`] | one step of a run: what to record, what to measure, when to wake |
//! | [`tally`] | counters, limits, a metric's verdict |
//! | [`schedule`] | due times of measurements |
//! | [`judge`] | turns an answer into the phase of one measurement |
//! | [`render`] | fills in placeholders |
//! | [`request`] | one measurement's request with everything filled in |
//! | [`answer`] | turns the received bytes into a value, or the reason why there is none |
//! | [`execution`] | ExecutionHooks: an action in selected containers |
//! | `hex_digest` | digests as text |
//! | [`job`] | the Job of a measurement: its name and its object |
//! | [`value`] | the value that a condition judges |
//! | [`address`] | addresses that no hook may call, in every written form |
//!
//! The languages of a spec (conditions, JSON path, placeholders, durations) are separate crates in
//! `languages/`.
//!
//! This crate has no client, runtime, clock, randomness, environment or log.

pub mod address;
pub mod answer;
pub mod decide;
pub mod execution;
mod hex_digest;
pub mod job;
pub mod judge;
pub mod render;
pub mod request;
pub mod resolve;
pub mod schedule;
pub mod tally;
pub mod value;
