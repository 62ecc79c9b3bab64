//! Tests of HookRuns on a real API server: one file per behaviour.
//!
//! Every test has its own namespace and operator process. All share one control plane, except those that stop
//! or pause the API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::{Start, TestEnv, hooks_kubeconfig};
use test_kit::ControlPlane;

mod arguments;
mod bad_answers;
mod count_and_limits;
mod deletion;
mod egress;
mod explain;
mod good_answers;
mod hostile_conditions;
mod incomplete;
mod independence;
mod initial_delay;
mod invalid_spec;
mod jobs;
mod kubectl;
mod manifests;
mod misspelt;
mod objects;
mod observability;
mod one_shot;
mod policy;
mod poll_until;
mod real_prometheus;
mod redirects;
mod secrets;
mod spec_changes;
mod templates;
mod terminate;
mod time_to_live;
mod timeout_seconds;
mod traces;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hook-operator-under-test");

/// Returns an environment on the shared control plane.
async fn env(name: &str) -> TestEnv<'static> {
    TestEnv::on(shared().await, PROGRAM, name).await
}

/// Returns an environment whose operator starts with these flags only.
async fn stage_with(name: &str, flags: &[&str]) -> TestEnv<'static> {
    let control_plane = shared().await;
    let namespace = control_plane.namespace(name).await;
    let start = Start::new(PROGRAM, &hooks_kubeconfig(control_plane).await, &namespace).flags(flags);
    TestEnv::with(control_plane, namespace, &start).await
}

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
