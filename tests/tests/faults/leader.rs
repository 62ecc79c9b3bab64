//! Several processes with one leader: how the lead is won, released, lost and taken over.

use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use operator_tests::{Operator, Start, TestEnv, allow_election, hooks_kubeconfig, hooks_kubeconfig_behind};
use serde_json::json;
use shared_api::Phase;
use test_kit::{ApiProxy, ControlPlane, eventually};

use crate::{PROGRAM, SOON, counted, numbered, recorded};

fn candidate(kubeconfig: &Path, namespace: &str, lease: &str) -> Start {
    let flags = [
        "--egress-allow-loopback",
        "--api-timeout",
        "2s",
        "--lease-duration",
        lease,
    ];
    Start::new(PROGRAM, kubeconfig, namespace).flags(&flags).elects()
}

/// Returns an environment whose operator leads, and a second candidate that waits.
async fn two(lease: &str) -> (TestEnv<'static>, Operator) {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let namespace = control_plane.namespace("leader").await;
    allow_election(control_plane, &namespace);
    let start = candidate(&hooks_kubeconfig(control_plane).await, &namespace, lease);
    let env = TestEnv::with(control_plane, namespace, &start).await;
    env.game.on("/", numbered());
    leads(&env.operator).await;
    let other = Operator::start(&start);
    other.ready().await;
    (env, other)
}

async fn leads(operator: &Operator) {
    eventually(SOON, || async {
        let text = operator.ask("/metrics").await?.1;
        if text
            .lines()
            .any(|line| line.starts_with("hookgate_leader{") && line.ends_with(" 1"))
        {
            Ok(())
        } else {
            Err(operator.process.tail(5))
        }
    })
    .await;
}

fn lease(env: &TestEnv<'_>) -> Api<Lease> {
    Api::namespaced(env.client(), &env.namespace)
}

async fn ended_in_failure(operator: &Operator) -> String {
    let status = eventually(SOON, || async {
        let status = operator
            .process
            .exit_status()
            .map_err(|error| error.to_string())?;
        status.ok_or_else(|| operator.process.tail(5))
    })
    .await;
    assert_eq!(status.code(), Some(1));
    operator.process.tail(5)
}

#[tokio::test]
async fn one_works_and_the_other_says_who() {
    let (env, other) = two("3s").await;
    env.create("run", counted(&env.game.url("/"), 8, "200ms")).await;
    let status = env.settled("run").await;
    assert_eq!((status.phase, recorded(&status).len()), (Phase::Successful, 8));
    assert_eq!(env.game.counts("/").received, 8, "the other one asked, too");
    assert_eq!(other.metric("hookgate_leader", "").await, 0);
    let holder = lease(&env)
        .get("hook-operator")
        .await
        .unwrap()
        .spec
        .unwrap()
        .holder_identity
        .unwrap();
    let says = other.get("/readyz").await;
    assert!(
        says.contains(&format!("[+] leader-election led by {holder}")),
        "{says}"
    );
    let writes = other
        .metric("hookgate_api_requests_total", "verb=\"patch\"")
        .await;
    assert_eq!(writes, 0);
}

#[tokio::test]
async fn who_is_asked_to_end_gives_the_lead_back() {
    // No test could wait for this lease to expire.
    let (env, other) = two("1h").await;
    let status = env.operator.process.terminate(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    leads(&other).await;
    let spec = lease(&env).get("hook-operator").await.unwrap().spec.unwrap();
    assert_eq!(spec.lease_transitions, Some(1));
}

#[tokio::test]
async fn who_is_killed_is_succeeded_and_the_run_goes_on() {
    let (env, other) = two("3s").await;
    env.create("run", counted(&env.game.url("/"), 6, "300ms")).await;
    env.until("run", |status| recorded(status).len() >= 2).await;
    env.operator.process.kill_hard().unwrap();
    leads(&other).await;
    let status = env.until("run", |status| status.phase.is_final()).await;
    assert_eq!((status.phase, recorded(&status).len()), (Phase::Successful, 6));
}

#[tokio::test]
async fn who_was_asleep_and_wakes_up_writes_nothing_and_ends() {
    let (env, other) = two("3s").await;
    env.create("run", counted(&env.game.url("/"), 6, "300ms")).await;
    env.until("run", |status| recorded(status).len() >= 2).await;
    env.operator.process.pause().unwrap();
    leads(&other).await;
    let status = env.until("run", |status| status.phase.is_final()).await;
    assert_eq!((status.phase, recorded(&status).len()), (Phase::Successful, 6));
    let before = env.runs().get("run").await.unwrap().metadata.resource_version;
    env.operator.process.resume().unwrap();
    let words = ended_in_failure(&env.operator).await;
    assert!(words.contains("lost leadership"), "{words}");
    assert_eq!(
        env.runs().get("run").await.unwrap().metadata.resource_version,
        before
    );
}

#[tokio::test]
async fn who_cannot_renew_stops_before_another_begins() {
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let proxy = ApiProxy::start(control_plane).unwrap();
    let namespace = control_plane.namespace("leader").await;
    allow_election(control_plane, &namespace);
    let kubeconfig = hooks_kubeconfig_behind(control_plane, &proxy).await;
    let start = candidate(&kubeconfig, &namespace, "3s");
    let env = TestEnv::with(control_plane, namespace, &start).await;
    leads(&env.operator).await;
    let way = test_kit::api_proxy::Matcher::any("/leases");
    let fault = proxy.fail_next(way, test_kit::api_proxy::Failure::refused(500), u32::MAX);
    let words = ended_in_failure(&env.operator).await;
    assert!(words.contains("could not be renewed in time"), "{words}");
    fault.release();
}

#[tokio::test]
async fn a_lead_that_is_given_away_by_force_ends() {
    let (env, other) = two("3s").await;
    let held = json!({ "spec": { "holderIdentity": "somebody" } });
    let patch = Patch::Merge(&held);
    lease(&env)
        .patch("hook-operator", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let words = ended_in_failure(&env.operator).await;
    assert!(words.contains("was taken by somebody"), "{words}");
    leads(&other).await;
}
