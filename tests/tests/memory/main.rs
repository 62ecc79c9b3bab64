//! Large specs of one tenant exhaust no program's memory and delay nobody else, while the operators run and when they
//! start again. The checks come from outside: the kernel's count of each process's memory, the objects and the Leases
//! in the API server, and the requests at the endpoints of hooks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

#[allow(dead_code, reason = "the suite `unreadable` uses the rest")]
#[path = "../unreadable/api.rs"]
mod api;
mod arrivals;
mod crowd;
#[path = "../admission/deploy.rs"]
mod deploy;
mod everything;
mod footprint;
#[allow(dead_code, reason = "the suite `admission` uses the rest")]
#[path = "../admission/installation.rs"]
mod installation;
#[allow(dead_code, reason = "the suite `unreadable` uses the rest")]
#[path = "../unreadable/json_text.rs"]
mod json_text;
mod lag;
#[allow(dead_code, reason = "the suite `unreadable` uses the rest")]
#[path = "../unreadable/manifests.rs"]
mod manifests;
mod odd_objects;
mod pods;
mod printer;
mod reviews;
mod room;
mod scale_down;
mod shapes;
mod templates;
#[allow(dead_code, reason = "the suite `unreadable` uses the rest")]
#[path = "../unreadable/tenants.rs"]
mod tenants;
mod world;

use std::time::Duration;

use operator_tests::proof::Extent;
use test_kit::ControlPlane;
use tokio::sync::{OnceCell, RwLock};

/// hookgate-admission.
const PROGRAM: &str = env!("CARGO_BIN_EXE_admission-under-test");
/// Longest `spec` that an operator reads, in bytes of JSON.
const MAX_SPEC: usize = 640 * 1024;
/// Time limit for what the API server needs to store or list tens of megabytes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// Lock of the processor: tests that measure times take it alone, the others share it.
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Returns a control plane without an audit log, for hookgate-admission.
async fn shared() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED.get_or_init(operator_tests::alone).await
}

/// Number of objects: a sample, or all of them with `PROVE=quick` and `PROVE=all`.
fn count(sample: u64, all: u64) -> usize {
    usize::try_from(Extent::asked().of(sample, all, all)).unwrap()
}

/// Returns the numbers in a text.
fn numbers(text: &str) -> Vec<usize> {
    let digits = text.split(|character: char| !character.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// Checks that a message states a size of at least `bytes`, and its limit.
#[track_caller]
fn assert_states(message: &str, bytes: usize, limit: usize) {
    let numbers = numbers(message);
    let is_stated = numbers.contains(&limit) && numbers.iter().any(|number| *number >= bytes);
    assert!(is_stated, "neither {bytes} nor {limit} bytes: {message}");
}
