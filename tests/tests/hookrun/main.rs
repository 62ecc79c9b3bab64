//! HookRuns on a real API server: one file a behaviour.
//!
//! Every test has a namespace and an operator process of its own; all share one control plane, but for those that
//! stop or pause the API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::Stage;
use test_kit::ControlPlane;

mod count_and_limits;
mod one_shot;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_hook-operator-under-test");

/// A stage on the shared control plane.
async fn stage(name: &str) -> Stage<'static> {
    Stage::on(shared().await, PROGRAM, name).await
}

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
