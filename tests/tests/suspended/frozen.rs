//! The leader is frozen (SIGSTOP) between a verdict and its deletion, for longer than its Lease and than the verdict
//! counts. The deletion has begun, and waits for its connection.

use operator_tests::fleet::Who;
use operator_tests::{SOON, allow_election};
use test_kit::ApiProxy;
use test_kit::tls_gate::TlsGate;

use crate::candidates::{Candidate, until_renewed};
use crate::players::Players;
use crate::world::{asked_and_held, behind_gate, expired, fleet};

/// Freezes a single replica that begins with these flags.
async fn single(flags: &[&str], elects: bool) {
    let mut fleet = fleet("frozen").await;
    let players = Players::start();
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    let gate = TlsGate::start(&proxy.url()).unwrap();
    let mut start = behind_gate(&fleet, &gate).flags(flags);
    if elects {
        allow_election(fleet.control_plane, &fleet.namespace);
        start = start.elects();
    }
    fleet.start(Who::Workloads, &start).await;
    let (victim, answer) = asked_and_held(&fleet, &players).await;
    if elects {
        // So that the next connection is the deletion's.
        until_renewed(&proxy).await;
    }
    gate.hold();
    answer.release();
    gate.await_waiting(1, SOON).await.unwrap();
    fleet.workloads.as_ref().unwrap().process.pause().unwrap();
    expired(&fleet).await;
    gate.release();
    gate.await_greeted(1, SOON).await.unwrap();
    fleet.workloads.as_ref().unwrap().process.resume().unwrap();
    victim.lives_while_asked(&fleet, &players, 1).await;
    let sent = victim.deletions(&proxy);
    assert!(sent.is_empty(), "{sent:?}");
    victim.goes(&fleet, &players).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), [victim.name].into());
}

#[tokio::test]
async fn a_single_replica_asks_again() {
    single(&["--api-timeout=1m"], false).await;
}

#[tokio::test]
async fn a_single_replica_with_a_lease_asks_again() {
    single(&["--api-timeout=1m", "--lease-duration=5s"], true).await;
}

#[tokio::test]
async fn a_leader_with_a_standby_deletes_nothing_and_ends() {
    let mut fleet = fleet("frozen").await;
    fleet.workloads = None;
    allow_election(fleet.control_plane, &fleet.namespace);
    let players = Players::start();
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    let gate = TlsGate::start(&proxy.url()).unwrap();
    // The standby begins after the success has expired: otherwise it may use it.
    let flags = ["--api-timeout=1m", "--lease-duration=10s"];
    let start = behind_gate(&fleet, &gate).flags(&flags).elects();
    let first = Candidate::start_behind(proxy, &start).await;
    first.until_it_leads().await;
    let second = Candidate::start(&fleet, "10s").await;
    let (victim, answer) = asked_and_held(&fleet, &players).await;
    until_renewed(&first.proxy).await;
    gate.hold();
    answer.release();
    gate.await_waiting(1, SOON).await.unwrap();
    first.operator.process.pause().unwrap();
    second.until_it_leads().await;
    gate.release();
    gate.await_greeted(1, SOON).await.unwrap();
    first.operator.process.resume().unwrap();
    first.fails().await;
    victim.lives_while_asked(&fleet, &players, 1).await;
    let sent = victim.deletions(&first.proxy);
    assert!(sent.is_empty(), "{sent:?}");
    victim.goes(&fleet, &players).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), [victim.name.clone()].into());
}
