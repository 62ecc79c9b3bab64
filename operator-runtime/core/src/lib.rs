//! Decisions of the operators' shells, separate from their I/O.
//!
//! | module | job |
//! | --- | --- |
//! | [`candidate`] | leader election, from the content of a Lease and the times it was read |
//! | [`layout`] | detects processes with another number of shards that still work |
//! | [`shard`] | the part of the namespaces that a process works on |
//! | [`clock`] | a point in time on both clocks |
//! | [`backoff`] | exponential back-off between retries |
//!
//! This crate has no client, runtime, clock, randomness, environment or log: times are arguments.

pub mod backoff;
pub mod candidate;
pub mod clock;
pub mod layout;
pub mod shard;
