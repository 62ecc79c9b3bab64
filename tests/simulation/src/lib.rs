//! Both operators in one seeded world: whatever people, nodes, endpoints, networks and clocks do, a gate opens only on a
//! measured success, and nothing is stuck in silence.
//!
//! | module | job |
//! | --- | --- |
//! | [`world`] | the state, and one step of it; [`fault_profile`]: what goes wrong, and how often |
//! | [`server`] | the API server; [`objects`]: what it holds |
//! | [`process`] | the operators' processes: crashes, pauses, leases, fences; [`network`]: requests under way |
//! | [`hooks`] | the driver of hook-operator between this world's watches and network; [`games`]: that of gamedeployment-operator |
//! | [`kubelet`] | nodes and containers; [`endpoint`]: what games answer to [`questions`]; [`people`]: who changes their mind |
//! | [`referee`] | what must hold at every step |
//! | [`settle`] | faults stop: everything converges, and stays |
//! | [`story`] | seeds, their totals, and how a failing one is shrunk and told |
//! | [`script`] | a world in which only that happens what a test writes down |
//!
//! What runs in the operators runs here: their cores, their drivers, and the candidate of the leader election. This crate
//! is the world around them. Everything is drawn from a seed by [`fastrand`]; there is no thread, no clock and no hash
//! order in it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests: a broken promise is a panic"
)]

pub mod ending;
pub mod endpoint;
pub mod fault_profile;
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
pub mod script;
pub mod server;
pub mod settle;
pub mod setup;
pub mod story;
pub mod totals;
pub mod unrecorded;
pub mod world;
