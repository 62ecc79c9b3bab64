//! The pure loop of gamedeployment-operator: everything between what is seen or answered and what is asked next.
//!
//! The contract: [`Driver::handle`] takes in what has happened, [`Driver::poll`] gives out what is to be done until it
//! gives nothing, and then nothing is to be done before the next input or [`Driver::deadline`]. The shell makes the
//! calls, and measures the time; what it runs is what `tests/simulation` runs.
//!
//! | module | job |
//! | --- | --- |
//! | [`driver`] | one decision at a time for each workload, when it is due |
//! | [`reading`] | direct reads: of what is uncertain, and of what the watch does not show |
//! | [`news`] | what the watches show, in the types of the core |
//! | [`index`] | what is known, and which workloads an event is about |
//! | [`store`] | objects of one kind, by the watch and by own writes |
//! | [`expectations`] | writes whose effect is not known |
//! | [`job`] | a plan that is carried out: order, batches, what each answer means |
//! | [`request`] | calls and answers, and everything else that the shell is told |
//! | [`pacing`] | wake-ups, and rest after long decisions |
//!
//! Nothing here has a client, a runtime, a clock, randomness, an environment or a log.

pub mod driver;
pub mod expectations;
pub mod index;
mod input;
mod job;
pub mod news;
mod pacing;
mod reading;
pub mod request;
pub mod store;

pub use driver::{Driver, Limits};
pub use input::Input;
pub use job::Calls;

/// Namespace and name.
pub type Key = (String, String);
