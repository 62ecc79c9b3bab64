//! `kubectl game` against a real API server, simulated nodes and both operators: what people type, what is printed, and
//! with which exit code it ends.
//!
//! | file | what it is about |
//! | --- | --- |
//! | `scale_down` | a hook that says no: seen, explained, asked again |
//! | `updates` | pause, resume, set image, undo, history |
//! | `skip` | one pod that passes unasked |
//! | `lists` | tables, `-o`, HookRuns |
//! | `hook_operator_stopped` | a HookRun that nobody measures |
//! | `mistakes` | names that are not there, rights that are missing |
//! | `transcript` | `get -w` on a terminal |
//! | `recording` | the picture of the README |

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod hook_operator_stopped;
mod lists;
mod mistakes;
mod plugin;
mod recording;
mod scale_down;
mod screen;
mod skip;
mod terminal;
mod transcript;
mod updates;

use operator_tests::{Fleet, Programs};
use test_kit::ControlPlane;

/// The programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// A fleet on the shared control plane.
async fn fleet(name: &str) -> Fleet<'static> {
    Fleet::on(ControlPlane::shared(shared_api::crd::all).await, PROGRAMS, name).await
}
