//! Dashboards, alerts and documents speak of metrics that are there: a real Prometheus scrapes both operators during a
//! real run, and everything that is asked of it has an answer.
//!
//! `DASHBOARD_PICTURES=write` draws the dashboards with what this run has measured into `docs/pictures`
//! (`cargo xtask pictures`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::Programs;

mod alerts;
mod files;
mod names;
mod original;
mod pictures;
mod run;
mod story;

/// The programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};
