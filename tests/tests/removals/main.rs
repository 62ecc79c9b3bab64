//! Removals of pods on a real API server: the facts that the removal guard relies on, and the guard with both operators
//! and the clients that people use.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod autoscalers;
mod condition;
mod costs;
mod deletion;
#[allow(dead_code, reason = "the suite of the component needs more of it")]
#[path = "../admission/deploy.rs"]
mod deploy;
mod eviction_controller;
mod eviction_responder;
mod facts;
mod faults;
mod first_idle;
mod first_idle_update;
mod freed;
mod guard;
mod guarded;
#[allow(dead_code, reason = "the suite of the component needs more of it")]
#[path = "../admission/installation.rs"]
mod installation;
mod lifecycle_crds;
mod nodes;
mod outages;
mod rate;
mod scouts;
#[allow(dead_code, reason = "the suite of GameDeployments needs more of it")]
#[path = "../gamedeployment/seen.rs"]
mod seen;
mod withdrawn;

use test_kit::ControlPlane;

/// Programs under test.
const PROGRAMS: operator_tests::Programs = operator_tests::Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Admission component.
const PROGRAM: &str = env!("CARGO_BIN_EXE_admission-under-test");

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
