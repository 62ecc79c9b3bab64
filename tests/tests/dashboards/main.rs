//! Checks that dashboards, alerts and documents use existing metrics: a real Prometheus scrapes both
//! operators during a real run, and every query must return data.
//!
//! `DASHBOARD_PICTURES=write` draws the dashboards with the data of this run into `docs/pictures`
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

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// Sidecar of a game server without HTTP.
const SIDECAR: &str = env!("CARGO_BIN_EXE_sidecar-under-test");
