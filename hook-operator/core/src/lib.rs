//! The pure core of hook-operator.
//!
//! | module | job |
//! | --- | --- |
//! | [`resolve`] | from a spec as people wrote it to one that can be measured, or every problem at once |
//! | [`decide`] | one step of a run: what to record, what to measure, when to wake |
//! | [`tally`] | counters, limits, a metric's verdict |
//! | [`schedule`] | when a measurement is due |
//! | [`judge`] | from an answer to the phase of one measurement |
//! | [`render`] | fills in placeholders |
//! | [`request`] | one measurement's request with everything filled in |
//! | [`answer`] | from the bytes that came back to a value, or the reason why there is none |
//! | [`value`] | the value that a condition judges |
//! | [`address`] | which addresses no hook may call, in whatever form they are written |
//!
//! The languages of a spec (conditions, JSON path, placeholders, durations) are crates of their own, in `languages/`.
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log.

pub mod address;
pub mod answer;
pub mod decide;
pub mod judge;
pub mod render;
pub mod request;
pub mod resolve;
pub mod schedule;
pub mod tally;
pub mod value;
