//! Pure loop of gamedeployment-operator: all logic between an event or an answer and the next API call.
//!
//! Contract: [`Driver::handle`] takes an input. [`Driver::poll`] returns outputs until it returns `None`;
//! then nothing is due before the next input or [`Driver::deadline`]. The shell makes the calls and measures
//! time. `tests/simulation` runs exactly this code.
//!
//! | module | job |
//! | --- | --- |
//! | [`driver`] | one decision at a time for each workload, when it is due |
//! | [`direct_reads`] | direct reads of uncertain objects and of those that the watch does not show |
//! | [`guard_checks`] | checks of the removal guard, when they are due |
//! | [`eviction_reports`] | reports to Evictions, when they are due |
//! | [`watch_event`] | watch events, in the types of the core |
//! | [`index`] | cached view of the cluster, and the workloads that an event concerns |
//! | [`store`] | cache of one kind, fed by the watch and by own writes |
//! | [`expectations`] | writes with an unknown outcome |
//! | [`unread`] | decisions without objects that cannot be read back |
//! | [`job`] | execution of a plan: order, batches, meaning of each answer |
//! | [`request`] | calls, answers and all other outputs to the shell |
//! | [`pacing`] | wake-ups, and throttling after long decisions |
//!
//! This crate has no client, runtime, clock, randomness, environment or log.

// Every match on actions, calls and events lists all variants, so that a new one is considered everywhere.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod direct_reads;
pub mod driver;
mod eviction_reports;
pub mod expectations;
mod guard_checks;
pub mod index;
mod input;
mod job;
mod pacing;
pub mod request;
pub mod store;
mod unread;
pub mod watch_event;

pub use driver::{Driver, DriverLimits};
pub use input::DriverInput;
pub use job::CallLimits;

/// Namespace and name.
pub type NamespacedName = (String, String);
