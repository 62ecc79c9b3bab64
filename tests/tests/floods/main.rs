//! Thousands of hostile connections to each port, from a pod without credentials. The checks come from outside: the
//! kernel's counts of memory and sockets, the Lease in the API server, probes as the kubelet sends them, answers of the
//! API server, and the operators' work.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

#[path = "../admission/deploy.rs"]
mod deploy;
#[allow(dead_code, reason = "the suite `admission` uses the rest")]
#[path = "../admission/installation.rs"]
mod installation;
mod operators;
mod webhook;

use std::time::Duration;

use operator_tests::proof::Extent;
use test_kit::ControlPlane;
use tokio::sync::Mutex;

const PROGRAM: &str = env!("CARGO_BIN_EXE_admission-under-test");

const CONNECTIONS: usize = 2_000;
/// Growth of the peak that a repeated flood may cause, in bytes.
const REPEATED: u64 = 32 << 20;
/// Soft limit of open files on many nodes. At it, no connection is accepted, and none is opened.
const FILES: usize = 1_024;
/// Connections at most that a program may keep some time after a flood.
const FEW_CONNECTIONS: usize = 32;
const DROPPED: &str = "hookgate_http_connections_dropped_total";

/// Floods run one after another: each takes the cores for itself.
static MACHINE: Mutex<()> = Mutex::const_new(());

/// Time of one flood.
fn length() -> Duration {
    Duration::from_secs(Extent::asked().of(3, 10, 60))
}

async fn shared() -> &'static ControlPlane {
    ControlPlane::shared(shared_api::crd::all).await
}
