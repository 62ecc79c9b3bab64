//! Tests of `kubectl game` with a real API server, simulated nodes and both operators: commands, output and
//! exit codes.
//!
//! | file | scope |
//! | --- | --- |
//! | `scale_down` | a failing hook: shown, explained, retried |
//! | `updates` | pause, resume, set image, undo, history |
//! | `undo` | rollbacks with canary steps: after a complete rollout, in the middle of one, and while paused |
//! | `skip` | one pod that bypasses its hook |
//! | `keep` | a pod whose removal requests are withdrawn |
//! | `drain` | a node whose pods leave once their hooks succeed |
//! | `lists` | tables, `-o`, HookRuns |
//! | `exec_hook` | actions in containers, followed until they are complete |
//! | `hook_operator_stopped` | a HookRun without measurements |
//! | `migrate` | the check of a cluster before the original operators are replaced |
//! | `mistakes` | unknown names, missing permissions |
//! | `on_call` | troubles of workloads: named by one command, ended by the command that it prints first |
//! | `transcript` | `get -w` on a terminal |
//! | `recording` | the picture of the README |
//! | `captures` | the screens of `docs/screens.md`, on terminals of two sizes |

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod abort;
mod captures;
mod drain;
mod exec_hook;
mod hook_operator_stopped;
mod keep;
mod lists;
mod migrate;
mod mistakes;
mod on_call;
mod plugin;
mod recording;
mod restart;
mod scale_down;
mod screen;
mod skip;
mod terminal;
mod transcript;
mod undo;
mod updates;

use operator_tests::{Fleet, Programs};
use test_kit::ControlPlane;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Returns a fleet on the shared control plane.
async fn fleet(name: &str) -> Fleet<'static> {
    Fleet::on(ControlPlane::shared(shared_api::crd::all).await, PROGRAMS, name).await
}
