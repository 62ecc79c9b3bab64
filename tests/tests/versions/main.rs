//! Rolling updates of both operators, from an older build to this one, back, and forward again, while pods wait for
//! their hooks. No pod is lost or changed too early, and no build asks again for a verdict that the other one got or
//! awaits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

mod builds;
mod canary;
mod held;
mod in_place;
mod installation;
mod scale_down;

use operator_tests::Programs;

const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};
