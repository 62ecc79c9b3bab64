//! Two ways to split a cluster never work at the same time.

use operator_tests::{Operator, SOON, Start, allow_election, hooks_kubeconfig};
use test_kit::{ControlPlane, eventually};
use tokio::sync::OnceCell;

use crate::{LEASE, PROGRAMS, alone, held, leads, until_it_leads};

static EMPTY: OnceCell<ControlPlane> = OnceCell::const_new();

/// Returns a control plane where hook-operators of several tests have nothing to do, and a namespace for the
/// Leases of one test.
async fn place() -> (&'static ControlPlane, String) {
    let control_plane = EMPTY.get_or_init(alone).await;
    let namespace = control_plane.namespace("layouts").await;
    allow_election(control_plane, &namespace);
    (control_plane, namespace)
}

/// Starts a process for a shard, or for all namespaces.
async fn process((control_plane, namespace): &(&ControlPlane, String), shard: &str) -> Operator {
    let kubeconfig = hooks_kubeconfig(control_plane).await;
    let place = format!("--lease-namespace={namespace}");
    let shard = format!("--shard={shard}");
    let mut flags = vec![LEASE, &place];
    flags.extend((shard != "--shard=").then_some(&*shard));
    let start = Start::everywhere(PROGRAMS.hooks, &kubeconfig)
        .flags(&flags)
        .elects();
    Operator::start(&start)
}

/// Checks that a process does not work but waits, is as ready as a waiting one can be, and names the process
/// that it waits for.
async fn waits(operator: &Operator, words: &str) {
    let expected = format!("[+] leader-election waiting for {words} (leader ");
    eventually(SOON, || async {
        let (status, text) = operator.ask("/readyz").await?;
        if status == 200 && text.contains(&expected) {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
    assert!(!leads(operator).await);
}

async fn ends(operator: &Operator) {
    let status = operator.process.terminate(SOON).await.unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_new_count_waits_until_every_shard_of_the_old_one_has_ended() {
    let place = place().await;
    let old = [process(&place, "0/2").await, process(&place, "1/2").await];
    for one in &old {
        until_it_leads(one).await;
    }
    let new = process(&place, "0/3").await;
    waits(&new, "shard 0/2").await;
    ends(&old[0]).await;
    waits(&new, "shard 1/2").await;
    ends(&old[1]).await;
    until_it_leads(&new).await;
    let said = new.process.tail(1000);
    assert_eq!(
        said.matches("waiting for shard 0/2").count(),
        1,
        "told more than once: {said}"
    );
    // The old one does not come back beside it either.
    let back = process(&place, "1/2").await;
    waits(&back, "shard 0/3").await;
    let names: Vec<String> = held(place.0, &place.1)
        .await
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["hook-operator-shard-0-of-3"]);
}

#[tokio::test]
async fn shards_and_a_process_without_wait_for_each_other() {
    let place = place().await;
    let whole = process(&place, "").await;
    until_it_leads(&whole).await;
    let shard = process(&place, "0/2").await;
    waits(&shard, "a process without --shard").await;
    // A killed process cannot release its Lease.
    whole.process.kill_hard().unwrap();
    until_it_leads(&shard).await;
    let whole = process(&place, "").await;
    waits(&whole, "shard 0/2").await;
    let other = process(&place, "1/2").await;
    until_it_leads(&other).await;
    ends(&shard).await;
    ends(&other).await;
    until_it_leads(&whole).await;
}

#[tokio::test]
async fn who_was_asleep_while_another_layout_came_does_not_go_on() {
    let place = place().await;
    let whole = process(&place, "").await;
    until_it_leads(&whole).await;
    whole.process.pause().unwrap();
    let shard = process(&place, "0/2").await;
    until_it_leads(&shard).await;
    whole.process.resume().unwrap();
    // No other process has taken its own Lease.
    let status = whole.process.wait(SOON).await.unwrap();
    assert_eq!(status.code(), Some(1));
    let words = whole.process.tail(5);
    assert!(
        words.contains("lost leadership") && words.contains("waiting for shard 0/2"),
        "{words}"
    );
    assert!(leads(&shard).await);
}

#[tokio::test]
async fn of_those_that_come_at_once_one_layout_leads() {
    let place = place().await;
    let (whole, shards) = (
        process(&place, "").await,
        [process(&place, "0/2").await, process(&place, "1/2").await],
    );
    eventually(SOON, || async {
        let whole = leads(&whole).await;
        let shards = [leads(&shards[0]).await, leads(&shards[1]).await];
        match (whole, shards) {
            (true, [false, false]) | (false, [true, true]) => Ok(()),
            both => Err(both),
        }
    })
    .await;
    if leads(&whole).await {
        waits(&shards[0], "a process without --shard").await;
        waits(&shards[1], "a process without --shard").await;
    } else {
        waits(&whole, "shard 0/2").await;
    }
}
