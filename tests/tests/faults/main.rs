//! Both operators under faults: one file per kind. A proxy between the operator and the API server holds back,
//! refuses and loses requests; the operator is killed; the API server is paused. The invariants are always
//! the same: recorded results stay, no recorded measurement is repeated, and the run ends correctly.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use operator_tests::{Programs, Start, TestEnv, hooks_kubeconfig_behind, values, web};
use serde_json::{Value, json};
use shared_api::HookRunStatus;
use test_kit::api_proxy::Matcher;
use test_kit::webhook::Script;
use test_kit::{Answer, ApiProxy, ControlPlane};

mod api_server_paused;
mod conflict;
mod etcd_restored;
mod leader;
mod older_crd;
mod operator_killed;
mod quiet_watch;
mod stale_watch;
mod two_operators;
mod writes_refused;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hook-operator-under-test");
/// Both operators.
const PROGRAMS: Programs = Programs {
    workloads: env!("CARGO_BIN_EXE_gamedeployment-operator-under-test"),
    hooks: PROGRAM,
};

/// Generous time limit for anything that should be quick, on a busy machine.
const SOON: Duration = operator_tests::SOON;

/// Environment on the shared control plane whose operator reaches the API server through a proxy.
struct Fixture {
    env: TestEnv<'static>,
    proxy: ApiProxy,
    start: Start,
}

async fn fixture(name: &str) -> Fixture {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let proxy = ApiProxy::start(control_plane).unwrap();
    let namespace = control_plane.namespace(name).await;
    let start = start(&hooks_kubeconfig_behind(control_plane, &proxy).await, &namespace);
    let env = TestEnv::with(control_plane, namespace, &start).await;
    env.game.on("/", numbered());
    Fixture { env, proxy, start }
}

/// Returns a fixture with a run of this many measurements, two of them recorded.
async fn under_way(name: &str, count: i64) -> Fixture {
    let fixture = fixture(name).await;
    let env = &fixture.env;
    let spec = counted(&env.game.url("/"), count, "300ms");
    env.create("run", spec).await;
    env.until("run", |status| recorded(status).len() >= 2).await;
    fixture
}

/// Returns options for an operator with an API timeout of two seconds.
fn start(kubeconfig: &Path, namespace: &str) -> Start {
    Start::new(PROGRAM, kubeconfig, namespace).flags(&["--egress-allow-loopback", "--api-timeout", "2s"])
}

/// Answers 1, 2, 3, …, so that a recorded value identifies its request.
fn numbered() -> Script {
    let next = AtomicI64::new(1);
    Script::by(move |_| Answer::json(json!({ "age": next.fetch_add(1, Ordering::Relaxed) })))
}

/// Builds a run of this many measurements, all successful.
fn counted(url: &str, count: i64, interval: &str) -> Value {
    let more = json!({ "count": count, "interval": interval, "successCondition": "asInt(result) > 0" });
    json!({ "metrics": [web("webtest", url, more)] })
}

/// Matches the status writes of a run.
fn status_writes(name: &str) -> Matcher {
    Matcher::new("PATCH", format!("/hookruns/{name}/status"))
}

/// Returns the recorded values.
fn recorded(status: &HookRunStatus) -> Vec<&str> {
    status.metric_results.first().map(values).unwrap_or_default()
}
