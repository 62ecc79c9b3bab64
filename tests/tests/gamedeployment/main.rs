//! GameDeployments on a real API server, with simulated nodes and both operators: one file a behaviour.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::{Fleet, Programs};
use test_kit::ControlPlane;

mod scale_down;

/// The programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// A fleet on the shared control plane.
async fn fleet(name: &str) -> Fleet<'static> {
    Fleet::on(ControlPlane::shared(shared_api::crd::all).await, PROGRAMS, name).await
}
