//! What the shells of both operators decide, as opposed to what they do.
//!
//! | module | job |
//! | --- | --- |
//! | [`candidate`] | who leads, from what is read of a Lease and when |
//! | [`layout`] | whether processes of another number of shards still work |
//! | [`shard`] | which part of the namespaces a process works on |
//! | [`clock`] | a moment by both clocks |
//! | [`backoff`] | how long to wait before what failed is tried again |
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log: times are arguments.

pub mod backoff;
pub mod candidate;
pub mod clock;
pub mod layout;
pub mod shard;
