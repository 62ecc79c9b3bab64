//! Tests of `examples/gitops` on a real API server, with simulated nodes and both operators: health checks and
//! actions of Argo CD, and health checks of Flux. Neither tool runs: the scripts and expressions are evaluated as
//! the tools do.
//!
//! | file | scope |
//! | --- | --- |
//! | `health` | health of a GameDeployment and a HookTemplate |
//! | `other_kinds` | health of HookRuns and ExecutionHooks |
//! | `actions` | each action helps, by the pods and HookRuns that follow |
//! | `patches` | each action makes the patch of the plugin's command, and is disabled if the command is refused |
//! | `applied` | syncs that apply an unchanged manifest |
//! | `cases` | objects without an API server |
//! | `argo`, `lua`, `flux` | evaluation of the scripts and expressions |

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod actions;
mod applied;
mod argo;
mod cases;
mod flux;
mod health;
mod lua;
mod other_kinds;
mod patches;
mod seen;

use operator_tests::{Fleet, Programs};
use test_kit::ControlPlane;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-game-under-test");

/// Returns the control plane of these tests.
async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}

/// Returns a fleet on the shared control plane.
async fn fleet() -> Fleet<'static> {
    Fleet::on(shared().await, PROGRAMS, "gitops").await
}
