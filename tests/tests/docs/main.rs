//! Tests of the documents: their commands run, in order, and print what the pages show; their manifests are
//! accepted; their links have targets; each reason has its entry in the runbook.
//!
//! | file | scope |
//! | --- | --- |
//! | `commands` | every command of every page |
//! | `blocks` | all other blocks that are not prose |
//! | `mentioned` | commands of the plugin in sentences and tables |
//! | `links` | links, and unreachable pages |
//! | `runbook` | one entry for each reason |
//! | `examples` | each example runs as the tour describes |
//!
//! `DOCS=quick-start cargo test --test docs` runs the commands of the pages whose path contains these
//! letters.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod blocks;
mod commands;
#[path = "../admission/deploy.rs"]
mod deploy;
mod examples;
mod harness;
#[allow(dead_code, reason = "the suite of the component needs more of it")]
#[path = "../admission/installation.rs"]
mod installation;
mod links;
mod mentioned;
mod page;
mod runbook;
mod shell;
mod shown;
mod stand_ins;
mod typed;

use operator_tests::Programs;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Admission component.
const PROGRAM: &str = env!("CARGO_BIN_EXE_admission-under-test");

const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-game-under-test");

/// Sidecar of a game server without HTTP.
const SIDECAR: &str = env!("CARGO_BIN_EXE_sidecar-under-test");

/// Returns the control plane of these tests.
async fn shared() -> &'static test_kit::ControlPlane {
    test_kit::ControlPlane::shared(shared_api::crd::all).await
}
