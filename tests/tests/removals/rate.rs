//! Evictions at a high rate.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use operator_tests::SOON;
use serde_json::json;
use test_kit::eventually;

use crate::guarded::{Guarded, evict};

const CLIENTS: [&str; 3] = ["ann", "bob", "eve"];
/// Interval between two evictions by one client: all of them send 50 a second.
const INTERVAL: Duration = Duration::from_millis(60);
/// Number of evictions that the clients send while only busy pods are left.
const WHILE_BUSY: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn evictions_by_three_clients_at_50_a_second_end_no_match() {
    let guarded = Guarded::new("rate").await;
    let before = guarded.launch(10, json!({ "maxUnavailable": 10 })).await;
    let (busy, mut ended) = guarded.occupy(&before, 3);
    let (codes, is_over) = (RefCell::new(BTreeMap::new()), Cell::new(false));
    let clients = CLIENTS.map(|user| evict_in_turn(guarded.pods_as(user), &before, &codes, &is_over));
    let sent = || codes.borrow().values().sum::<usize>();
    let matches = async {
        guarded.await_replaced(&ended, 10).await;
        let wanted = sent() + WHILE_BUSY;
        eventually(SOON, || async {
            if sent() < wanted { Err(sent()) } else { Ok(()) }
        })
        .await;
        for pod in &busy {
            let mut requesters = guarded.requesters(pod).await;
            requesters.sort_unstable();
            assert_eq!(requesters, CLIENTS);
        }
        guarded.assert_ended_once(&ended);
        for pod in busy {
            guarded.fleet.nodes.pod(&pod).set_players(0);
            ended.insert(pod);
            guarded.await_replaced(&ended, 10).await;
        }
        is_over.set(true);
    };
    tokio::join!(matches, join_all(clients));
    println!("{} evictions, by the code of the response: {codes:?}", sent());
    guarded.fleet.settled(10).await;
    guarded.assert_ended_once(&before);
    let lost = "hookgate_gamedeployment_pods_lost_ungated_total";
    assert_eq!(guarded.fleet.metric(lost, "").await, 0);
}

/// Evicts the pods in turn, over and over. Counts the responses by their codes.
async fn evict_in_turn(
    pods: Api<Pod>,
    names: &BTreeSet<String>,
    codes: &RefCell<BTreeMap<u16, usize>>,
    is_over: &Cell<bool>,
) {
    let mut pace = tokio::time::interval(INTERVAL);
    for name in names.iter().cycle() {
        if is_over.get() {
            return;
        }
        pace.tick().await;
        let code = evict(&pods, &json!({ "metadata": { "name": name } })).await;
        // A pod that is terminating may be evicted.
        assert!([201, 404, 429].contains(&code), "{name}: {code}");
        *codes.borrow_mut().entry(code).or_default() += 1;
    }
}
