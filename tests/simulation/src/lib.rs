//! Both operators in one seeded world: whatever people, nodes, endpoints, networks and clocks do, a gate opens only on a
//! measured success, and nothing is stuck in silence.
//!
//! | module | job |
//! | --- | --- |
//! | [`world`] | the state, and one step of it; [`weather`]: what goes wrong, and how often |
//! | [`server`] | the API server; [`objects`]: what it holds |
//! | [`process`] | the operators' processes: crashes, pauses, leases, fences; [`network`]: requests under way |
//! | [`hooks`] | hook-operator around its core; [`games`]: gamedeployment-operator's driver between this world's watches and network |
//! | [`kubelet`] | nodes and containers; [`endpoint`]: what games answer to [`questions`]; [`people`]: who changes their mind |
//! | [`referee`] | what must hold at every step |
//! | [`settle`] | faults stop: everything converges, and stays |
//! | [`story`] | seeds, their totals, and how a failing one is shrunk and told |
//!
//! What is the real thing: both cores, the driver of gamedeployment-operator, and the candidate of the leader election,
//! taken in as a file. What is modelled: the loop of hook-operator around its core. Everything is drawn from a seed by [`fastrand`]; there is no thread, no clock and no hash order in it.
// The shells' files have unit tests of their own, which are compiled where they live.
#![cfg(not(test))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests: a broken promise is a panic"
)]

// The shells' files name their crates; here these names mean this crate.
extern crate self as operator_runtime;

pub mod ending;
pub mod endpoint;
pub mod games;
pub mod hooks;
pub mod kubelet;
pub mod network;
pub mod objects;
pub mod people;
pub mod process;
pub mod questions;
pub mod referee;
pub mod refused;
pub mod server;
pub mod settle;
#[path = "../../../gamedeployment-operator/core/tests/simulation/setup.rs"]
pub mod setup;
pub mod story;
pub mod totals;
pub mod unrecorded;
pub mod weather;
pub mod world;

pub use runtime_core::candidate;
