//! Simulates both operators in one seeded world. Under any behaviour of users, nodes, endpoints, networks and
//! clocks, a gate opens only on a measured success, and nothing is stuck silently.
//!
//! | module | job |
//! | --- | --- |
//! | [`world`] | the state, and one step of it; [`fault_profile`]: kinds and rates of faults |
//! | [`server`] | the API server; [`objects`]: its contents |
//! | [`process`] | operators' processes: crashes, pauses, leases, fences; [`network`]: requests in flight |
//! | [`hooks`] | driver of hook-operator in this world; [`games`]: driver of gamedeployment-operator |
//! | [`kubelet`] | containers; [`nodes`]: silent kubelets; [`endpoint`]: responses to [`questions`] |
//! | [`taints`] | where pods are scheduled, and how long they may stay |
//! | [`people`] | users' actions; [`forger`]: HookRuns that measure something else; [`removals`]: removal requests |
//! | [`evictions`] | the controller of Evictions, and its default responder |
//! | [`referee`] | invariants of every step |
//! | [`settle`] | end of all faults: everything converges and stays |
//! | [`story`] | seeds, their totals, and the shrunk story of a failing one |
//! | [`script`] | a world that runs only the steps of a test |
//!
//! The simulation runs the operators' own code: their cores, their drivers, and the candidate of the leader
//! election. This crate is the world around them. [`fastrand`] draws everything from a seed; no thread, clock
//! or hash order has any influence.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests: a broken promise is a panic"
)]

pub mod ending;
pub mod endpoint;
pub mod evictions;
pub mod fault_profile;
pub mod forger;
pub mod games;
pub mod hooks;
pub mod kubelet;
pub mod network;
pub mod nodes;
pub mod objects;
pub mod people;
pub mod process;
pub mod pruned;
pub mod questions;
pub mod referee;
pub mod refused;
pub mod removals;
mod restored;
pub mod script;
pub mod server;
pub mod settle;
pub mod setup;
pub mod story;
pub mod taints;
pub mod totals;
pub mod unrecorded;
pub mod world;
