//! Machines that are suspended, processes that are frozen or hang, and writes that arrive late: a success that is over,
//! or that belongs to an earlier leader, changes no pod. Judged by the API server, by the requests at the proxies in
//! front of it, and by those at the webhook that the hooks ask; never by what an operator believes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::Programs;

mod candidates;
mod frozen;
mod hung_task;
mod late_write;
mod leader_gauge;
mod machine;
mod players;
mod standby;
mod suspended_machine;
mod world;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};
