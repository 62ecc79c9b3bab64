//! The API server stays silent for 20 seconds in the middle of a run.

use std::time::{Duration, Instant};

use operator_tests::{Operator, TestEnv, hooks_kubeconfig};
use shared_api::Phase;
use test_kit::{ControlPlane, Options, eventually};

use crate::{SOON, counted, numbered, recorded, start};

/// Duration of the pause.
const PAUSE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_run_waits_tells_and_ends_right() {
    // A separate control plane: other tests must not pause with it.
    let crds = shared_api::crd::all();
    let control_plane = ControlPlane::start(Options {
        crds,
        audit: true,
        ..Options::default()
    })
    .await
    .unwrap();
    let namespace = control_plane.namespace("paused").await;
    let start = start(&hooks_kubeconfig(&control_plane).await, &namespace);
    let env = TestEnv::with(&control_plane, namespace, &start).await;
    env.game.on("/", numbered());
    env.create("run", counted(&env.game.url("/"), 6, "500ms")).await;
    let status = env.until("run", |status| recorded(status).len() >= 2).await;
    let known = recorded(&status).len() as u64;

    control_plane.pause_api_server().unwrap();
    let paused = Instant::now();
    eventually(SOON, || async {
        let ready = env.operator.get("/readyz").await;
        if ready.contains("[-] api-server no successful response") {
            Ok(())
        } else {
            Err(ready)
        }
    })
    .await;
    // One measurement follows the recorded ones; its outcome cannot be recorded.
    let received = || env.game.counts("/").received as u64;
    eventually(SOON, || async { (received() > known).then_some(()) }).await;
    let asked = env.game.counts("/").received;
    eventually(SOON, || async { (paused.elapsed() >= PAUSE).then_some(()) }).await;
    assert_eq!(
        env.game.counts("/").received,
        asked,
        "nothing is measured before the last outcome is recorded"
    );
    assert_eq!(env.operator.get("/healthz").await, "ok\n");
    control_plane.resume_api_server().unwrap();

    let status = env.settled("run").await;
    assert_eq!(status.phase, Phase::Successful);
    assert_eq!(recorded(&status), ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(env.game.counts("/").received, 6);
    let Operator { process, .. } = &env.operator;
    assert_eq!(
        process.exit_status().unwrap(),
        None,
        "the operator lived through it"
    );
    env.operator.ready().await;
}
