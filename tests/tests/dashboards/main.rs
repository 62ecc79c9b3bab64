//! Checks that dashboards, alerts and documents use existing metrics: a real Prometheus scrapes both
//! operators during a real run, and every query must return data. [`recorded`] also checks in which cases alerts fire.
//!
//! `DASHBOARD_PICTURES=write` draws the dashboards with the data of this run into `docs/pictures`
//! (`cargo xtask pictures`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use operator_tests::Programs;
use test_kit::ControlPlane;

mod alerts;
#[path = "../admission/deploy.rs"]
mod deploy;
mod files;
#[allow(dead_code, reason = "the suite `rights` uses the rest")]
#[path = "../rights/grants.rs"]
mod grants;
#[allow(dead_code, reason = "the suite `admission` uses the rest")]
#[path = "../admission/installation.rs"]
mod installation;
#[allow(dead_code, reason = "the suite `suspended` uses the rest")]
#[path = "../suspended/machine.rs"]
mod machine;
mod names;
mod original;
mod pictures;
mod promtool;
mod recorded;
mod run;
mod story;

/// Programs under test.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: env!("CARGO_BIN_EXE_hook-operator-under-test"),
};

/// hookgate-admission, which [`installation`] starts.
const PROGRAM: &str = env!("CARGO_BIN_EXE_admission-under-test");

/// Sidecar of a game server without HTTP.
const SIDECAR: &str = env!("CARGO_BIN_EXE_sidecar-under-test");

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
