//! Tests of hookgate-admission on a real API server, with the permissions and webhooks of
//! `deploy/admission.yaml`: one file per promise. Its webhooks cover only the test's own namespace.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cloned_ref_to_slice_refs,
    reason = "a test may end so"
)]

mod authors;
mod balancer;
mod bodies;
mod certificates;
mod definitions;
mod deletion;
mod deploy;
mod executions;
mod installation;
mod operations;
mod removals;
mod together;
mod unchanged;
mod words;

use test_kit::ControlPlane;

const PROGRAM: &str = env!("CARGO_BIN_EXE_admission-under-test");
/// Operators, for tests that compare with them.
const OPERATORS: operator_tests::Programs = operator_tests::Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
